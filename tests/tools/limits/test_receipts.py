"""Decision 25: what a receipt says is what happened, whatever the output was."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.core.config import Guard
from tui.core.messages import Block, RawOutput, ToolOutput, text_block, text_of
from tui.tokens import estimate, tokenizer
from tui.tools.limits.clamp import byte_length, line_count
from tui.tools.limits.pipeline import GuardedOutput, GuardLimits, guard
from tui.tools.limits.receipt import Keep

IMAGE: Block = {"type": "image", "source": {"type": "base64", "data": "aGk="}}

pieces = st.sampled_from(
    ["word ", "x" * 40, "漢字", "🎉", "\n", "\r\n", "é", "\x00", "\ud800", "7"]
)
texts = st.lists(pieces, max_size=300).map("".join)
outputs = st.lists(st.one_of(texts.map(text_block), st.just(IMAGE)), max_size=8)
limits = st.builds(
    GuardLimits,
    config=st.builds(
        Guard,
        default_bytes=st.integers(500, 6000),
        preview_bytes=st.integers(1, 400),
        clamp_bytes=st.integers(600, 6000),
        clamp_lines=st.integers(12, 100),
    ),
    share_tokens=st.integers(400, 4000),
)


def blocks_of(content: list[Block], kind: str) -> list[Block]:
    return [block for block in content if block["type"] == kind]


def cut(output: ToolOutput, folder: str, keep: Keep, within: GuardLimits) -> GuardedOutput:
    spill = Path(folder) / ".holdfast" / "tool-results" / "call.txt"
    return asyncio.run(guard(output, tool="any", keep=keep, spill=spill, limits=within))


@settings(deadline=None)
@given(outputs, st.sampled_from(["head", "ends"]), limits)
def test_the_figures_add_up(content: list[Block], keep: Keep, within: GuardLimits) -> None:
    raw = [str(block["text"]) for block in blocks_of(content, "text")]
    with tempfile.TemporaryDirectory() as folder:
        guarded = cut(ToolOutput(content), folder, keep, within)
        shown = [str(block["text"]) for block in blocks_of(guarded.content, "text")]
        assert blocks_of(guarded.content, "image") == blocks_of(content, "image")
        assert sum(map(byte_length, shown)) <= within.config.clamp_bytes
        assert sum(map(line_count, shown)) <= within.config.clamp_lines
        assert sum(map(tokenizer.count, shown)) <= within.share_tokens
        receipt = guarded.receipt
        if receipt is None:
            assert guarded.content is content
            return
        said = receipt.to_json()
        assert said["stages"] == [s for s in ("spill", "clamp", "share") if s in said["stages"]]
        assert said["stages"]
        assert said["bytes_total"] == sum(map(byte_length, raw))
        assert said["lines_total"] == sum(map(line_count, raw))
        count = tokenizer.count if "share" in said["stages"] else estimate.tokens
        assert said["tokens_total"] == sum(map(count, raw))
        assert said["bytes_shown"] == sum(map(byte_length, shown))
        assert said["lines_shown"] == sum(map(line_count, shown))
        assert said["tokens_shown"] == sum(map(count, shown))
        assert said["kept"] == keep
        kept = Path(said["path"]).read_bytes()
        assert said["sha256"] == hashlib.sha256(kept).hexdigest()
        assert said["bytes_kept"] == len(kept)
        for text in raw:
            assert text.encode("utf-8", "surrogatepass") in kept


@settings(deadline=None)
@given(texts, st.sampled_from(["head", "ends"]), limits)
def test_O14_what_was_cut_is_not_cut_again(text: str, keep: Keep, within: GuardLimits) -> None:
    with tempfile.TemporaryDirectory() as folder:
        once = cut(ToolOutput.text(text), folder, keep, within)
        wide = GuardLimits(
            Guard(clamp_bytes=within.config.clamp_bytes, clamp_lines=within.config.clamp_lines),
            within.share_tokens,
        )
        again = cut(ToolOutput(once.content), folder, keep, wide)
    assert again.receipt is None
    assert again.content is once.content


def command_output(text: str, full: Path | None, **raw: Any) -> ToolOutput:
    return ToolOutput([text_block(text)], full=full, raw=RawOutput(**raw))


def test_L6_colours_alone_do_not_make_an_output_too_large(tmp_path: Path) -> None:
    """The tool has kept the raw bytes, which differ from the text, and are under the threshold."""
    full = tmp_path / "full.txt"
    full.write_bytes(b"\x1b[1mx\x1b[0m\n" * 4000)
    size = full.stat().st_size
    output = command_output("x\n" * 4000, full, bytes=size, lines=4000)
    within = GuardLimits(Guard(default_bytes=size, clamp_lines=4000))
    guarded = cut(output, str(tmp_path), "ends", within)
    assert guarded.receipt is None
    assert guarded.content is output.content
    assert not full.exists()  # nothing was cut, nobody needs it
    full.write_bytes(b"\x1b[1mx\x1b[0m\n" * 4000)
    guarded = cut(output, str(tmp_path), "ends", GuardLimits(Guard(default_bytes=size - 1)))
    assert guarded.receipt is not None
    assert guarded.receipt.path == full
    assert guarded.receipt.total.bytes == size


@pytest.mark.parametrize("some", [True, False])
def test_L12_L29_what_the_disk_did_not_take_is_not_said_to_be_kept(
    tmp_path: Path, *, some: bool
) -> None:
    full = tmp_path / "full.txt"
    full.write_bytes(b"y" * 70_000)
    output = command_output(
        "y" * 200_000,
        full if some else None,
        bytes=9_000_000,
        lines=1,
        partial=True,
        lost="the disk is nearly full",
    )
    guarded = cut(output, str(tmp_path), "head", GuardLimits())
    text = text_of(guarded.content)
    assert text.startswith("Output too large (8.6 MB). Failed to save full output: ")
    assert "the disk is nearly full" in text
    assert "Full output saved" not in text
    receipt = guarded.receipt
    assert receipt is not None
    assert receipt.total.bytes == 9_000_000
    assert receipt.bytes_kept == (70_000 if some else 0)
    assert receipt.path == (full if some else None)
    assert ("only the first 68.4 KB are in" in text) is some


def test_a_copy_that_could_not_be_finished_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    guarded = cut(ToolOutput.text("x" * 60_000), str(tmp_path), "head", GuardLimits())
    assert "Failed to save full output: " in text_of(guarded.content)
    assert guarded.receipt is not None
    assert guarded.receipt.path is None
    assert not list((tmp_path / ".holdfast" / "tool-results").iterdir())


@pytest.mark.parametrize("size", [60_000, 70_000])
def test_a_copy_that_the_tool_wrote_is_synced_and_named_by_the_hash_of_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """The tool's own hash is taken where the file holds as much as it says."""
    full = tmp_path / "full.txt"
    full.write_bytes(b"y" * 60_000)
    digest = hashlib.sha256(full.read_bytes()).hexdigest()
    synced: list[int] = []

    def sync(file: int) -> None:
        synced.append(os.fstat(file).st_ino)

    monkeypatch.setattr(os, "fsync", sync)
    said = digest if size == 60_000 else "that of another file"
    output = command_output("y", full, bytes=size, lines=1, partial=True, sha256=said)
    receipt = cut(output, str(tmp_path), "ends", GuardLimits()).receipt
    assert receipt is not None
    assert (receipt.sha256, receipt.bytes_kept) == (digest, 60_000)
    assert synced == [full.stat().st_ino]


def test_lines_that_were_not_read_count(tmp_path: Path) -> None:
    """Of a flood that was moved to the background, only the ends were read; its copy is whole."""
    copy = tmp_path / "copy.txt"
    copy.write_bytes(b"line\n" * 50_000)
    raw = RawOutput(250_000, 100, partial=True)
    given_ = ToolOutput([text_block("line\n" * 100)], full=copy, raw=raw)
    guarded = cut(given_, str(tmp_path), "ends", GuardLimits(Guard()))
    assert guarded.receipt is not None
    assert (guarded.receipt.total.bytes, guarded.receipt.total.lines) == (250_000, 50_000)

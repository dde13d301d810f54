"""K, L and O together: what one result becomes on its way to the model."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from tui.core.config import Guard
from tui.core.messages import Block, ToolOutput, text_of
from tui.tokens import tokenizer
from tui.tools.limits.clamp import PLACEHOLDER, SUFFIX, byte_length
from tui.tools.limits.pipeline import GuardedOutput, GuardLimits, guard
from tui.tools.limits.receipt import Keep

LIMITS = GuardLimits.of(Guard(), window=200_000)


@pytest.fixture
def spill(tmp_path: Path) -> Path:
    return tmp_path / ".holdfast" / "tool-results" / "tc-2.txt"


async def run(
    text: str, spill: Path, tool: str = "other", keep: Keep = "head", limits: GuardLimits = LIMITS
) -> GuardedOutput:
    return await guard(ToolOutput.text(text), tool=tool, keep=keep, spill=spill, limits=limits)


async def test_L1_images_pass_unchanged(spill: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "x" * 90_000}}
    output = ToolOutput([image])
    guarded = await guard(output, tool="x", keep="head", spill=spill, limits=LIMITS)
    assert guarded.content is output.content
    assert guarded.receipt is None
    assert not spill.exists()


async def test_L3_size_is_utf8_bytes(spill: Path) -> None:
    guarded = await run("漢" * 10_000, spill, "grep_search")
    assert "(29.3 KB)" in text_of(guarded.content)


async def test_L4_L5_K22_thresholds_and_their_defaults() -> None:
    named = ["grep_search", "find_by_name", "run_command", "command_status", "read_file", "other"]
    assert [LIMITS.bytes_of(tool) for tool in named] == [
        *[20_000, 20_000, 50_000, 50_000],
        *[100_000, 50_000],
    ]
    own = Guard(bytes={"grep_search": 7, "mine": 9}, default_bytes=11, preview_bytes=13)
    limits = GuardLimits.of(own, window=128_000)
    assert [limits.bytes_of(tool) for tool in [*named, "mine"]] == [
        *[7, 20_000, 50_000, 50_000],
        *[100_000, 11, 9],
    ]
    assert limits.config.preview_bytes == 13
    assert limits.share_tokens == 38_400  # K22: 30 % without configuration


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (30_000, "29.3 KB"),
        (50_001, "48.8 KB"),
        (1024 * 1024 - 60_000, "965.4 KB"),
        (1024 * 1024, "1.0 MB"),
        (2_621_440, "2.5 MB"),
    ],
)
async def test_L9_sizes(spill: Path, size: int, said: str) -> None:
    text = text_of((await run("x" * size, spill, "grep_search")).content)
    assert text.startswith(f"Output too large ({said}). ")


@pytest.mark.parametrize("character", ["é", "漢", "🎉", "x"])
async def test_L10_the_preview_is_the_longest_that_fits(spill: Path, character: str) -> None:
    text = text_of((await run("a" + character * 60_000, spill)).content)
    preview = text.split("Preview (first 2048 bytes):\n", 1)[1].removesuffix("\n...")
    width = len(character.encode())
    assert preview == "a" + character * ((2048 - 1) // width)


async def test_K23_the_name_of_the_tool_changes_nothing(spill: Path) -> None:
    limits = GuardLimits.of(Guard(), window=20_000)
    one = await run("word " * 9000, spill, "one", limits=limits)
    two = await run("word " * 9000, spill.with_name("b.txt"), "⚠️ {two}", limits=limits)
    assert one.receipt is not None
    assert two.receipt is not None
    same = text_of(two.content).replace(str(two.receipt.path), str(one.receipt.path))
    assert text_of(one.content) == same
    assert one.receipt.stages == ("share",)


async def test_L6_exactly_at_the_threshold_passes(spill: Path) -> None:
    assert (await run("x" * 50_000, spill)).receipt is None
    assert (await run("x" * 50_001, spill)).receipt is not None


async def test_L7_L8_full_copy_and_literal_text(spill: Path) -> None:
    text = "line of text\n" * 5000
    guarded = await run(text, spill)
    assert spill.read_bytes() == text.encode()
    assert stat.S_IMODE(spill.stat().st_mode) == 0o600
    preview = text[:2048]
    assert text_of(guarded.content) == (
        f"Output too large (63.5 KB). Full output saved to: {spill}\n\n"
        "Use read_file to view specific sections with offset and limit parameters.\n\n"
        f"Preview (first 2048 bytes):\n{preview}\n..."
    )
    receipt = guarded.receipt
    assert receipt is not None
    assert receipt.to_json() == {
        "stages": ["spill"],
        "bytes_total": 65_000,
        "bytes_shown": len(text_of(guarded.content)),
        "lines_total": 5000,
        "lines_shown": text_of(guarded.content).count("\n") + 1,
        "tokens_total": receipt.total.tokens,
        "tokens_shown": receipt.shown.tokens,
        "kept": "head",
        "path": str(spill),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "bytes_kept": 65_000,
    }


async def test_L8_ends_carry_exit_code_and_tail(spill: Path) -> None:
    output = ToolOutput.text("x\n" * 40_000 + "error: it broke\n")
    output.details["exit_code"] = 2
    guarded = await guard(output, tool="run_command", keep="ends", spill=spill, limits=LIMITS)
    text = text_of(guarded.content)
    assert "Exit code: 2. Last 1024 bytes:\n x\n" in text
    assert " error: it broke\n\nPreview (first 2048 bytes):\n" in text


async def test_L11_what_follows_the_preview_line_is_bounded(spill: Path) -> None:
    text = text_of((await run("漢" * 60_000, spill)).content)
    after = text.split("Preview (first 2048 bytes):\n", 1)[1]
    assert len(after.encode()) <= 2048 + 10


async def test_L12_a_failed_write_still_shows_the_preview(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.mkdir()
    (tmp_path / ".holdfast").symlink_to(target)
    text = text_of((await run("x" * 60_000, tmp_path / ".holdfast/tool-results/a.txt")).content)
    assert text.startswith("Output too large (58.6 KB). Failed to save full output: ")
    assert "Preview (first 2048 bytes):\nxxx" in text
    assert not list(target.iterdir())


async def test_L16_thresholds_by_tool(spill: Path) -> None:
    assert "tc-2.txt" in text_of((await run("x" * 25_000, spill, "grep_search")).content)
    assert (await run("x" * 40_000, spill, "run_command", "ends")).receipt is None
    assert (await run("x" * 60_000, spill, "unknown_tool")).receipt is not None


async def test_L18_two_results_never_share_a_file(spill: Path) -> None:
    first = (await run("a" * 60_000, spill)).receipt
    second = (await run("b" * 60_000, spill)).receipt
    assert first is not None
    assert second is not None
    assert first.path != second.path
    assert first.path is not None
    assert first.path.read_text() == "a" * 60_000


async def test_O1_many_lines_are_clamped_and_the_whole_is_kept(spill: Path) -> None:
    guarded = await run("x\n" * 10_000, spill)
    assert guarded.receipt is not None
    assert guarded.receipt.stages == ("clamp",)
    assert guarded.receipt.path is not None
    assert guarded.receipt.path.read_text() == "x\n" * 10_000


async def test_O11_other_blocks_stay_where_they_are(spill: Path) -> None:
    first: Block = {"type": "image", "source": {"data": "x" * 200_000}}
    second: Block = {"type": "resource", "data": "y" * 90_000}
    blocks: list[Block] = [
        first,
        {"type": "text", "text": "x\n" * 3000, "cache_control": {"type": "ephemeral"}},
        second,
        {"type": "text", "text": "y", "citations": [1]},
    ]
    output = ToolOutput(blocks, details={"exit_code": 1})
    guarded = await guard(output, tool="x", keep="head", spill=spill, limits=LIMITS)
    assert guarded.content[0] is first
    assert guarded.content[2] is second
    cut, later = guarded.content[1], guarded.content[3]
    assert cut["text"].endswith(SUFFIX)
    assert cut["cache_control"] == {"type": "ephemeral"}
    named = f"{PLACEHOLDER}\n[Full output saved to: {spill}]"
    assert later == {"type": "text", "text": named, "citations": [1]}
    assert output.details == {"exit_code": 1}


@pytest.mark.parametrize("keep", ["head", "ends"])
@pytest.mark.parametrize("text", ["x" * 3000 + "\n", "word " * 9000])
async def test_41_every_cut_says_where_all_of_it_is(spill: Path, text: str, keep: Keep) -> None:
    limits = GuardLimits.of(Guard(default_bytes=10**7), window=20_000)
    text = text * (30 if text.startswith("x") else 1)
    guarded = await run(text, spill, keep=keep, limits=limits)
    said = text_of(guarded.content)
    assert said.endswith(f"\n[Full output saved to: {spill}]")
    assert spill.read_text() == text
    assert guarded.receipt is not None
    assert "spill" not in guarded.receipt.stages
    assert byte_length(said) <= 51_200
    assert tokenizer.count(said) <= limits.share_tokens


async def test_41_every_cut_says_where_nothing_was_kept(spill: Path) -> None:
    spill.parent.parent.write_text("a file")
    limits = GuardLimits.of(Guard(default_bytes=10**7), window=200_000)
    guarded = await run("line\n" * 3000, spill, limits=limits)
    assert "]\n[Failed to save full output: " in text_of(guarded.content)
    assert guarded.receipt is not None
    assert guarded.receipt.path is None


async def test_47_of_what_was_spilled_the_share_keeps_the_command_s_last_bytes(
    spill: Path,
) -> None:
    text = "".join(f"{number} {'é漢' * 20}\n" for number in range(2000)) + "the last line"
    limits = GuardLimits.of(Guard(preview_bytes=20_000), window=8_000)
    guarded = await run(text, spill, "run_command", keep="ends", limits=limits)
    assert guarded.receipt is not None
    assert guarded.receipt.stages == ("spill", "share")
    said = text_of(guarded.content)
    assert f"Full output saved to: {spill}" in said
    assert "the last line\n\nPreview (first" in said


async def test_K_share_binds_in_a_small_window(spill: Path) -> None:
    limits = GuardLimits.of(Guard(), window=10_000)
    guarded = await run("word " * 9000, spill, limits=limits)
    assert guarded.receipt is not None
    assert guarded.receipt.stages == ("share",)
    assert "⚠️ [Output truncated: " in text_of(guarded.content)
    assert "exceeds limit of 3000. Showing first 2400 tokens." in text_of(guarded.content)
    assert guarded.receipt.shown.tokens <= 3000


@pytest.mark.parametrize("tool", ["run_command", "read_file"])
async def test_a_cut_by_bytes_and_lines_loads_no_tokenizer(
    tool: str, spill: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenizer, "default", tokenizer.Tokenizer())
    guarded = await run("12345678\n" * 7000, spill, tool, keep="ends")
    assert guarded.receipt is not None
    assert guarded.receipt.stages == (("clamp",) if tool == "read_file" else ("spill",))
    assert 0 < guarded.receipt.shown.tokens < guarded.receipt.total.tokens
    assert not tokenizer.default.ready


async def test_several_blocks_stand_in_one_file(spill: Path) -> None:
    output = ToolOutput(
        [{"type": "text", "text": "a" * 40_000}, {"type": "text", "text": "b" * 40_000}]
    )
    guarded = await guard(output, tool="x", keep="head", spill=spill, limits=LIMITS)
    assert spill.read_text() == f"--- block 1 ---\n{'a' * 40_000}\n--- block 2 ---\n{'b' * 40_000}"
    assert len(guarded.content) == 1


async def test_a_copy_that_the_tool_wrote_is_used(spill: Path) -> None:
    spill.parent.mkdir(parents=True)
    spill.write_text("x\n" * 1_000_000)
    output = ToolOutput([{"type": "text", "text": "x\n" * 50_000}], full=spill)
    guarded = await guard(output, tool="run_command", keep="ends", spill=spill, limits=LIMITS)
    assert guarded.receipt is not None
    assert guarded.receipt.total.bytes == 2_000_000
    assert guarded.receipt.total.lines == 1_000_000

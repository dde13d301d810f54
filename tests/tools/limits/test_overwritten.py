"""Progress that was overwritten: left out, said so, and kept whole."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.tools.test_run_command import Bench
from tui.core.config import Guard
from tui.core.messages import RawOutput, ToolOutput, text_block, text_of
from tui.core.text_cleaning import current_lines
from tui.tokens import estimate
from tui.tools.command_status import CommandStatus
from tui.tools.jobs import Jobs
from tui.tools.limits.clamp import byte_length, line_count
from tui.tools.limits.pipeline import GuardedOutput, GuardLimits, guard
from tui.tools.run_command import RunCommand

BAR = b"".join(b"%4d of 3000\r" % n for n in range(3000))
COMMAND = r'for n in $(seq 0 2999); do printf "%4d of 3000\r" $n; done; printf "\ndone\n"'


async def cut(output: ToolOutput, spill: Path, limits: GuardLimits | None = None) -> GuardedOutput:
    within = limits or GuardLimits(Guard(default_bytes=50_000))
    return await guard(output, tool="run_command", keep="ends", spill=spill, limits=within)


def assert_adds_up(guarded: GuardedOutput, raw: bytes) -> None:
    receipt, text = guarded.receipt, text_of(guarded.content)
    assert receipt is not None
    assert receipt.path is not None
    assert receipt.path.read_bytes() == raw
    assert receipt.sha256 == hashlib.sha256(raw).hexdigest()
    assert receipt.bytes_kept == receipt.total.bytes == len(raw)
    assert receipt.total.tokens == estimate.tokens(raw.decode())
    assert (receipt.shown.bytes, receipt.shown.lines) == (byte_length(text), line_count(text))
    assert receipt.shown.tokens == estimate.tokens(text)


async def test_25_a_progress_bar_is_its_last_state_and_kept_whole(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    guarded = await cut(await bench.run(COMMAND), tmp_path / "copy.txt")
    assert text_of(guarded.content) == (
        "2999 of 3000\ndone\n[exit code 0 · 0.0 s]\n"
        "[35.1 KB that were written over are not shown. "
        f"Full output saved to: {tmp_path / 'copy.txt'}]"
    )
    assert_adds_up(guarded, BAR + b"\ndone\n")
    receipt = guarded.receipt
    assert receipt is not None
    assert receipt.to_json()["stages"] == []
    assert receipt.to_json()["overwritten"] == 2999 * 12


async def test_25_of_a_background_command_too(tmp_path: Path) -> None:
    bench, jobs = Bench(tmp_path), Jobs()
    run, look = RunCommand(), CommandStatus()
    await run.run(
        run.parse({"command": COMMAND, "background": True}), bench.context("a", jobs=jobs)
    )
    params = look.parse({"job": "job-1", "action": "wait"})
    output = await look.run(params, bench.context("b", jobs=jobs))
    guarded = await cut(output, tmp_path / "copy.txt")
    assert text_of(guarded.content).startswith("2999 of 3000\ndone\n[job-1 · exit code 0 · ")
    assert_adds_up(guarded, BAR + b"\ndone\n")
    await jobs.close()


async def test_L6_the_raw_output_is_measured(tmp_path: Path) -> None:
    """A bar of more than 50,000 bytes is spilled as any output of that size."""
    bench = Bench(tmp_path)
    output = await bench.run(COMMAND.replace("2999", "5999"))
    guarded = await cut(output, tmp_path / "copy.txt")
    text = text_of(guarded.content)
    assert text.startswith("Output too large (76.2 KB). Full output saved to: ")
    assert text.endswith(
        "Preview (first 2048 bytes):\n5999 of 3000\ndone\n[exit code 0 · 0.0 s]\n..."
    )
    assert "overwritten" not in text
    receipt = guarded.receipt
    assert receipt is not None
    assert (receipt.stages, receipt.overwritten) == (("spill",), 5999 * 12)


@pytest.mark.parametrize("size", [1, 51_100, 51_200])
async def test_O6_the_remark_counts_for_the_clamp(tmp_path: Path, size: int) -> None:
    raw = RawOutput(60_000, 1, data=b"x" * 60_000, overwritten=9000)
    output = ToolOutput([text_block("x" * size)], raw=raw)
    limits = GuardLimits(Guard(bytes={"run_command": 10**6}))
    guarded = await cut(output, tmp_path / "copy.txt", limits)
    text = text_of(guarded.content)
    assert byte_length(text) <= 51_200
    assert text.endswith(f"Full output saved to: {tmp_path / 'copy.txt'}]")
    receipt = guarded.receipt
    assert receipt is not None
    assert receipt.stages == (() if size == 1 else ("clamp",))


async def test_L12_a_copy_that_could_not_be_made_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    bench = Bench(tmp_path)
    guarded = await cut(await bench.run(COMMAND), tmp_path / "file" / "copy.txt")
    text = text_of(guarded.content)
    assert "that were written over are not shown. Failed to save full output: " in text
    assert guarded.receipt is not None
    assert guarded.receipt.path is None


async def test_a_few_states_count_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    output = await bench.run(r"printf '1%%\r50%%\r100%%\r\ndone\n'")
    guarded = await cut(output, tmp_path / "copy.txt")
    assert text_of(guarded.content) == (
        "100%\ndone\n[exit code 0 · 0.0 s]\n[5 bytes that were written over are not shown. "
        f"Full output saved to: {tmp_path / 'copy.txt'}]"
    )
    assert_adds_up(guarded, b"1%\r50%\r100%\r\ndone\n")


async def test_a_picture_that_is_drawn_again_is_its_last_frame(tmp_path: Path) -> None:
    """As npm, docker and cargo draw several lines at once."""
    bench = Bench(tmp_path)
    frame = r"\033[2K one: $n\n\033[2K two: $n\n"
    output = await bench.run(
        f'printf "start\n\n\n"; for n in 1 2 3 4; do printf "\033[2A{frame}"; done; echo end'
    )
    assert text_of(output.content) == "start\n one: 4\n two: 4\nend\n[exit code 0 · 0.0 s]"


async def test_the_person_sees_the_line_change_while_it_runs(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await bench.run(COMMAND.replace("2999", "999"))
    emitted = "".join(bench.host.emitted)
    assert current_lines(emitted) == " 999 of 3000\ndone\n"
    assert set(emitted.split("\n")[0].split("\r")) <= set(BAR.decode().split("\r"))

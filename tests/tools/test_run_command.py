"""run_command on real processes: what comes back, what is kept, and that nothing outlives it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.call_host import FakeHost
from tests.support.clock import FakeClock
from tests.support.processes import gone
from tui.core.clock import SystemClock
from tui.core.config import Guard
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_of
from tui.core.text_cleaning import COLOURS, current_lines
from tui.core.workspace import Workspace
from tui.keeper.command import CommandEnd
from tui.tools.base import ToolContext
from tui.tools.file_ledger import FileLedger
from tui.tools.jobs import Jobs
from tui.tools.output_capture import Capture, Cleaner
from tui.tools.process import start_command
from tui.tools.run_command import RunCommand, follow
from tui.tools.terminal_text import MOVES


class Bench:
    """A workspace, and what a call is handed there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = FakeClock()
        self.host = FakeHost()

    def context(self, call_id: str = "toolu_1", **changes: Any) -> ToolContext:
        workspace = Workspace.at(self.root, ceiling=self.root)
        given: dict[str, Any] = {
            "call_id": call_id,
            "workspace": workspace,
            "clock": self.clock,
            "files": FileLedger(),
            "jobs": Jobs(self.clock),
            "spill_path": workspace.tool_results / f"{call_id}.txt",
            "kept": self.root.parent / f"{self.root.name}.kept" / call_id,
            "host": self.host,
        }
        return ToolContext(**{**given, **changes})

    async def run(self, command: str, **arguments: Any) -> ToolOutput:
        tool = RunCommand()
        return await tool.run(tool.parse({"command": command, **arguments}), self.context())


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_output_and_exit_code_come_back_in_order(bench: Bench) -> None:
    output = await bench.run("echo out; echo err >&2; echo more; exit 3")
    assert text_of(output.content) == "out\nerr\nmore\n[exit code 3 · 0.0 s]"
    assert output.is_error
    assert output.summary == "exit 3"
    assert output.details["exit_code"] == 3
    assert output.details["bytes"] == 13
    assert output.full is None
    assert "".join(bench.host.emitted) == "out\nerr\nmore\n"


async def test_success_is_no_error_and_silence_is_named(bench: Bench) -> None:
    output = await bench.run("true")
    assert not output.is_error
    assert text_of(output.content) == "(no output)\n[exit code 0 · 0.0 s]"


async def test_a_signal_is_named(bench: Bench) -> None:
    output = await bench.run("kill -TERM $$")
    assert output.details["exit_code"] == 143
    assert "[killed by SIGTERM" in text_of(output.content)


async def test_nothing_waits_for_a_person(bench: Bench) -> None:
    output = await bench.run('read line || echo "eof"; echo "$PAGER $GIT_PAGER $TERM"; tty')
    assert text_of(output.content).startswith("eof\ncat cat dumb\nnot a tty\n")


async def test_the_programs_secrets_are_not_in_the_environment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("HOLDFAST_HOME", "/elsewhere")
    monkeypatch.setenv("OTHER", "stays")
    output = await bench.run("echo [$ANTHROPIC_API_KEY$HOLDFAST_HOME] $OTHER")
    assert text_of(output.content).startswith("[] stays\n")


async def test_cwd_is_inside_the_workspace(bench: Bench) -> None:
    (bench.root / "sub").mkdir()
    output = await bench.run("basename $PWD", cwd="sub")
    assert text_of(output.content).startswith("sub\n")
    with pytest.raises(ToolError, match="outside the workspace"):
        await bench.run("pwd", cwd="..")
    with pytest.raises(ToolError, match="isn't a folder"):
        await bench.run("pwd", cwd="missing")


@pytest.mark.parametrize(
    "arguments",
    [{"command": ""}, {"command": "x", "timeout": 0}, {"command": "x", "timeout": 3601}, {}],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ToolError, match="Wrong arguments for run_command"):
        RunCommand().parse(arguments)


async def test_commands_that_cannot_start_are_explained(bench: Bench) -> None:
    with pytest.raises(ToolError, match="NUL"):
        await bench.run("echo \0")
    with pytest.raises(ToolError, match="Couldn't start"):
        await bench.run("echo \ud800")
    with pytest.raises(ToolError, match="too long"):
        await bench.run("echo " + "x" * 3_000_000)


async def test_wild_bytes_are_harmless(bench: Bench) -> None:
    output = await bench.run(r"printf 'a\0b\xff\033[31mred\033[0m\r\nnext\rlast\007'")
    assert text_of(output.content) == "a�b�red\nlast\n[exit code 0 · 0.0 s]"


async def test_O21_memory_is_bounded_and_every_byte_is_kept(bench: Bench) -> None:
    script = "i=0; while [ $i -lt 40000 ]; do echo line-$i; i=$((i+1)); done"
    output = await bench.run(script)
    expected = "".join(f"line-{i}\n" for i in range(40_000))
    assert output.full is not None
    assert output.full.read_text() == expected
    assert output.full.stat().st_mode & 0o777 == 0o600
    text = text_of(output.content)
    assert len(text) < 201_000
    assert text.startswith("line-0\n")
    assert "line-39999\n[exit code 0" in text
    assert str(output.full) in text
    assert output.details["truncated"] is True
    assert output.details["bytes"] == len(expected)


async def test_what_is_small_is_in_no_file_and_its_bytes_are_at_hand(bench: Bench) -> None:
    output = await bench.run(r"printf '\033[31mred\033[0m\n'")
    assert output.full is None
    assert output.raw is not None
    assert output.raw.data == b"\x1b[31mred\x1b[0m\n"
    assert (output.raw.bytes, output.raw.lines, output.raw.partial) == (13, 1, False)
    assert not (bench.root / ".holdfast").exists()


async def test_timeout_ends_the_group_and_says_what_to_do(bench: Bench) -> None:
    bench.host.on_output = lambda: setattr(bench.clock, "elapsed", 121.0)
    output = await bench.run("sleep 1000 & echo $!; wait")
    pid = int(text_of(output.content).split()[0])
    assert gone(pid)
    assert output.is_error
    assert output.details["timed_out"] is True
    assert "background=true" in text_of(output.content)
    assert "timed out after 120 s" in text_of(output.content)


async def test_a_command_that_ignores_sigterm_is_killed(bench: Bench) -> None:
    bench.host.on_output = lambda: setattr(bench.clock, "elapsed", 500.0)
    output = await bench.run("trap '' TERM; echo $$; while :; do sleep 0.01; done")
    assert gone(int(text_of(output.content).split()[0]))
    assert output.details["exit_code"] == 137


async def test_cancelling_leaves_no_process_and_loses_no_output(bench: Bench) -> None:
    heard = asyncio.Event()
    bench.host.on_output = heard.set
    task = asyncio.create_task(bench.run("sleep 1000 & echo $$ $!; sleep 1000"))
    await heard.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pids = [int(word) for word in "".join(bench.host.emitted).split()]
    assert len(pids) == 2
    assert all(map(gone, pids))


async def test_cancelling_twice_still_kills(bench: Bench) -> None:
    heard = asyncio.Event()
    bench.host.on_output = heard.set
    bench_clock = SystemClock()
    tool = RunCommand()
    params = tool.parse({"command": "trap '' TERM; echo $$; while :; do sleep 0.01; done"})
    task = asyncio.create_task(tool.run(params, bench.context(clock=bench_clock)))
    await heard.wait()
    task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    pid = int("".join(bench.host.emitted).split()[0])
    assert gone(pid)


async def test_a_descendant_that_holds_the_pipe_does_not_hang_the_tool(bench: Bench) -> None:
    output = await bench.run("sleep 1000 & echo $!")
    text = text_of(output.content)
    assert gone(int(text.split()[0]))
    assert "left running" in text
    assert output.details["exit_code"] == 0


async def test_of_a_flood_only_the_two_ends_are_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed: list[int] = []
    feed = Capture.feed

    def counted(capture: Capture, data: bytes) -> str:
        fed.append(len(data))
        return feed(capture, data)

    monkeypatch.setattr(Capture, "feed", counted)
    ctx = bench.context()
    command = await start_command(
        "seq 1500000", cwd=bench.root, folder=ctx.kept, call={}, limits=ctx.guard, env=None,
        starter=ctx.jobs.starter, timeout=0.0, elsewhere=True,
    )  # fmt: skip
    await command.wait()
    output = await follow(command, ctx, 120, asyncio.Event())
    assert output.raw is not None
    assert (output.raw.bytes, output.raw.lines) == (10_888_896, 1_500_000)
    assert sum(fed) < 3 * 1024**2
    head, marker, *tail = text_of(output.content).split("\n\n")
    numbers = [*map(int, head.split())]
    assert len(numbers) > 10_000
    assert numbers[:-1] == [*range(1, len(numbers))]
    assert "the middle of 10888896 bytes" in marker
    last = "\n\n".join(tail).splitlines()
    assert len(last) > 10_000
    assert last[1:-1] == [str(n) for n in range(1_500_003 - len(last), 1_500_001)]
    assert output.full is not None
    assert output.full.stat().st_size == 10_888_896


async def test_a_flood_is_streamed_in_few_bounded_pieces(bench: Bench) -> None:
    output = await bench.run("head -c 20000000 /dev/zero | tr '\\0' y")
    assert output.details["bytes"] == 20_000_000
    assert output.full is not None
    assert output.full.stat().st_size == 20_000_000
    assert max(map(len, bench.host.emitted)) < 70_000
    assert sum(map(len, bench.host.emitted)) < 5_000_000


async def test_background_returns_at_once_with_a_job(bench: Bench) -> None:
    ctx = bench.context()
    tool = RunCommand()
    output = await tool.run(tool.parse({"command": "sleep 1000", "background": True}), ctx)
    assert output.details["job"] == "job-1"
    assert [job.id for job in ctx.jobs.list() if not job.ended] == ["job-1"]
    await ctx.jobs.close()
    assert gone(output.details["pid"])


def test_the_preview_is_the_command_with_its_folder(bench: Bench) -> None:
    (bench.root / "sub").mkdir()
    tool = RunCommand()
    params = tool.parse({"command": "ls\npwd", "cwd": "sub"})
    assert asyncio.run(tool.preview(params, bench.context())).text == "# in sub\nls\npwd"
    assert tool.label(params) == "ls …"
    assert tool.subject(params) == "ls\npwd"
    assert tool.paths(params) == ("sub",)


async def test_sh_is_used_where_there_is_no_bash(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sh(_path: str | None) -> tuple[str, ...]:
        return "/bin/sh", "-c"

    monkeypatch.setattr("tui.tools.process.shell", sh)
    output = await bench.run("echo $0")
    assert text_of(output.content).startswith("/bin/sh\n")


@given(st.lists(st.binary(max_size=40), max_size=20))
def test_cleaned_text_does_not_depend_on_how_the_bytes_are_cut(pieces: list[bytes]) -> None:
    whole, parts = Cleaner(), Cleaner()
    at_once = whole.feed(b"".join(pieces), final=True)
    in_parts = "".join(map(parts.feed, pieces)) + parts.feed(b"", final=True)
    assert in_parts == at_once
    assert not any(c < " " and c not in "\n\t\r\b\x1b" for c in at_once)
    assert not re.sub(rf"{COLOURS}|{MOVES}", "", at_once).count("\x1b")


@given(
    st.lists(
        st.sampled_from(
            ["a", "\x1b", "[", "3", "m", "]", "\x07", "\\", "\r", "\n", "P", "(", "B", "é", "\x9b"]
        ),
        max_size=30,
    )
)
def test_cleaning_in_single_characters_equals_cleaning_at_once(chars: list[str]) -> None:
    whole, parts = Cleaner(), Cleaner()
    at_once = whole.feed("".join(chars).encode(), final=True)
    bit_by_bit = "".join(parts.feed(bytes([b])) for c in chars for b in c.encode())
    assert bit_by_bit + parts.feed(b"", final=True) == at_once


@pytest.mark.parametrize(
    ("data", "shown", "text"),
    [
        (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n", "red\n"),
        (b"\x1b[2K\x1b]0;t\x07\x1b[1;38;5;9mx\x1b[m", "\x1b[1;38;5;9mx\x1b[0m", "x"),
        (b"\x1b[31", "�[31", "�[31"),
        (b"end\r\x1b[0m\n", "end\n", "end\n"),
        (b"1%\r\x1b[32m2%\n", "\x1b[32m2%\x1b[0m\n", "2%\n"),
    ],
)
def test_colours_are_for_the_person_only(
    tmp_path: Path, data: bytes, shown: str, text: str
) -> None:
    capture = Capture(Guard())
    seen = "".join(capture.feed(bytes([byte])) for byte in data) + capture.close(
        None, tmp_path, tmp_path
    )
    assert capture.text == text
    assert current_lines(seen) == shown


@pytest.mark.parametrize("cut", [b"\x1b]0;a title", b"\x1b[31", b"\xc3", b"\r", b"a line"])
def test_nothing_goes_on_behind_what_was_passed_over(tmp_path: Path, cut: bytes) -> None:
    capture = Capture(Guard())
    capture.feed(b"begins\n" + cut)
    capture.skip(10_000)
    capture.feed(b"\xa9 goes on\nFAILED\n")
    end = CommandEnd(0, bytes=capture.bytes, lines=500, written=20, stopped="no room")
    capture.close(end, tmp_path, None)
    head, tail = capture.text.split("\n\n[…")
    assert head.startswith("begins\n")
    assert tail.partition("…]")[2] == "\n\n\N{REPLACEMENT CHARACTER} goes on\nFAILED\n"
    assert capture.raw.lines == 500


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["C"]), max_size=300)))
def test_O21_what_is_held_is_the_text_or_its_two_ends(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[str]
) -> None:
    tmp_path = tmp_path_factory.mktemp("spill")
    capture = Capture(Guard(memory_chars=100))
    for piece in pieces:
        capture.feed(piece.encode())
    capture.close(None, tmp_path, tmp_path)
    whole = "".join(pieces)
    if len(whole) <= 100:
        assert capture.text == whole
        assert not capture.truncated
    else:
        assert capture.truncated
        assert capture.text.startswith(whole[:50])
        assert capture.text.endswith(whole[-50:])

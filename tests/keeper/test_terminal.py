"""A command with a terminal of its own: real processes on real terminals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.fake_terminal import screen_of
from tui.core.clock import SystemClock
from tui.keeper import folder as names
from tui.keeper.command import PlainStarter, SupervisedCommand, TerminalSize, note
from tui.tools.terminal_link import TerminalLink


@dataclass
class Desk:
    """Starts commands in a folder."""

    root: Path
    starter: PlainStarter = field(default_factory=PlainStarter)
    commands: list[SupervisedCommand] = field(default_factory=list[SupervisedCommand])
    links: list[TerminalLink] = field(default_factory=list[TerminalLink])

    async def start(self, line: str, *, limit: int = 10_000_000) -> TerminalLink:
        folder = self.root / f"kept-{len(self.commands)}"
        command = await SupervisedCommand.start(
            ("/bin/bash", "--norc", "-c", line), cwd=self.root, env=os.environ | {"TERM": "xterm"},
            folder=folder, starter=self.starter, call={"call_id": "c"}, limit=limit, min_free=0,
            terminal=TerminalSize(6, 40),
        )  # fmt: skip
        self.commands.append(command)
        self.links.append(TerminalLink(folder, (6, 40)))
        return self.links[-1]

    async def shown(self, link: TerminalLink, seen: Callable[[TerminalLink], object]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not seen(link):
                await link.refresh()
                await asyncio.sleep(0.01)

    async def over(self, link: TerminalLink) -> list[list[object]]:
        """Wait for the end; return the events of the recording."""
        command = self.commands[self.links.index(link)]
        assert await command.wait(PATIENCE_S)
        await link.finish()
        _, *events = map(json.loads, command.output.read_text().splitlines())
        return events


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path)
    yield made
    for command, link in zip(made.commands, made.links, strict=True):
        link.close()
        if command.end is None:
            await command.stop(SystemClock())
        command.close()
    made.starter.close()


async def test_it_is_a_terminal_with_its_size_and_its_signals(desk: Desk) -> None:
    waits = "trap 'stty size' WINCH; while :; do sleep 0.02; done"
    link = await desk.start(f"tty >/dev/null && stty size </dev/tty; {waits}")
    await desk.shown(link, lambda one: "6 40" in one.screen.text)
    await link.resize(10, 50)
    await desk.shown(link, lambda one: "10 50" in one.screen.text)
    assert (link.screen.rows, link.screen.cols) == (10, 50)
    assert await link.type(b"\x03", "model") == ""
    events = await desk.over(link)
    assert ["r", "50x10"] in [event[1:] for event in events]


async def test_what_was_judged_for_one_program_reaches_no_other(desk: Desk) -> None:
    link = await desk.start("echo one; cat; echo two; exec cat -u")
    await desk.shown(link, lambda one: "one" in one.screen.text)
    for call in ("a", "b"):
        assert ["cat", "cat", ""] in await link.judged(call)
    assert await link.type(b"same\r", "model", call_id="a") == ""
    await link.type(b"\x04", "person")
    await desk.shown(link, lambda one: "two" in one.screen.text and one.program == "cat")
    await link.judged("b")  # judged again, as after a change of its input: it is still the old one
    assert await link.type(b"other\r", "model", call_id="b") == "changed"
    await link.judged("c")
    assert await link.type(b"new\r", "model", call_id="c") == ""
    await desk.shown(link, lambda one: one.screen.text.count("new") == 2)
    assert "other" not in link.screen.text


async def test_a_secret_is_refused_where_it_is_written(desk: Desk) -> None:
    link = await desk.start("read -s x; echo ${#x} characters")
    await desk.shown(link, lambda one: one.screen.secret)
    assert await link.type(b"echo ", "model") == "secret"
    assert link.line_with("git push\r") == "git push"
    assert await link.type(bytearray(b"four\r"), "secret") == ""
    events = await desk.over(link)
    assert link.screen.text.strip() == "4 characters"
    assert not [event for event in events if event[1] == "i"]
    assert await link.type(b"late", "secret") == "ended"


READS = """
import os, termios
settings = termios.tcgetattr(0)
settings[3] &= ~(termios.ICANON | termios.ECHO)
termios.tcsetattr(0, termios.TCSANOW, settings)
print("ready", flush=True)
got = b""
while len(got) < 30_000:
    got += os.read(0, 4096)
print("all", len(got), flush=True)
os.read(0, 1)
"""


async def test_input_that_waits_for_room_goes_to_the_programs_it_was_judged_for(
    desk: Desk,
) -> None:
    (desk.root / "reads.py").write_text(READS)
    link = await desk.start(f"{sys.executable} reads.py")
    await desk.shown(link, lambda one: "ready" in one.screen.text)
    await link.judged("a")
    assert await link.type(b"x" * 30_000, "model", call_id="a") == ""
    await desk.shown(link, lambda one: "all 30000" in one.screen.text)
    assert link.dropped == 0


async def test_input_that_waits_for_room_reaches_no_program_that_comes_later(desk: Desk) -> None:
    """Which nobody was asked about."""
    link = await desk.start("echo ready; while [ ! -e go ]; do :; done; exec cat >into")
    await desk.shown(link, lambda one: "ready" in one.screen.text)
    await link.judged("a")
    lines = b"".join(b"%05d%s\r" % (n, b"y" * 58) for n in range(600))
    assert await link.type(lines, "model", call_id="a") == ""
    (desk.root / "go").touch()
    await desk.shown(link, lambda one: one.program == "cat")
    await link.judged("b")
    assert await link.type(b"new\r", "model", call_id="b") == "changed"
    await desk.shown(link, lambda one: one.dropped > 20_000)
    assert link.in_line
    await link.judged("c")
    assert await link.type(b"again\r", "model", call_id="c") == ""
    await desk.shown(link, lambda one: "again" in (desk.root / "into").read_text())
    got = (desk.root / "into").read_text()
    assert len(got) < 20_000  # what the system itself had taken before
    assert "new" not in got


async def test_a_line_that_others_may_have_begun_is_known_to_be_unsure(desk: Desk) -> None:
    link = await desk.start("cat")
    assert not link.in_line
    await link.type(b"git pu", "person")
    assert link.in_line
    await link.type(b"\r", "person")
    assert not link.in_line
    again = TerminalLink(desk.root / "kept-0", (6, 40), taken_over=True)
    desk.links.append(again)
    assert again.in_line
    await again.type(b"sh\r", "model")
    assert not again.in_line
    desk.links.remove(again)
    again.close()


async def test_a_secret_that_comes_too_late_is_typed_nowhere(desk: Desk) -> None:
    link = await desk.start("cat")
    await desk.shown(link, lambda one: one.program == "cat")
    assert await link.type(bytearray(b"four\r"), "secret") == "over"
    assert link.screen.text == ""


async def test_it_ends_in_the_middle_of_a_screen(desk: Desk) -> None:
    link = await desk.start(r"printf '\033[?1049h\033[2;3Hhalf \033[1;3'; exit 7")
    await desk.over(link)
    assert desk.commands[0].end is not None
    assert desk.commands[0].end.returncode == 7
    assert (link.ended, link.screen.alternate) == (True, True)
    assert link.screen.text == "\n  half"


async def test_a_flood_waits_and_is_recorded_up_to_the_limit(desk: Desk) -> None:
    link = await desk.start("yes", limit=300_000)
    await desk.shown(link, lambda one: one.screen.gone > 200_000)
    assert await link.type(b"\x03", "model") == ""
    *events, note_, last = await desk.over(link)
    end = desk.commands[0].end
    assert end is not None
    assert (end.stopped, end.written < 300_000, end.bytes > end.written) == ("limit", True, True)
    assert note_[1] == "m"
    assert str(note_[2]).endswith("characters are left out here: the recording is full")
    assert str(last[2]).startswith("\x1b[0m\x1b[2J\x1b[Hy\r\ny\r\n")
    assert events


async def test_what_it_started_in_its_terminal_ends_with_it(desk: Desk) -> None:
    link = await desk.start("set -m; sleep 100 & echo $!; exit")
    await desk.over(link)
    pid = int(link.screen.text.split()[0])
    async with asyncio.timeout(PATIENCE_S):
        while _runs(pid):  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_killed_keeper_loses_the_terminal_and_nothing_hangs(desk: Desk) -> None:
    link = await desk.start("cat")
    await desk.shown(link, lambda one: one.program == "cat")
    os.kill(note(desk.commands[0].folder, "state")["keeper"], signal.SIGKILL)
    assert await desk.commands[0].wait(PATIENCE_S)
    assert desk.commands[0].end is not None
    assert desk.commands[0].end.lost
    assert await link.type(b"x", "model") == "ended"


CLIENT = """
import socket, sys
from tui.keeper.mark import mark
if sys.argv[2] == "marked":
    mark()
with socket.socket(socket.AF_UNIX) as link:
    link.connect(sys.argv[1])
    link.sendall(b'{"do": "type", "by": "person", "id": 1, "bytes": 5}\\nevil\\r')
    print(link.recv(100))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is marked elsewhere")
async def test_what_an_agent_started_types_into_no_terminal(desk: Desk) -> None:
    link = await desk.start("cat")
    await desk.shown(link, lambda one: one.program == "cat")
    path = desk.commands[0].folder / "terminal"
    assert path.stat().st_mode & 0o777 == 0o600

    def answer(mark: str) -> str:
        words = [sys.executable, "-c", CLIENT, str(path), mark]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()

    assert await asyncio.to_thread(answer, "marked") in {"b''", ""}
    await link.refresh()
    assert link.screen.text == ""
    assert '"refused": ""' in await asyncio.to_thread(answer, "")
    await desk.shown(link, lambda one: "evil" in one.screen.text)


@pytest.mark.parametrize("sent", [b"no json\n", b"[]\n", b'{"bytes": -1}\n', b'{"do": 1}\n' * 2])
async def test_what_is_no_message_closes_only_its_connection(desk: Desk, sent: bytes) -> None:
    link = await desk.start("cat")
    await desk.shown(link, lambda one: one.program == "cat")
    _, writer = await asyncio.open_unix_connection(desk.commands[0].folder / "terminal")
    writer.write(sent)
    await writer.drain()
    writer.close()
    assert await link.type(b"fine\r", "model") == ""
    await desk.shown(link, lambda one: "fine" in one.screen.text)


@pytest.mark.parametrize("last", ["", "{}", '{"rows": 6, "cols": 40, "lines": 3}'])
async def test_without_a_final_screen_the_last_that_was_seen_stays(
    tmp_path: Path, last: str
) -> None:
    (tmp_path / names.SCREEN).write_text(last)
    link = TerminalLink(tmp_path)
    link.screen = seen = screen_of("done")
    await link.finish()
    assert link.ended
    assert link.screen == seen

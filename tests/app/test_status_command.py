"""The person's own status command: when it runs, what it gets, and what cannot harm the screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic

import pytest

from tests.support.clock import PATIENCE_S, ManualClock
from tests.support.processes import ended
from tui.app import status_command
from tui.app.reports import Level
from tui.app.status_command import StatusCommand, StatusFigures, output_of
from tui.core.config import Status

FIGURES = StatusFigures(
    model="m", session_id="s", title="A title", cwd="/w", branch="main",
    tokens=1000, window=200_000, cost_usd=None, mode="ask", turns=1,
)  # fmt: skip


async def until(done: Callable[[], object]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not done():
        assert monotonic() < deadline
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("command", "text", "problem"),
    [
        ("echo one; echo two", "one", ""),
        (r"printf '\033[31mred\033[0m\007\tx\n'", "red x", ""),
        ("cat", '{"a": 1}', ""),
        ("echo \0", "", "can't run: embedded null byte"),
        ("true", "", ""),
        ("echo no; exit 3", "", "failed (exit code 3)"),
        ("not-a-program", "", "failed (exit code 127)"),
        ("head -c 300000 /dev/zero | tr '\\0' x", "x" * 200, ""),
        (r"printf '\377\376\n'", "\ufffd\ufffd", ""),
    ],
)
async def test_the_first_line_is_cleaned_and_clipped(
    tmp_path: Path, command: str, text: str, problem: str
) -> None:
    assert await output_of(command, '{"a": 1}', tmp_path) == (text, problem)


async def test_one_that_hangs_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_command, "LIMIT_S", 0.2)
    text, problem = await output_of("sleep 100 & echo $! > child; wait", "{}", tmp_path)
    assert (text, problem) == ("", "took longer than 0.2 s and was stopped")
    child = int((tmp_path / "child").read_text())
    await until(lambda: ended(child))


async def test_a_folder_that_has_gone_is_no_accident(tmp_path: Path) -> None:
    text, problem = await output_of("true", "{}", tmp_path / "gone")
    assert (text, problem) == ("", "can't run: No such file or directory")


class Foot:
    """What a status is shown at: `now` are its figures."""

    def __init__(self) -> None:
        self.now, self.texts, self.problems = FIGURES, list[str](), list[str]()

    def status_figures(self) -> StatusFigures:
        return self.now

    def show_status(self, text: str) -> None:
        self.texts.append(text)

    def say(self, text: str, level: Level) -> None:
        assert level == "warning"
        self.problems.append(text)


async def test_it_runs_for_what_is_new_and_no_more_often_than_its_interval(tmp_path: Path) -> None:
    clock, foot = ManualClock(), Foot()
    status = StatusCommand(
        settings=Status(command="tee -a log", interval_s=5), cwd=tmp_path, clock=clock,
        holder=foot,
    )  # fmt: skip

    def runs() -> int:
        return (tmp_path / "log").read_text().count("{")

    watching = asyncio.create_task(status.watch())
    status.poke()
    await until(lambda: clock.slept == [0.2])
    clock.advance(0.2)
    await until(lambda: len(foot.texts) == 1)
    assert json.loads(foot.texts[0])["title"] == "A title"
    foot.now = replace(FIGURES, turns=2)
    status.poke()
    for _ in range(20):
        await asyncio.sleep(0)
    assert runs() == 1
    clock.advance(5)
    await until(lambda: clock.slept == [0.2, 5, 0.2])
    clock.advance(0.2)
    await until(lambda: len(foot.texts) == 2)
    status.poke()
    clock.advance(5)
    await until(lambda: clock.slept == [0.2, 5, 0.2, 5, 0.2])
    clock.advance(0.2)
    for _ in range(20):
        await asyncio.sleep(0)
    assert runs() == 2
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def test_a_failure_is_said_once_until_it_works_again(tmp_path: Path) -> None:
    clock, foot = ManualClock(), Foot()
    status = StatusCommand(
        settings=Status(command="test -e works && echo fine"), cwd=tmp_path, clock=clock,
        holder=foot,
    )  # fmt: skip
    watching = asyncio.create_task(status.watch())
    for works in (False, False, True, False):
        (tmp_path / "works").unlink(missing_ok=True)
        if works:
            (tmp_path / "works").touch()
        seen = len(foot.texts)
        status.poke()
        await until(lambda seen=seen: clock.advance(1) or len(foot.texts) > seen)
        foot.now = replace(foot.now, turns=foot.now.turns + 1)
    assert foot.texts == ["", "", "fine", ""]
    assert foot.problems == ["Your status command failed (exit code 1)."] * 2
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching

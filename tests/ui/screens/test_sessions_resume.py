"""What an earlier run left open, and a session that another program has."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.context.sessions import Told, answer, prompt, records
from tests.context.wild import call
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.world import OldSession, World
from tests.ui.screens.driving import NARROW, WIDE, app_of, begun, running, say, until
from tui.agent.interrupted_work import interrupted_work
from tui.app import interruption
from tui.app.commands.sessions import resume
from tui.app.interruption import known, summary_of
from tui.app.services import SessionChoice
from tui.context.interrupted_calls import Interrupted
from tui.core.clock import Clock
from tui.core.errors import SessionInUseError
from tui.core.paths import folders
from tui.core.process_birth import born
from tui.session.lock import SessionLock, lock_of
from tui.session.reader import read
from tui.tools.process import end_group
from tui.ui.app import HoldfastApp
from tui.ui.widgets.panes import TextLines
from tui.ui.widgets.questions import Choice, ChoiceDialog, Confirmation
from tui.ui.widgets.resume_card import ResumeCard


def interrupted(world: World, *more: Told) -> Path:
    """A session whose last answer has two calls: one began, the other did not."""
    world.add_row("write it", hours=1)
    path = world.rows[-1].path
    intent = {"call_id": "t1", "tool": "write_file", "effect": "write", "label": "a.py"}
    branch = records(
        prompt("write it"),
        answer("I write.", call("t1"), call("t2")),
        ("intent", intent | {"path": str(world.workspace / "a.py"), "before_sha256": None}),
        *more,
    )
    world.old[path] = OldSession(records=branch, title="write it")
    return path


def card(app: HoldfastApp) -> ResumeCard | None:
    return next(iter(app.chat.query(ResumeCard)), None)


async def press(app: HoldfastApp, name: str) -> None:
    found = card(app)
    assert found
    next(c for c in found.query(Choice) if c.name == name).action_choose()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_tell_the_model_says_what_is_known_and_no_more(
    world: World, size: tuple[int, int]
) -> None:
    path = interrupted(world)
    async with running(world, size, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: card(app) is not None)
        found = card(app)
        assert found is not None
        await until(pilot, lambda: bool(found.query(TextLines)))
        rows = [row.plain for one in found.query(TextLines) for row in one.lines(60)]
        assert any(row.startswith("Write a.py") for row in rows)  # as on its card
        await press(app, "tell")
        await until(pilot, lambda: bool(world.agent.sent))
        (sent,) = world.agent.sent
        assert "write_file a.py: may or may not have run" in sent
        assert "the file is unchanged" in sent
        assert "never started" in sent
        assert card(app) is None


async def test_a_write_whose_file_holds_the_new_text_had_finished(world: World) -> None:
    written = {"type": "tool_use", "id": "t1", "name": "write_file"}
    arguments = {"path": "a.py", "content": "the new text"}
    intent = {"call_id": "t1", "tool": "write_file", "effect": "write", "path": "a.py"}
    branch = records(prompt("go"), answer(written | {"input": arguments}), ("intent", dict(intent)))
    (world.workspace / "a.py").write_text("the new text", encoding="utf-8")
    (found,) = interrupted_work(branch, world.workspace).calls
    assert known(found) == "finished; its result was lost; the file has the new content"


async def test_run_again_and_leave_it(world: World) -> None:
    path = interrupted(world)
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: card(app) is not None)
        await press(app, "again")
        await until(pilot, lambda: world.agent.went_on == 1)
        assert world.agent.again == ["t1", "t2"]
        assert card(app) is None
    path = interrupted(world)
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: card(app) is not None)
        await press(app, "leave")
        await until(pilot, lambda: world.agent.left == ["t1", "t2"])
        assert card(app) is None


async def test_a_prompt_of_ones_own_settles_it(world: World) -> None:
    path = interrupted(world)
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: card(app) is not None)
        await say(pilot, "never mind")
        await until(pilot, lambda: card(app) is None)
        await until(pilot, lambda: world.agent.sent == ["never mind"])


@pytest.fixture
def orphan() -> Iterator[subprocess.Popen[bytes]]:
    """A command in a process group of its own, as the program starts them."""
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process
        process.kill()


class UntilEnded(FakeClock):
    """Sleeping takes as long as a process needs to end: a clock that goes ahead of it would be
    past every patience before the process got the processor."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__()
        self._process = process

    async def sleep(self, seconds: float) -> None:
        await asyncio.to_thread(self._process.wait, PATIENCE_S)
        await super().sleep(seconds)


async def test_32_a_command_that_outlived_the_program_is_named_and_stopped(
    world: World, orphan: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ended(pid: int, birth: str, _: Clock) -> bool:
        return await end_group(pid, birth, UntilEnded(orphan))

    monkeypatch.setattr(interruption, "end_group", ended)
    job: dict[str, Any] = {
        "call_id": "t1",
        "pid": orphan.pid,
        "born": born(orphan.pid),
        "command": "serve",
    }
    reused: dict[str, Any] = {
        "call_id": "t0",
        "pid": os.getpid(),
        "born": "another time",
        "command": "old",
    }
    path = interrupted(world, ("job", job), ("job", reused))
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: card(app) is not None)
        left = interrupted_work(world.agent.session.records, world.workspace)
        assert [each.command for each in left.orphans] == ["serve"]
        assert f"process {orphan.pid}: serve" in summary_of(left)
        next(c for c in app.chat.query(Choice) if c.name == "stop").focus()
        await pilot.press("s")
        await until(pilot, lambda: "Stopped 1 command" in app.chat.notice.text)
        assert orphan.wait(PATIENCE_S) != 0
        assert card(app) is not None, "the calls are still open"
        await until(pilot, lambda: isinstance(app.focused, Choice))
        await pilot.press("l")  # the keys of the card go on working
        await until(pilot, lambda: card(app) is None)


@pytest.mark.parametrize(
    ("key", "choice"),
    [
        ("t", SessionChoice(Path("x"), take_over=True)),
        ("r", SessionChoice(Path("x"), read_only=True)),
    ],
)
async def test_B44_in_use_elsewhere(world: World, key: str, choice: SessionChoice) -> None:
    world.add_row("busy", hours=1)
    path = world.rows[0].path
    world.refusals.append(SessionInUseError("It is open in process 1."))
    app = app_of(world, choice=SessionChoice(path))
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += 1
        await pilot.press(key)
        await until(pilot, lambda: len(world.chosen) == 2)
        wanted = SessionChoice(path, choice.take_over, choice.read_only)
        assert world.chosen[-1] == wanted


async def test_B44_a_key_that_needs_the_session_leaves_the_question_answerable(
    world: World,
) -> None:
    world.add_row("busy", hours=1)
    path = world.rows[0].path
    world.refusals.append(SessionInUseError("It is open in process 1."))
    app = app_of(world, choice=SessionChoice(path))
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += 1
        await pilot.press("f5")
        world.clock.elapsed += 1
        await pilot.press("t")
        await until(pilot, lambda: app.conversation.agent is not None)
        await until(pilot, lambda: "Effort is now" in app.chat.notice.text)


async def test_B44_a_fork_of_what_another_program_has(world: World) -> None:
    world.add_row("busy", hours=1)
    path = world.rows[0].path
    world.refusals.append(SessionInUseError("It is open in process 1."))
    app = app_of(world, choice=SessionChoice(path))
    async with app.run_test(size=WIDE) as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += 1
        await pilot.press("f")
        await until(pilot, lambda: len(world.chosen) == 2)
        made = world.chosen[-1].path
        assert made is not None
        assert made != path
        assert [r.data for r in read(made).branch] == [r.data for r in read(path).branch]


async def test_B44_who_lost_the_session_says_so_and_can_fork_what_is_in_memory(
    world: World,
) -> None:
    world.add_row("mine", hours=1)
    path = world.rows[0].path
    async with running(world, choice=SessionChoice(path)) as (app, pilot):
        await until(pilot, lambda: app.conversation.agent is world.agent)
        lock_of(path).unlink()
        other = SessionLock(path, clock=world.clock)
        other.take()
        session = world.agent.session
        assert "took over" in await session.recheck()
        session.append("note", text="not saved")
        await app.run_action("recheck")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        assert f"process {os.getpid()}" in app.chat.status.state.trouble
        assert app.chat.prompt_rule.right.plain == "read-only"
        world.clock.elapsed += 1
        await pilot.press("f")
        await until(pilot, lambda: len(world.chosen) > 1)
        made = world.chosen[1].path
        assert made is not None
        assert read(made).branch[-1].data == {"text": "not saved"}
        other.release()


async def test_what_is_read_only_takes_no_prompt_and_loses_none(world: World) -> None:
    world.add_row("mine", hours=1)
    path = world.rows[0].path
    world.old[path] = OldSession(read_only=True)
    async with running(world, choice=SessionChoice(path, read_only=True)) as (app, pilot):
        await until(pilot, lambda: app.chat.prompt_rule.right.plain == "read-only")
        assert "/fork continues in a copy" in str(app.chat.prompt.placeholder)
        await say(pilot, "hello")
        await until(pilot, lambda: app.chat.prompt.text == "hello")
        assert not world.agent.sent
        assert "/fork" in app.chat.notice.text
        app.chat.prompt.accept()
        await say(pilot, "/fork")
        await until(pilot, lambda: len(world.chosen) == 2)
        made = world.chosen[-1].path
        assert made is not None
        assert folders().sessions in made.parents
        await until(pilot, lambda: app.chat.prompt_rule.right.plain == "ask first")
        assert "/fork" not in str(app.chat.prompt.placeholder)


def test_what_is_known_is_said_in_words() -> None:
    never = Interrupted("t", "r", "run_command", "make", "run", "never_started")
    assert known(never) == "never started"


@pytest.mark.parametrize(("key", "sent"), [("y", ["/elevated on"]), ("n", []), ("escape", [])])
async def test_K47_a_session_that_was_elevated_asks_before_it_is_again(
    key: str, sent: list[str]
) -> None:
    world = World()
    world.was_elevated = True
    world.add_row("clean up", hours=1)
    world.old[world.rows[0].path] = OldSession()
    async with running(world, choice=SessionChoice(world.rows[0].path)) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, Confirmation))
        assert world.agent.sent == []
        world.clock.elapsed += 1
        await pilot.press(key)
        await until(pilot, lambda: app.screen is app.chat)
        await until(pilot, lambda: world.agent.directives.elevated == bool(sent))


@pytest.mark.parametrize("key", ["f9", "f2", "f5"])
async def test_B44_a_key_meant_for_a_session_that_is_left_opens_nothing(
    world: World, key: str
) -> None:
    world.add_row("busy", hours=1)
    world.refusals.append(SessionInUseError("It is open in process 1."))
    app = app_of(world, choice=SessionChoice(world.rows[0].path))
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        world.clock.elapsed += 1
        await pilot.press(key)
        world.clock.elapsed += 1
        await pilot.press("escape")
        await until(pilot, lambda: app.conversation.agent is not None)
        await app.frontend.command_settled()
        await pilot.pause()
        assert app.screen is app.chat
        assert "Effort is now" not in app.chat.notice.text


async def test_a_title_that_fits_several_lets_the_person_choose(world: World) -> None:
    for title in ("Fix the parser", "Fix the lexer", "Other"):
        world.add_row(title, hours=1)
        one = world.rows[-1]
        world.old[one.path] = OldSession(records=records(prompt(title)), title=title)
    async with running(world) as (app, pilot):
        await begun(app, pilot)
        asking = asyncio.create_task(resume(app.conversation, "FIX"))
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        labels = [one.name for one in app.screen.query(Choice)]
        assert labels[:2] == ["session-1", "session-2"]
        await pilot.press("2")
        wanted = next(row.path for row in world.rows if row.title == "Fix the lexer")
        await asking
        assert world.chosen[-1].path == wanted

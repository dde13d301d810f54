"""The live screen of a terminal: what it shows, and the keyboard in the person's hands."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual import events
from textual.pilot import Pilot
from textual.widgets import Static

from tests.support.fake_terminal import FakeTerminal, screen_of
from tests.support.world import World
from tests.ui.screens.driving import running, until
from tests.ui.screens.test_jobs import started
from tui.core.questions import SecretAnswer, SecretQuestion
from tui.core.terminal_screen import ScreenRun
from tui.permissions.types import Answer, Call, Decision
from tui.tools.jobs import Job
from tui.ui.app import HoldfastApp
from tui.ui.screens.secret import SecretField, SecretModal
from tui.ui.screens.terminal import TerminalWatchScreen
from tui.ui.toolkit.key_parser import KeyParser
from tui.ui.widgets.approval import ApprovalModal

CALL = Call("c1", "run_command", "run", "pytest -q", "pytest -q", preview_kind="command",
    preview="pytest -q")  # fmt: skip
ASKS = Decision("ask", "It runs a command.", "default")
BACK = "ctrl+right_square_bracket"


def shown(app: HoldfastApp, id_: str) -> str:
    return str(app.screen.query_one(f"#{id_}", Static).content)


def rows(app: HoldfastApp) -> list[str]:
    screen = app.screen
    assert isinstance(screen, TerminalWatchScreen)
    view = screen.view
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


async def test_a_wide_row_is_drawn_as_far_as_it_is_in_sight(tmp_path: Path) -> None:
    cells = [ScreenRun(chr(65 + n % 26), f"{n:06x}", "", "") for n in range(500)]
    whole = "".join(cell.text for cell in cells)
    terminal = FakeTerminal(screen_of(cells, rows=24, cols=500))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        assert isinstance(app.screen, TerminalWatchScreen)
        view = app.screen.view
        await until(pilot, lambda: rows(app)[0] == whole[: view.size.width])
        await pilot.press("right", "right")
        await until(pilot, lambda: rows(app)[0] == whole[16 : view.size.width + 16])
        await pilot.press("h")
        await until(pilot, lambda: rows(app)[0] == whole[8 : view.size.width + 8])


@asynccontextmanager
async def watched(
    tmp_path: Path, terminal: FakeTerminal, size: tuple[int, int] = (100, 30)
) -> AsyncGenerator[tuple[HoldfastApp, Pilot[None], Job, World]]:
    """The screen of a terminal, opened from the list of background commands."""
    world = World(tmp_path)
    async with running(world, size) as (app, pilot):
        job = await started(world, "sleep 1000")
        job.terminal = terminal
        await pilot.press("f6")
        await until(pilot, lambda: bool(app.screen.query("#rows")))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, TerminalWatchScreen))
        try:
            yield app, pilot, job, world
        finally:
            await job.stop("person")


async def taken(pilot: Pilot[None], terminal: FakeTerminal) -> None:
    await pilot.press("t")
    await until(pilot, lambda: terminal.held)
    terminal.done.clear()


async def test_it_follows_the_screen_and_names_what_runs(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("Python 3.11.9", ">>> "))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await until(pilot, lambda: rows(app)[:2] == ["Python 3.11.9", ">>>"])
        assert "job-1 sleep 1000" in shown(app, "title")
        assert "80 × 24" in shown(app, "title")
        terminal.draw(
            screen_of("Python 3.11.9", ">>> 1 + 1", [ScreenRun("2", color="brightgreen")])
        )
        await until(pilot, lambda: rows(app)[1:3] == [">>> 1 + 1", "2"])
        assert "take the keyboard" in shown(app, "keys")


async def test_all_keys_go_to_the_program_until_the_key_that_gives_it_back_twice(
    tmp_path: Path,
) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        assert "Ctrl+] Ctrl+] gives it back" in shown(app, "keys")
        await pilot.press("l", "s", "enter", "ctrl+c", "escape", "f1", "ctrl+q", "up", "q", "x")
        await until(pilot, lambda: terminal.input.endswith(b"qx"))
        assert terminal.input == b"ls\r\x03\x1b\x1bOP\x11\x1b[Aqx"
        await pilot.press(BACK)
        assert "Ctrl+] again" in shown(app, "keys")
        assert terminal.held
        await pilot.press(BACK)
        await until(pilot, lambda: not terminal.held)
        assert terminal.done[-2:] == ["80x24", "release"]
        assert b"\x1d" not in terminal.input
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, TerminalWatchScreen))


async def test_pressed_once_the_key_goes_to_the_program_before_the_next_one(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    async with watched(tmp_path, terminal) as (_, pilot, _job, _world):
        await taken(pilot, terminal)
        await pilot.press(BACK, "a")
        await until(pilot, lambda: terminal.input == b"\x1da")
        assert terminal.held


async def test_the_program_has_the_size_of_the_view_while_the_person_types(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await pilot.press("t")
        await until(pilot, lambda: terminal.held)
        room = app.screen.query_one("#terminal").size
        await until(pilot, lambda: f"{room.width}x{room.height}" in terminal.done)
        await pilot.resize_terminal(90, 28)
        await until(pilot, lambda: terminal.screen.cols == 90)
        assert terminal.screen.rows == room.height - 2
        await pilot.press(BACK, BACK)
        await until(pilot, lambda: terminal.done[-2:] == ["80x24", "release"])


async def test_a_paste_has_marks_only_if_the_program_asked(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        app.post_message(events.Paste("one\ntwo"))
        await until(pilot, lambda: terminal.input == b"one\rtwo")
        terminal.done.clear()
        terminal.modes = {"bracketed_paste": True, "application_cursor": True}
        app.post_message(events.Paste("one"))
        await pilot.press("up")
        await until(pilot, lambda: terminal.input == b"\x1b[200~one\x1b[201~\x1bOA")


MOUSE = {"mouse_clicks": True, "mouse_drags": True, "mouse_sgr": True}


def moused(app: HoldfastApp, *codes: str) -> None:
    """The mouse, as the person's own terminal sends it: `0;5;3M`, places from 1."""
    for event in KeyParser(str).feed("".join(f"\x1b[<{code}" for code in codes).encode()):
        event.set_sender(app)
        app.post_message(event)


async def test_the_mouse_goes_to_a_program_that_asked_for_it(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("a", "b", "c"))
    terminal.modes = MOUSE
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        top = app.screen.query_one("#terminal").region.y
        moused(app, f"0;5;{top + 2}M", f"0;5;{top + 2}m")
        await pilot.press("t")
        await until(pilot, lambda: terminal.held)
        terminal.done.clear()  # before, no click was the program's
        moused(app, f"0;5;{top + 2}M")
        await until(pilot, lambda: bool(terminal.input))
        moused(app, f"32;500;{top + 3}M", f"0;500;{top + 3}m")  # a drag leads to the edge
        await until(pilot, lambda: terminal.input.endswith(b"m"))
        moused(app, f"35;7;{top + 2}M", f"68;7;{top + 2}M", f"65;7;{top + 2}M")
        await until(pilot, lambda: terminal.input.endswith(b"\x1b[<65;7;2M"))
        cols = terminal.screen.cols
        drag = f"\x1b[<0;5;2M\x1b[<32;{cols};3M\x1b[<0;{cols};3m"
        assert terminal.input == f"{drag}\x1b[<68;7;2M\x1b[<65;7;2M".encode()
        terminal.done.clear()
        await pilot.press(BACK)
        moused(app, f"0;5;{top + 2}M")
        await until(pilot, lambda: terminal.input == b"\x1d\x1b[<0;5;2M")
        await pilot.press(BACK, BACK)
        await until(pilot, lambda: not terminal.held)
        terminal.done.clear()
        moused(app, f"0;5;{top + 2}m", f"65;7;{top + 2}M")
        await pilot.press("y")
        await pilot.pause()
        assert terminal.input == b""


@pytest.mark.parametrize("alternate", [True, False])
async def test_the_wheel_is_arrow_keys_for_a_program_that_fills_the_screen(
    tmp_path: Path, *, alternate: bool
) -> None:
    """As `less`, which asks for no mouse."""
    terminal = FakeTerminal(replace(screen_of("a"), alternate=alternate))
    terminal.modes = {"application_cursor": True}
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        moused(app, "0;5;5M", "0;5;5m", "65;5;5M", "64;5;5M")
        await pilot.press("q")
        await until(pilot, lambda: terminal.input.endswith(b"q"))
        assert terminal.input == (b"\x1bOB" * 3 + b"\x1bOA" * 3 if alternate else b"") + b"q"


async def test_no_click_into_a_terminal_answers_an_approval(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    terminal.modes = MOUSE
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        asking = asyncio.create_task(app.frontend.approver.ask(CALL, ASKS))
        await until(pilot, lambda: "waits" in shown(app, "keys"))
        places = [(x, y) for y in range(1, app.size.height + 1) for x in (3, 40)]
        moused(app, *(f"0;{x};{y}{end}" for x, y in places for end in "Mm"))
        await until(pilot, lambda: b"\x1b[<0;40;20m" in terminal.input)
        assert isinstance(app.screen, TerminalWatchScreen)
        assert terminal.held
        assert not asking.done()
        asking.cancel()


async def test_no_key_typed_into_a_terminal_answers_an_approval(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        asking = asyncio.create_task(app.frontend.approver.ask(CALL, ASKS))
        await until(pilot, lambda: "waits" in shown(app, "keys"))
        await pilot.press("1", "y", "enter", "enter")
        await until(pilot, lambda: terminal.input == b"1y\r\r")
        assert isinstance(app.screen, TerminalWatchScreen)
        assert not asking.done()
        await pilot.press(BACK, BACK)
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal))
        assert not terminal.held
        await pilot.press("1")
        assert not asking.done()  # nobody can have read it
        await app.clock.sleep(1.0)
        await pilot.press("1")
        await until(pilot, asking.done)
        assert asking.result() == Answer("once")


@pytest.mark.parametrize("how", ["given back", "the program ended", "just taken"])
async def test_keys_that_come_in_one_read_answer_no_approval(tmp_path: Path, how: str) -> None:
    """As of a person who types on, or from a slow connection."""
    terminal = FakeTerminal(screen_of("$ "))
    typed = {"given back": "\x1d\x1d1y\r1\r", "the program ended": "1y\r1\r", "just taken": "t1\r"}
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        if how == "just taken":
            keys = [*KeyParser(str).feed(typed[how].encode())]
            asking = asyncio.create_task(app.frontend.approver.ask(CALL, ASKS))
        else:
            await taken(pilot, terminal)
            asking = asyncio.create_task(app.frontend.approver.ask(CALL, ASKS))
            await until(pilot, lambda: "waits" in shown(app, "keys"))
            keys = [*KeyParser(str).feed(typed[how].encode())]
        if how == "the program ended":
            terminal.end()
        for key in keys:
            key.set_sender(app)
            app.post_message(key)
        for _ in range(5):
            await pilot.pause()
        assert not asking.done()
        await until(pilot, lambda: isinstance(app.screen, ApprovalModal) or terminal.held)
        await pilot.press("1", "enter")
        assert not asking.done()
        asking.cancel()


async def test_a_question_that_is_withdrawn_no_longer_waits(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        asking = asyncio.create_task(app.frontend.approver.ask(CALL, ASKS))
        await until(pilot, lambda: "waits" in shown(app, "keys"))
        asking.cancel()
        await until(pilot, lambda: "waits" not in shown(app, "keys"))


async def test_the_end_of_the_program_ends_the_typing_and_takes_no_key_for_a_command(
    tmp_path: Path,
) -> None:
    terminal = FakeTerminal(screen_of("$ exit"))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        await pilot.press("a")
        terminal.end()
        await pilot.press("q", "escape")
        await until(pilot, lambda: not terminal.held)
        assert isinstance(app.screen, TerminalWatchScreen)
        await app.clock.sleep(1.0)
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, TerminalWatchScreen))


async def test_what_left_the_screen_is_scrolled_back_to_and_stays_still(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("now"))
    terminal.past = tuple(f"line {number}" for number in range(200))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await until(pilot, lambda: rows(app)[0] == "now")
        await pilot.press("pageup")
        await until(pilot, lambda: rows(app)[0].startswith("line 1"))
        top = rows(app)[0]
        terminal.draw(screen_of("later"))
        await pilot.pause()
        assert rows(app)[0] == top
        assert "scrolled back" in shown(app, "title")
        await pilot.press("end")
        await until(pilot, lambda: rows(app)[0] == "later")


async def test_input_that_the_program_does_not_take_is_said(tmp_path: Path) -> None:
    terminal = FakeTerminal(screen_of("$ "))
    async with watched(tmp_path, terminal) as (app, pilot, _, _world):
        await taken(pilot, terminal)
        terminal.refuses = "full"
        await pilot.press("a")
        await until(pilot, lambda: "doesn't read its input" in shown(app, "keys"))


QUESTION = SecretQuestion(
    "job-1", "bash", "[sudo] password for ann: ", "bash", "sudo() { read -s x; }"
)


async def asked(app: HoldfastApp, pilot: Pilot[None]) -> asyncio.Task[SecretAnswer | None]:
    asking = asyncio.create_task(app.frontend.approver.ask_secret(QUESTION))
    await until(pilot, lambda: isinstance(app.screen, SecretModal))
    return asking


async def test_a_secret_is_typed_masked_and_goes_nowhere_else(tmp_path: Path) -> None:
    async with running(World(tmp_path), (80, 24)) as (app, pilot):
        asking = await asked(app, pilot)
        await app.clock.sleep(1.0)
        await pilot.press(*"hunter2")
        app.post_message(events.Paste("Geheim\n"))
        field = app.screen.query_one(SecretField)
        await until(pilot, lambda: field.value == "hunter2Geheim")
        text = app.export_screenshot().replace("&#160;", " ")
        assert "hunter2" not in text
        assert "[sudo] password for ann:" in text
        assert "bash reads it. The model typed last: sudo() { read -s x; }" in text
        await pilot.press("ctrl+a", "shift+end", "ctrl+x")
        assert (app.clipboard, field.value) == ("", "hunter2Geheim")
        await pilot.press("enter")
        await until(pilot, asking.done)
        answer = asking.result()
        assert isinstance(answer, SecretAnswer)
        assert bytes(answer.data) == b"hunter2Geheim"
        assert (app.chat.prompt.text, field.value) == ("", "")
        await pilot.press("up")
        assert "hunter2" not in app.chat.prompt.text


async def test_a_secret_continues_where_it_was_when_the_focus_comes_back(tmp_path: Path) -> None:
    async with running(World(tmp_path), (80, 24)) as (app, pilot):
        asking = await asked(app, pilot)
        await app.clock.sleep(1.0)
        await pilot.press(*"hunt", "tab", *"er", "tab", "shift+tab", "2", "enter")
        await until(pilot, asking.done)
        answer = asking.result()
        assert isinstance(answer, SecretAnswer)
        assert bytes(answer.data) == b"hunter2"


async def test_who_was_typing_a_prompt_goes_on_with_it_until_they_pause(tmp_path: Path) -> None:
    async with running(World(tmp_path), (80, 24)) as (app, pilot):
        await pilot.press(*"wri")
        asking = await asked(app, pilot)
        await pilot.press(*"te", "enter")
        assert app.chat.prompt.text == "write"
        await app.clock.sleep(1.0)
        await pilot.press(*"secret")
        assert app.chat.prompt.text == "write"
        assert app.screen.query_one(SecretField).value == "secret"
        await app.clock.sleep(1.0)
        await pilot.press("escape")
        await until(pilot, asking.done)
        assert asking.result() is None


@pytest.mark.parametrize(("keys", "stops"), [(("escape",), False), (("tab", "tab", "enter"), True)])
async def test_a_secret_can_be_left_unanswered_and_the_program_stopped(
    tmp_path: Path, keys: tuple[str, ...], stops: bool
) -> None:
    world = World(tmp_path)
    async with running(world, (80, 24)) as (app, pilot):
        job = await started(world, "sleep 1000")
        job.terminal = FakeTerminal(screen_of("Password: "))
        asking = await asked(app, pilot)
        await app.clock.sleep(1.0)
        await pilot.press(*keys)
        await until(pilot, asking.done)
        assert asking.result() is None
        assert (job.stopped_by == "person") is stops
        await job.stop("person")

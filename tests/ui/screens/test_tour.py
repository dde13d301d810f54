"""The tour on the real program: done step by step, left out, and leaving nothing behind."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import OptionList

from tests.support.clock import FakeClock
from tests.support.world import World
from tests.ui.screens.driving import NARROW, WIDE, items, running, say, until
from tests.ui.screens.test_first_run import keyless
from tui.app.options.arguments import Options
from tui.core.errors import UsageError
from tui.demo import tour, tour_scene
from tui.demo.tour_screen import MARK, TourApp, TourPanel, TourProgram, marked
from tui.demo.tour_steps import (
    APPROVAL,
    CONTEXT,
    DEBUG,
    END,
    PICK,
    REPAIR,
    SESSIONS,
    STEPS,
    WAIT_S,
    WAYS,
)
from tui.session.reader import read
from tui.ui.commands import views
from tui.ui.screens.sessions import SessionsScreen
from tui.ui.screens.welcome import WelcomeScreen
from tui.ui.widgets.conversation.items import AttemptItem, NoticeItem

SMALL = (60, 20)


class Walk(FakeClock):
    """Short waits are over at once; the one that the person ends lasts until then."""

    async def sleep(self, seconds: float) -> None:
        if seconds >= WAIT_S:
            await asyncio.Event().wait()
        await super().sleep(seconds)


class FakeProgram(TourProgram):
    """Streams without a pause."""

    def __init__(self, root: Path, theme: str = "midnight") -> None:
        super().__init__(root, theme)
        self.clock = Walk()  # pyright: ignore[reportAttributeAccessIssue]
        self.launch = self.launch.reached(practice_delay_s=0.0)


@asynccontextmanager
async def touring(
    size: tuple[int, int] = WIDE,
) -> AsyncGenerator[tuple[TourApp, Pilot[None], Path]]:
    with tour_scene.place() as root:
        app = TourApp(await asyncio.to_thread(FakeProgram, root))
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.ready and app.conversation.agent is not None)
            await until(pilot, lambda: bool(app.chat.prompt.text))
            yield app, pilot, root


def panel(app: TourApp) -> TourPanel:
    return app.screen.query_one(TourPanel)


def on(app: TourApp, name: str) -> Callable[[], bool]:
    """Whether a screen is on top, with the panel on it."""
    return lambda: type(app.screen).__name__ == name and bool(app.screen.query(TourPanel))


def at(app: TourApp, name: str) -> Callable[[], bool]:
    """Whether a step is shown, on the chat, at rest."""
    return lambda: (
        app.tour.step.name == name and app.screen is app.chat and not app.conversation.busy
    )  # fmt: skip


async def send_laid(app: TourApp, pilot: Pilot[None], text: str) -> None:
    """Enter on the prompt that is laid ready."""
    await until(pilot, lambda: app.chat.prompt.text == text)
    assert app.chat.prompt.has_focus
    await pilot.press("enter")


async def allow(app: TourApp, pilot: Pilot[None], key: str = "1") -> None:
    await until(pilot, on(app, APPROVAL))
    clock = app.chat.clock
    assert isinstance(clock, FakeClock)
    clock.elapsed += 1
    await pilot.press(key)


async def skip_to(app: TourApp, pilot: Pilot[None], name: str) -> None:
    while app.tour.step.name != name:
        await pilot.press("f9")
    await until(pilot, at(app, name))


async def cut_and_opened(app: TourApp, pilot: Pilot[None]) -> None:
    await send_laid(app, pilot, "run sh build.sh")
    await allow(app, pilot)
    await until(pilot, lambda: app.tour.seen.cut is not None and not app.conversation.busy)
    await until(pilot, lambda: " KB, you keep all " in panel(app).text.happened)
    assert panel(app).text.now == "Press `F4` to show the output."
    await pilot.press("f4")
    await until(pilot, lambda: panel(app).text.now.startswith("Press `Tab`"))
    await pilot.press("tab")
    if not app.chat.has_class("-narrow"):
        await pilot.press("tab")
    await until(pilot, lambda: app.chat.side.output.has_focus)
    await pilot.press("o")
    await until(pilot, lambda: app.chat.side.whole)
    await until(pilot, lambda: panel(app).text.happened == "This is the full copy.")
    await pilot.press("f4" if app.chat.has_class("-narrow") else "o")


@pytest.mark.parametrize(
    "size",
    [pytest.param(WIDE, id="wide"), pytest.param(NARROW, id="narrow", marks=pytest.mark.slow)],
)
@pytest.mark.slow
async def test_the_whole_tour(size: tuple[int, int], own_folders: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in own_folders.rglob("*")}
    async with touring(size) as (app, pilot, root):
        notes = root / "project" / "notes.md"
        assert app.chat.header.state.mark == MARK
        assert os.environ["HOLDFAST_HOME"] == str(root / "home")

        await send_laid(app, pilot, "read README.md")
        await until(pilot, at(app, "approval"))

        await send_laid(app, pilot, 'append "- wind the clock" to notes.md')
        await until(pilot, on(app, APPROVAL))
        assert "line by line" in panel(app).text.happened
        assert "wind the clock" not in notes.read_text()
        await allow(app, pilot)
        await until(pilot, at(app, "long output"))
        assert "wind the clock" in notes.read_text()

        await cut_and_opened(app, pilot)
        await until(pilot, at(app, "context"))

        await pilot.press("f2")
        await until(pilot, on(app, CONTEXT))
        agent = app.conversation.agent
        assert agent
        states = [item.state for item in agent.context.ledger.items()]
        assert "pruned" in states  # the panel says that there is such a thing
        assert "are left out too" in panel(app).text.happened
        await pilot.press("m")
        await until(pilot, lambda: panel(app).text.now == "Press `u` to undo that.")
        assert "masked" in [item.state for item in agent.context.ledger.items()]
        await pilot.press("u")
        await until(pilot, lambda: panel(app).text.happened.startswith("Undone."))
        await pilot.press("escape")
        await until(pilot, at(app, "compaction"))

        await send_laid(app, pilot, "/compact")
        await until(pilot, on(app, WAYS))
        assert panel(app).text.happened.startswith("The preview")
        await pilot.press("c")
        await send_laid(app, pilot, "/uncompact")
        await until(pilot, at(app, "rate limit"))

        await send_laid(app, pilot, "read notes.md")
        await send_laid(app, pilot, "/retry")
        await until(pilot, at(app, "stop"))
        assert len(items(app, AttemptItem)) == 1

        await send_laid(app, pilot, "run sh watch.sh")
        await allow(app, pilot)
        await send_laid(app, pilot, "read notes.md")
        await until(pilot, lambda: app.chat.queued.texts == ("read notes.md",))
        await until(pilot, lambda: panel(app).text.now.startswith("Press `Esc` to stop"))
        await pilot.press("escape")
        await until(pilot, lambda: "back in the prompt" in panel(app).text.happened)
        await send_laid(app, pilot, "read notes.md")
        await until(pilot, at(app, "rewind"))

        await pilot.press("escape", "escape")
        await until(pilot, on(app, PICK))
        await pilot.press("home", "down", "enter")
        await until(pilot, on(app, WAYS))
        await pilot.press("f")
        await until(pilot, at(app, "sessions"))
        assert "wind the clock" not in notes.read_text()
        assert "Restored" in items(app, NoticeItem)[-1].text

        damaged = next((root / "home").rglob(f"*{app.tour.damaged}.jsonl"))
        torn = damaged.read_bytes()
        await pilot.press("f3")
        await until(pilot, on(app, SESSIONS))
        browser = app.screen
        assert isinstance(browser, SessionsScreen)
        await pilot.press("ctrl+f", *"keeper")
        await until(pilot, lambda: len(browser.places or ()) == 1)
        await pilot.press("enter")
        await until(pilot, on(app, REPAIR))
        assert app.tour.step.name == "repair"
        clock = app.chat.clock
        assert isinstance(clock, FakeClock)
        for _ in range(20):  # an answer counts a while after the screen has painted
            if not on(app, REPAIR)():
                break
            clock.elapsed += 1
            await pilot.press("c")
        await until(pilot, at(app, "debug view"))
        assert damaged.read_bytes().startswith(torn)
        assert len(read(damaged).findings) >= 3

        clock.elapsed += 1  # an Enter at once would be meant for the dialog
        await send_laid(app, pilot, "/verbose on")
        await until(pilot, lambda: app.chat.header.state.verbose and not app.conversation.busy)
        await pilot.press("f12")
        await until(pilot, on(app, DEBUG))
        await pilot.press("f12")
        await until(pilot, lambda: app.tour.over)
        await until(pilot, lambda: panel(app).text.now == END.cues[0].say)

        await pilot.press("ctrl+q")
    assert not root.exists()
    assert os.environ["HOLDFAST_HOME"] == str(own_folders)
    assert {path: path.stat().st_mtime_ns for path in own_folders.rglob("*")} == before


@pytest.mark.parametrize("key", ["f9", "enter"])
async def test_every_step_can_be_left_out(key: str) -> None:
    async with touring(SMALL) as (app, pilot, root):
        for number in range(len(STEPS)):
            assert app.tour.at == number
            if key == "enter":  # on an empty prompt
                app.chat.prompt.put("")
            await pilot.press(key)
        assert app.tour.over
        await pilot.press(key)
        assert app.tour.over
        agent = app.conversation.agent
        assert agent
        assert list(agent.session.records) == []
        await say(pilot, "/quit")
        await until(pilot, lambda: not app.is_running or app.return_code is not None)
    assert not root.exists()


async def test_one_step_back_and_all_of_it_again() -> None:
    async with touring() as (app, pilot, _):
        await pilot.press("f9", "f9", "f8")
        assert app.tour.step.name == "approval"
        await until(pilot, lambda: app.chat.prompt.text == STEPS[1].cues[0].lay)
        app.chat.prompt.put("")
        await say(pilot, "/back")
        assert app.tour.at == 0
        await pilot.press("f9")
        app.chat.prompt.put("")
        await say(pilot, "/tour")
        await until(pilot, lambda: app.tour.at == 0)


async def test_anything_else_is_answered_and_the_step_goes_on() -> None:
    async with touring() as (app, pilot, _):
        app.chat.prompt.put("")
        await say(pilot, "hello")
        await until(pilot, lambda: app.chat.status.state.turns == 1 and not app.conversation.busy)
        await until(pilot, lambda: app.chat.prompt.text == "read README.md")
        assert app.tour.step is STEPS[0]
        await pilot.press("enter")
        await until(pilot, at(app, "approval"))


async def test_what_the_person_types_is_never_replaced() -> None:
    async with touring() as (app, pilot, _):
        app.chat.prompt.put("")
        await pilot.press(*"mine")
        await pilot.press("f9")
        await until(pilot, lambda: app.tour.at == 1)
        assert app.chat.prompt.text == "mine"


async def test_a_refusal_is_fine_too() -> None:
    async with touring() as (app, pilot, root):
        await skip_to(app, pilot, "approval")
        await send_laid(app, pilot, STEPS[1].cues[0].lay)
        await allow(app, pilot, "escape")
        await until(pilot, at(app, "long output"))
        assert panel(app).text.happened.startswith("✓ You declined")
        assert "wind the clock" not in (root / "project" / "notes.md").read_text()


async def test_a_step_that_needs_something_asks_for_it_first() -> None:
    async with touring() as (app, pilot, root):
        await skip_to(app, pilot, "context")
        await send_laid(app, pilot, "read README.md")
        await until(pilot, lambda: panel(app).text.now.startswith("Press `F2`"))
        await skip_to(app, pilot, "compaction")
        await send_laid(app, pilot, "read README.md")
        await until(pilot, lambda: app.chat.prompt.text == "/compact")
        await pilot.press("enter")
        await until(pilot, on(app, WAYS))  # two prompts are enough for a summary
        await pilot.press("escape")
        await skip_to(app, pilot, "rewind")
        await send_laid(app, pilot, 'append "- a mistake" to notes.md')
        await allow(app, pilot)
        await until(pilot, lambda: panel(app).text.now.startswith("Press `Esc` twice"))
        assert "a mistake" in (root / "project" / "notes.md").read_text()


async def test_the_panel_stands_on_every_screen_and_says_how_to_come_back() -> None:
    async with touring(SMALL) as (app, pilot, _):
        for key in ("f1", "f2", "f3", "f12"):
            await pilot.press(key)
            await until(
                pilot, lambda: app.screen is not app.chat and bool(app.screen.query(TourPanel))
            )
            await until(pilot, lambda: "`Esc`" in panel(app).text.now)
            assert panel(app).region.bottom == SMALL[1]
            assert panel(app).size.height <= 5
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.chat)
        await until(pilot, lambda: panel(app).text.now == STEPS[0].cues[0].say)


async def test_its_keys_can_be_clicked() -> None:
    async with touring() as (app, pilot, _):
        rule = str(panel(app)._rule.render())  # pyright: ignore[reportPrivateUsage]
        await pilot.click(TourPanel, offset=(rule.index("f9"), 0))
        await until(pilot, lambda: app.tour.at == 1)


async def test_the_scene_is_a_repository_with_a_damaged_session() -> None:
    with tour_scene.place() as root:
        id_ = await asyncio.to_thread(tour_scene.prepare, root, FakeClock())
        assert (root / "project" / ".git").is_dir()
        (path,) = (root / "home").rglob("*.jsonl")
        assert id_ in path.name
        assert {finding.code for finding in read(path).findings} >= {"B52", "B40"}


async def test_without_git_the_scene_stands_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with tour_scene.place() as root:
        assert await asyncio.to_thread(tour_scene.prepare, root, FakeClock())
        assert not (root / "project" / ".git").exists()


def test_motion_stays_as_the_person_wants_it(own_folders: Path) -> None:
    config = own_folders / "config" / "config.toml"
    config.parent.mkdir(parents=True)
    for mine, kept in (('motion = "reduced"', True), ("motion = [", False), ("", False)):
        config.write_text(mine)
        with tour_scene.place() as root:
            text = (root / "home" / "config" / "config.toml").read_text()
            assert ('motion = "reduced"' in text) == kept


def test_without_a_terminal_it_says_so() -> None:
    with pytest.raises(UsageError, match="The tour needs a terminal"):
        tour.run(Options(command="tour"))


def test_what_stands_in_backticks_is_marked_as_a_key() -> None:
    text = marked("`F2` opens, `u` undoes.")
    assert text.plain == "F2 opens, u undoes."
    assert [text.plain[span.start : span.end] for span in text.spans] == ["F2", "u"]


async def test_in_a_running_program_it_is_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, ...]] = []

    def aside(_: object, *words: str) -> str:
        asked.append(words)
        return ""

    monkeypatch.setattr(views, "step_aside", aside)
    async with running(World()) as (app, pilot):
        await say(pilot, "/tour")
        await until(pilot, lambda: asked == [("tour",)])
        assert app.chat.notice.text == ""


async def test_the_welcome_screen_offers_it() -> None:
    world = keyless()
    async with running(world) as (app, pilot):
        await until(pilot, lambda: isinstance(app.screen, WelcomeScreen))
        choices = app.screen.query_one("#choices", OptionList)
        choices.highlighted = choices.get_option_index("tour")
        await pilot.pause()
        assert app.screen.query_one("#tour-form").display
        world.clock.elapsed += 1
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, WelcomeScreen)  # one comes back to it
        problem = str(app.screen.query_one("#problem").render())
        assert "holdfast tour" in problem  # a test's terminal cannot be shared

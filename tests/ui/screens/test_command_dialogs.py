"""The commands that open something: compaction, colours, permissions, changes, settings."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest
from textual.widgets import Static

from tests.support.clock import PATIENCE_S
from tests.support.script import MODEL
from tests.support.world import OldSession, World, record
from tests.ui.screens.driving import NARROW, WIDE, items, running, say, session_open, until
from tests.ui.screens.test_questions_snapshots import asked_before
from tui.agent.compaction import CompactionPreview
from tui.agent.request import break_cost
from tui.agent.request.break_cost import ChangePrice
from tui.app.services import SessionChoice
from tui.context.ledger_items import Item
from tui.core import facts
from tui.core.config import Permissions
from tui.core.fact_words import break_price
from tui.core.paths import folders
from tui.session.records import Record
from tui.ui.screens.permissions import PermissionsScreen
from tui.ui.screens.picker import PickScreen, ThemePicker
from tui.ui.screens.reports import DiffScreen
from tui.ui.widgets.conversation.items import NoticeItem
from tui.ui.widgets.questions import ChoiceDialog

CACHED = {"cache_creation_input_tokens": 3000}
LONG = "alpha beta " * 400
SIZES = pytest.mark.parametrize("size", [WIDE, NARROW])


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def resumed(world: World, *records: Record) -> SessionChoice:
    """A session that holds some records."""
    path = world.workspace / "old.jsonl"
    world.old[path] = OldSession(records=records, title="old")
    return SessionChoice(path)


@SIZES
async def test_compact_says_what_would_happen_before_it_does(
    world: World, size: tuple[int, int]
) -> None:
    async with running(world, size) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "/compact the tests")
        assert "Nothing to compact" in app.chat.notice.text
        long = [Item(f"r{n}", "result", f"output {n}", 1000 * n, "full") for n in range(1, 10)]
        world.agent.planned = CompactionPreview(
            kept=(Item("k", "user", "what was asked", 200, "full"),),
            summarised=tuple(long),
            pinned=(Item("p", "result", "the plan", 700, "full", pinned=True),),
            tokens_before=45_900,
            tokens_kept=900,
            price=ChangePrice(44_000, 900, 0),
        )
        await say(pilot, "/compact the tests")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        modal = app.screen
        assert isinstance(modal, ChoiceDialog)
        told = "\n".join(modal.details)
        assert "summarized: 9 items, 45.0k tokens" in told
        assert "pinned: 1 item, 700 tokens" in told
        assert "the plan" in told
        assert "and 3 more" in told
        assert "Price: 44.0k fewer tokens per request; 900 cached again once." in modal.text
        assert "focuses on: the tests" in modal.text
        await pilot.press("escape")
        assert world.agent.compacted == []
        await say(pilot, "/compact")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("c")
        await until(pilot, lambda: world.agent.compacted == [""] and not app.conversation.busy)
        assert not app.chat.busy


@SIZES
async def test_effort_says_its_price_and_waits_if_wanted(
    world: World, size: tuple[int, int]
) -> None:
    async with running(world, size) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        asked_before(world.agent)
        agent = world.agent

        async def asked(text: str) -> ChoiceDialog:
            await say(pilot, text)
            await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
            assert isinstance(app.screen, ChoiceDialog)
            return app.screen

        dialog = await asked("/effort max")
        assert "Change the effort to max?" in dialog.title_text
        price = agent.models.effort_cost("max")
        assert price
        assert break_price(price) in dialog.text
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        assert (agent.models.effort, agent.models.effort_to_come) == ("high", "")
        await asked("/effort max")
        await pilot.press("w")
        await until(pilot, lambda: "Effort changes to max" in app.chat.notice.text)
        assert (agent.models.effort, agent.models.effort_to_come) == ("high", "max")
        await say(pilot, "/effort")
        await until(pilot, lambda: "max applies when the cache restarts" in app.chat.notice.text)
        await asked("/effort low")
        await pilot.press("n")
        await until(pilot, lambda: "Effort is now low" in app.chat.notice.text)
        assert (agent.models.effort, agent.models.effort_to_come) == ("low", "")
        await say(pilot, "/effort high")  # as in the last request: at no cost
        await until(pilot, lambda: agent.models.effort == "high")
        assert app.screen is app.chat
        for bad, said in (
            ("/effort nonsense", "has no effort level nonsense"),
            ("/effort max go", "no"),
        ):
            await say(pilot, bad)
            await until(pilot, lambda said=said: said in app.chat.notice.text)


async def test_think_says_its_price_before_the_prompt_is_sent(world: World) -> None:
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        asked_before(world.agent)
        agent = world.agent
        for answer, on in (("escape", False), ("w", True)):
            await say(pilot, "/think why is it slow?")
            await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
            assert agent.sent == []
            await pilot.press(answer)
            await until(pilot, lambda: app.screen is app.chat and not app.conversation.busy)
            assert agent.directives.think is on
        assert agent.sent == ["why is it slow?"]
        told = [r.data for r in agent.session.records if r.type == "directive"]
        assert [(one["think"], one["wait"]) for one in told] == [(True, True)]


async def test_a_reload_waits_for_the_next_compaction_if_wanted(world: World) -> None:
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "/reload")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        await pilot.press("w")
        await until(pilot, lambda: "next /compact picks up" in app.chat.notice.text)
        assert [r.type for r in world.agent.session.records if r.type == "reload"] == ["reload"]


async def test_uncompact_memory_and_prune_say_what_came_of_it(world: World) -> None:
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "/uncompact")
        await until(pilot, lambda: bool(items(app, NoticeItem)))
        assert "Nothing to undo" in items(app, NoticeItem)[-1].text
        await say(pilot, "/memory")
        await until(pilot, lambda: "No MEMORY.md" in app.chat.notice.text)
        await say(pilot, "/memory save")
        assert "Nothing new" in app.chat.notice.text
        world.agent.remember()
        await say(pilot, "/memory save")
        await until(pilot, lambda: items(app, NoticeItem)[-1].text.startswith("Saved 1 line"))
        await say(pilot, "/prune")
        await until(pilot, lambda: "No old results to leave out" in app.chat.notice.text)


@SIZES
async def test_the_theme_is_seen_while_choosing_and_kept_by_enter(
    world: World, size: tuple[int, int]
) -> None:
    async with running(world, size) as (app, pilot):
        before = app.theme
        await say(pilot, "/theme")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        await pilot.press("home")
        await until(pilot, lambda: app.theme != before)
        await pilot.press("escape")
        await until(pilot, lambda: app.theme == before)
        assert world.themes_saved == []
        await say(pilot, "/theme")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        await pilot.press("home", "enter")
        await until(pilot, lambda: len(world.themes_saved) == 1)
        assert app.theme == world.themes_saved[0] != before


async def test_each_theme_says_what_it_is_and_nothing_is_dimmed(world: World) -> None:
    async with running(world, (40, 10)) as (app, pilot):
        app.use_theme("contrast")
        await say(pilot, "/theme")
        await until(pilot, lambda: isinstance(app.screen, ThemePicker))
        screen = app.screen
        assert isinstance(screen, ThemePicker)
        rows = [screen.rows.render_line(y).text.split() for y in range(screen.rows.size.height)]
        assert ["contrast", "contrast,", "dark", "in", "use"] in rows
        assert ["daylight", "light"] in rows
        assert screen.styles.background.a == 0
        assert not screen.query("#about")


async def test_the_theme_picker_covers_whole_rows(world: World) -> None:
    async with running(world, (80, 24)) as (app, pilot):
        await say(pilot, "/theme")
        await until(pilot, lambda: isinstance(app.screen, ThemePicker))
        box = app.screen.query_one("#box").region
        assert (box.x, box.width, box.bottom) == (0, 80, 24)
        assert box.y >= 12


async def test_without_colours_the_theme_picker_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with running(world) as (app, pilot):
        await say(pilot, "/theme")
        await until(pilot, lambda: isinstance(app.screen, ThemePicker))
        assert "NO_COLOR is set" in str(app.screen.query_one("#about").render())
        await pilot.press("home", "enter")
        await until(pilot, lambda: len(world.themes_saved) == 1)


async def test_a_broken_theme_of_one_s_own_is_told_and_not_kept(world: World) -> None:
    own = folders().config / "themes"
    own.mkdir(parents=True)
    (own / "aaa.toml").write_text("this is = = no toml")
    async with running(world) as (app, pilot):
        before = app.theme
        await say(pilot, "/theme")
        await until(pilot, lambda: isinstance(app.screen, PickScreen))
        await pilot.press("home", "enter")
        await until(pilot, lambda: "aaa" in app.chat.notice.text)
        assert app.theme == before
        assert world.themes_saved == []


@SIZES
async def test_permissions_shows_the_rules_and_every_decision(
    world: World, size: tuple[int, int]
) -> None:
    world.permissions = Permissions(deny=("run_command(git push*)",))
    choice = resumed(
        world,
        record("user", 0, content=[], text="go"),
        record("permission", 1, tool="run_command", subject="ls", answer="allow", by="safe",
               reason="Read-only."),
        record("permission", 2, tool="run_command", subject="git push", answer="deny",
               by="run_command(git push*)", reason="The rule denies it."),
    )  # fmt: skip
    async with running(world, size, choice=choice) as (app, pilot):
        await say(pilot, "/permissions")
        await until(pilot, lambda: isinstance(app.screen, PermissionsScreen))
        panel = app.screen
        assert isinstance(panel, PermissionsScreen)
        height = panel.rows.size.height
        text = "\n".join(panel.rows.render_line(n).text for n in range(height))
        assert "✗ run_command(git push*)" in text
        assert "2 decisions" in text
        about = panel.query_one("#about", Static)
        await pilot.press("end")
        await until(pilot, lambda: "Read-only." in str(about.render()))
        await pilot.press("up")  # the newest decision comes first
        await until(pilot, lambda: "The rule denies it." in str(about.render()))
        await pilot.press("escape")
        assert app.screen is app.chat


def writing(path: Path, text: str) -> list[Record]:
    """A turn in which a file was written that was not there before."""
    call = {"type": "tool_use", "id": "t1", "name": "write_file", "input": {"path": str(path)}}
    digest = hashlib.sha256(text.encode()).hexdigest()
    details = {"path": str(path), "before": None, "before_sha256": None, "after_sha256": digest}
    said = [{"type": "text", "text": "Written."}]
    return [
        record("user", 0, content=[{"type": "text", "text": "go"}], text="go"),
        record("assistant", 1, content=[call], model="m"),
        record("tool_result", 2, call_id="t1", name="write_file", content=said, details=details),
        record("assistant", 3, content=said, model="m"),
    ]


@SIZES
async def test_diff_shows_what_the_session_changed(world: World, size: tuple[int, int]) -> None:
    path = world.workspace / "new.py"
    path.write_text("print(1)\n")
    choice = resumed(world, *writing(path, "print(1)\n"))
    async with running(world, size, choice=choice) as (app, pilot):
        await say(pilot, "/diff")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen))
        screen = app.screen
        assert isinstance(screen, DiffScreen)
        assert "+print(1)" in screen.text
        assert "new.py" in screen.text
        await pilot.press("y")
        assert app.clipboard == screen.text
        await pilot.press("escape")
        path.unlink()
        await say(pilot, "/diff")
        await until(pilot, lambda: isinstance(app.screen, DiffScreen))
        assert isinstance(app.screen, DiffScreen)
        assert "unchanged since the session started" in app.screen.text


async def test_diff_of_a_session_that_changed_nothing(world: World) -> None:
    async with running(world) as (app, pilot):
        await say(pilot, "/diff")
        await until(pilot, lambda: "No files changed" in app.chat.notice.text)


async def test_plan_goes_in_and_out_of_plan_mode(world: World) -> None:
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "/plan")
        assert world.agent.permissions.mode == "plan"
        await say(pilot, "/plan")
        assert world.agent.permissions.mode == "ask"


async def test_add_dir_widens_where_the_tools_work(world: World, tmp_path: Path) -> None:
    other = tmp_path.parent / "other"
    other.mkdir(exist_ok=True)
    async with running(world) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, f"/add-dir {other}")
        assert world.agent.permissions.folders[-1] == other
        await say(pilot, f"/add-dir {other}")
        assert "already included" in app.chat.notice.text
        await say(pilot, "/add-dir /no/such/place")
        assert "isn't a folder" in app.chat.notice.text


async def test_export_writes_the_session_into_the_workspace(world: World) -> None:
    choice = resumed(world, record("user", 0, content=[{"type": "text", "text": "hello there"}]))
    async with running(world, choice=choice) as (app, pilot):
        await say(pilot, "/export html")
        await until(pilot, lambda: "Written to" in app.chat.notice.text)
        (file,) = world.workspace.glob("session-*.html")
        assert "hello there" in file.read_text()
        await say(pilot, "/export")
        await until(pilot, lambda: bool(list(world.workspace.glob("session-*.md"))))
        await say(pilot, "/export pdf")
        assert "Unknown format" in app.chat.notice.text


async def test_init_asks_the_model_for_agents_md(world: World) -> None:
    async with running(world) as (_, pilot):
        await say(pilot, "/init")
        await until(pilot, lambda: len(world.agent.sent) == 1)
        assert "AGENTS.md" in world.agent.sent[0]


async def test_repair_and_todos_say_when_there_is_nothing(world: World) -> None:
    choice = resumed(world, record("user", 0, content=[{"type": "text", "text": "hi"}], text="hi"))
    async with running(world, choice=choice) as (app, pilot):
        await say(pilot, "/repair")
        assert "This session needs no repair" in app.chat.notice.text
        await say(pilot, "/todos")
        assert "No to-do list" in app.chat.notice.text
        app.chat.todos.todos = ({"text": "fix it", "status": "in_progress"},)
        await say(pilot, "/todos")
        assert items(app, NoticeItem)[-1].detail == "▸ fix it"


def worked_on(world: World) -> SessionChoice:
    """A session with old results that pruning has put off."""
    told: list[Record] = []
    for n in range(0, 90, 10):
        call = {"type": "tool_use", "id": f"c{n}", "name": "read_file", "input": {"path": "a"}}
        told += [
            record("user", n, content=[{"type": "text", "text": "go"}], text="go"),
            record("assistant", n + 1, content=[call], model=MODEL, usage=CACHED),
            record("tool_result", n + 2, call_id=f"c{n}", content=[{"type": "text", "text": LONG}]),
            record("assistant", n + 3, content=[{"type": "text", "text": "ok"}], model=MODEL),
        ]
    return resumed(world, *told)


async def test_the_question_about_old_results_is_there_before_its_price(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = threading.Event()

    def late(_: object) -> facts.ContextBroken:
        known.wait(PATIENCE_S)
        return facts.ContextBroken("prune", "person", tokens=41_000, thoughts=0)

    monkeypatch.setattr(break_cost, "broken_next", late)
    async with running(world, choice=worked_on(world)) as (app, pilot):
        await until(pilot, lambda: session_open(app))
        await say(pilot, "/prune")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        asked = app.screen.query_one("#asked")

        def words() -> str:
            return " ".join(str(part.render()) for part in asked.query(Static))

        assert words().startswith("Leave out 3 results. …")
        known.set()
        await until(pilot, lambda: "41.0k cached again once" in words())
        world.clock.elapsed += 1
        await pilot.press("w")
        await until(pilot, lambda: "will be left out when the cache" in app.chat.notice.text)

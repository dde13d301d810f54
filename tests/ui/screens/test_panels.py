"""What all panels share, and /hooks and /skills, which are nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot
from textual.widgets import Input, Static

from tests.support.world import OldSession, World, record
from tests.ui.screens.driving import WIDE, running, say, until
from tui.app.dialog_data import ModelRow
from tui.app.reports import Row
from tui.app.services import SessionChoice
from tui.settings.hook_files import load
from tui.settings.trust import items
from tui.ui.screens.installed import HooksScreen, SkillsScreen
from tui.ui.screens.panel import Panel, columns_of
from tui.ui.screens.picker import model_about, model_columns
from tui.ui.screens.read_screen import ReadScreen, show_file

SIZES = pytest.mark.parametrize("size", [(40, 10), (80, 24), WIDE, (200, 50)], ids=str)


class Things(Panel[None]):
    """As many rows as there shall be."""

    NAME = "things"
    NONE = "Things are made by tests.\nThere is none."

    def __init__(self, count: int) -> None:
        super().__init__()
        self.things = [
            Row(f"thing {n}", ("ready", f"about {n}"), f"{n}", "●", "success", (f"all of {n}",))
            for n in range(count)
        ]

    def rows_now(self) -> Sequence[Row]:
        return list(self.things)


async def shown(pilot: Pilot[None], panel: Panel[None]) -> None:
    pilot.app.push_screen(panel)
    await until(pilot, lambda: pilot.app.screen is panel and panel.is_mounted)


def text(screen: object, id_: str) -> str:
    assert isinstance(screen, Panel)
    return str(screen.query_one(f"#{id_}", Static).content)


@SIZES
@pytest.mark.parametrize("count", [0, 1, 3, 200])
async def test_a_box_is_no_larger_than_what_it_holds(size: tuple[int, int], count: int) -> None:
    async with running(World(), size) as (_, pilot):
        panel = Things(count)
        await shown(pilot, panel)
        box, rows = panel.query_one("#box").region, panel.rows
        assert box.bottom <= size[1]
        assert "close" in str(panel.query_one("#box").border_subtitle)
        if not count:
            assert box.height == 4
            return
        assert rows.size.height == min(count, rows.size.height)
        assert box.height == rows.size.height + 4, "the rows, a rule, one line, two borders"
        if count == 200:
            assert box.height >= size[1] * 9 // 10 - 2


async def test_a_filter_leaves_the_rows_with_all_the_words() -> None:
    async with running(World()) as (_, pilot):
        panel = Things(200)
        await shown(pilot, panel)
        assert " filter" in str(panel.query_one("#box").border_subtitle)
        await pilot.press("slash", *"thing", "space", *"17")
        await until(pilot, lambda: "thing 17 " in panel.rows.render_line(0).text)
        assert "all of 17" in text(panel, "about")
        height = panel.query_one("#box").region.height
        await pilot.press(*"xx")
        await until(pilot, lambda: "Nothing matches." in text(panel, "about"))
        assert panel.query_one("#box").region.height == height, "nothing moves"
        await pilot.press("escape")
        assert panel.rows.has_focus
        assert not panel.query_one("#words", Input).value
        await pilot.press("escape")
        assert pilot.app.screen is not panel


async def test_rows_that_change_are_drawn_again_under_the_same_cursor() -> None:
    async with running(World()) as (_, pilot):
        panel = Things(3)
        await shown(pilot, panel)
        await pilot.press("down", "down")
        panel.things.insert(0, Row("first", ("new", ""), "new", "●"))
        panel.follow()
        assert panel.row is not None
        assert panel.row.name == "thing 2"


@pytest.mark.parametrize("width", [20, 37, 74, 110, 190])
def test_columns_fit_their_width(width: int) -> None:
    rows = [
        Row("job-1 npm run build -- --mode production", ("running · 2 min", "x" * 90), "a", "●"),
        Row("job-2 ls", ("exit code 0", ""), "b", "✓"),
    ]
    ((_, cells),) = columns_of(rows, width).items()
    assert sum(cells) + 2 * (len(cells) - 1) + 2 <= width
    assert cells[0] >= min(cell_len(rows[0].name), width // 3 - 2)


def test_columns_of_many_rows_take_little_time() -> None:
    rows = [Row(f"tool {n}", ("ready", "what it does " * 9), f"{n}", "●") for n in range(2000)]
    began = perf_counter()
    columns_of(rows, 100)
    assert perf_counter() - began < 0.5


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


HOOKS = {
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./check"}]}]
    }
}


async def test_hooks_say_when_they_run_and_what_they_did_last(tmp_path: Path) -> None:
    world = World(tmp_path)
    write(tmp_path / ".holdfast/hooks.json", json.dumps(HOOKS))
    path = tmp_path / "mine.json"
    write(path, json.dumps(HOOKS))
    world.add_row("earlier", hours=1)
    old = world.rows[0].path
    ran = {"event": "PreToolUse", "command": "./check", "outcome": "blocked", "seconds": 0.2}
    told = [
        record("user", 0, content=[], text="go"),
        record("hook", 1, **ran, text="not on Fridays", exit_code=2, call_id=""),
    ]
    world.old[old] = OldSession(records=told, title="earlier")
    async with running(world, WIDE, choice=SessionChoice(old)) as (app, pilot):
        world.undecided = items(tmp_path)
        world.agent._ctx.rules.find_hooks = lambda: load([path])  # pyright: ignore[reportPrivateUsage]
        await say(pilot, "/hooks")
        await until(pilot, lambda: isinstance(app.screen, HooksScreen))
        screen = app.screen
        assert isinstance(screen, HooksScreen)
        assert screen.rows.render_line(0).text.split() == (
            ["■", "PreToolUse", "Bash", "blocked", "1×", "./check"]
        )
        about = text(screen, "about")
        assert "Runs before a tool call of Bash" in about
        assert "blocked in 0.2 s: not on Fridays" in about
        await pilot.press("y")
        assert app.clipboard == "./check"
        await pilot.press("down")
        assert "Not trusted, so its hooks don't run. /trust changes it." in text(screen, "about")
        world.clock.elapsed += 1  # Enter was pressed just now
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadScreen))
        reading = app.screen
        assert isinstance(reading, ReadScreen)
        assert json.loads(reading.text) == HOOKS
        await pilot.press("escape")
        assert app.screen is screen


async def test_a_file_hides_nothing_from_who_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "hooks.json"
    write(file, "run\u202e\x1b[8m this\n" + "x" * 200_000)
    async with running(World(tmp_path)) as (app, pilot):
        show_file(app, file)
        await until(pilot, lambda: isinstance(app.screen, ReadScreen))
        reading = app.screen
        assert isinstance(reading, ReadScreen)
        first, *_, last = reading.text.splitlines()
        assert first == "run\\u202e\\x1b[8m this"
        assert last == "… 16 more bytes aren't shown"


async def test_a_skill_is_read_and_used(tmp_path: Path) -> None:
    world = World(tmp_path)
    text_of_skill = "---\nname: pdf\ndescription: About PDFs\n---\nRead them.\n"
    write(Path.home() / ".claude/skills/pdf/SKILL.md", text_of_skill)
    (Path.home() / ".claude/skills/empty").mkdir()
    async with running(world) as (app, pilot):
        await say(pilot, "/skills")
        await until(pilot, lambda: isinstance(app.screen, SkillsScreen))
        screen = app.screen
        assert isinstance(screen, SkillsScreen)
        assert screen.rows.render_line(0).text.split() == ["pdf", "About", "PDFs"]
        assert "There is no SKILL.md." in screen.rows.render_line(1).text
        assert "/pdf · yours: ~/.claude/skills/pdf" in text(screen, "about")
        world.clock.elapsed += 1  # Enter was pressed just now
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReadScreen))
        await pilot.press("escape", "u")
        await until(pilot, lambda: app.screen is app.chat)
        assert app.chat.prompt.value == "/pdf "


@pytest.mark.parametrize(
    ("command", "words"), [("/hooks", "Hooks run commands"), ("/skills", "Skills are instructions")]
)
async def test_without_any_it_says_what_they_are(tmp_path: Path, command: str, words: str) -> None:
    async with running(World(tmp_path), (80, 24)) as (app, pilot):
        await say(pilot, command)
        await until(pilot, lambda: isinstance(app.screen, Panel))
        assert words in text(app.screen, "none")
        assert "/help" in text(app.screen, "none")


def model(name: str, **facts: Any) -> ModelRow:
    return ModelRow(name, 1_000_000, "catalogue", "$0.10/$0.50", next="≈ $0.0052", **facts)


@pytest.mark.parametrize("width", [33, 71, 105])
def test_the_models_are_whole_with_price_and_what_switching_costs(width: int) -> None:
    rows = [model("claude-sonnet-5-5", now=True), model("claude-mythos-5-2", fallback=1)]
    name, window, price, next_, note = model_columns(rows, width)
    assert name == len("claude-sonnet-5-5")
    assert price == len("$0.10/$0.50")
    roomy = width > 40
    assert [bool(cells) for cells in (window, next_, note)] == [roomy] * 3
    assert ("next ≈ $0.0052" in model_about(rows[1], width)) is not roomy
    assert model_about(rows[1], 36) == "1.0M window · next prompt ≈ $0.0052"


def test_a_long_name_leaves_room_for_the_price() -> None:
    rows = [model("eu.anthropic.claude-sonnet-4-5-20250929-v1:0")]
    name, *others = model_columns(rows, 71)
    assert name >= 35
    assert all(others[:3])

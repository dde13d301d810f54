"""F1 and /help: the keys and commands, and behind them the manual, searched and read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from rich.cells import cell_len
from textual.geometry import Region
from textual.pilot import Pilot
from textual.visual import Visual
from textual.widget import Widget
from textual.widgets import Input

from tests.support.world import World
from tests.ui.screens.driving import running, say, until
from tui.app import manual
from tui.app.commands.table import COMMANDS
from tui.app.manual import Match
from tui.core.keymap import keymap_of
from tui.ui.app import HoldfastApp
from tui.ui.screens.help import (
    HelpHit,
    HelpScreen,
    HelpSection,
    HelpTable,
    ManualPage,
    help_lines,
)
from tui.ui.widgets.keys import HELP
from tui.ui.widgets.row_list import RowList


async def opened(app: HoldfastApp, pilot: Pilot[None]) -> HelpScreen:
    await until(pilot, lambda: isinstance(app.screen, HelpScreen))
    assert isinstance(app.screen, HelpScreen)
    return app.screen


def listed(screen: HelpScreen) -> str:
    """What the list shows."""
    rows = screen.query_one("#topics", RowList)
    return "\n".join(rows.render_line(y).text.rstrip() for y in range(rows.size.height))


def read(screen: HelpScreen) -> str:
    """What is in sight of a page."""
    page = screen.query_one(ManualPage)
    return "\n".join(page.render_line(y).text.rstrip() for y in range(page.size.height))


async def test_tab_lists_the_topics_and_enter_reads_one() -> None:
    async with running(World(), (120, 60)) as (app, pilot):  # room for all topics
        await pilot.press("f1")
        screen = await opened(app, pilot)
        assert screen.view == "keys"
        await pilot.press("tab")
        await until(pilot, lambda: "Every slash command" in listed(screen))
        for topic in manual.topics():
            assert topic.name in listed(screen)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: "Every key, by the place" in read(screen))
        await pilot.press("escape")
        assert screen.view == "topics"
        await pilot.press("tab")
        assert screen.view == "keys"
        await pilot.press("escape")
        assert app.screen is app.chat


async def test_typing_searches_and_a_match_opens_where_the_word_is() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        screen = await opened(app, pilot)
        await pilot.press(*"osc", "space", *"52")
        await until(pilot, lambda: "doctor › Copy and paste" in listed(screen))
        assert "the terminal must accept OSC 52" in listed(screen)
        await pilot.press("enter")
        await until(pilot, lambda: "OSC 52" in read(screen))
        page = screen.query_one(ManualPage)
        await pilot.press("home")
        await until(pilot, lambda: "Doctor and troubleshooting" in read(screen))
        await pilot.press("pagedown", "down")
        assert page.scroll_y > 1
        await pilot.press("escape", "escape")
        assert screen.view == "keys"
        assert screen.query_one("#search", Input).value == ""


async def test_what_nothing_mentions_is_said() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        screen = await opened(app, pilot)
        await pilot.press(*"zzz", "enter")
        await until(pilot, lambda: "No key, command or topic matches." in listed(screen))
        assert screen.view == "topics"


async def test_help_with_a_topic_opens_it() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "/help perm")
        screen = await opened(app, pilot)
        await until(pilot, lambda: "What runs without asking" in read(screen))
        await pilot.press("f1")
        assert app.screen is app.chat


async def test_help_with_another_word_searches() -> None:
    async with running(World()) as (app, pilot):
        await say(pilot, "/help backslash")
        screen = await opened(app, pilot)
        await until(pilot, lambda: "prompt › Writing" in listed(screen))
        assert screen.query_one("#search", Input).value == "backslash"


async def test_the_keys_scroll() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        screen = await opened(app, pilot)
        keys = screen.query_one("#keys")
        await until(pilot, lambda: keys.max_scroll_y > 0)
        await pilot.press("end")
        await until(pilot, lambda: keys.scroll_y == keys.max_scroll_y)
        await pilot.press("home", "down", "pagedown")
        await until(pilot, lambda: 1 < keys.scroll_y < keys.max_scroll_y)


async def test_typing_filters_keys_commands_and_the_manual_together() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        screen = await opened(app, pilot)
        await pilot.press(*"hide several")
        await until(pilot, lambda: "hide several results" in listed(screen))
        lines = [line.split("  ")[0] for line in listed(screen).splitlines() if line]
        assert lines[:2] == ["Context (F2)", "b"]
        assert "Manual" in lines
        assert "F3" not in lines
        await pilot.press("enter")
        await until(pilot, lambda: "hide several results" in read(screen))
        await pilot.press("escape", "escape")
        assert screen.view == "keys"
        assert app.screen is screen
        await pilot.press("escape")
        assert app.screen is app.chat


async def test_the_cursor_passes_headings_and_only_its_row_is_read() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        screen = await opened(app, pilot)
        await pilot.press(*"/model")
        await until(pilot, lambda: "switch model" in listed(screen))
        rows = screen.query_one("#topics", RowList)
        first = rows.cursor
        await pilot.press("up")
        assert rows.cursor == first
        await pilot.click(rows, offset=(2, 0))  # a heading
        assert screen.view == "topics"


def test_no_explanation_is_wrapped_on_80_columns() -> None:
    sections = [HelpSection.of(title, table, keymap_of({})) for title, table in HELP]
    commands = HelpSection("Commands", tuple((f"/{c.name} {c.argument}", c.help) for c in COMMANDS))
    lines = [line.plain for line in help_lines([*sections, commands], 71)]
    wrapped = [f"{above} / {line}" for above, line in pairwise(lines) if line[:1] == " "]
    assert [one for one in wrapped if not one.startswith("/")] == []


@pytest.mark.parametrize("width", [30, 60])
def test_what_is_too_long_for_a_row_is_cut_with_a_mark(width: int) -> None:
    match = Match(manual.topics()[0], "", "")
    told = "edit the prompt in your own editor, then come back with it to the prompt"
    right, _ = HelpHit("Ctrl+G", told, match).parts(8, width)[1]
    assert cell_len(right) <= width
    assert right.endswith("…")
    assert HelpHit("Ctrl+L", "redraw", match).parts(8, width)[1][0] == "redraw"


async def test_only_rows_in_sight_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        table = (await opened(app, pilot)).query_one(HelpTable)
        await until(pilot, lambda: table.size.height > app.size.height)
        drawn: list[Visual] = []
        to_strips: Any = Visual.to_strips

        def counted(widget: Widget, visual: Visual, *given: Any, **named: Any) -> Any:
            drawn.append(visual)
            return to_strips(widget, visual, *given, **named)

        monkeypatch.setattr(Visual, "to_strips", counted)
        shown = table.render_lines(Region(0, 4, table.size.width, 3))
        assert [row.text.rstrip() for row in shown] == str(table.render()).splitlines()[4:7]
        assert len(drawn) == 3

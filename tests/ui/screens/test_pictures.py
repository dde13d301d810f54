"""Every screen has its pictures, and on a small terminal nothing to choose is lost."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App
from textual.color import Color
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

import tui.ui.desk
import tui.ui.screens
import tui.ui.widgets
from tests.ui.desk.test_session_snapshots import PICTURES as WATCHED
from tests.ui.screens.driving import NARROW
from tests.ui.screens.pictures import Picture, Stage, at_home
from tests.ui.screens.test_context_snapshots import PICTURES as CONTEXT
from tests.ui.screens.test_desk_snapshots import PICTURES as DESK
from tests.ui.screens.test_panels_snapshots import PICTURES as PANELS
from tests.ui.screens.test_prompt_snapshots import PICTURES as PROMPT
from tests.ui.screens.test_questions_snapshots import PICTURES as QUESTIONS
from tests.ui.screens.test_sessions_snapshots import PICTURES as SESSIONS
from tests.ui.screens.test_tasks_snapshots import PICTURES as TASKS
from tests.ui.screens.test_terminal_snapshots import PICTURES as TERMINALS
from tests.ui.screens.test_timeline_snapshots import PICTURES as TIMELINE
from tests.ui.screens.test_welcome_snapshots import PICTURES as WELCOME
from tui.ui.toolkit.themes import contrast
from tui.ui.widgets.questions import Choice

TOPICS = (
    *(QUESTIONS, PANELS, SESSIONS, DESK, CONTEXT, TIMELINE),
    *(TASKS, TERMINALS, WELCOME, PROMPT, WATCHED),
)
ELSEWHERE = {"KeysScreen", "SettingsScreen", "ConversationReader"}
"""They have their pictures in a file of their own, or are those of what derives from them."""
LIGHT = ("daylight", "linen")
SMALL, LEAST = (60, 20), (40, 10)
READABLE = 4.5
"""The contrast that WCAG asks of text."""


def screens() -> Iterator[type[Screen[Any]]]:
    """Every screen of the program; a base leaves open what it is dismissed with."""
    for package in (tui.ui.screens, tui.ui.desk, tui.ui.widgets):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for found in vars(importlib.import_module(module.name)).values():
                base = getattr(found, "__parameters__", ())
                ours = isinstance(found, type) and found.__module__ == module.name
                if ours and issubclass(found, Screen) and not base:
                    yield found


def test_every_screen_has_a_picture_in_two_themes_and_two_sizes() -> None:
    shown = {p.screen for topic in TOPICS for p in topic.values() if not p.state}
    missing = {screen.__name__ for screen in screens()} - {screen.__name__ for screen in shown}
    assert missing <= ELSEWHERE


@pytest.mark.parametrize(
    "size",
    [pytest.param(SMALL, id="60x20", marks=pytest.mark.slow), pytest.param(LEAST, id="40x10")],
)
@pytest.mark.parametrize(
    "picture",
    [*QUESTIONS.values(), *SESSIONS.values(), *DESK.values(), *TERMINALS.values()],
    ids=[*QUESTIONS, *SESSIONS, *DESK, *TERMINALS],
)
async def test_every_answer_is_in_sight_on_a_small_terminal(
    picture: Picture, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_home(monkeypatch)
    app, drive = picture.make(Stage(tmp_path, monkeypatch, "midnight"))
    async with app.run_test(size=SMALL) as pilot:
        await drive(pilot)
        await pilot.resize_terminal(*size)
        await pilot.pause()
        shown = [choice for choice in app.screen.query(Choice) if displayed(choice)]
        for choice in [*shown, *([app.focused] if app.focused else [])]:
            place = app.screen.find_widget(choice)
            assert place.visible_region == place.region


@pytest.mark.parametrize("name", ["doctor", "permissions"])
async def test_a_dialog_scrolls_in_one_place_on_the_smallest_terminal(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_home(monkeypatch)
    app, drive = PANELS[name].make(Stage(tmp_path, monkeypatch, "midnight"))
    async with app.run_test(size=LEAST) as pilot:
        await drive(pilot)
        box = app.screen.query_one("#box")
        assert box.max_scroll_y == 0 or name == "doctor"
        text = "\n".join(strip.text for strip in lines_of(app))
        assert "ANTHROPIC_API_KEY" in text or name != "doctor"


def lines_of(app: App[Any]) -> list[Strip]:
    """What the terminal shows."""
    return app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    "theme", ["midnight", *(pytest.param(name, marks=pytest.mark.slow) for name in LIGHT)]
)
@pytest.mark.parametrize(
    "picture",
    [QUESTIONS["change"], PANELS["models"], SESSIONS["browser"]],
    ids=["change", "models", "browser"],
)
async def test_placeholders_and_line_numbers_can_be_read(
    picture: Picture, theme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_home(monkeypatch)
    app, drive = picture.make(Stage(tmp_path, monkeypatch, theme))
    async with app.run_test(size=NARROW) as pilot:
        await drive(pilot)
        for strip in lines_of(app):
            for text, style, _ in strip:
                if style and style.color and style.bgcolor and any(map(str.isalnum, text)):
                    ink, ground = map(Color.from_rich_color, (style.color, style.bgcolor))
                    assert contrast(ink, ground) >= READABLE, text


def displayed(widget: Widget) -> bool:
    return all(isinstance(one, Widget) and one.display for one in widget.ancestors_with_self[:-1])

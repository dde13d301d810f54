"""The styles of a widget's parts are computed when it asks for them, and follow its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.app import ComposeResult, RenderResult
from textual.color import Color
from textual.css import stylesheet
from textual.screen import Screen
from textual.widget import Widget

from tui.ui.toolkit.base_app import ThemedApp


class Lamp(Widget):
    COMPONENT_CLASSES: ClassVar[set[str]] = {"lamp--light", "lamp--shade"}
    DEFAULT_CSS = """
    Lamp > .lamp--light { color: red; }
    Lamp.-on > .lamp--light { color: lime; }
    Lamp > .lamp--shade { color: blue; }
    """
    drawn = 0

    def render(self) -> RenderResult:
        self.drawn += 1
        return self.colour("lamp--light").hex

    def colour(self, part: str) -> Color:
        return self.get_component_styles(part).color


class Room(ThemedApp):
    def compose(self) -> ComposeResult:
        yield Lamp()


async def test_only_what_is_asked_for_is_computed() -> None:
    async with Room().run_test() as pilot:
        lamp: Any = pilot.app.query_one(Lamp)
        assert lamp.colour("lamp--light") == Color.parse("red")
        assert list(lamp._component_styles) == ["lamp--light"]
        assert lamp.colour("lamp--shade") == Color.parse("blue")
        with pytest.raises(KeyError):
            lamp.colour("lamp--foot")


async def test_a_widget_whose_part_looks_different_now_is_drawn_again() -> None:
    async with Room().run_test() as pilot:
        lamp = pilot.app.query_one(Lamp)
        await pilot.pause()
        before = lamp.drawn
        lamp.add_class("-on")
        await pilot.pause()
        assert lamp.drawn > before
        assert lamp.colour("lamp--light") == Color.parse("lime")
        before = lamp.drawn
        lamp.add_class("-dusty")
        await pilot.pause()
        assert lamp.drawn == before


async def test_a_screen_with_rules_of_its_own_parses_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = tmp_path / "cellar.tcss"
    sheet.write_text("Cellar Lamp > .lamp--light { color: blue; }")

    class Cellar(Screen[None]):
        CSS_PATH = sheet

        def compose(self) -> ComposeResult:
            yield Lamp()

    async with Room().run_test() as pilot:
        upstairs = pilot.app.query_one(Lamp)
        parsed: list[str] = []
        parse: Any = stylesheet.parse  # pyright: ignore[reportPrivateImportUsage]

        def counted(scope: str, css: str, read_from: object, **more: Any) -> Any:
            parsed.append(str(read_from))
            return parse(scope, css, read_from, **more)

        monkeypatch.setattr(stylesheet, "parse", counted)
        await pilot.app.push_screen(Cellar())
        assert any("cellar.tcss" in one for one in parsed)
        assert not any("Lamp" in one for one in parsed)
        assert pilot.app.screen.query_one(Lamp).colour("lamp--light") == Color.parse("blue")
        assert upstairs.colour("lamp--light") == Color.parse("red")
        pilot.app.theme = "textual-light"
        await pilot.pause()
        assert any("Lamp" in one for one in parsed), "other variables count everywhere"

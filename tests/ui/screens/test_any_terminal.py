"""What every app of the program does with a terminal that is small or must not have colours."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.events import Resize
from textual.geometry import Size
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widgets import OptionList

from tests.support.world import World
from tests.ui.screens.driving import WIDE, running, say, until
from tests.ui.screens.test_recovery import failed
from tui.app.reports.timeline_picture import TEXTURES
from tui.ui.app import HoldfastApp
from tui.ui.screens.help import HelpScreen
from tui.ui.screens.recovery import RecoveryScreen
from tui.ui.toolkit.base_screen import TooSmall
from tui.ui.toolkit.line_filters import ALIKE, ConsoleGlyphs, colourless
from tui.ui.widgets.context_meter import KINDS
from tui.ui.widgets.row_list import RowList

SMALL = (30, 8)
DARK = Color.parse("#0b1019")


async def resize(pilot: Pilot[None], size: tuple[int, int]) -> None:
    await pilot.resize_terminal(*size)
    await pilot.pause()


async def test_what_was_open_is_there_again_when_there_is_room() -> None:
    async with running(World()) as (app, pilot):
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, HelpScreen))
        shown = app.screen
        await resize(pilot, SMALL)
        await until(pilot, lambda: isinstance(app.screen, TooSmall))
        await resize(pilot, (29, 7))
        await pilot.press("escape", "enter", "x")
        assert [type(one) for one in app.screen_stack].count(TooSmall) == 1
        await resize(pilot, WIDE)
        await until(pilot, lambda: app.screen is shown)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is app.chat)
        await pilot.press("x")
        assert app.chat.prompt.text == "x"


async def test_what_opens_over_it_comes_first_and_it_goes_afterwards() -> None:
    async with running(World()) as (app, pilot):
        await resize(pilot, SMALL)
        await until(pilot, lambda: isinstance(app.screen, TooSmall))
        above = ModalScreen[None]()
        await app.push_screen(above)
        await resize(pilot, WIDE)
        assert app.screen is above
        above.dismiss()
        await until(pilot, lambda: app.screen is app.chat)


async def test_a_size_that_the_terminal_had_is_not_laid_out_for() -> None:
    async with running(World()) as (app, pilot):
        app.chat.post_message(Resize(Size(70, 20), Size(70, 20)))
        await pilot.pause()
        assert app.chat.size == Size(*WIDE)
        assert app.chat.query_one("#status").region.bottom == WIDE[1]


async def test_exactly_enough_is_enough() -> None:
    async with running(World()) as (app, pilot):
        await resize(pilot, (40, 10))
        assert app.screen is app.chat
        await resize(pilot, (40, 9))
        await until(pilot, lambda: isinstance(app.screen, TooSmall))


@pytest.mark.parametrize(
    ("style", "bare"),
    [
        ("bold #ff0000", "bold"),
        ("#0b1019 on #62d2c6", "reverse"),  # it marks a place
        ("#dde5f0 on #101725", "none"),  # only another surface
        ("red on default", "none"),
        ("reverse #0b1019 on #62d2c6", "reverse"),
        ("italic underline dim", "italic underline dim"),
    ],
)
def test_a_style_without_colours_still_says_what_it_said(style: str, bare: str) -> None:
    assert colourless(Style.parse(style), DARK) == Style.parse(bare)


def test_links_and_actions_survive_without_colours() -> None:
    style = Style(color="red", link="https://example.org", meta={"@click": "app.bell"})
    kept = colourless(style, DARK)
    assert kept.color is None
    assert kept.link == "https://example.org"
    assert kept.meta == {"@click": "app.bell"}


def cursor_row(app: HoldfastApp) -> list[Style]:
    rows = app.screen.query_one(RowList)
    strip = rows.render_line(rows.cursor - round(rows.scroll_y))
    return [segment.style for segment in strip if segment.style and segment.text.strip()]


async def test_the_row_under_the_cursor_is_known_without_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    world = World()
    for number in range(3):
        world.add_row(f"session {number}", hours=number + 1)
    async with running(world) as (app, pilot):
        await pilot.press("f3")
        await until(pilot, lambda: bool(app.screen.query(RowList)))
        await pilot.press("down")
        await until(pilot, lambda: bool(cursor_row(app)))
        styles = cursor_row(app)
        assert all(style.reverse for style in styles)


async def test_the_choice_under_the_cursor_is_known_without_colours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    world = World()
    world.scripts.append(failed("invalid_request"))
    async with running(world) as (app, pilot):
        await say(pilot, "go")
        await until(pilot, lambda: isinstance(app.screen, RecoveryScreen))
        await pilot.press("down")
        ways = app.screen.query_one("#ways", OptionList)
        await until(pilot, lambda: ways.highlighted == 1)
        background = ways.background_colors[1]

        def reverse(row: int) -> set[bool]:
            drawn = app.get_line_filters()[0].apply(list(ways.render_line(row)), background)
            return {bool(style.reverse) for text, style, _ in drawn if style and text.strip()}

        assert [reverse(row) for row in range(3)] == [{False}, {True}, {False}]


async def test_the_console_is_sent_no_glyph_that_its_fonts_lack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for kind, drawn in (("xterm", "›"), ("linux", "›")):
        monkeypatch.setenv("TERM", kind)
        async with running(World()) as (app, pilot):
            app.chat.prompt.text = "".join(ALIKE)
            await pilot.pause()
            picture = app.export_screenshot()
            assert drawn in picture
            assert (kind == "linux") != bool(ALIKE.keys() & set(picture))
    for fills in (TEXTURES.values(), [*(glyph for glyph, _ in KINDS.values()), "░"]):
        shown = [ALIKE.get(one, one) for one in fills]
        assert len({*shown}) == len(shown), "without colors, each part has a fill of its own"
    assert all(cell_len(lacking) == cell_len(instead) for lacking, instead in ALIKE.items())


def test_the_console_is_sent_no_links() -> None:
    segments = [Segment(text, Style(bold=True, link="https://it")) for text in ("it", "✓")]
    drawn = ConsoleGlyphs().apply(segments, DARK)
    assert [segment.text for segment in drawn] == ["it", "+"]
    assert all(segment.style == Style(bold=True) for segment in drawn)

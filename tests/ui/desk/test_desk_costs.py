"""What a frame of the desk costs: with two hundred sessions, only lines that changed are drawn."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from textual.dom import DOMNode
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widgets import Input

from tests.support.desk import FakeHost
from tests.ui.desk.samples import QUESTION, ago, at_cursor, call, desk, row
from tests.ui.screens.driving import WIDE, until
from tui.desk.host import DeskRow
from tui.ui.desk import desk_rows, desk_screen
from tui.ui.desk.desk_list import DeskList
from tui.ui.toolkit.late_stylesheet import LateStylesheet

pytestmark = pytest.mark.usefixtures("painted")

SESSIONS, STREAMING = 200, 20


def streaming(number: int, step: int) -> DeskRow:
    detail = f"answering · {step} tokens"
    started = ago(number + 1)
    return row(f"w{number:03}", "working", f"work {number:03}", detail=detail, started=started)


def busy() -> FakeHost:
    rows = [streaming(number, 0) for number in range(SESSIONS - 2)]
    rows.append(row("q1", "waiting", "one", asked=call()))
    rows.append(row("q2", "waiting", "two", asked=QUESTION, since=ago(9)))
    return FakeHost("", rows)


class Counts:
    """Lines that were drawn, and lines of which the words were made."""

    drawn = 0
    worded = 0


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    counted, line, words = Counts(), DeskList.render_line, desk_rows.line_parts

    def render_line(self: DeskList, y: int) -> Strip:
        counted.drawn += 1
        return line(self, y)

    def line_parts(*args: object, **options: object) -> object:
        counted.worded += 1
        return words(*args, **options)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(desk_screen, "TICK_S", 3600)  # what time alone changes is not counted
    monkeypatch.setattr(DeskList, "render_line", render_line)
    monkeypatch.setattr(desk_screen.desk_rows, "line_parts", line_parts)
    return counted


@contextmanager
def counting(counts: Counts) -> Generator[Counts]:
    counts.drawn = counts.worded = 0
    yield counts


async def settled(pilot: Pilot[None], counts: Counts | None = None, least: int = 0) -> None:
    """Let the app draw: at least so many lines, and whatever else there is."""
    await until(pilot, lambda: counts is None or counts.drawn >= least)
    for _ in range(3):
        await pilot.pause()


async def test_a_key_draws_the_lines_that_the_cursor_leaves_and_reaches(counts: Counts) -> None:
    async with desk([busy()], size=WIDE) as (app, pilot):
        await pilot.press("down", "down", "down")
        await settled(pilot)
        with counting(counts):
            await pilot.press("down")
            await settled(pilot, counts, 2)
        assert at_cursor(app) == "work 002"
        assert counts.drawn <= 2
        assert counts.worded == 0


async def test_a_burst_draws_only_what_changed_and_is_in_sight(counts: Counts) -> None:
    host = busy()
    async with desk([host], size=WIDE) as (_, pilot):
        await settled(pilot)
        with counting(counts):
            host.put(*(streaming(number, 1) for number in range(0, SESSIONS - 2, 40)))
            await settled(pilot, counts, 1)
        assert counts.drawn == counts.worded == 1  # the others are below
        with counting(counts):
            host.put(*(streaming(number, 2) for number in range(5)))
            await settled(pilot, counts, 5)
        assert counts.drawn == counts.worded == 5


async def test_five_updates_a_second_of_twenty_sessions_cost_no_more_than_their_lines(
    counts: Counts,
) -> None:
    host = busy()
    async with desk([host], size=WIDE) as (_, pilot):
        await settled(pilot)
        with counting(counts):
            for step in range(5):
                host.put(*(streaming(number, step + 1) for number in range(STREAMING)))
                await settled(pilot, counts, counts.drawn + 1)
        height = WIDE[1]
        assert counts.worded <= 5 * min(STREAMING, height)
        assert counts.drawn <= 5 * min(STREAMING, height)


async def test_an_update_that_changes_nothing_draws_nothing(counts: Counts) -> None:
    host = busy()
    async with desk([host], size=WIDE) as (_, pilot):
        await settled(pilot)
        with counting(counts):
            host.put()
            await settled(pilot)
        assert counts.drawn == counts.worded == 0


async def test_a_hidden_desk_draws_nothing_until_it_is_seen_again(counts: Counts) -> None:
    host = busy()
    async with desk([host], size=WIDE) as (app, pilot):
        await pilot.press("enter")
        await settled(pilot)
        with counting(counts):
            host.put(*(streaming(number, 1) for number in range(STREAMING)))
            await settled(pilot)
        assert counts.drawn == counts.worded == 0
        app.screen.dismiss(None)
        await settled(pilot, counts, 1)
        assert counts.drawn > 0


async def test_a_filter_that_matches_nothing_gives_styles_to_no_more_than_it_swaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    applied: list[object] = []
    apply: Any = LateStylesheet.apply  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def counted(self: LateStylesheet, node: DOMNode, **options: Any) -> None:
        applied.append(node)
        apply(self, node, **options)

    async with desk([busy()], size=WIDE) as (app, pilot):
        await pilot.press("slash")
        await settled(pilot)
        monkeypatch.setattr(LateStylesheet, "apply", counted)
        for _ in range(2):  # the second leaves all as it is
            applied.clear()
            await pilot.press("Ω")
            await until(pilot, lambda: app.screen.has_class("-empty"))
            assert len([one for one in applied if not isinstance(one, Input)]) < 20

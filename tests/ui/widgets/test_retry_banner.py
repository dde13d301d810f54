"""The banner over the prompt: what it says at every width, and in which time zone."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import get_args

import pytest
from textual.app import App, ComposeResult
from textual.widgets import Input

from tests.support.clock import FakeClock
from tui.core.errors import ErrorClass, words
from tui.core.facts import RetryScheduled
from tui.ui.widgets.retry_banner import RetryBanner, span

LONG = "The server limits the number of requests per minute of this organisation"


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Held(App[None]):
    """A banner over a prompt."""

    def __init__(self, banner: RetryBanner) -> None:
        super().__init__()
        self.banner = banner
        self.asked: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.banner
        yield Input(id="prompt")

    def on_mount(self) -> None:
        self.query_one("#prompt").focus()

    def on_retry_banner_asked(self, message: RetryBanner.Asked) -> None:
        self.asked.append(message.wish)


@asynccontextmanager
async def held(width: int = 100) -> AsyncGenerator[tuple[FakeClock, RetryBanner, Held]]:
    clock = FakeClock()
    app = Held(RetryBanner(clock))
    async with app.run_test(size=(width, 10)):
        yield clock, app.banner, app


def said(banner: RetryBanner) -> list[str]:
    banner.screen._refresh_layout()  # pyright: ignore[reportPrivateUsage] - else at the next pause
    return [strip.text.strip() for strip in banner.render_lines(banner.size.region)]


def wait(banner: RetryBanner, *, seconds: float = 4) -> None:
    banner.wait(RetryScheduled(2, 3, seconds, LONG, None, "rate_limit"))


async def test_it_is_not_there_until_something_is_waited_for() -> None:
    async with held() as (_, banner, _app):
        assert not banner.display
        wait(banner)
        assert banner.display
        banner.done()
        assert not banner.display


@pytest.mark.parametrize("width", [40, 60, 80, 100, 160])
async def test_which_and_when_and_the_way_out_are_said_at_every_width(width: int) -> None:
    async with held(width) as (_, banner, _app):
        wait(banner)
        banner.other = "claude-haiku-5-5"
        text = " ".join(said(banner))
        assert "rate limited · retry 2 of 3 in 4 s" in text
        assert "/retry now" in text
        assert banner.size.height <= 2
        assert (LONG in text) == (width == 160)


async def test_it_counts_down_with_the_clock() -> None:
    async with held() as (clock, banner, _):
        wait(banner)
        for elapsed, left in ((0.0, 4), (0.5, 4), (0.6, 3), (2.0, 1), (5.0, 0)):
            clock.elapsed += elapsed
            banner.tick()
            assert banner.remaining == left
        assert "retry 2 of 3 now" in " ".join(said(banner))


async def test_parked_says_the_time_of_the_wall_clock_and_that_the_program_may_be_closed() -> None:
    async with held(140) as (clock, banner, _app):
        banner.park(clock.now() + timedelta(minutes=23))
        (line,) = said(banner)
        assert "rate limited until 09:23 (in 23 min)" in line
        assert "continues by itself" in line
        assert "you can close the program" in line
        clock.start += timedelta(minutes=22)  # a laptop slept: the other clock stood still
        banner.tick()
        assert "(in 60 s)" in said(banner)[0]


async def test_what_is_waited_for_is_not_cut_where_it_fits_alone() -> None:
    async with held(44) as (clock, banner, _app):
        banner.park(clock.now() + timedelta(minutes=23))
        head = said(banner)[0]
        assert "…" not in head
        assert head.rstrip().endswith("(in 23 min)")


async def test_parked_until_another_day_names_it() -> None:
    async with held(140) as (clock, banner, _app):
        banner.park(clock.now() + timedelta(hours=20))
        assert "until Sun 22 Nov 05:00 (in 20 h)" in said(banner)[0]


async def test_a_recovery_step_has_no_countdown() -> None:
    async with held() as (_, banner, _app):
        banner.recover("context full", "compacting 1 of 3 …")
        assert said(banner)[0].startswith("↻ context full · compacting 1 of 3 …")
        assert not banner.check_action("ask", ("now",))


async def test_f_is_a_key_only_where_there_is_another_model() -> None:
    async with held() as (_, banner, _app):
        wait(banner)
        assert banner.check_action("ask", ("now",))
        assert not banner.check_action("ask", ("other",))
        banner.other = "claude-haiku-5-5"
        assert banner.check_action("ask", ("other",))
        banner.done()
        assert not banner.check_action("ask", ("now",))


async def test_the_focus_goes_back_to_the_prompt() -> None:
    async with held() as (_, banner, app):
        wait(banner)
        banner.focus()
        banner.done()
        assert app.focused is app.query_one("#prompt")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "now"),
        (1, "in 1 s"),
        (119, "in 119 s"),
        (120, "in 2 min"),
        (1380, "in 23 min"),
        (3601, "in 1 h 1 min"),
        (7200, "in 2 h"),
        (3 * 86_400, "in 3 days"),
    ],
)
def test_how_far_off_a_moment_is(seconds: int, text: str) -> None:
    assert span(seconds) == text


def test_every_class_has_words() -> None:
    for name in get_args(ErrorClass):
        assert "_" not in words(name)
    assert words("brand_new") == "brand new"

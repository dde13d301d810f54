"""No frame waits behind others, whatever the terminal does: slow, silent, or no longer reading."""

from __future__ import annotations

import threading
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.clock import PATIENCE_S, FakeClock
from tui.ui.toolkit.frame_pacing import FramePacing

FRAME = 2_000


class Line:
    """A terminal behind a line of `rate` characters a second; `answers` tells whether it knows
    the question. The pipe before it takes everything at once, unless it is `full`."""

    def __init__(self, rate: float, *, answers: bool = True, full: bool = False) -> None:
        self.clock = FakeClock()
        self.pacing = FramePacing(self.clock.monotonic)
        self.rate, self.answers, self.full = rate, answers, full
        self.free_at = 0.0
        self.questions: deque[float] = deque()
        self.sent = 0
        self.delays: list[float] = []
        """Of each frame: how long after it was made it was drawn."""

    def frame(self, size: int = FRAME) -> bool:
        """Send a frame if it may be sent."""
        if not self.pacing.ready():
            return False
        self.sent += 1
        self.pacing.sent(size)
        self.free_at = max(self.free_at, self.clock.elapsed) + size / self.rate
        self.delays.append(self.free_at - self.clock.elapsed)
        if not self.full:
            self.pacing.drained(self.sent)
        if self.pacing.asks() and self.answers:
            self.questions.append(self.free_at)
        return True

    def pass_time(self, seconds: float) -> None:
        until = self.clock.elapsed + seconds
        while self.questions and self.questions[0] <= until:
            self.clock.elapsed = self.questions.popleft()
            self.pacing.answered()
        self.clock.elapsed = until

    def stream(self, seconds: float, size: int = FRAME) -> None:
        """Try a frame thirty times a second."""
        for _ in range(int(seconds * 30)):
            self.frame(size)
            self.pass_time(1 / 30)


def test_a_fast_terminal_gets_every_frame() -> None:
    line = Line(10_000_000)
    line.stream(10)
    assert line.sent == 300


@pytest.mark.parametrize("rate", [2_000, 10_000, 50_000])
def test_a_slow_line_never_has_more_than_a_few_frames_on_their_way(rate: int) -> None:
    line = Line(rate)
    line.frame(10)
    line.pass_time(1)  # a first answer tells how fast the line can be
    line.stream(60)
    alone = FRAME / rate
    assert max(line.delays[8:]) <= 2 * alone + 0.2
    assert line.sent >= 60 / alone / 3  # and the line is not left idle


def test_a_terminal_that_does_not_answer_gets_every_frame_after_one_question() -> None:
    line = Line(10_000_000, answers=False)
    assert line.frame()
    assert all(not line.pacing.asks() for _ in range(5))
    line.stream(10)
    assert line.sent == 301


def test_a_full_pipe_holds_frames_until_it_takes_more() -> None:
    line = Line(10_000, full=True, answers=False)
    assert line.frame()
    line.pass_time(5)
    assert not line.frame()
    woken: list[bool] = []
    line.pacing.wake = lambda: woken.append(True)
    line.pacing.drained(1)
    assert woken
    assert line.frame()


def test_a_terminal_that_answers_no_more_gets_every_frame_again_soon() -> None:
    """Another one has taken its place: a session of `dtach` or `mosh` is shown elsewhere."""
    line = Line(10_000_000)
    line.stream(2)
    line.answers = False
    line.questions.clear()
    line.stream(20)
    before = line.sent
    line.stream(5)
    assert line.sent - before == 150


def test_one_lost_answer_delays_a_frame_for_a_moment() -> None:
    line = Line(10_000_000)
    line.stream(2)
    line.questions.clear()
    line.stream(25)
    before = line.sent
    line.stream(5)
    assert line.sent - before == 150


def test_an_answer_that_nobody_asked_for_changes_nothing() -> None:
    line = Line(10_000_000)
    for _ in range(3):
        line.pacing.answered()
    assert line.frame()


@given(st.lists(st.sampled_from(["frame", "answer", "drain", "wait", "restart"]), max_size=200))
def test_in_the_end_a_frame_is_let_through_whatever_comes_before(
    steps: list[str],
) -> None:
    line = Line(10_000, full=True)
    for step in steps:
        match step:
            case "frame":
                line.frame()
            case "answer":
                line.pacing.answered()
            case "drain":
                line.pacing.drained(line.sent)
            case "wait":
                line.clock.elapsed += 0.3
            case _:
                line.pacing.restart()
                line.sent = 0
    line.pacing.drained(line.sent)
    assert any(line.pacing.ready() or line.pass_time(1) for _ in range(20))


def test_leaving_waits_for_the_answer_that_is_on_its_way_and_asks_no_more() -> None:
    line = Line(10_000_000)
    line.frame()
    line.pass_time(1)
    line.frame()
    leaving = threading.Thread(target=line.pacing.leave)
    leaving.start()
    line.pass_time(1)
    leaving.join(PATIENCE_S)
    assert not leaving.is_alive()
    line.pacing.sent(FRAME)
    assert not line.pacing.asks()
    line.pacing.restart()
    line.pacing.sent(FRAME)
    assert line.pacing.asks()


def test_leaving_a_terminal_that_never_answered_does_not_wait() -> None:
    line = Line(10_000_000, answers=False)
    line.frame()
    line.pacing.leave()

"""Answers without a bill, as the records tell of them."""

from __future__ import annotations

from typing import Any

from tui.context.failed_attempts import LostAnswers
from tui.session.records import Record


def lost_in(*kinds: tuple[str, str]) -> int:
    """How many answers are lost, in records of these types and models."""
    answers = LostAnswers()
    records = [
        Record(id=f"r{number}", type=kind, parent=None, time="2026-12-01T00:00:00Z", data=data)
        for number, (kind, model) in enumerate(kinds)
        for data in [dict[str, Any](model=model)]
    ]
    return sum(map(answers.take, records))


def test_a_request_that_another_profile_was_asked_instead_has_lost_no_answer() -> None:
    own, other = ("request", "m"), ("request", "@aws/m")
    answered = ("assistant", "@aws/m")
    assert lost_in(own, other, answered, own, other, answered) == 0


def test_an_answer_that_a_kill_cut_off_is_lost_whoever_was_asked() -> None:
    own, other = ("request", "m"), ("request", "@aws/m")
    assert lost_in(own, own, ("assistant", "m")) == 1
    assert lost_in(own, other, own, other, ("assistant", "@aws/m")) == 1

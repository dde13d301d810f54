"""The program with its default model before a server that binds thinking and prices its cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_session import COMMANDS, Session, play
from tests.support.direct import Direct
from tests.support.ideal_client import ideal_dollars


def check(session: Session, turns: int) -> None:
    assert [turn.stdout for turn in session.turns] == ["All ten commands were run.\n"] * turns
    assert (session.requests, session.refused) == (turns * (COMMANDS + 1), 0)
    assert session.thoughts == session.requests - 1
    assert session.dollars <= 1.05 * session.ideal


@pytest.mark.slow
def test_ten_commands_in_one_turn_are_never_refused(tmp_path: Path) -> None:
    check(play(tmp_path, 1), 1)


@pytest.mark.slow
def test_four_turns_of_ten_commands_cost_at_most_the_goal(tmp_path: Path) -> None:
    session = play(tmp_path, 4)
    check(session, 4)
    assert session.dollars <= 0.42


@pytest.mark.parametrize("marked", [True, False])
def test_the_ideal_client_marks_what_it_sends(marked: bool) -> None:
    mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
    one = Direct.begun(priced=True, binding=False)
    one.body["system"] = [{"type": "text", "text": "long " * 1000, **mark}]
    for _ in range(5):
        one.messages[-1]["content"][-1] |= mark
        one.send()
        one.messages[-2]["content"][-1].pop("cache_control", None)
        one.say("long " * 500)
    paid, ideal = one.api.cache.dollars, ideal_dollars(one.api.priced)
    assert (abs(paid - ideal) < 1e-9) == marked
    assert ideal <= paid + 1e-9


def test_the_ideal_client_pays_nothing_for_edits() -> None:
    one = Direct.begun(priced=True, binding=False)
    for number in range(5):
        one.body["system"] = [{"type": "text", "text": f"{number} " + "long " * 1000}]
        one.body["cache_control"] = {"type": "ephemeral"}
        one.send()
        one.say()
    assert ideal_dollars(one.api.priced) < 0.7 * one.api.cache.dollars

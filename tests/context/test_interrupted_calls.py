"""Calls without a result: never started, finished with the result lost, or unknown."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.wild import call, text
from tui.context.interrupted_calls import (
    FileState,
    Interrupted,
    interrupted_calls,
    unsettled_calls,
    with_file,
)
from tui.session.records import Record

TIME = "2026-11-21T09:00:00.000Z"


def records(*told: tuple[str, dict[str, Any]]) -> list[Record]:
    made: list[Record] = []
    for number, (kind, data) in enumerate(told):
        parent = made[-1].id if made else None
        made.append(Record(kind, f"r{number}", parent, TIME, data))
    return made


def prompt(words: str = "go") -> tuple[str, dict[str, Any]]:
    return "user", {"content": [text(words)], "text": words}


def answer(*blocks: Any) -> tuple[str, dict[str, Any]]:
    return "assistant", {"content": list(blocks)}


def intent(id_: str, effect: str = "run", **more: Any) -> tuple[str, dict[str, Any]]:
    return "intent", {"call_id": id_, "tool": "run_command", "effect": effect, **more}


def output(id_: str) -> tuple[str, dict[str, Any]]:
    return "tool_result", {"call_id": id_, "content": [text("ok")], "is_error": False}


def outcomes(*told: tuple[str, dict[str, Any]]) -> dict[str, str]:
    return {c.call_id: c.outcome for c in interrupted_calls(records(*told))}


RUN = call("a", "run_command", {"command": "make  all"})


def test_answered_calls_are_not_interrupted() -> None:
    assert outcomes(prompt(), answer(RUN), intent("a"), output("a"), answer(text("so"))) == {}


def test_without_an_intent_it_never_started() -> None:
    assert outcomes(prompt(), answer(RUN)) == {"a": "never_started"}


def test_with_an_intent_and_nothing_after_it_is_unknown() -> None:
    found = interrupted_calls(records(prompt(), answer(RUN), intent("a")))
    assert found == [
        Interrupted(
            call_id="a",
            record="r1",
            tool="run_command",
            label="make all",
            effect="run",
            outcome="unknown",
            started=TIME,
        )
    ]


def test_calls_run_in_order_so_the_one_before_a_started_one_has_finished() -> None:
    calls = answer(RUN, call("b", "run_command"), call("c", "run_command"))
    assert outcomes(prompt(), calls, intent("a"), intent("b")) == {
        "a": "finished_result_lost",
        "b": "unknown",
        "c": "never_started",
    }


def test_reads_run_side_by_side_and_prove_nothing() -> None:
    calls = answer(call("a"), call("b"))
    assert outcomes(prompt(), calls, intent("a", "read"), intent("b", "read")) == {
        "a": "unknown",
        "b": "unknown",
    }


def test_where_the_model_went_on_the_call_had_finished() -> None:
    found = interrupted_calls(records(prompt(), answer(RUN), intent("a"), answer(text("so"))))
    assert [(c.outcome, c.settled) for c in found] == [("finished_result_lost", True)]


def test_a_call_that_was_gone_on_from_needs_no_card() -> None:
    told = (prompt(), answer(RUN), intent("a"), prompt("again"), answer(call("b")), intent("b"))
    found = interrupted_calls(records(*told))
    assert [(c.call_id, c.outcome, c.settled) for c in found] == [
        ("a", "unknown", True),
        ("b", "unknown", False),
    ]


def test_of_another_agents_calls_nothing_is_known() -> None:
    told = (prompt(), answer(call("a")), output("a"), answer(call("b")))
    assert outcomes(*told) == {"b": "unknown"}


def test_the_record_of_the_intent_knows_best() -> None:
    more = {"label": "make", "path": "/w/x", "before_sha256": "00"}
    (found,) = interrupted_calls(records(prompt(), answer(RUN), intent("a", "write", **more)))
    assert (found.label, found.path, found.before_sha256) == ("make", "/w/x", "00")


OLD, NEW = (sha256(words).hexdigest() for words in (b"old", b"new"))


@pytest.mark.parametrize(
    ("before", "now", "file", "outcome"),
    [
        (OLD, NEW, "written", "finished_result_lost"),
        (OLD, OLD, "unchanged", "unknown"),
        (OLD, None, "changed", "unknown"),
        (OLD, "ff", "changed", "unknown"),
        (None, None, "unchanged", "unknown"),
        (None, NEW, "written", "finished_result_lost"),
        (None, OLD, "changed", "unknown"),
        ("", OLD, "unknown", "unknown"),
    ],
)
def test_a_write_is_told_from_its_file(
    before: str | None, now: str | None, file: FileState, outcome: str
) -> None:
    write = call("a", "write_file", {"path": "x.py", "content": "new"})
    known = {} if before == "" else {"before_sha256": before}
    (found,) = interrupted_calls(records(prompt(), answer(write), intent("a", "write", **known)))
    assert found.path == "x.py"
    seen = with_file(found, now)
    assert (seen.file, seen.outcome) == (file, outcome)


def test_a_file_says_nothing_of_a_write_that_never_started() -> None:
    write = call("a", "write_file", {"path": "x.py", "content": "new"})
    (found,) = interrupted_calls(records(prompt(), answer(write)))
    assert with_file(found, NEW) == found


@pytest.mark.parametrize("odd", [None, 5, [], "x", {}])
def test_odd_records_do_no_harm(odd: Any) -> None:
    told = [
        ("assistant", {"content": odd}),
        ("assistant", {"content": [{"type": "tool_use", "id": odd, "name": odd, "input": odd}]}),
        ("intent", {"call_id": odd, "tool": odd, "effect": odd, "path": odd}),
        ("tool_result", {"call_id": odd}),
        ("user", {"text": odd}),
    ]
    for length in range(len(told) + 1):
        for found in interrupted_calls(records(*told[:length])):
            assert with_file(found, None).outcome in ("never_started", "unknown")


_STEPS = (
    prompt(),
    answer(text("so")),
    answer(RUN),
    answer(RUN, call("b", "run_command")),
    intent("a"),
    intent("b"),
    output("a"),
    output("b"),
    ("interrupt", {"reason": "user"}),
)


@given(st.lists(st.sampled_from(_STEPS), max_size=9))
def test_unsettled_calls_are_those_of_the_last_answer(
    steps: list[tuple[str, dict[str, Any]]],
) -> None:
    branch = records(*steps)
    all_ = interrupted_calls(branch)
    assert unsettled_calls(branch) == [found for found in all_ if not found.settled]

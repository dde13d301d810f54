"""What a record tells again: the fact that was published when it was written."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core import facts
from tui.core.fact_words import words
from tui.core.facts.record_form import form_of
from tui.core.messages import Usage
from tui.core.retold import retold, retold_lines
from tui.session.field_types import FIELD_TYPES, leave_out_odd
from tui.session.records import Record

ONLY_FOR_THE_PROGRAM = {
    "file_change": "what a sub-agent did, in /diff",
    "frame": "what every request begins with, in F2",
    "job": "a process, to be found again after a kill",
    "unused": "a part of the cost, everywhere",
    "request": "one line for each request, in the debug view and `sessions requests`",
}
"""Records that tell nobody anything, and where what they hold is seen."""


def record(type_: str, **data: Any) -> Record:
    return Record(type_, "1", None, "2026-11-21T09:00:00.000Z", data)


def test_every_record_is_told_again_or_has_a_reason_why_not() -> None:
    silent = {type_ for type_ in FIELD_TYPES if not next(retold([record(type_)]))[1]}
    assert silent - {"notice"} == {*ONLY_FOR_THE_PROGRAM}


def durable(kind: type[facts.DurableFact]) -> Iterator[type[facts.DurableFact]]:
    """The classes of durable facts."""
    for one in kind.__subclasses__():
        yield from durable(one)
        if one is not facts.RecordFact:
            yield one


@pytest.mark.parametrize("kind", [*durable(facts.DurableFact)], ids=lambda one: one.__name__)
def test_what_is_written_is_read_again(kind: type[facts.DurableFact]) -> None:
    assert kind.recorded_as() in {*FIELD_TYPES, "reload", "task"}
    empty = kind.of_record({})
    written = empty.to_record()
    assert kind.of_record(written) == empty
    assert json.loads(json.dumps(written)) == written
    assert json.dumps(empty.to_json())


def value_of(type_: Any) -> Any:
    """A value that is not empty, as JSON has it; None where any will do."""
    origin, args = get_origin(type_), get_args(type_)
    if origin is Annotated or origin in {Union, UnionType}:
        return value_of(args[0])
    if origin is Literal:
        return args[0]
    kind = origin or type_
    if kind is Any:
        return None
    if kind is dict:
        return {"x": value_of(args[1])}
    if kind is Usage or not issubclass(kind, Collection) or kind is str:
        return {str: "x", int: 2, float: 1.5, bool: True, Usage: {"input_tokens": 1}}[kind]
    return [value_of(args[0])]


@pytest.mark.parametrize("kind", [*durable(facts.DurableFact)], ids=lambda one: one.__name__)
def test_what_a_class_writes_has_the_types_that_a_file_may_hold(
    kind: type[facts.DurableFact],
) -> None:
    types = {one.name: one.type for one in msgspec.structs.fields(kind)}
    data = {key: value_of(types[name]) for key, name, _ in form_of(kind).written}
    assert leave_out_odd(kind.recorded_as(), data) == []


def test_a_field_for_the_record_alone_is_not_told() -> None:
    raised = facts.ErrorRaised("auth", "No key.", True, status=401, streamed="So far")
    assert "streamed" not in raised.to_json()
    assert raised.to_record() == {
        "error_class": "auth",
        "message": "No key.",
        "hint": "",
        "status": 401,
        "request_id": None,
        "text": "So far",
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(st.sampled_from(sorted(FIELD_TYPES)), st.data())
def test_no_field_of_a_record_stops_it_from_being_told(type_: str, draw: st.DataObject) -> None:
    names = st.sampled_from([*FIELD_TYPES[type_], "kind", "unknown"])
    data = draw.draw(st.dictionaries(names, JSON))
    leave_out_odd(type_, data)
    for _, fact in retold([record(type_, **data)]):
        if fact:
            words(fact)
            retold_lines(fact)


@pytest.mark.parametrize(
    ("type_", "data", "line"),
    [
        ("break", {"reason": "mask", "by": "person", "tokens": 1200, "thoughts": 2},
         "The cache restarts (item hidden): 1,200 tokens cached again once, 2 thoughts left out."),
        ("memory", {"path": "/m/MEMORY.md", "added": 2}, "Saved 2 lines to memory: /m/MEMORY.md."),
        ("uncompaction", {"target": "1"},
         "Sending the full conversation again. /compact summarizes it again."),
        ("directive", {"think": False, "verbose": False, "elevated": True},
         "ELEVATED is on: no prompts; blocked commands stay blocked."),
        ("feature", {"feature": "effort"},
         "The server doesn't support effort levels. Sending the request again without that."),
        ("notice", {"kind": "changed", "text": "Changed since you last saw it: a.py (by a command)."
         " Read it again before you rely on it."},
         "Changed since the model last saw it: a.py (by a command)."),
        ("pin", {"target": "1", "pinned": True}, "Pinned."),
        ("overlay", {"target": "1", "view": "masked", "by": "person"},
         "One item is hidden from the model, starting with the next request."),
        ("mcp", {"off": {"docs": ["find", "list"]}},
         "Tools that the model does not get: mcp__docs__find, mcp__docs__list."),
        ("rewind", {"target": "1"}, "Rewound. Later messages are still in the session file."),
    ],
)  # fmt: skip
def test_what_was_done_to_the_context_is_told_again(
    type_: str, data: dict[str, Any], line: str
) -> None:
    ((_, fact),) = retold([record(type_, **data)])
    assert fact
    assert retold_lines(fact) == (line,)


def test_results_that_were_pruned_together_are_told_once() -> None:
    pruned = record("overlay", target="1", view="pruned", by="policy")
    told = [fact for _, fact in retold([pruned, pruned, record("note", text="x"), pruned])]
    assert told == [facts.Pruned(2, 0), None, facts.Note("x"), facts.Pruned(1, 0)]

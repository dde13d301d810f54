"""Facts as plain data and back: every class of them, in full, with whatever is in it."""

from __future__ import annotations

import json
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.core import facts
from tui.core.facts import Fact, Note, SubAgentEvent, Told, WireFact
from tui.core.facts.lines import UnknownFactError, fact_of, fact_of_json, plain_of
from tui.core.messages import Usage

KINDS: list[type[WireFact]] = [
    *get_args(Fact),
    Note,
    facts.CallBegan,
    facts.Rewound,
    facts.TurnInterrupted,
]
TEXTS = st.text(max_size=8)
NUMBERS = st.integers(-(2**60), 2**60)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=4,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    int: NUMBERS,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    Any: JSON,
    NoneType: st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
    Usage: st.builds(Usage, NUMBERS, NUMBERS, NUMBERS),
}


def values(type_: Any) -> st.SearchStrategy[Any]:
    """Any values of a field of this type."""
    origin, args = get_origin(type_), get_args(type_)
    if type_ in PLAIN:
        return PLAIN[type_]
    if origin is Annotated:
        return values(args[0])
    if origin in {Union, UnionType}:
        return st.one_of([values(one) for one in args])
    if origin is Literal:
        return st.sampled_from(args)
    if origin is dict:
        return st.dictionaries(TEXTS, values(args[1]), max_size=2)
    if origin is tuple:
        return st.lists(values(args[0]), max_size=2).map(tuple)
    if type_ is WireFact:
        return st.sampled_from([one for one in KINDS if one is not SubAgentEvent]).flatmap(made)
    return st.lists(values(args[0]), max_size=2)


def made(kind: type[WireFact]) -> st.SearchStrategy[WireFact]:
    """Any facts of a class; a field may be left as a new one has it."""
    hints = get_type_hints(kind, include_extras=True)
    fields: dict[str, st.SearchStrategy[Any]] = {}
    for one in msgspec.structs.fields(kind):
        strategy = values(hints[one.name])
        if not one.required:
            default = one.default if one.default_factory is msgspec.NODEFAULT else None
            strategy |= st.just(default) if default is not None else st.nothing()
        fields[one.name] = strategy
    return st.fixed_dictionaries(fields).map(lambda given: kind(**given))


@given(st.sampled_from(KINDS).flatmap(made))
def test_a_fact_comes_back_as_it_was(fact: WireFact) -> None:
    back = fact_of(json.loads(json.dumps(plain_of(fact))))
    assert back == fact
    assert type(back) is type(fact)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_class_has_a_name_of_its_own(kind: type[WireFact]) -> None:
    names = [plain_of(one)["type"] for one in map(_any_of, KINDS)]
    assert names.count(plain_of(_any_of(kind))["type"]) == 1


def _any_of(kind: type[WireFact]) -> WireFact:
    return SubAgentEvent("1", "a", facts.TextDelta("x")) if kind is SubAgentEvent else empty(kind)


def empty(kind: type[WireFact]) -> WireFact:
    """A fact of a class, with nothing in it that it can do without."""
    return kind(*[None for one in msgspec.structs.fields(kind) if one.required])


def test_what_json_hides_is_told_too() -> None:
    answer = facts.AssistantMessage("hi", "end_turn", Usage(), content=[{"type": "text"}])
    assert "content" not in answer.to_json()
    told: Told = fact_of(plain_of(answer))
    assert told == answer
    chunk = facts.ToolOutputChunk("1", "\x1b[31mred", "a picture")
    assert fact_of(plain_of(chunk)) == chunk
    assert fact_of_json(chunk.to_json()) == facts.ToolOutputChunk("1", "red")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"type": "of_tomorrow"},
        {"type": ["text_delta"]},
        {"type": "text_delta"},
        {"type": "text_delta", "text": 3},
        {"type": "subagent_event", "id": "1", "name": "a"},
        {"type": "subagent_event", "id": "1", "name": "a", "event": {"type": "of_tomorrow"}},
        {"type": "subagent_event", "id": "1", "name": "a", "event": "text"},
    ],
)
def test_what_is_no_fact_is_refused_in_words(data: dict[str, Any]) -> None:
    with pytest.raises(UnknownFactError, match="no fact that this version knows"):
        fact_of(data)

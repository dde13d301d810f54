"""What pruning has to know of the answers: kept as they come, it is what a walk would find."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.context.sessions import Told, extended, prompt
from tests.context.wild import text, thinking
from tui.agent.request.answer_facts import AnswerFacts, ThinkingAnswers
from tui.context.breaks import thoughtless
from tui.context.cache_cost import LIFE_S, LONG_LIFE_S
from tui.context.overrides import content_of
from tui.context.record_index import RecordNumbers
from tui.context.request_trail import has_thinking
from tui.core.messages import Usage
from tui.session.records import MENTIONED, Record, is_answer

_written: dict[str, int] = {"cache_creation_input_tokens": 9}
_hour: dict[str, Any] = {"cache_creation": {"ephemeral_1h_input_tokens": 9}}


def answer(usage: object, *blocks: dict[str, Any], by: str = "") -> Told:
    return "assistant", {"content": [*blocks, text("a")], "usage": usage, "by": by}


def broken(place: int, cause: str) -> Told:
    return "break", {"from": f"r{place}", "cause": cause}


ANY: st.SearchStrategy[Told] = st.one_of(
    st.just(prompt("go")),
    st.builds(answer, st.sampled_from([None, {}, _written, _written | _hour])),
    st.builds(answer, st.just(_written), st.just(thinking())),
    st.just(answer({}, thinking(), by=MENTIONED)),
    st.sampled_from([("compaction", {}), ("uncompaction", {}), ("interrupt", {})]),
    st.just(("uncompaction", {})),
    st.builds(broken, st.integers(0, 5), st.sampled_from(["", "r3"])),
    st.just(("break", {})),
)


@given(st.lists(st.tuples(st.lists(ANY, max_size=6), st.integers(0, 3)), max_size=6), st.data())
def test_what_is_kept_is_what_a_walk_finds(
    steps: list[tuple[list[Told], int]], data: st.DataObject
) -> None:
    facts, thoughts, numbers = AnswerFacts(), ThinkingAnswers(), RecordNumbers()
    records = begun = extended([], [prompt("go"), answer({}, thinking())] * 3)
    for told, rewound in steps:
        records = extended(records[: max(len(begun), len(records) - rewound)], told)
        facts.follow(records)
        assert facts.since_compaction == _since_compaction(records)
        assert facts.last is next((r for r in reversed(records) if is_answer(r)), None)
        assert facts.life_s == _life_s(records)
        start, end = (data.draw(st.integers(0, len(records))) for _ in range(2))
        for first, last in ((0, len(records)), (start, end)):
            assert thoughts.between(records, first, last) == _thinking(records, first, last)
        assert numbers.of(records) == {record.id: n for n, record in enumerate(records)}


def test_what_was_thought_after_a_summary_goes_when_it_is_undone() -> None:
    thoughts = ThinkingAnswers()
    records = extended([], [answer({}, thinking()), ("compaction", {}), answer({}, thinking())])
    assert thoughts.between(records, 0, len(records)) == 2
    records = extended(records, [("uncompaction", {}), answer({}, thinking())])
    assert thoughts.between(records, 0, len(records)) == 2 == _thinking(records, 0, len(records))


def _since_compaction(records: Sequence[Record]) -> int:
    since = max((n for n, r in enumerate(records) if r.type == "compaction"), default=0)
    return sum(map(is_answer, records[since:]))


def _life_s(records: Sequence[Record]) -> float:
    for record in reversed(records):
        usage = Usage.from_json(record.data.get("usage"))
        if record.type == "assistant" and usage.cache_creation_input_tokens:
            return LONG_LIFE_S if usage.ephemeral_1h_input_tokens else LIFE_S
    return LIFE_S


def _thinking(records: Sequence[Record], start: int, end: int) -> int:
    gone = thoughtless(records)
    return sum(
        record.type == "assistant" and record.id not in gone and has_thinking(content_of(record))
        for record in records[start:end]
    )

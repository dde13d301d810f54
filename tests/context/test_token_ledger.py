"""The ledger: what it estimates, what it learns, and that its sums follow its items."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.tokenisers import Server, by_bytes, by_cl100k, code, prose, session
from tui.context import token_ledger
from tui.context.overrides import RecordState, Stand
from tui.context.token_ledger import PARTS, Item, Ledger
from tui.core.messages import Block, text_block
from tui.session.records import Record
from tui.tokens import estimate
from tui.tools.registry import builtin_tools

TOOLS = [tool.schema() for tool in builtin_tools().values()]
SYSTEM = prose(random.Random(5), 9000)
IDS = count()


def record(type_: str, **data: Any) -> Record:
    return Record(type_, f"r{next(IDS)}", None, "2026-11-21T00:00:00Z", data)


def user(text: str) -> Record:
    return record("user", content=[text_block(text)])


def result(text: str, **data: Any) -> Record:
    return record("tool_result", call_id="c", content=[text_block(text)], **data)


def answer(text: str, prompt: int = 0, output: int = 0, model: str = "m") -> Record:
    usage = {"input_tokens": prompt, "output_tokens": output}
    return record("assistant", content=[text_block(text)], model=model, usage=usage)


def ledger(*records: Record) -> Ledger:
    made = Ledger("m")
    for each in records:
        made.add(each)
    return made


def near(found: float, expected: float, within: float = 1e-6) -> bool:
    """Whether a figure is another one, give or take a share of it."""
    return abs(found - expected) <= within * max(abs(expected), 1e-9)


class Played:
    """A session played against a server that counts: by how much each request was missed."""

    def __init__(self, server: Server, seed: int, *, thinking: bool = False, turns: int = 60):
        self.ledger = Ledger("m")
        self.ledger.fixed([("identity", SYSTEM)], TOOLS)
        self.missed: list[float] = []
        self.missed_of_new: list[float] = []
        messages: list[list[Block]] = []
        held = 0
        for exchange in session(seed, turns, thinking=thinking):
            for each in _records(exchange.said):
                self.ledger.add(each)
            messages.append(exchange.said)
            prompt = server.request(SYSTEM, TOOLS, messages)
            self.missed.append(abs(self.ledger.tokens / prompt - 1))
            self.missed_of_new.append(abs(self.ledger.tokens - prompt) / max(1, prompt - held))
            output = round(sum(map(server.block, exchange.answer)))
            usage = {"input_tokens": 7, "cache_read_input_tokens": prompt - 7}
            usage["output_tokens"] = output
            said = record("assistant", content=exchange.answer, model="m", usage=usage)
            self.ledger.add(said)
            messages.append(exchange.answer)
            held = prompt + output
            drift = self.ledger.measure().drift
            assert drift is not None
            assert abs(abs(drift) - self.missed[-1]) < 1e-3
        self.held = held


def _records(said: list[Block]) -> Iterator[Record]:
    if said[0]["type"] == "text":
        yield record("user", content=said)
    for block in said:
        if block["type"] == "tool_result":
            data = {"call_id": block["tool_use_id"], "content": block["content"]}
            yield record("tool_result", name="read_file", **data)


@pytest.mark.parametrize("ratio", [0.8, 1.0, 1.4])
@pytest.mark.parametrize(("measure", "seed", "off"), [(by_cl100k, 7, 0.35), (by_bytes, 8, 0.4)])
def test_after_three_answers_the_estimate_is_close(
    measure: Callable[[float], Callable[[str], float]], seed: int, off: float, ratio: float
) -> None:
    played = Played(Server(measure(ratio)), seed)
    assert statistics.median(played.missed[3:]) <= 0.02
    assert max(played.missed[3:]) <= 0.15
    assert statistics.median(played.missed_of_new[3:]) <= 0.30  # what no measure covered
    total = played.ledger.tokens
    assert total == played.held
    assert near(sum(item.tokens for item in played.ledger.items()), total, 0.001)
    first = Ledger("m", played.ledger.ratio)
    first.fixed([("identity", SYSTEM)], TOOLS)
    first.add(user("continue"))
    expected = Server(measure(ratio)).request(SYSTEM, TOOLS, [[text_block("continue")]])
    assert near(first.tokens, expected, off)  # the next session begins with the ratio


@pytest.mark.parametrize(
    ("measure", "ratio", "most"), [(by_cl100k, 0.8, 0.2), (by_bytes, 1.2, 0.35)]
)
def test_it_holds_for_every_session(
    measure: Callable[[float], Callable[[str], float]], ratio: float, most: float
) -> None:
    """Also where a kind of text, or a script, comes up that the model has not been seen with."""
    for seed in range(26):
        missed = Played(Server(measure(ratio)), seed, turns=10).missed[3:]
        assert statistics.median(missed) <= 0.02, seed
        assert max(missed) <= most, seed


def test_thinking_that_a_model_forgets_spoils_no_ratio() -> None:
    """Where it reads that of turns that are over no more, the next answer says so."""
    keeps, forgets = (
        Played(Server(by_cl100k(1.2), forgets=each), 7, thinking=True) for each in (False, True)
    )
    assert near(forgets.ledger.ratio, keeps.ledger.ratio, 0.1)
    assert statistics.median(forgets.missed[8:]) <= 0.02
    assert max(forgets.missed[8:]) <= 0.15


def test_without_learning_the_new_part_would_be_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulation tells a ratio that is learned from one that is not."""
    learned = Played(Server(by_cl100k(1.8)), 7, turns=20)

    def unmoved(ratio: float, _weight: float, _reported: float) -> float:
        return ratio

    monkeypatch.setattr(estimate, "smoothed", unmoved)
    played = Played(Server(by_cl100k(1.8)), 7, turns=20)
    by_learning, by_none = (statistics.median(p.missed_of_new[3:]) for p in (learned, played))
    assert by_none > 0.3 > 0.25 > by_learning


def test_an_answer_is_a_measurement_of_everything_so_far() -> None:
    made = ledger(user("hello"), answer("Hi.", prompt=5000, output=40))
    now = made.measure()
    assert (now.tokens, now.measured, now.estimated) == (5040, 5040, 0)
    made.add(result("word " * 400))
    now = made.measure()
    assert now.measured == 5040
    assert 300 < now.estimated < 700
    assert now.tokens == now.measured + now.estimated


def test_a_count_by_the_server_measures_and_teaches_as_an_answer_does() -> None:
    made = ledger(user("hello " * 4000))
    weight = made.tokens
    made.count(2 * weight)
    now = made.measure()
    assert (now.tokens, now.measured, now.estimated) == (2 * weight, 2 * weight, 0)
    assert now.drift == -0.5
    assert 1.0 < made.ratio < 2.0
    made.add(user("jelly " * 4000))
    assert made.tokens == round(2 * weight + weight * made.ratio)
    made.add(answer("yes", prompt=4 * weight, output=10))
    assert made.measure().measured == 4 * weight + 10


def test_before_an_answer_the_estimate_stands() -> None:
    made = Ledger("m")
    made.fixed([("identity", SYSTEM)], TOOLS)
    made.resume([user("hello " * 200), answer("no usage reported")])
    now = made.measure()
    assert now.measured == 0
    assert now.tokens == now.estimated > 2000
    assert now.drift is None


def test_after_a_resume_the_measure_is_the_recorded_one_of_the_same_model() -> None:
    recorded = [user("hello"), answer("Hi.", prompt=9000, output=10, model="m-20260101")]
    made = Ledger("m")
    made.resume([*recorded, user("and now?")])
    assert made.measure().measured == 9010
    assert made.ratio == estimate.UNKNOWN  # learned when it came, not twice
    other = Ledger("other")
    other.resume(recorded)
    assert other.measure().measured == 0
    assert 0 < other.tokens < 100
    made.use("other", estimate.UNKNOWN)
    assert made.measure().measured == 0
    made.use("m", estimate.UNKNOWN)
    assert made.measure().measured == 9010


def test_an_answer_has_the_tokens_that_were_reported_and_by_another_model_those_of_its_text():
    made = Ledger("m")
    made.fixed([("identity", SYSTEM)], TOOLS)
    made.add(user("hello"))
    made.add(answer("word " * 300, prompt=made.tokens, output=5000))
    assert near(made.items()[-1].tokens, 5000, 0.01)
    made.use("other", estimate.UNKNOWN)
    assert 250 < made.items()[-1].tokens < 600


def test_every_item_is_listed_with_its_label_and_kind() -> None:
    call = {"type": "tool_use", "id": "c", "name": "run_command", "input": {"command": "pytest -q"}}
    made = Ledger("m")
    made.fixed([("identity", "You help."), ("memory MEMORY.md", "Notes.")], [{"name": "read_file"}])
    for each in (
        user("fix\n the test"),
        record("intent", call_id="c"),
        record("assistant", content=[call], model="m"),
        result("1 failed", receipt={"tokens_total": 900, "tokens_shown": 40}),
        record("interrupt", text="I was say"),
        record("pin", target="r-1", pinned=True),
    ):
        made.add(each)
    items = made.items()
    assert [(item.kind, item.label) for item in items] == [
        ("system", "identity"),
        ("memory", "memory MEMORY.md"),
        ("tools", "read_file"),
        ("user", "fix the test"),
        ("assistant", "run_command pytest -q"),
        ("result", "run_command pytest -q"),
        ("assistant", "I was say"),
    ]
    assert [item.id for item in items[:3]] == [
        *("system:identity", "system:memory MEMORY.md", "tool:read_file"),
    ]
    assert [item.state for item in items].count("cut") == 1
    assert all(item.tokens > 0 for item in items)
    assert made.measure().saved == 860


def test_a_prompt_sent_again_stands_once() -> None:
    once, twice = ledger(user("try this")), ledger(user("try this"), user("try this"))
    assert once.tokens == twice.tokens
    assert len(twice.items()) == 1


def test_masking_changes_the_total_by_what_was_foretold_and_back() -> None:
    large = result("word " * 2000)
    made = ledger(user("go"), answer("ok", 4000, 5), large, answer("done", 7000, 5))
    before = made.tokens
    stand = Stand("masked", [text_block("[Masked by the person: 10,000 chars.]")])
    saving = made.items()[2].tokens - made.would(large.id, stand)
    made.stand({large.id: "masked"}, {large.id: stand})
    item = made.items()[2]
    assert (item.state, item.tokens) == ("masked", made.would(large.id, stand))
    assert abs(made.tokens - (before - saving)) <= 1
    assert made.measure().estimated < 0
    made.stand({large.id: "full"}, {})
    assert made.tokens == before
    assert made.items()[2].state == "full"


def test_what_was_masked_before_the_measure_is_not_taken_off_again() -> None:
    large = result("word " * 2000)
    made = Ledger("m")
    made.resume([user("go"), answer("ok", 4000, 5), large, answer("done", 4200, 5)])
    stand = Stand("masked", [text_block("[Masked.]")])
    made.stand({large.id: "masked"}, {large.id: stand}, measured=True)
    assert made.tokens == 4205
    assert made.items()[2].tokens < 40


def test_blocks_of_no_known_shape_are_taken_in() -> None:
    odd: list[Any] = [{"type": ["thinking"], "x": 1}, {"no": "type"}, {"type": None}]
    usage = {"input_tokens": 50, "output_tokens": 9}
    made = ledger(record("user", content=odd), record("assistant", content=odd, usage=usage))
    assert made.tokens == 59


def test_how_items_stand_is_taken_over_again_only_where_it_is_new() -> None:
    """50,000 items of which one changes: less than half of what it costs to set them all."""
    made = Ledger("m")
    records = [user(f"hi {n}") for n in range(50_000)]
    made.resume(records)
    states: dict[str, Any] = dict.fromkeys((each.id for each in records), "repaired")
    one = {records[7].id: Stand("masked", [text_block("gone")])}

    def spent(states: dict[str, Any], stands: dict[str, Stand]) -> float:
        begin = time.process_time()
        made.stand(states, stands)
        return time.process_time() - begin

    all_ = spent(dict(states), {})
    few = min(spent(states | {records[7].id: "masked"}, one), spent(dict(states), {}))
    assert made.items()[7].state == "repaired"
    assert few < all_ / 2


def test_a_pin_is_shown_until_it_is_taken_back() -> None:
    kept = user("remember this")
    made = ledger(kept)
    made.stand({}, {}, {kept.id})
    assert made.items()[0].pinned
    made.stand({}, {})
    assert not made.items()[0].pinned


def test_images_cost_what_their_rule_says_and_teach_nothing() -> None:
    image = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    made = ledger(user("look"), answer("where?", 3000, 5))
    learned = made.ratio
    made.add(record("user", content=[image]))
    assert near(made.measure().estimated, 1600, 0.01)
    made.add(answer("I see.", 3900, 5))
    assert made.ratio == learned
    assert made.measure().measured == 3905


def test_what_follows_a_masked_item_teaches_nothing() -> None:
    large = result("word " * 2000)
    made = ledger(user("go"), answer("ok", 4000, 5), large, answer("done", 7000, 5))
    learned = made.ratio
    made.stand({large.id: "masked"}, {large.id: Stand("masked", [text_block("[Masked.]")])})
    made.add(user("more " * 100))
    made.add(answer("ok", 2000, 5))
    assert made.ratio == learned


def test_the_forecast_follows_the_growth_of_the_last_turns() -> None:
    made = Ledger("m")
    assert made.forecast(100_000) is None
    size = 10_000
    for turn in range(5):
        made.add(user(f"turn {turn}"))
        size += 2000
        made.add(answer("done", size, 0))
        if turn == 0:
            assert made.forecast(100_000) is None
    assert size == 20_000
    left = made.forecast(40_000)
    assert left is not None
    assert 5 <= left <= 10
    assert made.forecast(size) == 0
    far = made.forecast(1e9)
    assert far is not None
    assert near(far, 1e9 / 2200, 0.5)


def test_taking_away_does_not_spoil_the_forecast() -> None:
    made = Ledger("m")
    large = [result(code(random.Random(n), 8000)) for n in range(8)]
    for turn, each in enumerate(large):
        made.add(user(f"turn {turn}"))
        made.add(each)
        made.add(answer("done", 3000 * (turn + 1), 0))
    before = made.forecast(60_000)
    assert before
    gone = Stand("pruned", [text_block("[Pruned.]")])
    made.stand({each.id: "pruned" for each in large[:4]}, {each.id: gone for each in large[:4]})
    after = made.forecast(60_000)
    assert after is not None
    assert after > before


ANY = st.one_of(
    st.builds(user, st.text(max_size=60)),
    st.builds(result, st.text(max_size=60)),
    st.builds(answer, st.text(max_size=40), st.integers(0, 5000), st.integers(0, 500)),
    st.builds(answer, st.text(max_size=40), st.just(900), st.just(9), st.just("other")),
)


@settings(max_examples=60)
@given(st.lists(ANY, max_size=25), st.data())
def test_sums_follow_the_items_whatever_happens(records: list[Record], data: st.DataObject) -> None:
    made = ledger(*records)
    made.fixed([("identity", "text"), ("think", "more")], TOOLS[:2])
    if records:
        some = data.draw(st.lists(st.sampled_from([each.id for each in records]), max_size=8))
        stands = {id_: Stand("masked", [text_block("gone")]) for id_ in some}
        made.stand(dict.fromkeys(some, "masked"), stands)
        kept_sums(made, records)
        made.stand(dict.fromkeys(some[:3], "full"), {})
        made.stand(dict.fromkeys(some[2:5], "summarised"), {})
    kept_sums(made, records)
    made.fixed([("identity", "text")], TOOLS[:3])
    items, now = made.items(), made.measure()
    assert now.tokens == made.tokens >= 0
    assert now.tokens == now.measured + now.estimated
    assert all(item.tokens >= 0 for item in items)
    assert made.conversation_sizes() == [
        (item.id, item.state, item.tokens, made.would(item.id, None))
        for item in items
        if item.kind not in {"system", "memory", "tools"}
    ]
    sums = dict.fromkeys(PARTS.values(), 0)
    for item in items:
        sums[PARTS[item.kind]] += item.tokens
    assert all(abs(size - sums[part]) <= len(items) + 8 for part, size in now.parts.items())
    if abs(sum(sums.values()) - now.tokens) <= len(items):
        assert sum(now.parts.values()) == now.tokens
    else:
        assert now.measured  # and what was reported cannot be of the items
    made.use("other", estimate.UNKNOWN)
    assert sum(item.tokens for item in made.items()) > 0
    made.use("m", estimate.UNKNOWN)
    assert [item.id for item in made.items()] == [item.id for item in items]
    kept_sums(made, records)


def kept_sums(made: Ledger, records: list[Record]) -> None:
    """The sums that are kept are those of the entries, up to any place."""
    entries = made.entries_of(each.id for each in records)
    assert [entry.number for entry in entries] == [*range(len(made.sent))]
    for number in range(len(entries) + 1):
        assert near(made.sent.between(0, number), sum(each.weight for each in entries[:number]))
        rest = [each.own for each in entries[number:] if each.state != "summarised"]
        assert abs(made.brought.between(number, len(entries)) - sum(rest)) < 1e-6


MASK = Stand("masked", [text_block("gone")])
STATES: list[RecordState] = ["full", "masked", "summarised"]


OTHERS = st.dictionaries(st.integers(0, 9), st.sampled_from(STATES), max_size=2)


@given(st.lists(st.tuples(st.integers(0, 3), OTHERS), max_size=8))
def test_states_that_only_grew_are_taken_as_any_others(
    steps: list[tuple[int, dict[int, RecordState]]],
) -> None:
    """Now and then a state changes, or is said before its record comes."""
    told = [result("word " * n) for n in range(24)]

    def played() -> list[tuple[list[Item], int]]:
        made, count, seen = Ledger("m"), 0, list[tuple[list[Item], int]]()
        for more, others in steps:
            for each in told[count : count + more]:
                made.add(each)
            count += more
            states: dict[str, RecordState] = {each.id: "full" for each in told[:count]}
            states |= {told[n].id: state for n, state in others.items()}
            gone = [id_ for id_, state in states.items() if state == "masked"]
            made.stand(states, dict.fromkeys(gone, MASK))
            seen.append((made.items(), made.tokens))
        return seen

    taken = played()
    with patch.object(token_ledger, "_grown", return_value=False):
        assert taken == played()


def test_a_state_that_is_said_before_its_record_counts_when_that_comes() -> None:
    made, early, other = Ledger("m"), result("a " * 90), result("b " * 90)
    made.stand({early.id: "masked"}, {early.id: MASK})
    made.add(early)
    made.add(other)
    made.stand({early.id: "masked"}, {early.id: MASK})
    assert [item.state for item in made.items()] == ["masked", "full"]
    made.stand({other.id: "masked", early.id: "full"}, {other.id: MASK})
    assert [item.state for item in made.items()] == ["full", "masked"]


def test_items_sum_up_to_what_was_reported_and_what_came_since() -> None:
    made = Ledger("m")
    made.fixed([("identity", SYSTEM)], TOOLS)
    made.add(user("hello"))
    made.add(answer("Hi. " * 40, prompt=round(made.tokens * 1.3), output=90))
    for text in ("word " * 900, "more " * 50):
        made.add(result(text))
        items = made.items()
        assert abs(sum(item.tokens for item in items) - made.tokens) <= len(items)
        assert sum(made.measure().parts.values()) == made.tokens
    assert 1 < made.ratio < 1.3


@pytest.mark.parametrize("prompt", [3, 200_000])
def test_a_report_that_cannot_be_of_the_items_leaves_them_as_they_are(prompt: int) -> None:
    """Of a server that leaves out what it had in its cache, or adds a prompt of its own."""
    made = Ledger("m")
    made.fixed([("identity", SYSTEM)], TOOLS)
    made.add(user("hello"))
    before = [item.tokens for item in made.items()]
    made.add(answer("Hi.", prompt=prompt))
    assert [item.tokens for item in made.items()][:-1] == before
    assert made.ratio == estimate.UNKNOWN
    assert made.tokens == made.measure().measured == prompt


def test_a_long_session_is_taken_in_quickly() -> None:
    """50,000 records in less than what tokenising a fiftieth of them would cost."""
    text = code(random.Random(1), 1500)
    records = [result(text) if n % 2 else user(f"{n} {text}") for n in range(49_999)]
    records.append(answer("done", 9_000_000, 100))
    begin = time.process_time()
    made = Ledger("m")
    made.resume(records)
    spent = time.process_time() - begin
    assert made.tokens == 9_000_100
    assert sum(made.measure().parts.values()) > 9_000_000
    assert spent < 3, spent

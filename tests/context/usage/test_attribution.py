"""Where the tokens and the money of a session went: the parts add up to the bill."""

from __future__ import annotations

import cProfile
from collections.abc import Sequence
from math import isclose
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.context.worked_session import WorkedSession
from tests.golden.sessions import sessions
from tests.support.generated_session import played
from tests.support.spent_session import HAIKU, OPUS, OTHER, Told, call, said, spent_session, usage
from tui.agent.limits import session_cost
from tui.context.usage.amounts import Amount, total_of
from tui.context.usage.attribution import (
    GROUPINGS,
    Attribution,
    Grouping,
    LiveAttribution,
    attribute,
)
from tui.core.config import Price
from tui.core.dataclass import replace
from tui.core.paths import folders
from tui.session import catalog
from tui.session.reader import read
from tui.session.records import Record

CENT = 0.01


def check(records: Sequence[Record], found: Attribution | None = None) -> Attribution:
    """Fail unless each grouping adds up to what the session cost, and no row is below nothing."""
    found = found or attribute(records, {})
    bill = session_cost(records, {}).session
    for by in GROUPINGS:
        rows = found.rows(by)
        total = total_of(rows.values())
        assert isclose(total.tokens, bill.usage.total, abs_tol=0.5), by
        if bill.usd is None:
            assert total.unpriced > 0
        else:
            assert isclose(total.usd, bill.usd, abs_tol=CENT / 100), by
        for name, one in rows.items():
            least = min(one.read, one.written, one.fresh, one.output, one.usd, one.unpriced)
            assert least > -1e-6, (by, name, one)
    return found


def rows(records: Sequence[Record], by: Grouping) -> dict[str, Amount]:
    return attribute(records, {}, cwd="/w").rows(by)


def test_every_session_of_the_corpus_adds_up() -> None:
    billed = 0
    for session in sessions():
        found = check(session.loaded.records)
        billed += found.total.tokens > 0
    assert billed > 50


def with_random_usage(records: Sequence[Record], chance: Random) -> list[Record]:
    """The records with other counts, as any server may report them."""
    told: list[Record] = []
    for record in records:
        data = record.data
        if data.get("usage"):
            more = {
                "ephemeral_1h_input_tokens": chance.choice((0, 0, 500)),
                "thinking_tokens": chance.choice((0, 0, 30)),
                "web_search_requests": chance.choice((0, 0, 0, 2)),
                "context_tokens": chance.choice((0, 0, 0, 4000)),
            }
            counts = (chance.choice((0, chance.randint(0, 200_000))) for _ in range(4))
            data = data | {"usage": usage(*counts, **more)}
            if chance.random() < 0.1:
                data |= {"batch": "b1"}
        told.append(replace(record, data=data))
    return told


@pytest.mark.slow
async def test_sessions_made_by_chance_add_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(8):
        await played(tmp_path / f"s{seed}", seed, 10, priced=True)
    reasons: set[str] = set()
    paths = catalog.files(folders())
    for path in paths:
        records = read(path).records
        found = check(records)
        reasons |= found.rows("break").keys()
        # The record has the system prompt and the tools: next to nothing is left over.
        lost = found.rows("kind").get("not recorded", Amount())
        assert lost.tokens <= 0.01 * found.total.tokens
        for round_ in range(3):
            check(with_random_usage(records, Random(f"{path.name} {round_}")))
    assert len(paths) >= 8
    assert {"mask", "compaction"} & reasons


class TestWhatEachThingCost:
    """In the session with everything."""

    def test_it_adds_up(self) -> None:
        check(spent_session())

    def test_a_prompt_costs_the_requests_that_were_made_for_it(self) -> None:
        found = rows(spent_session(), "prompt")
        assert [round(found[str(n)].tokens) for n in (1, 2, 6)] == [30_050, 44_318, 30_004]
        assert round(found["3"].output) == 120 + 180 + 1200  # with the sub-agent's

    def test_what_came_with_a_prompt_is_paid_in_later_requests_too(self) -> None:
        brought = rows(spent_session(), "brought")
        assert brought["1"].tokens > 70_000
        assert brought["1"].read > 40_000

    def test_a_file_costs_its_call_and_its_result(self) -> None:
        found = rows(spent_session(), "file")
        assert set(found) == {"", "src/scheduler.py", "tests/test_scheduler.py"}
        assert found["src/scheduler.py"].usd > found["tests/test_scheduler.py"].usd > 0

    def test_a_server_a_skill_and_a_sub_agent(self) -> None:
        records = spent_session()
        assert rows(records, "server")["docs"] == rows(records, "tool")["mcp__docs__search"]
        assert rows(records, "skill")["python-style"].usd > 0
        agent = rows(records, "agent")["explore: other places"]
        own = 900 * 0.1 + 1200 * 0.5 + 22_000 * 0.125 + 90_000 * 0.01
        assert agent.usd > own * 1e-6 + 100 * 20e-6  # with the call and its result

    def test_a_model(self) -> None:
        found = rows(spent_session(), "model")
        assert round(found[HAIKU].output) == 1212
        assert found[OTHER].unpriced == 30_004
        assert found[OTHER].usd == 0
        assert set(found) == {OPUS, HAIKU, OTHER}

    def test_a_break_costs_what_was_paid_a_second_time(self) -> None:
        found = rows(spent_session(), "break")
        # 24,260 tokens were cached; of the next request's 23,009 only 2,000 were read.
        assert isclose(found["mask"].usd, 21_000 * 4.8e-6 + 9 * 3.8e-6, rel_tol=1e-6)
        assert isclose(found["cache expired"].usd, 24_500 * 4.8e-6, rel_tol=1e-6)
        assert set(found) == {"", "mask", "cache expired", "another model"}

    def test_a_first_request_to_another_model_is_paid_anew(self) -> None:
        """10,000 tokens were cached for the one model: the other one writes them again."""
        session = Told()
        session.prompt("Go on")
        session.answer(usage(0, 0, 10_000), model=HAIKU)
        session.answer(usage(0, 0, 12_000), model=OPUS)
        session.answer(usage(0, 0, 500, 12_000), model=OPUS)
        session.answer(usage(0, 0, 2_500, 10_000), model=HAIKU)
        found = rows(session.records, "break")
        assert isclose(found["another model"].usd, 10_000 * 4.8e-6, rel_tol=1e-6)
        assert set(found) == {"", "another model"}

    def test_answers_thinking_and_calls_share_the_output(self) -> None:
        found = rows(spent_session(), "kind")
        assert found["thinking"].output > found["calls"].output / 10
        assert found["writing titles"].output == 12
        assert found["sub-agents"].output == 1200
        bill = session_cost(spent_session(), {}).session.usage
        total = sum(one.output for one in found.values())
        assert isclose(total, bill.output_tokens, rel_tol=1e-6)

    def test_no_price_is_never_nothing(self) -> None:
        found = attribute(spent_session(), {})
        assert found.unknown == {OTHER: 1}
        priced = attribute(spent_session(), {OTHER: Price(input=1.0, output=2.0)})
        assert priced.unknown == {}
        assert isclose(priced.total.usd, found.total.usd + 0.03 + 8e-6, rel_tol=1e-6)


def test_what_the_record_does_not_have_is_a_row_of_its_own() -> None:
    told = Told()
    told.prompt("Hello")
    told.answer(usage(20_000, 5), *said("Hello."))
    found = check(told.records).rows("kind")
    assert found["not recorded"].fresh > 19_900
    assert found["prompts"].fresh < 100


def test_searches_have_a_price_of_their_own() -> None:
    told = Told()
    told.prompt("Search")
    told.answer(usage(100, 5, web_search_requests=3), *said("Found."))
    assert isclose(check(told.records).rows("kind")["searches"].fees, 0.03, rel_tol=1e-6)


def test_a_batch_costs_half() -> None:
    told = Told()
    told.prompt("Many")
    told.answer(usage(1_000_000), *said("Yes."), batch="b1")
    assert isclose(check(told.records).total.usd, 2.0, rel_tol=1e-6)


@pytest.mark.parametrize(
    ("kind", "fields", "lost"),
    [
        ("retry", {"error_class": "overloaded", "status": 529}, False),
        ("retry", {"error_class": "rate_limit", "status": 429, "received": 0}, False),
        ("retry", {"error_class": "overloaded", "status": 529, "received": 12}, True),
        ("retry", {"error_class": "stream_broken", "received": 400}, True),
        ("retry", {"error_class": "timeout"}, True),
        ("failover", {"error_class": "server", "status": 500, "received": 9}, True),
        ("error", {"class": "stream_broken", "text": "I beg"}, True),
        ("error", {"class": "network"}, True),
        ("error", {"error_class": "network"}, True),
        ("error", {"class": "invalid_request", "status": 400}, False),
        ("error", {"class": "unknown"}, False),
    ],
)
def test_an_attempt_that_may_have_been_billed_is_counted_and_the_sums_stay_the_bill(
    kind: str, fields: dict[str, Any], lost: bool
) -> None:
    told = Told()
    told.prompt("Hello")
    told.tell(kind, **fields)
    told.answer(usage(100, 20), *said("Yes."))
    found = check(told.records)
    assert found.cut_off == lost


def test_an_answer_that_was_cut_off_is_counted_not_guessed() -> None:
    told = Told()
    told.prompt("Hello")
    told.tell("interrupt", reason="cancelled", text="I beg")
    assert attribute(told.records, {}).cut_off == 1
    assert attribute(told.records, {}).total.tokens == 0


def test_a_stop_while_a_tool_ran_cut_off_no_answer() -> None:
    """The answer that called it was whole, and is billed."""
    told = Told()
    told.prompt("Hello")
    told.tell("request", n=1, model=OPUS, messages=1)
    told.answer(usage(100, 20), call("a", "run_command", command="sleep 90"))
    told.tell("tool_result", call_id="a", name="run_command", summary="interrupted")
    told.tell("interrupt", reason="cancelled", text="")
    assert check(told.records).cut_off == 0
    told.tell("request", n=2, model=OPUS, messages=3)
    told.tell("interrupt", reason="cancelled", text="")
    assert check(told.records).cut_off == 1


@pytest.mark.parametrize(
    ("between", "lost"),
    [
        ("goal", 1),  # continued after a kill
        ("note", 1),
        ("recovery", 0),
        ("feature", 0),
        ("break", 0),
    ],
)
def test_an_answer_that_a_kill_cut_off_is_counted(between: str, lost: int) -> None:
    told = Told()
    told.prompt("Hello")
    told.tell("request", n=1, model=OPUS, messages=1)
    told.tell(between)
    told.tell("request", n=2, model=OPUS, messages=1)
    told.answer(usage(100, 20), *said("Yes."))
    assert check(told.records).cut_off == lost


def test_another_branch_was_paid_for_too() -> None:
    told = Told()
    first = told.prompt("Hello")
    told.answer(usage(100, 10), *said("Hello."))
    told.tell("user", after=first.parent, content=said("Again"), text="Again")
    told.answer(usage(200, 20), call("c9", "read_file", path="/w/a.py"))
    found = check(told.records)
    assert [round(one.tokens) for one in found.rows("prompt").values()] == [110, 220]


def test_inherited_requests_are_skipped_but_their_content_is_carried() -> None:
    records = spent_session()
    answers = [record for record in records if record.type == "assistant"]
    rest = attribute(records, {}, skip={record.id for record in answers[:2]})
    assert rest.rows("prompt").keys() == {"2", "3", "4", "5", "6"}
    assert rest.rows("brought")["1"].read > 0  # what came before the fork


def test_days_are_local_days_whatever_the_order_of_times() -> None:
    told = Told()
    told.prompt("Hello")
    told.answer(usage(100, 10), *said("Hello."))
    told.step = -86_400.0  # the clock was put back
    told.prompt("Yesterday")
    told.answer(usage(200, 20), *said("It was."))
    found = check(told.records)
    assert [*found.days] == ["2026-11-21", "2026-11-19"]
    first = found.rows("model", lambda day: day > "2026-11-20")[OPUS]
    assert isclose(first.tokens, 110, rel_tol=1e-6)


def test_rows_survive_being_written() -> None:
    found = attribute(spent_session(), {})
    again = Attribution.of_bytes(found.to_bytes())
    assert again.titles == found.titles
    check(spent_session(), again)


def test_records_without_sense_cost_nothing_and_stop_nothing() -> None:
    told = Told()
    told.answer({"input_tokens": "many", "output_tokens": -3}, *said("?"))
    told.tell("assistant", content="plain", model=None, usage={"output_tokens": 7})
    told.tell("assistant", content=[], model=OPUS, usage=usage(0, 9))
    told.tell("sub_agent", spent="nothing")
    check(told.records)


def test_what_is_followed_adds_up_to_what_is_read_at_once() -> None:
    records = spent_session()
    live = LiveAttribution({}, cwd="/w")
    followed = [live.follow(records[:count]) for count in range(1, len(records) + 1)][-1]
    whole = attribute(records, {}, cwd="/w")
    for by in GROUPINGS:
        told, wanted = followed.rows(by), whole.rows(by)
        assert told.keys() == wanted.keys()
        for name, amount in wanted.items():
            assert isclose(told[name].usd, amount.usd, abs_tol=1e-9), (by, name)
            assert isclose(told[name].tokens, amount.tokens, abs_tol=1e-3), (by, name)
    assert (followed.titles, followed.cut_off) == (whole.titles, whole.cut_off)


def test_only_what_is_new_of_a_session_is_read_again() -> None:
    records = WorkedSession().made(9, 12)
    live = LiveAttribution({}, cwd="/w")
    live.follow(records[:-6])
    profile = cProfile.Profile()
    profile.runcall(live.follow, records)
    (taken,) = (
        entry.callcount
        for entry in profile.getstats()
        if not isinstance(entry.code, str) and entry.code.co_name == "bills_of"
    )
    assert taken <= 2 * 6  # it yields: once more for each bill


def test_a_rewind_is_followed_from_the_beginning() -> None:
    records = spent_session()
    live = LiveAttribution({}, cwd="/w")
    live.follow(records)
    kept, left = records[:6], tuple(records[6:])
    told = live.follow(kept, left)
    whole = attribute(records, {}, cwd="/w")
    assert isclose(told.total.usd, whole.total.usd)


def test_what_is_told_while_a_session_is_read_is_true_of_what_was_read() -> None:
    records = spent_session()
    live = LiveAttribution({}, cwd="/w")
    billed = live.billed(records)
    for count, share in enumerate(live.reading(records), 1):
        assert share == count / len(records)
        if count in (5, 12, 20):
            known = live.so_far()
            check(records[:count], known)
            for kind, one in rows(records[:count], "kind").items():
                assert isclose(known.rows("kind")[kind].usd, one.usd, abs_tol=1e-9), kind
    whole = check(records, live.so_far())
    for by in ("prompt", "model"):
        assert billed.rows(by) == whole.rows(by)
    assert billed.titles == whole.titles

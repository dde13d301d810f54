"""The spans of a session while it runs: sent in batches, sent again, and never in its way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_sub_agents import Family, task
from tests.support.agents import Yes, events_of
from tests.support.clock import PATIENCE_S
from tests.support.provider import ScriptedProvider, call, say
from tests.support.span_collector import LocalCollector, local_collector
from tui.agent import composition, span_export
from tui.agent.agent import Agent
from tui.agent.launch import Access, Launch
from tui.agent.span_collector import MOST_TEXT, Delivery
from tui.agent.span_export import BATCH, PAUSE_S, SpanFigures, SpanSender
from tui.agent.span_export import _Item as Item  # pyright: ignore[reportPrivateUsage]
from tui.context.spans import SpanFold, spans_of
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.config import Config, OtelSettings
from tui.core.errors import ProviderError
from tui.core.facts import Fact
from tui.core.messages import text_of
from tui.core.otlp import Span, SpanContext, text_size
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Approver
from tui.session.reader import read
from tui.session.records import Record
from tui.session.session import Session

OWN, OTHER = "0a" * 8, "0b" * 8
OVERLOADED = ProviderError("overloaded", "It is overloaded.", status=529)


class Target:
    """A collector that answers as it is told, and keeps what it took."""

    name = "collector.test"

    def __init__(self, *answers: Delivery) -> None:
        self.answers = [*answers]
        self.took: list[Span] = []
        self.sizes: list[int] = []
        self.texts: list[int] = []

    def deliver(self, spans: Sequence[Span], *, within_s: float) -> Delivery:
        assert within_s > 0
        self.sizes.append(len(spans))
        self.texts.append(sum(map(text_size, spans)))
        done = self.answers.pop(0) if self.answers else Delivery("taken")
        if done.outcome == "taken":
            self.took += spans
        return done


def turns(count: int, start: int = 0, owner: str = OWN) -> list[Record]:
    """A prompt and its answer, several times: two spans each."""
    records: list[Record] = []
    for n in range(start, start + count):
        at = f"2026-01-02T03:04:05.{n % 1000:03d}Z"
        mine: dict[str, Any] = {"content": [], "text": "x", "collector": owner}
        records.append(Record("user", f"{n:06d}a", None, at, mine))
        records.append(Record("assistant", f"{n:06d}b", None, at, {"content": say("x")}))
    return records


def sender(
    target: Target, records: Sequence[Record], mark: Path | None = None, owner: str = OWN
) -> SpanSender:
    made = SpanSender(target, owner, mark)
    made.open("-")
    fold = SpanFold("5e55")
    made.queue.extend(Item(fold, one, marks=True) for one in records)
    return made


def run(sender: SpanSender, now: float = 100.0, **more: float) -> float:
    """Call it whenever it wants to be called, as long as it has something to do. Returns when."""
    while (wait := sender.step(now, **more)) is not None:
        now += wait
    return now


def test_spans_are_gathered_for_a_second_and_sent_together() -> None:
    target = Target()
    made = sender(target, turns(3))
    assert made.step(100.0) == pytest.approx(1.0)  # pyright: ignore[reportUnknownMemberType]
    assert target.sizes == []
    run(made, 100.5)
    assert target.sizes == [6]
    assert made.figures == SpanFigures(sent=6)


def test_no_request_has_more_than_it_may_and_all_are_sent() -> None:
    target = Target()
    made = sender(target, records := turns(2 * BATCH))
    run(made)
    assert max(target.sizes) <= BATCH + 1  # what one record ends stays together
    assert target.took == [*spans_of("5e55", records, {})]


def test_one_that_is_gone_costs_one_batch_and_is_asked_less_and_less() -> None:
    target = Target(*[Delivery("later", why="Connection refused")] * 8)
    made = sender(target, records := turns(BATCH))
    assert made.step(100.0) == PAUSE_S
    waits = [made.step(1000.0 * n) for n in range(1, 9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert made.figures.problem == "Connection refused"
    assert len(made.queue) >= BATCH  # still records, not spans
    run(made, 10_000.0)
    assert target.took == [*spans_of("5e55", records, {})]
    assert made.figures == SpanFigures(sent=len(target.took))


def test_a_request_is_no_longer_than_collectors_take() -> None:
    long_ = [{"type": "text", "text": "x" * 100_000}]
    records = [
        replace(one, data={**one.data, "content": long_}) if one.type == "assistant" else one
        for one in turns(30)
    ]
    target = Target()
    made = SpanSender(target, OWN)
    made.open("-")
    fold = SpanFold("5e55", content=True)
    made.queue.extend(Item(fold, one, marks=True) for one in records)
    run(made)
    assert target.took == [*spans_of("5e55", records, {}, content=True)]
    assert max(target.texts) < MOST_TEXT + 200_000  # what one record ends stays together
    assert len(target.texts) == 4


def test_it_is_left_alone_for_as_long_as_it_says() -> None:
    target = Target(Delivery("later", why="it answers 429", wait_s=90.0))
    made = sender(target, turns(1))
    made.step(100.0)
    assert made.step(101.0) == 90.0
    assert made.step(102.0) == 89.0
    assert target.sizes == [2]
    run(made, 191.0)
    assert target.sizes == [2, 2]


def test_what_is_refused_is_counted_and_not_sent_again() -> None:
    target = Target(Delivery("refused", why="it answers 400"), Delivery("taken", 1, "too old"))
    made = sender(target, turns(2))
    run(made)
    assert made.figures == SpanFigures(0, 4, "it answers 400")
    made.queue.extend(Item(SpanFold("5e55"), one, marks=True) for one in turns(1, 5))
    run(made)
    assert made.figures == SpanFigures(1, 5, "it rejected 1 span: too old")
    made.queue.extend(Item(SpanFold("5e55"), one, marks=True) for one in turns(1, 6))
    run(made)
    assert made.figures == SpanFigures(3, 5)
    assert target.sizes == [4, 2, 2]


def test_the_next_run_continues_where_the_collector_had_everything(tmp_path: Path) -> None:
    mark, records = tmp_path / "spans" / "5e55", turns(5)
    first = Target(Delivery("taken"), *[Delivery("later", why="gone")] * 3)
    made = sender(first, records[:4], mark)
    run(made)
    made.queue.extend(Item(SpanFold("5e55"), one, marks=True) for one in records[4:])
    made.step(200.0, last_s=1.0)
    second = Target()
    run(sender(second, records, mark))
    assert [*first.took, *second.took] == [*spans_of("5e55", records, {})]
    third = Target()
    run(sender(third, records, mark))
    assert third.sizes == []


def test_a_session_from_before_it_was_switched_on_is_not_sent(tmp_path: Path) -> None:
    records, target = turns(3), Target()
    made = SpanSender(target, OWN, tmp_path / "spans" / "5e55")
    made.open(records[3].id)
    fold = SpanFold("5e55")
    made.queue.extend(Item(fold, one, marks=True) for one in records)
    run(made)
    assert target.took == [*spans_of("5e55", records, {})][4:]


def test_a_turn_goes_to_the_collector_that_it_was_recorded_for(tmp_path: Path) -> None:
    spans = tmp_path / "spans"
    records = [*turns(2), *turns(2, 2, OTHER), *turns(2, 4, ""), *turns(2, 6)]
    gone = Target(*[Delivery("later", why="gone")] * 2)
    run_1 = sender(gone, records[:4], spans / "5e55.own")
    run_1.step(100.0)
    run_1.step(200.0, last_s=1.0)
    other = Target()
    run(sender(other, records[:8], spans / "5e55.other", OTHER))
    back = Target()
    run(sender(back, records, spans / "5e55.own"))
    every = [*spans_of("5e55", records, {})]
    assert gone.took == []
    assert other.took == every[4:8]
    assert back.took == [*every[:4], *every[12:]]  # nothing of the other's, nor of those of none


# Whole agents


@pytest.fixture
def there() -> Generator[LocalCollector]:
    with local_collector() as collector:
        yield collector


@asynccontextmanager
async def program(
    root: Path,
    answers: Sequence[Any],
    url: str,
    *,
    provider: ScriptedProvider | None = None,
    path: Path | None = None,
    enabled: bool = True,
    approver: Approver | None = None,
    one_turn: bool = False,
) -> AsyncGenerator[tuple[Agent, list[Fact]]]:
    """The program's own agent, and what it says while nothing runs."""
    otel = OtelSettings(enabled=enabled, endpoint=url)
    place, access = Workspace.at(root, ceiling="/"), Access(key="k")
    launch = Launch(place, Config(otel=otel), folders(), access, one_turn=one_turn)
    clock = SystemClock()
    session = (
        Session.open(path, clock=clock)
        if path
        else Session.create(root, folders=folders(), clock=clock)
    )
    provider = provider or ScriptedProvider(*answers)
    agent = composition.make_agent(launch, session, approver or RulesOnly(), provider=provider)
    shown = await agent.start()
    agent.watch(shown.append)
    try:
        yield agent, shown
    finally:
        await agent.close()


async def test_a_session_is_sent_by_its_end(tmp_path: Path, there: LocalCollector) -> None:
    answers = [[call("list_dir", path=".")], say("one"), say("two")]
    async with program(tmp_path, answers, there.url) as (agent, shown):
        await events_of(agent, "go")
        await events_of(agent, "on")
        path = agent.session.path
    assert path is not None
    loaded = read(path)
    expected = [*spans_of(loaded.header.id, loaded.records, {})]
    assert there.names == [one.name for one in expected]
    assert [one.span_id.hex() for one in there.spans] == [one.context.span_id for one in expected]
    assert not [one for one in shown if isinstance(one, facts.Notice)]


async def test_it_is_off_by_default(
    tmp_path: Path, there: LocalCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", there.url)
    async with program(tmp_path, [say("one")], there.url, enabled=False) as (agent, _):
        await events_of(agent, "go")
        assert agent.spans is None
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    async with program(tmp_path, [say("one")], there.url) as (agent, _):
        await events_of(agent, "go")
        assert agent.spans is None
    assert there.requests == []


async def test_a_collector_that_is_gone_is_said_once_and_hinders_nothing(
    tmp_path: Path, there: LocalCollector
) -> None:
    there.answers += [(503, {"retry-after": "60"}, b"")] * 2
    async with program(tmp_path, [say("one"), say("two")], there.url) as (agent, shown):
        said = asyncio.Event()

        def show(event: Fact) -> None:
            shown.append(event)
            said.set()

        agent.watch(show)
        events = [*await events_of(agent, "go")]
        await asyncio.wait_for(said.wait(), PATIENCE_S)
        events += await events_of(agent, "on")
        assert agent.spans is not None
        assert agent.spans.figures.problem == "it answers 503"
        where = agent.spans.collector
        path = agent.session.path
    notices = [one.text for one in (*events, *shown) if isinstance(one, facts.Notice)]
    assert [one.outcome for one in events if isinstance(one, facts.TurnFinished)] == ["done"] * 2
    assert notices == [f"The collector at {where} doesn't take spans: it answers 503."]
    assert path is not None
    assert there.spans == []
    with local_collector() as elsewhere:  # what it lacks is for no other one
        async with program(tmp_path, [say("three")], elsewhere.url, path=path) as (agent, _):
            await events_of(agent, "more")
        assert len(elsewhere.spans) == 2
    async with program(tmp_path, [say("four")], there.url, path=path) as (agent, _):
        await events_of(agent, "back")  # it is back: the next run sends what it lacks
    loaded = read(path)
    expected = [one.context.span_id for one in spans_of(loaded.header.id, loaded.records, {})]
    assert [one.span_id.hex() for one in there.spans] == [*expected[:4], *expected[6:]]
    assert [one.span_id.hex() for one in elsewhere.spans] == expected[4:6]


async def test_whoever_only_reads_a_session_sends_nothing_of_it(tmp_path: Path) -> None:
    async with program(tmp_path, [say("one")], "http://127.0.0.1:9") as (agent, _):
        await events_of(agent, "go")
        assert agent.session.path is not None
        reading = Session.open(agent.session.path, clock=SystemClock(), read_only=True)
        otel = OtelSettings(enabled=True, endpoint="http://127.0.0.1:9")
        workspace, access = Workspace.at(tmp_path, ceiling="/"), Access(key="k")
        launch = Launch(workspace, Config(otel=otel), folders(), access)
        reader = composition.make_agent(launch, reading, RulesOnly(), provider=ScriptedProvider())
        assert reader.spans is None
        await reader.close()


async def test_a_slow_collector_keeps_no_session_from_ending(
    tmp_path: Path, there: LocalCollector
) -> None:
    there.hold.clear()
    loop = asyncio.get_running_loop()
    async with program(tmp_path, [say("one")], there.url) as (agent, _):
        await events_of(agent, "go")
        before = loop.time()
    assert loop.time() - before < 3.0
    assert there.spans == []


async def test_without_a_screen_the_last_spans_are_waited_for(
    tmp_path: Path, there: LocalCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(span_export, "FLUSH_S", 0.01)
    there.hold.clear()
    async with program(tmp_path, [say("one")], there.url, one_turn=True) as (agent, _):
        await events_of(agent, "go")
        await asyncio.to_thread(there.asked.wait, PATIENCE_S)
        threading.Timer(0.1, there.hold.set).start()
    assert there.names[-1] == "invoke_agent holdfast"


async def test_a_sub_agents_spans_are_in_the_call_that_ran_it(
    tmp_path: Path, there: LocalCollector
) -> None:
    family = Family([task("look")], say("done"), look=[say("found")])
    async with program(tmp_path, (), there.url, provider=family) as (agent, _):
        await events_of(agent, "go")
    by_name = {one.name: one for one in there.spans}
    inner, tool = by_name["invoke_agent general"], by_name["execute_tool task"]
    assert inner.trace_id == tool.trace_id == by_name["invoke_agent holdfast"].trace_id
    assert inner.parent_span_id == tool.span_id
    ids = [one.span_id for one in there.spans]
    assert len({*ids}) == len(ids)


async def test_what_a_sub_agent_could_not_send_comes_with_the_next_run(
    tmp_path: Path, there: LocalCollector
) -> None:
    there.answers += [(503, {"retry-after": "60"}, b"")] * 2
    family = Family(
        [task("look"), task("see")], say("done"), look=[say("found")], see=[say("seen")]
    )
    async with program(tmp_path, (), there.url, provider=family) as (agent, _):
        await events_of(agent, "go")
        path = agent.session.path
    assert path is not None
    assert there.spans == []
    there.answers.clear()
    async with program(tmp_path, [say("more")], there.url, path=path) as (agent, _):
        await events_of(agent, "on")
    loaded = read(path)
    starts = [one.data for one in loaded.records if one.data.get("state") == "started"]
    inner = {one["session"]: read(path.parent / one["path"]).records for one in starts}
    expected = spans_of(loaded.header.id, loaded.records, {}, sub_agents=inner)
    sent = sorted((one.span_id.hex(), one.parent_span_id.hex()) for one in there.spans)
    assert sent == sorted((one.context.span_id, one.parent) for one in expected)
    assert there.names.count("invoke_agent general") == 2


OUTER = SpanContext("c1" * 16, "d2" * 8)


async def test_a_run_under_another_trace_is_part_of_it_and_commands_continue_their_call(
    tmp_path: Path, there: LocalCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER.traceparent)
    monkeypatch.setenv("TRACESTATE", "vendor=1")
    line = {"command": "echo $TRACEPARENT $TRACESTATE; true"}
    answers = [[call("run_command", "c1", **line)], say("one"), say("two")]
    async with program(tmp_path, answers, there.url, approver=Yes()) as (agent, _):
        await events_of(agent, "go")
        await events_of(agent, "on")
        results = [one for one in agent.session.records if one.type == "tool_result"]
    tool = next(one for one in there.spans if one.name == "execute_tool run_command")
    expected = SpanContext(OUTER.trace_id, tool.span_id.hex()).traceparent
    assert text_of(results[0].data["content"]).startswith(f"{expected} vendor=1\n")
    turns_ = [one for one in there.spans if one.name == "invoke_agent holdfast"]
    assert {one.parent_span_id.hex() for one in turns_} == {OUTER.span_id}
    assert {one.trace_id.hex() for one in there.spans} == {OUTER.trace_id}


async def test_without_a_trace_around_it_commands_continue_the_turns(
    tmp_path: Path, there: LocalCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER.traceparent.removesuffix("1") + "0")  # not sampled
    monkeypatch.setenv("TRACESTATE", "vendor=1")
    line = {"command": "echo $TRACEPARENT-$TRACESTATE; true"}
    answers = [[call("run_command", "c1", **line)], say("one")]
    async with program(tmp_path, answers, there.url, approver=Yes()) as (agent, _):
        await events_of(agent, "go")
        results = [one for one in agent.session.records if one.type == "tool_result"]
    tool = next(one for one in there.spans if one.name == "execute_tool run_command")
    own = SpanContext(tool.trace_id.hex(), tool.span_id.hex()).traceparent
    assert text_of(results[0].data["content"]).startswith(f"{own}-\n")
    assert own[3:35] != OUTER.trace_id
    assert {one.parent_span_id for one in there.spans if one.name == "invoke_agent holdfast"} == {
        b""
    }


async def test_where_no_spans_are_sent_the_trace_around_it_gets_through(
    tmp_path: Path, there: LocalCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", OUTER.traceparent)
    answers = [[call("run_command", "c1", command="echo $TRACEPARENT; true")], say("one")]
    more: Any = {"approver": Yes(), "enabled": False}
    async with program(tmp_path, answers, there.url, **more) as (agent, _):
        await events_of(agent, "go")
        records = agent.session.records
    (result,) = (one for one in records if one.type == "tool_result")
    assert text_of(result.data["content"]).startswith(f"{OUTER.traceparent}\n")
    (asked,) = (one for one in records if one.type == "user")
    assert not asked.data.keys() & {"collector", "traceparent"}


async def test_a_turn_that_goes_on_in_a_later_run_is_known_there(
    tmp_path: Path, there: LocalCollector
) -> None:
    provider = ScriptedProvider([call("list_dir", path=".")], OVERLOADED)
    async with program(tmp_path, (), there.url, provider=provider) as (agent, _):
        await events_of(agent, "go")
        before = agent.session.traceparent("")
        path = agent.session.path
    async with program(tmp_path, (), there.url, path=path) as (agent, _):
        assert before
        assert agent.session.traceparent("") == before


async def test_settings_that_cannot_be_used_are_said_and_hinder_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    async with program(tmp_path, [say("one")], "") as (agent, shown):
        await events_of(agent, "go")
        said = [one.text for one in shown if isinstance(one, facts.Notice)]
    assert [text for text in said if text.startswith("No spans are sent: grpc")]

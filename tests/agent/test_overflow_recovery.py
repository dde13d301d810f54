"""Overflow recovery through the agent: which requests are sent, and what the record says of it."""

from __future__ import annotations

import asyncio
import base64
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import MODEL, events_of, make_agent
from tests.support.provider import ScriptedProvider, call, say
from tui.agent.agent import Agent
from tui.agent.overflow_recovery import cap, silent_overflow
from tui.context.validate import check
from tui.core import facts
from tui.core.clock import SystemClock
from tui.core.errors import ErrorClass, LimitReachedError, Overflow, ProviderError
from tui.core.messages import Block, text_block, text_of
from tui.provider.base import ModelInfo, Request
from tui.session.records import Record
from tui.session.session import Session

SMALL = ModelInfo("test-model", 20_000, 8192, "server")
PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360606060000000050001a5f64540"
        "0000000049454e44ae426082"
    )
).decode()


def too_long(sizes: Overflow | None = None, kind: ErrorClass = "context_overflow") -> ProviderError:
    return ProviderError(kind, "prompt is too long", status=400, overflow=sizes)


@dataclass
class Compactions:
    """A compactor that does as it is told: `helps` says what each compaction comes to."""

    helps: list[bool] = field(default_factory=list[bool])
    reasons: list[str] = field(default_factory=list[str])
    digests: int = 0
    broken: bool = False
    stuck: bool = False

    async def due(self) -> bool:
        if self.broken:
            raise ZeroDivisionError("cannot count")
        if self.stuck:
            raise LimitReachedError("It helps no more.")
        return False

    async def compact(self, reason: str, *, focus: str = "") -> bool:
        self.reasons.append(reason)
        return self.helps.pop(0) if self.helps else False

    def digest(self) -> bool:
        self.digests += 1
        return False


def with_compactor(agent: Agent, compactor: Compactions) -> Agent:
    agent._turns.compactor = compactor  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue] - it stands in
    return agent


def result(session: Session, id_: str, content: list[Block]) -> None:
    session.append("assistant", content=[call("read_file", id_, path=id_)], model="test-model")
    session.append("tool_result", call_id=id_, name="read_file", content=content, is_error=False)


def script(*answers: Any) -> ScriptedProvider:
    """A provider whose models have a small window."""
    provider = ScriptedProvider(*answers)
    provider.window = SMALL.window
    return provider


def talk(session: Session, turns: int) -> None:
    for n in range(turns):
        session.append("user", content=[text_block(f"step {n} " * 60)], text="step")
        session.append("assistant", content=[text_block("yes " * 50)], model="test-model")


def with_results(root: Path, count: int = 3) -> Session:
    """A session that holds large results."""
    session = Session.in_memory(root, clock=SystemClock())
    talk(session, 6)
    session.append("user", content=[text_block("read them")], text="read them")
    for number in range(count):
        lines = "".join(f"line {n} of file {number}\n" for n in range(1500))
        result(session, f"r{number}", [text_block(lines)])
    session.append("assistant", content=[text_block("I have read them.")], model="test-model")
    return session


def steps(seen: list[facts.Fact]) -> list[str]:
    return [event.step for event in seen if isinstance(event, facts.RecoveryStep)]


def recorded(agent: Agent, type_: str) -> list[Record]:
    return [record for record in agent.session.records if record.type == type_]


async def test_O22_O24_a_request_is_sent_four_times_and_once_more_for_each_later_step(
    tmp_path: Path,
) -> None:
    provider = script(*[too_long() for _ in range(6)], say("still here"))
    agent = make_agent(tmp_path, provider, session=with_results(tmp_path), model=SMALL)
    compactor = Compactions([True, True, True, True])
    with_compactor(agent, compactor)
    seen = await events_of(agent, "and now?")
    assert compactor.reasons == ["overflow"] * 3
    assert steps(seen) == ["compaction"] * 3 + ["results", "digest"]
    assert len(provider.requests) == 4 + 1 + 1
    assert [check(request.messages) for request in provider.requests] == [[]] * 6
    (error,) = [event for event in seen if isinstance(event, facts.ErrorRaised)]
    assert error.error_class == "context_overflow"
    told = [(r.data["step"], r.data["error_class"]) for r in recorded(agent, "recovery")]
    assert told == [(step, "context_overflow") for step in steps(seen)]

    again = await events_of(agent, "are you there?")
    assert isinstance(again[-1], facts.TurnFinished)
    assert again[-1].outcome == "done"
    assert len(provider.requests) == 7


async def test_O23_O32_oversized_results_are_cut_by_overlays_and_the_record_stays(
    tmp_path: Path,
) -> None:
    provider = script(too_long(), say("now it fits"))
    session = with_results(tmp_path)
    before = [record.to_line() for record in session.records]
    agent = with_compactor(
        make_agent(tmp_path, provider, session=session, model=SMALL), Compactions()
    )
    seen = await events_of(agent, "and now?")
    assert steps(seen) == ["results"]
    assert [record.to_line() for record in agent.session.records[: len(before)]] == before
    overlays = recorded(agent, "overlay")
    assert {o.data["view"] for o in overlays} == {"clamped"}
    assert len(overlays) == 3
    first, second = (len(str(request.messages)) for request in provider.requests)
    assert second < first / 2
    assert check(provider.requests[-1].messages) == []
    (step,) = [event for event in seen if isinstance(event, facts.RecoveryStep)]
    assert step.tokens_after < step.tokens_before


async def test_46_O23_before_and_after_are_in_one_measure(tmp_path: Path) -> None:
    """The server counts more than is estimated here."""
    counted = Overflow(input_tokens=400_000, limit=SMALL.window)
    provider = script(too_long(counted), say("now it fits"))
    session = with_results(tmp_path)
    agent = with_compactor(
        make_agent(tmp_path, provider, session=session, model=SMALL), Compactions()
    )
    agent.context.view()
    before = agent.context.ledger.tokens
    seen = await events_of(agent, "and now?")
    (step,) = [event for event in seen if isinstance(event, facts.RecoveryStep)]
    after = next(
        event.tokens
        for event in seen[seen.index(step) :]
        if isinstance(event, facts.ContextMeasured)
    )
    assert after < before
    assert step.tokens_before == 400_000
    assert abs(step.tokens_after / step.tokens_before - after / before) < 0.02


async def test_O24_R38_the_last_step_is_a_digest_made_without_a_model(tmp_path: Path) -> None:
    provider = script(too_long(), too_long(), say("I know what was done"), say("and on"))
    session = Session.in_memory(tmp_path, clock=SystemClock())
    talk(session, 30)
    agent = with_compactor(
        make_agent(tmp_path, provider, session=session, model=SMALL), Compactions([True])
    )
    seen = await events_of(agent, "the last question")
    assert steps(seen) == ["compaction", "digest"]
    assert seen[-1].type == "turn_finished"
    (repair,) = recorded(agent, "repair")
    assert (repair.data["rung"], repair.data["by"]) == ("summary_only", "overflow")
    (message,) = provider.requests[-1].messages
    assert text_of(message["content"]).endswith("the last question")
    assert agent.context.ledger.tokens < 10_000

    await events_of(agent, "and then?")
    assert [m["role"] for m in provider.requests[-1].messages] == ["user", "assistant", "user"]
    assert check(provider.requests[-1].messages) == []


async def test_O25_a_compaction_that_fails_never_starts_another(tmp_path: Path) -> None:
    provider = script(too_long(), too_long(), say("ok"))
    agent = make_agent(tmp_path, provider, session=with_results(tmp_path), model=SMALL)
    compactor = Compactions([False, True])
    with_compactor(agent, compactor)
    seen = await events_of(agent, "go")
    assert compactor.reasons == ["overflow"]
    assert steps(seen) == ["results", "digest"]


async def test_O25_an_overflow_inside_a_real_compaction_starts_no_other(tmp_path: Path) -> None:
    def refuses_summaries(request: Request) -> list[Block]:
        if not request.tools:
            raise too_long()
        return say("done")

    provider = script(too_long(), *[refuses_summaries] * 40)
    agent = make_agent(tmp_path, provider, session=with_results(tmp_path, 1), model=SMALL)
    seen = await events_of(agent, "go")
    finished = [e for e in seen if isinstance(e, facts.CompactionFinished)]
    assert len(finished) == 1
    assert finished[0].problem
    assert steps(seen) == ["results"]
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"
    assert recorded(agent, "compaction") == []


async def test_O28_a_shorter_answer_is_asked_for_before_anything_is_compacted(
    tmp_path: Path,
) -> None:
    sizes = Overflow(input_tokens=15_000, max_tokens=8192, limit=20_000)
    provider = ScriptedProvider(too_long(sizes), say("short"))
    compactor = Compactions([True])
    agent = with_compactor(make_agent(tmp_path, provider, model=MODEL), compactor)
    seen = await events_of(agent, "go")
    assert provider.requests[-1].max_tokens == 20_000 - 15_000 - 1024
    assert provider.requests[-1].messages == provider.requests[0].messages
    assert compactor.reasons == []
    assert steps(seen) == ["output"]


async def test_O28_a_server_that_repeats_its_figures_is_not_asked_for_ever(tmp_path: Path) -> None:
    sizes = Overflow(input_tokens=15_000, max_tokens=8192, limit=20_000)
    provider = ScriptedProvider(*[too_long(sizes)] * 2)
    agent = with_compactor(make_agent(tmp_path, provider, model=MODEL), Compactions())
    seen = await events_of(agent, "go")
    assert len(provider.requests) == 2
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "failed"


async def test_O29_an_overflow_of_an_earlier_model_compacts_nothing(tmp_path: Path) -> None:
    def switched(_: Request) -> list[Block]:
        agent.models.use(replace(MODEL, id="larger-model"))
        raise too_long()

    provider = ScriptedProvider(switched, say("fits here"))
    compactor = Compactions([True])
    agent = with_compactor(make_agent(tmp_path, provider), compactor)
    seen = await events_of(agent, "go")
    assert [request.model for request in provider.requests] == ["test-model", "larger-model"]
    assert compactor.reasons == []
    assert steps(seen) == []


async def test_O29_an_overflow_before_the_last_compaction_compacts_nothing(tmp_path: Path) -> None:
    def compacted_meanwhile(_: Request) -> list[Block]:
        agent.session.append("compaction", summary="s", covers="nothing")
        raise too_long()

    provider = ScriptedProvider(compacted_meanwhile, say("fits"))
    compactor = Compactions([True])
    agent = with_compactor(make_agent(tmp_path, provider), compactor)
    await events_of(agent, "go")
    assert len(provider.requests) == 2
    assert compactor.reasons == []


def answered(model: str = "test-model", **usage: int) -> Record:
    return Record("assistant", "1", None, "", {"model": model, "usage": usage})


def test_O30_more_input_than_the_window_is_an_overflow_that_nobody_told_of() -> None:
    over = answered(input_tokens=150_000, cache_read_input_tokens=60_000)
    fits = answered(input_tokens=150_000, cache_read_input_tokens=50_000)
    later = Record("compaction", "2", None, "", {})
    assert silent_overflow([over], "test-model", 200_000) is over
    assert silent_overflow([fits], "test-model", 200_000) is None
    assert silent_overflow([over, later], "test-model", 200_000) is None
    assert silent_overflow([over], "another-model", 200_000) is None
    assert silent_overflow([over, fits], "test-model", 200_000) is None


async def test_O30_it_is_compacted_once_before_the_next_request(tmp_path: Path) -> None:
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[text_block("hi")], text="hi")
    usage = {"input_tokens": 250_000, "output_tokens": 5}
    session.append("assistant", content=say("Hi."), model="test-model", usage=usage)
    provider = ScriptedProvider(say("a"), say("b"))
    compactor = Compactions([False, True])
    agent = with_compactor(make_agent(tmp_path, provider, session=session), compactor)
    await events_of(agent, "go")
    assert compactor.reasons == ["overflow"]
    await events_of(agent, "again")
    assert compactor.reasons == ["overflow"]


class Answering(ScriptedProvider):
    """A server that says how large the window of its model is."""

    def __init__(self, info: ModelInfo, *script: Any) -> None:
        super().__init__(*script)
        self._info = info

    async def model_info(self, model: str) -> ModelInfo:
        await asyncio.sleep(0)
        return self._info


def resumed(tmp_path: Path, *, held: int) -> Session:
    """A session whose last request held so many tokens."""
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[text_block("hi")], text="hi")
    usage = {"input_tokens": held, "output_tokens": 5}
    session.append("assistant", content=say("Hi."), model="test-model", usage=usage)
    return session


@pytest.mark.parametrize("source", ["assumed", "catalogue", "server"])
async def test_O30_a_window_holds_whoever_named_it(tmp_path: Path, source: Any) -> None:
    info = ModelInfo("test-model", 200_000, 4096, source)
    compactor = Compactions([True])
    session = resumed(tmp_path, held=250_000)
    provider = Answering(info, say("a"))
    agent = with_compactor(make_agent(tmp_path, provider, session=session, model=info), compactor)
    seen = await agent.start() + await events_of(agent, "go")
    assert compactor.reasons == ["overflow"]
    windows = {event.window for event in seen if isinstance(event, facts.ContextMeasured)}
    assert windows == {200_000}
    (text,) = [event.text for event in seen if isinstance(event, facts.Notice)]
    assert text.startswith(
        "The last request had 250,000 tokens; the window of test-model is 200,000"
    )
    assert ("set context_window" in text) == (source == "assumed")


@pytest.mark.parametrize(("window", "reasons"), [(1_000_000, []), (200_000, ["overflow"])])
async def test_O30_the_servers_word_on_the_window_is_waited_for(
    tmp_path: Path, window: int, reasons: list[str]
) -> None:
    compactor = Compactions([True])
    named = ModelInfo("test-model", window, 4096, "server")
    assumed = ModelInfo("test-model", 200_000, 4096, "assumed")
    session = resumed(tmp_path, held=250_000)
    provider = Answering(named, say("a"))
    agent = with_compactor(
        make_agent(tmp_path, provider, session=session, model=assumed), compactor
    )
    await events_of(agent, "go")
    assert compactor.reasons == reasons


async def test_O31_B35_images_of_earlier_turns_go_first_where_the_body_is_too_large(
    tmp_path: Path,
) -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    image: Block = {"type": "image", "source": source}
    session = Session.in_memory(tmp_path, clock=SystemClock())
    session.append("user", content=[text_block("see this"), image], text="see this")
    result(session, "shot", [text_block("a picture"), image])
    session.append("assistant", content=say("I see."), model="test-model")
    provider = ScriptedProvider(too_long(kind="payload_too_large"), say("ok"))
    compactor = Compactions([True])
    agent = with_compactor(make_agent(tmp_path, provider, session=session), compactor)
    seen = await events_of(agent, "go")
    assert steps(seen) == ["images"]
    assert compactor.reasons == []
    first, second = (str(request.messages) for request in provider.requests)
    assert first.count(PIXEL) == 2
    assert PIXEL not in second
    assert "see this" in second
    assert "a picture" in second
    assert second.count("[image left out: too large to send]") == 2
    assert check(provider.requests[-1].messages) == []


async def test_R11_a_failing_compaction_check_is_logged_and_the_turn_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = make_agent(tmp_path, ScriptedProvider(say("fine")))
    with_compactor(agent, Compactions(broken=True))
    with caplog.at_level(logging.ERROR):
        seen = await events_of(agent, "go")
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "done"
    assert "the turn continues" in caplog.text


async def test_R11_a_cancellation_in_the_check_is_passed_on(tmp_path: Path) -> None:
    class Cancelled(Compactions):
        async def due(self) -> bool:
            raise asyncio.CancelledError

    provider = ScriptedProvider(say("never"))
    agent = with_compactor(make_agent(tmp_path, provider), Cancelled())
    seen = await events_of(agent, "go")
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "interrupted"
    assert provider.requests == []


async def test_compaction_that_helps_no_more_is_a_limit(tmp_path: Path) -> None:
    provider = ScriptedProvider()
    agent = with_compactor(make_agent(tmp_path, provider), Compactions(stuck=True))
    seen = await events_of(agent, "go")
    assert seen[-1].type == "turn_finished"
    assert isinstance(seen[-1], facts.TurnFinished)
    assert seen[-1].outcome == "limit"
    assert provider.requests == []


async def test_a_server_that_names_its_window_is_believed(tmp_path: Path) -> None:
    sizes = Overflow(input_tokens=210_000, limit=131_072)
    provider = ScriptedProvider(too_long(sizes), say("ok"))
    agent = with_compactor(make_agent(tmp_path, provider), Compactions([True]))
    seen = await events_of(agent, "go")
    (step,) = [event for event in seen if isinstance(event, facts.RecoveryStep)]
    assert step.tokens_before == 210_000
    now = [event for event in seen if isinstance(event, facts.ContextMeasured)]
    assert 131_072 in {event.window for event in now}


@pytest.mark.parametrize(
    ("sizes", "total", "most"),
    [
        ([], 1000, 500),
        ([100, 200], 10_000, 500),
        ([9000, 9000, 9000], 6000, 2000),
        ([1000, 9000, 9000], 6000, 2500),
        ([9000] * 30, 6000, 500),
        ([3000, 2000], 6000, 3000),
    ],
)
def test_O23_what_each_result_may_take(sizes: list[int], total: int, most: int) -> None:
    assert cap(sizes, total) == most


async def test_events_have_their_lines(tmp_path: Path) -> None:
    line: dict[str, Any] = facts.RecoveryStep("results", "2 cut", 900, 300).to_json()
    assert line == {
        "type": "recovery",
        "step": "results",
        "text": "2 cut",
        "tokens_before": 900,
        "tokens_after": 300,
    }

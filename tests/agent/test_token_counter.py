"""The server's own counts: asked for in the background, taken where nothing newer is known.

They go through the real SDK to a server that checks what is counted as it checks what is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.agent.test_requests_grow import bare
from tests.support.agents import Yes, events_of, make_agent
from tests.support.clock import PATIENCE_S, FakeClock
from tests.support.server import LoopbackServer, SeenRequest
from tests.support.server_script import Json
from tui.agent import token_counter
from tui.agent.agent import Agent
from tui.agent.limits import Limits
from tui.core import facts
from tui.core.clock import Clock, SystemClock
from tui.core.config import Retry
from tui.core.facts import ContextMeasured, Debug, Fact, Overlay
from tui.core.paths import folders
from tui.provider import catalogue
from tui.provider.anthropic import AnthropicProvider
from tui.provider.base import Provider, Request
from tui.provider.provider_wrapper import ProviderWrapper
from tui.provider.retry import RetryProvider
from tui.session.session import Session

SONNET, OPUS, HAIKU = "claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"
FILE = "the quick brown fox jumps over the lazy dog, again\n" * 400
PATH = "/v1/messages/count_tokens"
SERVER: dict[str, Any] = {"first_party": True, "server": "api"}
"""One that knows all of the API."""


def script(turns: int = 4, **more: Any) -> Json:
    """Turns in which a file is read, thought about, and answered."""
    read = {"name": "read_file", "input": {"path": "r.txt"}}
    steps: list[Json] = []
    for n in range(turns):
        steps += [{"thinking": f"read {n}", "tools": [read]}, {"thinking": f"t{n}", "text": "Yes."}]
    return {"turns": steps, "catalogue": True, "priced": True, **more}


@dataclass
class Counted:
    """An agent that counts, its server, and what is shown between the turns."""

    agent: Agent
    server: LoopbackServer
    shown: asyncio.Queue[Fact]

    @property
    def counts(self) -> list[SeenRequest]:
        return [seen for seen in self.server.requests if seen.path == PATH]

    async def turn(self, prompt: str = "Read it.") -> list[Fact]:
        return await asyncio.wait_for(events_of(self.agent, prompt), PATIENCE_S)

    def use(self, model: str) -> None:
        self.agent.models.use(catalogue.model_info(model))

    async def next(self) -> Fact:
        return await asyncio.wait_for(self.shown.get(), PATIENCE_S)

    async def measured(self) -> ContextMeasured:
        event = await self.next()
        assert isinstance(event, ContextMeasured), event
        return event

    async def rest(self) -> None:
        """Until no question is under way."""
        while under_way := _questions():
            await asyncio.wait(under_way, timeout=PATIENCE_S)
            await asyncio.sleep(0)

    def types(self, kind: str) -> list[Json]:
        return [r.data for r in self.agent.session.records if r.type == kind]

    async def mask(self) -> Sequence[Fact]:
        """Leave out what was read last."""
        results = [r.id for r in self.agent.session.records if r.type == "tool_result"][-1:]
        return await self.agent.context.overlay(
            [Overlay(id_, "masked", "person") for id_ in results]
        )


def _questions() -> set[asyncio.Task[Any]]:
    return {task for task in asyncio.all_tasks() if task.get_name() == "count of tokens"}


@asynccontextmanager
async def counted(
    root: Path,
    *,
    session: Session | None = None,
    model: str = SONNET,
    key: str = "k",
    clock: Clock | None = None,
    wrap: Any = None,
    played: Json | None = None,
    limits: Limits | None = None,
    parts: dict[str, Any] | None = None,
) -> AsyncGenerator[Counted]:
    (root / "r.txt").write_text(FILE)
    async with LoopbackServer(played or script()) as server:
        provider: Provider = AnthropicProvider(
            api_key=key, clock=SystemClock(), base_url=server.url
        )
        provider = wrap(provider) if wrap else provider
        agent = make_agent(
            root,
            provider,
            model=catalogue.model_info(model),
            session=session,
            approver=Yes(),
            clock=clock or FakeClock(),
            limits=limits,
            **SERVER | (parts or {}),
        )
        await agent.start()
        shown = asyncio.Queue[Fact]()
        agent.watch(shown.put_nowait)
        agent.count_tokens()
        try:
            yield Counted(agent, server, shown)
        finally:
            await asyncio.wait_for(agent.close(), PATIENCE_S)


async def test_after_another_model_was_chosen_the_server_counts(tmp_path: Path) -> None:
    async with counted(tmp_path) as one:
        await one.turn()
        assert one.counts == []  # the answer has just said it
        one.use(OPUS)
        assert one.agent.context.ledger.measure().measured == 0
        now = await one.measured()
        assert (now.measured, now.estimated) == (now.tokens, 0)
        assert now.drift is not None
        (asked,) = one.counts
        assert asked.body["model"] == OPUS
        assert "max_tokens" not in asked.body
        seen = await one.turn("Once more.")
        first = next(e for e in seen if isinstance(e, facts.AssistantMessage))
        assert abs(now.tokens / first.usage.prompt_tokens - 1) < 0.005


async def test_what_is_counted_extends_the_last_request_with_its_thinking(tmp_path: Path) -> None:
    async with counted(tmp_path) as one:
        await one.turn()
        await one.turn()
        await one.mask()
        now = await one.measured()
        assert now.estimated == 0
        (asked,) = one.counts
        assert "thinking" in str(asked.body["messages"])
        seen = await one.turn("Go on.")
        after = one.server.posts[4].body
        kept = bare(asked.body)[:-1]  # less the prompt that stands for the next
        assert bare(after)[: len(kept)] == kept
        assert len(one.types("break")) == 1
        first = next(e for e in seen if isinstance(e, facts.AssistantMessage))
        assert abs(now.tokens / first.usage.prompt_tokens - 1) < 0.005


async def test_several_changes_are_one_question(tmp_path: Path) -> None:
    async with counted(tmp_path) as one:
        await one.turn()
        for model in (OPUS, HAIKU, SONNET, OPUS):
            one.use(model)
        await one.mask()
        assert (await one.measured()).estimated == 0
        await one.rest()
        assert len(one.counts) == 1


async def test_two_questions_keep_a_distance(tmp_path: Path) -> None:
    clock = FakeClock()
    async with counted(tmp_path, clock=clock) as one:
        await one.turn()
        one.use(OPUS)
        await one.measured()
        one.use(HAIKU)
        await one.measured()
        assert clock.slept[-2:] == [token_counter.DELAY_S, token_counter.DISTANCE_S]


async def test_a_small_change_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    async with counted(tmp_path / "small") as one:
        (tmp_path / "small" / "r.txt").write_text("short")
        await one.turn()
        await one.mask()
        assert _questions() == set()
        assert one.counts == []


@pytest.mark.parametrize("parts", [{"first_party": False}, {}])
async def test_other_servers_and_new_sessions_are_not_asked(
    tmp_path: Path, parts: dict[str, Any]
) -> None:
    async with counted(tmp_path, parts=parts) as one:
        if parts:
            await one.turn()
        one.use(OPUS)
        await one.rest()
        assert one.counts == []
        assert one.shown.empty()


async def test_without_front_end_nothing_is_counted(tmp_path: Path) -> None:
    async with LoopbackServer(script()) as server:
        provider = AnthropicProvider(api_key="k", clock=SystemClock(), base_url=server.url)
        info = catalogue.model_info(SONNET)
        agent = make_agent(tmp_path, provider, model=info, first_party=True, clock=FakeClock())
        await agent.start()
        await events_of(agent, "hello")
        agent.models.use(catalogue.model_info(OPUS))
        assert _questions() == set()
        await agent.close()


class Held(ProviderWrapper):
    """Holds the answers to counts back until they are let go."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider)
        self.go = asyncio.Event()
        self.asked = asyncio.Event()

    async def count_tokens(self, request: Request) -> int:
        found = await super().count_tokens(request)
        self.asked.set()
        await self.go.wait()
        return found


async def test_a_count_that_a_turn_overtook_is_not_taken(tmp_path: Path) -> None:
    held: list[Held] = []

    def wrap(provider: Provider) -> Provider:
        held.append(Held(provider))
        return held[0]

    async with counted(tmp_path, wrap=wrap) as one:
        await one.turn()
        one.use(OPUS)
        await asyncio.wait_for(held[0].asked.wait(), PATIENCE_S)
        await one.turn("Go on.")  # nothing waits for the count
        before = one.agent.context.ledger.measure()
        held[0].go.set()
        await one.rest()
        assert one.agent.context.ledger.measure() == before
        assert one.shown.empty()
        assert len(one.counts) == 1


async def test_a_count_that_a_change_overtook_is_asked_again(tmp_path: Path) -> None:
    held: list[Held] = []

    def wrap(provider: Provider) -> Provider:
        held.append(Held(provider))
        return held[0]

    async with counted(tmp_path, wrap=wrap) as one:
        await one.turn()
        one.use(OPUS)
        await asyncio.wait_for(held[0].asked.wait(), PATIENCE_S)
        await one.mask()
        held[0].go.set()
        now = await one.measured()
        assert [body["model"] for body in (seen.body for seen in one.counts)] == [OPUS, OPUS]
        assert FILE[:40] not in str(one.counts[1].body["messages"])
        assert now.tokens == one.agent.context.ledger.tokens
        await one.rest()
        assert one.shown.empty()


async def test_a_400_is_no_break_and_only_verbose_says_it(tmp_path: Path) -> None:
    why = "messages.1.content.0: `thinking` blocks are bound to a different conversation"
    faults = [{"status": 400, "type": "invalid_request_error", "message": why}] * 2
    async with counted(tmp_path, played=script(count_faults=faults)) as one:
        await one.turn()
        one.use(OPUS)
        await one.rest()
        assert one.shown.empty()
        assert len(one.counts) == 1
        await one.turn("/verbose on")
        await one.rest()
        assert len(one.counts) == 1  # the same is not asked twice
        one.use(HAIKU)
        said = await one.next()
        assert isinstance(said, Debug)
        assert "didn't count the tokens" in said.text
        await one.turn("Go on.")
        assert (one.types("break"), one.types("error"), one.types("feature")) == ([], [], [])


@pytest.mark.parametrize(
    "fault",
    [
        {"status": 404, "type": "not_found_error", "message": "Not found: count_tokens"},
        {"status": 405, "body": "Method Not Allowed"},
        {"status": 501, "body": "Not Implemented"},
        {"status": 200, "html": "Welcome to the gateway"},
    ],
)
async def test_a_server_that_cannot_count_is_not_asked_again(
    tmp_path: Path, fault: Json, own_folders: Path
) -> None:
    clock = SystemClock()
    session = Session.create(tmp_path, folders=folders(), clock=clock)
    path = session.path
    assert path is not None
    async with counted(tmp_path, session=session, played=script(count_faults=[fault])) as one:
        await one.turn()
        size = path.stat().st_size
        one.use(OPUS)
        await one.rest()
        assert path.stat().st_size == size  # a session that is only looked at does not change
        await one.mask()
        await one.rest()
        assert len(one.counts) == 1
        await one.turn("Go on.")
        (found,) = one.types("feature")
        assert (found["feature"], found["model"]) == (token_counter.COUNTS, OPUS)
    again = await asyncio.to_thread(Session.open, path, clock=clock)
    async with counted(tmp_path, session=again, model=OPUS) as one:
        await one.mask()
        assert _questions() == set()
        assert one.counts == []


async def test_a_busy_server_is_left_alone_for_a_while(tmp_path: Path) -> None:
    clock = FakeClock()
    limit = {"status": 429, "type": "rate_limit_error", "message": "slow", "retry_after": 300}

    def wrap(provider: Provider) -> Provider:
        return RetryProvider(provider, retry=Retry(), clock=clock)

    async with counted(
        tmp_path, clock=clock, wrap=wrap, played=script(count_faults=[limit])
    ) as one:
        await one.turn()
        one.use(OPUS)
        await one.rest()
        assert one.shown.empty()
        one.use(HAIKU)
        assert (await one.measured()).estimated == 0
        assert clock.slept[-1] == 300
        assert len(one.counts) == 2


async def test_a_server_that_fails_again_and_again_is_asked_ever_less(tmp_path: Path) -> None:
    clock = FakeClock()
    faults = [{"status": 500, "message": "oh"}] * 3
    async with counted(tmp_path, clock=clock, played=script(count_faults=faults)) as one:
        await one.turn()
        for model in (OPUS, HAIKU, OPUS):
            one.use(model)
            await one.rest()
        one.use(HAIKU)
        await one.measured()
        assert clock.slept[-4:] == [2.0, 60.0, 120.0, 240.0]


async def test_a_silent_server_holds_nothing_up(tmp_path: Path) -> None:
    slow = {"status": 500, "slow_s": 10 * PATIENCE_S}
    async with counted(tmp_path, played=script(count_faults=[slow])) as one:
        await one.turn()
        one.use(OPUS)
        while not one.counts:  # noqa: ASYNC110 - the server says nothing
            await asyncio.sleep(0.001)
        await one.turn("Go on.")
        one.use(HAIKU)
        assert len(one.counts) == len(_questions()) == 1  # one at a time
        (asked,) = one.counts
    await asyncio.wait_for(asked.gone.wait(), PATIENCE_S)
    assert one.shown.empty()


async def test_without_a_key_nothing_is_sent(tmp_path: Path) -> None:
    async with counted(tmp_path) as one:
        await one.turn()
        records = one.agent.session.records
    provider = AnthropicProvider(api_key=None, clock=SystemClock())
    session = Session.in_memory(tmp_path, clock=FakeClock())
    for record in records:
        session.append(record.type, **record.data)
    info = catalogue.model_info(OPUS)
    parts: dict[str, Any] = {"session": session, "clock": FakeClock()}
    agent = make_agent(tmp_path, provider, model=info, **SERVER, **parts)
    await agent.start()
    shown = list[Fact]()
    agent.watch(shown.append)
    agent.count_tokens()
    assert _questions() != set()
    await asyncio.wait(_questions())
    assert shown == []
    await agent.close()


@pytest.mark.parametrize(("key", "server"), [("other", "api"), ("k", "elsewhere")])
async def test_a_session_that_is_resumed_with_another_key_or_server(
    tmp_path: Path, own_folders: Path, key: str, server: str
) -> None:
    clock = SystemClock()
    session = Session.create(tmp_path, folders=folders(), clock=clock)
    path = session.path
    assert path is not None
    played = script(organizations={"k": "home", "other": "away"})
    async with counted(tmp_path, session=session, model=OPUS, played=played) as one:
        await one.turn()
    again = await asyncio.to_thread(Session.open, path, clock=clock)
    parts = {"server": server}
    async with counted(tmp_path, session=again, key=key, played=played, parts=parts) as one:
        if server == "api":
            assert (await one.measured()).estimated == 0
        await one.rest()
        assert len(one.counts) == (server == "api")  # another one has seen nothing of it
        seen = await one.turn("Go on.")
        assert isinstance(seen[-1], facts.TurnFinished)
        assert seen[-1].outcome == "done"


async def test_a_session_that_is_resumed_as_it_was_is_not_counted(
    tmp_path: Path, own_folders: Path
) -> None:
    clock = SystemClock()
    session = Session.create(tmp_path, folders=folders(), clock=clock)
    path = session.path
    assert path is not None
    async with counted(tmp_path, session=session) as one:
        await one.turn()
    again = await asyncio.to_thread(Session.open, path, clock=clock)
    async with counted(tmp_path, session=again) as one:
        assert _questions() == set()


async def test_what_a_failed_request_carried_is_counted(tmp_path: Path) -> None:
    fault = {"status": 400, "type": "invalid_request_error", "message": "no"}
    turns = [{"text": "Yes."}, {"faults": [fault], "text": "Yes."}]
    played: Json = {"turns": turns, "catalogue": True, "priced": True}
    async with counted(tmp_path, played=played) as one:
        await one.turn()
        await one.turn(FILE)
        assert (await one.measured()).estimated == 0
        (asked,) = one.counts
        assert FILE.splitlines()[0] in str(asked.body["messages"])


async def test_what_no_request_has_carried_is_not_shown_to_the_server(tmp_path: Path) -> None:
    async with counted(tmp_path, limits=Limits(max_turns=1)) as one:
        await one.turn()  # ends with what was read
        assert one.types("tool_result")
        await one.rest()
        one.use(OPUS)
        await one.rest()
        assert one.counts == []

"""Prompt caching over a long session: what is read, what is written, and why (decision 26)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.agents import events_of, make_agent
from tests.support.prompt_cache import EVERY_TURN, HOUR, NEVER, PAYS, Prices, PromptCache, play
from tests.support.provider import ScriptedProvider, call, say
from tui.context.cache_cost import PruneFigures, expected, verdict
from tui.context.rules.request import marks_in
from tui.core import facts
from tui.core.config import Config, Prune
from tui.core.messages import Block, text_block
from tui.provider.base import Request


def request(*texts: str, marks: tuple[int, ...] = ()) -> Request:
    messages = [{"role": "user", "content": [text_block(text)]} for text in texts]
    for mark in marks:
        messages[mark]["content"][0]["cache_control"] = {"type": "ephemeral"}  # type: ignore[index]
    return Request("m", [], messages, [], 10)  # type: ignore[arg-type]


def extends(before: Request, after: Request) -> bool:
    """Whether one request is the beginning of the other, cache marks aside."""

    def bare(sent: Request) -> list[object]:
        blocks = [*sent.tools, *sent.system]
        blocks += [{"role": m["role"], **block} for m in sent.messages for block in m["content"]]
        return [{n: v for n, v in block.items() if n != "cache_control"} for block in blocks]

    return bare(after)[: len(bare(before))] == bare(before)


def reads(turns: int) -> list[list[Block]]:
    """The answers of turns that read a file each."""
    calls = [call("read_file", id_=f"c{n}", path="a.txt") for n in range(turns)]
    return [answer for one in calls for answer in ([one], say("ok"))]


def test_the_cache_model_reads_the_longest_living_prefix() -> None:
    cache = PromptCache()
    words = "w" * 4000
    first = cache.send(request(words, words, marks=(1,)), 0.0)
    assert first.cache_read_input_tokens == 0
    again = cache.send(request(words, words, words, marks=(2,)), 299.0)
    assert again.cache_read_input_tokens == first.cache_creation_input_tokens > 1900
    assert cache.send(request(words, words, marks=(1,)), 900.0).cache_read_input_tokens == 0
    assert cache.send(request("other", words, marks=(1,)), 901.0).cache_read_input_tokens == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "prices", [pytest.param(None, id="five minutes"), pytest.param(HOUR, id="an hour")]
)
async def test_a_session_of_sixty_turns_by_price_class(
    tmp_path: Path, prices: Prices | None
) -> None:
    found = {
        name: await play(tmp_path, name, 60, rule, prices=prices)
        for name, rule in (("pays", PAYS), ("no pruning", NEVER), ("every turn", EVERY_TURN))
    }
    for outcome in found.values():
        print(outcome.line())
    best = found["pays"].cost
    assert best < 0.6 * found["every turn"].cost
    alone = found["no pruning"].cost
    if prices is None:  # the life that our breakpoints ask for
        assert best < 0.95 * alone
    else:  # pruned after pauses that such a cache outlives, it costs a quarter more
        assert alone < best < 1.3 * alone
    reads = found["pays"].usage.cache_read_input_tokens
    assert reads > 4 * found["pays"].usage.cache_creation_input_tokens


async def test_no_request_has_more_than_four_breakpoints_and_each_reads_the_last(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("alpha beta\n" * 300)
    steps = [
        a for n in range(12) for a in ([call("read_file", id_=f"c{n}", path="a.txt")], say("ok"))
    ]
    provider = ScriptedProvider(*steps)
    agent = make_agent(tmp_path, provider, config=Config(prune=Prune(after_turns=2, when="turns")))
    cache, now = PromptCache(), 0.0
    for turn in range(12):
        await events_of(agent, f"turn {turn}")
    for number, sent in enumerate(provider.requests):
        marks = marks_in(sent.system) + sum(marks_in(m["content"]) for m in sent.messages)
        assert marks <= 4
        now += 10.0
        usage = cache.send(sent, now)
        before = provider.requests[number - 1]
        if number and extends(before, sent):
            assert usage.cache_creation_input_tokens < 3000
        elif number:  # pruning changed a message: all before it is read, if no error is there
            assert usage.cache_read_input_tokens > 0


async def test_nothing_changes_a_cached_prefix_without_a_break_that_is_shown(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("alpha beta\n" * 300)
    provider = ScriptedProvider(*reads(8), say("thought"))
    agent = make_agent(tmp_path, provider, config=Config(prune=Prune(after_turns=1, when="turns")))
    told: list[facts.ContextBroken] = []
    for turn in range(8):
        found = await events_of(agent, f"turn {turn}")
        told += [event for event in found if isinstance(event, facts.ContextBroken)]
    found = await events_of(agent, "/think go")
    told += [event for event in found if isinstance(event, facts.ContextBroken)]
    changes = [not extends(a, b) for a, b in pairwise(provider.requests)]
    assert len(told) == sum(changes) > 5
    assert {event.reason for event in told} <= {"prune", "unexplained"}


def test_D26_the_verdict_weighs_what_is_saved_against_what_is_written_again() -> None:
    figures = PruneFigures(saved=10_000, rewritten=5000, requests=3, idle_s=10.0)
    assert not verdict(figures).pays
    assert not verdict(replace(figures, requests=6)).pays
    assert not verdict(replace(figures, paid=9000.0)).pays
    assert not verdict(replace(figures, requests=6, paid=11_499.0)).pays
    assert verdict(replace(figures, requests=6, paid=11_500.0)).pays
    assert verdict(replace(figures, idle_s=300.0)).pays
    assert not verdict(replace(figures, idle_s=299.0)).pays
    assert expected(10, 40_000, 120_000.0) == 10
    assert expected(10, 120_000, 40_000.0) == 3
    assert expected(0, 0, 160_000.0) == expected(9, 170_000, -10.0) == 0
    assert not verdict(replace(figures, saved=0, idle_s=None)).pays
    assert "5,000 would be cached again" in verdict(figures).reason

"""Requests are shared out as if each part were looked at in each request."""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose
from random import Random

import pytest

from tui.context.usage.amounts import Amount, TokenRates
from tui.context.usage.shares import SharedCosts, split
from tui.core.messages import Usage
from tui.provider.prices import price_of

PRICE = price_of("claude-opus-5-5", {})


def naive(weights: list[float], usage: Usage, before: float) -> list[list[float]]:
    """The tokens of each part by class, one part after the other."""
    scale = (usage.prompt_tokens - before) / sum(weights)
    told: list[list[float]] = []
    start = before
    for weight in weights:
        told.append([*split(usage, start, start + weight * scale)])
        start += weight * scale
    return told


@pytest.mark.parametrize("seed", range(60))
def test_shares_are_those_of_each_request_by_itself(seed: int) -> None:
    chance = Random(seed)
    told: dict[int, Amount] = {}
    costs: SharedCosts[int] = SharedCosts()

    def keep(count: int) -> None:
        take(costs.keep(count))

    def take(some: Iterable[tuple[int, Amount]]) -> None:
        for owner, amount in some:
            told.setdefault(owner, Amount()).add(amount)

    row: list[tuple[int, float]] = []
    wanted: dict[int, list[float]] = {}
    spent = 0
    for _ in range(chance.randint(1, 30)):
        if row and chance.random() < 0.3:
            left = chance.randint(0, len(row))
            keep(left)
            del row[left:]
        if chance.random() < 0.2:
            take(costs.settle())
        for _ in range(chance.randint(0 if row else 1, 5)):
            row.append((chance.randint(0, 6), chance.choice((0.0, 1.0, 7.5, 300.0))))
            costs.extend([((row[-1][0],), row[-1][1])])
        if not sum(weight for _, weight in row):
            continue
        counts = [chance.choice((0, chance.randint(0, 5000))) for _ in range(3)]
        usage = Usage(counts[0], 0, counts[1], counts[2])
        before = chance.choice((0.0, usage.prompt_tokens * chance.random() * 0.9))
        if not usage.prompt_tokens:
            continue
        costs.charge(usage, TokenRates.of(usage, PRICE), before)
        spent += round(usage.prompt_tokens - before)
        shares = naive([weight for _, weight in row], usage, before)
        for (owner, _), share in zip(row, shares, strict=True):
            sums = wanted.setdefault(owner, [0.0, 0.0, 0.0])
            wanted[owner] = [a + b for a, b in zip(sums, share, strict=True)]
    keep(0)
    for owner, sums in wanted.items():
        one = told.get(owner, Amount())
        shared = zip([one.read, one.written, one.fresh], sums, strict=True)
        assert all(isclose(a, b, abs_tol=1e-4) for a, b in shared)
    assert isclose(sum(one.tokens for one in told.values()), spent, abs_tol=40)


def test_a_part_costs_what_its_tokens_do() -> None:
    costs: SharedCosts[str] = SharedCosts()
    costs.extend([(("tools",), 600), (("prompt",), 400)])
    usage = Usage(100, 0, 300, 600, ephemeral_1h_input_tokens=300)
    costs.charge(usage, TokenRates.of(usage, PRICE), 0)
    told = dict(costs.keep(0))
    tools, prompt = told["tools"], told["prompt"]
    assert (tools.read, tools.new, prompt.read) == (600, 0, 0)
    assert isclose(tools.usd, 600 * 0.2e-6)
    assert isclose(prompt.written, 300)
    assert isclose(prompt.fresh, 100)
    assert isclose(prompt.written_usd, 300 * 8e-6)
    assert isclose(prompt.fresh_usd, 100 * 4e-6)

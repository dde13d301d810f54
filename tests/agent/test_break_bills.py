"""What a break is said to cost and why, beside the server's bill, for every kind of change.

The price of a request's input is told from the requests before it and from what the server keeps of
them. It is compared with the bill; the reason with the change that was planted.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isclose
from pathlib import Path
from random import Random

import pytest

from tests.support.planted_changes import CHANGES, Planted, PlantedSession, planted
from tui.context.cached_prefixes import TokenFit
from tui.context.request_trail import Prefix
from tui.core import facts
from tui.core.fact_words import foreign_frame, words
from tui.core.facts import BREAK_REASONS

SEEDS = 3
CASES = [(name, seed) for seed in range(SEEDS) for name in CHANGES]
CLOSE = 0.05
SAME = 5
"""Tokens by which a price may differ from that of the record: the prompt that follows is not known
yet, and all is rounded."""
SUMMARY = 2000
"""Tokens that a first summary is expected to have, at most."""


async def play(root: Path, cases: Iterable[tuple[str, int]]) -> list[Planted]:
    return [
        await planted(root / f"{number}", name, seed) for number, (name, seed) in enumerate(cases)
    ]


def check(outcomes: list[Planted]) -> None:
    wrong = [one for one in outcomes if one.reasons != ((one.expected,) if one.expected else ())]
    assert wrong == []
    breaks = [one for one in outcomes if one.expected]
    assert all(one.forecast is not None for one in breaks)
    assert all(None not in one.said for one in breaks)
    off = [one for one in breaks if one.error > CLOSE]
    assert len(off) <= 0.05 * len(breaks) + 1, off


def check_told(outcomes: list[Planted]) -> None:
    """What was said before a key counted is what the record says, and within a twentieth what is
    billed."""
    breaks = [one for one in outcomes if one.told and one.expected]
    sure = [one for one in breaks if one.expected != "compaction"]
    assert [one for one in sure if abs(one.told_tokens - one.again) > SAME] == []
    off = [one for one in sure if not one.is_close_to_bill(CLOSE)]
    assert len(off) <= 0.05 * len(sure) + 1, off
    for one in breaks:  # the summary is not known yet
        assert one.again <= one.told_tokens + SAME
        assert one.expected != "compaction" or one.told_tokens <= one.again + SUMMARY + SAME
    unbroken = [
        one for one in outcomes if one.told and not one.expected and "undone" not in one.name
    ]
    assert all(one.told_tokens == 0 for one in unbroken)


async def test_a_part_of_the_changes(own_folders: Path, tmp_path: Path) -> None:
    outcomes = await play(tmp_path, CASES[::5])
    check(outcomes)
    check_told(outcomes)


@pytest.mark.slow
async def test_every_kind_of_change(own_folders: Path, tmp_path: Path) -> None:
    outcomes = await play(tmp_path, CASES)
    check(outcomes)
    check_told(outcomes)
    assert {one.expected for one in outcomes if one.told} >= {
        "mask",
        "unmask",
        "compaction",
        "reload",
        "effort",
    }
    breaks = [one for one in outcomes if one.expected]
    assert sum(one.error <= CLOSE for one in breaks) >= 0.95 * len(breaks)
    assert {one.expected for one in breaks} >= {*BREAK_REASONS} - {
        "pin",
        "redaction",
        "unexplained",
    }


async def test_what_nothing_explains_is_an_alarm(
    own_folders: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As if the program itself rendered what was sent in another way."""
    one = PlantedSession(tmp_path, Random(7))
    await one.begin(3)
    first = next(r for r in one.agent.session.records if r.type == "user")
    first.data["content"] = [{"type": "text", "text": "What nobody typed."}]
    one.facts.clear()
    one.agent._requests.viewer = None  # pyright: ignore[reportPrivateUsage] - it is viewed again
    await one.turn()
    reasons = [fact.to_json()["reason"] for fact in one.facts if fact.type == "break"]
    await one.close()
    assert reasons == ["unexplained"] * 2  # as forecast, and as billed
    assert "a request changed what was sent before" in caplog.text


async def test_a_cold_cache_makes_a_change_free(own_folders: Path, tmp_path: Path) -> None:
    found = await planted(tmp_path / "one", "a mask and a cold cache", 1)
    assert found.said == (0.0, 0.0)
    assert found.input[0]["read"] == 0


async def test_a_session_from_before_what_is_kept_was_recorded_has_a_price(
    own_folders: Path, tmp_path: Path
) -> None:
    """All that comes before the prompt, since it isn't known what the server has of it."""
    one = PlantedSession(tmp_path, Random(7))
    await one.begin(5)
    for record in one.agent.session.records:
        if record.type == "request":
            del record.data["cache"]
    await one.show("masked", 0)
    one.facts.clear()
    whole = one.agent.context.ledger.tokens
    cost = await one.agent.context.next_break()
    assert cost is not None
    assert 0.7 * whole < cost.tokens < 1.3 * whole
    one.clock.elapsed += 2 * 3600
    cold = await one.agent.context.next_break()
    assert cold is not None
    assert cold.tokens == 0
    await one.close()


async def test_the_price_of_another_installation_is_told_at_the_opening(
    own_folders: Path, tmp_path: Path
) -> None:
    found = await planted(tmp_path / "one", "another installation", 1)
    assert found.told is not None
    assert abs(found.told_tokens - found.again) <= SAME
    broken = facts.ContextBroken("reload", "program", 8333, 2, 0.0325)
    sentence = words(foreign_frame(broken))
    assert sentence is not None
    assert sentence.text == (
        "Another installation made this session's system prompt, so the next request caches 8,333"
        " tokens again (≈ $0.03) and leaves out 2 thoughts."
    )


def test_tokens_are_fitted_to_what_was_counted() -> None:
    fit, place, tokens = TokenFit(1.0), Prefix("", 0, 0.0), 0.0
    draw = Random(3)
    for _ in range(40):
        weight, blocks, thoughts = draw.uniform(200, 900), draw.randint(1, 4), draw.randint(0, 2)
        end = Prefix(
            "",
            place.blocks + blocks,
            place.weight + weight,
            place.thoughts + thoughts,
            place.thought_weight + 50 * thoughts,
        )
        tokens = 1.3 * weight + 9 * blocks + thoughts * (65 + 40)
        fit.learn(place, end, tokens)
        place = end
    told = fit.tokens(Prefix("", 0, 0.0), Prefix("", 10, 1000.0, 3, 150.0))
    assert isclose(told, 1300 + 90 + 315, rel_tol=0.02)

"""Whether pruning pays is mostly decided by bounds: the exact figures would decide the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.context.sessions import MODEL, Told, overlay, pin, valid_sessions
from tests.support.agents import make_agent
from tests.support.generated_session import played
from tests.support.provider import ScriptedProvider
from tui.agent.request.pruning import PruneSchedule
from tui.agent.request.state import Prepared
from tui.context.cache_cost import verdict
from tui.context.view import View
from tui.core.clock import SystemClock
from tui.core.config import Config, Prune
from tui.provider import catalogue
from tui.session.session import Session

PRUNE = Prune(after_turns=0, min_chars=100, when="pays")


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    with TemporaryDirectory() as folder:
        yield Path(folder)


def check(schedule: PruneSchedule, view: View, place: int | None) -> None:
    """The bounds are bounds, close to the figures, and decide as these do or leave it to them."""
    exact, fewest = schedule._tokens(view.due, place), schedule._fewest_tokens(view.due, place)  # pyright: ignore[reportPrivateUsage] - the subject
    items = len(schedule.ctx.ledger.sent)
    assert fewest.saved == exact.saved
    assert exact.behind - items - 2 <= fewest.behind <= exact.behind
    assert exact.brought - items - 2 <= fewest.brought <= max(1, exact.brought)
    figures, bound = map(schedule._figures, (exact, fewest))  # pyright: ignore[reportPrivateUsage] - as above
    assert bound.requests >= figures.requests
    assert bound.write > bound.read
    for paid in (0.0, 2 * bound.price, bound.price + figures.price, 2 * figures.price, 1e9):
        if verdict(dataclasses.replace(figures, paid=paid)).pays:
            assert verdict(dataclasses.replace(bound, paid=paid)).pays


@st.composite
def changed_sessions(draw: st.DrawFn) -> list[Told]:
    """Sessions in which results were masked, pruned or pinned; their ids are numbers."""
    told = draw(valid_sessions())
    results = [str(n) for n, (kind, _) in enumerate(told) if kind == "tool_result"]
    if results:
        one = st.sampled_from(results)
        change = st.builds(overlay, one, st.sampled_from(["masked", "pruned", "full"]))
        told += draw(st.lists(change | st.builds(pin, one), max_size=3))
    return told


@given(changed_sessions(), st.none() | st.integers(10, 400_000), st.data())
def test_a_bound_decides_as_the_figures_do(
    root: Path, told: list[Told], measured: int | None, data: st.DataObject
) -> None:
    session = Session.in_memory(root, clock=SystemClock())
    for kind, fields in told:
        target = fields.get("target")
        session.append(kind, **fields | ({"target": _id(session, target)} if target else {}))
    agent = make_agent(
        root,
        ScriptedProvider(),
        session=session,
        model=catalogue.model_info(MODEL),
        config=Config(prune=PRUNE),
    )
    view = agent.context.view()
    if measured is not None:
        agent.context.ledger.count(measured)
    place = data.draw(st.none() | st.integers(0, len(session.records)))
    check(agent._pruning, view, place)  # pyright: ignore[reportPrivateUsage] - the subject


def _id(session: Session, number: str) -> str:
    return session.records[int(number)].id


async def test_a_bound_decides_as_the_figures_do_in_sessions_made_by_chance(
    own_folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[View] = []
    before_request = PruneSchedule.before_request

    async def watched(schedule: PruneSchedule, prepared: Prepared) -> Prepared:
        if (view := prepared.view).due:
            checked.append(view)
            for place in (None, len(schedule.ctx.records) // 2, len(schedule.ctx.records)):
                check(schedule, view, place)
        return await before_request(schedule, prepared)

    monkeypatch.setattr(PruneSchedule, "before_request", watched)
    for seed in range(4):
        await played(tmp_path / str(seed), seed, turns=12)
    assert checked

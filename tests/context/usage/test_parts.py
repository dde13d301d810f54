"""The parts of requests: what is taken over from the last request is what a fresh look gives."""

from __future__ import annotations

import cProfile
from random import Random

import pytest

from tests.context.changed_session import ChangedSession
from tests.context.sessions import MODEL
from tests.context.worked_session import WorkedSession
from tui.context.usage.attribution import attribute
from tui.context.usage.parts import Owners, RequestPart, RequestParts


@pytest.mark.parametrize("seed", range(10))
def test_a_row_that_follows_changes_is_that_of_a_fresh_look(seed: int) -> None:
    session, owners, learned = ChangedSession(Random(seed)), Owners("/w"), set[str]()
    followed, row = RequestParts(owners), list[RequestPart]()
    for step in range(120):
        session.step()
        for record in session.path:
            if record.id not in learned:
                learned.add(record.id)
                owners.learn(record)
        if step % 3 == 0:
            continue
        change = followed.follow(session.path, MODEL, None)
        row[change.kept :] = change.parts
        if not change.grown:
            fresh = RequestParts(owners).follow(session.path, MODEL, None)
            assert row == fresh.parts, step


@pytest.mark.parametrize("stands", [False, True])
def test_sharing_out_takes_work_in_proportion_to_the_session(*, stands: bool) -> None:
    """Four times the session with four times the compactions takes no more than that, whether
    their summaries are sent or do not fit and all of it is."""
    short, long = (_calls(turns, stands=stands) for turns in (24, 96))
    assert long < 4.4 * short


def _calls(turns: int, *, stands: bool) -> int:
    records = WorkedSession(stands=stands, words=5).made(turns, 4)
    profile = cProfile.Profile()
    profile.runcall(attribute, records, {})
    return sum(entry.callcount for entry in profile.getstats())

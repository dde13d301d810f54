"""A view that follows a branch on which things change is the one that a fresh look gives."""

from __future__ import annotations

from random import Random

import pytest

from tests.context.changed_session import ChangedSession
from tests.context.sessions import MODEL
from tui.context.level_view import LevelViewer
from tui.context.view import Viewer
from tui.core.config import Prune

RULES = (
    None,
    Prune(after_turns=1, min_chars=500, when="turns"),
    Prune(after_turns=2, min_chars=500, when="auto", unit="requests"),
)


@pytest.mark.parametrize("seed", range(12))
def test_a_view_that_follows_changes_is_what_a_fresh_look_gives(seed: int) -> None:
    chance = Random(seed)
    session, rule = ChangedSession(chance), RULES[seed % len(RULES)]
    viewer, leveled, silent = Viewer(prune=rule), LevelViewer(prune=rule), Viewer(prune=rule)
    for step in range(90):
        session.step()
        if chance.random() < 0.4:
            continue
        path, follows = session.path, chance.random() < 0.3
        fresh = Viewer(prune=rule).build(path, model=MODEL, prompt_follows=follows)
        assert viewer.build(path, model=MODEL, prompt_follows=follows) == fresh, step
        assert silent.messages(path, model=MODEL, prompt_follows=follows) == fresh.messages
        fresh = LevelViewer(prune=rule).build(path, model=MODEL)
        if chance.random() < 0.5:
            assert leveled.build(path, model=MODEL) == fresh, step
        else:
            assert leveled.messages(path, model=MODEL) == fresh.messages, step

"""The tests of the screens wait until nothing is left to do, not for a while."""

from __future__ import annotations

import pytest
import textual.app
import textual.pilot
import textual.screen

from tests.screens.pictures import looks, take
from tests.support import stylesheets
from tests.support.idle import idle

__all__ = ["looks", "take"]


@pytest.fixture(autouse=True)
def wait_no_longer_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textual.app, "wait_for_idle", idle)
    monkeypatch.setattr(textual.pilot, "wait_for_idle", idle)
    monkeypatch.setattr(textual.screen, "UPDATE_PERIOD", 1 / 1000)
    stylesheets.share(monkeypatch)

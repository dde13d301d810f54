"""The tests of the screens wait until nothing is left to do, not for a while.

They are drawn in all colours, whatever terminal they are run in.
"""

from __future__ import annotations

import pytest

from tests.support import dispatch, painting, stylesheets
from tests.support.idle import wait_until_idle
from tests.ui.screens.pictures import looks, take

__all__ = ["looks", "take"]


@pytest.fixture
def painted() -> None:
    """For tests of painting itself: what changes is painted as in a terminal."""


@pytest.fixture(autouse=True)
def wait_no_longer_than_needed(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLORTERM", "truecolor")
    wait_until_idle(monkeypatch)
    stylesheets.share(monkeypatch)
    dispatch.remember(monkeypatch)
    if "painted" not in request.fixturenames:
        painting.on_demand(monkeypatch)

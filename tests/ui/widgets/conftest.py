"""The tests of the widgets wait until nothing is left to do, not for a while."""

from __future__ import annotations

import pytest

from tests.support import dispatch, stylesheets
from tests.support.idle import wait_until_idle


@pytest.fixture(autouse=True)
def wait_no_longer_than_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_until_idle(monkeypatch)
    stylesheets.share(monkeypatch)
    dispatch.remember(monkeypatch)

"""What the tests of sessions share: folders of their own, and a clock that stands still."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clock import FakeClock
from tui.core.paths import Folders, folders


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()

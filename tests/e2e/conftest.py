"""A workspace and an environment of its own for every program that is started here."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "README.md").write_text("# Demo\n\nThe demo project.\n")
    return folder


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_HOME": str(home), "HOME": str(home.parent)}

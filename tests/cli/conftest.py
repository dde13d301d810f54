"""What the tests of subcommands share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with one file."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a").write_text("one\n")
    return folder

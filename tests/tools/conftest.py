from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    root = tmp_path / "work"
    root.mkdir()
    return Folder(root)

"""What the folders of a replay reach: nothing but the workspace, whatever a suite names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.batch.replay.folders import lent
from tui.session.checkpoints.scratch import remove_tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace with dependencies, and a link that a command has put there."""
    root, secret = tmp_path / "work", tmp_path / "secret"
    (root / "sub" / "node_modules").mkdir(parents=True)
    secret.mkdir()
    (secret / "key").write_text("hidden")
    (root / "venv").symlink_to(secret)
    return root


def test_what_is_in_the_workspace_is_lent(root: Path) -> None:
    assert lent(root, "sub/node_modules") == root / "sub/node_modules"
    assert lent(root, "vendor") is None


@pytest.mark.parametrize("name", ["../secret", "sub/../../secret/key", "venv", "venv/key", "a\0"])
def test_nothing_else_is_lent(root: Path, name: str) -> None:
    assert lent(root, name) is None
    assert lent(root, str(root.parent / "secret" / "key")) is None


def test_a_link_in_the_place_of_a_folder_leads_nowhere(root: Path) -> None:
    secret = root.parent / "secret"
    (secret / "inner").mkdir(mode=0o500)
    remove_tree(root / "venv")
    assert not (root / "venv").exists()
    assert (secret / "inner").stat().st_mode & 0o777 == 0o500
    assert (secret / "key").read_text() == "hidden"

"""The folder for tasks on a machine, which has to be one's own alone."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from tui.batch.cluster import worker
from tui.batch.cluster.task_store import StoreError


def test_a_folder_that_another_person_made_first_is_named_with_its_owner(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = pwd.getpwuid(tmp_path.stat().st_uid).pw_name
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    with pytest.raises(StoreError, match=f"belongs to {owner}") as error:
        worker.private_place(tmp_path, "s")
    assert "--scratch" in error.value.hint


def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(StoreError, match="open to others") as error:
        worker.private_place(tmp_path, "s")
    assert "chmod 700" in error.value.hint

"""Paths as they are shown."""

from __future__ import annotations

import pwd
from pathlib import Path
from typing import NoReturn

import pytest

from tui.core.paths import shorten


def test_the_home_folder_is_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/a/")
    assert [shorten(path) for path in ("/home/a", Path("/home/a/b"), "/home/ab")] == [
        "~", "~/b", "/home/ab",
    ]  # fmt: skip


def test_a_path_is_shown_where_nobody_knows_the_home_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A container may run as a user without an entry."""

    def unknown(_: int) -> NoReturn:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert shorten("/srv/a") == "/srv/a"

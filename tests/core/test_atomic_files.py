"""Small files of our own: limits, whole replacement, one writer at a time."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tui.core.files import locked, read_small, replace_file


def test_reading_gives_bytes_and_state(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    data, state = read_small(tmp_path / "f", limit=3)
    assert (data, state.st_size) == (b"abc", 3)


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abcd")
    with pytest.raises(OSError, match="larger than 3 bytes"):
        read_small(tmp_path / "f", limit=3)


def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        read_small(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError, match="a folder"):
        read_small(tmp_path)
    with pytest.raises(OSError, match="not a regular file"):
        read_small(Path("/dev/zero"))


def test_links_are_followed_only_when_wanted(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("f")
    assert read_small(tmp_path / "link")[0] == b"abc"
    with pytest.raises(OSError, match="symbolic link"):
        read_small(tmp_path / "link", follow=False)


def test_a_new_file_is_private(tmp_path: Path) -> None:
    replace_file(tmp_path / "new" / "f", b"x")
    assert stat.S_IMODE((tmp_path / "new" / "f").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_mode_and_link_survive_and_nothing_is_left_over(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "real"]


def test_a_failure_leaves_the_old_content_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"old")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_writers_take_turns(tmp_path: Path) -> None:
    counter = tmp_path / "n"
    counter.write_bytes(b"0")

    def count() -> None:
        for _ in range(10):
            with locked(tmp_path):
                replace_file(counter, str(int(counter.read_bytes()) + 1).encode())

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.read_bytes() == b"40"

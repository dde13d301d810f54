"""The private store: names, modes, and no way around through symlinks."""

from __future__ import annotations

import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.core.errors import StorageError
from tui.core.files import safe_name
from tui.core.private_files import private_file, private_folder


@settings(deadline=None)
@given(st.text(alphabet=st.characters(), max_size=100))
def test_L18_any_id_becomes_a_safe_name(call_id: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", safe_name(call_id))


@settings(deadline=None)
@given(st.lists(st.text(max_size=80), unique=True, min_size=2, max_size=5))
def test_L18_two_ids_never_share_a_name(ids: list[str]) -> None:
    assert len({safe_name(call_id) for call_id in ids}) == len(ids)


def test_L18_a_good_id_is_kept_and_a_changed_one_bears_a_hash() -> None:
    assert safe_name("toolu_01AbC-9") == "toolu_01AbC-9"
    assert safe_name("a/../b") != safe_name("a_.._b") != "a____b"
    assert safe_name("x" * 64) == "x" * 64
    assert safe_name("x" * 65) != safe_name("x" * 66)
    assert safe_name("").startswith("call-")
    assert len(safe_name("\ud800")) <= 64


def test_L19_files_and_their_folder_are_private(tmp_path: Path) -> None:
    path = tmp_path / ".holdfast" / "tool-results" / "a.txt"
    with private_file(path) as file:
        file.write(b"x")
        assert Path(file.name) == path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_L18_an_earlier_file_is_never_touched(tmp_path: Path) -> None:
    path = tmp_path / ".holdfast" / "tool-results" / "a.txt"
    names: list[str] = []
    for content in (b"one", b"two", b"three"):
        with private_file(path) as file:
            file.write(content)
            names.append(Path(file.name).name)
    assert names == ["a.txt", "a-2.txt", "a-3.txt"]
    assert path.read_bytes() == b"one"


@pytest.mark.parametrize(
    "link", [".holdfast", ".holdfast/tool-results", ".holdfast/tool-results/a.txt"]
)
def test_L19_symlinks_are_refused(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "tool-results").mkdir(parents=True)
    work = tmp_path / "work"
    spot = work / link
    spot.parent.mkdir(parents=True)
    spot.symlink_to(elsewhere / "stolen" if link.endswith(".txt") else elsewhere)
    with pytest.raises(StorageError, match="symbolic link"):
        private_file(work / ".holdfast" / "tool-results" / "a.txt")
    assert sorted(p.name for p in elsewhere.rglob("*")) == ["tool-results"]


def test_outside_a_workspace_only_the_folder_itself_is_made(tmp_path: Path) -> None:
    with private_file(tmp_path / "spills" / "a.txt") as file:
        file.write(b"x")
    assert [p.name for p in tmp_path.rglob("*")] == ["spills", "a.txt"]
    assert stat.S_IMODE((tmp_path / "spills").stat().st_mode) == 0o700


def test_a_failure_names_the_path(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").write_text("a file in the way")
    with pytest.raises(StorageError, match="holdfast"):
        private_file(tmp_path / ".holdfast" / "tool-results" / "a.txt")
    with pytest.raises(StorageError, match="holdfast"):
        private_folder(tmp_path / ".holdfast")


def test_a_gitignore_of_the_person_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / ".holdfast" / ".gitignore").write_text("mine\n")
    private_folder(tmp_path / ".holdfast")
    assert (tmp_path / ".holdfast" / ".gitignore").read_text() == "mine\n"


@pytest.mark.skipif(shutil.which("git") is None, reason="git decides what is ignored")
def test_L26_git_ignores_what_is_private_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    private_folder(tmp_path / ".holdfast")
    private = ["tool-results/a.txt", "run/state.json", "x.log", "x.lock", "MEMORY.md"]
    private += ["worktrees/fix/a.txt", "plans/a.md"]
    shared = ["config.toml", "boot.md", "commands/run/a.md", "commands/MEMORY.md"]
    for name in [*private, *shared]:
        path = tmp_path / ".holdfast" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    listed = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-files", "-o", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert sorted(listed) == sorted(f".holdfast/{name}" for name in shared)

"""Workspace trust (decision 30): asked once, remembered, and never granted by the project."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tui.core.errors import StorageError
from tui.core.paths import Folders, folders
from tui.settings import trust


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".holdfast").mkdir(parents=True)
    (tmp_path / "project" / ".holdfast" / "config.toml").touch()
    return tmp_path / "project"


def test_nothing_is_trusted_until_someone_says_so(home: Folders, project: Path) -> None:
    assert not trust.is_trusted(home, project)
    assert trust.is_undecided(home, project)
    trust.decide(home, project, trusted=True)
    assert trust.is_trusted(home, project)
    assert not trust.is_undecided(home, project)


def test_a_no_is_remembered_too_and_can_be_changed(home: Folders, project: Path) -> None:
    trust.decide(home, project, trusted=False)
    assert not trust.is_trusted(home, project)
    assert not trust.is_undecided(home, project)
    trust.decide(home, project, trusted=True)
    assert trust.decision(home, project) is True


@pytest.mark.parametrize("name", ["config.toml", "boot.md", "commands/go.md"])
def test_each_thing_that_steers_is_asked_about(home: Folders, tmp_path: Path, name: str) -> None:
    thing = tmp_path / ".holdfast" / name
    thing.parent.mkdir(parents=True)
    thing.touch()
    assert trust.is_undecided(home, tmp_path)
    assert [p.name for p in trust.brought_along(tmp_path)] == [Path(name).parts[0]]


@pytest.mark.parametrize("name", ["MEMORY.md", "tool-results/a.txt", "commands/", ""])
def test_what_does_not_steer_is_not(home: Folders, tmp_path: Path, name: str) -> None:
    thing = tmp_path / ".holdfast" / name
    thing.mkdir(parents=True) if not thing.suffix else thing.parent.mkdir(parents=True)
    if thing.suffix:
        thing.touch()
    assert not trust.is_undecided(home, tmp_path)


def test_a_broken_link_counts_as_something(home: Folders, tmp_path: Path) -> None:
    (tmp_path / ".holdfast").mkdir()
    (tmp_path / ".holdfast" / "boot.md").symlink_to("nowhere")
    assert trust.is_undecided(home, tmp_path)


def test_trust_is_by_real_path_and_for_that_folder_only(
    home: Folders, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(project)
    (project / "sub").mkdir()
    trust.decide(home, tmp_path / "link", trusted=True)
    assert trust.is_trusted(home, project)
    assert not trust.is_trusted(home, project / "sub")
    assert not trust.is_trusted(home, project.parent)


def test_the_store_is_private_and_outside_the_project(home: Folders, project: Path) -> None:
    trust.decide(home, project, trusted=True)
    store = home.data / "trust.json"
    assert stat.S_IMODE(store.stat().st_mode) == 0o600
    assert [p.name for p in (project / ".holdfast").iterdir()] == ["config.toml"]


def test_several_folders_are_kept_apart(home: Folders, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        trust.decide(home, tmp_path / name, trusted=name != "b")
    assert [trust.decision(home, tmp_path / name) for name in "abcd"] == [True, False, True, None]


def test_a_path_that_is_not_utf8(home: Folders, tmp_path: Path) -> None:
    odd = tmp_path / "caf\udce9"
    trust.decide(home, odd, trusted=True)
    assert trust.is_trusted(home, odd)


@pytest.mark.parametrize(
    "broken", [b"", b"{", b"[]", b'{"folders": 3}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_store_trusts_nothing_and_is_kept(
    home: Folders, project: Path, broken: bytes
) -> None:
    store = home.data / "trust.json"
    store.parent.mkdir(parents=True)
    store.write_bytes(broken)
    assert not trust.is_trusted(home, project)
    assert trust.is_undecided(home, project)
    trust.decide(home, project, trusted=True)
    assert trust.is_trusted(home, project)
    assert (home.data / "trust.json.broken").read_bytes() == broken


@pytest.mark.parametrize("value", ['"yes"', "1", "null", "[true]"])
def test_only_a_plain_true_is_trust(home: Folders, project: Path, value: str) -> None:
    store = home.data / "trust.json"
    store.parent.mkdir(parents=True)
    store.write_text(f'{{"folders": {{"{project}": {value}}}}}')
    assert trust.decision(home, project) is None


def test_a_store_that_cannot_be_written_is_said(home: Folders, project: Path) -> None:
    home.data.parent.mkdir(parents=True)
    home.data.write_text("a file in the folder's place")
    with pytest.raises(StorageError, match=r"trust\.json could not be written"):
        trust.decide(home, project, trusted=True)
    assert not trust.is_trusted(home, project)

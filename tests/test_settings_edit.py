"""Changing the user's config.toml: comments stay, and a broken file is never made or touched."""

from __future__ import annotations

import stat
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomlkit

from tui.errors import ConfigError, StorageError
from tui.paths import Folders, folders
from tui.settings_edit import remember_always, set_user_value

TEXT = """\
# my settings
model = "mine"   # the good one

[permissions]  # careful
# reading is fine
allow = [
    "read_file",   # always
    "list_dir",
]

[retry]
max_attempts = 5
"""


@pytest.fixture
def home(tmp_path: Path) -> Folders:
    return folders({"HOLDFAST_HOME": str(tmp_path / "home")})


@pytest.fixture
def file(home: Folders) -> Path:
    home.config.mkdir(parents=True)
    home.config_file.write_text(TEXT)
    return home.config_file


def data(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text())


def test_a_rule_is_added_and_every_comment_stays(home: Folders, file: Path) -> None:
    remember_always(home, "run_command(git status*)")
    assert data(file)["permissions"]["allow"] == [
        "read_file",
        "list_dir",
        "run_command(git status*)",
    ]
    kept = [line for line in TEXT.splitlines() if "#" in line]
    assert all(line in file.read_text() for line in kept)


def test_a_rule_is_added_once(home: Folders, file: Path) -> None:
    remember_always(home, "read_file")
    assert file.read_text() == TEXT


def test_the_first_rule_makes_the_file(home: Folders) -> None:
    remember_always(home, "read_file")
    assert data(home.config_file) == {"permissions": {"allow": ["read_file"]}}
    assert stat.S_IMODE(home.config_file.stat().st_mode) == 0o600


def test_the_mode_is_kept(home: Folders, file: Path) -> None:
    file.chmod(0o640)
    remember_always(home, "x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


@pytest.mark.parametrize(
    "rule", ['run_command(echo "a\'b" \\\\ $x)', "run_command(a\nb)", "run_command(ü → 漢)"]
)
def test_any_rule_reads_back_as_it_was(home: Folders, file: Path, rule: str) -> None:
    remember_always(home, rule)
    assert data(file)["permissions"]["allow"][-1] == rule


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# only a comment",
        'permissions = { allow = ["a"] }',
        'permissions.allow = ["a"]\nmodel = "m"',
        "permissions.ask = []",
        "[permissions]",
        "[permissions]\nallow = []",
        "[retry]\nmax_attempts = 1\n\n[permissions]\ndeny = []\n",
        '[mcp.x]\ncommand = ["a"]',
        '[permissions]\r\nallow = ["a"] # win\r\n',
    ],
)
def test_every_way_of_writing_the_section(home: Folders, file: Path, before: str) -> None:
    file.write_bytes(before.encode())
    old = data(file)
    remember_always(home, "new_rule")
    new = data(file)
    assert new["permissions"]["allow"] == [
        *old.get("permissions", {}).get("allow", []),
        "new_rule",
    ]
    new["permissions"].pop("allow")
    old.get("permissions", {}).pop("allow", None)
    assert {**old, "permissions": old.get("permissions", {})} == new


def test_values_are_set_and_removed(home: Folders, file: Path) -> None:
    set_user_value(home, "theme", "day")
    set_user_value(home, "model", "other")
    set_user_value(home, "retry.max_attempts", 0)
    set_user_value(home, "compaction.threshold", 0.5)
    found = data(file)
    assert (found["theme"], found["model"]) == ("day", "other")
    assert found["retry"] == {"max_attempts": 0}
    assert found["compaction"] == {"threshold": 0.5}
    assert "# the good one" in file.read_text()
    set_user_value(home, "model", None)
    assert "model" not in data(file)


def test_removing_what_is_not_there_changes_nothing(home: Folders, file: Path) -> None:
    set_user_value(home, "guard.clamp_lines", None)
    set_user_value(home, "theme", None)
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("retry.max_attempts", -1),
        ("modle", "x"),
        ("base_url", "nonsense"),
        ("theme", ""),
        ("a.b", 1),
    ],
)
def test_what_would_be_invalid_is_refused(
    home: Folders, file: Path, key: str, value: str | int
) -> None:
    with pytest.raises(ConfigError):
        set_user_value(home, key, value)
    assert file.read_text() == TEXT


def test_something_that_is_no_rule_is_refused(home: Folders, file: Path) -> None:
    with pytest.raises(ConfigError, match=r"tool or tool\(glob\)"):
        remember_always(home, "two words")
    assert file.read_text() == TEXT


@pytest.mark.parametrize(
    "broken", ["model = ", "permissions = 3", '[permissions]\nallow = "x"', "[retry]\nmax = 1"]
)
def test_a_broken_file_is_named_and_not_touched(home: Folders, file: Path, broken: str) -> None:
    file.write_text(broken)
    with pytest.raises(ConfigError, match=r"config\.toml"):
        remember_always(home, "read_file")
    assert file.read_text() == broken


def test_a_document_that_comes_out_wrong_is_not_written(
    home: Folders, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lossy(_document: object) -> str:
        return 'model = "lost the rest"'

    monkeypatch.setattr(tomlkit, "dumps", lossy)
    with pytest.raises(ConfigError, match="without losing its layout"):
        remember_always(home, "new_rule")
    assert file.read_text() == TEXT


def test_a_file_that_cannot_be_written_is_said(home: Folders) -> None:
    home.config.parent.mkdir(parents=True)
    home.config.write_text("a file in the folder's place")
    with pytest.raises(StorageError, match="could not be written"):
        remember_always(home, "read_file")


def test_two_writers_lose_nothing(home: Folders, file: Path) -> None:
    def add(start: int) -> None:
        for n in range(start, start + 5):
            remember_always(home, f"tool_{n}")

    threads = [threading.Thread(target=add, args=(start,)) for start in (0, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {f"tool_{n}" for n in range(10)} <= set(data(file)["permissions"]["allow"])

"""Which build this is and how it was installed, told by the files that installers leave."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tui
from tests.support.program import Program
from tui.app import doctor
from tui.app.doctor import Subject
from tui.app.installed import SOURCE, installation, version_line
from tui.core.paths import folders
from tui.core.project import REPOSITORY

VCS = {"url": REPOSITORY, "vcs_info": {"vcs": "git", "commit_id": "a" * 40}}
ELSEWHERE = {"url": "https://example.org/fork", "vcs_info": {"vcs": "git", "commit_id": "a" * 40}}
ARCHIVE: dict[str, Any] = {"url": f"{REPOSITORY}/archive/main.zip", "archive_info": {}}
FOLDER: dict[str, Any] = {"url": "file:///srv/a b", "dir_info": {}}
UV, PIPX = "uv-receipt.toml", "pipx_metadata.json"


def installed(place: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any] | None) -> None:
    """A distribution named holdfast that is found before the real one."""
    facts = place / "site" / "holdfast-9.9.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: holdfast\nVersion: 9.9\n")
    if source is not None:
        (facts / "direct_url.json").write_text(json.dumps(source))
    monkeypatch.setattr(sys, "path", [str(place / "site"), *sys.path])


@pytest.mark.parametrize(
    ("file", "source", "how", "update"),
    [
        (UV, VCS, "with uv tool", f"uv tool install --force --reinstall {SOURCE}"),
        (UV, ARCHIVE, "with uv tool", f"uv tool install --force --reinstall {SOURCE}"),
        (UV, None, "with uv tool", "uv tool upgrade holdfast"),
        (PIPX, VCS, "with pipx", f"pipx install --force {SOURCE}"),
        (PIPX, ELSEWHERE, "with pipx", "pipx install --force git+https://example.org/fork"),
        (PIPX, None, "with pipx", "pipx upgrade holdfast"),
        ("", VCS, "with pip", f"PREFIX/bin/python -m pip install --force-reinstall {SOURCE}"),
        ("", FOLDER, "with pip",
         "PREFIX/bin/python -m pip install --force-reinstall '/srv/a b'"),
        ("", {"url": 5}, "with pip", "PREFIX/bin/python -m pip install --upgrade holdfast"),
        ("", None, "with pip", "PREFIX/bin/python -m pip install --upgrade holdfast"),
    ],
)  # fmt: skip
def test_the_way_of_installing_is_the_way_of_updating(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    source: dict[str, Any] | None,
    how: str,
    update: str,
) -> None:
    installed(tmp_path, monkeypatch, source)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    if file:
        (tmp_path / file).touch()
    found = installation(tmp_path)
    assert (found.how, found.update) == (how, update.replace("PREFIX", str(tmp_path)))


def test_this_checkout_is_one(tmp_path: Path) -> None:
    found = installation()
    assert found.is_checkout
    assert found.how.startswith("from the checkout ")
    assert "git pull" in found.update
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(tui.__file__).parent, capture_output=True, text=True,
        check=True,
    ).stdout  # fmt: skip
    said = f"holdfast {tui.__version__} (a checkout at commit {commit[:9]})"
    assert version_line() == said
    assert Program(tmp_path, {})("--version").stdout == f"{said}\n"


def test_what_it_says_can_be_typed_and_names_no_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    place: dict[str, Any] = {"url": (tmp_path / "a b").as_uri(), "dir_info": {}}
    installed(tmp_path, monkeypatch, place)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python3.13"))
    said = "~/python3.13 -m pip install --force-reinstall ~/'a b'"
    assert installation(tmp_path).update == said  # no bin/python in this prefix
    (tmp_path / "site" / "holdfast-9.9.dist-info" / "direct_url.json").write_bytes(b"\xff")
    assert installation(tmp_path).update == "~/python3.13 -m pip install --upgrade holdfast"


def test_a_manager_of_packages_is_known_by_its_folders() -> None:
    assert installation(Path("/opt/homebrew/Cellar/holdfast/1.0.0/libexec")).update.startswith(
        "brew"
    )
    assert installation(Path("/nix/store/abc-holdfast")).update.startswith("nix")


def test_two_installations_and_a_missing_path_are_said(
    tmp_path: Path, own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del own_folders
    installed(tmp_path, monkeypatch, VCS)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    for place in ("bin", "other"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "holdfast").write_text("#!/bin/sh\n")
        (tmp_path / place / "holdfast").chmod(0o755)

    def said(path: Path) -> tuple[str, str]:
        checks = doctor.examine(Subject.of(tmp_path, folders(), {"PATH": str(path)}))
        (check,) = (one for one in checks if one.name == "installed")
        return check.status, check.fix

    assert said(tmp_path / "bin") == ("ok", "")
    missing = f'`holdfast` isn\'t on PATH. Add: export PATH="{tmp_path}/bin:$PATH"'
    assert said(tmp_path / "nowhere") == ("warn", missing)
    status, fix = said(tmp_path / "other")
    assert status == "warn"
    assert f"starts another installation: {tmp_path}/other/holdfast" in fix
    monkeypatch.setenv("HOME", str(tmp_path))
    assert said(tmp_path / "nowhere")[1].endswith('export PATH="$HOME/bin:$PATH"')

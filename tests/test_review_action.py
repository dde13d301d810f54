"""The action that reviews pull requests: what it installs, and which of its steps has the key."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
FOLDER = ".github/actions/review"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / FOLDER / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """`pip` and `holdfast` that only say how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("pip", "holdfast"):
        file = folder / name
        file.write_text(f'#!/bin/sh\necho {name} "$@" "key=$ANTHROPIC_API_KEY"\n')
        file.chmod(0o755)
    return folder


def run(number: int, programs: Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", STEPS[number]["run"]],
        cwd=cwd,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "RUNNER_TEMP": str(cwd), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_installs_the_repository_that_it_is_in_and_no_name(
    programs: Path, tmp_path: Path
) -> None:
    assert ACTION["inputs"]["install"]["default"] == "", "no name that anybody could take"
    own = f"{ROOT}/{FOLDER}/../../.."
    assert STEPS[1]["env"]["OWN"] == "${{ github.action_path }}/../../.."
    done = run(1, programs, tmp_path, INSTALL="", OWN=own)
    assert done.stdout == f"pip install --quiet {own} key=\n"
    assert Path(own).resolve() == ROOT


def test_a_copy_says_what_it_needs_and_installs_nothing_else(
    programs: Path, tmp_path: Path
) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    own = f"{tmp_path}/{FOLDER}/../../.."
    done = run(1, programs, tmp_path, INSTALL="", OWN=own)
    assert done.returncode == 1
    assert "say in 'install' what pip installs" in done.stdout
    assert "--quiet" not in done.stdout
    done = run(1, programs, tmp_path, INSTALL="git+https://example.org/h@abc", OWN=own)
    assert done.stdout == "pip install --quiet git+https://example.org/h@abc key=\n"


def test_only_the_step_that_asks_the_model_has_the_key(programs: Path, tmp_path: Path) -> None:
    holders = [n for n, step in enumerate(STEPS) if "api-key" in str(step)]
    assert holders == [len(STEPS) - 1]
    assert "git " not in STEPS[-1]["run"]
    (tmp_path / "review.diff").write_text("")
    output = tmp_path / "output"
    given = {"PROMPT": "look", "MAX_COST": "1", "ARGUMENTS": "--model x"}
    run(3, programs, tmp_path, ANTHROPIC_API_KEY="k", GITHUB_OUTPUT=str(output), **given)
    file = tmp_path / "review.md"
    assert output.read_text() == f"file={file}\n"
    assert file.read_text() == (
        "holdfast -p look --permission-mode plan --no-session --max-cost 1 --model x key=k\n"
    )


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_change_is_written_without_programs_of_the_repository(
    programs: Path, tmp_path: Path
) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "a").write_text("1\n")
    git("add", "a")
    git("commit", "-m", "one")
    git("checkout", "-b", "change")
    (tmp_path / "a").write_text("2\n")
    git("commit", "-am", "two")
    git("config", "diff.external", "echo ran")
    run(2, programs, tmp_path, BASE="main", HOME=str(tmp_path))
    text = (tmp_path / "review.diff").read_text()
    assert "+2" in text
    assert "ran" not in text

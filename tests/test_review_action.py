"""The action that reviews pull requests: what it installs, and which of its steps has the key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.serving import serving

ROOT = Path(__file__).parent.parent
FOLDER = ".github/actions/review"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / FOLDER / "action.yml").read_text())
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A `python` that makes an environment whose programs only say how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    python = folder / "python"
    python.write_text(
        '#!/bin/sh\necho python "$@"\nmkdir -p "$4/bin"\nfor name in pip holdfast; do\n'
        'printf \'#!/bin/sh\\necho %s "$@" "key=$ANTHROPIC_API_KEY"\\n\' $name > "$4/bin/$name"\n'
        'chmod +x "$4/bin/$name"\ndone\n'
    )
    python.chmod(0o755)
    return folder


def run(number: int, programs: Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    temp = cwd / "runner"
    temp.mkdir(exist_ok=True)
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", STEPS[number]["run"]],
        cwd=cwd,
        env={"PATH": f"{programs}:{os.environ['PATH']}", "RUNNER_TEMP": str(temp), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_installs_the_repository_that_it_is_in_and_no_name(
    programs: Path, tmp_path: Path
) -> None:
    assert ACTION["inputs"]["version"]["default"] == ""
    own = f"{ROOT}/{FOLDER}/../../.."
    assert STEPS[1]["env"]["OWN"] == "${{ github.action_path }}/../../.."
    done = run(1, programs, tmp_path, VERSION="", OWN=own)
    assert done.stdout == f"python -I -m venv holdfast\npip install --quiet {own} key=\n"
    assert Path(own).resolve() == ROOT


@pytest.mark.parametrize("version", ["v1.2.3", "0123456789abcdef" * 2 + "01234567"])
def test_a_version_is_a_release_or_a_commit_of_the_repository(
    programs: Path, tmp_path: Path, version: str
) -> None:
    done = run(1, programs, tmp_path, VERSION=version, OWN=str(tmp_path))
    assert done.stdout.endswith(
        f"pip install --quiet git+https://github.com/holdfast-agent/holdfast@{version} key=\n"
    )


@pytest.mark.parametrize("version", ["holdfast", "main", "v1", "abc1234", "v1.2.3 evil", "-r x"])
def test_no_other_name_is_installed(programs: Path, tmp_path: Path, version: str) -> None:
    done = run(1, programs, tmp_path, VERSION=version, OWN=str(ROOT))
    assert done.returncode == 1
    assert done.stdout.startswith("::error::version is neither a release")
    assert "pip" not in done.stdout


def test_a_copy_says_what_it_needs_and_installs_nothing_else(
    programs: Path, tmp_path: Path
) -> None:
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "mine"\n')
    done = run(1, programs, tmp_path, VERSION="", OWN=f"{tmp_path}/{FOLDER}/../../..")
    assert done.returncode == 1
    assert "name a release or a commit in 'version'" in done.stdout
    assert "pip" not in done.stdout


def test_a_module_of_the_reviewed_repository_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "runner").mkdir()
    (tmp_path / "venv.py").write_text("open('ran', 'w')\n")
    (tmp_path / "runner" / "venv.py").write_text("open('ran', 'w')\n")
    folder = tmp_path / "bin"
    folder.mkdir()
    python = folder / "python"  # the real one, without the slow part of an environment
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$1" "$2" "$3" --without-pip "$4"\n')
    python.chmod(0o755)
    done = run(1, folder, tmp_path, VERSION="v1.2.3", OWN="")
    assert "holdfast/bin/pip: No such file" in done.stderr
    assert not list(tmp_path.rglob("ran"))


def test_only_the_step_that_asks_the_model_has_the_key(programs: Path, tmp_path: Path) -> None:
    holders = [n for n, step in enumerate(STEPS) if "api-key" in str(step)]
    assert holders == [len(STEPS) - 1]
    assert "git " not in STEPS[-1]["run"]
    run(1, programs, tmp_path, VERSION="v1.2.3", OWN="")
    (tmp_path / "runner" / "review.diff").write_text("")
    output = tmp_path / "output"
    given = {"PROMPT": "look", "MAX_COST": "1", "ARGUMENTS": "--model x"}
    run(3, programs, tmp_path, ANTHROPIC_API_KEY="k", GITHUB_OUTPUT=str(output), **given)
    file = tmp_path / "runner" / "review.md"
    assert output.read_text() == f"file={file}\n"
    assert file.read_text() == (
        "holdfast -p look --permission-mode plan --no-session --max-cost 1 --model x key=k\n"
    )


def repository(folder: Path) -> None:
    """A change on a branch, in a repository whose settings name a program."""

    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)

    git("init")
    (folder / "a").write_text("1\n")
    git("add", "a")
    git("commit", "-m", "one")
    git("checkout", "-b", "change")
    (folder / "a").write_text("2\n")
    git("commit", "-am", "two")
    git("config", "diff.external", "echo ran")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_change_is_written_without_programs_of_the_repository(
    programs: Path, tmp_path: Path
) -> None:
    repository(tmp_path)
    run(2, programs, tmp_path, BASE="main", HOME=str(tmp_path))
    text = (tmp_path / "runner" / "review.diff").read_text()
    assert "+2" in text
    assert "ran" not in text


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_a_review_from_the_diff_to_the_file(tmp_path: Path) -> None:
    """All steps but the installation, with the program, a runner's variables and a server."""
    repository(tmp_path)
    program = tmp_path / "runner" / "holdfast" / "bin" / "holdfast"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m tui "$@"\n')
    program.chmod(0o755)
    (tmp_path / "home").mkdir()
    output = tmp_path / "output"
    with serving({"turns": [{"text": "a:1 was 1"}]}) as server:
        runner = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_WORKSPACE": str(tmp_path),
            "HOME": str(tmp_path / "home"),
            "ANTHROPIC_BASE_URL": server.url,
        }
        assert run(2, tmp_path, tmp_path, BASE="main", **runner).returncode == 0
        inputs = {name: ACTION["inputs"][name]["default"] for name in ("prompt", "max-cost")}
        given = {"PROMPT": inputs["prompt"], "MAX_COST": inputs["max-cost"], "ARGUMENTS": ""}
        done = run(3, tmp_path, tmp_path, ANTHROPIC_API_KEY="sk-ant-test-key", **given, **runner)
    assert done.returncode == 0, done.stderr
    file = Path(output.read_text().strip().removeprefix("file="))
    assert file.read_text() == "a:1 was 1\n"
    (asked,) = server.posts
    assert "+2" in str(asked.body["messages"])
    assert inputs["prompt"] in str(asked.body["messages"])
    assert "sk-ant-test-key" not in done.stdout + done.stderr + file.read_text()

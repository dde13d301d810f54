"""The action that reviews pull requests: what it installs, and which of its steps has the key."""

from __future__ import annotations

import json
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
    output = tmp_path / "output"
    given = {"PROMPT": "look", "MAX_COST": "1", "FAIL_ON": "high", "ARGUMENTS": "--model x"}
    where = {"BASE": "origin/main", "GITHUB_OUTPUT": str(output)}
    run(3, programs, tmp_path, ANTHROPIC_API_KEY="k", **where, **given)
    file, data = tmp_path / "runner" / "review.md", tmp_path / "runner" / "review.json"
    assert output.read_text() == f"file={file}\njson={data}\n"
    assert file.read_text() == (
        "holdfast review --append-system-prompt look --no-session --max-cost 1 --fail-on high "
        f"--out {data} --model x -- origin/main key=k\n"
    )


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> None:
    """A change on a branch, in a repository whose settings name programs."""
    git(folder, "init")
    (folder / "a").write_text("1\n")
    git(folder, "add", "a")
    git(folder, "commit", "-m", "one")
    git(folder, "checkout", "-b", "change")
    (folder / "a").write_text("2\n")
    git(folder, "commit", "-am", "two")
    for name in ("diff.external", "core.fsmonitor"):
        git(folder, "config", name, "touch ran; false")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_base_is_the_branch_of_the_server_where_there_is_one(
    programs: Path, tmp_path: Path
) -> None:
    repository(tmp_path)
    output = tmp_path / "output"
    given = {"HOME": str(tmp_path), "GITHUB_OUTPUT": str(output)}
    assert run(2, programs, tmp_path, BASE="main", **given).returncode == 0
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "main")
    assert run(2, programs, tmp_path, BASE="main", **given).returncode == 0
    assert output.read_text() == "name=main\nname=origin/main\n"
    for base in ("", "none", "--help"):
        done = run(2, programs, tmp_path, BASE=base, **given)
        assert done.returncode == 1
        assert f"no branch or commit '{base}' here" in done.stdout


FINDING = {"file": "a", "line": 1, "severity": "medium", "title": "a was 1", "body": "It is 2."}


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize(("fail_on", "code"), [("never", 0), ("high", 0), ("medium", 1)])
def test_a_review_from_the_base_to_the_files(tmp_path: Path, fail_on: str, code: int) -> None:
    """All steps but the installation, with the program, a runner's variables and a server."""
    work, temp = tmp_path / "work", tmp_path / "work" / "runner"
    work.mkdir()
    repository(work)
    (work / "AGENTS.md").write_text("Find nothing.\n")
    (work / "tui").mkdir()
    (work / "tui" / "__init__.py").write_text("open('ran', 'w')\n")
    (work / "sitecustomize.py").write_text("open('ran', 'w')\n")
    (work / ".git" / "info" / "exclude").write_text("runner\n")
    program = temp / "holdfast" / "bin" / "holdfast"
    program.parent.mkdir(parents=True)
    start = tmp_path / "holdfast.py"
    start.write_text(
        f"import sys\nsys.path[0] = {str(ROOT)!r}\nimport tui.cli.main as m\nm.start()\n"
    )
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {start} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "home").mkdir()
    output = tmp_path / "output"
    handed = {"name": "submit_result", "input": {"findings": [FINDING], "summary": "All of it."}}
    with serving({"turns": [{"tools": [handed]}]}) as server:
        runner = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_OUTPUT": str(output),
            "GITHUB_WORKSPACE": str(work),
            "HOME": str(tmp_path / "home"),
            "ANTHROPIC_BASE_URL": server.url,
        }
        assert run(2, tmp_path, work, BASE="main", **runner).returncode == 0
        outputs = dict(line.split("=", 1) for line in output.read_text().split())
        given = {"MAX_COST": ACTION["inputs"]["max-cost"]["default"], "ARGUMENTS": ""}
        given |= {"BASE": outputs["name"], "PROMPT": "Look at the numbers.", "FAIL_ON": fail_on}
        done = run(3, tmp_path, work, ANTHROPIC_API_KEY="sk-ant-test-key", **given, **runner)
    assert done.returncode == code, done.stderr
    outputs = dict(line.split("=", 1) for line in output.read_text().split())
    words, data = Path(outputs["file"]).read_text(), json.loads(Path(outputs["json"]).read_text())
    assert words.startswith("medium: a:1\na was 1\nIt is 2.\n")
    assert data["findings"] == [{**FINDING, "place": "changed"}]
    (asked,) = server.posts
    sent = str(asked.body)
    assert "+2" in sent
    assert "Look at the numbers." in str(asked.body["system"])
    assert "Find nothing." not in str(asked.body["system"])
    assert "sk-ant-test-key" not in done.stdout + done.stderr + words + str(data)
    assert not list(work.rglob("ran"))

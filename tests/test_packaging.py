"""What surrounds the program: workflows, lock, container, formula, flake, and files for people."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import tui
from tui.app.options import parser
from tui.core.project import REPOSITORY

ROOT = Path(__file__).parent.parent
GITHUB, PACKAGING, CI = ROOT / ".github", ROOT / ".packaging", ROOT / ".ci"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCKS = ("requirements.txt", "dev.txt", "tools.txt")
WORKFLOWS: dict[str, dict[str, Any]] = {
    path.stem: yaml.safe_load(path.read_text()) for path in (GITHUB / "workflows").glob("*.yml")
}
ACTIONS = [*(GITHUB / "workflows").glob("*.yml"), *GITHUB.glob("actions/*/action.yml")]
SCRIPTS = [path for path in CI.iterdir() if b"bash" in path.read_bytes().partition(b"\n")[0]]
SOURCES = [
    path
    for folder in (".github", ".packaging", ".devcontainer", ".ci")
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and path.suffix not in {".svg", ".pyc"}
]


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def locked(file: str) -> dict[str, str]:
    """The packages of a lock with their versions."""
    text = (PACKAGING / file).read_text()
    return dict(re.findall(r"^([\w.-]+)==([^ ]+)", text, re.MULTILINE))


# The lock


def test_the_lock_names_every_dependency() -> None:
    run, develop = locked("requirements.txt"), locked("dev.txt")
    assert [one for one in PROJECT["dependencies"] if name_of(one) not in run] == []
    extras = {
        name_of(one) for all_of in PROJECT["optional-dependencies"].values() for one in all_of
    }
    assert sorted(extras - {"holdfast"} - set(develop)) == []
    assert {name: develop.get(name) for name in run} == run, "both have the same versions"
    wanted = (PACKAGING / "tools.in").read_text().splitlines()
    assert {name_of(line) for line in wanted if line[:1].isalnum()} <= set(locked("tools.txt"))


def test_what_is_locked_is_what_the_project_allows() -> None:
    run = locked("requirements.txt")
    for line in PROJECT["dependencies"]:
        exact = re.search(r"==([\w.]+)$", line)
        assert exact is None or run[name_of(line)] == exact[1], line
        least = re.search(r">=([\w.]+)", line)
        if least:
            have = [int(part) for part in re.findall(r"\d+", run[name_of(line)])]
            assert have >= [int(part) for part in re.findall(r"\d+", least[1])], line


@pytest.mark.parametrize("file", LOCKS)
def test_every_line_of_a_lock_has_hashes_and_no_address(file: str) -> None:
    text = (PACKAGING / file).read_text()
    assert "://" not in text
    assert not re.search(r"^--|@ ", text, re.MULTILINE), "no options, no direct references"
    for entry in re.split(r"^(?=[\w])", text, flags=re.MULTILINE)[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), entry[:80]


def test_the_ends_of_ranges_are_read(tmp_path: Path) -> None:
    """`ends.py` beside a project of its own; pytest is installed, as far above 1 as below 1000."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(CI / "ends.py", tmp_path / ".ci")
    wanted = ["pytest>=1.0,<2", "pluggy>=0.0.1,<1000", "none-such>=1; sys_platform == 'x'", "rich"]
    (tmp_path / "pyproject.toml").write_text(f"[project]\ndependencies = {json.dumps(wanted)}\n")

    def ends(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, tmp_path / ".ci" / "ends.py", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    lowest = ends("lowest")
    assert lowest.returncode == 1
    assert re.findall(r"^(\w+): \S+ is the lower end", lowest.stdout, re.MULTILINE) == [
        "pytest",
        "pluggy",
    ]
    newest = ends("newest")
    assert newest.returncode == 0
    assert re.fullmatch(r"pytest: \S+ is beyond 2\n", newest.stdout)
    assert ends("open", "pytest", "rich").stdout == "pytest>=1.0\nrich\n"
    assert ends("open", "all").stdout.count("\n") == 4
    assert ends("open").stdout == ""


# Scripts and workflows


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_can_be_read_by_bash_and_run(script: Path) -> None:
    assert os.access(script, os.X_OK)
    assert "\nset -euo pipefail\n" in script.read_text()
    done = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_a_release_fails_where_tag_and_version_differ() -> None:
    assert WORKFLOWS["release"]["jobs"]["build"]["steps"][-2]["env"] == {
        "TAG": "${{ github.ref_name }}"
    }
    assert '[ "$TAG" != "v$version" ]' in (CI / "wheel").read_text()


@pytest.mark.parametrize("path", ACTIONS, ids=lambda path: path.parent.name + "/" + path.name)
def test_every_action_is_pinned_by_commit_with_its_tag(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text())
    assert used
    for one in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one), one


def test_an_action_has_one_commit_everywhere() -> None:
    used = {one for path in ACTIONS for one in re.findall(r"uses: (.+)", path.read_text())}
    assert len({one.partition("@")[0] for one in used}) == len(used)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_job_may_do_little_and_ends(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for job in workflow["jobs"].values():
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            assert "${{ github.event" not in step.get("run", ""), "text of strangers in a script"
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_publishing_is_off_approved_and_last() -> None:
    jobs = WORKFLOWS["release"]["jobs"]
    publish = jobs["publish"]
    assert publish["if"] == "vars.PUBLISH == 'on'"
    assert publish["environment"] == "release"
    assert publish["permissions"] == {"id-token": "write"}
    assert (jobs["try"]["needs"], publish["needs"], jobs["page"]["needs"]) == (
        "build",
        "try",
        "publish",
    )
    for name in ("publish", "page"):  # the files that were tried, with no code of a checkout
        uses = [step.get("uses", "") for step in jobs[name]["steps"]]
        assert not any("checkout" in one for one in uses)
        assert any("download-artifact" in one for one in uses)
    others = [job for name, job in jobs.items() if name not in {"publish", "page"}]
    assert all(job["permissions"] == {"contents": "read"} for job in others)


def test_the_matrix_is_what_the_project_supports() -> None:
    supported = [
        found[1]
        for line in PROJECT["classifiers"]
        if (found := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))
    ]
    assert len(supported) >= 4
    ci, release = WORKFLOWS["ci"]["jobs"]["test"], WORKFLOWS["release"]["jobs"]["try"]
    assert ci["strategy"]["matrix"]["python"] == supported
    assert release["strategy"]["matrix"]["python"] == supported
    systems = {one["system"].partition("-")[0] for one in ci["strategy"]["matrix"]["include"]}
    assert systems == {"macos"}
    tried = [one.partition("-")[0] for one in release["strategy"]["matrix"]["system"]]
    assert tried == ["ubuntu", "macos"]


def test_ci_installs_the_lock_before_the_command_of_the_readme() -> None:
    steps = [step.get("run", "") for step in WORKFLOWS["ci"]["jobs"]["test"]["steps"]]
    assert steps[-1] == ".ci/run"
    assert "--require-hashes -r .packaging/dev.txt" in steps[-2]


# Formula, flake and container


def test_formula_and_flake_have_the_version_of_the_program() -> None:
    formula = (PACKAGING / "holdfast.rb").read_text()
    assert f'url "{REPOSITORY}.git", tag: "v{tui.__version__}"' in formula
    assert "sha256" not in formula, "no checksum that nobody has computed"
    assert f'version = "{tui.__version__}";' in (PACKAGING / "flake.nix").read_text()


def test_the_image_is_made_of_files_that_are_sent_to_it() -> None:
    folder = ROOT / ".devcontainer"
    dockerfile = (folder / "Dockerfile").read_text()
    sent = {
        line[1:]
        for line in (folder / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", dockerfile, re.MULTILINE)
    copied = {name for line in lines for name in line.split()}
    assert copied == sent
    assert all((ROOT / name).exists() for name in sent)
    assert "--require-hashes -r requirements.txt" in dockerfile
    last = dockerfile.rpartition("FROM ")[2]
    assert "\nUSER holdfast\n" in last
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    needed = {PROJECT["readme"], *built["targets"]["wheel"]["packages"]}
    needed |= set(built["targets"]["wheel"]["force-include"]) | {built["hooks"]["custom"]["path"]}
    assert needed <= sent


def test_the_dev_container_installs_the_lock_as_a_user() -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text()
    made = json.loads(re.sub(r"^ *//.*\n", "", text, flags=re.MULTILINE))
    dockerfile = (ROOT / ".devcontainer" / made["build"]["dockerfile"]).read_text()
    assert f" AS {made['build']['target']}\n" in dockerfile
    assert f'/bin/bash --uid "$UID" {made["remoteUser"]}' in dockerfile
    assert "--require-hashes -r .packaging/dev.txt" in made["postCreateCommand"]
    page = (ROOT / "tui" / "manual" / "containers.md").read_text()
    for option in made["runArgs"]:
        assert option in page
        assert option.replace("opt=", "opt ") in page


# People


def test_every_address_of_the_repository_is_the_one_of_the_project() -> None:
    owner_and_name = REPOSITORY.removeprefix("https://github.com/")
    owner, name = owner_and_name.split("/")
    pages = [ROOT / "README.md", *(ROOT / "tui" / "manual").glob("*.md")]
    found = 0
    for path in [*SOURCES, *pages]:
        for address in re.findall(r"(?:github\.com/|github:)[\w.-]+/[\w.-]+", path.read_text()):
            rest = re.split(r"github\.com/|github:", address)[1].removesuffix(".git")
            if owner in rest or rest.endswith(f"/{name}"):
                assert rest == owner_and_name, path
                found += 1
    assert found >= 10
    assert all(url.startswith(REPOSITORY) for url in PROJECT["urls"].values())


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_forms_and_settings_are_valid(path: Path) -> None:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml":
        assert {"name", "description", "body"} <= set(found)
        for one in found["body"]:
            assert one["type"] in {"markdown", "textarea", "input", "dropdown", "checkboxes"}
            assert one["attributes"].get("label") or one["attributes"].get("value")


COMMAND = re.compile(r"`(holdfast [^`]+)`")


@pytest.mark.parametrize(
    "path",
    [*GITHUB.glob("*.md"), *GITHUB.glob("ISSUE_TEMPLATE/*.yml")],
    ids=lambda path: path.name,
)
def test_what_people_are_asked_to_run_exists(path: Path) -> None:
    for line in COMMAND.findall(path.read_text()):
        if line != "holdfast --version":  # which ends the program
            parser.parse(line.split()[1:])


def test_agents_are_told_commands_and_places_that_exist() -> None:
    text = (GITHUB / "AGENTS.md").read_text()
    assert len(text.splitlines()) < 60
    for path in re.findall(r"`([\w.]*/[\w./-]*|[\w-]+\.md)`", text):
        assert (ROOT / path).exists(), path
    commands = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert commands
    scripts = PROJECT["scripts"]
    for line in commands[1].splitlines():
        for command in line.partition("  #")[0].split(" && "):
            program, *words = command.split()
            if program.startswith(".ci/"):
                assert os.access(ROOT / program, os.X_OK), program
            elif program.startswith(".venv/bin/"):
                name = program.rpartition("/")[2]
                tools = {"pip", "python", *scripts, *map(name_of, PROJECT_TOOLS)}
                assert name in tools | {"lint-imports"}, program
            for word in words:
                assert "tests/" not in word or (ROOT / word).exists(), word


PROJECT_TOOLS: list[str] = PROJECT["optional-dependencies"]["dev"]


def test_the_top_level_stays_small() -> None:
    """What is on it is what a visitor sees first; new files go into the folders with a dot."""
    done = subprocess.run(
        ["git", "ls-files", "--cached"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a checkout of git")
    assert {line for line in done.stdout.splitlines() if "/" not in line} == {
        ".git_archival.txt",
        ".gitattributes",
        ".gitignore",
        "CHANGELOG.md",
        "LICENSE",
        "README.md",
        "pyproject.toml",
    }

"""`--worktree` as a process: entered, left, entered again, resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.program import Program, until

WRITES = """
[[turn]]
text = "I'll write."
tools = [{name = "write_file", input = {path = "new.txt", content = "hello\\n"}}]
[[turn]]
text = "Done."
"""
LONG = """
[[turn]]
text = "I'll count."
tools = [{name = "run_command", input = {command = "seq 1 20000"}}]
[[turn]]
text = "Done."
"""


def git(repo: Path, *args: str) -> str:
    done = subprocess.run(["git", *args], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout.rstrip("\n")


@pytest.fixture(autouse=True)
def repository(work: Path) -> None:
    git(work, "init", "-q", "-b", "main")
    git(work, "config", "user.email", "test@example.org")
    git(work, "config", "user.name", "Test")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")


@pytest.fixture
def place(work: Path) -> Path:
    return work / ".holdfast" / "worktrees"


def test_an_unchanged_one_goes_and_its_session_stays(
    holdfast: Program, work: Path, place: Path
) -> None:
    (work / "README.md").write_text("# Other\n")
    done = holdfast("--practice", "-w", "look", "-p", "read README.md")
    assert "The demo project." in done.stdout
    assert done.stderr.splitlines() == [
        f"Working in the new worktree look, made from main: {_short(place / 'look', holdfast)}",
        f"1 uncommitted file in {_short(work, holdfast)} is not in the worktree: README.md.",
        "Removed the worktree look. Nothing had changed in it.",
    ]
    assert not place.exists()
    assert git(work, "branch", "--list", "worktree-*") == ""
    listed = holdfast("sessions", "list").stdout
    assert "[worktree look]" in listed
    again = holdfast("--practice", "-r", listed.split()[0], "-p", "read README.md")
    assert "# Other" in again.stdout
    assert "The worktree look is gone: working in" in again.stderr


def test_a_changed_one_stays_and_is_gone_back_to(
    holdfast: Program, work: Path, place: Path, script: Callable[[str], str]
) -> None:
    write = ("--practice-script", script(WRITES), "-w", "fix", "-p", "go", "--allow", "write_file")
    done = holdfast(*write)
    assert "The worktree fix stays: 1 changed file (new.txt)." in done.stderr
    assert done.stderr.endswith("Back to it: holdfast -w fix\n")
    assert (place / "fix" / "new.txt").read_text() == "hello\n"
    assert git(work, "status", "--porcelain") == ""
    session = holdfast("sessions", "list").stdout.split()[0]
    for words in (("-r", session), ("-w", "fix", "-c")):
        again = holdfast("--practice", *words, "-p", "read new.txt")
        assert "hello" in again.stdout
        assert "Back in the worktree fix, which came from main." in again.stderr
    assert len(holdfast("sessions", "list").stdout.splitlines()) == 1
    new = holdfast("--practice", "-c", "-p", "read new.txt")
    assert "No session in this folder yet" in new.stderr


def test_one_stays_while_a_command_runs_in_it(
    holdfast: Program, place: Path, script: Callable[[str], str]
) -> None:
    path = script(LONG.replace("seq 1 20000", "echo begun; sleep 300"))
    ask = ("--practice-script", path, "-w", "look", "-y", "-p", "go")
    with holdfast.started(*ask, "--output-format", "stream-json") as process:
        session = until(process, "session_started")["session_id"]
        until(process, "tool_output", "begun")
        process.send_signal(signal.SIGHUP)
        process.wait(PATIENCE_S)
    assert (place / "look").is_dir()
    assert "Stopped 1 command" in holdfast("stop", session).stdout
    holdfast("--practice", "-w", "look", "-p", "read README.md")
    assert not place.exists()


def test_full_results_outlive_the_worktree(
    holdfast: Program, home: Path, place: Path, script: Callable[[str], str]
) -> None:
    events = holdfast.lines("--practice-script", script(LONG), "-w", "look", "-y", "-p", "go")
    (receipt,) = (one["receipt"] for one in events if one["type"] == "tool_finished")
    assert not place.exists()
    full = Path(receipt["path"])
    assert home in full.parents
    assert "\n19999\n" in full.read_text()


@pytest.mark.parametrize(
    ("name", "words"),
    [("a b", "can't name a worktree"), ("../up", "can't name a worktree")],
)
def test_a_bad_name_ends_with_usage(holdfast: Program, place: Path, name: str, words: str) -> None:
    done = holdfast("--practice", "-w", name, "-p", "hello", code=2)
    assert words in done.stderr
    assert not place.exists()


def test_without_git_it_says_what_to_do(holdfast: Program, work: Path) -> None:
    (work / ".git").rename(work.parent / "moved")
    done = holdfast("--practice", "-w", "x", "-p", "hello", code=2)
    assert "isn't in a git repository." in done.stderr


def test_trust_in_the_checkout_holds_in_the_worktree(
    holdfast: Program, work: Path, home: Path
) -> None:
    (work / ".holdfast").mkdir()
    (work / ".holdfast" / "boot.md").write_text("Always say please.\n")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "a boot text")
    untrusted = "boot.md was left out"
    before = holdfast("--practice", "-w", "a", "-p", "read README.md")
    assert untrusted in before.stderr
    code = (
        "from pathlib import Path; from tui.core.paths import folders; from tui.settings import"
        f" trust; w = Path({str(work)!r}); about = trust.items(w);"
        " trust.decide(folders(), w, about, {one.name for one in about})"
    )
    subprocess.run([sys.executable, "-c", code], env=dict(holdfast.env), check=True)
    after = holdfast("--practice", "-w", "b", "-p", "read README.md")
    assert untrusted not in after.stderr


def _short(path: Path, program: Program) -> str:
    home = program.env["HOME"]
    return str(path).replace(home, "~", 1) if str(path).startswith(home + os.sep) else str(path)

"""Isolation by jj, against its documented command lines: a stand-in records and answers them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tui.batch.isolation import IsolationError
from tui.batch.jj import JjIsolation
from tui.batch.plan import find_isolation

STAND_IN = """#!{python}
import json, pathlib, sys
here = pathlib.Path({here!r})
args = sys.argv[1:]
assert args[:3] == ["--no-pager", "--color", "never"], args
args = args[3:]
with (here / "calls").open("a") as file:
    file.write(json.dumps(args) + chr(10))
answers = json.loads((here / "answers").read_text())
for start, answer in answers:
    if args[:len(start)] == start:
        sys.stdout.write(answer)
        sys.exit(0)
"""
FILES = 'all() ~ root:".holdfast" ~ root:"TASKS.md"'


class StandIn:
    """`answers` maps the beginning of a command line to what is printed."""

    def __init__(self, here: Path, root: Path) -> None:
        self.here = here
        self.answers: list[tuple[list[str], str]] = [(["root"], f"{root}\n")]
        self._write()

    def answer(self, text: str, *start: str) -> None:
        self.answers.insert(0, (list(start), text))
        self._write()

    def _write(self) -> None:
        (self.here / "answers").write_text(json.dumps(self.answers))

    def calls(self) -> list[list[str]]:
        """What was asked since the last look, less the questions."""
        path = self.here / "calls"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("")
        return [line for line in lines if line[0] not in {"root", "log", "diff"}]


@pytest.fixture
def jj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "jj"
    script.write_text(STAND_IN.format(python=sys.executable, here=str(folder)))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    root = tmp_path / "work"
    root.mkdir()
    (root / "TASKS.md").write_text("- one\n")
    return StandIn(folder, root)


def log_of(revisions: str) -> tuple[str, ...]:
    return ("log", "--no-graph", "-r", revisions)


@pytest.fixture
def found(jj: StandIn, tmp_path: Path) -> JjIsolation:
    jj.answer("base\n", *log_of("@-"))
    jj.answer("work\n", *log_of("@"))
    jj.answer("base\n", *log_of("base & ::@"))
    jj.answer("", *log_of("@"), "-T", "description")
    isolation = find_isolation(tmp_path / "work", tmp_path / "work" / "TASKS.md")
    assert isinstance(isolation, JjIsolation)
    jj.calls()
    return isolation


def test_without_jj_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert JjIsolation.find(tmp_path, tmp_path / "TASKS.md") is None
    assert find_isolation(tmp_path, tmp_path / "TASKS.md").name == "none"


def test_a_task_is_one_change_of_its_own(jj: StandIn, found: JjIsolation):
    assert found.name == "jj"
    found.check()
    assert found.begin() == "base"
    assert jj.calls() == []  # the empty change that is there is taken
    jj.answer("a.txt\n", "diff", "-r", "@", "--name-only", FILES)
    jj.answer("kxyz", *log_of("@-"), "-T", "change_id")
    assert found.keep("make it") == "kxyz"
    assert jj.calls() == [["commit", "--message", "make it", FILES]]
    found.finish()
    assert found.recover("x") == ""


def test_the_work_of_the_person_becomes_the_parent(jj: StandIn, found: JjIsolation):
    jj.answer("mine.txt\n", "diff", "-r", "@")
    found.begin()
    assert jj.calls() == [["new"]]


def test_changes_that_the_task_closed_itself_are_folded_in(jj: StandIn, found: JjIsolation):
    found.begin()
    jj.answer("other\n", *log_of("base..@-"))
    jj.answer("kxyz", *log_of("@-"), "-T", "change_id")
    found.keep("make it")
    fold = ["squash", "--from", "base..@-", "--into", "@", "--use-destination-message"]
    assert jj.calls() == [fold, ["commit", "--message", "make it", FILES]]


def test_a_task_that_changed_nothing_leaves_no_change(jj: StandIn, found: JjIsolation):
    found.begin()
    assert found.keep("nothing") == ""
    assert found.undo("try") == ""
    assert jj.calls() == []


def test_A39_a_failed_change_is_abandoned(jj: StandIn, found: JjIsolation):
    found.begin()
    jj.answer("a.txt\n", "diff", "-r", "@")
    assert found.undo("try") == "work"
    assert jj.calls() == [
        ["new", "base"],
        ["restore", "--from", "work", 'root:".holdfast"', 'root:"TASKS.md"'],
        ["abandon", "base..work"],
    ]


def test_A43_what_a_killed_run_left_is_abandoned(jj: StandIn, found: JjIsolation, tmp_path: Path):
    found.begin()
    jj.answer("a.txt\n", "diff", "-r", "@")
    again: Any = JjIsolation.find(tmp_path / "work", tmp_path / "work" / "TASKS.md")
    jj.calls()
    assert again.recover("killed") == "work"
    assert jj.calls()[-1] == ["abandon", "base..work"]
    assert again.recover("killed") == ""


def test_A43_what_a_killed_run_was_at_goes_on(jj: StandIn, found: JjIsolation, tmp_path: Path):
    found.begin()
    again: Any = JjIsolation.find(tmp_path / "work", tmp_path / "work" / "TASKS.md")
    assert again.resume()
    jj.answer("a.txt\n", "diff", "-r", "@")
    assert again.undo("try") == "work"
    assert not again.resume(), "nothing runs any more"


def test_a_working_copy_that_was_moved_is_left_alone(jj: StandIn, found: JjIsolation):
    found.begin()
    jj.answer("", *log_of("base & ::@"))
    with pytest.raises(IsolationError, match="moved the working copy"):
        found.undo("try")
    assert jj.calls() == []

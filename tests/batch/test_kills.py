"""A43: kill -9 behind every step of a run, each in a process of its own; then the next run.

The run holds every transition: a task completed, one that fails for good, one that is attempted
twice. Whatever the moment, the next run ends with the same states, commits and files.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import files, git, log, make_repo
from tests.batch.test_runner import World, fail
from tests.support.provider import ScriptedProvider, call, say
from tui.batch import run_store as book_module
from tui.batch import state as state_module
from tui.batch.events import BatchEvent, TaskStarted
from tui.batch.git import GitIsolation
from tui.batch.state import RunState
from tui.core.messages import Block
from tui.provider.base import Request

TASKS = "## g\n- [ ] make one\n- [ ] break two\n## g\n- [ ] retry three\n"
# The state is saved, files are begun, kept, undone and done with, a checkbox is set.
STEPS = [
    *("save", "begin", "save", "keep", "save", "mark", "finish"),  # the run, and the first task
    *("begin", "save", "undo", "save", "mark", "finish"),
    *("begin", "save", "save", "keep", "save", "mark", "finish"),
]


class Model(ScriptedProvider):
    """Does what the running task says, however often it is asked."""

    def __init__(self) -> None:
        super().__init__(*[self.answer] * 50)
        self.text, self.busy, self.calls = "", True, 0

    def answer(self, request: Request) -> list[Block]:
        word, name = self.text.split()
        if all(block["type"] != "tool_result" for block in request.messages[-1]["content"]):
            self.calls += 1
            id_ = f"toolu_{self.calls}"
            return [call("run_command", id_, command=f"printf {name} >{name}")]
        if word == "break":
            raise fail("refusal")
        if word == "retry" and self.busy:
            self.busy = False
            raise fail("overloaded")
        return say("done")


def world(repo: Path) -> World:
    isolation = GitIsolation.find(repo, repo / "TASKS.md")
    assert isolation
    model = Model()
    text = (repo / "TASKS.md").read_text()
    w = World(repo, text, [model] * 9, answers=["no"] * 9, isolation=isolation)

    def on(event: BatchEvent) -> None:
        if isinstance(event, TaskStarted):
            model.text = event.text

    w.on_event = on
    return w


def watch(monkeypatch: pytest.MonkeyPatch, done: Callable[[str], None]) -> None:
    """Tell of every step once it is done."""

    def told(owner: Any, name: str, step: str) -> None:
        real = getattr(owner, name)

        def doing(*args: Any) -> Any:
            result = real(*args)
            done(step)
            return result

        monkeypatch.setattr(owner, name, doing)

    for name in ("begin", "keep", "undo"):
        told(GitIsolation, name, name)
    told(GitIsolation, "finish", "finish")
    told(state_module, "replace_file", "save")
    told(book_module, "replace_file", "mark")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "repo")
    (repo / "TASKS.md").write_text(TASKS)
    return repo


def check(repo: Path, state: RunState) -> None:
    assert [task.status for task in state.tasks] == ["completed", "failed", "completed"]
    assert log(repo) == ["retry three", "make one", "first"]
    assert {"one", "three"} <= files(repo).keys()
    assert "two" not in files(repo)
    assert (repo / "TASKS.md").read_text() == (
        "## g\n- [x] make one\n- [!] break two\n## g\n- [x] retry three\n"
    )
    assert git(repo, "status", "--porcelain").split() == ["M", "TASKS.md"]


def test_A43_these_are_all_the_steps(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    watch(monkeypatch, steps.append)
    check(repo, asyncio.run(world(repo).run()))
    undo = STEPS.index("undo")
    assert steps == [*STEPS[:undo], "finish", *STEPS[undo:]]  # undo ends by finishing


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(last, marks=() if last % 4 == 0 else pytest.mark.slow)
        for last in range(len(STEPS) + 1)
    ],
)
def test_A43_a_run_killed_behind_any_step_is_gone_on_with(
    repo: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    with monkeypatch.context() as patch:
        left = last

        def done(_: str) -> None:
            nonlocal left
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

        watch(patch, done)
        child = os.fork()
        if not child:
            try:
                asyncio.run(world(repo).run())
            finally:
                os._exit(1)  # it should have been killed
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    check(repo, asyncio.run(world(repo).run()))

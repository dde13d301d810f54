"""One jj change per task, abandoned on failure and interrupt. Blocks.

The working copy is always a change in jj, so a person's own work is never in the way: the task
begins a change on top of it. The task file and `.holdfast/` are never part of a task's change:
they are left in the working copy when it is closed, and carried over when it is abandoned. An
abandoned change is hidden, not lost: `jj show` finds it by its commit id.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.batch.isolation import Isolation, IsolationError, excluded_paths
from tui.batch.state import RUN_DIR
from tui.core.dataclass import dataclass, field
from tui.core.errors import os_error_as
from tui.core.files import read_small, replace_file
from tui.core.git.door import refusal, run_program
from tui.core.redaction import child_environment

_NAME: Final = "jj-task.json"


@dataclass(slots=True)
class JjIsolation(Isolation):
    """Isolation of the tasks run in `target`, a folder of a jj workspace. Use `find`.

    `kept_out` are paths from the workspace's root that do not count. Nothing is in the way of the
    first task: what is there becomes the parent of its change.
    """

    target: Path
    top: Path
    kept_out: tuple[str, ...]
    name = "jj"
    _base: str = field(default="", init=False)

    @classmethod
    def find(cls, target: Path, task_file: Path) -> JjIsolation | None:
        """The isolation of a folder; None where it is in no jj workspace, or jj is missing."""
        try:
            top = Path(os.path.realpath(_jj(target, "root").strip()))
        except IsolationError:
            return None
        return cls(target, top, excluded_paths(top, target, task_file))

    def begin(self) -> str:
        """A task begins on a change of its own. Returns the commit it starts from."""
        parents = self._ids("@-")
        fresh = not self._diff() and not self._log("@", "description").strip() and len(parents) == 1
        if not fresh:
            self._run("new")
            parents = self._ids("@-")
        self._base = parents[0]
        self._remember(self._base)
        return self._base

    def keep(self, message: str) -> str:
        """The task is done: its change is described and closed. Returns its change id, "" if it
        changed nothing."""
        self._still_there()
        made = self._made()
        if not self._diff() and not made:
            return ""
        if made:
            between = f"{self._base}..@-"
            self._run("squash", "--from", between, "--into", "@", "--use-destination-message")
        self._run("commit", "--message", message, self._fileset())
        return self._log("@-", "change_id").strip()

    def undo(self, label: str) -> str:
        """The task failed: its change is abandoned. Returns the commit where it can be looked at,
        "" if it changed nothing."""
        del label  # jj keeps hidden commits by their ids
        self._still_there()
        changed = self._diff() or self._made()
        attempt = self._ids("@")[0]
        if not changed:
            self.finish()
            return ""
        self._run("new", self._base)
        if self.kept_out:
            files = (f'root:"{_quoted(path)}"' for path in self.kept_out)
            self._run("restore", "--from", attempt, *files)
        self._run("abandon", f"{self._base}..{attempt}")
        self.finish()
        return attempt

    def finish(self) -> None:
        """The outcome is saved: nothing is to be recovered."""
        with suppress(OSError):
            (self.target / RUN_DIR / _NAME).unlink()

    def resume(self) -> bool:
        """Continue from where the task began, if the working copy is still built on that."""
        self._base = self._remembered()
        return bool(self._base) and bool(self._ids(f"{self._base} & ::@"))

    def recover(self, label: str) -> str:
        """Abandon what a killed run left behind. Returns what `undo` does."""
        self._base = self._remembered()
        return self.undo(label) if self._base else ""

    def _remembered(self) -> str:
        """Read where the task that a killed run was at began; "" where that isn't recorded."""
        try:
            data, _ = read_small(self.target / RUN_DIR / _NAME, follow=False)
            return str(json.loads(data)["base"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return ""

    def _remember(self, base: str) -> None:
        with os_error_as(IsolationError, "Can't save where the task started"):
            replace_file(self.target / RUN_DIR / _NAME, json.dumps({"base": base}).encode())

    def _still_there(self) -> None:
        """Raise IsolationError where the working copy is no longer built on the task's base."""
        if not self._ids(f"{self._base} & ::@"):
            raise IsolationError(
                "The task moved the working copy elsewhere in the history.",
                hint="Its work stays there. Return with jj edit, then run again.",
            )

    def _made(self) -> list[str]:
        """Changes that the task closed by itself."""
        return self._ids(f"{self._base}..@-")

    def _diff(self) -> str:
        """The paths that count and differ in the working copy's change."""
        return self._run("diff", "-r", "@", "--name-only", self._fileset()).strip()

    def _ids(self, revisions: str) -> list[str]:
        return self._log(revisions, 'commit_id ++ "\\n"').split()

    def _log(self, revisions: str, template: str) -> str:
        return self._run("log", "--no-graph", "-r", revisions, "-T", template)

    def _fileset(self) -> str:
        """Everything but what does not count."""
        return " ~ ".join(["all()", *(f'root:"{_quoted(path)}"' for path in self.kept_out)])

    def _run(self, *args: str) -> str:
        return _jj(self.top, *args)


def _jj(where: Path, *args: str) -> str:
    """Run jj and return its output. Raises IsolationError with jj's own words."""
    env = child_environment() | {"LC_ALL": "C", "JJ_EDITOR": "true"}
    words = ("jj", "--no-pager", "--color", "never", *args)
    with os_error_as(IsolationError, "can't run jj"):
        done = run_program(*words, cwd=where, env=env)
    if done.returncode:
        raise IsolationError(f"jj {args[0]} failed: {refusal(done).splitlines()[0]}")
    return os.fsdecode(done.stdout)


def _quoted(path: str) -> str:
    """A path within the quotes of a fileset."""
    return path.replace("\\", "\\\\").replace('"', '\\"')

"""The checks that are red, run by run: only one that was about as much makes one green. Pure."""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple

from tui.context.timeline.check_scope import CheckScope, folder_after, scope_of
from tui.context.timeline.checks import Verdict, covers
from tui.context.timeline.steps import TimelineStep
from tui.core.dataclass import dataclass, field
from tui.core.messages import string_of

_KEEPS_FOLDER: Final = "Bash"
"""The tool whose shell stays in the folder that a command went to."""


class CheckRun(NamedTuple):
    """A run of a check that has a verdict, and what it was about."""

    step: TimelineStep
    scope: CheckScope

    def answers(self, red: CheckRun) -> bool:
        """True if it takes the place of a red one from before it."""
        if red.step.check == self.step.check:
            return self.scope.includes(red.scope)
        whole = self.scope == CheckScope(red.scope.folder)
        green = self.step.verdict == "green"
        return green and whole and covers(self.step.check, red.step.check)


@dataclass(slots=True)
class CheckRuns:
    """The state of each check. `red` are the runs that no later one has answered, `green` the last
    ones of each scope."""

    verdicts: dict[str, Verdict] = field(default_factory=dict[str, "Verdict"])
    red: list[CheckRun] = field(default_factory=list[CheckRun])
    green: dict[tuple[str, CheckScope], CheckRun] = field(
        default_factory=dict[tuple[str, CheckScope], CheckRun]
    )
    shell: str = ""
    """The folder of a shell that outlives its commands, once it has left that of the session."""

    def red_ones(self) -> dict[str, TimelineStep]:
        """The last red run of each check that is red."""
        return {step.check: step for step, _ in self.red}

    def folder_of(self, tool: str, given: dict[str, Any], cwd: str) -> str:
        """The folder in which a command begins."""
        named = string_of(given.get("cwd") or given.get("workdir"))
        begun = self.shell if tool == _KEEPS_FOLDER and self.shell else cwd
        return os.path.join(begun, named) if named else begun  # noqa: PTH118 - may be of elsewhere

    def follow(self, tool: str, command: str, cwd: str) -> None:
        """Follow a command that worked to the folder that it leaves the shell in."""
        if tool == _KEEPS_FOLDER and "cd" in command:
            self.shell = folder_after(command, self.shell or cwd)

    def add(self, step: TimelineStep, command: str, folder: str) -> bool:
        """Add a run that has a verdict. True if the check turned with it."""
        run = CheckRun(step, scope_of(command, folder))
        self.red = [one for one in self.red if not run.answers(one)]
        if step.verdict == "green":
            self.green[step.check, run.scope] = run
        else:
            self.red.append(run)
        red = self.red_ones()
        before = self.verdicts.get(step.check)
        now = self.verdicts[step.check] = "red" if step.check in red else "green"
        if step.verdict == "green":
            for other in [*self.verdicts]:
                if covers(step.check, other) and other not in red:
                    del self.verdicts[other]
        return before != now

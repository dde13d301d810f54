"""Commands in a scratch copy of a workspace, behind the usual walls, without an agent.

The workspace itself is hidden from them, but for what they are lent of it: a program that finds it
by its path would otherwise be judged by the files that are there now. Everything blocks.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from tui.agent.confined_programs import confinement_of
from tui.agent.launch import Launch
from tui.app.confined_program import Bounds, ProgramEnd, environment_of, run_to_end
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, UsageError
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level


@dataclass(slots=True)
class ScratchCommands:
    """Runs commands in the folder `folder`. Use `scratch_commands` to make one."""

    folder: Path
    confined: bool
    _confinement: Confinement
    _runner: asyncio.Runner

    def run(self, argv: Sequence[str], timeout_s: float | None = None) -> ProgramEnd:
        """Run a command to its end, with all that it started. Raises HoldfastError where it can't
        be started, OSError."""
        env = environment_of(self._confinement)
        env |= {"GIT_CEILING_DIRECTORIES": str(self.folder.parent), "PWD": str(self.folder)}
        bounds = Bounds(timeout_s)
        return self._runner.run(
            run_to_end(self._confinement, argv, env, bounds, walls=self.confined)
        )

    def lend(self, folders: Iterable[Path]) -> None:
        """Let commands read these parts of the workspace, by their own paths."""
        own = self._confinement.workspace
        readable = (*own.readable, *(path for path in folders if path not in own.readable))
        self._confinement.workspace = replace(own, readable=readable)


@contextmanager
def scratch_commands(launch: Launch, workspace: Path, what: str) -> Generator[ScratchCommands]:
    """Make a scratch folder, and what runs commands in it; both are gone at the end. `workspace` is
    the folder that is hidden from them. Raises UsageError where nothing confines them."""
    with (
        tempfile.TemporaryDirectory(prefix=f"holdfast-{what}-", ignore_cleanup_errors=True) as made,
        asyncio.Runner() as runner,
    ):
        folder = Path(os.path.realpath(made)) / "files"
        folder.mkdir()
        confinement = confinement_of(launch, what).around(
            Workspace.at(folder), f"{what} {token_hex(8)}"
        )
        confinement.hidden = (*confinement.hidden, workspace)
        confinement.cache = confinement.folder / "cache"  # builds of the workspace trust theirs
        confined = launch.config.sandbox.engine != "off"
        try:
            if confined and Level.WORKSPACE not in runner.run(confinement.levels()):
                raise UsageError(
                    f"Commands run in the sandbox, and there is none here: {confinement.reason}.",
                    hint="holdfast doctor says more. Or run it without one: --no-sandbox",
                )
            yield ScratchCommands(folder, confined, confinement, runner)
        finally:
            with suppress(HoldfastError):
                runner.run(confinement.close())

"""The project's own git hooks, run by the commit of a task in the sandbox, as its commands are.

Git itself makes the commit there, so each hook runs when and as git runs it. Without `[batch]
hooks` no hook runs.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Final

from tui.app.confined_program import (
    Bounds,
    ProgramStoppedError,
    StopSignal,
    environment_of,
    run_confined,
)
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, UsageError
from tui.core.git.checkout import Checkout
from tui.core.text_cleaning import clean
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level

_PATIENCE_S: Final = 1800.0
_SHOWN: Final = 2000
"""Characters of a hook's output that are said, the last ones."""
_COMMIT: Final = ("git", "commit", "-q", "--no-gpg-sign", "-F")
_ALONE: Final = {"GIT_EDITOR": ":", "GIT_TERMINAL_PROMPT": "0"}


class HookRefusedError(HoldfastError):
    """A hook of the project refused the commit of a task."""


@dataclass(frozen=True, slots=True)
class CommitHooks:
    """Commits with the hooks of a repository, each time in a sandbox like this one."""

    sandbox: Confinement
    _stopped: StopSignal = field(default_factory=StopSignal)

    def stop(self) -> None:
        """End the hooks that run, and let no other begin: the run ends. Doesn't block."""
        self._stopped.set()

    def check(self, folder: Path) -> None:
        """Raise UsageError where no sandbox confines hooks. Blocks."""
        confinement = self._around(folder)
        if Level.WORKSPACE not in asyncio.run(confinement.levels()):
            why = confinement.reason or "it is off"
            raise UsageError(
                f"Git hooks run only in the sandbox, and there is none here: {why}.",
                hint="Leave them out with: [batch] hooks = false",
            )

    def commit(self, checkout: Checkout, message: str) -> None:
        """Commit what is in the index. Raises HookRefusedError with what the hooks said. Blocks."""
        confinement = self._around(checkout.top)
        env = environment_of(confinement) | _ALONE | checkout.named_identity()
        bounds = Bounds(_PATIENCE_S, self._stopped)
        said_in = checkout.git_dir / "HOLDFAST_EDITMSG"
        try:
            said_in.write_text(message, encoding="utf-8")
            done = run_confined(confinement, (*_COMMIT, str(said_in)), env, bounds)
        except ProgramStoppedError as error:
            raise HookRefusedError("The run was stopped while a git hook ran.") from error
        except OSError as error:
            raise HookRefusedError(f"The git hooks couldn't run: {error}.") from error
        finally:
            with suppress(OSError):
                said_in.unlink()
        if done.timed_out:
            minutes = f"{_PATIENCE_S / 60:.0f} minutes"
            raise HookRefusedError(f"The git hooks were stopped after {minutes}.")
        if done.code:
            words = clean(done.text).strip()[-_SHOWN:] or f"exit {done.code}"
            raise HookRefusedError(f"A git hook refused the commit: {words}")

    def _around(self, folder: Path) -> Confinement:
        workspace = replace(self.sandbox.workspace, root=folder, temporary=None)
        return self.sandbox.around(workspace, f"commit {token_hex(8)}")

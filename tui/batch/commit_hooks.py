"""The project's own git hooks, run by the commit of a task in the sandbox, as its commands are.

Git itself makes the commit there, so each hook runs when and as git runs it. Without `[batch]
hooks` no hook runs.
"""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from secrets import token_hex
from typing import Final

from tui.batch.confined_program import Bounds, ProgramStoppedError, StopSignal, run_confined
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, UsageError
from tui.core.git.checkout import Checkout
from tui.core.redaction import child_environment
from tui.core.text_cleaning import clean
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.walls import Level

_PATIENCE_S: Final = 1800.0
_SHOWN: Final = 2000
"""Characters of a hook's output that are said, the last ones."""
_COMMIT: Final = ("git", "commit", "-q", "--no-gpg-sign", "-F", "-")
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
        kept = clean_environment(child_environment(), confinement.settings.keep_env)
        env = {name: value for name, value in kept.items() if not name.startswith("GIT_")}
        env |= _ALONE | checkout.named_identity()
        try:
            done = run_confined(
                confinement,
                _COMMIT,
                env,
                Bounds(_PATIENCE_S, self._stopped),
                stdin=message.encode(),
            )
        except ProgramStoppedError as error:
            raise HookRefusedError("The run was stopped while a git hook ran.") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise HookRefusedError(f"The git hooks couldn't run: {error}.") from error
        if done.exit_code:
            said = clean(done.output.decode("utf-8", "replace")).strip()
            words = said[-_SHOWN:] or f"exit {done.exit_code}"
            raise HookRefusedError(f"A git hook refused the commit: {words}")

    def _around(self, folder: Path) -> Confinement:
        workspace = replace(self.sandbox.workspace, root=folder, temporary=None)
        return self.sandbox.around(workspace, f"commit {token_hex(8)}")

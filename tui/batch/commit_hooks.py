"""The project's own git hooks, run by the commit of a task in the sandbox, as its commands are.

Git itself makes the commit there, so each hook runs when and as git runs it. Without `[batch]
hooks` no hook runs.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from threading import Event
from typing import Final

from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError, UsageError
from tui.core.git.checkout import Checkout
from tui.core.redaction import child_environment
from tui.core.text_cleaning import clean
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.walls import Level

_PATIENCE_S: Final = 1800.0
_LOOK_S: Final = 0.2
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
    _stopped: Event = field(default_factory=Event)

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
            done = asyncio.run(self._done(confinement, checkout.top, message, env))
        except (OSError, subprocess.SubprocessError) as error:
            raise HookRefusedError(f"The git hooks couldn't run: {error}.") from error
        if done.returncode:
            said = clean((done.stdout + done.stderr).decode("utf-8", "replace")).strip()
            words = said[-_SHOWN:] or f"exit {done.returncode}"
            raise HookRefusedError(f"A git hook refused the commit: {words}")

    def _around(self, folder: Path) -> Confinement:
        workspace = replace(self.sandbox.workspace, root=folder, temporary=None)
        return self.sandbox.around(workspace, f"commit {token_hex(8)}")

    async def _done(
        self, confinement: Confinement, top: Path, message: str, env: dict[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            words = await confinement.command(_COMMIT, env, Level.WORKSPACE)
            return await asyncio.to_thread(self._run, words, top, message, env)
        finally:
            await confinement.close()

    def _run(
        self, words: Sequence[str], top: Path, message: str, env: dict[str, str]
    ) -> subprocess.CompletedProcess[bytes]:
        """Run the commit with its hooks, for as long as they may take and the run goes on."""
        pipe, until = subprocess.PIPE, time.monotonic() + _PATIENCE_S
        with subprocess.Popen(
            words, cwd=top, env=env, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        ) as process:
            given: bytes | None = message.encode()
            try:
                while not self._stopped.is_set():
                    try:
                        out, err = process.communicate(given, timeout=_LOOK_S)
                    except subprocess.TimeoutExpired:
                        given = None
                        if time.monotonic() > until:
                            raise
                    else:
                        return subprocess.CompletedProcess(words, process.returncode, out, err)
            finally:
                if process.poll() is None:
                    _end(process)
        raise HookRefusedError("The run was stopped while a git hook ran.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a commit with all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdout, process.stderr):  # not read to their end: somebody may hold them
        if stream is not None:
            stream.close()

"""Commands in a scratch copy of a workspace, behind the usual walls, without an agent.

The workspace itself is hidden from them, but for what they are lent of it: a program that finds it
by its path would otherwise be judged by the files that are there now. Everything blocks.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import tempfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from tui.agent.confined_programs import confinement_of
from tui.agent.launch import Launch
from tui.app.confined_program import Bounds, ProgramEnd, environment_of, run_to_end
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, StorageError, UsageError, os_error_as
from tui.core.workspace import Workspace
from tui.permissions.sandbox.confinement import Confinement
from tui.permissions.sandbox.walls import Level
from tui.session.checkpoints.scratch import remove_tree


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
        bounds = Bounds(timeout_s, walls=self.confined)
        return self._runner.run(run_to_end(self._confinement, argv, env, bounds))

    def lend(self, folders: Iterable[Path]) -> None:
        """Let commands read these parts of the workspace, by their own paths."""
        own = self._confinement.workspace
        readable = (*own.readable, *(path for path in folders if path not in own.readable))
        self._confinement.workspace = replace(own, readable=readable)


@contextmanager
def scratch_commands(launch: Launch, workspace: Path, what: str) -> Generator[ScratchCommands]:
    """Make a scratch folder, and what runs commands in it; both are gone at the end, and so is what
    a killed program left of such. `workspace` is the folder that is hidden from them. Raises
    UsageError where nothing confines them, StorageError where the folder can't be made."""
    confinement = confinement_of(launch, what)
    with (
        _scratch_folder(launch.folders.data / "scratch", what, confinement) as folder,
        asyncio.Runner() as runner,
    ):
        confinement = confinement.around(Workspace.at(folder), folder.parent.name)
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


class _Made(msgspec.Struct, frozen=True):
    """Folders that a program made and still needs while its file, which says so, is locked. `inode`
    is that of the scratch folder, which may be another one by now."""

    folder: str
    inode: tuple[int, int]
    sandbox: str


@contextmanager
def _scratch_folder(place: Path, what: str, confinement: Confinement) -> Generator[Path]:
    """A new folder, among the temporary ones, that a file in `place` tells of until it is gone."""
    with os_error_as(StorageError, f"Can't use {place}"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(place)
    hint = "TMPDIR names the folder for it."
    with os_error_as(StorageError, "Can't make a scratch folder", hint=hint):
        made = Path(os.path.realpath(tempfile.mkdtemp(prefix=f"holdfast-{what}-")))
    folder, state = made / "files", made.stat()
    folder.mkdir()
    sandbox = confinement.around(Workspace.at(folder), made.name).folder
    about = _Made(str(made), (state.st_dev, state.st_ino), str(sandbox))
    file, draft = place / f"{made.name}.json", place / f".{made.name}"
    try:
        with draft.open("xb", buffering=0) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            lock.write(msgspec.json.encode(about))
            draft.replace(file)  # nobody sees it without its lock
            yield folder
    finally:
        with suppress(OSError):
            remove_tree(made)
        if not made.exists():
            for one in (file, draft):
                one.unlink(missing_ok=True)


def _sweep(place: Path) -> None:
    """Remove the folders of programs that were killed."""
    for file in place.glob("[!.]*.json"):
        with suppress(OSError, msgspec.DecodeError), file.open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left = msgspec.json.decode(lock.read(), type=_Made)
            with suppress(FileNotFoundError):
                state = Path(left.folder).lstat()
                if (state.st_dev, state.st_ino) == left.inode:
                    remove_tree(Path(left.folder))
            remove_tree(Path(left.sandbox))
            file.unlink()

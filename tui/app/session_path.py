"""The session and the folder that the command line means. Loads little: it comes first."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app.options.arguments import Options
from tui.core.errors import SessionError, UsageError
from tui.core.paths import Folders, folders
from tui.core.workspace import worktree_of

if TYPE_CHECKING:
    from tui.session.reader import LoadedSession


def session_path(options: Options) -> Path | None:
    """The file of the session that the options name; None for a new one. Raises SessionError."""
    if not (options.opening.resume or options.opening.newest):
        return None
    from tui.session import catalog  # noqa: PLC0415 - on demand

    home = folders()
    if options.opening.resume:
        path = _named(options.opening.resume, home)
        catalog.check_ours(path, home)
        return path
    return catalog.newest(home, workspace_of(options))


def forked(options: Options) -> Options:
    """Return the options with a copy of the session that they name, up to the message if they name
    one. Without a session they stay as they are. Blocks; raises SessionError."""
    path = session_path(options)
    if path is None:
        return options
    from tui.core.clock import SystemClock  # noqa: PLC0415 - on demand, as those below
    from tui.session import copies  # noqa: PLC0415
    from tui.session.reader import read  # noqa: PLC0415

    root, at = workspace_of(options), options.sessions.at or ""
    loaded = read(path)
    copy = copies.fork(loaded, folders=folders(), clock=SystemClock(), at=at, cwd=root)
    return options.having(
        resume=str(copy), newest=False, fork=False, at=None, notices=_gone(options, loaded, root)
    )


def _gone(options: Options, loaded: LoadedSession, root: Path) -> tuple[str, ...]:
    """The notices of the options; without a screen, which shows the copy's own note, with one if
    the session's folder is gone. Blocks."""
    from tui.session.copies import gone_folder  # noqa: PLC0415 - on demand

    printing = options.printing.headless or options.opening.background
    said = gone_folder(loaded.header, root, loaded.records) if printing else ""
    return (*options.notices, *([said] if said else []))


def session_worktree_folder(options: Options) -> Path | None:
    """The folder in a worktree that the session to resume worked in; None where it worked in none,
    or where the options name another folder or this worktree anyway. Raises UsageError."""
    if options.cwd is not None or not options.opening.resume:
        return None
    from tui.session import catalog  # noqa: PLC0415 - on demand

    with suppress(SessionError):  # reported when the session is opened
        path = _named(options.opening.resume, folders())
        cwd = catalog.cwd_of(path)
        if path.resolve().parent != folders().sessions_of(cwd).resolve():
            return None  # a file from elsewhere does not say where to work
        top = worktree_of(cwd)
        return None if top is None or top == worktree_of(workspace_of(options)) else cwd
    return None


@lru_cache(maxsize=1)
def _named(reference: str, home: Folders) -> Path:
    """The file that is meant; several steps of a start ask for it, and it stays the same."""
    from tui.session import naming  # noqa: PLC0415 - on demand

    return naming.find(reference, home)


def workspace_of(options: Options) -> Path:
    """The real path of the folder to work in. Raises UsageError where it cannot be used."""
    if options.cwd is not None:
        return folder_of(options.cwd, "-C")
    try:
        return folder_of(Path.cwd(), "-C")
    except FileNotFoundError:
        raise UsageError(
            "The current folder no longer exists.",
            hint="Change to another folder, or name one with -C.",
        ) from None


def folder_of(path: Path, flag: str) -> Path:
    """The real path of a folder that a flag names. Raises UsageError where it cannot be used."""
    real = Path(os.path.realpath(path.expanduser()))
    if not real.is_dir():
        raise UsageError(f"{path} isn't a folder.", hint=f"Give {flag} an existing folder.")
    if not os.access(real, os.R_OK | os.X_OK):
        raise UsageError(f"Can't read {path}.", hint="Check its permissions.")
    return real

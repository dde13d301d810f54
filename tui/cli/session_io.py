"""Finding, reading and printing sessions, for the actions of `holdfast sessions`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui.app.options.arguments import Options
from tui.core.errors import SessionError, UsageError
from tui.core.messages import string_of
from tui.core.paths import folders
from tui.core.standard_output import STDOUT, print_data
from tui.session import naming
from tui.session.branches import on_branch
from tui.session.reader import LoadedSession, read
from tui.session.records import SUB_AGENT, Record
from tui.session.session import file_of_child

_SUB_AGENTS = 100
"""Most sub-agents whose sessions are read."""
_MANY = 50
"""So many files are worth a line that says how many have been read."""


def path_of(options: Options) -> Path:
    """Return the file that is meant. Raises SessionError or UsageError."""
    if not options.target:
        raise UsageError("Which session?", hint="`holdfast sessions list` shows their ids.")
    # what is moved to the trash is named in full
    return naming.find(options.target, folders(), whole=options.action == "delete")


def file_of(options: Options) -> Path | None:
    """Return the file that is to be written; None for standard output."""
    return None if options.out in {None, STDOUT} else options.out


def new_file_of(options: Options) -> Path | None:
    """Return the file for a copy, None where it has its usual name. Raises UsageError for standard
    output, which has no room for what is written beside it."""
    if options.out == STDOUT:
        raise UsageError("A copy can't be written to standard output.", hint="Name a file.")
    return options.out


def load(path: Path) -> LoadedSession:
    """Load a session of ours or of another agent, by its content. Raises SessionError.

    A file in the folder of the sessions is ours, whatever is left of it.
    """
    home = folders().sessions.resolve()
    if home in path.resolve().parents or (path.is_file() and not path.stat().st_size):
        return read(path)
    from tui.session import importers  # noqa: PLC0415 - most sessions are ours

    return importers.load(path)


def loaded_branch(options: Options) -> LoadedSession:
    """Load the session that is meant, with the records of the branch that `--branch` names, the
    current one without it. Raises SessionError, UsageError."""
    loaded, name = load(path_of(options)), options.sessions.branch
    if name is None:
        return loaded
    if not name.strip():
        raise UsageError("Which branch?", hint="`holdfast sessions tree ID` lists them.")
    return on_branch(loaded, name)


def sub_agents_of(loaded: LoadedSession) -> dict[str, Sequence[Record]]:
    """Read the sessions of a session's sub-agents, by id, where there are files of them. Blocks."""
    found: dict[str, Sequence[Record]] = {one.header.id: one.branch for one in loaded.children}
    for record in loaded.branch:
        id_, path = (string_of(record.data.get(name)) for name in ("session", "path"))
        if record.type != SUB_AGENT or id_ in found or len(found) >= _SUB_AGENTS:
            continue
        found[id_] = ()
        with suppress(SessionError):
            if (file := file_of_child(loaded.path, path)) is not None:
                found[id_] = read(file).branch
    return found


def print_json(value: object) -> int:
    """Print one JSON document on stdout. Returns the exit code of success."""
    print_data(json.dumps(value, ensure_ascii=True, indent=2))
    return 0


def reading_progress(done: int, of: int) -> None:
    """Say on a terminal how far a long reading is."""
    terminal = sys.__stderr__
    if of >= _MANY and terminal and sys.stderr.isatty():
        end = "\r" if done < of else "\n"
        terminal.write(f"Reading sessions: {done:,} of {of:,}{end}")
        terminal.flush()

"""`holdfast rescue PATH`: repair another agent's session in its own format, as a copy.

The original is only read. The copy, and what had to be set aside, are new files of the person's.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui.app.options.arguments import Options
from tui.cli.own_loader import NotCheckedError, database_refusal, refusal
from tui.cli.session_io import new_file_of, print_json
from tui.core.dataclass import dataclass
from tui.core.errors import SessionError, UsageError, os_error_as
from tui.core.paths import expanded
from tui.core.standard_output import print_text
from tui.core.text_cleaning import one_line
from tui.session.reader import open_session
from tui.session.rescue import MAGIC, rescue, rescue_database

_NAMES = {"claude_code": "Claude Code", "codex": "Codex", "opencode": "opencode", "pi": "pi"}
_OPEN = {
    "claude_code": "put it in its old place below ~/.claude/projects, under its old name, then "
    "`claude --resume`.",
    "codex": "put it in its old place below ~/.codex/sessions, under its old name, then "
    "`codex resume`.",
    "opencode": "close opencode, move its opencode.db with the -wal and -shm beside it elsewhere, "
    "and put the copy in its place.",
    "pi": "`pi --session COPY`.",
}


_NO_ROOM = frozenset({"SQLITE_FULL", "SQLITE_IOERR_WRITE"})


@dataclass(slots=True)
class _Outcome:
    """The result of a rescue, as it is reported."""

    format: str
    repairs: Sequence[str]
    copy: Path | None = None
    set_aside: Path | None = None
    refused: str = ""
    """The other program's complaint about it; "" for none."""
    unchecked: str = ""
    """The reason why the other program wasn't asked; "" if it was."""

    def to_json(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "repairs": list(self.repairs),
            "copy": self.copy and str(self.copy),
            "set_aside": self.set_aside and str(self.set_aside),
            "opens": None if self.unchecked else not self.refused,
            "refused": self.refused,
            "unchecked": self.unchecked,
        }


def run(options: Options) -> int:
    """Write the repaired copy and report what was done. Returns the exit code."""
    if not options.target:
        raise UsageError("Which file?", hint="holdfast rescue PATH")
    path = expanded(options.target)
    copy = new_file_of(options) or path.with_suffix(f".rescued{path.suffix}")
    with open_session(path) as file, os_error_as(SessionError, f"Can't read {path}"):
        head = file.read(len(MAGIC))
        data = b"" if head == MAGIC else head + file.read()
    outcome = _of_database(path, copy) if head == MAGIC else _of_file(path, data, copy)
    if options.json:
        return print_json(outcome.to_json())
    for line in _report(outcome, path):
        print_text(line)
    return 0


def _of_file(path: Path, data: bytes, copy: Path) -> _Outcome:
    mended = rescue(data, path.name)
    if mended is None:
        raise SessionError(
            f"{path} isn't a session file of Claude Code, Codex, opencode or pi.",
            hint="`holdfast sessions check FILE` reads a session of Holdfast, `holdfast sessions "
            "import FILE` what `opencode export` wrote.",
        )
    outcome = _Outcome(mended.format, mended.repairs)
    if mended.repairs:
        _write_set_aside(outcome, copy, mended.set_aside)
        _write_new(copy, mended.data)
    try:
        outcome.refused = refusal(mended.format, mended.data)
    except NotCheckedError as reason:
        outcome.unchecked = str(reason)
    return outcome


def _of_database(path: Path, copy: Path) -> _Outcome:
    try:
        with os_error_as(SessionError, f"Can't write {copy}"):
            mended = rescue_database(path, copy)
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "") in _NO_ROOM:
            raise SessionError(
                f"Can't write {copy}: {error}.",
                hint="Free some disk space, or name a place on another disk with --out.",
            ) from error
        raise SessionError(
            f"Can't mend {path}: {error}.",
            hint=f"`sqlite3 {path} .recover | sqlite3 NEW` may still read some of it.",
        ) from error
    if mended is None:
        raise SessionError(f"{path} is a database, but not opencode's.")
    outcome = _Outcome("opencode", mended.repairs.said)
    if mended.repairs.said:
        _write_set_aside(outcome, copy, mended.set_aside)
    try:
        outcome.refused = database_refusal(outcome.copy or path, mended.sessions)
    except NotCheckedError as reason:
        outcome.unchecked = str(reason)
    return outcome


def _write_set_aside(outcome: _Outcome, copy: Path, data: bytes) -> None:
    outcome.copy = copy
    if data:
        outcome.set_aside = copy.with_name(f"{copy.name}.set-aside")
        _write_new(outcome.set_aside, data)


def _report(outcome: _Outcome, path: Path) -> list[str]:
    name = _NAMES[outcome.format]
    what = "database" if outcome.format == "opencode" else "session"
    if outcome.copy is None:
        lines = [f"Nothing to mend in this {what} of {name}: no copy was made."]
    else:
        lines = [f"A {what} of {name}. Mended in a copy:"]
        lines += [f"  {one_line(repair)}" for repair in outcome.repairs]
        lines.append(f"Copy: {outcome.copy}")
        if outcome.set_aside is not None:
            lines.append(f"What was changed or taken out, as it was: {outcome.set_aside}")
        lines.append(f"To open it: {_OPEN[outcome.format].replace('COPY', str(outcome.copy))}")
    return [*lines, *_verdict(outcome, name, outcome.copy or path if what == "database" else path)]


def _verdict(outcome: _Outcome, name: str, path: Path) -> list[str]:
    here = [f"Holdfast opens it, too: `holdfast sessions import {path}`"]
    if outcome.format == "opencode":
        here = [f"Holdfast opens its sessions, too: `holdfast sessions import {path}`"]
    if outcome.unchecked:
        return [f"Not checked with {name} itself: {outcome.unchecked}.", *here]
    if outcome.refused:
        return [f"{name} still refuses it: {one_line(outcome.refused)}", *here]
    return [f"Checked: {name} itself opens it, offline and in a scratch folder."]


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read. Raises SessionError if it exists already."""
    with os_error_as(SessionError, f"Can't write {path}"):
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(number)

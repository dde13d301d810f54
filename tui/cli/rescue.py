"""`holdfast rescue PATH`: mend another agent's session in its own format, as a copy.

The original is only read. The copy and what had to be set aside are new files of the person's.
"""

from __future__ import annotations

import os
from pathlib import Path

from tui.app.options.arguments import Options
from tui.cli.own_loader import NotCheckedError, refusal
from tui.cli.session_io import print_json, print_text
from tui.core.errors import SessionError, UsageError, os_error_as
from tui.core.text_cleaning import one_line
from tui.session.reader import open_session
from tui.session.rescue import Rescued, rescue

_NAMES = {"claude_code": "Claude Code", "codex": "Codex", "pi": "pi"}
_OPEN = {
    "claude_code": "put it in its old place below ~/.claude/projects, under its old name, then "
    "`claude --resume`.",
    "codex": "put it in its old place below ~/.codex/sessions, under its old name, then "
    "`codex resume`.",
    "pi": "`pi --session COPY`.",
}


def run(options: Options) -> int:
    """Write the mended copy and say what was done. Returns the exit code."""
    if not options.target:
        raise UsageError("Which file?", hint="holdfast rescue PATH")
    path = Path(options.target).expanduser()
    with open_session(path) as file, os_error_as(SessionError, f"Can't read {path}"):
        data = file.read()
    mended = rescue(data, path.name)
    if mended is None:
        raise SessionError(
            f"{path} isn't a session file of Claude Code, Codex or pi.",
            hint="`holdfast sessions check FILE` reads a session of Holdfast.",
        )
    copy: Path | None = None
    aside: Path | None = None
    if mended.repairs:
        copy = Path(options.out) if options.out else path.with_suffix(f".rescued{path.suffix}")
        aside = copy.with_name(f"{copy.name}.set-aside") if mended.set_aside else None
        if aside is not None:
            _write_new(aside, mended.set_aside)
        _write_new(copy, mended.data)
    refused, unchecked = "", ""
    try:
        refused = refusal(mended.format, mended.data)
    except NotCheckedError as reason:
        unchecked = str(reason)
    if options.json:
        return print_json(
            {
                "format": mended.format,
                "repairs": mended.repairs,
                "copy": copy and str(copy),
                "set_aside": aside and str(aside),
                "opens": None if unchecked else not refused,
                "refused": refused,
                "unchecked": unchecked,
            }
        )
    for line in [*_report(mended, copy, aside), *_verdict(mended, path, refused, unchecked)]:
        print_text(line)
    return 0


def _report(mended: Rescued, copy: Path | None, aside: Path | None) -> list[str]:
    name = _NAMES[mended.format]
    if copy is None:
        lines = [f"Nothing to mend in this session of {name}: no copy was made."]
    else:
        lines = [f"A session of {name}. Mended in a copy:"]
        lines += [f"  {one_line(what)}" for what in mended.repairs]
        lines.append(f"Copy: {copy}")
        if aside is not None:
            lines.append(f"What was changed or taken out, as it was: {aside}")
    if copy is not None:
        lines.append(f"To open it: {_OPEN[mended.format].replace('COPY', str(copy))}")
    return lines


def _verdict(mended: Rescued, path: Path, refused: str, unchecked: str) -> list[str]:
    name = _NAMES[mended.format]
    here = f"Holdfast opens it, too: `holdfast sessions import {path}`"
    if unchecked:
        return [f"Not checked with {name} itself: {unchecked}.", here]
    if refused:
        return [f"{name} still refuses it: {one_line(refused)}", here]
    return [f"Checked: {name} itself opens it, offline and in a scratch folder."]


def _write_new(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read. Raises SessionError if there is one already."""
    with os_error_as(SessionError, f"Can't write {path}"):
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(number)

"""What the actions share: the session that is meant, and what is printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tui.app.options.arguments import Options
from tui.core.errors import UsageError
from tui.core.paths import folders
from tui.session import catalog, importers
from tui.session.reader import LoadedSession, read
from tui.session.records import Finding

_EVERY = 500


def path_of(options: Options) -> Path:
    """The file that is meant. Raises SessionError or UsageError."""
    if not options.target:
        raise UsageError("Which session?", hint="`holdfast sessions list` shows their ids.")
    return catalog.resolve(options.target, folders())


def load(path: Path) -> LoadedSession:
    """A session of ours or of another agent, by its content. Raises SessionError.

    What lies in the folder of the sessions is ours, whatever is left of it.
    """
    home = folders().sessions.resolve()
    if home in path.resolve().parents or not path.stat().st_size:
        return read(path)
    return importers.load(path)


def model_of(loaded: LoadedSession) -> str:
    """The model that answered last, "" if none is known."""
    for record in reversed(loaded.branch):
        model = record.data.get("model")
        if record.type == "assistant" and isinstance(model, str):
            return model
    return ""


def progress(done: int, of: int) -> None:
    """Say on a terminal how far a long reading is."""
    if of >= _EVERY and sys.stderr.isatty():
        end = "\r" if done < of else "\n"
        sys.stderr.write(f"Reading sessions: {done:,} of {of:,}{end}")
        sys.stderr.flush()


def print_findings(findings: Sequence[Finding]) -> None:
    for finding in findings:
        print_(f"{finding.code}  {finding.where}: {finding.action}")
    if not findings:
        note("Nothing to repair.")


def print_json(value: object) -> int:
    print_(json.dumps(value, ensure_ascii=True, indent=2))
    return 0


def print_(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")


def note(text: str) -> None:
    sys.stderr.write(text + "\n")

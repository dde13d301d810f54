"""`holdfast sessions verify`: whether a session is what was written. Its lines by their links, its
requests by their hashes, its full outputs by theirs; and what commits of its folder note of it.

Nothing is written but the note that is asked for: a session that is open elsewhere, damaged or
copied from another installation is read as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from tui.app.options.arguments import Options
from tui.cli import request_commands
from tui.cli.session_io import load, path_of, print_json
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, StorageError
from tui.core.files import sha256_of
from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.notes import add_note, noted_lines
from tui.core.messages import object_of, string_of
from tui.core.output_store import OutsideError, open_full_copy
from tui.core.standard_output import note, print_text
from tui.core.workspace import Workspace
from tui.session import chain_check
from tui.session.chain_check import ChainReport, Change, ChangedLine
from tui.session.reader import LoadedSession

NOTES: Final = "holdfast"
"""The ref under `refs/notes/` that ties commits to sessions."""
_NOTES_READ: Final = 500
_SHOWN: Final = 20
_HOW: Final[Mapping[Change, str]] = {
    "changed": "isn't what was written",
    "added": "wasn't written by Holdfast, or by an older version",
    "missing": "isn't what was written, or a line before it is missing",
    "moved": "was written elsewhere: lines before it were added or removed, or two programs wrote",
    "before": "covers everything before it, and something there was changed since",
}


@dataclass(slots=True)
class _Outputs:
    """The state of the full outputs that a session refers to: how many are as they were saved,
    which are not there any more, and which are not what was saved, or lie where none are, each with
    the line."""

    good: int = 0
    gone: list[str] = field(default_factory=list[str])
    changed: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    outside: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])

    def to_json(self) -> dict[str, Any]:
        changed, outside = (
            [{"line": line, "path": path} for line, path in those]
            for those in (self.changed, self.outside)
        )
        return {"unchanged": self.good, "gone": self.gone, "changed": changed, "outside": outside}


def verify(options: Options) -> int:
    """Exit 1 where anything is not what was written or sent."""
    path = path_of(options)
    loaded = load(path)
    requests = request_commands.checked(loaded)
    lines = chain_check.verify(path)
    outputs = _outputs(loaded)
    lost = _lost(loaded, lines)
    failed = bool(requests.failed or lines.changed or outputs.changed or lost)
    noted = _note_it(loaded, lines) if options.sessions.git_note and not failed else ""
    if options.json:
        about = {"id": loaded.header.id, "path": str(path)} | requests.to_json()
        about |= {"chain": lines.to_json(), "outputs": outputs.to_json(), "lost": lost}
        print_json(about | {"git_note": noted or None})
        return int(failed)
    for text in _changed_lines(lines):
        print_text(text)
    requests.say()
    for number, name in outputs.changed:
        print_text(f"line {number}: its full output isn't what was saved: {name}")
    for number, name in outputs.outside:
        print_text(f"line {number}: its full output is outside the folder of results: {name}")
    for text in lost:
        print_text(text)
    for text in _summary(lines, outputs):
        note(text)
    if noted:
        note(f"Noted on commit {noted[:12]}: git notes --ref={NOTES} show")
    elif options.sessions.git_note:
        note("Not noted: the session isn't what was written.")
    return int(failed)


def _changed_lines(lines: ChainReport) -> Iterator[str]:
    for one in lines.changed[:_SHOWN]:
        yield f"{_place(one)} {_HOW[one.change]}"
    if (more := len(lines.changed) - _SHOWN) > 0:
        yield f"and {plural(more, 'more line')}"


def _place(one: ChangedLine) -> str:
    kind = f", {one.type}" if one.type else ""
    return f"line {one.number} (bytes {one.offset:,} to {one.offset + one.size:,}{kind})"


def _summary(lines: ChainReport, outputs: _Outputs) -> Iterator[str]:
    if not lines.linked:
        yield "Its lines aren't covered: an older version wrote them, or another program."
    elif not lines.changed:
        sure = lines.linked + lines.covered
        yield f"{plural(sure, 'line')}: as written."
    if lines.covered:
        yield f"{plural(lines.covered, 'line')} covered since a later start only."
    if lines.twice:
        yield f"{plural(len(lines.twice), 'line')} written twice (first: {lines.twice[0]})."
    if lines.torn:
        yield f"{plural(len(lines.torn), 'line')} cut short while written (first: {lines.torn[0]})."
    if outputs.good:
        yield f"{plural(outputs.good, 'full output')}: as saved."
    if outputs.gone:
        yield f"{plural(len(outputs.gone), 'full output')} deleted since."


def _outputs(loaded: LoadedSession) -> _Outputs:
    """Check the full copies that receipts name."""
    outputs, results = _Outputs(), Workspace(Path(loaded.header.cwd)).tool_results
    for record, number in zip(loaded.records, loaded.lines, strict=False):
        receipt = object_of(record.data.get("receipt"))
        path, wanted = string_of(receipt.get("path")), string_of(receipt.get("sha256"))
        if record.type != "tool_result" or not path or not wanted:
            continue
        try:
            good = sha256_of(open_full_copy(Path(path), results)) == wanted
        except FileNotFoundError:
            outputs.gone.append(path)
            continue
        except OutsideError:
            outputs.outside.append((number, path))
            continue
        except (OSError, ValueError):
            good = False
        if good:
            outputs.good += 1
        else:
            outputs.changed.append((number, path))
    return outputs


def _note_it(loaded: LoadedSession, lines: ChainReport) -> str:
    """Tie the commit that is checked out in the session's folder to the session as it is. Returns
    the commit. Raises StorageError where there is none."""
    folder = Path(loaded.header.cwd)
    note = f"holdfast session {loaded.header.id} line {lines.lines} chain {lines.head}"
    try:
        return add_note(Checkout.of(folder), NOTES, note)
    except (GitError, OSError) as error:
        hint = "The session's folder has to be in a git repository with a commit."
        raise StorageError(f"Can't note it: {error}", hint=hint) from error


def _lost(loaded: LoadedSession, lines: ChainReport) -> list[str]:
    """List what commits note of the session and its file does not have: its end was cut off."""
    folder = Path(loaded.header.cwd)
    lost: list[str] = []
    with suppress(GitError, OSError, HoldfastError):
        for commit, text in noted_lines(Checkout.of(folder), NOTES, _NOTES_READ):
            words = text.split()
            if words[:3] != ["holdfast", "session", loaded.header.id] or len(words) != 7:
                continue
            if words[6] not in lines.links:
                lost.append(f"commit {commit[:12]} notes line {words[4]}, which isn't there")
    return lost

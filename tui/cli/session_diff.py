"""`holdfast sessions diff`: the changes of a session to files, from its checkpoints.

Nothing is written, and the workspace isn't looked at: it may be different by now.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui.app.options.arguments import Options
from tui.app.workspace_diff import diff_text
from tui.cli.session_io import load, path_of, print_json
from tui.context.workspace_changes import changed_since, files_of
from tui.core.errors import HoldfastError, UsageError
from tui.core.formatting import plural
from tui.core.paths import folders
from tui.core.standard_output import note, print_data
from tui.session.checkpoints.entries import Change
from tui.session.checkpoints.store import store_of
from tui.session.records import CHECKPOINT, Record


def diff(options: Options) -> int:
    """Print a unified diff of what the session and its commands changed."""
    loaded = load(path_of(options))
    records, root = list(loaded.branch), Path(loaded.header.cwd)
    place = _place(records, options.sessions.request)
    last = next((one for one in reversed(records) if one.type == CHECKPOINT), None)
    if last is None:
        raise HoldfastError(
            "This session has no checkpoints: it changed no file, comes from an older version, or "
            "they were off."
        )
    store = store_of(folders(), root)
    try:
        changes = changed_since(records, place, str(last.data.get("checkpoint")), store.difference)
        text = diff_text(changes, root, store.content)
    finally:
        store.close()
    if options.json:
        return print_json(
            {
                "id": loaded.header.id,
                "files": _described(changes.own, root),
                "others": _described(changes.others, root),
                "diff": text,
            }
        )
    if text:
        print_data(text)
    note(f"{plural(len(changes.own_files), 'file')} changed by the session.")
    if others := files_of(changes.others):
        note(f"{plural(len(others), 'file')} edited outside Holdfast meanwhile.")
    return 0


def _place(records: Sequence[Record], wanted: int | None) -> int:
    """Return the index of the record to begin at: a request's, otherwise the first prompt's."""
    if wanted is None:
        return next((n for n, record in enumerate(records) if record.type == "user"), 0)
    numbers = {
        record.data.get("n"): place
        for place, record in enumerate(records)
        if record.type == "request"
    }
    if wanted not in numbers:
        raise UsageError(
            f"There is no request {wanted} in this session.",
            hint="holdfast sessions view ID --at N shows them.",
        )
    return numbers[wanted]


def _described(changes: Sequence[Change], root: Path) -> list[dict[str, Any]]:
    return [
        {
            "path": str(change.path.relative_to(root)),
            "change": "added"
            if change.old is None
            else "deleted"
            if change.new is None
            else "changed",
            "ignored": change.ignored,
        }
        for change in changes
        if not change.is_folder
    ]

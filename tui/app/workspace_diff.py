"""The changes in the workspace, as one unified diff. Blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tui.context.file_changes import FileChange, objection, texts
from tui.context.workspace_changes import WorkspaceChanges, files_of
from tui.core.formatting import plural
from tui.core.text_cleaning import one_line
from tui.session.checkpoints.entries import Change, CheckpointError, Kind, PathEntry
from tui.tools.diff import unified

CHARS_MAX = 2_000_000
"""Above this a file's diff takes too long to make: only its name is shown."""
_NAMED = 20
"""Files that are only named."""


def diff_text(found: WorkspaceChanges, root: Path, content: Callable[[bytes], bytes]) -> str:
    """Show what the session itself changed; below it are the names of everything else that is
    different. `content` returns the content with a SHA-256."""
    wanted = set(files_of(found.own))
    own = [_of_change(change, root, content) for change in found.own if change.path in wanted]
    beside = [_of_file(change, root) for change in found.beside]
    ignored = [change.path for change in found.own if change.ignored and not change.is_folder]
    named = [
        *_listed("that git ignores changed, too", ignored, root),
        *_listed("edited outside Holdfast", files_of(found.others), root),
    ]
    return "\n".join([*own, *beside, *named])


def _listed(what: str, paths: Sequence[Path], root: Path) -> Iterator[str]:
    if paths:
        yield ""
        yield f"{plural(len(paths), 'file')} {what}:"
        yield from (f"  {_name(path, root)}" for path in paths[:_NAMED])
        if len(paths) > _NAMED:
            yield f"  and {len(paths) - _NAMED} more"


def _of_change(change: Change, root: Path, content: Callable[[bytes], bytes]) -> str:
    name = _name(change.path, root)
    head = f"--- {name}\n+++ {name}"
    try:
        old, new = (_text(entry, content) for entry in (change.old, change.new))
    except CheckpointError as error:
        return f"{head}\n can't be compared: {error.message}\n"
    mode = _mode_line(change.old, change.new)
    lines = [f"{name}: {mode}" if mode else ""]
    if len(old or "") + len(new or "") > CHARS_MAX or "\0" in f"{old}{new}":
        lines.append(f"{head}\n {_sizes(change)}")
    elif old != new:
        lines.append(unified(old, new, name, whole=True).text)
    return "\n".join(filter(None, [*lines, ""])) + "\n"


def _text(entry: PathEntry | None, content: Callable[[bytes], bytes]) -> str | None:
    """A state of a path as a text; None where there is nothing."""
    if entry is None or entry.kind in {Kind.FOLDER, Kind.OMITTED}:
        return None
    if entry.digest is None:
        raise CheckpointError(f"{entry.size:,} bytes were too large to store.")
    text = content(entry.digest).decode("utf-8", "replace")
    return f"symbolic link to {text}\n" if entry.kind is Kind.LINK else text


def _mode_line(old: PathEntry | None, new: PathEntry | None) -> str:
    if old is None or new is None or old.kind is not new.kind or old.mode == new.mode:
        return ""
    return f"mode {old.mode:04o} → {new.mode:04o}"


def _sizes(change: Change) -> str:
    old, new = (
        "nothing" if entry is None else f"{entry.size:,} bytes"
        for entry in (change.old, change.new)
    )
    return f"not shown as text: {old} → {new}"


def _of_file(change: FileChange, root: Path) -> str:
    name = _name(change.path, root)
    if why := objection(change, Path(os.path.realpath(root))):
        return f"--- {name}\n+++ {name}\n not compared: {why}\n"
    try:
        old, new = texts(change)
    except OSError as error:
        return f"--- {name}\n+++ {name}\n can't be compared: {error.strerror or error}\n"
    if old == new:
        return f"--- {name}\n+++ {name}\n unchanged since the session started\n"
    if len(old or "") + len(new or "") > CHARS_MAX:
        return f"--- {name}\n+++ {name}\n too large to compare\n"
    return unified(old, new, name, whole=True).text + "\n"


def _name(path: Path, root: Path) -> str:
    return one_line(str(path.relative_to(root)) if root in path.parents else str(path))

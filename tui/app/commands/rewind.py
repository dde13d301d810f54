"""Earlier prompts of a session, and bringing files back to how they were then."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.context.file_changes import FileChange, RestoredFile, changes, restore
from tui.core.formatting import plural
from tui.core.images import prompt_of
from tui.core.text_cleaning import one_line
from tui.core.workspace import PRIVATE_DIR
from tui.session.records import Record

RESTORED = frozenset({"restored", "deleted", "unchanged"})


@dataclass(frozen=True, slots=True)
class Point:
    """A prompt that can be returned to, and what was changed in files since."""

    record: Record
    text: str
    changed: tuple[FileChange, ...]


def points(records: Sequence[Record]) -> list[Point]:
    """The typed prompts of a branch, oldest first."""
    found: list[Point] = []
    for place, record in enumerate(records):
        typed = record.type == "user" and isinstance(record.data.get("text"), str)
        if typed and (text := prompt_of(record.data)).strip():
            found.append(Point(record, text, tuple(changes(records[place:]))))
    return found


def restored(found: Sequence[FileChange], root: Path) -> list[RestoredFile]:
    """Bring the files of the workspace back. Others are left alone."""
    real, keep = Path(os.path.realpath(root)), root / PRIVATE_DIR / "tool-results"
    done: list[RestoredFile] = []
    for change in found:
        inside = real in Path(os.path.realpath(change.path)).parents
        if inside:
            done.append(restore(change, keep))
        else:
            done.append(RestoredFile(change.path, "failed", detail="outside the workspace"))
    return done


def outcome_lines(done: Sequence[RestoredFile], root: Path) -> tuple[str, list[str]]:
    """How many files are as they were, and a line for each."""
    good = sum(each.outcome in RESTORED for each in done)
    lines = [
        f"{each.outcome:<14} {shown_path(each.path, root)}"
        + (f" · {each.detail}" if each.detail else "")
        + (f" · its last content is kept as {each.kept.name}" if each.kept else "")
        for each in done
    ]
    title = f"{good} of {plural(len(done), 'file')} are as they were before that prompt."
    return title, lines


def shown_path(path: Path, root: Path) -> str:
    return one_line(str(path.relative_to(root)) if root in path.parents else str(path))

"""The folder of a case: the workspace as a checkpoint has it, away from the original. Blocks.

It is a git repository of its own with one commit, the files as they were, so that git's commands
work there and never find the original's.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.batch.replay.recorded import NotReplayableError, state_of
from tui.context.project_files import INSTRUCTIONS
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError, StorageError, os_error_as
from tui.core.git.door import GitError, git
from tui.core.late_pattern import late_pattern
from tui.permissions.rules import GUARDED
from tui.session.checkpoints.entries import NEVER, CheckpointError, Kind, PathEntry
from tui.session.checkpoints.scratch import ScratchTree, folders_above, remove_tree
from tui.session.checkpoints.store import CheckpointStore

_FOLDER: Final = PathEntry(Kind.FOLDER, 0o755, 0, NEVER, None, ignored=False)
_LINKED: Final = PathEntry(Kind.OMITTED, 0o755, 0, NEVER, None, ignored=True)
_DRAFT: Final = late_pattern(r"check-\d+|\.(?:check-)?\d+\.[0-9a-f]{8}")
_ALONE: Final = {
    **dict.fromkeys(("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"), os.devnull),
    **dict.fromkeys(("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"), "Holdfast"),
    **dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "replay@localhost"),
}


def put_files(
    store: CheckpointStore, checkpoint: str, folder: Path, linked: Sequence[str] = ()
) -> None:
    """Make `folder` what the workspace was at a checkpoint; it appears whole. `linked` are paths
    that lead to the workspace as it is today.

    Raises NotReplayableError where the checkpoint or a copy in it is gone, StorageError.
    """
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}")
    with os_error_as(StorageError, f"Can't write {folder}"):
        draft.mkdir(mode=0o700, parents=True)
        try:
            _fill(store, checkpoint, draft, linked)
            _begin_repository(draft, linked)
            remove_tree(folder)
            draft.rename(folder)
        except BaseException:
            remove_tree(draft)
            raise


def remove_drafts(folder: Path) -> None:
    """Remove what a killed replay left half made in its folder, and where it tried checks."""
    for path in folder.iterdir():
        if _DRAFT.fullmatch(path.name):
            with suppress(OSError):
                remove_tree(path)


def _fill(store: CheckpointStore, checkpoint: str, folder: Path, linked: Sequence[str]) -> None:
    try:
        stored = state_of(store, checkpoint)
        kept = stored.without(stored.refused(GUARDED)).entries
        state = {path: entry for path, entry in kept.items() if entry is not None}
        for name in linked:
            if lent(store.root, name) is None:
                continue
            path = os.fsencode(Path(name))
            if all(
                state.setdefault(one, _FOLDER).kind is Kind.FOLDER for one in folders_above(path)
            ):
                state.setdefault(path, _LINKED)
        ScratchTree(folder, _Files(store, linked)).become(state)
    except CheckpointError as error:
        raise NotReplayableError(f"Its files can't be put back: {error.message}") from error


@dataclass(frozen=True, slots=True)
class _Files:
    """The source of the files of a checkpoint; the workspace of today lends what is `linked`."""

    store: CheckpointStore
    linked: Sequence[str]

    def content(self, digest: bytes) -> bytes:
        return self.store.content(digest)

    def lent(self, path: bytes) -> Path | None:
        name = os.fsdecode(path)
        return lent(self.store.root, name) if name in map(str, map(Path, self.linked)) else None


def lent(root: Path, name: str) -> Path | None:
    """The place in a workspace that a suite may link to; None for what isn't there, or elsewhere:
    the suite may be anybody's, and a command may have put a link into the workspace."""
    parts = Path(name).parts
    inside = parts and ".." not in parts and not Path(name).is_absolute() and "\0" not in name
    place = Path(os.path.realpath(root)) / name
    return place if inside and place.exists() and os.path.realpath(place) == str(place) else None


def _begin_repository(folder: Path, linked: Sequence[str]) -> None:
    try:
        git(folder, "init", "-q", "--template=", "--initial-branch=replay", env=_ALONE)
        (folder / ".git" / "info").mkdir(exist_ok=True)
        passed_over = "".join(f"/{name}\n" for name in (".holdfast/", *linked))
        (folder / ".git" / "info" / "exclude").write_text(passed_over)
        git(folder, "add", "-A", env=_ALONE)
        git(folder, "commit", "-q", "--allow-empty", "-m", "The files as they were", env=_ALONE)
    except GitError as error:
        raise HoldfastError(
            f"The folder of a replay needs git: {error.message}", hint=error.hint
        ) from error


def put_instructions(folder: Path, text: str) -> None:
    """Give a folder another AGENTS.md, as a commit of its own. Raises StorageError."""
    path = folder / INSTRUCTIONS[0]
    with os_error_as(StorageError, f"Can't write {path}"):
        path.unlink(missing_ok=True)  # never through a link
        path.write_text(text, encoding="utf-8")
    with suppress(GitError):  # where git ignores it
        git(folder, "add", "--", path.name, env=_ALONE)
        git(folder, "commit", "-q", "-m", "The instructions under trial", env=_ALONE)

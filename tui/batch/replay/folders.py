"""The folder of a case: the workspace as a checkpoint has it, away from the original. Blocks.

It is a git repository of its own with one commit, the files as they were, so that git's commands
work there and never find the original's.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.batch.replay.recorded import NotReplayableError, state_of
from tui.context.project_files import INSTRUCTIONS
from tui.core.errors import HoldfastError, StorageError, os_error_as
from tui.core.formatting import plural
from tui.core.git.door import GitError, git
from tui.permissions.rules import GUARDED
from tui.session.checkpoints.entries import Change, CheckpointError
from tui.session.checkpoints.restore import restore
from tui.session.checkpoints.store import CheckpointStore

_NAMED: Final = 3
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
            _fill(store, checkpoint, draft)
            _link(store.root, draft, linked)
            _begin_repository(draft, linked)
            remove(folder)
            draft.rename(folder)
        except BaseException:
            remove(draft)
            raise


def _fill(store: CheckpointStore, checkpoint: str, folder: Path) -> None:
    try:
        state = state_of(store, checkpoint)
    except CheckpointError as error:
        raise NotReplayableError(error.message) from error
    state = state.without(state.refused(GUARDED))
    changes = [
        Change(folder / os.fsdecode(path), entry, None)
        for path, entry in state.entries.items()
        if entry is not None and entry.stored
    ]
    lost = [one for one in restore(changes, store) if one.outcome != "restored"]
    if lost:
        some = ", ".join(str(one.path.relative_to(folder)) for one in lost[:_NAMED])
        why = lost[0].detail or lost[0].outcome
        raise NotReplayableError(f"{plural(len(lost), 'file')} can't be put back ({some}): {why}.")


def _link(root: Path, folder: Path, linked: Sequence[str]) -> None:
    """Let paths lead to the workspace of today, as far as they are there and nothing else is."""
    for name in linked:
        here, there = folder / name, lent(root, name)
        if there is not None and not os.path.lexists(here):
            with suppress(OSError):  # a file in the place of its folder
                here.parent.mkdir(parents=True, exist_ok=True)
                here.symlink_to(there)


def lent(root: Path, name: str) -> Path | None:
    """The place in a workspace that a suite may link to; None for what isn't there, or elsewhere:
    the suite may be anybody's, and a command may have put a link into the workspace."""
    inside = ".." not in Path(name).parts and not Path(name).is_absolute() and "\0" not in name
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


def remove(folder: Path) -> None:
    """Remove a folder of ours with all that is in it, also what cannot be written. Of a link in its
    place, only the link is removed."""
    if folder.is_symlink():
        folder.unlink()
        return
    for here, _, _ in os.walk(folder):  # follows no link below it
        with suppress(OSError):
            os.chmod(here, 0o700)  # noqa: PTH101 - as `os.walk` names it
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)

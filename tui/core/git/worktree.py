"""A worktree of ours: where it is, what it came from, and who works in it.

It lies in `.holdfast/worktrees/NAME` of the main checkout, on a branch `worktree-NAME`. Where it
came from is noted in its own git folder, and ends with it.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from tui.core.dataclass import dataclass, field
from tui.core.errors import os_error_as
from tui.core.files import atomic_write, read_small
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.messages import object_of, string_of

_PREFIX: Final = "worktree-"
_NOTE: Final = "holdfast.json"
_LOCK: Final = "holdfast.lock"
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?")
_NAMED: Final = 5
"""Files that a sentence names."""
_LIMIT: Final = 10_000_000


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree of ours. `origin` is the checkout that it was made from, `base` the branch there,
    "" for none, and `start` the commit. `copies` are the ignored files that it got, with the hash
    of each; `agreed` is the state in which the person let it go."""

    name: str
    checkout: Checkout
    origin: Path
    base: str = ""
    start: str = ""
    copies: Mapping[str, str] = field(default_factory=dict[str, str])
    agreed: str = ""

    @property
    def path(self) -> Path:
        """Its folder."""
        return self.checkout.top

    @property
    def git_dir(self) -> Path:
        """The folder that git keeps for it alone."""
        return self.checkout.git_dir

    @property
    def own_branch(self) -> str:
        """The branch that was made with it."""
        return branch_for(self.name)

    @property
    def target(self) -> str:
        """The point from which its commits are counted, in words."""
        return self.base or self.start[:8]

    def base_commit(self) -> str:
        """The commit of the branch that it came from; of where it began, without one."""
        now = self.base and self.checkout.commit(f"refs/heads/{self.base}")
        return now or self.start or "HEAD"


def branch_for(name: str) -> str:
    """The branch that a worktree of a name is made with."""
    return _PREFIX + name


@dataclass(frozen=True, slots=True)
class EnteredWorktree:
    """A worktree to work in: `folder` is the one in it that matches the workspace, `notes` what
    the person should know, a sentence each."""

    tree: Worktree
    folder: Path
    new: bool
    notes: tuple[str, ...]


class UseLock:
    """Says to other processes that a worktree is worked in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def share(self) -> None:
        """Hold it, as others may. Raises GitError where the worktree is being removed, or is gone.
        A folder that allows no locks is worked in without one."""
        with suppress(OSError):
            if not self._lock(fcntl.LOCK_SH):
                message = "The worktree is being removed by another session."
                raise GitError(message, hint="Try again.")

    def acquire(self) -> bool:
        """Hold it alone. False where others hold it."""
        with suppress(OSError):
            return self._lock(fcntl.LOCK_EX)
        return False

    def release(self) -> None:
        """Let go of it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lock(self, kind: int) -> bool:
        """False where others hold it, or the worktree is gone. Raises OSError."""
        self.release()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
            there = os.fstat(self._file).st_nlink > 0
        except (BlockingIOError, FileNotFoundError):
            there = False
        except OSError:
            self.release()
            raise
        if not there:
            self.release()
        return there


def in_use(tree: Worktree) -> UseLock:
    """The lock that each session in a worktree holds."""
    return UseLock(tree.git_dir / _LOCK)


def check_name(name: str) -> None:
    """Raises GitError for a name that no worktree can have, with one that it could."""
    if _NAME.fullmatch(name) and ".." not in name and not name.endswith(".lock"):
        return
    near = re.sub(r"\.lock$|\.{2,}", "", re.sub(r"[^A-Za-z0-9._-]+", "-", name)).strip("._-")
    words = "A prompt goes behind the name, or in front of --worktree." if " " in name else ""
    near = f"Try --worktree {near[:64].lower()}. " if near else ""
    raise GitError(
        f"{name!r} can't name a worktree: use up to 64 letters, digits, dots, _ and -.",
        hint=f"{near}{words}".strip(),
    )


def some(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(name.encode("utf-8", "replace").decode() for name in names[:_NAMED]) + more


def write_note(tree: Worktree) -> None:
    """Note what a worktree came from. Raises GitError."""
    note = {
        "origin": str(tree.origin),
        "base": tree.base,
        "start": tree.start,
        "copies": dict(tree.copies),
        "agreed": tree.agreed,
    }
    with os_error_as(GitError, f"Can't note where the worktree {tree.name} came from"):
        data = json.dumps(note).encode()  # a link of that name is replaced, not followed
        atomic_write(tree.git_dir / _NOTE, data, like=None, mode=0o600, check=lambda: None)


def noted(checkout: Checkout) -> Worktree | None:
    """The worktree in a checkout as its own note says; None where there is none."""
    note = _read_note(checkout.git_dir)
    if not note:
        return None
    copies = {name: string_of(one) for name, one in object_of(note.get("copies")).items()}
    base, start, agreed = (string_of(note.get(one)) for one in ("base", "start", "agreed"))
    base = "" if base.startswith("-") else base
    start = start if re.fullmatch(r"[0-9a-f]{40,64}", start) else ""
    origin = Path(string_of(note.get("origin")) or checkout.top)
    return Worktree(checkout.top.name, checkout, origin, base, start, copies, agreed)


def _read_note(git_dir: Path) -> dict[str, Any]:
    try:
        data, _ = read_small(git_dir / _NOTE, limit=_LIMIT, follow=False)
        note: object = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", note) if isinstance(note, dict) else {}

"""Copies of git's settings, which a command writes in the place of the real ones.

The real files stay read-only, also for the person's git, which may run meanwhile. What a command
has set in its copy is put into the real file afterwards, key by key, so that nothing but what git
read in it gets there: at once if git runs nothing because of it, else if the person says yes.

A file is replaced by a link to its copy, since git renames a new file over the old one, which is
impossible where something is mounted; the folder `info` is replaced by a copy of it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tui.core.apart import folder_apart
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.files import atomic_write, read_small, remove_real
from tui.core.git.branch import folder_named
from tui.core.in_place import write_over
from tui.permissions.sandbox.git_settings import (
    Setting,
    are_free,
    are_shown,
    in_words,
    is_address,
    needing_consent,
    run_config,
    settings_in,
)
from tui.permissions.sandbox.git_walls import GitPlaces
from tui.permissions.sandbox.walls import COPIES, COPIES_INSIDE

_FILES = frozenset({"config", "config.worktree"})
_INFO = "info"
_DATA = frozenset({"attributes", "exclude", "refs", "sparse-checkout"})
"""Files in `info` that a file of the workspace could replace, or that nothing follows."""
_OF_WORKTREE = ("extensions.worktreeconfig", "true")
_MOST = 40
"""Maximum number of places with a copy; the others stay read-only."""
_MOST_FILES = 100
_LOCK_TRIES, _LOCK_WAIT_S = 20, 0.05


class CopyError(HoldfastError):
    """A change of git's settings could not be put in its place."""


@dataclass(frozen=True, slots=True)
class PendingSettings:
    """Settings in a copy that need a yes: they may make git run something, or reach somebody."""

    path: Path
    asked: tuple[Setting, ...]
    changes: tuple[tuple[str, tuple[str, ...]], ...]
    """Every key that was changed, with its values from now on."""
    root: Path

    @property
    def only_addresses(self) -> bool:
        """True if nothing but addresses on other machines needs the yes."""
        return all(is_address(*one) for one in self.asked)

    def __str__(self) -> str:
        return f"{in_words(self.asked)} in {self.path}"

    def put(self) -> str:
        """Put them in their place; return what was done. Blocks."""
        return _put(self.path, self.changes, self.root)


@dataclass(slots=True)
class _Copy:
    """A file or a folder, its copy, and what the copy had in the beginning."""

    path: Path
    place: Path
    stand_in: Path
    """The file or folder mounted at the path: a link to the copy, or the copy itself."""
    before: dict[str, bytes]


@dataclass(slots=True)
class GitCopies:
    """The copies of one command, in a folder that no other command reaches."""

    folder: Path
    root: Path
    alone: bool
    """True if no other command that may write was running."""
    ignored: frozenset[str]
    """Keys that git sets because of the link in the place of the file."""
    copies: list[_Copy] = field(default_factory=list[_Copy])

    @classmethod
    def of(
        cls, places: GitPlaces, session: Path, root: Path, line: str, *, alone: bool
    ) -> GitCopies:
        """Make the copies of what a repository protects, for a line of the shell, in the private
        folder of a session. Blocks."""
        # It finds out whether modes count by changing that of the file.
        probes = "init" in line and "filemode" not in line.lower()
        ignored = frozenset({"core.filemode"} if probes else ())
        made = cls(session.resolve() / COPIES / secrets.token_hex(8), root, alone, ignored)
        paths = [one for one in places.protected if one.name in {*_FILES, _INFO}]
        for number, path in enumerate(paths[:_MOST]):
            before = _content(path.parent.resolve() / path.name)
            if before is None:
                continue
            place = made.folder / str(number) / path.name
            target = place if path.is_dir() else place.parent
            own = made.folder
            for one in (session, own.parent, own, own / str(number), target):
                one.mkdir(mode=0o700, parents=True, exist_ok=True)
            for name, data in before.items():
                (target / name).write_bytes(data)
            stand_in = place
            if target != place:
                stand_in = target / "link"
                # As the command calls it.
                stand_in.symlink_to(f"{COPIES_INSIDE}/{made.folder.name}/{number}/{path.name}")
            made.copies.append(_Copy(path, place, stand_in, before))
        return made

    @property
    def mounts(self) -> tuple[tuple[Path, Path], ...]:
        """Each protected path with what is mounted there."""
        return tuple((one.path, one.stand_in) for one in self.copies)

    def settle(self) -> tuple[list[str], list[PendingSettings]]:
        """Put in place what may be. Return what was done, in lines, and what needs a yes.
        Blocks."""
        lines: list[str] = []
        pending: list[PendingSettings] = []
        for copy in self.copies:
            now = _content(copy.place, like=copy.path)
            if now is None:
                lines.append(f"{copy.path} was left as it was: its copy is no longer a plain file")
            elif now != copy.before and copy.path.name in _FILES:
                one = self._changed(copy, now)
                if isinstance(one, PendingSettings) and one.asked:
                    pending.append(one)
                else:
                    lines.append(one if isinstance(one, str) else one.put())
            elif now != copy.before:
                lines += _put_data(copy, now)
            copy.before = now if now is not None else copy.before
        return [line for line in lines if line], pending

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _changed(self, copy: _Copy, now: dict[str, bytes]) -> PendingSettings | str:
        name = copy.path.name
        then = settings_in(copy.before[name], self.root)
        after = settings_in(now[name], self.root)
        if then is None or after is None:
            return f"{copy.path} was left as it was: git can't read what was written"
        changed = Counter(after) - Counter(then) | (Counter(then) - Counter(after))
        of_changed = {key for key, _ in changed} - self.ignored
        keys = dict.fromkeys(key for key, _ in (*then, *after) if key in of_changed)
        changes = tuple((key, tuple(v for k, v in after if k == key)) for key in keys)
        asked = [one for one in needing_consent(after, then) if not self._is_own(copy.path, *one)]
        if not are_shown(asked):
            shown = f"{in_words(asked)} are more than a question can show; set them one by one"
            return f"{copy.path} was left as it was: {shown}"
        return PendingSettings(copy.path, tuple(asked), changes, self.root)

    def _is_own(self, path: Path, key: str, value: str) -> bool:
        """True if a setting is one that git makes for the folder's own worktrees or submodules."""
        if (key, value) == _OF_WORKTREE:
            # From then on a file counts that has walls only once it is there.
            return self.alone and are_free(path.with_name("config.worktree"), self.root)
        return key in self.ignored or _is_own_tree(path, key, value)


def _is_own_tree(path: Path, key: str, value: str) -> bool:
    """True if a setting names to a submodule the folder that names it in turn, or none any more. A
    link on the way there could lead elsewhere later, and git would write there."""
    if key != "core.worktree" or not value:
        return key == "core.worktree"
    place = os.path.normpath(os.path.join(os.path.realpath(path.parent), value))  # noqa: PTH118
    link = Path(place, ".git")
    with suppress(OSError):
        named = os.path.realpath(link.parent / folder_named(link, link=True))
        return os.path.realpath(place) == place and named == str(path.parent)
    return False


def put_all(pending: Iterable[PendingSettings]) -> list[str]:
    """Put settings in their place; return what was done, in lines. Blocks."""
    return [line for one in pending if (line := one.put())]


def _content(path: Path, like: Path | None = None) -> dict[str, bytes] | None:
    """The content of a file by its name, or of the files of a folder; None for anything else, since
    a link could lead anywhere."""
    try:
        if not (like or path).is_dir():
            return {path.name: read_small(path, real=True)[0]}
        if path.is_symlink():
            return None
        names = sorted(os.listdir(path))  # noqa: PTH208 - names alone
        found: dict[str, bytes] = {}
        for name in names[:_MOST_FILES]:
            if stat.S_ISREG((path / name).lstat().st_mode):
                found[name] = read_small(path / name, real=True)[0]
    except OSError:
        return None
    return found


def _put(path: Path, changes: Sequence[tuple[str, tuple[str, ...]]], root: Path) -> str:
    """Set keys in a real file; return what was done."""
    if not changes:
        return ""
    try:
        with _git_lock(path):
            old, state = read_small(path, real=True)
            with folder_apart(CopyError) as apart:
                new = _with_changes(old, changes, apart / "config", root)
            write_over(path, old, new, state, lambda: None)
    except (OSError, HoldfastError) as error:
        return f"{path} was left as it was: {error}"
    made = [(key, value) for key, values in changes for value in values]
    gone = [(key, "") for key, values in changes if not values]
    told = [f"set {in_words(made)}"] if made else []
    told += [f"removed {in_words(gone)}"] if gone else []
    return f"{path}: {'; '.join(told)}"


def _with_changes(
    old: bytes, changes: Sequence[tuple[str, tuple[str, ...]]], file: Path, root: Path
) -> bytes:
    """The content of a file with keys set by git itself. Raises CopyError."""
    file.write_bytes(old)

    def run(*words: str) -> None:
        if run_config(root, "--file", str(file), *words) is None:
            raise CopyError(f"git refused to set {words[1]}")

    known = {key for key, _ in settings_in(old, root) or ()}
    for key, values in changes:
        if key in known:
            run("--unset-all", key)
        for value in values:
            run("--add", key, value)
    return read_small(file)[0]


@contextmanager
def _git_lock(path: Path) -> Generator[None]:
    """Hold git's own lock of a file, so that no other git writes it. Raises OSError."""
    lock = path.with_name(f"{path.name}.lock")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    for attempt in range(_LOCK_TRIES):
        try:
            os.close(os.open(lock, flags, 0o644))
            break
        except FileExistsError:
            if attempt == _LOCK_TRIES - 1:
                raise
            time.sleep(_LOCK_WAIT_S)
    try:
        yield
    finally:
        with suppress(OSError):
            remove_real(lock)


def _put_data(copy: _Copy, now: dict[str, bytes]) -> list[str]:
    """Put the changed files of a folder `info` in their place."""
    lines: list[str] = []
    for name in sorted({*now, *copy.before}):
        data = now.get(name)
        if data == copy.before.get(name):
            continue
        path = copy.path / name
        if name not in _DATA:
            lines.append(f"{path} was left as it was: git acts on this file")
            continue
        try:
            if data is None:
                remove_real(path)
            else:
                like = path.lstat() if path.is_file() else None
                atomic_write(path, data, like=like, mode=0o644, check=lambda: None)
        except OSError as error:
            lines.append(f"{path} was left as it was: {error.strerror}")
        else:
            lines.append(f"{'removed' if data is None else 'wrote'} {path}")
    return lines

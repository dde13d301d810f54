"""What commands left in git's folders, looked at afterwards: moved away where git would run it,
follow it out, or act on another repository.

Nothing is deleted: what is moved lies in a folder of the program's, and is named with what brings
it back, since the person may have made it while the command ran.
"""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import stat
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tui.core.git.branch import folder_named
from tui.permissions.sandbox.folder_lists import FolderLists
from tui.permissions.sandbox.git_walls import GitPlaces, folders_in
from tui.permissions.sandbox.inner_clones import is_repository

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_FOLDERS = 2_000
"""Of a folder of git that are searched for links."""
_SETTLED_NS = 2_000_000_000
"""A repository that is being made has a HEAD before its settings are this old."""
_RUNS = "git would go by it"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something that was moved away: why, and what was put in its place."""

    path: Path
    to: Path
    why: str = _RUNS
    barrier: bool = False

    def __str__(self) -> str:
        old, new = shlex.quote(str(self.path)), shlex.quote(str(self.to))
        undo = f"rm {old}; mv {new} {old}" if self.barrier else f"mv {new} {old}"
        return f"moved {self.path} to {self.to}: {self.why}. If you made it: {undo}"


@dataclass(frozen=True, slots=True)
class Watched:
    """A name that no mount protects: `folder` is where it really lies, below `root`, and `state`
    what is there."""

    root: Path
    folder: Path
    state: str | None
    """None for nothing."""
    freed: bool = False
    """Whether the folders above may go, or become something else."""
    index: str | None = None
    """Of a folder of git, what its list of files is."""

    def to_json(self) -> list[str | bool | None]:
        return [str(self.root), str(self.folder), self.state, self.freed, self.index]


def snapshot(places: GitPlaces) -> dict[Path, Watched]:
    """What stands at the names that no mount protects."""
    found: dict[Path, Watched] = {}
    for path in (*places.watched, *places.freed):
        folder = path.parent.resolve()
        if root := _root_of(folder, places.roots):
            freed = path in places.freed
            found[path] = Watched(root, folder, _state(folder / path.name), freed)
    return found


def watched_from(said: Mapping[str, Sequence[Any]]) -> dict[Path, Watched]:
    """What `Watched.to_json` made of places."""
    return {
        Path(path): Watched(Path(one[0]), Path(one[1]), one[2], *one[3:])
        for path, one in said.items()
    }


@dataclass(frozen=True, slots=True)
class GitBefore:
    """What stood in git's folders before commands that may write, by its path."""

    names: Mapping[Path, Watched] = field(default_factory=dict[Path, Watched])
    """At the names that no mount protects, and the links that lead out of these folders."""
    written: Mapping[Path, Watched] = field(default_factory=dict[Path, Watched])
    """The folders of git that commands may write into; those that are a repository have a state."""

    @classmethod
    def of(cls, places: GitPlaces, lists: FolderLists) -> GitBefore:
        """As it stands now. Blocks."""
        written: dict[Path, Watched] = {}
        links: dict[Path, Watched] = {}
        for path in places.written:
            real = path.resolve()
            root = _root_of(real, places.roots)
            if root is None:
                continue
            inside = real.parent.is_relative_to(root)
            whole = "whole" if inside and is_repository(real) else None
            index = _state(real / "index")
            written[real] = Watched(root, real.parent, whole, index=index)
            for link in _links_out(real, lists):
                links[link] = Watched(root, link.parent, _state(link))
        return cls({**snapshot(places), **links}, written)

    @property
    def changed_indexes(self) -> list[Path]:
        """The folders of git whose list of files has changed."""
        return [path for path, one in self.written.items() if one.index != _state(path / "index")]

    def without(self, moved: Iterable[Quarantined]) -> GitBefore:
        """The same without what has something else in its place by now."""
        gone = [one.path for one in moved if one.barrier]

        def rest(found: Mapping[Path, Watched]) -> dict[Path, Watched]:
            kept = (path for path in found if not any(path.is_relative_to(one) for one in gone))
            return {path: found[path] for path in kept}

        return GitBefore(rest(self.names), rest(self.written))

    def __or__(self, later: GitBefore) -> GitBefore:
        """Both; what was seen first counts."""
        return GitBefore({**later.names, **self.names}, {**later.written, **self.written})

    def __bool__(self) -> bool:
        return bool(self.names or self.written)

    def to_json(self) -> dict[str, dict[str, list[str | bool | None]]]:
        return {
            key: {str(path): one.to_json() for path, one in found.items()}
            for key, found in (("names", self.names), ("written", self.written))
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Mapping[str, Sequence[Any]]]) -> GitBefore:
        return cls(watched_from(said["names"]), watched_from(said["written"]))

    def settle(self, folder: Path, lists: FolderLists) -> list[Quarantined]:
        """Move into `folder` what commands left and must not stay. Blocks."""
        moved = quarantine(self.names, folder)
        for path, known in self.written.items():
            for link, target in _links_out(path, lists).items():
                if link not in self.names:
                    at = Watched(known.root, link.parent, None)
                    why = f"git would write to {target} through it"
                    moved += _moved_alone(at, link.name, folder, why)
            for one in _leading_elsewhere(path):
                at = Watched(known.root, one.parent, None)
                moved += _moved_alone(at, one.name, folder, _RUNS)
        wholes = {path: one for path, one in self.written.items() if one.state is not None}
        return moved + remains(wholes, folder)


def remains(known: Mapping[Path, Watched], folder: Path) -> list[Quarantined]:
    """Move what is no repository any more of folders of git into `folder`, and put a file there
    that stops git: else it would take the repository around for it. Blocks."""
    moved: list[Quarantined] = []
    for path, one in known.items():
        if not (path.is_dir() and (path / "config").exists()) or is_repository(path):
            continue
        why = "it is no repository any more, and git there would change the one around it"
        found = _moved_alone(one, path.name, folder, why, barrier=path.name == ".git")
        moved += found
    return moved


def old_remains(links: Iterable[Path], roots: Sequence[Path]) -> dict[Path, Watched]:
    """Folders `.git` that may have been left by commands of earlier times, for `remains`."""
    limit = time.time_ns() - _SETTLED_NS
    found: dict[Path, Watched] = {}
    for link in links:
        root = _root_of(link.parent.resolve(), roots)
        with suppress(OSError):
            state = link.lstat()
            if root and stat.S_ISDIR(state.st_mode) and state.st_ctime_ns < limit:
                found[link] = Watched(root, link.parent.resolve(), "whole")
    return found


def move_away(path: Path, roots: Sequence[Path], folder: Path, why: str) -> list[Quarantined]:
    """Move one file of git's away, following no link on the way to it. Blocks."""
    root = _root_of(path.parent.resolve(), roots)
    if root is None:
        return []
    return _moved_alone(Watched(root, path.parent.resolve(), None), path.name, folder, why)


def _root_of(path: Path, roots: Iterable[Path]) -> Path | None:
    """The innermost of these folders that a real path lies in."""
    within = [root for root in roots if path.is_relative_to(root)]
    return max(within, key=lambda root: len(root.parts), default=None)


def _moved_alone(
    known: Watched, name: str, folder: Path, why: str, *, barrier: bool = False
) -> list[Quarantined]:
    """Move what is at a name, where all folders above are what they were."""
    with _opened(known, name) as (place, real):
        if place < 0 or real != known.folder / name or _state(name, place) is None:
            return []
        to = _move(real, place, folder)
        if barrier:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with (
                suppress(OSError),
                os.fdopen(os.open(name, flags, 0o644, dir_fd=place), "w") as out,
            ):
                out.write(f"gitdir: {folder / to.name}\n")
        return [Quarantined(real, to, why, barrier)]


def _links_out(git_dir: Path, lists: FolderLists) -> dict[Path, str]:
    """The links in a folder of git, but not in its stores, that lead out of it, with their ends.

    Git writes through them: a message into COMMIT_EDITMSG, a line into a log (2.39).
    """
    found: dict[Path, str] = {}
    base = os.path.realpath(git_dir)
    for place in islice(_searched(base, lists), _MOST_FOLDERS):
        for name in lists.of(place).links:
            end = os.path.realpath(f"{place}/{name}")
            if end != base and not end.startswith(f"{base}/"):
                found[Path(place, name)] = end
    return found


def _leading_elsewhere(git_dir: Path) -> Iterator[Path]:
    """The files of worktrees that make git go by the settings of another repository."""
    for tree in folders_in(git_dir / "worktrees"):
        named = tree / "commondir"
        if os.path.lexists(named) and _led_to(named, tree) != str(git_dir):
            yield named


def _led_to(file: Path, place: Path, *, link: bool = False) -> str | None:
    """The folder that a file of git's leads to from a place; None where that can't be told."""
    with suppress(OSError):
        return os.path.realpath(place / folder_named(file, link=link))
    return None


def _searched(git_dir: str, lists: FolderLists) -> Iterator[str]:
    waiting = [git_dir]
    while waiting:
        place = waiting.pop()
        yield place
        listing = lists.of(place)
        store = {"objects"} if "HEAD" in listing.files else set[str]()
        waiting += [f"{place}/{name}" for name in listing.folders if name not in store]


def quarantine(before: Mapping[Path, Watched], folder: Path) -> list[Quarantined]:
    """Move what appeared at a watched name into `folder`, and put links back.

    Nothing is followed on the way: a folder that has become a link is moved itself, and what it
    leads to stays as it is. A new `.git` is not moved where it leads nowhere else: who makes a
    repository means it. `run_later` names it.
    """
    moved: list[Quarantined] = []
    for path, known in before.items():
        if path.name == ".git" and known.state is None and _stays_below(path, known.root):
            continue
        with _opened(known, path.name) as (place, real):
            if place < 0:
                continue
            state = _state(real.name, place)
            if real == known.folder / path.name and state == known.state:
                continue
            if known.freed and real != known.folder / path.name:
                continue
            if state is not None:
                moved.append(Quarantined(real, _move(real, place, folder)))
            if known.state and known.state.startswith("link ") and real.parent == known.folder:
                os.symlink(known.state.removeprefix("link "), real.name, dir_fd=place)
    return moved


def _stays_below(link: Path, root: Path) -> bool:
    """Whether a new `.git` is a repository of a folder's own, and not by a link somebody else's."""
    place, inside = link.parent, link
    if not link.is_symlink() and link.is_dir():
        place, inside = link, link / "commondir"
    target: str | None = os.path.realpath(inside)
    if not inside.is_symlink() and inside.is_file():
        target = _led_to(inside, place, link=inside == link)
    return target is not None and Path(target).is_relative_to(root)


@contextmanager
def _opened(known: Watched, name: str) -> Generator[tuple[int, Path]]:
    """The folder of a name, opened without following a link, and the name's path.

    Where a folder on the way has become something else, that is the name. -1: nothing is there.
    """
    try:
        file, at = os.open(known.root, _FOLDER), known.root
    except OSError:
        yield -1, known.root
        return
    try:
        for part in known.folder.relative_to(known.root).parts:
            _unlock(file)
            try:
                inner = os.open(part, _FOLDER, dir_fd=file)
            except OSError as error:
                other = error.errno in {errno.ENOTDIR, errno.ELOOP}
                yield (file if other else -1), at / part
                return
            os.close(file)
            file, at = inner, at / part
        _unlock(file)
        yield file, at / name
    finally:
        os.close(file)


def _unlock(folder: int) -> None:
    """Let the owner into a folder that was closed, so that what is in it is seen."""
    if not os.access(".", os.X_OK | os.W_OK, dir_fd=folder):
        with suppress(OSError):
            os.chmod(f"/proc/self/fd/{folder}", 0o700)  # noqa: PTH101 - an opened folder


def _move(path: Path, place: int, folder: Path) -> Path:
    """Move what lies in an opened folder; where it cannot leave its file system, rename it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"{path.name.lstrip('.')}-{secrets.token_hex(4)}"
    try:
        os.rename(path.name, target, src_dir_fd=place)
    except OSError:
        target = path.with_name(f"{path.name}.{secrets.token_hex(4)}.quarantine")
        os.rename(path.name, target.name, src_dir_fd=place, dst_dir_fd=place)
    return target


def _state(path: Path | str, folder: int | None = None) -> str | None:
    try:
        found = os.stat(path, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            return f"link {os.readlink(path, dir_fd=folder)}"
    except OSError:
        return None
    return f"{found.st_ino} {found.st_ctime_ns} {found.st_size}"

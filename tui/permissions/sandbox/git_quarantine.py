"""Things that commands left in git's folders, checked afterwards: moved away if git would run them,
follow them outside, or act on another repository.

Nothing is deleted: what is moved is kept in a folder of the program, and is reported with the
command that brings it back, since the person may have made it while the command ran.
"""

from __future__ import annotations

import errno
import os
import secrets
import shlex
import stat
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from tui.core.dataclass import dataclass, field
from tui.core.git.branch import folder_named
from tui.permissions.sandbox.folder_lists import FolderLists
from tui.permissions.sandbox.git_walls import GitPlaces, folders_in
from tui.permissions.sandbox.inner_clones import is_repository

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_FOLDERS = 2_000
"""Maximum number of folders inside a git folder that are searched for links."""
_SETTLED_NS = 2_000_000_000
"""A repository in the making has a HEAD before its settings are this old."""
_RUNS = "git would go by it"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """Something that was moved away, with the reason and what was put in its place."""

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
    """A name that no mount protects: `folder` is its real folder, below `root`, and `state`
    identifies what is there."""

    root: Path
    folder: Path
    state: str | None
    """None if nothing is there."""
    freed: bool = False
    """True if the folders above may be deleted, or become something else."""
    index: str | None = None
    """For a git folder, the state of its index."""

    def to_json(self) -> list[str | bool | None]:
        return [str(self.root), str(self.folder), self.state, self.freed, self.index]


def snapshot(places: GitPlaces) -> dict[Path, Watched]:
    """Record the state of the names that no mount protects."""
    watched: dict[Path, Watched] = {}
    names = (*places.watched, *places.freed)
    real = {folder: folder.resolve() for folder in {path.parent for path in names}}
    for path in names:
        folder = real[path.parent]
        if root := _root_of(folder, places.roots):
            freed = path in places.freed
            watched[path] = Watched(root, folder, _state(folder / path.name), freed)
    return watched


def watched_from(said: Mapping[str, Sequence[Any]]) -> dict[Path, Watched]:
    """Decode the output of `Watched.to_json`, by path."""
    return {
        Path(path): Watched(Path(one[0]), Path(one[1]), one[2], *one[3:])
        for path, one in said.items()
    }


@dataclass(frozen=True, slots=True)
class GitBefore:
    """The state of git's folders before commands that may write, by path."""

    names: Mapping[Path, Watched] = field(default_factory=dict[Path, Watched])
    """The names that no mount protects, and the links that lead out of these folders."""
    written: Mapping[Path, Watched] = field(default_factory=dict[Path, Watched])
    """The git folders that commands may write into; those that are a repository have a state."""

    @classmethod
    def of(cls, places: GitPlaces, lists: FolderLists) -> GitBefore:
        """Record the current state. Blocks."""
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
        """The git folders whose index has changed."""
        return [path for path, one in self.written.items() if one.index != _state(path / "index")]

    def _harmless(self) -> list[Path]:
        """New files with settings of one worktree that need no yes: they have walls in the commands
        that begin from now on, and are judged again after those that run."""
        from tui.permissions.sandbox.git_settings import are_free  # noqa: PLC0415 - on demand

        return [
            path
            for path, one in self.names.items()
            if path.name == "config.worktree" and one.state is None and are_free(path, one.root)
        ]

    def without(self, moved: Iterable[Quarantined]) -> GitBefore:
        """Return the same without everything that was replaced by a barrier."""
        gone = [one.path for one in moved if one.barrier]

        def rest(watched: Mapping[Path, Watched]) -> dict[Path, Watched]:
            staying = (
                path for path in watched if not any(path.is_relative_to(one) for one in gone)
            )
            return {path: watched[path] for path in staying}

        return GitBefore(rest(self.names), rest(self.written))

    def __or__(self, later: GitBefore) -> GitBefore:
        """Combine both; the state seen first counts."""
        return GitBefore({**later.names, **self.names}, {**later.written, **self.written})

    def __bool__(self) -> bool:
        return bool(self.names or self.written)

    def to_json(self) -> dict[str, dict[str, list[str | bool | None]]]:
        return {
            key: {str(path): one.to_json() for path, one in watched.items()}
            for key, watched in (("names", self.names), ("written", self.written))
        }

    @classmethod
    def from_json(cls, said: Mapping[str, Mapping[str, Sequence[Any]]]) -> GitBefore:
        return cls(watched_from(said["names"]), watched_from(said["written"]))

    def settle(self, folder: Path, lists: FolderLists) -> list[Quarantined]:
        """Move what commands left and must not stay into `folder`. Blocks."""
        moved = quarantine(self.names, folder, self._harmless())
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
    """Move git folders that are no repository any more into `folder`, and put a file in their place
    that stops git: otherwise it would use the repository around instead. Blocks."""
    moved: list[Quarantined] = []
    for path, one in known.items():
        if not (path.is_dir() and (path / "config").exists()) or is_repository(path):
            continue
        why = "it is no repository any more, and git there would change the one around it"
        quarantined = _moved_alone(one, path.name, folder, why, barrier=path.name == ".git")
        moved += quarantined
    return moved


def old_remains(links: Iterable[Path], roots: Sequence[Path]) -> dict[Path, Watched]:
    """Folders `.git` that earlier commands may have left, for `remains`."""
    limit = time.time_ns() - _SETTLED_NS
    leftovers: dict[Path, Watched] = {}
    for link in links:
        root = _root_of(link.parent.resolve(), roots)
        with suppress(OSError):
            state = link.lstat()
            if root and stat.S_ISDIR(state.st_mode) and state.st_ctime_ns < limit:
                leftovers[link] = Watched(root, link.parent.resolve(), "whole")
    return leftovers


def move_away(path: Path, roots: Sequence[Path], folder: Path, why: str) -> list[Quarantined]:
    """Move one of git's files away without following a link on the way to it. Blocks."""
    root = _root_of(path.parent.resolve(), roots)
    if root is None:
        return []
    return _moved_alone(Watched(root, path.parent.resolve(), None), path.name, folder, why)


def _root_of(path: Path, roots: Iterable[Path]) -> Path | None:
    """The innermost of these folders that contains a real path."""
    within = [root for root in roots if path.is_relative_to(root)]
    return max(within, key=lambda root: len(root.parts), default=None)


def _moved_alone(
    known: Watched, name: str, folder: Path, why: str, *, barrier: bool = False
) -> list[Quarantined]:
    """Move what is at a name, if all folders above are unchanged."""
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
    """The links in a git folder, except in its stores, that lead out of it, with their ends.

    Git writes through them: a message into COMMIT_EDITMSG, a line into a log (2.39).
    """
    links: dict[Path, str] = {}
    base = os.path.realpath(git_dir)
    for place in islice(_searched(base, lists), _MOST_FOLDERS):
        for name in lists.of(place).links:
            end = os.path.realpath(f"{place}/{name}")
            if end != base and not end.startswith(f"{base}/"):
                links[Path(place, name)] = end
    return links


def _leading_elsewhere(git_dir: Path) -> Iterator[Path]:
    """The files of worktrees that make git use the settings of another repository."""
    for tree in folders_in(git_dir / "worktrees"):
        named = tree / "commondir"
        if os.path.lexists(named) and _led_to(named, tree) != str(git_dir):
            yield named


def _led_to(file: Path, place: Path, *, link: bool = False) -> str | None:
    """The folder that one of git's files leads to from a place; None if that is not known."""
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


def quarantine(
    before: Mapping[Path, Watched], folder: Path, kept: Collection[Path] = ()
) -> list[Quarantined]:
    """Move what appeared at a watched name into `folder`, except for those `kept`, and restore
    links.

    Nothing is followed on the way: a folder that has become a link is moved itself, and its target
    stays. A new `.git` is not moved if it leads nowhere else: making a repository is deliberate.
    `run_later` reports it.
    """
    moved: list[Quarantined] = []
    for path, known in before.items():
        if path.name == ".git" and known.state is None and _stays_below(path, known.root):
            continue
        if path in kept:
            continue
        with _opened(known, path.name) as (place, real):
            if place < 0:
                continue
            state = _state(real.name, place)
            if real == known.folder / path.name and state == known.state:
                continue
            if known.freed and (real != known.folder / path.name or _leads_back(real)):
                continue
            if state is not None:
                moved.append(Quarantined(real, _move(real, place, folder)))
            if known.state and known.state.startswith("link ") and real.parent == known.folder:
                os.symlink(known.state.removeprefix("link "), real.name, dir_fd=place)
    return moved


def _leads_back(gitdir: Path) -> bool:
    """True if the file of a worktree names one that names the worktree's folder in turn: it was
    moved."""
    link = _led_to(gitdir, gitdir.parent) if gitdir.name == "gitdir" else None
    return link is not None and _led_to(Path(link), Path(link).parent, link=True) == str(
        gitdir.parent
    )


def _stays_below(link: Path, root: Path) -> bool:
    """True if a new `.git` is the folder's own repository, and not a link to somebody else's."""
    place, inside = link.parent, link
    if not link.is_symlink() and link.is_dir():
        place, inside = link, link / "commondir"
    target: str | None = os.path.realpath(inside)
    if not inside.is_symlink() and inside.is_file():
        target = _led_to(inside, place, link=inside == link)
    return target is not None and Path(target).is_relative_to(root)


@contextmanager
def _opened(known: Watched, name: str) -> Generator[tuple[int, Path]]:
    """Open the folder of a name without following a link; yield it with the name's path.

    If a folder on the way has become something else, that is the name. -1: nothing is there.
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
    """Let the owner into a folder without permissions, so that its content can be seen."""
    if not os.access(".", os.X_OK | os.W_OK, dir_fd=folder):
        with suppress(OSError):
            os.chmod(f"/proc/self/fd/{folder}", 0o700)  # noqa: PTH101 - an opened folder


def _move(path: Path, place: int, folder: Path) -> Path:
    """Move something out of an opened folder; if it cannot leave its file system, rename it."""
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
        status = os.stat(path, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            return f"link {os.readlink(path, dir_fd=folder)}"
    except OSError:
        return None
    return f"{status.st_ino} {status.st_ctime_ns} {status.st_size}"

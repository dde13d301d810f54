"""What git would run later: its settings, hooks and links, kept from commands that may write.

What exists is mounted read-only. What does not exist cannot be (a mount point would be created
in the repository): it is compared before and after, and what appeared is moved away.
"""

from __future__ import annotations

import errno
import itertools
import os
import re
import secrets
import stat
import subprocess
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from tui.core.workspace import safe_search_path
from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.walls import Walls

_NAMES = (
    "config",
    "config.worktree",
    "hooks",
    "info",
    "commondir",
    "gitdir",
    "objects/info/alternates",
)
_INNER = ("modules", "worktrees")
"""Folders of a git folder that hold more of them."""
_HARDENED = (
    "-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=",
)  # fmt: skip
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GIT_S = 5.0
_SETTLED_NS = 1_000_000_000
"""A file that changed within so short a time may change again without its time showing it."""
_MOST_REPOSITORIES = 100
"""Of those below the workspace that are walled in. All are named when they change (`run_later`)."""


FileState: TypeAlias = tuple[int, int, int, int]
"""Number, size, and times of the content and of the entry."""


_SIGNED = ("commit", "tag")


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """The folders of git that belong to a workspace, and what in them nobody else may change."""

    folders: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    """Stores of other repositories, to read."""
    watched: tuple[Path, ...] = ()
    """Names that no mount protects: they do not exist, or are links."""
    roots: tuple[Path, ...] = ()
    """The folders that commands may write: what is watched lies in them."""


@dataclass(slots=True)
class GitAnswers:
    """What git said of its settings, as long as no file that they came from has changed."""

    paths: tuple[Path, ...] = ()
    states: Mapping[Path, FileState | None] = field(default_factory=dict[Path, "FileState | None"])

    def hold(self) -> bool:
        return bool(self.states) and all(
            _file_state(path) == state for path, state in self.states.items()
        )


def git_places(
    workspace: Path,
    environment: Mapping[str, str] | None = None,
    inner: Iterable[Path] = (),
    known: GitAnswers | None = None,
) -> GitPlaces:
    """Ask git, without running anything that the repository names. Blocks.

    `inner` are folders below that have a `.git` of their own: git goes into them by itself where
    they are submodules. What git says is kept in `known` for the next time.
    """
    env = clean_environment(os.environ if environment is None else environment)
    env["PATH"] = safe_search_path(env.get("PATH", os.defpath), (workspace,))
    link, root = workspace / ".git", workspace.resolve()
    common, folder = (link, link) if _is_plain(link, root) else _folders_of(workspace, env)
    if (folder is None or common is None) and (link / "HEAD").exists():
        folder = common = real if (real := link.resolve()).is_relative_to(root) else None
    folders = () if folder is None or common is None else tuple(dict.fromkeys((common, folder)))
    names = [path for place in folders for path in _guarded(place)]
    names += [link]
    if folders:
        names += _read_by_config(workspace, env, root, folders, known or GitAnswers())
    for place in itertools.islice(inner, _MOST_REPOSITORIES):
        names += [place / ".git"] if place != workspace else []
        names += _guarded(place / ".git") if (place / ".git/HEAD").exists() else []
    names += [target for path in names if path.name == "hooks" for target in _links_in(path, root)]
    above = dict.fromkeys(part for path in dict.fromkeys(names) for part in path.parents)
    names += [part for part in above if _is_link_below(part, root)]
    names = list(dict.fromkeys(names))
    return GitPlaces(
        folders,
        tuple(path for path in names if path.exists() and not _is_folder_of_git(path)),
        tuple(_alternates(common)) if common else (),
        tuple(path for path in names if path.is_symlink() or not path.exists()),
        (root, *folders),
    )


def with_git(walls: Walls, places: GitPlaces) -> Walls:
    return replace(
        walls,
        git=(*walls.git, *places.folders),
        protected=(*walls.protected, *places.protected),
        readable=(*walls.readable, *places.objects),
    )


@dataclass(frozen=True, slots=True)
class Watched:
    """A name that no mount protects: `folder` is where it really lies, below `root`, and `state`
    what is there."""

    root: Path
    folder: Path
    state: str | None
    """None for nothing."""

    def to_json(self) -> list[str | None]:
        return [str(self.root), str(self.folder), self.state]


def snapshot(places: GitPlaces) -> dict[Path, Watched]:
    """What stands at the names that no mount protects."""
    found: dict[Path, Watched] = {}
    for path in places.watched:
        folder = path.parent.resolve()
        within = [root for root in places.roots if folder.is_relative_to(root)]
        if within:
            found[path] = Watched(max(within), folder, _state(folder / path.name))
    return found


def watched_from(said: Mapping[str, Sequence[str]]) -> dict[Path, Watched]:
    """What `Watched.to_json` made of a snapshot."""
    return {Path(path): Watched(Path(one[0]), Path(one[1]), one[2]) for path, one in said.items()}


def quarantine(before: Mapping[Path, Watched], folder: Path) -> list[tuple[Path, Path]]:
    """Move what appeared at a watched name into `folder`, put links back; from where and to where.

    Nothing is followed on the way: a folder that has become a link is moved itself, and what it
    leads to stays as it is. A new `.git` is not moved: who makes a repository means it.
    `run_later` names it.
    """
    moved: list[tuple[Path, Path]] = []
    for path, known in before.items():
        if path.name == ".git" and known.state is None:
            continue
        with _opened(known, path.name) as (place, real):
            if place < 0:
                continue
            state = _state(real.name, place)
            if real == known.folder / path.name and state == known.state:
                continue
            if state is not None:
                moved.append((real, _move(real, place, folder)))
            if known.state and known.state.startswith("link ") and real.parent == known.folder:
                os.symlink(known.state.removeprefix("link "), real.name, dir_fd=place)
    return moved


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
    target = folder / f"{len(list(folder.iterdir()))}-{path.name}"
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


def _git(workspace: Path, env: Mapping[str, str], *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *_HARDENED, *words],
            cwd=workspace, env={**env, "GIT_OPTIONAL_LOCKS": "0"}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=_GIT_S, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(done.stdout) if done.returncode == 0 else ""


def signs(workspace: Path, env: Mapping[str, str]) -> bool:
    """Whether git's settings tell it to sign commits or tags here."""
    said = (_git(workspace, env, "config", "--type=bool", f"{name}.gpgSign") for name in _SIGNED)
    return any(answer.strip() == "true" for answer in said)


def _folders_of(workspace: Path, env: Mapping[str, str]) -> tuple[Path | None, Path | None]:
    """The common and the own folder, if they really belong to this workspace."""
    words = ("--path-format=absolute", "--git-common-dir", "--git-dir", "--show-toplevel")
    lines = _git(workspace, env, "rev-parse", *words).splitlines()
    if len(lines) != 3:
        return None, None
    common, folder, top = (Path(line).resolve() for line in lines)
    linked = folder.parent == common / "worktrees"
    if not (common == folder or linked) or (top / ".git").is_symlink():
        return None, None  # a planted `commondir` or link: it would open somebody else's folder
    if folder == top / ".git" or _points_back(folder, top, workspace, env):
        return common, folder
    return None, None


def _is_plain(folder: Path, root: Path) -> bool:
    """Whether `.git` is the usual folder, which git would name without being asked."""
    usual = folder.is_dir() and folder.resolve() == root / ".git" and (folder / "HEAD").exists()
    return usual and not os.path.lexists(folder / "commondir")


def _points_back(folder: Path, top: Path, workspace: Path, env: Mapping[str, str]) -> bool:
    """Whether a git folder elsewhere names this worktree: else a planted `.git` would open it."""
    try:
        named = Path((folder / "gitdir").read_text(encoding="utf-8").strip())
    except OSError:
        tree = _git(workspace, env, "config", "--file", str(folder / "config"), "core.worktree")
        return bool(tree) and (folder / tree.strip()).resolve() == top
    return (folder / named).resolve() == top / ".git"


def _guarded(place: Path) -> Iterator[Path]:
    """The names in a git folder and in those inside it that decide what git runs or opens."""
    yield from (place / name for name in _NAMES)
    for inner in _INNER:
        for head in sorted((place / inner).glob("**/HEAD")):
            if "logs" not in head.parts and "refs" not in head.parts:
                yield from (head.parent / name for name in _NAMES)


def _links_in(hooks: Path, root: Path) -> Iterator[Path]:
    """What the hooks that are links lead to, in reach."""
    with suppress(OSError):
        for hook in sorted(hooks.iterdir()):
            if hook.is_symlink() and (target := hook.resolve()).is_relative_to(root):
                yield target


def _is_link_below(path: Path, root: Path) -> bool:
    return path != root and path.is_relative_to(root) and path.is_symlink()


def _is_folder_of_git(path: Path) -> bool:
    """Whether it is a `.git` that git itself writes into; as a file it is only a link of git's."""
    return path.name == ".git" and path.is_dir()


def inner_repositories(workspace: Path, environment: Mapping[str, str]) -> list[Path]:
    """The folders that the index has as repositories of their own. Blocks."""
    env = clean_environment(environment)
    env["PATH"] = safe_search_path(env.get("PATH", os.defpath), (workspace,))
    listed = _git(workspace, env, "ls-files", "--stage", "-z", "--full-name", "--", ":/")
    top = _git(workspace, env, "rev-parse", "--show-toplevel").removesuffix("\n")
    names = re.findall(r"(?:^|\0)160000 [^\t]*\t([^\0]*)", listed)
    return [Path(top, name) for name in names] if top else []


def _read_by_config(
    workspace: Path,
    env: Mapping[str, str],
    root: Path,
    folders: Iterable[Path],
    known: GitAnswers,
) -> tuple[Path, ...]:
    """Files that git's settings include and the folder of hooks, where they lie in reach."""
    if known.hold():
        return known.paths
    paths: set[Path] = set()
    entries = _git(workspace, env, "config", "--list", "--show-origin", "--includes", "-z")
    origin = root
    for entry in entries.split("\0"):
        name, _, value = entry.partition("\n")
        if entry.startswith("file:"):
            origin = (workspace / entry.removeprefix("file:")).resolve()
            paths.add(origin)
        elif value and name == "core.hookspath":
            paths.add((root / Path(value).expanduser()).absolute())
        elif value and name.startswith("include") and name.endswith(".path"):
            paths.add((origin.parent / Path(value).expanduser()).resolve())
    sources = {*paths, *_settings_files(folders, env)}
    known.paths = tuple(sorted(path for path in paths if path.is_relative_to(root)))
    states = {path: _file_state(path) for path in sources}
    settled = time.time_ns() - _SETTLED_NS
    kept = all(state is None or max(state[2:]) < settled for state in states.values())
    known.states = states if kept else {}
    return known.paths


def _settings_files(folders: Iterable[Path], env: Mapping[str, str]) -> Iterator[Path]:
    """Where settings would be read from, were there any, and what decides which of them count."""
    home = Path(env.get("HOME", "/"))
    yield from (Path("/etc/gitconfig"), home / ".gitconfig", home / ".config/git/config")
    for folder in folders:
        yield from (folder / name for name in ("config", "config.worktree", "HEAD"))


def _file_state(path: Path) -> FileState | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _alternates(common: Path) -> Iterator[Path]:
    try:
        lines = (common / "objects/info/alternates").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        store = (common / "objects" / line).resolve()
        if line and not line.startswith("#") and (store / "pack").is_dir():
            yield store

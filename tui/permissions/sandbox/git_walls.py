"""The files that git would act on later: its settings, hooks and links, protected from commands
that may write.

Those that exist are mounted read-only. Those that don't cannot be (a mount point would be created
in the repository): they are compared before and after, and new ones are moved away
(`git_quarantine`).
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from tui.core.dataclass import dataclass, field, replace
from tui.core.files import read_small
from tui.core.git.branch import folder_named
from tui.core.git.door import answer
from tui.core.workspace import WORKTREES, safe_search_path
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
"""Folders of a git folder that contain further git folders."""
_DEEPEST_NAME = 8
_SETTLED_NS = 1_000_000_000
"""A file that changed this recently may change again without its time showing it."""
_MOST_REPOSITORIES = 100
"""Maximum number of repositories below the workspace that get walls. All are reported when they
change (`run_later`)."""


FileState: TypeAlias = tuple[int, int, int, int]
"""Inode, size, and the times of the content and of the entry."""


_SIGNED = ("commit", "tag")


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """The git folders that belong to a workspace, and the files in them that nobody else may
    change."""

    folders: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    """Stores of other repositories, to read."""
    watched: tuple[Path, ...] = ()
    """Names that no mount protects: they do not exist, or are links."""
    roots: tuple[Path, ...] = ()
    """The folders that commands may write; `watched` is inside them."""
    trees: tuple[Path, ...] = ()
    """Our worktrees below: nothing can be put beside them."""
    clones: tuple[Path, ...] = ()
    """Folders below with a `.git` of their own that can't be deleted or moved."""
    freed: tuple[Path, ...] = ()
    """Names in clones that may be deleted as a whole: otherwise they must stay unchanged."""
    written: tuple[Path, ...] = ()
    """Git folders that commands may write into."""


@dataclass(frozen=True, slots=True)
class CloneAccess:
    """The access of one command to the clones in a workspace: it may write the git folder of those
    in `opened`, and delete or move those in `without`."""

    opened: frozenset[Path] = frozenset()
    without: frozenset[Path] = frozenset()
    worktrees: bool = False
    """True if it may change what the repository keeps of its worktrees."""


@dataclass(slots=True)
class GitAnswers:
    """Git's answers about its settings, valid until a file that they came from changes."""

    paths: tuple[Path, ...] = ()
    states: Mapping[Path, FileState | None] = field(default_factory=dict[Path, "FileState | None"])

    def hold(self) -> bool:
        return bool(self.states) and all(
            _file_state(path) == state for path, state in self.states.items()
        )


@dataclass(slots=True)
class IndexAnswer:
    """The repositories that an index lists, valid until the index changes."""

    state: FileState | None = None
    places: tuple[Path, ...] = ()


def git_places(
    workspace: Path,
    environment: Mapping[str, str] | None = None,
    inner: Iterable[Path] = (),
    known: GitAnswers | None = None,
    access: CloneAccess | None = None,
) -> GitPlaces:
    """Ask git for its folders, without running anything that the repository names. Blocks.

    `inner` are folders below that have a `.git` of their own. Git's answers are kept in `known` for
    the next time.
    """
    env = clean_environment(os.environ if environment is None else environment)
    link, root = workspace / ".git", workspace.resolve()
    common, folder = (link, link) if _is_plain(link, root) else _folders_of(workspace, env)
    # Git does not accept the repository, but may do so once it is complete: protect what is there.
    if (folder is None or common is None) and (link / "HEAD").exists():
        folder = common = real if (real := link.resolve()).is_relative_to(root) else None
    folders = () if folder is None or common is None else tuple(dict.fromkeys((common, folder)))
    names = [path for place in folders for path in _guarded(place)]
    names += [link]
    if folders:
        names += _read_by_config(workspace, env, root, folders, known or GitAnswers())
    clones = _CloneWalls.around(inner, root, access or CloneAccess())
    if access is not None and access.worktrees and common is not None:
        for kept in folders_in(common / "worktrees"):
            clones.free_git_dir(kept)
    place = root.joinpath(*WORKTREES)
    trees = [one for one in folders_in(place) if os.path.lexists(one / ".git")]
    names += [*clones.names, *([place] if place.is_dir() else ()), *(one / ".git" for one in trees)]
    # Hooks may be links to files elsewhere in the workspace; these run, too.
    names += [target for path in names if path.name == "hooks" for target in _links_in(path, root)]
    # A link among the folders above could be exchanged, so it is protected like the name itself.
    folders_above = dict.fromkeys(path.parent for path in names)
    above = dict.fromkeys(part for folder in folders_above for part in _up_to(root, folder))
    names += [part for part in above if os.path.islink(part)]  # noqa: PTH114 - much faster
    names = [path for path in dict.fromkeys(names) if not clones.frees(path)]
    there = {path for path in names if os.path.exists(path)}  # noqa: PTH110 - much faster
    walled = [path for path in names if path in there and not _is_folder_of_git(path)]
    return GitPlaces(
        folders=folders,
        protected=(*walled, *clones.whole),
        objects=tuple(_alternates(common)) if common else (),
        watched=tuple(path for path in names if path not in there or path.is_symlink()),
        roots=(root, *folders),
        trees=tuple(trees),
        clones=tuple(clones.walled),
        freed=tuple(clones.freed),
        written=(*folders, *clones.written),
    )


@dataclass(slots=True)
class _CloneWalls:
    """The walls of the clones below a workspace."""

    walled: list[Path] = field(default_factory=list[Path])
    names: list[Path] = field(default_factory=list[Path])
    """Names protected one by one, as those of the workspace's own git."""
    whole: list[Path] = field(default_factory=list[Path])
    written: list[Path] = field(default_factory=list[Path])
    freed: list[Path] = field(default_factory=list[Path])
    places: list[Path] = field(default_factory=list[Path])
    """Folders without any walls: clones, and what the repository keeps of them."""

    @classmethod
    def around(cls, inner: Iterable[Path], root: Path, access: CloneAccess) -> _CloneWalls:
        made = cls()
        own = root.joinpath(*WORKTREES)
        below = (one for one in inner if one != root and one.parent != own)
        for place in itertools.islice(below, _MOST_REPOSITORIES):
            link = place / ".git"
            is_clone = _is_folder_of_git(link) and (link / "HEAD").exists()
            if place in access.without:
                made._free(link)
                continue
            if not (is_clone and place in access.opened):
                made.walled.append(place)
            if not is_clone:
                made.names.append(link)
            elif link.is_symlink():
                made.names.append(link)
                made.whole += [real for real in [link.resolve()] if real.is_relative_to(root)]
            elif place in access.opened:
                made.names += [link, *_guarded(link)]
                made.written.append(link)
            else:
                made.whole.append(link)
        return made

    def _free(self, link: Path) -> None:
        git_dir = link if _is_folder_of_git(link) else _named_by(link)
        self.places.append(link)
        self.written.append(git_dir)
        self.freed += [] if git_dir == link else [link]
        self.free_git_dir(git_dir)

    def free_git_dir(self, git_dir: Path) -> None:
        """Leave out the walls of what a repository keeps of a clone."""
        self.places.append(git_dir)
        for name in _guarded(git_dir):
            folder = name.name in {"hooks", "info"}
            self.freed += [name, *(sorted(name.iterdir()) if folder and name.is_dir() else ())]

    def frees(self, path: Path) -> bool:
        return any(path == one or one in path.parents for one in self.places)


def _named_by(link: Path) -> Path:
    """The folder that a linked worktree's file `.git` names; the file itself if it is none."""
    with suppress(OSError):
        named = link.parent / folder_named(link, link=True)
        back = folder_named(named / "gitdir")
        if named.parent.name == "worktrees" and named / back == link:
            return named
    return link


def with_git(walls: Walls, places: GitPlaces) -> Walls:
    return replace(
        walls,
        git=(*walls.git, *places.folders, *places.trees),
        protected=(*walls.protected, *places.protected),
        readable=(*walls.readable, *places.objects),
    )


def _git(workspace: Path, env: Mapping[str, str], *words: str) -> str:
    """Ask git, but never one that a command could have put into the workspace."""
    path = safe_search_path(env.get("PATH", os.defpath), (workspace,))
    return answer(workspace, *words, env={**env, "PATH": path}) or ""


def signs(workspace: Path, env: Mapping[str, str]) -> bool:
    """True if git's settings tell it to sign commits or tags here."""
    values = (_git(workspace, env, "config", "--type=bool", f"{name}.gpgSign") for name in _SIGNED)
    return any(answer.strip() == "true" for answer in values)


def _folders_of(workspace: Path, env: Mapping[str, str]) -> tuple[Path | None, Path | None]:
    """The common and the own git folder, if they really belong to this workspace."""
    place = workspace.resolve()
    if not any(os.path.lexists(one / ".git") for one in (place, *place.parents)):
        return None, None  # as git would say
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
    """True if `.git` is the usual folder, which git would name anyway."""
    usual = folder.is_dir() and folder.resolve() == root / ".git" and (folder / "HEAD").exists()
    return usual and not os.path.lexists(folder / "commondir")


def _points_back(folder: Path, top: Path, workspace: Path, env: Mapping[str, str]) -> bool:
    """True if a git folder elsewhere names this worktree: otherwise a planted `.git` would open
    it."""
    try:
        return os.path.realpath(folder / folder_named(folder / "gitdir")) == str(top / ".git")
    except OSError:
        tree = _git(workspace, env, "config", "--file", str(folder / "config"), "core.worktree")
        return bool(tree) and (folder / tree.strip()).resolve() == top


def _guarded(place: Path) -> Iterator[Path]:
    """The names in a git folder and in those inside it that decide what git runs or opens."""
    yield from (place / name for name in _NAMES)
    for inner in _INNER:
        for git_dir in _git_dirs(place / inner):
            yield from _guarded(git_dir)


def _git_dirs(place: Path, depth: int = 0) -> Iterator[Path]:
    """The git folders in one that holds them by names, which may have slashes."""
    for folder in folders_in(place):
        if os.path.lexists(folder / "HEAD"):
            yield folder
        elif depth < _DEEPEST_NAME:
            yield from _git_dirs(folder, depth + 1)


def folders_in(place: Path) -> list[Path]:
    """The folders in a folder, by name; none if it is no folder."""
    try:
        with os.scandir(place) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [place / name for name in sorted(names)]


def _links_in(hooks: Path, root: Path) -> Iterator[Path]:
    """The targets of hooks that are links, if they are in reach."""
    with suppress(OSError):
        with os.scandir(hooks) as entries:  # knows links without a look at each
            links = sorted(entry.path for entry in entries if entry.is_symlink())
        for link in links:
            if (target := Path(link).resolve()).is_relative_to(root):
                yield target


def _up_to(root: Path, folder: Path) -> Iterator[Path]:
    """A folder and those above it, as far as they are below a root."""
    if folder.is_relative_to(root):
        yield from itertools.takewhile(lambda part: part != root, (folder, *folder.parents))


def _is_folder_of_git(path: Path) -> bool:
    """True if it is a `.git` folder, which git itself writes into; a file of that name only links
    to one."""
    return path.name == ".git" and path.is_dir()


def settings_by_file(
    place: Path, environment: Mapping[str, str], roots: Iterable[Path]
) -> dict[Path, list[tuple[str, str]]]:
    """The settings that a repository brings along, by the file in the workspace that has them. Runs
    nothing that they name. Blocks."""
    env = clean_environment(environment)
    roots = list(roots)
    env["PATH"] = safe_search_path(env.get("PATH", os.defpath), roots)
    words = ("config", "--list", "--includes", "--show-scope", "--show-origin", "-z")
    fields = _git(place, env, *words).split("\0")
    settings: dict[Path, list[tuple[str, str]]] = {}
    for scope, origin, entry in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        file = Path(os.path.realpath(place / origin.removeprefix("file:")))
        inside = any(file.is_relative_to(root) for root in roots)
        if inside and scope in {"local", "worktree"} and origin.startswith("file:"):
            name, _, value = entry.partition("\n")
            settings.setdefault(file, []).append((name, value))
    return settings


def inner_repositories(
    workspace: Path, environment: Mapping[str, str], known: IndexAnswer | None = None
) -> list[Path]:
    """The folders that the index lists as repositories of their own. Git's answer is kept in
    `known`. Blocks."""
    env, known = clean_environment(environment), known or IndexAnswer()
    index = workspace / ".git/index"
    usual = _is_plain(index.parent, workspace.resolve()) and "GIT_INDEX_FILE" not in env
    state = _file_state(index) if usual else None
    if state is None or state != known.state:
        known.places = tuple(_asked_inner_repositories(workspace, env))
        settled = state is not None and max(state[2:]) < time.time_ns() - _SETTLED_NS
        known.state = state if settled else None
    return list(known.places)


def _asked_inner_repositories(workspace: Path, env: Mapping[str, str]) -> list[Path]:
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
    """The files that git's settings include and the folder of hooks, if they are in reach."""
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
    # A file that changed just now may change again with the same time: ask again next time.
    settled = time.time_ns() - _SETTLED_NS
    unchanged = all(state is None or max(state[2:]) < settled for state in states.values())
    known.states = states if unchanged else {}
    return known.paths


def _settings_files(folders: Iterable[Path], env: Mapping[str, str]) -> Iterator[Path]:
    """The files that settings would be read from if they existed, and those that decide which
    settings apply."""
    home = Path(env.get("HOME", "/"))
    yield from (Path("/etc/gitconfig"), home / ".gitconfig", home / ".config/git/config")
    for folder in folders:
        yield from (folder / name for name in ("config", "config.worktree", "HEAD"))


def _file_state(path: Path) -> FileState | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _alternates(common: Path) -> Iterator[Path]:
    try:
        content, _ = read_small(common / "objects/info/alternates")
    except OSError:
        return
    for line in content.split(b"\n"):
        if line and not line.startswith(b"#") and b"\0" not in line:
            store = Path(os.path.realpath(common / "objects" / os.fsdecode(line)))
            if (store / "pack").is_dir():
                yield store

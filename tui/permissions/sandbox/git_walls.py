"""What git would run later: its settings, hooks and links, kept from commands that may write.

What exists is mounted read-only. What does not exist cannot be (a mount point would be created
in the repository): it is compared before and after, and what appeared is moved away.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tui.permissions.sandbox.environment import clean_environment
from tui.permissions.sandbox.walls import Walls

_NAMES = ("config", "config.worktree", "hooks", "info", "commondir", "gitdir")
_INNER = ("modules", "worktrees")
"""Folders of a git folder that hold more of them."""
_HARDENED = (
    "-c", "safe.bareRepository=explicit", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=",
)  # fmt: skip
_GIT_S = 5.0


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """The folders of git that belong to a workspace, and what in them nobody else may change."""

    folders: tuple[Path, ...] = ()
    protected: tuple[Path, ...] = ()
    objects: tuple[Path, ...] = ()
    """Stores of other repositories, to read."""
    watched: tuple[Path, ...] = ()
    """Names that no mount protects: they do not exist, or are links."""


def git_places(workspace: Path, environment: Mapping[str, str] | None = None) -> GitPlaces:
    """Ask git, without running anything that the repository names. Blocks; once for a session."""
    env = clean_environment(os.environ if environment is None else environment)
    common, folder = _folders_of(workspace, env)
    link = workspace / ".git"
    if folder is None or common is None:
        folder = common = link if (link / "HEAD").exists() else None
    if folder is None or common is None:
        return GitPlaces(watched=() if link.exists() else (link,))
    folders = tuple(dict.fromkeys((common, folder)))
    names = [path for place in folders for path in _guarded(place)]
    names += [link] if link.is_file() and not link.is_symlink() else []
    names += _read_by_config(workspace, env, workspace.resolve())
    protected = [path for path in names if path.exists()]
    return GitPlaces(
        folders,
        tuple(dict.fromkeys(protected)),
        tuple(_alternates(common)),
        tuple(dict.fromkeys(path for path in names if path.is_symlink() or not path.exists())),
    )


def with_git(walls: Walls, places: GitPlaces) -> Walls:
    return replace(
        walls,
        git=(*walls.git, *places.folders),
        protected=(*walls.protected, *places.protected),
        readable=(*walls.readable, *places.objects),
    )


def snapshot(places: GitPlaces) -> dict[Path, str | None]:
    """What stands at the names that no mount protects: None for nothing, a link's target."""
    return {path: _state(path) for path in places.watched}


def quarantine(before: Mapping[Path, str | None], folder: Path) -> list[tuple[Path, Path]]:
    """Move what appeared at a watched name into `folder`, put links back; from where and to where.

    A new `.git` is not moved: who makes a repository means it. `run_later` names it.
    """
    moved: list[tuple[Path, Path]] = []
    for path, state in before.items():
        if path.name == ".git" or _state(path) == state:
            continue
        if os.path.lexists(path):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            target = folder / f"{len(list(folder.iterdir()))}-{path.name}"
            shutil.move(path, target)
            moved.append((path, target))
        if state and state.startswith("link "):
            path.symlink_to(state.removeprefix("link "))
    return moved


def _state(path: Path) -> str | None:
    try:
        if path.is_symlink():
            return f"link {path.readlink()}"
        found = path.lstat()
    except OSError:
        return None
    return f"{found.st_ino} {found.st_mtime_ns} {found.st_size}"


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


def _folders_of(workspace: Path, env: Mapping[str, str]) -> tuple[Path | None, Path | None]:
    """The common and the own folder, if they really belong to this workspace."""
    words = ("--path-format=absolute", "--git-common-dir", "--git-dir", "--show-toplevel")
    lines = _git(workspace, env, "rev-parse", *words).splitlines()
    if len(lines) != 3:
        return None, None
    common, folder, top = (Path(line).resolve() for line in lines)
    if folder == top / ".git" or _points_back(folder, top, workspace, env):
        return common, folder
    return None, None


def _points_back(folder: Path, top: Path, workspace: Path, env: Mapping[str, str]) -> bool:
    """Whether a git folder elsewhere names this worktree: else a planted `.git` would open it."""
    try:
        named = Path((folder / "gitdir").read_text(encoding="utf-8").strip())
    except OSError:
        tree = _git(workspace, env, "config", "--file", str(folder / "config"), "core.worktree")
        return bool(tree) and (folder / tree.strip()).resolve() == top
    return (folder / named).resolve() == (top / ".git").resolve()


def _guarded(place: Path) -> Iterator[Path]:
    """The names in a git folder and in those inside it that decide what git runs or opens."""
    yield from (place / name for name in _NAMES)
    for inner in _INNER:
        for head in sorted((place / inner).glob("**/HEAD")):
            if "logs" not in head.parts and "refs" not in head.parts:
                yield from (head.parent / name for name in _NAMES)


def _read_by_config(workspace: Path, env: Mapping[str, str], root: Path) -> list[Path]:
    """Files that git's settings include and the folder of hooks, where they lie in reach."""
    paths: set[Path] = set()
    fields = _git(workspace, env, "config", "--list", "--show-origin", "--includes", "-z")
    origin = root
    for field in fields.split("\0"):
        name, _, value = field.partition("\n")
        if field.startswith("file:"):
            origin = (workspace / field.removeprefix("file:")).resolve()
            paths.add(origin)
        elif value and name == "core.hookspath":
            paths.add((root / Path(value).expanduser()).absolute())
        elif value and name.startswith("include") and name.endswith(".path"):
            paths.add((origin.parent / Path(value).expanduser()).resolve())
    return sorted(path for path in paths if path.is_relative_to(root))


def _alternates(common: Path) -> Iterator[Path]:
    try:
        lines = (common / "objects/info/alternates").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        store = (common / "objects" / line).resolve()
        if line and not line.startswith("#") and (store / "pack").is_dir():
            yield store

"""The reach of a confined command: the plan that both engines with mounts carry out.

A wall that cannot be built is an error, never a hole: nothing here falls back to the host.
"""

from __future__ import annotations

import fnmatch
import os
import pwd
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.permissions.sandbox.observed import Observed

# fmt: off
TOOLCHAINS = (
    ".pyenv", ".rbenv", ".nodenv", ".nvm", ".fnm", ".volta", ".asdf", ".local/share/mise",
    ".local/share/fnm", ".local/share/uv", ".local/share/pnpm", ".local/share/pipx", ".local/bin",
    ".local/lib", ".rustup", ".cargo/bin", ".cargo/registry", ".cargo/git", ".cargo/env",
    ".cargo/config.toml", "go", ".sdkman", ".deno", ".bun", "miniconda3", "anaconda3", ".conda",
    ".nix-profile", ".ghcup", ".opam", ".m2/repository", ".gitconfig", ".config/git",
    ".gitignore_global", ".editorconfig",
)
"""Paths below the home folder that are visible and read-only."""

NEVER = (
    ".cargo/credentials*", ".m2/settings*.xml", ".gradle/gradle.properties", ".git-credentials",
    ".config/git/credentials", ".npmrc", ".pypirc", ".netrc", ".config/gh", ".config/glab-cli",
    ".config/anthropic", ".config/gcloud", ".config/hub", ".config/op", ".config/sops", ".ssh",
    ".gnupg", ".aws", ".azure", ".kube", ".docker", ".terraform.d", ".vault-token",
    ".password-store", ".local/share/keyrings", ".mozilla", ".config/google-chrome",
    ".config/chromium", ".config/BraveSoftware", "Library/Keychains", "Library/Cookies",
    ".*_history", ".claude", ".codex", ".gemini",
)
"""Paths below the home folder that are hidden even inside something visible."""

SYSTEM_SECRETS = (
    "etc/shadow*", "etc/gshadow*", "etc/sudoers*", "etc/ssh/ssh_host_*_key", "etc/ssl/private",
    "etc/krb5.keytab", "etc/security/opasswd", "var/lib/docker", "var/lib/containerd",
    "var/lib/kubelet", "var/lib/NetworkManager", "etc/NetworkManager/system-connections",
    "var/spool/cron", "var/backups",
)
"""Paths hidden from commands of root, which could read them as their owner."""

CACHES = (".cache", ".npm", ".gradle")
"""Folders below the home folder that the sandbox has of its own: a poisoned cache would be run
outside, later."""
# fmt: on

_CLOSED = ("denied-file", "denied-folder")
"""A file and a folder in the session's folder that nobody has permission to read."""
_HOMES = ("/home", "/root", "/mnt", "/media", "/srv", "/Users", "/Volumes")
_RUN = "/run"
_EMPTY = (_RUN, "/var/tmp")  # noqa: S108
COPIES, COPIES_INSIDE = "git", "/run/holdfast/git"
"""The folder in that of the session with copies of what is protected, and where a command finds its
own: what other commands reach, such as /tmp, could lead its writing anywhere."""
_SYSTEM = ("/proc", "/dev", "/sys")
_HOST_SOCKETS = "/proc/net/unix"
_KERNEL = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
"""Paths that a process of root could still write in a /proc of its own."""


class Level(StrEnum):
    """The permissions of a command; each level includes those of the levels before it."""

    READ_ONLY = "read-only"
    WORKSPACE = "workspace"
    NETWORK = "workspace + network"
    OUTSIDE = "outside"


_CACHED = (Level.READ_ONLY, Level.WORKSPACE)


class WallError(HoldfastError):
    """The walls cannot be built around this folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Walls:
    """The definition of a session's walls; the level comes with each command."""

    workspace: Path
    session: Path
    """A private folder of the session: its /tmp is made in it."""
    cache: Path
    """A private folder of the workspace: its caches are made in it."""
    home: Path
    search_path: str = ""
    """PATH: its folders stay visible."""
    added: tuple[Path, ...] = ()
    git: tuple[Path, ...] = ()
    """Git folders that are outside or must not be moved (`git_walls`)."""
    readable: tuple[Path, ...] = ()
    """Further folders to read: toolchains, object stores of other repositories."""
    protected: tuple[Path, ...] = ()
    """Paths that are read-only at every level, although in a writable folder."""
    copies: tuple[tuple[Path, Path], ...] = ()
    """Protected paths that a command may write in a copy, with what stands in for them."""
    hidden: tuple[Path, ...] = ()
    """Paths that are never visible, our own folders among them."""
    denied: tuple[Path, ...] = ()
    """Paths that the person's rules deny reading: permission is refused, as a command can tell."""
    opened: tuple[Path, ...] = ()
    """Paths that are readable although inside something hidden, such as skills."""
    sockets: tuple[Path, ...] = ()
    keep_env: tuple[str, ...] = ()
    share_caches: bool = False


Mount = tuple[str, str, str]
"""The kind, the source (for a tmpfs its mode), and the target. Mounts are made in this order. A
"link" is a symbolic link, mounted itself."""


@dataclass(frozen=True, slots=True)
class Plan:
    level: Level
    mounts: tuple[Mount, ...]
    writable: tuple[str, ...]
    temporary: str
    """The folder outside that is /tmp inside."""
    empty: str
    """An empty folder, which hides another one."""
    closed: tuple[str, ...]
    """The file and the folder that replace those nobody may read."""
    movable: tuple[str, ...]
    """Folders in which other commands may rename things while these mounts are made: everything
    mounted below them is opened without following a link, and checked."""

    @property
    def network(self) -> bool:
        """True if it has the network."""
        return self.level is Level.NETWORK


def plan(walls: Walls, level: Level, observed: Observed | None = None) -> Plan:  # noqa: C901, PLR0912, PLR0915 - one order, read from top to bottom
    """Plan the mounts for a level. Reads the file system, by `observed`, and changes nothing: the
    plan is the same as long as that holds. Raises WallError."""
    if level is Level.OUTSIDE:
        raise WallError("A command that runs outside isn't confined.")
    if observed is None:
        from tui.permissions.sandbox.observed import Observed  # noqa: PLC0415 - on demand

        observed = Observed()
    homes = check_workspace(walls, observed)
    writes = level is not Level.READ_ONLY
    roots = [observed.real(path) for path in (walls.workspace, *walls.added)]
    temporary, empty = str(walls.session / "tmp"), str(walls.session / "empty")

    # What is visible, by target; a later entry replaces an earlier one.
    shown: dict[str, Mount] = {}
    covered = (*homes, *_EMPTY, "/tmp")  # noqa: S108
    opened = _existing(observed, map(observed.real, walls.opened))
    for tool in (*_toolchains(walls, homes, observed), *opened):
        real = observed.real(tool)
        for target in dict.fromkeys((real, tool)):
            known = any(_is_within(target, path) for path in (*roots, *shown))
            if not known and _below(target, covered):
                shown[target] = ("ro-bind", real, target)
    for name in () if walls.share_caches else CACHES:
        place = cache_of(walls, level) / name
        shown[f"{walls.home}/{name}"] = ("bind", str(place), f"{walls.home}/{name}")
    for given, real in zip((walls.workspace, *walls.added), roots, strict=True):
        for target in dict.fromkeys((real, str(given))):
            if target == real or _below(target, covered):
                shown[target] = ("bind" if writes else "ro-bind", real, target)
    own = [observed.real(path) for path in walls.git]
    denied = _denied(walls, roots, observed)
    pins = [up for _, _, path in denied for up in _ancestors(path, [*roots, *own])]
    for path in sorted(own):
        if writes or not any(_is_within(path, root) for root in roots):
            shown[path] = ("bind" if writes else "ro-bind", path, path)
    writable = [target for kind, _, target in shown.values() if kind == "bind"]
    if writes:
        for path in _existing(observed, map(observed.real, walls.protected)):
            if _below(path, writable):
                pins += _ancestors(path, [*roots, *own])
                shown[path] = ("ro-bind", path, path)
        for path in pins:  # mounts cannot be moved away
            shown.setdefault(path, ("bind", path, path))
    copies = walls.copies if writes and observed.is_dir(_RUN) else ()
    shown, links = _with_copies(shown, copies, walls.session, observed)
    for path in _existing(observed, map(observed.real, walls.sockets)):
        shown[path] = ("ro-bind", path, path)

    # Outer folders are mounted first, so that inner ones stay visible.
    visible = sorted(shown.values(), key=lambda mount: mount[2].count("/"))
    masks = _masks(walls, covered, [target for _, _, target in visible], roots, observed)
    resolver = observed.real("/etc/resolv.conf")
    if resolver.startswith("/run/") and observed.is_file(resolver):
        visible.insert(0, ("ro-bind", resolver, resolver))
    # A folder that gets mounts inside must be a new one; all others are simply empty.
    own_homes = dict.fromkeys(_existing(observed, map(str, (walls.home, _passwd_home()))))
    inner = [*own_homes, *(target for _, _, target in visible)]
    emptied = [path for path in (*homes, _RUN) if observed.is_dir(path)]
    filled = [path for path in emptied if any(_is_below(place, path) for place in inner)]
    mounts: list[Mount] = [("ro-bind", "/", "/")]
    mounts += [("tmpfs", "1777", path) for path in _EMPTY[1:] if observed.is_dir(path)]
    mounts += [("bind", temporary, "/tmp"), ("proc", "", "/proc"), ("dev", "", "/dev")]  # noqa: S108
    mounts += [("ro-bind", path, path) for path in _existing(observed, _KERNEL) if not os.geteuid()]
    mounts += [
        ("tmpfs", "0755", path) if path in filled else ("ro-bind", empty, path) for path in emptied
    ]
    mounts += [("dir", "", home) for home in own_homes if home not in homes]
    mounts += [*visible, *links]
    for mask in masks:
        mounts += _hiding(mask, empty, [] if _is_in(mask, (*roots, *own)) else opened)
    mounts += [*denied, *(("remount-ro", "", path) for path in filled)]
    writes_to = tuple(writable) if writes else tuple(p for p in writable if p not in roots)
    writable_places = ("/tmp", *writes_to)  # noqa: S108
    return Plan(
        level, tuple(mounts), writable_places, temporary, empty, _closed(walls),
        (*roots, *own),
    )  # fmt: skip


def _with_copies(
    shown: dict[str, Mount], copies: Iterable[tuple[Path, Path]], session: Path, observed: Observed
) -> tuple[dict[str, Mount], tuple[Mount, ...]]:
    """Return what is visible with copies of protected folders, and links to copies of protected
    files, which are mounted on these."""
    pairs = [(observed.real(target), copy) for target, copy in copies]
    pairs = [(path, copy) for path, copy in pairs if path in shown]
    place = observed.real(session / COPIES)
    names = dict.fromkeys(
        observed.real(copy.parent).removeprefix(place).split("/")[1] for _, copy in pairs
    )
    own = {f"{COPIES_INSIDE}/{name}": f"{place}/{name}" for name in names}
    folders = {
        path: ("bind", observed.real(copy), path)
        for path, copy in pairs
        if not observed.is_link(copy)
    }
    links = [
        ("link", f"{observed.real(copy.parent)}/{copy.name}", path)
        for path, copy in pairs
        if observed.is_link(copy)
    ]
    reached: dict[str, Mount] = {inside: ("bind", path, inside) for inside, path in own.items()}
    return {**shown, **folders, **reached}, tuple(links)


def check_workspace(walls: Walls, observed: Observed) -> tuple[str, ...]:
    """Raise WallError if the workspace would expose what the walls hide. Returns the folders that
    are hidden as a whole."""
    homes = _homes(walls, observed)
    for folder in (walls.workspace, *walls.added):
        real = observed.real(folder)
        if any(_is_within(real, place) for place in _SYSTEM):
            raise WallError(f"{folder} belongs to the system and can't be sandboxed.")
        for place in (str(walls.home), observed.real(walls.home), *homes, "/tmp", *_EMPTY):  # noqa: S108
            if _is_within(place, real):
                what = "is" if place == real else f"holds {place},"
                raise WallError(
                    f"{folder} {what} a folder that the walls must hide.",
                    hint="Start Holdfast in the project's folder.",
                )
    return homes


def cache_of(walls: Walls, level: Level) -> Path:
    """The folder of the caches. Those of the read-only level end with the session, so that a
    command that ran without a question leaves nothing that a build with more rights would run."""
    return walls.session / "cache" if level is Level.READ_ONLY else walls.cache


def prepare(walls: Walls) -> None:
    """Make the private folders that the plan binds, and those above them."""
    caches = (cache_of(walls, level) / name for level in _CACHED for name in CACHES)
    for folder in (walls.session / "tmp", walls.session / "empty", *caches):
        if os.path.isdir(folder):  # noqa: PTH112 - much faster
            continue
        for place in reversed((folder, *folder.parents)):
            if not place.exists():
                place.mkdir(mode=0o700, exist_ok=True)
    if walls.denied:
        file, folder = (walls.session / name for name in _CLOSED)
        file.touch(0)
        folder.mkdir(0, exist_ok=True)


@cache
def _passwd_home() -> Path:
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:
        return Path("/nonexistent")


def _homes(walls: Walls, observed: Observed) -> tuple[str, ...]:
    """The folders that are hidden as a whole, none inside another."""
    wanted = {observed.real(path) for path in (*_HOMES, walls.home, _passwd_home())} - {"/"}
    return tuple(
        sorted(
            path
            for path in wanted
            if observed.is_dir(path) and not any(_is_below(path, other) for other in wanted)
        )
    )


def _toolchains(walls: Walls, homes: tuple[str, ...], observed: Observed) -> Iterator[str]:
    for home in dict.fromkeys((walls.home, _passwd_home())):
        yield from _existing(observed, (f"{home}/{name}" for name in TOOLCHAINS))
    yield from _existing(observed, map(str, walls.readable))
    for entry in dict.fromkeys(walls.search_path.split(os.pathsep)):
        if not entry.startswith("/") or not observed.is_dir(entry):
            continue
        folder = str(Path(entry))
        above = os.path.dirname(folder)  # noqa: PTH120
        if observed.is_file(f"{above}/pyvenv.cfg"):
            folder = above
        real = observed.real(folder)
        if not any(_is_within(home, real) for home in (*homes, str(walls.home))):
            yield folder


def _masks(
    walls: Walls, covered: tuple[str, ...], visible: list[str], roots: list[str], observed: Observed
) -> Iterator[Mount]:
    """Yield the masks of single files and folders inside something visible; those without a source
    are hidden by an empty folder."""
    wanted = [*_existing(observed, map(str, walls.hidden)), *_sockets(walls, observed)]
    # The system's files that only root may read: a command of root runs under that name.
    wanted += () if os.geteuid() else _matching("/", SYSTEM_SECRETS, observed)
    for home in dict.fromkeys((walls.home, _passwd_home())):
        wanted += _matching(str(home), NEVER, observed)
    places, emptied = tuple(map(_slashed, visible)), tuple(map(_slashed, covered))
    for path in sorted({observed.real(path) for path in wanted}):
        if any(_is_within(root, path) for root in roots):
            continue  # the person works in it
        if not path.startswith(emptied) or f"{path}/".startswith(places):
            yield "ro-bind", "" if observed.is_dir(path) else "/dev/null", path


def _denied(walls: Walls, roots: list[str], observed: Observed) -> list[Mount]:
    """The replacements for what must not be read in the workspace."""
    places = dict.fromkeys(_existing(observed, map(observed.real, walls.denied)))
    closed = _closed(walls)
    return [
        ("ro-bind", closed[observed.is_dir(path)], path)
        for path in places
        if any(_is_below(path, root) for root in roots)
        and not any(_is_below(path, other) for other in places)
    ]


def _closed(walls: Walls) -> tuple[str, ...]:
    return tuple(str(walls.session / name) for name in _CLOSED)


def _hiding(mask: Mount, empty: str, opened: Iterable[str]) -> list[Mount]:
    """The mounts of a mask: if folders in it are readable nevertheless, a new folder with these."""
    kind, source, path = mask
    inside = [one for one in opened if _is_below(one, path)]
    if source or not inside:
        return [(kind, source or empty, path)]
    shown: list[Mount] = [("ro-bind", one, one) for one in inside]
    return [("tmpfs", "0755", path), *shown, ("remount-ro", "", path)]


def _is_in(mount: Mount, folders: Iterable[str]) -> bool:
    return any(_is_within(mount[2], folder) for folder in folders)


def _matching(folder: str, names: Iterable[str], observed: Observed) -> Iterator[str]:
    """The existing paths for names below a folder; only the last part of a name may have a `*`."""
    for name in names:
        path = os.path.join(folder, name)  # noqa: PTH118 - much faster
        above, _, last = path.rpartition("/")
        if "*" in last:
            yield from (f"{above}/{one}" for one in fnmatch.filter(observed.names(above), last))
        elif observed.exists(path):
            yield path


def _sockets(walls: Walls, observed: Observed) -> Iterator[str]:
    """The sockets of this machine that have a path, except for those opened by name.

    A socket in a readable folder could be connected to, with the network or without.
    """
    opened = {observed.real(path) for path in walls.sockets}
    paths = observed.at(_HOST_SOCKETS, _socket_paths)
    named = {path for path in paths if path.startswith("/")}
    if relative := paths - named:
        places = {str(walls.workspace), *observed.at("/proc", _working_folders)}
        named |= {os.path.join(place, path) for place in places for path in relative}  # noqa: PTH118
    for path in named:
        if observed.exists(path) and observed.real(path) not in opened:
            yield path


def _socket_paths(listed: str) -> frozenset[str]:
    """The paths in the kernel's list of sockets, as they were bound."""
    try:
        with open(listed, "rb") as file:  # noqa: PTH123 - much faster
            lines = file.read().splitlines()
    except OSError:
        return frozenset()
    rows = (line.split(maxsplit=7) for line in lines[1:])
    paths = (os.fsdecode(row[7]) for row in rows if len(row) > 7)
    return frozenset(path for path in paths if not path.startswith("@"))


def _working_folders(processes: str) -> frozenset[str]:
    """The working folders of all processes, where a socket's relative path may begin."""
    found: set[str] = set()
    for process in os.listdir(processes):  # noqa: PTH208 - much faster
        if process.isdigit():
            with suppress(OSError):
                found.add(os.readlink(f"{processes}/{process}/cwd"))  # noqa: PTH115
    return frozenset(found)


def _existing(observed: Observed, paths: Iterable[str]) -> list[str]:
    return list(filter(observed.exists, paths))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or _is_below(path, folder)


def _is_below(path: str, folder: str) -> bool:
    return path.startswith(_slashed(folder)) and path != folder


def _slashed(folder: str) -> str:
    return folder if folder.endswith("/") else f"{folder}/"


def _below(path: str, folders: Iterable[str]) -> bool:
    return any(_is_below(path, folder) for folder in folders)


def _ancestors(path: str, roots: list[str]) -> list[str]:
    """The folders between a protected path and its root: as mounts they cannot be moved away."""
    root = max((root for root in roots if _is_below(path, root)), key=len, default="")
    return [str(up) for up in Path(path).parents if root and _is_below(str(up), root)]

"""Which wall stopped a command, in words for the person and the model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tui.permissions.sandbox.walls import Level, Walls

# fmt: off
_NETWORK = re.compile(
    r"Network is unreachable|ENETUNREACH|EAI_AGAIN|getaddrinfo ENOTFOUND"
    r"|Temporary failure in name resolution|[Cc]ould not resolve host|Name or service not known"
    r"|no such host|Network is down|dial tcp: lookup|failed to lookup address"
)
_READ_ONLY = re.compile(r"Read-only file system|EROFS|errno 30|os error 30", re.IGNORECASE)
_BUSY = re.compile(r"Device or resource busy|EBUSY|Resource busy")
_DENIED = re.compile(r"Permission denied|EACCES|Operation not permitted|EPERM|os error 13")
_ROOM = re.compile(r"unshare|user namespace|CLONE_NEWUSER|bwrap: ")
# fmt: on
_PATH = re.compile(r"(?:['\"‘]|(?<=\s)|^)((?:~|\.{0,2})?/?[^\s'\"’‘:]*[^\s'\"’‘:.,])['\"’]?")
_QUOTED = re.compile(r"['\"‘]([^'\"’]+)['\"’]")
_OWN_SETTINGS = re.compile(r"(?:^|[\s'\"/])\.git/config(?:\.lock)?\b")
_SIGNING = re.compile(r"gpg failed to sign|[Cc]ouldn't (?:get agent socket|load public key)")
_GIT_SETTINGS = re.compile(r"\.git/(?:.*/)?(config|hooks|info|commondir|gitdir)\b")
_NOT_A_PATH = re.compile(r"^[\w-]*$|^\[?errno|^line$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a command needed and did not get. `needs` is "" if only the walls are known, `level`
    what would give it that, None where no wall may have stopped it."""

    needs: str
    walls: str
    level: Level | None = None
    git_settings: bool = False
    """Whether it is the repository's settings that it needs to write."""

    @property
    def text(self) -> str:
        return f"{self.needs}; {self.walls}" if self.needs else self.walls


def walls_in_words(level: Level, walls: Walls) -> str:
    """The walls in force, in one line: a hidden folder only looks as if it did not exist."""
    if level is Level.OUTSIDE:
        return "no walls"
    caches = "your caches" if walls.share_caches else "its own caches"
    writes = "/tmp" if level is Level.READ_ONLY else f"the workspace, {caches} and /tmp"  # noqa: S108
    network = "the network" if level is Level.NETWORK else "only its own loopback"
    return (
        f"ran at the level {level.value}: it could write {writes}, and reach {network}; the rest "
        "of the home folder was hidden"
    )


def explain_failure(
    output: str, level: Level, walls: Walls, *, denies: bool = False
) -> Explanation | None:
    """Say what a command that failed had needed; None if it had no walls.

    `denies`: the walls say "permission denied" (Landlock), which elsewhere has other causes.
    """
    if level is Level.OUTSIDE:
        return None
    for line in reversed(output[-20_000:].splitlines()):
        if needs := _needs(line, level, walls):
            offered = needs[1] if denies or not _DENIED.search(line) else None
            settings = bool(_OWN_SETTINGS.search(line)) and offered is Level.OUTSIDE
            return Explanation(needs[0], walls_in_words(level, walls), offered, settings)
    return Explanation("", walls_in_words(level, walls))


def _needs(line: str, level: Level, walls: Walls) -> tuple[str, Level] | None:
    """What a line of an error says was needed, and the level that has it."""
    if level is not Level.NETWORK and _NETWORK.search(line):
        return "needs the network", Level.NETWORK
    if _SIGNING.search(line):
        return "needs your signing key, which the sandbox hides", Level.OUTSIDE
    path = _path_in(line)
    if _READ_ONLY.search(line) or _BUSY.search(line):
        if _GIT_SETTINGS.search(path) or "config.lock" in line or "lock config" in line:
            words = f"needs to write {path or '.git/config'}, which git runs or trusts later"
            return words, Level.OUTSIDE
        words = f"needs to write {_short(path, walls)}" if path else "needs to write a file"
        return words, _level_of(path, walls)
    if _ROOM.search(line) and (_DENIED.search(line) or "No space left" in line):
        return "needs namespaces of its own, as containers do", Level.OUTSIDE
    if _DENIED.search(line):
        words = f"needs {_short(path, walls)}" if path else "needs what the sandbox denies"
        return words, _level_of(path, walls)
    return None


def _level_of(path: str, walls: Walls) -> Level:
    """What lets a command write a path, as an error names it."""
    if not path.startswith(("/", "~")):
        return Level.OUTSIDE if path.startswith("../") else Level.WORKSPACE
    roots = (walls.workspace, *walls.added, *walls.git)
    within = any(path == str(root) or path.startswith(f"{root}/") for root in roots)
    return Level.WORKSPACE if within else Level.OUTSIDE


def _path_in(line: str) -> str:
    """The path that an error's line names: the last in quotes, else the last with a slash."""
    quoted = [text for text in _QUOTED.findall(line) if "\n" not in text]
    if quoted:
        return quoted[-1]
    plain = [text for text in _PATH.findall(line) if "/" in text and not _NOT_A_PATH.match(text)]
    return plain[-1] if plain else ""


def _short(path: str, walls: Walls) -> str:
    home = f"{walls.home}/"
    return f"~/{path.removeprefix(home)}" if path.startswith(home) else path

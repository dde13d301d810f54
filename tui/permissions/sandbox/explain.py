"""The wall that stopped a command, in words for the person and the model.

The output of a program only shows that it met a wall, never where: what it needs is taken from the
command's own words (`named_needs`) and from what the walls let it write.
"""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from errno import EACCES, EBUSY, ENETUNREACH, EPERM, EROFS
from functools import cache
from pathlib import Path

from tui.core.dataclass import dataclass
from tui.core.late_pattern import late_pattern
from tui.permissions.named_needs import NamedNeeds
from tui.permissions.sandbox.walls import Level, Walls

# fmt: off
_NETWORK = (
    r"Network is unreachable|ENETUNREACH|EAI_AGAIN|getaddrinfo ENOTFOUND"
    r"|Temporary failure in name resolution|[Cc]ould not resolve host|Name or service not known"
    r"|no such host|Network is down|dial tcp: lookup|failed to lookup address"
)
_READ_ONLY = (
    r"Read-only file system|EROFS|errno[:=\] ]*-?30\b|os error 30"
    r"|unable to open database file|attempt to write a readonly database"
)
_BUSY = r"Device or resource busy|EBUSY|Resource busy"
_DENIED = r"Permission denied|EACCES|Operation not permitted|EPERM|os error 13|errno[:=\] ]*-?13\b"
_ROOM = late_pattern(r"unshare|user namespace|CLONE_NEWUSER|bwrap: ")
# fmt: on
_RESOLVER = ("Name or service not known", "Temporary failure in name resolution")
_OWN_SETTINGS = late_pattern(r"\.git/(?:[^\s'\"]*/)?config\b|config\.lock|lock config")
_SETS = frozenset({"config", "remote", "branch", "submodule", "switch", "checkout", "worktree"})
"""Subcommands of git that write the repository's settings."""
_SIGNING = late_pattern(r"gpg failed to sign|[Cc]ouldn't (?:get agent socket|load public key)")
_LOCALES = "/usr/share/locale"
_LAST = 20_000
"""Characters of an output that are examined."""
_SOME_FILE = "needs to write a file that the sandbox keeps read-only"
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Explanation:
    """Something that a command needed and did not get. `needs` is "" if only the walls are known;
    `level` would provide it, None if no wall may have stopped it."""

    needs: str
    walls: str
    level: Level | None = None
    tried: bool = False
    """True if the place is not known, and the level is suggested because the previous one was
    tried."""

    @property
    def text(self) -> str:
        return f"{self.needs}; {self.walls}" if self.needs else self.walls


def walls_in_words(level: Level, walls: Walls) -> str:
    """Describe the walls in force in one line: a hidden folder just seems not to exist."""
    if level is Level.OUTSIDE:
        return "no walls"
    caches = "your caches" if walls.share_caches else "its own caches"
    writes = "/tmp" if level is Level.READ_ONLY else f"the workspace, {caches} and /tmp"  # noqa: S108
    network = "the network" if level is Level.NETWORK else "only its own loopback"
    return (
        f"ran at the level {level.value}: it could write {writes}, and reach {network}; the rest "
        "of the home folder was hidden"
    )


@dataclass(frozen=True, slots=True)
class Met:
    """The walls that a command met according to its output: for each the last line that says so."""

    network: str = ""
    writing: str = ""
    namespaces: str = ""
    signing: str = ""

    @classmethod
    def in_output(cls, output: str, languages: Iterable[str], *, denies: bool) -> Met:
        """Search an output. `denies`: the walls say "permission denied" (Landlock), which elsewhere
        has other causes."""
        network, writing, denied = _patterns(tuple(languages))
        lines_met: dict[str, str] = {}
        for line in output[-_LAST:].splitlines():
            refused = denied.search(line) is not None
            if network.search(line):
                lines_met["network"] = line
            if writing.search(line) or (denies and refused):
                lines_met["writing"] = line
            if _ROOM.search(line) and (refused or "No space left" in line):
                lines_met["namespaces"] = line
            if _SIGNING.search(line):
                lines_met["signing"] = line
        return cls(**lines_met)


def explain_failure(
    met: Met,
    level: Level,
    walls: Walls,
    named: NamedNeeds,
    *,
    failed: bool = True,
    signs: bool = False,
) -> Explanation | None:
    """Explain what a command needed when it met walls; None if it had none.

    `signs`: git signs here. The suggested level is the next one up; "outside" only if the command
    names a place there, or if the workspace level was tried.
    """
    if level is Level.OUTSIDE:
        return None
    in_force = walls_in_words(level, walls)
    if met.signing and (signs or named.signs) and named.git:
        return Explanation(
            "needs your signing key, which the sandbox hides", in_force, Level.OUTSIDE
        )
    # A file outside is the likelier cause than git's settings.
    sets = not _SETS.isdisjoint(named.git) and not named.outside
    if sets and _OWN_SETTINGS.search(met.writing):
        needs = "needs to write .git/config, which git runs or trusts later"
        if level is Level.READ_ONLY:
            return Explanation(needs, in_force, Level.WORKSPACE)
        return Explanation(f"{needs}: git can do that if it is the whole command", in_force)
    if met.writing or _in_silence(level, named, failed=failed):
        return _writing(met, level, walls, named, in_force, offered=failed or named.writes)
    if (met.network or (failed and named.fetches)) and level is not Level.NETWORK:
        return Explanation("needs the network", in_force, Level.NETWORK if failed else None)
    if met.namespaces:
        wider = None if level is Level.READ_ONLY or not failed else Level.OUTSIDE
        needs = "needs namespaces of its own, as containers do"
        return Explanation(needs, in_force, wider, tried=True)
    return Explanation("", in_force)


def _in_silence(level: Level, named: NamedNeeds, *, failed: bool) -> bool:
    """True if a command that failed without mentioning a wall is meant to write: `git stash`."""
    return level is Level.READ_ONLY and failed and (named.writes or bool(named.files))


def _writing(
    met: Met, level: Level, walls: Walls, named: NamedNeeds, in_force: str, *, offered: bool
) -> Explanation:
    wider = Level.WORKSPACE if level is Level.READ_ONLY else Level.OUTSIDE
    tried = wider is Level.OUTSIDE
    if place := named.outside_in(met.writing):
        needs, wider, tried = f"needs to write {_short(place, walls)}", Level.OUTSIDE, False
    elif named.files and level is Level.READ_ONLY:
        files = [_short(path, walls) for path in named.files]
        more = [f"{len(files) - _SHOWN} more"] if len(files) > _SHOWN else []
        needs = f"needs to write {', '.join([*files[:_SHOWN], *more])}"
    else:
        needs = _SOME_FILE
    if (met.network or named.fetches) and wider is Level.WORKSPACE:
        needs, wider = f"{needs}, and the network", Level.NETWORK
    return Explanation(needs, in_force, wider if offered or named.files else None, tried=tried)


def languages_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The languages that a command's errors may be in, besides English."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name):
            return (*environment.get("LANGUAGE", "").split(":"), value)
    return ()


@cache
def _patterns(
    languages: tuple[str, ...],
) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Patterns for a refused network, for refused writing, and for errors that may mean either."""

    def pattern(english: str, *texts: str) -> re.Pattern[str]:
        own = (re.escape(text) for text in _translated(texts, languages))
        return re.compile("|".join((english, *own)), re.IGNORECASE)

    return (
        pattern(_NETWORK, os.strerror(ENETUNREACH), *_RESOLVER),
        pattern(f"{_READ_ONLY}|{_BUSY}", os.strerror(EROFS), os.strerror(EBUSY)),
        pattern(_DENIED, os.strerror(EACCES), os.strerror(EPERM)),
    )


def _translated(texts: Iterable[str], languages: tuple[str, ...]) -> Iterator[str]:
    """The system's own messages in a person's languages, as its programs print them."""
    for language in filter(None, languages):
        try:
            catalogue = gettext.translation("libc", _LOCALES, [language])
        except (OSError, ValueError, UnicodeError):
            continue
        yield from filter(None, map(catalogue.gettext, texts))


def _short(path: Path, walls: Walls) -> str:
    for folder, sign in ((walls.workspace, ""), (walls.home, "~/")):
        if folder in path.parents:
            return f"{sign}{path.relative_to(folder)}"
    return str(path)

"""The part of a project that a check runs on: its folder, and what it is narrowed to. Pure."""

from __future__ import annotations

import os
import shlex
from typing import Final, NamedTuple

from tui.context.timeline.check_line import CHECK, arguments_of, without_texts
from tui.core.late_pattern import late_pattern

_MOVE: Final = late_pattern(
    r"(?:^|[;&|({\n'\"])\s*(?:builtin\s+|command\s+)?(?P<move>cd|pushd|popd)(?:\s+-[LPe@]+)*"
    r"(?:\s+--)?(?:[ \t]+(?P<to>[^\s;&|()<>]+))?\s*(?=[;&|})\n'\"]|$)"
)
_APART: Final = late_pattern(r"\([^()]*\)")
"""A subshell, whose folder ends with it."""
_NARROWED: Final = frozenset(
    {"--lf", "--last-failed", "--onlyChanged", "--onlyFailures", "--changed"}
)
_NARROWING: Final = late_pattern(
    r"-[kmtge]|--?run|--(?:grep|filter|testNamePattern|deselect|ignore|package|test|bin)"
)
"""Options that take a part of what there is to check, by the word after them."""
_VALUED: Final = late_pattern(r"--.*|-[ncopPWjr]")
"""Options after which a word may be their own."""
_WHOLE: Final = frozenset({"", ".", "...", "--"})


class CheckScope(NamedTuple):
    """The part that a run of a check is about. `paths` are what it is narrowed to, as seen from
    where the session began; `options` choose a part of that by other means."""

    folder: str
    paths: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    def includes(self, other: CheckScope) -> bool:
        """True if it is about all that another run of the same check was about."""
        if not set(self.options) <= set(other.options):
            return False
        if not self.paths:
            return self.folder == other.folder
        return all(
            any(one == path or one.startswith((f"{path}/", f"{path}::")) for path in self.paths)
            for one in other.paths or (other.folder,)
        )

    def moved(self, old: str, new: str) -> CheckScope:
        """Return it as seen from a folder of which the other one is a copy."""

        def to(path: str) -> str:
            return new + path[len(old) :] if path == old or path.startswith(f"{old}/") else path

        return self._replace(folder=to(self.folder), paths=tuple(map(to, self.paths)))


def scope_of(command: str, folder: str) -> CheckScope:
    """Find the part that the check of a command line is about, by its words."""
    line = without_texts(command)
    found = CHECK.search(line)
    if found is None:
        return CheckScope(folder)
    folder = folder_after(command, folder, end=found.start("check"))
    paths: dict[str, None] = {}
    options: dict[str, None] = {}
    before = ""
    given = command[found.end() : found.end() + len(arguments_of(line, found))]
    for word in (one.rstrip(")}'\"") for one in given.split()):
        name, equals, value = word.partition("=")
        if _NARROWING.fullmatch(before):
            options[f"{before} {word}"] = None
        elif equals and _NARROWING.fullmatch(name):
            options[f"{name} {value}"] = None
        elif word in _NARROWED:
            options[word] = None
        elif word and not word.startswith("-") and _is_path(word, before):
            paths[_plain(word)] = None
        before = word
    kept = tuple(_joined(folder, one) for one in paths if one not in _WHOLE)
    return CheckScope(folder, kept, tuple(options))


def folder_after(command: str, folder: str, *, end: int | None = None) -> str:
    """Find the folder that a shell is in after a line, or at a place in it, where its `cd` worked.
    What only the shell knows, such as `$DIR`, stays as it is written."""
    line = without_texts(command)[:end]
    while (inner := _APART.sub(lambda found: "_" * len(found[0]), line)) != line:
        line = inner
    here = before = os.path.normpath(folder or ".")
    for found in _MOVE.finditer(line):
        to = _unquoted(command[found.start("to") : found.end("to")]) if found["to"] else "~"
        back = found["move"] == "popd" or to == "-"
        here, before = before if back else _joined(here, to), here
    return here


def _joined(folder: str, to: str) -> str:
    return os.path.normpath(os.path.join(folder or ".", to))  # noqa: PTH118 - may be of elsewhere


def _unquoted(word: str) -> str:
    try:
        return "".join(shlex.split(word))
    except ValueError:
        return word


def _is_path(word: str, before: str) -> bool:
    if word.isdigit() or word[0] in "\\<>" or word[1:2] == ">" or before.endswith((">", "<")):
        return False
    return not _VALUED.fullmatch(before) or any(sign in word for sign in ("/", "::", "."))


def _plain(path: str) -> str:
    return path.removeprefix("./").removesuffix("...").rstrip("/")

"""The machine: what is installed, and what the terminal can show."""

from __future__ import annotations

import locale
import os
import platform
import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata

import tui
from tui.app.doctor.check import Check, Subject
from tui.tools.search import ripgrep

OLDEST = (3, 11)
SMALL = (80, 24)

_REQUIREMENT = re.compile(r"([A-Za-z0-9._-]+)\s*([^;]*)(;.*)?")
_REINSTALL = "Install it again: pip install --force-reinstall holdfast"


def program(_: Subject) -> Iterator[Check]:
    """The program itself and its Python."""
    version = platform.python_version()
    what = f"holdfast {tui.__version__}, Python {version} on {platform.system()}"
    if sys.version_info < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        yield Check("program", "fail", what, f"Python {oldest} is the oldest that works.")
    else:
        yield Check("program", "ok", what)


def packages(_: Subject) -> Iterator[Check]:
    """The libraries that the program needs, in the versions that it asks for."""
    try:
        wanted = metadata.requires("holdfast") or []
    except metadata.PackageNotFoundError:
        yield Check("packages", "warn", "holdfast runs without being installed", _REINSTALL)
        return
    missing: list[str] = []
    other: list[str] = []
    count = 0
    for line in wanted:
        found = _REQUIREMENT.fullmatch(line.strip())
        if found is None or "extra" in (found[3] or ""):
            continue
        name, versions = found[1], found[2].strip()
        count += 1
        try:
            there = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if not satisfies(there, versions):
            other.append(f"{name} {there} (wanted {versions})")
    if missing:
        yield Check("packages", "fail", f"missing: {', '.join(missing)}", _REINSTALL)
    if other:
        yield Check("packages", "warn", f"other versions: {', '.join(other)}", _REINSTALL)
    if not missing and not other:
        yield Check("packages", "ok", f"all {count} are there, in versions that fit")


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version is within `==`, `>=`, `<=`, `>`, `<` bounds; other bounds count as met."""
    have = _numbers(version)
    for part in filter(None, (one.strip() for one in wanted.strip("()").split(","))):
        match = re.fullmatch(r"(==|>=|<=|>|<)\s*([0-9.]+)", part)
        if match is None:
            continue
        bound = _numbers(match[2])
        width = max(len(have), len(bound))
        one, two = (numbers + (0,) * (width - len(numbers)) for numbers in (have, bound))
        met = {"==": one == two, ">=": one >= two, "<=": one <= two, ">": one > two, "<": one < two}
        if not met[match[1]]:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def terminal(what: Subject) -> Iterator[Check]:
    """Its size, its colours, its characters, and what stands in between."""
    env = what.env
    size = _size()
    if size is None:
        yield Check("terminal", "ok", "not a terminal here: only -p, sessions and the like work")
    else:
        columns, rows = size
        said = f"{env.get('TERM_PROGRAM') or env.get('TERM') or 'unknown'}, {columns} × {rows}"
        if env.get("TERM", "dumb") == "dumb":
            yield Check(
                "terminal", "warn", said, "TERM is dumb or not set: plain lines, no full screen."
            )
        elif columns < SMALL[0] or rows < SMALL[1]:
            yield Check("terminal", "warn", said, "It is made for 80 × 24 and more.")
        else:
            yield Check("terminal", "ok", said)
        yield _colours(env.get("NO_COLOR", ""), env.get("COLORTERM", ""), env.get("TERM", ""), what)
    encoding = locale.getpreferredencoding(False)
    if encoding.replace("-", "").lower() == "utf8":
        yield Check("characters", "ok", encoding)
    else:
        yield Check(
            "characters", "warn", f"{encoding}: lines and signs may be drawn as ?",
            "Set a UTF-8 locale: export LANG=C.UTF-8",
        )  # fmt: skip
    if env.get("TMUX"):
        hint = "Where Esc is slow: set -sg escape-time 10; to copy: set -g set-clipboard on"
        yield Check("tmux", "ok", "inside tmux", hint)
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        hint = "Copying needs a terminal that takes OSC 52; a session is best kept in tmux."
        yield Check("ssh", "ok", "over SSH", hint)


def _size() -> tuple[int, int] | None:
    for number in (1, 0, 2):
        if os.isatty(number):
            columns, rows = os.get_terminal_size(number)
            return columns, rows
    return None


def _colours(off: str, depth: str, term: str, what: Subject) -> Check:
    if off:
        return Check("colours", "ok", "none: NO_COLOR is set")
    if depth in {"truecolor", "24bit"}:
        return Check("colours", "ok", "16 million")
    fix = "If the terminal has more: export COLORTERM=truecolor"
    if what.env.get("TMUX"):
        fix = 'In tmux.conf: set -ga terminal-features ",*:RGB", then COLORTERM=truecolor'
    many = "256" if "256" in term else "16"
    return Check("colours", "ok" if many == "256" else "warn", many, fix)


def programs(_: Subject) -> Iterator[Check]:
    """Programs that tools and the batch runner use."""
    rg = ripgrep()
    if rg:
        yield Check("ripgrep", "ok", str(rg))
    else:
        yield Check("ripgrep", "warn", "not found: nothing can be searched", "Install ripgrep.")
    if git := shutil.which("git"):
        yield Check("git", "ok", git)
    else:
        yield Check("git", "warn", "not found", "Install git: tasks of a task file need it or jj.")
    jj = shutil.which("jj")
    yield Check("jj", "ok", jj or "not found, and not needed where git is")

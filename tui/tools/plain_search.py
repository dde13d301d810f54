"""Searches files where there is no ripgrep: a program with the options of ripgrep that
`tui.tools.search` uses, and its output. It uses the standard library alone.

It walks by folder handles without links. The differences: the expressions are Python's, of the
ignore files it knows `.gitignore`, `.ignore` and `.rgignore` (not the person's global one), and it
gives up after a minute, since some expressions never end on some lines.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final, NoReturn

from tui.core.dataclass import dataclass, field
from tui.core.real_folders import RealFolders

_SECONDS: Final = 60
_LINE: Final = 1 << 20
_HEAD: Final = 1 << 16
_RULES_BYTES: Final = 1 << 20
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WIDE: Final = (b"\xff\xfe", b"\xfe\xff")
_CUT: Final = b" [... omitted end of long line]"


@dataclass(frozen=True, slots=True)
class _Pattern:
    """One line of an ignore file, or one glob. `takes` is True if it starts with "!"."""

    matches: re.Pattern[str]
    takes: bool
    folders_only: bool


def _pattern(line: str) -> _Pattern | None:
    """Parse a line; None for one without a pattern."""
    text = line.rstrip("\r\n")
    text = text if text.endswith("\\ ") else text.rstrip(" ")
    if not text or text.startswith("#"):
        return None
    takes = text.startswith("!")
    text = text.removeprefix("!")
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    try:
        compiled = re.compile(
            ("" if anchored else "(?:.*/)?") + _translated(text.removeprefix("/"))
        )
    except re.error:
        return None
    return _Pattern(compiled, takes, folders_only)


def _translated(glob: str) -> str:
    """Translate a glob to an expression for a path: `**` alone stands for folders."""
    parts: list[str] = []
    depth = 0
    for piece in re.findall(r"\*\*/|/\*\*\Z|\*+|\?|\[\^?!?\]?[^\]]*\]|\\.|.", glob, re.DOTALL):
        if piece == "**/":
            parts.append("(?:.*/)?")
        elif piece == "/**":
            parts.append("/.+")
        elif piece.startswith("*"):
            parts.append("[^/]*")
        elif piece == "?":
            parts.append("[^/]")
        elif piece.startswith("[") and len(piece) > 2:
            inner = piece[1:-1]
            negated = inner[:1] in {"!", "^"}
            inner = inner[negated:].replace("\\", "\\\\").replace("[", "\\[")
            parts.append(f"[{'^/' if negated else ''}{inner}]")
        elif piece == "{" or (depth and piece in {",", "}"}):
            depth += {"{": 1, "}": -1}.get(piece, 0)
            parts.append({"{": "(?:", ",": "|", "}": ")"}[piece])
        else:
            parts.append(re.escape(piece[1:] if len(piece) == 2 else piece))
    return "".join(parts) + r"\Z"


def _last(patterns: Sequence[_Pattern], path: str, *, folder: bool) -> bool | None:
    """Return `takes` of the last pattern that matches; None if none does."""
    for one in reversed(patterns):
        if (folder or not one.folders_only) and one.matches.match(path):
            return one.takes
    return None


@dataclass(slots=True)
class _Walk:
    """The files below the working folder that are not ignored, in the order of their paths."""

    folders: RealFolders
    globs: list[_Pattern]
    names: tuple[str, ...]
    """Names of the ignore files; later ones take precedence."""
    above: list[tuple[str, list[_Pattern]]] = field(
        default_factory=list[tuple[str, "list[_Pattern]"]]
    )
    """Rules of the folders above, with the path from there to here."""
    failed: bool = False

    def files(self) -> Iterator[str]:
        yield from self._within("", [])

    def _within(self, folder: str, rules: list[tuple[str, list[_Pattern]]]) -> Iterator[str]:
        try:
            at = self.folders.open(os.fsencode(folder), os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            self.failed = True
            return
        try:
            entries = sorted(os.listdir(at))  # noqa: PTH208 - of an open folder
            kinds = {name: _kind(name, at) for name in entries}
        finally:
            os.close(at)
        for name in (name for name in self.names if name in kinds):
            path = f"{folder}/{name}" if folder else name
            rules = [*rules, (folder, self._rules(path))]
        for name in entries:
            path, kind = (f"{folder}/{name}" if folder else name), kinds[name]
            if kind == stat.S_IFDIR and self._counts(path, rules, folder=True):
                yield from self._within(path, rules)
            elif kind == stat.S_IFREG and self._counts(path, rules, folder=False):
                yield path

    def _rules(self, path: str) -> list[_Pattern]:
        with (
            suppress(OSError),
            os.fdopen(self.folders.open(os.fsencode(path), _READ), "rb") as file,
        ):
            return _patterns(file)
        return []

    def _counts(self, path: str, rules: list[tuple[str, list[_Pattern]]], *, folder: bool) -> bool:
        chosen = _last(self.globs, path, folder=folder)
        if chosen is not None:
            return not chosen  # in a glob, "!" means to exclude
        if not folder and any(not one.takes for one in self.globs):
            return False
        for place, patterns in reversed(rules):
            inner = path.removeprefix(f"{place}/") if place else path
            if (verdict := _last(patterns, inner, folder=folder)) is not None:
                return verdict
        for here, patterns in self.above:
            if (verdict := _last(patterns, f"{here}/{path}", folder=folder)) is not None:
                return verdict
        return True


def _kind(name: str, folder: int) -> int:
    with suppress(OSError):
        return stat.S_IFMT(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return 0


def _patterns(file: BinaryIO) -> list[_Pattern]:
    lines = file.read(_RULES_BYTES).decode("utf-8-sig", "surrogateescape").splitlines()
    return [one for line in lines if (one := _pattern(line)) is not None]


def _repository(here: Path) -> Path | None:
    """Return the git repository's folder around this one."""
    return next((up for up in (here, *here.parents) if os.path.lexists(up / ".git")), None)


def _rules_above(
    here: Path, top: Path | None, names: tuple[str, ...]
) -> list[tuple[str, list[_Pattern]]]:
    """Return the rules of the folders above, the nearest first, up to the repository's own, and
    those of its `info/exclude`."""
    rules_at: list[tuple[str, list[_Pattern]]] = []
    if top is None:
        return rules_at
    places = [(up, name) for up in here.parents if up.is_relative_to(top) for name in names]
    for folder, file in [*places, (top, ".git/info/exclude")]:
        with suppress(OSError), (folder / file).open("rb") as rules:
            inner = here.relative_to(folder).as_posix()
            rules_at.append((inner, _patterns(rules)))
    return [(inner, rules) for inner, rules in rules_at if inner != "."] + [
        ("", rules) for inner, rules in rules_at if inner == "."
    ]


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a text, without line ends."""
    head = file.read(len(_WIDE[0]))
    if head in _WIDE:
        yield from (head + file.read()).decode("utf-16", "replace").encode().splitlines()
        return
    file.seek(0)
    file.seek(3 if file.read(3) == b"\xef\xbb\xbf" else 0)
    while line := file.readline(_LINE):
        yield line.rstrip(b"\n").removesuffix(b"\r")


def _nul(file: BinaryIO) -> int:
    """Return the place of a NUL at the beginning of a file that is no wide text; -1 for none."""
    head = file.read(_HEAD)
    file.seek(0)
    return -1 if head[:2] in _WIDE else head.find(b"\0")


@dataclass(slots=True)
class _Searcher:
    """Prints the matches in files."""

    pattern: re.Pattern[str]
    options: argparse.Namespace
    found: bool = False

    def search(self, name: bytes, opened: int) -> None:
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                return
            self._print(name, file)

    def _print(self, name: bytes, file: BinaryIO) -> None:
        """Print the matches in a file; from a NUL on, only that there is one, or nothing."""
        before: list[tuple[int, bytes]] = []
        context, after, matches, write = self.options.context, 0, 0, sys.stdout.buffer.write
        nul, place = -1 if self.options.text else _nul(file), 0
        for number, line in enumerate(_lines(file), 1):
            full = bool(self.options.max_count) and matches >= self.options.max_count
            if full and not after:
                return
            if nul < 0 and not self.options.text and b"\0" in line:
                nul = place + line.index(b"\0")
            if nul >= 0 and not self.options.binary:
                return
            place += len(line) + 1
            if not full and self.pattern.search(line.decode("utf-8", "surrogateescape")):
                if nul >= 0:
                    self.found = True
                    write(b'%s: binary file matches (found "\\0" byte around offset %d)\n'
                          % (name, nul))  # fmt: skip
                    return
                for earlier, words in before:
                    write(self._line(name, earlier, b"-", words))
                write(self._line(name, number, b":", line))
                before, after, matches, self.found = [], context, matches + 1, True
            elif nul >= 0:
                after = 0
            elif after:
                after -= 1
                write(self._line(name, number, b"-", line))
            elif context:
                before = [*before, (number, line)][-context:]

    def _line(self, name: bytes, number: int, mark: bytes, line: bytes) -> bytes:
        most = self.options.max_columns
        if most and len(line) > most:
            line = line[:most].decode("utf-8", "ignore").encode() + _CUT
        return b"%s\0%d%s%s\n" % (name, number, mark, line)


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(add_help=False)
    for name in ("no-config", "no-messages", "hidden", "null", "no-ignore", "files", "no-heading",
                 "with-filename", "line-number", "crlf", "max-columns-preview", "ignore-case",
                 "fixed-strings", "text", "binary"):  # fmt: skip
        parser.add_argument(f"--{name}", action="store_true")
    for name in ("color", "sort", "engine"):
        parser.add_argument(f"--{name}")
    for name in ("max-count", "max-columns", "context"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--glob", action="append", default=[])
    parser.add_argument("--regexp", default="")
    parser.add_argument("paths", nargs="+")
    return parser.parse_args()


def _give_up(*_: object) -> NoReturn:
    sys.stdout.flush()
    os.write(2, f"it took longer than {_SECONDS} s; make the expression simpler\n".encode())
    os._exit(2)


def main() -> None:
    """Search as the command line tells; exit codes are ripgrep's."""
    signal.signal(signal.SIGALRM, _give_up)
    signal.alarm(_SECONDS)
    options = _parsed()
    pattern = re.escape(options.regexp) if options.fixed_strings else options.regexp
    try:
        searcher = _Searcher(re.compile(pattern, re.IGNORECASE * options.ignore_case), options)
    except (re.error, RecursionError, OverflowError) as error:
        os.write(2, f"regex parse error (ripgrep isn't installed): {error}\n".encode())
        sys.exit(2)
    # Paths without a final slash are the files to search.
    if not options.paths[0].endswith("/"):
        for path in options.paths:
            searcher.search(os.fsencode(path), os.open(path, _READ))
        sys.exit(0 if searcher.found else 1)
    here = Path.cwd()
    top = None if options.no_ignore else _repository(here)
    names = (*((".gitignore",) if top else ()), ".ignore", ".rgignore")
    names = () if options.no_ignore else names
    globs = [one for glob in options.glob if (one := _pattern(glob)) is not None]
    with RealFolders(here) as folders:
        walk = _Walk(folders, globs, names, _rules_above(here, top, names))
        for path in walk.files():
            name = b"./" + os.fsencode(path)
            if options.files:
                sys.stdout.buffer.write(name + b"\0")
                searcher.found = True
                continue
            try:
                searcher.search(name, folders.open(name[2:], _READ))
            except OSError:
                walk.failed = True
    sys.stdout.flush()
    sys.exit(2 if walk.failed else 0 if searcher.found else 1)

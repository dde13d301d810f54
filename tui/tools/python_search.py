"""A small stand-in for ripgrep, in plain Python, run as a script of its own.

A process, not a thread: a regular expression that never ends would hold up the whole program.
It prints what `rg --null` prints, for the options that the tools use; it knows the exclusions
and binary files, but no ignore files. Only the standard library may be imported here.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import signal
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import BinaryIO

SECONDS = 60
LINE_BYTES = 1 << 20
OMITTED = b" [... omitted end of long line]"

Matcher = Callable[[str], bool]


@dataclass(frozen=True)
class SearchOrder:
    """What to do. Without a pattern the files are listed. `name` is the one file to search."""

    excluded: tuple[str, ...]
    pattern: str | None = None
    name: str | None = None
    glob: str | None = None
    literal: bool = False
    case_insensitive: bool = False
    context: int = 0
    columns: int = 500

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def glob_matcher(glob: str) -> Matcher:
    """A test of relative paths. A glob without a slash is about the name, at any depth.

    Knows `*`, `?`, `[…]`, `{a,b}`, `**` as a whole part, and a leading `!` for "not".
    """
    if glob.startswith("!"):
        positive = glob_matcher(glob[1:])
        return lambda path: not positive(path)
    choices = [_parts(choice) for choice in islice(_braces(glob), 256)]
    return lambda path: any(_matches(parts, path.split("/")) for parts in choices)


def _parts(glob: str) -> list[re.Pattern[str] | None]:
    """The glob's parts; None stands for `**`, any number of folders."""
    names = glob.removeprefix("./").split("/")
    if names[-1] == "":
        names[-1] = "**"
    if len(names) == 1:
        names.insert(0, "**")
    elif names[0] == "":
        names.pop(0)
    return [None if name == "**" else re.compile(fnmatch.translate(name)) for name in names]


def _matches(parts: list[re.Pattern[str] | None], names: list[str]) -> bool:
    """Whether all names are used up by all parts; quadratic at most."""
    reached = {0}
    for index, part in enumerate(parts):
        if part is None:
            least = min(reached, default=len(names))
            # A last `**` stands for what is in the folder, so for one name at least.
            reached = set(range(least + (index == len(parts) - 1), len(names) + 1))
        else:
            reached = {n + 1 for n in reached if n < len(names) and part.match(names[n])}
    return len(names) in reached


def _braces(glob: str) -> Iterator[str]:
    """`a{b,c}` as `ab` and `ac`. Braces that do not close stand for themselves."""
    found = re.search(r"\{([^{}]*)\}", glob)
    if found is None:
        yield glob
        return
    for choice in found[1].split(","):
        yield from _braces(glob[: found.start()] + choice + glob[found.end() :])


def _walk(excluded: frozenset[bytes]) -> Iterator[bytes]:
    """Regular files below the working directory, by name; symlinks are not followed."""
    stack = [b"."]
    while stack:
        path = stack.pop()
        try:
            if path != b"." and not stat.S_ISDIR(os.lstat(path).st_mode):
                yield path
                continue
            with os.scandir(path) as found:
                entries = [
                    e.path
                    for e in found
                    if e.name not in excluded
                    and (e.is_dir(follow_symlinks=False) or e.is_file(follow_symlinks=False))
                ]
        except OSError:
            continue
        stack.extend(sorted(entries, reverse=True))


def _open(path: bytes, *, binary: bool) -> BinaryIO | None:
    """A regular file, at its start; None for anything else, and for binary files unless wanted."""
    try:
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError:
        return None
    regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    if regular and (binary or b"\0" not in file.read(8192)):
        file.seek(0)
        return file
    file.close()
    return None


def _search(path: bytes, order: SearchOrder, wanted: re.Pattern[str], out: BinaryIO) -> bool:
    """Print the matching lines of a file, with context. Whether there was one."""
    if (file := _open(path, binary=order.name is not None)) is None:
        return False
    before: deque[bytes] = deque(maxlen=order.context)
    after, number, found = 0, 1, False
    with file:
        while raw := file.readline(LINE_BYTES):
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if wanted.search(line):
                out.writelines(path + b"\0" + earlier for earlier in before)
                out.write(path + b"\0" + _shown(f"{number}:", line, order.columns))
                before.clear()
                after, found = order.context, True
            elif after:
                out.write(path + b"\0" + _shown(f"{number}-", line, order.columns))
                after -= 1
            else:
                before.append(_shown(f"{number}-", line, order.columns))
            number += raw.endswith(b"\n")
    return found


def _shown(mark: str, line: str, columns: int) -> bytes:
    data = line.encode()
    if len(data) > columns:
        data = data[:columns].decode("utf-8", "ignore").encode() + OMITTED
    return mark.encode() + data + b"\n"


def main(order: SearchOrder, out: BinaryIO) -> int:
    """Exit codes are ripgrep's: 0 found, 1 nothing found, 2 an error."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS)  # its signal ends the process
    wanted = None
    if order.pattern is not None:
        pattern = re.escape(order.pattern) if order.literal else order.pattern
        try:
            wanted = re.compile(pattern, re.IGNORECASE if order.case_insensitive else 0)
        except re.error as error:
            sys.stderr.write(f"regex parse error: {error}\n")
            return 2
    found = False
    if order.name is not None:
        paths: Iterator[bytes] = iter([b"./" + os.fsencode(order.name)])
    else:
        paths = _walk(frozenset(map(os.fsencode, order.excluded)))
        if order.glob is not None:
            fits = glob_matcher(order.glob)
            paths = (path for path in paths if fits(os.fsdecode(path[2:])))
    for path in paths:
        if wanted is None:
            out.write(path + b"\0")
            found = True
        else:
            found |= _search(path, order, wanted, out)
            out.flush()
    out.flush()
    return 0 if found else 1


if __name__ == "__main__":
    try:
        sys.exit(main(SearchOrder(**json.loads(sys.argv[1])), sys.stdout.buffer))
    except BrokenPipeError:
        os._exit(0)

"""A program that runs a command which only reads, and shows its output only if every folder on the
paths that it reads stayed the same.

Without walls such a command was allowed for what its words name, and the shell opens that by path
later: if a folder is replaced by a link in between, it leads out of the workspace. Each change of
an entry sets its folder's time of change, which no program can set back. So an unchanged time,
older than the resolution of the file system, proves that nothing was replaced; otherwise the
command runs again, since it only reads. This is started as a file, with the standard library alone.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

Place: TypeAlias = tuple[str, str, bool]
"""A path as named in the folder of the first place, the real path for which it was allowed, and
True if everything below it is read, too."""
_Mark: TypeAlias = tuple[int, ...]

TRIES = 8
FOLDERS = 50_000
"""Maximum number of folders that are watched."""
CHANGED = (
    "[Nothing is shown: folders that it reads changed each time it ran, so it may have been led out"
    " of the workspace. Stop what changes them, or use read_file, list_dir and grep_search.]"
)
MANY = (
    f"[Not run: it reads more than {FOLDERS:,} folders, and without a sandbox no more are watched"
    " for being swapped meanwhile. Name a smaller folder, or use grep_search.]"
)
UNWATCHED = {
    69: f"It reads more than {FOLDERS:,} folders, too many to watch for being swapped meanwhile",
    70: "Folders that it reads changed each of the eight times that it ran",
}
"""The reasons why the output of a command that a person may allow was not shown, by exit codes that
none of the programs allowed here uses."""
_CODES = {said: code for code, said in zip(UNWATCHED, (MANY, CHANGED), strict=True)}
_FINE_NS, _COARSE_NS, _SECOND_NS = 20_000_000, 2_000_000_000, 1_000_000_000
"""Changes this close in time may have the same time stamp; `_COARSE_NS` if stamps are whole
seconds."""
_LINKS = 40


class MovedError(Exception):
    """A path leads elsewhere than when it was allowed."""


class TooManyError(Exception):
    """There are more folders than are watched."""


def enter(folder: str) -> None:
    """Enter the folder at a real path, part by part: no link is followed, and relative names no
    longer depend on the folders above. Raises OSError."""
    flags = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    at = os.open("/", flags)
    for part in filter(None, folder.split("/")):
        inner = os.open(part, flags, dir_fd=at)
        os.close(at)
        at = inner
    os.fchdir(at)
    os.close(at)


def trail(path: str, folder: str) -> Iterator[str]:
    """Yield the folders in which the parts of a path are looked up, through its links, and finally
    its end: each relative to `folder`, the current one, or as a real path outside it."""
    at, links = ".", 0
    parts = path.split("/")[::-1]
    if path.startswith("/"):
        at = "/"
    while parts:
        part = parts.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            above = os.path.dirname(folder if at == "." else at)  # noqa: PTH120
            if at == ".":  # outside, each part of the path counts
                parts += above.split("/")[::-1]
                at = "/"
            else:
                at = above or "."
            continue
        yield at
        there = part if at == "." else os.path.join(at, part)  # noqa: PTH118
        try:
            link = os.readlink(there)  # noqa: PTH115
        except OSError:
            at = there
            continue
        links += 1
        if links > _LINKS:
            raise MovedError
        parts += link.split("/")[::-1]
        at = "/" if link.startswith("/") else at
    yield at


def marks(places: Sequence[Place]) -> dict[str, _Mark]:
    """Identify each folder on the way to and below the places, and each file."""
    identities: dict[str, _Mark] = {}
    here = places[0][1]
    for path, real, below in places:
        *_, end = folders = list(trail(path, here))
        if os.path.normpath(os.path.join(here, end)) != real:  # noqa: PTH118
            raise MovedError
        for folder in folders:
            identities[folder] = _mark(folder)
        if below:
            for folder, _, _ in os.walk(end):
                identities[folder] = _mark(folder)
                if len(identities) > FOLDERS:
                    raise TooManyError
    return identities


def _mark(path: str) -> _Mark:
    try:
        state = os.lstat(path)
    except OSError:
        return ()
    if stat.S_ISDIR(state.st_mode):
        return state.st_dev, state.st_ino, state.st_ctime_ns
    return state.st_dev, state.st_ino  # it may grow


def settled(found: dict[str, _Mark]) -> bool:
    """Wait until a further change would get another time stamp; False if that takes too long."""
    newest = max((mark[2] for mark in found.values() if mark[2:]), default=0)
    whole = any(mark[2] % _SECOND_NS == 0 for mark in found.values() if mark[2:])
    wait = newest + (_COARSE_NS if whole else _FINE_NS) - time.time_ns()
    if wait > _COARSE_NS:
        return False  # a clock that was set back
    if wait > 0:
        time.sleep(wait / _SECOND_NS)
    return True


def run(places: Sequence[Place], argv: Sequence[str], output: Any) -> int | None:
    """Run the command once, in the current folder. Return its exit code; None if it may have been
    led elsewhere."""
    try:
        before = marks(places)
        if not settled(before):
            return None
        code = subprocess.run(argv, stdout=output, stderr=output, check=False).returncode
        return code if marks(places) == before else None
    except MovedError:
        return None


def main() -> None:
    """Run the program. `argv`: the places as JSON, then the command. The first place is the folder
    it runs in."""
    places, argv = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        enter(places[0][1])
        attempts(places, argv)
        message = CHANGED
    except OSError as error:
        message = f"[Not run: {error.strerror or error}.]"
    except TooManyError:
        message = MANY
    print(message)  # noqa: T201
    sys.exit(_CODES.get(message, 1))


def attempts(places: Sequence[Place], argv: Sequence[str]) -> None:
    """Run the command until its output counts; that ends the process."""
    for _ in range(TRIES):
        with tempfile.TemporaryFile() as output:
            code = run(places, argv, output)
            if code is None:
                continue
            output.seek(0)
            while data := output.read(1 << 16):
                sys.stdout.buffer.write(data)
            sys.stdout.flush()
            sys.exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()

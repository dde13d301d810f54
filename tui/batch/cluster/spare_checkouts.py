"""Checkouts of finished tasks, which the next task of their run takes over. Blocks.

To make the files of a large repository takes longer than many a task. But a task may have changed
anything in its checkout. So it is noted how each file was when it was new, where no command can
reach that: what differs, by the times that the file system alone sets, is made again, what was not
there is removed, and git's own folder is a new one.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tui.core.git.checkout import Checkout
from tui.session.checkpoints.scratch import remove_tree

_WORK: Final = "work"
_NOTE: Final = "note"
_INDEX: Final = "index"
_GIT: Final = ".git"
_TICK_S: Final = 0.02
"""A change after that has another time: the clock of files ticks a hundred times a second, or more
often."""


def note(checkout: Checkout, place: Path) -> None:
    """Note the files of a checkout that are new in a folder. Raises OSError."""
    place.mkdir(mode=0o700)
    stamps = dict(_stamped(checkout.top))
    (place / _NOTE).write_bytes(msgspec.msgpack.encode(stamps))
    shutil.copy2(checkout.git_dir / _INDEX, place)
    time.sleep(_TICK_S)


def give(spares: Path, top: Path, place: Path) -> None:
    """Move a checkout that is needed no more, and what was noted of it in a folder, to the spare
    ones. Where that fails they stay."""
    with suppress(OSError):
        spares.mkdir(mode=0o700, exist_ok=True)
        top.rename(place / _WORK)
        place.rename(spares / f"{place.parent.name}-{time.time_ns()}")


def take(spares: Path, top: Path, place: Path) -> bool:
    """Move a spare checkout, and what was noted of it, to where the next task wants them. False
    where there is none."""
    with suppress(OSError):
        for spare in sorted(spares.iterdir()):
            with suppress(OSError):
                spare.rename(place)  # of two who want it, one gets it
                (place / _WORK).rename(top)
                return True
    return False


def renew(checkout: Checkout, place: Path) -> None:
    """Remove all that isn't as it was noted, in a checkout with a new folder of git's, and give it
    the index of then. `git reset --hard` then makes it whole. Raises OSError, DecodeError."""
    noted = msgspec.msgpack.decode((place / _NOTE).read_bytes(), type=dict[str, tuple[int, ...]])
    for name, now in _stamped(checkout.top):
        before = noted.get(name)
        if now == before:
            continue
        path = checkout.top / name
        if not stat.S_ISDIR(now[0]):
            path.unlink()
        elif before is not None and stat.S_ISDIR(before[0]):
            path.chmod(stat.S_IMODE(before[0]))  # before it is listed
        else:
            remove_tree(path)
    shutil.copy2(place / _INDEX, checkout.git_dir)


def _stamped(top: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the paths of all that is in a checkout, but for git's folder, each with its stamp: the
    mode of a folder, and of a file and a link also what changes with any change. A folder comes
    before what is in it, and may be removed then. Plain strings: there may be a hundred thousand.
    """
    folders = [""]
    while folders:
        above = folders.pop()
        with suppress(FileNotFoundError), os.scandir(f"{top}/{above}") as entries:
            for entry in entries:
                path = f"{above}{entry.name}"
                if path == _GIT:
                    continue
                state = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(state.st_mode):
                    yield path, (state.st_mode,)
                    folders.append(f"{path}/")
                else:
                    more = (state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
                    yield path, (state.st_mode, *more)

"""Checkouts of finished tasks, which the next task of their run takes over. Blocks.

To make the files of a large repository takes longer than many a task. But a task may have changed
anything in its checkout. So each has a copy of its index as it was when the files were new, where
no command can reach it: what differs from that, by the times that the file system alone sets, is
made again, all that git doesn't know is removed, and git's own folder is a new one.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.git.checkout import Checkout
from tui.core.git.placing import clear

_WORK: Final = "work"
_INDEX: Final = "index"
_TICK_S: Final = 0.02
"""What changes later than that has another time: the clock of files ticks a hundred times a second,
or more often."""
SETTINGS: Final = "[core]\n\ttrustctime = true\n\tcheckstat = default\n"
"""The settings of a checkout by which a change can't be hidden."""


def note(checkout: Checkout, index: Path) -> None:
    """Copy the index of a checkout whose files are new to a path. Raises OSError."""
    shutil.copy2(checkout.git_dir / _INDEX, index)
    time.sleep(_TICK_S)


def give(spares: Path, name: str, top: Path, index: Path) -> None:
    """Move a checkout that is needed no more into the folder of spare ones, with the index that was
    noted. Where that fails it stays."""
    place = spares / name
    with suppress(OSError):
        place.mkdir(mode=0o700, parents=True)
        index.rename(place / _INDEX)
        top.rename(place / _WORK)


def take(spares: Path, top: Path, index: Path) -> bool:
    """Move a spare checkout and its index to where the next task wants them. False where there is
    none."""
    with suppress(OSError):
        for place in spares.iterdir():
            with suppress(OSError):
                (place / _WORK).rename(top)  # of two who want it, one gets it
                (place / _INDEX).rename(index)
                place.rmdir()
                return True
    return False


def renew(checkout: Checkout, index: Path) -> None:
    """Remove all that isn't as it was when an index was noted, in a checkout with a new folder of
    git's. `git reset --hard` then makes it whole. Raises GitError, OSError."""
    shutil.copy2(index, checkout.git_dir / _INDEX)
    usual = stat.S_IMODE((checkout.git_dir / "info").stat().st_mode)
    for folder, names, _ in os.walk(checkout.top):
        for path in (Path(folder, name) for name in names):
            if not path.is_symlink() and stat.S_IMODE(path.stat().st_mode) != usual:
                path.chmod(usual)  # before it is listed
    clear(checkout.top, checkout.names("diff-files", "-z", "--name-only"))
    checkout.git("clean", "-ffdxq")

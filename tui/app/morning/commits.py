"""Looks for the commits that commands said they made in git, where the repository is there. Blocks.

A line like `[main 1a2b3c4] …` is only text: `echo` prints it, too, and the commit may be gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

from tui.app.morning.findings import NightCommit, SessionNight
from tui.core.errors import HoldfastError
from tui.core.formatting import moment_of
from tui.core.git.checkout import Checkout
from tui.core.git.history import commits_made
from tui.core.workspace import checkout_of

_SLACK_S = 2.0


def verify_commits(nights: Iterable[SessionNight]) -> None:
    """Mark the commits that git knows as made in the repository of their session's folder."""
    known: dict[str, Mapping[str, int]] = {}
    for night in nights:
        if night.work.commits:
            if night.folder not in known:
                known[night.folder] = _made_in(Path(night.folder))
            made = known[night.folder]
            night.work.commits = [
                one._replace(in_git=one.in_git or _is_made(one, made)) for one in night.work.commits
            ]


def _made_in(folder: Path) -> Mapping[str, int]:
    """The commits made in any work tree of a folder's repository, and when; none where git, or the
    folder, isn't there."""
    for place in (folder, checkout_of(folder)):
        try:
            if place.is_absolute() and place.is_dir():
                return commits_made(Checkout.of(place))
        except (HoldfastError, OSError, ValueError):
            continue
    return {}


def _is_made(commit: NightCommit, made: Mapping[str, int]) -> bool:
    if commit.id:
        return any(one.startswith(commit.id) for one in made)
    ended = moment_of(commit.time)
    return ended is not None and any(_was_then(commit, ended, time) for time in made.values())


def _was_then(commit: NightCommit, ended: datetime, time: int) -> bool:
    """True for a commit of the time in which a command ran that printed none."""
    return -_SLACK_S <= ended.timestamp() - time <= commit.seconds + _SLACK_S

"""From the shelf into what is browsed, in a thread. What goes wrong becomes its `problem`."""

from __future__ import annotations

import asyncio

from tui.app.session_repository import Progress, SessionRepository
from tui.core.errors import HoldfastError
from tui.ui.screens.sessions.filters import Browsing


async def load(seen: Browsing, shelf: SessionRepository) -> None:
    """Read the sessions of the tab that is open."""
    progress = _progress_of(seen)
    try:
        if seen.tab == "others":
            seen.sessions = await asyncio.to_thread(shelf.others, everywhere=True)
        else:
            seen.sessions = await asyncio.to_thread(
                shelf.ours, everywhere=seen.tab == "everywhere", progress=progress
            )
    except (HoldfastError, OSError) as error:
        seen.sessions, seen.problem = [], str(error)


async def search(seen: Browsing, shelf: SessionRepository) -> bool:
    """Look for the words in the texts of the sessions that are there.

    Returns whether that is still what is wanted; if not, nothing is taken over.
    """
    words = seen.words.strip()
    try:
        found = await asyncio.to_thread(
            shelf.search, words, seen.sessions or (), progress=_progress_of(seen)
        )
    except (HoldfastError, OSError) as error:
        found, seen.problem = [], str(error)
    wanted = seen.searching and words == seen.words.strip()
    if wanted:
        seen.places = found
    return wanted


def _progress_of(seen: Browsing) -> Progress:
    def progress(done: int, of: int) -> None:
        """Called in the thread that reads."""
        seen.read = (done, of)

    return progress

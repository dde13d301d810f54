"""`holdfast sessions search`: finds a text in all sessions, and says where it is."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn, cast

from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.app.session_repository import agent_name
from tui.cli.session_io import print_json, reading_progress
from tui.core.clock import SystemClock, timestamp
from tui.core.errors import UsageError
from tui.core.formatting import moment_of, plural
from tui.core.paths import folders, shorten
from tui.core.standard_output import note, print_text
from tui.core.text_cleaning import one_line
from tui.session import catalog
from tui.session import search as texts
from tui.session.passages import Kind, Query, real_path

_REGEX_S: Final = 1.0
"""Seconds that a regular expression may take for one text."""
_TOO_SLOW: Final = 5
"""After so many texts that took longer, the search ends."""


def search(options: Options) -> int:
    asked, text = options.sessions, options.target or ""
    if not text.strip() and not asked.touched:
        raise UsageError("What should it search for?", hint='holdfast sessions search "some words"')
    home = folders()
    ours = [*catalog.scan(home), *catalog.scan_children(home)]
    sources = [*texts.ours(ours), *texts.others(Path.home(), os.environ)]
    since, kind = _since(asked.since), cast("Kind", asked.kind or "")
    pattern = _GuardedPattern(text) if asked.regex and text.strip() else None
    query = replace(Query.of("" if pattern else text), pattern=pattern, kind=kind, since=since)
    if asked.touched:
        file = real_path(str(asked.touched), str(workspace_of(options)))
        calls = replace(Query.of(Path(file).name), kind="call", file=file)
        if not text.strip():
            query = replace(calls, since=since)
        else:  # two searches: the sessions that touched the file, then the text in those
            touched = texts.search(
                home.cache, sources, calls, limit=_EVERY, progress=reading_progress
            )
            paths = {hit.path for hit in touched.hits}
            sources = [one for one in sources if one.path in paths]
    found = texts.search(home.cache, sources, query, progress=reading_progress)
    if options.json:
        print_json([hit.to_json() for hit in found.hits])
    else:
        _print(found.hits)
    if found.remark:
        note(found.remark)
    if pattern is not None and pattern.slow:
        left = "the search stopped there" if pattern.ended else "skipped"
        note(f"The expression took too long for {plural(pattern.slow, 'text')}: {left}.")
    if not options.json and not found.hits:
        note("Nothing found.")
    elif not options.json and len(found.hits) == texts.LIMIT:
        note(f"Showing the first {len(found.hits)} hits. Add words to narrow them down.")
    sys.stdout.flush()  # the person has the answer before the index is mended
    texts.restore(home.cache)
    return 0


_EVERY: Final = 1_000_000_000


def _print(hits: Sequence[texts.Hit]) -> None:
    """Print each session once, with its places below it."""
    for _, places in groupby(hits, lambda hit: hit.path):
        found = list(places)
        first = found[0]
        latest = moment_of(max(hit.time for hit in found))
        when = f"{latest.astimezone():%Y-%m-%d %H:%M}" if latest else "(no date)"
        by = f"  [{agent_name(first.agent)}]" if first.agent else ""
        title = one_line(first.title) or "(no prompts)"
        folder = one_line(shorten(first.cwd)) or "—"
        print_text(f"{first.id}  {when}  {folder}  {title}{by}")
        for hit in found:
            place = f"{hit.kind}, line {hit.line}" if hit.line else hit.kind
            branch = f" [branch {hit.branch}]" if hit.branch else ""
            print_text(f"    {place}{branch}: {hit.snippet}")


def _since(asked: float | datetime | None) -> str:
    """The earliest time of a record, as records have it."""
    if asked is None:
        return ""
    if isinstance(asked, datetime):
        return timestamp(asked)
    try:
        return timestamp(SystemClock().now() - timedelta(seconds=asked))
    except OverflowError:
        return ""


class _TooSlowError(Exception):
    """A regular expression took too long for a text."""


class _GuardedPattern:
    """A regular expression that is given up where it takes too long. `slow` counts such texts."""

    def __init__(self, text: str) -> None:
        self.slow = 0
        try:
            self._pattern = re.compile(text, re.IGNORECASE)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"{text!r} isn't a regular expression: {error}.") from None

    @property
    def ended(self) -> bool:
        return self.slow >= _TOO_SLOW

    def search(self, text: str, /) -> re.Match[str] | None:
        """The first place in a text; None if there is none, or if it takes too long."""
        if self.ended:
            return None
        try:
            with _time_limit():
                return self._pattern.search(text)
        except _TooSlowError:
            self.slow += 1
            return None


@contextmanager
def _time_limit() -> Generator[None]:
    """Raise _TooSlowError in a match that takes too long: matching lets signals in as it goes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Any = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _REGEX_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _give_up(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise _TooSlowError

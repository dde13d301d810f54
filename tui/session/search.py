"""Search in the texts of sessions: ours with all their branches, those of sub-agents, and those of
other agents; and in the full outputs that they refer to.

The index (`tui.session.text_index`) says which blocks of the files may match; these are then read.
What is not in it yet, because another program is writing it, the disk is full, or a line is not
complete, is read as a whole. So what is found never depends on the index, and `remark` says where
it was of no use. Everything blocks.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import groupby, islice
from mmap import PROT_READ, mmap
from pathlib import Path
from typing import Any, Final

from tui.core.clock import timestamp
from tui.core.dataclass import asdict, dataclass, replace
from tui.core.errors import SessionError
from tui.core.messages import string_of
from tui.session import index
from tui.session.branches import branch_of_each
from tui.session.cache_database import emptied, is_broken
from tui.session.catalog import ReadProgress, SessionFileState, id_of
from tui.session.passages import (
    Kind,
    Query,
    SearchedText,
    WantedLines,
    passages_with_outputs,
    read_passages,
)
from tui.session.reader import open_session, read
from tui.session.text_index import (
    DATABASE,
    Block,
    Candidates,
    Known,
    Listed,
    SearchedFile,
    SourceTexts,
    Update,
    can_index,
    has_grown,
    is_stale,
    known_source,
    listed,
    load_foreign,
    passages_of,
)

LIMIT: Final = 500
"""The most hits of one search."""

_REWIND: Final = b'{"type":"rewind"'
_TURNS: Final = 5
"""So many times a deletion waits for its turn to write."""
NO_FTS: Final = "This SQLite has no FTS5 with trigrams, so every file was read."
_FULL: Final = "The search index can't grow (the disk is full), so files were read instead."
_NONE: Final = "There is no search index, so every file was read."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that matches: `id` and `path` are the session's, `message` is the record's id,
    `line` its line in the file, 0 in another agent's. `agent` is that agent; `branch` the leaf of
    its branch, "" if the session is there."""

    id: str
    path: str
    message: str
    line: int
    snippet: str
    title: str
    cwd: str
    time: str
    kind: Kind
    agent: str = ""
    branch: str = ""

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        del fields["agent"]
        if not self.branch:
            del fields["branch"]
        return fields


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search, and what the person should know of how they were found."""

    hits: list[Hit]
    remark: str = ""


def ours(found: Sequence[SessionFileState]) -> list[SearchedFile]:
    """Sources from files of ours."""
    return [SearchedFile(path, changed, size) for changed, path, size in found]


def others(home: Path, env: Mapping[str, str]) -> list[SearchedFile]:
    """Sources from the files of other agents, in their usual folders."""
    from tui.session import importers  # noqa: PLC0415 - only where they are asked for

    found = importers.scan(importers.usual_folders(home, env))
    return [SearchedFile(path, changed, size, agent) for agent, changed, path, size in found]


def search(
    cache: Path,
    sources: Sequence[SearchedFile],
    query: Query,
    *,
    limit: int = LIMIT,
    progress: ReadProgress | None = None,
) -> SearchResult:
    """Find the records of these sources that match, the newest file first, at most `limit`."""
    tell = progress or _nobody
    ordered = sorted(sources, key=lambda one: (one.changed, one.path), reverse=True)

    lacking: list[bool] = []  # filled if this SQLite can't index

    def within(database: sqlite3.Connection) -> SearchResult | None:
        if not can_index(database):
            lacking.append(True)
            return None
        known, remark = _updated(database, ordered, tell)
        return SearchResult(list(islice(_indexed(database, known, ordered, query), limit)), remark)

    found = DATABASE.use(cache, within) if query.pattern is None else None
    if found is None:
        read = _read_in_turn(ordered, query, tell)
        remark = NO_FTS if lacking else _NONE
        found = SearchResult(list(islice(read, limit)), "" if query.pattern else remark)
    hits = [
        hit
        for _, places in groupby(found.hits, lambda hit: hit.path)
        for hit in sorted(places, key=lambda hit: hit.line)
    ]
    return replace(found, hits=list(_with_branches(_titled(cache, hits, ordered))))


def forget(cache: Path, paths: Sequence[str]) -> None:
    """Leave files out of both indexes, with nothing of them in the indexes' own files."""
    index.forget(cache, paths)

    def without(database: sqlite3.Connection) -> bool:
        known = listed(database)
        Update(database).forget([known[path].number for path in paths if path in known])
        emptied(database)
        return True

    if (cache / DATABASE.name).exists():
        # where another program writes for longer, the next search leaves them out
        any(DATABASE.use(cache, without) for _ in range(_TURNS))


def restore(cache: Path, progress: ReadProgress | None = None) -> None:
    """Make what deletions took from the index again. It takes some seconds, and searches without it
    find the same: so it is done when a search has been shown. `progress` is called between steps.
    """
    tell = progress or _nobody

    def within(database: sqlite3.Connection) -> None:
        if can_index(database):
            update = Update(database)
            while update.restore():
                tell(0, 0)

    if (cache / DATABASE.name).exists():
        DATABASE.use(cache, within)


def _updated(
    database: sqlite3.Connection, sources: Sequence[SearchedFile], tell: ReadProgress
) -> tuple[dict[str, Listed], str]:
    """Bring the index up to date, as far as that can be done. Returns what it knows then, and what
    the person should know of it."""
    known = listed(database)
    stale = [one for one in sources if is_stale(known.get(one.path), one)]
    there = {one.path for one in sources}
    gone = [one.number for one in known.values() if one.path not in there and _is_gone(one)]
    gone += [
        one.number
        for source in stale
        if (one := known.get(source.path)) and not _has_grown(database, one)
    ]
    update = Update(database)
    try:
        update.forget(gone)
        left = stale
        while left:  # each round is a transaction, so an interrupted search keeps what it read
            tell(len(stale) - len(left), len(stale))
            left = left[update.read(left) :]
        if stale:
            tell(len(stale), len(stale))
    except sqlite3.OperationalError as error:
        if is_broken(error):
            raise
        log.info("the index can't be written: %s", error)
        full = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_FULL
        return listed(database), _FULL if full else ""
    return listed(database) if gone or stale else known, ""


def _has_grown(database: sqlite3.Connection, one: Listed) -> bool:
    return not one.agent and has_grown(known_source(database, one.number))


def _is_gone(known: Listed) -> bool:
    path = Path(known.path)
    return not path.exists() and not (known.agent and path.parent.is_file())


def _indexed(
    database: sqlite3.Connection,
    known: Mapping[str, Listed],
    sources: Sequence[SearchedFile],
    query: Query,
) -> Iterator[Hit]:
    candidates = Candidates(database, query.words)
    for source in sources:
        if query.since and _before(source, query.since):
            continue
        one = known.get(source.path)
        if one is None or not (one.is_current(source) or _has_grown(database, one)):
            yield from _scanned(source, query)
            continue
        blocks = list(candidates.of(one.number))
        more = one.read < source.size and not one.agent
        if blocks or more:
            seen: set[str] = set()
            state = known_source(database, one.number)
            yield from _verified(state, blocks, query, seen)
            if more:
                yield from _scanned(source, query, state, seen)


def _verified(known: Known, blocks: Sequence[Block], query: Query, seen: set[str]) -> Iterator[Hit]:
    """The hits in blocks that may have some."""
    texts = SourceTexts(known, query.words)
    with closing(texts):
        for block in blocks:
            try:
                passages = list(texts.passages(block))
            except (OSError, SessionError):
                return
            yield from _hits(known, passages, query, seen)


def _hits(
    known: Known, passages: Iterable[SearchedText], query: Query, seen: set[str]
) -> Iterator[Hit]:
    """One hit for each record that matches."""
    for passage in passages:
        if passage.record in seen:
            continue
        if place := query.place(passage, known.cwd):
            if passage.record:
                seen.add(passage.record)
            kind, text = place
            yield Hit(
                known.id or id_of(Path(known.path)), known.path, passage.record, passage.line,
                text, known.title, known.cwd, passage.time, kind, known.agent,
            )  # fmt: skip


def _scanned(
    source: SearchedFile, query: Query, known: Known | None = None, seen: set[str] | None = None
) -> Iterator[Hit]:
    """The hits of a source that is read as a whole, or from where it is known on."""
    if query.since and _before(source, query.since):
        return
    seen = set() if seen is None else seen
    try:
        yield from _read_all(source, query, known or Known(0, source.path, source.agent), seen)
    except (OSError, SessionError):
        return
    except Exception:  # the boundary: one file must not cost the search of all others
        log.exception("%s can't be searched", source.path)


def _read_all(source: SearchedFile, query: Query, known: Known, seen: set[str]) -> Iterator[Hit]:
    if source.agent:
        loaded = load_foreign(source.path)
        if loaded is not None:
            titles = (str(r.data.get("title")) for r in loaded.records[::-1] if r.type == "title")
            header, title = loaded.header, next(titles, "")
            known = known._replace(id=header.id, title=title, cwd=header.cwd)
            yield from _hits(known, passages_of(loaded), query, seen)
        return
    with open_session(Path(source.path)) as file:
        size = os.fstat(file.fileno()).st_size
        for one in read_passages(
            file, known.read, size, known.line, WantedLines(query.words, outputs=True)
        ):
            if one.header is not None and not known.id:
                id_, cwd = string_of(one.header.get("id")), string_of(one.header.get("cwd"))
                known = known._replace(id=id_, cwd=cwd)
            if one.passage is not None:
                passages = passages_with_outputs([one.passage], known.cwd)
                yield from _hits(known, passages, query, seen)


def _titled(cache: Path, hits: list[Hit], sources: Sequence[SearchedFile]) -> list[Hit]:
    """The hits, those of our sessions with the titles that lists show."""
    paths = {hit.path for hit in hits if not hit.agent}
    states = [(one.changed, one.path, one.size) for one in sources if one.path in paths]
    titles = index.titles(cache, states) if states else {}
    return [replace(hit, title=titles.get(hit.path, hit.title)) for hit in hits]


def _with_branches(hits: Sequence[Hit]) -> Iterator[Hit]:
    """Yield the hits, each with its branch."""
    leaves: dict[str, Mapping[str, str]] = {}
    for hit in hits:
        if hit.path not in leaves:
            leaves[hit.path] = {} if hit.agent else _branches_in(Path(hit.path))
        yield replace(hit, branch=leaves[hit.path].get(hit.message, ""))


def _branches_in(path: Path) -> Mapping[str, str]:
    """The leaf for each record that isn't on the branch where the session is. Most sessions have
    only that one, and are not read."""
    try:
        with open_session(path) as file, mmap(file.fileno(), 0, prot=PROT_READ) as data:
            if data.find(_REWIND) < 0:
                return {}
        return branch_of_each(read(path).records)
    except (OSError, ValueError, SessionError):
        return {}


def _before(source: SearchedFile, time: str) -> bool:
    """True if a file was last changed before a time."""
    return timestamp(datetime.fromtimestamp(source.changed / 1e9, UTC)) < time


def _read_in_turn(
    sources: Sequence[SearchedFile], query: Query, progress: ReadProgress
) -> Iterator[Hit]:
    """The hits of sources that are read one after the other, without an index."""
    for number, source in enumerate(sources):
        if query.pattern is not None and query.pattern.ended:
            break
        progress(number, len(sources))
        yield from _scanned(source, query)
    progress(len(sources), len(sources))


def _nobody(done: int, of: int) -> None:
    """Ignore the progress."""

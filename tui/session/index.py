"""The index: a cache of the session files in SQLite, for lists and for search.

It holds nothing that is not in the files. A file is read again when its size or its time of
change differs; an index that is missing, of another version, or broken is rebuilt. If it cannot
be used at all (no SQLite, a disk that cannot be written), everything still works, but slower.
Everything blocks.

A record matches if every word of the query occurs in it, in upper or lower case, also as a part
of a word. Searched are prompts, answers, calls and titles, and the beginnings of results.
Search uses the trigrams of FTS5: they find the records that may hold the words, and
the words of a record then decide. Without FTS5 the files themselves are searched.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tui.core.errors import SessionError
from tui.core.messages import blocks_of, text_of, tool_calls
from tui.core.paths import Folders
from tui.session.branches import branch_of_each
from tui.session.catalog import ReadProgress, SessionFileState, SessionSummary, describe, scan
from tui.session.reader import LoadedSession, read
from tui.session.records import Record
from tui.session.writer import make_private

LIMIT = 500
"""The most hits of one search."""

_OF_RESULTS = 4_000
_OF_TEXTS = 1_000_000
_BEFORE, _SNIPPET = 30, 100


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that matches: `id` and `path` are the session's, `message` is the record's id,
    `line` its line in the file. `branch` is the leaf of its branch, "" if the session is there."""

    id: str
    path: str
    message: str
    line: int
    snippet: str
    branch: str = ""

    def to_json(self) -> dict[str, Any]:
        fields = asdict(self)
        if not self.branch:
            del fields["branch"]
        return fields


@dataclass(frozen=True, slots=True)
class SearchedText:
    """The text of one record that is searched: the record's id, its line in the file, and its
    branch as in `Hit`."""

    record: str
    line: int
    text: str
    branch: str = ""


def words_of(query: str) -> list[str]:
    """The words that must all be there."""
    return list(dict.fromkeys(query.lower().split()))


def matches(text: str, words: Iterable[str]) -> bool:
    lowered = text.lower()
    return all(word in lowered for word in words)


def snippet(text: str, words: list[str]) -> str:
    """The surroundings of the first word found, on one line."""
    places = [place for word in words if (place := text.lower().find(word)) >= 0]
    start = max(0, min(places, default=0) - _BEFORE)
    cut = text[start : start + _SNIPPET]
    line = " ".join("".join(c if c.isprintable() else " " for c in cut).split())
    return f"{'…' if start else ''}{line}{'…' if start + _SNIPPET < len(text) else ''}"


def searched_texts(loaded: LoadedSession) -> Iterator[SearchedText]:
    """The texts of a session that are searched, in the order of its file."""
    elsewhere = branch_of_each(loaded.records)
    for record, line in zip(loaded.records, loaded.lines, strict=True):
        if text := text_in(record):
            yield SearchedText(record.id, line, text, elsewhere.get(record.id, ""))


def text_in(record: Record) -> str:
    """The text of a record that is searched; "" if there is none."""
    data = record.data
    match record.type:
        case "user":
            return text_of(blocks_of(data.get("content")))[:_OF_TEXTS]
        case "assistant":
            blocks = blocks_of(data.get("content"))
            calls = [
                f"{call.get('name')} {json.dumps(call.get('input'), ensure_ascii=False)}"
                for call in tool_calls(blocks)
            ]
            parts = [text_of(blocks)[:_OF_TEXTS], *(call[:_OF_RESULTS] for call in calls)]
            return "\n".join(part for part in parts if part)
        case "tool_result":
            return text_of(blocks_of(data.get("content")))[:_OF_RESULTS]
        case "title":
            return str(data.get("title", ""))
        case "interrupt" | "note":
            return str(data.get("text", ""))[:_OF_TEXTS]
        case _:
            return ""


def _search_files(paths: Iterable[str], words: list[str]) -> Iterator[Hit]:
    """Search files one by one, without an index."""
    for path in paths:
        id_, texts = _texts_of(path)
        for one in texts:
            if matches(one.text, words):
                found = snippet(one.text, words)
                yield Hit(id_, path, one.record, one.line, found, one.branch)


def _texts_of(path: str) -> tuple[str, list[SearchedText]]:
    """A session's id and what is searched in it; nothing of a file that cannot be read."""
    try:
        loaded = read(Path(path))
        return loaded.header.id, [*searched_texts(loaded)]
    except SessionError:
        return "", []
    except Exception:  # the boundary: one file must not cost the search of all others
        log.exception("%s can't be searched", path)
        return "", []


log = logging.getLogger(__name__)

NAME = "sessions.sqlite3"
VERSION = 3
BUSY_S = 0.5
"""Seconds to wait while another program writes the index."""

_BATCH = 200  # files read between two commits, so that a long build is not in vain
_SHORTEST = 3  # characters of a trigram

_TABLES = """
CREATE TABLE session(
    path BLOB PRIMARY KEY, changed INTEGER, size INTEGER, id TEXT, title TEXT, cwd TEXT,
    created TEXT, updated TEXT, messages INTEGER, tokens INTEGER, state TEXT, problems TEXT
) WITHOUT ROWID;
CREATE TABLE searched(
    path BLOB PRIMARY KEY, changed INTEGER, size INTEGER, id TEXT
) WITHOUT ROWID;
CREATE TABLE said(
    number INTEGER PRIMARY KEY, path BLOB, record TEXT, line INTEGER, text TEXT, branch TEXT
);
CREATE INDEX said_in ON said(path);
"""
_WORDS = """
CREATE VIRTUAL TABLE words USING fts5(
    text, content='said', content_rowid='number', tokenize='trigram', detail='none'
);
"""
_ENTRY = "id, path, title, cwd, created, updated, messages, tokens, state, problems"
_PUT = "INSERT OR REPLACE INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"


def list_sessions(
    folders: Folders, workspace: Path | None = None, *, progress: ReadProgress | None = None
) -> list[SessionSummary]:
    """The sessions of a workspace, or all of them, the one used last first."""
    return entries(folders.cache, scan(folders, workspace), progress)


def entries(
    cache: Path, found: Sequence[SessionFileState], progress: ReadProgress | None = None
) -> list[SessionSummary]:
    """The summaries of these files, in their order. `cache` is the folder of the index."""
    tell = progress or _nobody

    def without() -> list[SessionSummary]:
        return [describe(Path(path)) for path in _counted(found, tell)]

    return _with_index(cache, lambda index: _entries(index, found, tell), without)


def search(
    cache: Path,
    found: Sequence[SessionFileState],
    query: str,
    *,
    progress: ReadProgress | None = None,
) -> list[Hit]:
    """The records of these files that hold the words of a query, the newest file first.

    At most `LIMIT` are returned.
    """
    words, tell = words_of(query), progress or _nobody
    if not words:
        return []

    def without() -> list[Hit]:
        return list(islice(_search_files(_counted(found, tell), words), LIMIT))

    def within(index: sqlite3.Connection) -> list[Hit]:
        if not index.execute("SELECT 1 FROM sqlite_master WHERE name = 'words'").fetchone():
            return without()
        _read_texts(index, found, tell)
        return list(islice(_hits(index, found, words), LIMIT))

    return _with_index(cache, within, without)


def _with_index(
    cache: Path, work: Callable[[sqlite3.Connection], Any], without: Callable[[], Any]
) -> Any:
    """Do the work with the index; if that fails, once more with a new one, then without any."""
    for last in (False, True):
        try:
            with _opened(cache) as index:
                return work(index)
        except sqlite3.OperationalError as error:
            log.info("the index can't be used: %s", error)
            if "locked" in str(error) or "readonly" in str(error) or last:
                break  # it is not broken, another program is using it
            _remove(cache)
        except sqlite3.DatabaseError as error:
            log.info("rebuilding the broken index: %s", error)
            _remove(cache)
        except OSError as error:
            log.info("there is no index: %s", error)
            break
    return without()


@contextmanager
def _opened(cache: Path) -> Generator[sqlite3.Connection]:
    """The index, with its tables. Raises sqlite3.Error or OSError."""
    make_private(cache)
    with closing(sqlite3.connect(cache / NAME, timeout=BUSY_S, isolation_level=None)) as index:
        index.execute("PRAGMA journal_mode = WAL")
        index.execute("PRAGMA synchronous = NORMAL")
        version = index.execute("PRAGMA user_version").fetchone()[0]
        if version not in {0, VERSION}:
            raise sqlite3.DatabaseError(f"version {version} is not {VERSION}")
        if version == 0:
            _create(index)
        yield index


def _create(index: sqlite3.Connection) -> None:
    index.execute("BEGIN IMMEDIATE")
    with _transaction(index, begun=True):
        if index.execute("PRAGMA user_version").fetchone()[0] == VERSION:
            return  # another program was faster
        for statement in _TABLES.split(";"):
            index.execute(statement)
        with suppress(sqlite3.OperationalError):  # this SQLite has no FTS5, or no trigrams
            index.execute(_WORDS)
        index.execute(f"PRAGMA user_version = {VERSION}")


@contextmanager
def _transaction(index: sqlite3.Connection, *, begun: bool = False) -> Generator[None]:
    if not begun:
        index.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            index.execute("ROLLBACK")
        raise
    index.execute("COMMIT")


def _remove(cache: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(OSError):
            (cache / (NAME + suffix)).unlink()


def _entries(
    index: sqlite3.Connection, found: Sequence[SessionFileState], progress: ReadProgress
) -> list[SessionSummary]:
    known: dict[str, tuple[int, int]] = {}
    shown: dict[str, SessionSummary] = {}
    for changed, size, id_, key, *row, problems in index.execute(
        f"SELECT changed, size, {_ENTRY} FROM session"  # noqa: S608 - our own column names
    ):
        path = os.fsdecode(key)
        known[path] = changed, size
        codes = tuple(json.loads(problems)) if problems else ()
        shown[path] = SessionSummary(id_, path, *row, problems=codes)
    stale = [one for one in found if known.get(one[1]) != (one[0], one[2])]
    for batch in _batches(stale, progress):
        fresh = [(one, describe(Path(one[1]))) for one in batch]
        shown |= {one[1]: entry for one, entry in fresh}
        kept = [_row(one, entry) for one, entry in fresh if entry.state != "unreadable"]
        with suppress(sqlite3.OperationalError), _transaction(index):
            index.executemany(_PUT, kept)
    if deleted := _gone(known, found):
        with suppress(sqlite3.OperationalError), _transaction(index):
            index.executemany("DELETE FROM session WHERE path = ?", deleted)
    return [shown[path] for _, path, _ in found]


def _row(one: SessionFileState, entry: SessionSummary) -> tuple[object, ...]:
    changed, path, size = one
    problems = json.dumps(entry.problems) if entry.problems else ""
    return (
        _key(path), changed, size, _sound(entry.id), _sound(entry.title), _sound(entry.cwd),
        _sound(entry.created), _sound(entry.updated), entry.messages, entry.tokens, entry.state,
        problems,
    )  # fmt: skip


def _read_texts(
    index: sqlite3.Connection, found: Sequence[SessionFileState], progress: ReadProgress
) -> None:
    """Bring the searched texts up to date."""
    rows = index.execute("SELECT path, changed, size FROM searched")
    known = {os.fsdecode(key): (changed, size) for key, changed, size in rows}
    stale = [one for one in found if known.get(one[1]) != (one[0], one[2])]
    for batch in _batches(stale, progress):
        with _transaction(index):
            for changed, path, size in batch:
                _forget(index, _key(path))
                id_ = _note_texts(index, path)
                row = (_key(path), changed, size, id_)
                index.execute("INSERT INTO searched VALUES (?,?,?,?)", row)
    if deleted := _gone(known, found):
        with _transaction(index):
            for (key,) in deleted:
                _forget(index, key)


def _forget(index: sqlite3.Connection, path: bytes) -> None:
    index.execute(
        "INSERT INTO words(words, rowid, text) SELECT 'delete', number, text FROM said"
        " WHERE path = ?",
        (path,),
    )
    index.execute("DELETE FROM said WHERE path = ?", (path,))
    index.execute("DELETE FROM searched WHERE path = ?", (path,))


def _note_texts(index: sqlite3.Connection, path: str) -> str:
    """Put the searched texts of a file into the index. Returns the session's id."""
    id_, texts = _texts_of(path)
    for one in texts:
        text = _sound(one.text)
        put = index.execute(
            "INSERT INTO said(path, record, line, text, branch) VALUES (?,?,?,?,?)",
            (_key(path), _sound(one.record), one.line, text, _sound(one.branch)),
        )
        index.execute("INSERT INTO words(rowid, text) VALUES (?,?)", (put.lastrowid, text))
    return _sound(id_)


def _hits(
    index: sqlite3.Connection, found: Sequence[SessionFileState], words: list[str]
) -> Iterator[Hit]:
    wanted = {path for _, path, _ in found}
    query = _trigrams(words)
    source = "FROM said JOIN searched ON searched.path = said.path"
    select = (
        "SELECT searched.id, said.path, said.record, said.line, said.text, said.branch " + source
    )
    order = " ORDER BY searched.changed DESC, said.path, said.number"
    if query:
        among = " WHERE said.number IN (SELECT rowid FROM words WHERE words MATCH ?)"
        rows = index.execute(select + among + order, (query,))
    else:
        rows = index.execute(select + order)
    for id_, key, record, line, text, branch in rows:
        path = os.fsdecode(key)
        if path in wanted and matches(text, words):
            yield Hit(id_, path, record, line, snippet(text, words), branch)


def _trigrams(words: list[str]) -> str:
    """The query for all three-character pieces of the words; "" where all are shorter."""
    pieces = {
        word[at : at + _SHORTEST] for word in words for at in range(len(word) - _SHORTEST + 1)
    }
    return " AND ".join('"' + piece.replace('"', '""') + '"' for piece in sorted(pieces))


def _gone(
    known: dict[str, tuple[int, int]], found: Sequence[SessionFileState]
) -> list[tuple[bytes]]:
    """The indexed files that do not exist any more."""
    there = {path for _, path, _ in found}
    deleted = [path for path in known if path not in there and not Path(path).exists()]
    return [(_key(path),) for path in deleted]


def _batches(
    stale: list[SessionFileState], progress: ReadProgress
) -> Iterator[list[SessionFileState]]:
    for start in range(0, len(stale), _BATCH):
        progress(start, len(stale))
        yield stale[start : start + _BATCH]
    if stale:
        progress(len(stale), len(stale))


def _counted(found: Sequence[SessionFileState], progress: ReadProgress) -> Iterator[str]:
    for number, (_, path, _) in enumerate(found):
        progress(number, len(found))
        yield path
    progress(len(found), len(found))


def _sound(text: str) -> str:
    """Text that SQLite takes: without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def _key(path: str) -> bytes:
    """A path as the index holds it: the bytes of its name, which need not be UTF-8."""
    return os.fsencode(path)


def _nobody(done: int, of: int) -> None:
    """For callers that do not want to know the progress."""

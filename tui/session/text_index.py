"""The index of texts: which blocks of the session files may hold three characters in a row.

A block is some 8,000 characters of a session, in whole records, or a part of a full output. FTS5
has, without the text, which trigrams occur in the words of which block; the blocks' places in the
files are beside it. So the index is a fraction of the text, nothing of a text can be read out of
it, and a block that may match is read from the file before anything is said of it.

FTS5 cannot take a row out of such a table unless it gets the text again. So the blocks are in
shards, a table each: where a session is deleted or rewritten, the tables of its shards are
dropped at once, and what else was in them is read again later. Until then all blocks of such a
shard may match.

Files of ours only grow: reading goes on where it stopped, in small transactions, so a long first
reading can be interrupted, and two programs take turns. Everything blocks.
"""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple

from tui.core.errors import SessionError
from tui.core.gc_pause import gc_pause
from tui.core.messages import string_of
from tui.session.cache_database import CacheDatabase, key_of, sound, transaction
from tui.session.passages import (
    OutputPart,
    SearchedText,
    WantedLines,
    output_passage,
    parts_of,
    passage_of,
    read_passages,
    text_of_part,
)
from tui.session.reader import LoadedSession, open_session

DATABASE: Final = CacheDatabase(
    "texts.sqlite3",
    2,
    """
CREATE TABLE source(
    number INTEGER PRIMARY KEY, path BLOB UNIQUE, agent TEXT, changed INTEGER, size INTEGER,
    inode INTEGER, read INTEGER, line INTEGER, tail BLOB, id TEXT, title TEXT, cwd TEXT
);
CREATE TABLE block(
    number INTEGER PRIMARY KEY, source INTEGER, copy BLOB, record TEXT, time TEXT, line INTEGER,
    start INTEGER, size INTEGER
);
CREATE INDEX block_of ON block(source);
CREATE TABLE run(first INTEGER PRIMARY KEY, source INTEGER)
""",
)

_BLOCK: Final = 8_192
"""Characters of one block, or a little more."""
_SPAN: Final = 64 * 1024
"""The most bytes of a file in one block, but for a longer record."""
_SHARD_BITS: Final = 11
"""Two to the power of this is the number of blocks in a shard."""
_BATCH: Final = 1 << 20
"""Characters that are read between two commits."""
_TAIL: Final = 4096
_REREAD_NS: Final = 3600 * 10**9
"""Another agent's session is read again as a whole; so not if it changed less than this after the
last time: it is then searched without the index."""
_LENGTH: Final = 3  # characters of a trigram
_MOST_PIECES: Final = 64
"""So many trigrams of a query are asked for, or less: they tell blocks apart well enough."""

_WORDS: Final = (
    "fts5(text, content='', columnsize=0, detail='none', tokenize='trigram case_sensitive 1')"
)


class SearchedFile(NamedTuple):
    """A file that is searched, as it is now. `agent` is the other agent whose session it is, ""
    for one of ours."""

    path: str
    changed: int
    size: int
    agent: str = ""


class Listed(NamedTuple):
    """A source in the index: its number, how it was when it was read, and how many bytes were."""

    number: int
    path: str
    agent: str
    changed: int
    size: int
    read: int

    def is_current(self, source: SearchedFile) -> bool:
        return self.changed == source.changed and self.size == source.size


class Known(NamedTuple):
    """All that the index has of a source. `read` bytes were read, and `line` is the number of the
    line that follows; `tail` is the hash of the last of these bytes."""

    number: int
    path: str
    agent: str = ""
    changed: int = 0
    size: int = 0
    inode: int = 0
    read: int = 0
    line: int = 1
    tail: bytes = b""
    id: str = ""
    title: str = ""
    cwd: str = ""


class Block(NamedTuple):
    """The place of a block: a part of a session's file, or of its output `copy`."""

    number: int
    copy: str
    record: str
    time: str
    line: int
    start: int
    size: int


_KNOWN: Final = "number, path, agent, changed, size, inode, read, line, tail, id, title, cwd"
_PLACE: Final = "number, copy, record, time, line, start, size"


def can_index(database: sqlite3.Connection) -> bool:
    """True if this SQLite has FTS5, and trigrams."""
    with suppress(sqlite3.OperationalError):
        database.execute(f"CREATE VIRTUAL TABLE temp.probe USING {_WORDS}")
        return True
    return False


def listed(database: sqlite3.Connection) -> dict[str, Listed]:
    """All sources in the index, by their paths."""
    rows = database.execute("SELECT number, path, agent, changed, size, read FROM source")
    with gc_pause():
        every = (Listed(row[0], os.fsdecode(row[1]), *row[2:]) for row in rows)
        return {one.path: one for one in every}


def known_source(database: sqlite3.Connection, number: int) -> Known:
    """A source that is in the index."""
    query = f"SELECT {_KNOWN} FROM source WHERE number = ?"  # noqa: S608 - our own names
    row = database.execute(query, (number,)).fetchone()
    return Known(row[0], os.fsdecode(row[1]), *row[2:])


def _block(row: Sequence[Any]) -> Block:
    number, copy, *others = row
    return Block(number, os.fsdecode(copy), *others)


# What of the text is in a block


class SourceTexts:
    """Reads the passages of one source, by the places of its blocks."""

    def __init__(self, known: Known, words: Sequence[str] = ()) -> None:
        """Records that can't hold all `words` may be left out."""
        self._known = known
        self._wanted = WantedLines(tuple(words))
        self._file: FileIO | None = None
        self._loaded: list[SearchedText] | None = None

    def passages(self, block: Block) -> Iterator[SearchedText]:
        """The passages of a block; none of what can't be read any more."""
        known = self._known
        if block.copy:
            text = text_of_part(OutputPart(block.copy, block.start, block.size), known.cwd)
            of = SearchedText(block.record, block.line, block.time, ())
            yield output_passage(of, text)
        elif known.agent:
            if self._loaded is None:
                self._loaded = passages_of(load_foreign(known.path))
            yield from self._loaded[block.start : block.start + block.size]
        else:
            if self._file is None:
                self._file = open_session(Path(known.path))
            end = block.start + block.size
            for one in read_passages(self._file, block.start, end, block.line, self._wanted):
                if one.passage:
                    yield one.passage

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def load_foreign(path: str) -> LoadedSession | None:
    """Another agent's session; None where it can't be read."""
    from tui.session import importers  # noqa: PLC0415 - only where there are any

    try:
        return importers.load(Path(path))
    except SessionError:
        return None


def passages_of(loaded: LoadedSession | None) -> list[SearchedText]:
    """The passages of a session of another agent."""
    made = (passage_of(r.type, r.id, 0, r.time, r.data) for r in loaded.records) if loaded else ()
    return [passage for passage in made if passage is not None]


# Writing


class Update:
    """Brings the index up to date, a batch at a time."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def forget(self, numbers: Sequence[int]) -> None:
        """Leave sources out, and drop the tables of all shards that they are in."""
        if not numbers:
            return
        db = self._database
        with transaction(db):
            shards: set[int] = set()
            for number in numbers:
                rows = db.execute("SELECT number FROM block WHERE source = ?", (number,))
                shards.update(block >> _SHARD_BITS for (block,) in rows)
                for table, column in (("block", "source"), ("run", "source"), ("source", "number")):
                    db.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608
            for shard in shards:
                db.execute(f"DROP TABLE IF EXISTS words{shard}")

    def restore(self) -> bool:
        """Make the table of one shard that has none. False if all have one."""
        there = set(tables_of(self._database))
        for shard in _shards_of(self._database):
            if shard not in there:
                with transaction(self._database):
                    make_shard(self._database, shard)
                return True
        return False

    def read(self, sources: Sequence[SearchedFile]) -> int:
        """Read of these sources as much as one batch takes. Returns how many are done."""
        done, left = 0, _BATCH
        with transaction(self._database):
            batch = _Batch(self._database)
            for source in sources:
                used, complete = batch.read(source, left)
                left -= used
                done += complete
                if left <= 0 or not complete:
                    break
        return done


def make_shard(db: sqlite3.Connection, shard: int) -> None:
    """Make the table of a shard, from the files of the blocks that are in it already."""
    if shard in tables_of(db):
        return
    db.execute(f"CREATE VIRTUAL TABLE words{shard} USING {_WORDS}")
    for option, value in (("automerge", 0), ("hashsize", 16 << 20)):
        db.execute(
            f"INSERT INTO words{shard}(words{shard}, rank) VALUES (?, ?)",  # noqa: S608
            (option, value),
        )
    first, last = shard << _SHARD_BITS, ((shard + 1) << _SHARD_BITS) - 1
    rows = db.execute(
        f"SELECT source, {_PLACE} FROM block WHERE number BETWEEN ? AND ?",  # noqa: S608
        (first, last),
    ).fetchall()
    by_source: dict[int, list[Block]] = {}
    for source, *place in rows:
        by_source.setdefault(source, []).append(_block(place))
    for number, blocks in by_source.items():
        texts = SourceTexts(known_source(db, number))
        try:
            for block in blocks:
                with suppress(OSError, SessionError):
                    put_words(db, block.number, [p.lowered for p in texts.passages(block)])
        finally:
            texts.close()
    if rows:
        merge(db, shard)


class _Batch:
    """One transaction's work: the next free number, and the source of the last block."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database
        last = _one(database, "SELECT max(number) FROM block") or 0
        self._next = last + 1
        if last and last >> _SHARD_BITS not in tables_of(database):  # to be made again later
            self._next = ((last >> _SHARD_BITS) + 1) << _SHARD_BITS
        self._last = _one(database, "SELECT source FROM run ORDER BY first DESC LIMIT 1")
        self._shard = -1

    def read(self, source: SearchedFile, most: int) -> tuple[int, bool]:
        """Read a source from where it was left, at most so many characters. Returns how many were
        read, and whether that is all."""
        query = "SELECT number FROM source WHERE path = ?"
        row = self._database.execute(query, (key_of(source.path),)).fetchone()
        if row is None:
            put = self._database.execute(
                "INSERT INTO source(path, agent, changed, size, inode, read, line, tail, id, title,"
                " cwd) VALUES (?, ?, -1, -1, 0, 0, 1, x'', '', '', '')",
                (key_of(source.path), source.agent),
            )
            known = Known(int(put.lastrowid or 0), source.path, source.agent, -1, -1)
        else:
            known = known_source(self._database, row[0])
        if known.read > source.size or (known.changed, known.size) == source[1:3]:
            return 0, True  # by another program
        try:
            if source.agent:
                known, used, complete = self._read_foreign(known, source)
            else:
                known, used, complete = self._read_ours(known, source, most)
        except (OSError, SessionError):  # nothing can be found in it either
            known, used, complete = known._replace(read=source.size), 0, True
        if complete:
            known = known._replace(changed=source.changed, size=source.size)
        self._database.execute(
            "UPDATE source SET changed = ?, size = ?, inode = ?, read = ?, line = ?, tail = ?,"
            " id = ?, title = ?, cwd = ? WHERE number = ?",
            (
                known.changed, known.size, known.inode, known.read, known.line, known.tail,
                sound(known.id), sound(known.title), sound(known.cwd), known.number,
            ),
        )  # fmt: skip
        return used, complete

    def _read_ours(self, known: Known, source: SearchedFile, most: int) -> tuple[Known, int, bool]:
        with open_session(Path(source.path)) as file:
            start, line, used = known.read, known.line, 0
            waiting: list[SearchedText] = []
            chars, stop, after, complete = 0, start, line, True
            for one in read_passages(file, start, source.size, line):
                if not one.ended:  # still being written: read next time
                    break
                stop, after = one.end, one.next
                if one.header is not None and not known.id:
                    id_, cwd = string_of(one.header.get("id")), string_of(one.header.get("cwd"))
                    known = known._replace(id=id_, cwd=cwd)
                if one.passage is not None:
                    waiting.append(one.passage)
                    chars += sum(len(text) for _, text in one.passage.texts)
                if chars >= _BLOCK or stop - start >= _SPAN:
                    used += chars + self._put(known, waiting, start, stop - start, line)
                    waiting, chars, start, line = [], 0, stop, after
                    if used >= most:
                        complete = False
                        break
            if stop > start:
                used += chars + self._put(known, waiting, start, stop - start, line)
            tail = _tail(file, stop)
            inode = os.fstat(file.fileno()).st_ino
        known = known._replace(read=stop, line=after, tail=tail, inode=inode)
        return known, used, complete

    def _read_foreign(self, known: Known, source: SearchedFile) -> tuple[Known, int, bool]:
        loaded = load_foreign(source.path)
        passages = passages_of(loaded)
        used, start = 0, 0
        waiting: list[SearchedText] = []
        chars = 0
        for at, passage in enumerate(passages, 1):
            waiting.append(passage)
            chars += sum(len(text) for _, text in passage.texts)
            if chars >= _BLOCK or at == len(passages):
                used += chars + self._put(known, waiting, start, at - start, 0)
                waiting, chars, start = [], 0, at
        if loaded is not None:
            titles = (str(r.data.get("title")) for r in loaded.records[::-1] if r.type == "title")
            known = known._replace(
                id=loaded.header.id, title=next(titles, ""), cwd=loaded.header.cwd
            )
        return known._replace(read=source.size), used, True

    def _put(
        self, known: Known, passages: Sequence[SearchedText], start: int, size: int, line: int
    ) -> int:
        """Add a block, and those of the full outputs of its records. Returns the characters of
        these."""
        used = 0
        place = Block(0, "", "", "", line, start, size)
        self._add(known, place, [passage.lowered for passage in passages])
        for passage in passages if not known.agent else ():
            for part in parts_of(passage.copy, known.cwd) if passage.copy else ():
                place = Block(
                    0, part.path, passage.record, passage.time, passage.line, part.start, part.size
                )
                text = text_of_part(part, known.cwd)
                self._add(known, place, [text.lower()])
                used += len(text)
        return used

    def _add(self, known: Known, place: Block, texts: Sequence[str]) -> None:
        db, number = self._database, self._next
        self._next += 1
        if (shard := number >> _SHARD_BITS) != self._shard:
            if shard not in tables_of(db):
                before = shard - 1
                if before in tables_of(db):
                    merge(db, before)
                make_shard(db, shard)
            self._shard = shard
        if self._last != known.number:
            db.execute("INSERT INTO run VALUES (?, ?)", (number, known.number))
            self._last = known.number
        db.execute(
            "INSERT INTO block VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number, known.number, key_of(place.copy), sound(place.record), sound(place.time),
                place.line, place.start, place.size,
            ),
        )  # fmt: skip
        put_words(db, number, texts)


def put_words(database: sqlite3.Connection, number: int, texts: Sequence[str]) -> None:
    """Add the trigrams of the words of a block's texts."""
    words = set("\n".join(texts).replace("\0", " ").split())
    shard = number >> _SHARD_BITS
    # every word ends with a line end, so that two characters at its end begin a trigram, too
    text = sound("\n".join(("", *words, "", "")))
    database.execute(f"INSERT INTO words{shard}(rowid, text) VALUES (?, ?)", (number, text))  # noqa: S608


def merge(database: sqlite3.Connection, shard: int) -> None:
    """Bring what a full shard has into one piece, which is smallest."""
    database.execute(f"INSERT INTO words{shard}(words{shard}) VALUES ('optimize')")  # noqa: S608


def has_grown(known: Known) -> bool:
    """True if what was read of a file of ours is still there: it has only become longer."""
    try:
        with open_session(Path(known.path)) as file:
            state = os.fstat(file.fileno())
            same = state.st_ino == known.inode and state.st_size >= known.read
            return same and _tail(file, known.read) == known.tail
    except SessionError:
        return False


def is_stale(known: Listed | None, source: SearchedFile) -> bool:
    """True if a source is to be read (again)."""
    if known is None:
        return True
    if known.is_current(source):
        return False
    hot = known.changed >= 0 and abs(source.changed - known.changed) < _REREAD_NS
    return not (known.agent and hot)


def _tail(file: FileIO, end: int) -> bytes:
    start = max(0, end - _TAIL)
    return blake2b(os.pread(file.fileno(), end - start, start), digest_size=16).digest()


def _one(database: sqlite3.Connection, query: str) -> int | None:
    row = database.execute(query).fetchone()
    return row[0] if row else None


def tables_of(database: sqlite3.Connection) -> list[int]:
    """The shards that have a table."""
    rows = database.execute(
        "SELECT substr(name, 6) FROM sqlite_master WHERE name GLOB 'words[0-9]*'"
        " AND sql LIKE 'CREATE VIRTUAL%'"
    )
    return [int(number) for (number,) in rows]


def _shards_of(database: sqlite3.Connection) -> list[int]:
    """The shards that have blocks."""
    last = _one(database, "SELECT max(number) FROM block")
    if last is None:
        return []
    query = "SELECT 1 FROM block WHERE number BETWEEN ? AND ? LIMIT 1"
    return [
        shard
        for shard in range((last >> _SHARD_BITS) + 1)
        if database.execute(
            query, (shard << _SHARD_BITS, ((shard + 1) << _SHARD_BITS) - 1)
        ).fetchone()
    ]


# Reading


class Candidates:
    """The blocks that may hold all words of a query; the tables of shards are asked once each, and
    only where a source is in them."""

    def __init__(self, database: sqlite3.Connection, words: Sequence[str]) -> None:
        self._database = database
        self._words = [sound(word) for word in words]
        self._tables = set(tables_of(database))
        self._last = _one(database, "SELECT max(number) FROM block") or 0
        self._found: dict[int, list[Block]] = {}
        self._runs: dict[int, list[tuple[int, int]]] = {}
        rows = database.execute("SELECT first, source FROM run ORDER BY first").fetchall()
        ends = [*(first for first, _ in rows[1:]), self._last + 1]
        for (first, source), end in zip(rows, ends, strict=False):  # none, or as many
            self._runs.setdefault(source, []).append((first, end - 1))

    def of(self, source: int) -> Iterator[Block]:
        """A source's blocks that may match, in order."""
        for first, last in self._runs.get(source, ()):
            for shard in range(first >> _SHARD_BITS, (last >> _SHARD_BITS) + 1):
                found = self._in_shard(shard)
                begin = bisect_left(found, first, key=_number)
                yield from found[begin : bisect_right(found, last, key=_number)]

    def _in_shard(self, shard: int) -> list[Block]:
        if shard not in self._found:
            query = self._match(shard) if shard in self._tables else ""
            among, values = (
                "BETWEEN ? AND ?",
                [shard << _SHARD_BITS, ((shard + 1) << _SHARD_BITS) - 1],
            )
            if query:
                table = f"words{shard}"
                among = f"IN (SELECT rowid FROM {table} WHERE {table} MATCH ?)"  # noqa: S608
                values = [query]
            rows = self._database.execute(
                f"SELECT {_PLACE} FROM block WHERE number {among} ORDER BY number",  # noqa: S608
                values,
            )
            self._found[shard] = [_block(row) for row in rows]
        return self._found[shard]

    def _match(self, shard: int) -> str:
        """The query of FTS5 for all pieces of the words; "" where it can't tell blocks apart."""
        long = {
            word[at : at + _LENGTH] for word in self._words for at in range(len(word) - _LENGTH + 1)
        }
        pieces = sorted(long)
        terms = [_quoted(piece) for piece in pieces[:: len(pieces) // _MOST_PIECES + 1]]
        for word in self._words:
            if len(word) == _LENGTH - 1:  # the trigrams that begin with it
                begun = self._beginning_with(shard, word)
                terms.append(
                    f"({' OR '.join(map(_quoted, begun))})" if begun else _quoted("\n\n\n")
                )
        return " AND ".join(terms)

    def _beginning_with(self, shard: int, word: str) -> list[str]:
        db = self._database
        db.execute("DROP TABLE IF EXISTS temp.terms")
        db.execute(f"CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words{shard}, row)")
        query = "SELECT term FROM temp.terms WHERE term >= ? AND term < ?"
        rows = db.execute(query, (word, word + chr(0x10FFFF)))
        return [term for (term,) in rows]


def _number(block: Block) -> int:
    return block.number


def _quoted(piece: str) -> str:
    return '"' + piece.replace('"', '""') + '"'

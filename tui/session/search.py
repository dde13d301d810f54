"""Searching sessions for words: which text of a record is searched, and the places with matches.

A record matches if every word of the query occurs in it, in upper or lower case, also as a part
of a word. Searched are prompts, answers, calls and titles, and the beginnings of results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tui.core.errors import SessionError
from tui.core.messages import blocks_of, text_of, tool_calls
from tui.session.reader import LoadedSession, read
from tui.session.records import Record

LIMIT = 500
"""The most hits of one search."""

_OF_RESULTS = 4_000
_OF_TEXTS = 1_000_000
_BEFORE, _SNIPPET = 30, 100


@dataclass(frozen=True, slots=True)
class Hit:
    """A record that matches: `id` and `path` are the session's, `message` is the record's id,
    `line` its line in the file."""

    id: str
    path: str
    message: str
    line: int
    snippet: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SearchedText:
    """The text of one record that is searched: the record's id, and its line in the file."""

    record: str
    line: int
    text: str


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
    for record, line in zip(loaded.records, loaded.lines, strict=True):
        if text := text_in(record):
            yield SearchedText(record.id, line, text)


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


def scan(paths: Iterable[str], words: list[str]) -> Iterator[Hit]:
    """Search files one by one, without an index."""
    for path in paths:
        try:
            loaded = read(Path(path))
        except SessionError:
            continue
        for one in searched_texts(loaded):
            if matches(one.text, words):
                yield Hit(loaded.header.id, path, one.record, one.line, snippet(one.text, words))

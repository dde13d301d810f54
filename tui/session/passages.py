"""The text of sessions that can be searched, passage by passage, and whether a query is in it. No
index here.

A passage is one record, or a part of the full output that a result refers to. It matches if every
word of the query is in it, in upper or lower case, also as a part of a word; or if the pattern is.
All of a record counts: prompts, answers, thinking, calls, results, summaries, notes and titles.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, cast

from tui.core.dataclass import dataclass
from tui.core.messages import blocks_of, object_of, string_of, text_of, tool_calls
from tui.core.output_store import open_full_copy
from tui.core.workspace import PRIVATE_DIR, TOOL_RESULTS
from tui.session.jsonl import Findings, parse, split
from tui.session.records import GOAL, HOOK, PROGRAM

Kind: TypeAlias = Literal[
    "prompt",
    "answer",
    "thinking",
    "call",
    "result",
    "output",
    "summary",
    "note",
    "title",
]
"""The kind of a place. An output is the full copy of a result that was cut."""

_BEFORE, _SNIPPET = 30, 100
_PART: Final = 16 * 1024
_OVERLAP: Final = 1024
"""Bytes of an output in one passage, and of the end of the passage before in it: so what is near
together is in one."""
_COPY_BYTES: Final = 64 << 20
"""Bytes that are searched of one full output."""
_PLAIN: Final = re.compile(r"[!#-.0-\[\]-~]+")
"""A word that JSON leaves as it is."""
_ODD: Final = ("\u212a".encode(), "\u0130".encode())
"""Letters whose small ones are of ASCII."""
_AT_ONCE: Final = 8 << 20
"""So many bytes of a file are looked at in one piece first."""
_HEADER: Final = b'{"type":"session"'
_REFERS: Final = b'"receipt":{'
_PATHS: Final = ("path", "file_path", "notebook_path", "filePath")
_PATCHED: Final = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


@dataclass(frozen=True, slots=True)
class SearchedText:
    """A record's text, or a part of its full output: the record's id, its line in the file (0 where
    the file has other lines than ours), its time, and texts by their kinds.

    `copy` is the path of the full output that the record refers to; `touched` the files that its
    calls name.
    """

    record: str
    line: int
    time: str
    texts: tuple[tuple[Kind, str], ...]
    copy: str = ""
    touched: tuple[str, ...] = ()

    @property
    def lowered(self) -> str:
        return "\n".join(text for _, text in self.texts).lower()


@dataclass(frozen=True, slots=True)
class OutputPart:
    """A part of a full output, by its place in the file."""

    path: str
    start: int
    size: int


class TextPattern(Protocol):
    """A pattern that finds its first place in a text. `ended`: it finds nothing more, because it
    took too long."""

    @property
    def ended(self) -> bool: ...

    def search(self, text: str, /) -> re.Match[str] | None: ...


@dataclass(frozen=True, slots=True)
class Query:
    """The text that is sought: all `words`, which are lower-case, or a `pattern` in their place.

    `kind` is the only one that counts, `since` the earliest time of a record; `file` is the file
    that a record's calls must name. "" is any.
    """

    words: tuple[str, ...] = ()
    pattern: TextPattern | None = None
    kind: Kind | Literal[""] = ""
    since: str = ""
    file: str = ""

    @classmethod
    def of(cls, text: str) -> Query:
        """The query for the words of a text."""
        return cls(tuple(dict.fromkeys(text.lower().split())))

    def place(self, passage: SearchedText, cwd: str) -> tuple[Kind, str] | None:
        """The kind of the place that matches in a passage of a session in `cwd`, and the text
        around it on one line; None if none does."""
        if passage.time < self.since:
            return None
        if self.file and self.file not in {real_path(path, cwd) for path in passage.touched}:
            return None
        texts = [one for one in passage.texts if self.kind in {"", one[0]}]
        if self.pattern is not None:
            for kind, text in texts:
                if found := self.pattern.search(text):
                    return kind, around(text, found.start())
            return None
        lowered = [text.lower() for _, text in texts]
        everything = "\n".join(lowered)
        if not texts or not all(word in everything for word in self.words):
            return None
        if not self.words:
            return texts[0][0], around(texts[0][1], 0)
        telling = max(self.words, key=len)
        at = next((n for n, text in enumerate(lowered) if telling in text), 0)
        kind, text = texts[at]
        return kind, snippet(text, self.words)


def real_path(path: str, cwd: str) -> str:
    """A path in one spelling, relative ones from `cwd`; no link is followed."""
    return os.path.normpath(Path(cwd, path))


def snippet(text: str, words: Sequence[str]) -> str:
    """The surroundings of the first word found, on one line."""
    lowered = text.lower()
    places = [place for word in words if (place := lowered.find(word)) >= 0]
    return around(text, min(places, default=0))


def around(text: str, place: int) -> str:
    """The surroundings of a place, on one line."""
    start = max(0, place - _BEFORE)
    cut = text[start : start + _SNIPPET]
    if not cut.isprintable():
        cut = "".join(c if c.isprintable() else " " for c in cut)
    line = " ".join(cut.split())
    return f"{'…' if start else ''}{line}{'…' if start + _SNIPPET < len(text) else ''}"


def passage_of(
    type_: str, id_: str, line: int, time: str, data: dict[str, Any]
) -> SearchedText | None:
    """The passage of a record; None if nothing in it can be searched."""
    texts = tuple(one for one in _texts(type_, data) if one[1])
    copy = string_of(object_of(data.get("receipt")).get("path")) if type_ == "tool_result" else ""
    if not texts and not copy:
        return None
    touched = tuple(_touched(data)) if type_ == "assistant" else ()
    return SearchedText(id_, line, time, texts, copy, touched)


_SIMPLE: Final[Mapping[str, tuple[tuple[Kind, str], ...]]] = {
    "job_ended": (("output", "text"),),
    "compaction": (("summary", "summary"),),
    "interrupt": (("answer", "text"), ("thinking", "thinking")),
    "title": (("title", "title"),),
    "note": (("note", "text"),),
    "goal": (("note", "goal"), ("note", "why")),
    "notice": (("note", "text"),),
    "error": (("note", "message"),),
    "side_question": (("prompt", "question"), ("answer", "answer")),
}
"""The fields that are texts, of the records that have no content."""


def _texts(type_: str, data: dict[str, Any]) -> Iterator[tuple[Kind, str]]:
    match type_:
        case "user":
            kind: Kind = "note" if data.get("by") in (HOOK, GOAL, PROGRAM) else "prompt"
            yield kind, text_of(blocks_of(data.get("content")))
        case "assistant":
            blocks = blocks_of(data.get("content"))
            yield "answer", text_of(blocks)
            for block in blocks:
                if block.get("type") == "thinking":
                    yield "thinking", string_of(block.get("thinking"))
            for call in tool_calls(blocks):
                yield "call", "\n".join((str(call.get("name")), *_values(call.get("input"))))
        case "tool_result":
            yield "result", text_of(blocks_of(data.get("content")))
        case _:
            for kind, name in _SIMPLE.get(type_, ()):
                yield kind, string_of(data.get(name))


def _values(given: object) -> Iterator[str]:
    """The lines of a call's input: its texts as they are, other values as JSON."""
    if not isinstance(given, dict):
        yield json.dumps(given, ensure_ascii=False, default=str)
        return
    for name, value in cast("dict[str, object]", given).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"{name}: {text}"


def _touched(data: dict[str, Any]) -> Iterator[str]:
    """The files that the calls of an answer name: those of file tools, and of patches."""
    for call in tool_calls(blocks_of(data.get("content"))):
        given = object_of(call.get("input"))
        for name, value in given.items():
            if name in _PATHS and isinstance(value, str):
                yield value
            elif isinstance(value, str) and "*** " in value:
                for line in value.splitlines():
                    mark = next((mark for mark in _PATCHED if line.startswith(mark)), "")
                    if mark:
                        yield line.removeprefix(mark).strip()


@dataclass(frozen=True, slots=True)
class Read:
    """A line of a session file that was read: where it ends (`end`, and the number of the `next`
    line), and its passage, or its header."""

    end: int
    next: int
    passage: SearchedText | None = None
    header: dict[str, Any] | None = None
    ended: bool = True


@dataclass(frozen=True, slots=True)
class WantedLines:
    """The records that must be read: those that may hold all `words`, and, with `outputs`, those
    that refer to an output."""

    words: tuple[str, ...] = ()
    outputs: bool = False

    @property
    def plain(self) -> list[bytes]:
        """The words that are the same in JSON."""
        return [word.encode() for word in self.words if _PLAIN.fullmatch(word)]

    def in_lines(self, data: bytes, words: Sequence[bytes]) -> bool:
        """False if none of some lines is wanted."""
        lowered = data.lower()
        return (
            all(word in lowered for word in words)
            or (self.outputs and _REFERS in data)
            or b"\0" in data  # which are left out
            or (not data.isascii() and any(odd in data for odd in _ODD))
        )


_ALL: Final = WantedLines()


def read_passages(
    file: FileIO, start: int, end: int, line: int, wanted: WantedLines = _ALL
) -> Iterator[Read]:
    """Read the part of a session file of ours between two places; `line` is the number of the line
    that it begins with. Damage costs the line. Records that aren't `wanted` may be left out."""
    at, time, words = start, "", wanted.plain

    def more(size: int) -> bytes:
        nonlocal at
        data = os.pread(file.fileno(), min(size, end - at), at)
        at += len(data)
        return data

    # The index may name a part that holds none of the words: one look at it all is enough then.
    if words and end - start <= _AT_ONCE and not wanted.in_lines(_read(file, start, end), words):
        return
    lines = split(more)
    if words:
        lines = (one for one in lines if _may_be_wanted(one.data, wanted, words))
    for one, value in parse(lines, Findings()):
        size = one.size if one.data is None else len(one.data)
        number = line + one.number - 1
        stop, after = start + one.offset + size + one.ended, number + one.ended
        if value.get("type") == "session":
            yield Read(stop, after, header=value, ended=one.ended)
            continue
        time = string_of(value.get("time")) or time
        type_, id_ = string_of(value.get("type")), string_of(value.get("id"))
        yield Read(stop, after, passage_of(type_, id_, number, time, value), ended=one.ended)


def _read(file: FileIO, start: int, end: int) -> bytes:
    return os.pread(file.fileno(), max(0, end - start), start)


def _may_be_wanted(line: bytes | None, wanted: WantedLines, words: Sequence[bytes]) -> bool:
    """False for a whole record that isn't wanted; a part of one may be."""
    if line is None or not line.startswith(b"{") or not line.endswith(b"}"):
        return True
    return line.startswith(_HEADER) or wanted.in_lines(line, words)


def parts_of(copy: str, cwd: str) -> list[OutputPart]:
    """The parts of a full output of a session in `cwd`; none where it is not kept any more."""
    try:
        opened = _open_copy(copy, cwd)
    except OSError:
        return []
    try:
        size = min(os.fstat(opened).st_size, _COPY_BYTES)
    finally:
        os.close(opened)
    starts = range(0, size, _PART)
    return [
        OutputPart(copy, begin := max(0, start - _OVERLAP), min(start + _PART, size) - begin)
        for start in starts
    ]


def text_of_part(part: OutputPart, cwd: str) -> str:
    """The text of a part of an output; "" where it is not kept any more."""
    try:
        opened = _open_copy(part.path, cwd)
    except OSError:
        return ""
    try:
        return os.pread(opened, part.size, part.start).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(opened)


def _open_copy(copy: str, cwd: str) -> int:
    return open_full_copy(Path(copy), Path(cwd, PRIVATE_DIR, TOOL_RESULTS))


def passages_with_outputs(passages: Iterable[SearchedText], cwd: str) -> Iterator[SearchedText]:
    """Passages, each followed by those of its full output."""
    for passage in passages:
        yield passage
        if passage.copy:
            for part in parts_of(passage.copy, cwd):
                yield output_passage(passage, text_of_part(part, cwd))


def output_passage(of: SearchedText, text: str) -> SearchedText:
    """A passage of the full output that a record refers to."""
    return SearchedText(of.record, of.line, of.time, (("output", text),))

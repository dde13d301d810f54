"""Checks the chain of a session file (`tui.session.chain`), and reports the lines that are not what
was written."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.errors import StorageError, os_error_as
from tui.core.messages import object_of
from tui.session.chain import LINK, TAIL, hash_over
from tui.session.jsonl import MAX_LINE

_RECENT: Final = 64

Change: TypeAlias = Literal["changed", "added", "missing", "moved", "before"]
"""`missing`: a line before it is; `before`: something that it covers is not as it was then."""


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """A line that is not what was written: its number from 1, the place and length of its bytes,
    what kind of record it is ("" where that can't be read), and how it differs."""

    number: int
    offset: int
    size: int
    type: str
    change: Change

    def to_json(self) -> dict[str, Any]:
        return {
            "line": self.number,
            "offset": self.offset,
            "bytes": self.size,
            "type": self.type,
            "change": self.change,
        }


@dataclass(slots=True)
class ChainReport:
    """The result of checking the links of a file. `lines` have been read, `linked` of them as they
    were written, `covered` by the hash of a chain that began later; `torn` are the numbers of lines
    that were cut short while they were written, `uncovered` of those that nothing covers, and
    `twice` of exact copies of earlier lines, which readers leave out."""

    lines: int = 0
    linked: int = 0
    covered: int = 0
    torn: list[int] = field(default_factory=list[int])
    uncovered: list[int] = field(default_factory=list[int])
    twice: list[int] = field(default_factory=list[int])
    changed: list[ChangedLine] = field(default_factory=list[ChangedLine])
    head: str = ""
    links: Collection[str] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "lines": self.lines,
            "linked": self.linked,
            "covered": self.covered,
            "torn": self.torn,
            "uncovered": len(self.uncovered),
            "twice": self.twice,
            "changed": [one.to_json() for one in self.changed],
            "head": self.head,
        }


def verify(path: Path) -> ChainReport:
    """Check every line of a file against its links, in bounded memory. Blocks. Raises StorageError
    where it can't be read."""
    with os_error_as(StorageError, f"Can't read {path}"), path.open("rb") as file:
        checker, offset = _Checker(), 0
        for number, (data, ended, size) in enumerate(_lines(file), 1):
            checker.check(_Line(number, offset, data, ended, size))
            offset += size + ended
    return checker.finish()


@dataclass(frozen=True, slots=True)
class _Line:
    """A line without its newline; of a very long one only the beginning. `ended`: a newline
    followed. An empty line is one, too."""

    number: int
    offset: int
    data: bytes
    ended: bool
    size: int


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, bool, int]]:
    while data := file.readline(MAX_LINE):
        head, size, ended = data, len(data), data.endswith(b"\n")
        while not ended and (more := file.readline(MAX_LINE)):
            size, ended = size + len(more), more.endswith(b"\n")
        yield head.removesuffix(b"\n"), ended, size - ended


@dataclass(slots=True)
class _Checker:
    report: ChainReport = field(default_factory=ChainReport)
    before: str = ""
    """The link before."""
    digest: Any = field(default_factory=sha256)
    """Over all bytes of the file so far."""
    loose: list[_Line] = field(default_factory=list[_Line])
    """The lines without a link since the last one."""
    links: dict[str, str] = field(default_factory=dict[str, str])
    """Each link with the one before it."""
    ids: set[bytes] = field(default_factory=set[bytes])

    def check(self, line: _Line) -> None:
        self.report.lines += 1
        data = line.data
        match = LINK.search(data[-TAIL:]) if len(data) == line.size else None
        if match is None:
            self.loose.append(line)
        elif data.startswith(b'{"type":"chain",') and self._begins(line, data, match):
            pass
        else:
            self._follow(line, data, match)
        self.digest.update(data + b"\n" if line.ended else data)

    def _begins(self, line: _Line, data: bytes, found: re.Match[bytes]) -> bool:
        """A line that covers all before it; whether it is one."""
        record, link = _object(data), found[1].decode()
        body = _body(data, found)
        if hash_over(body, str(record.get("sha256"))) != link:
            return False
        whole = (
            record.get("bytes") == line.offset and record.get("sha256") == self.digest.hexdigest()
        )
        if whole:
            self.report.covered += len(self.loose)
            self.report.torn += [one.number for one in self.loose if _is_torn(one)]
        else:
            self.report.uncovered += [one.number for one in self.loose]
            self.report.changed.append(_changed(line, "before"))
        self.loose.clear()
        self._next(link, data)
        return True

    def _follow(self, line: _Line, data: bytes, found: re.Match[bytes]) -> None:
        body, link = _body(data, found), found[1].decode()
        if hash_over(body, self.before) == link and not found[2]:
            for one in self.loose:
                if one.data and data.startswith(one.data):  # the disk was full, and then it wasn't
                    self.report.torn.append(one.number)
                else:
                    self.report.changed.append(_changed(one, "added"))
            self.loose.clear()
            self._next(link, data)
            return
        earlier = self.links.get(link)
        if earlier is not None and hash_over(body, earlier) == link and not found[2]:
            self.report.twice.append(line.number)  # as after a sync that failed
            return
        if self.loose:  # which were whole lines: this one follows them
            self.report.changed += [_changed(one, "changed") for one in self.loose]
            self.loose.clear()
        else:
            how = "changed" if found[2] else self._how(body, link, data)
            self.report.changed.append(_changed(line, how))
        self._next(link, data, good=False)

    def _how(self, body: bytes, link: str, data: bytes) -> Change:
        """Classify the damage of a line whose link does not fit."""
        if any(hash_over(body, known) == link for known in islice(reversed(self.links), _RECENT)):
            return "moved"
        parent = _object(data).get("parent")
        known = not isinstance(parent, str) or parent.encode("utf-8", "replace") in self.ids
        return "changed" if known else "missing"

    def _next(self, link: str, data: bytes, *, good: bool = True) -> None:
        self.links[link], self.before = self.before, link
        self.report.linked += good
        if id_ := _ID.search(data[:TAIL]):
            self.ids.add(id_[1])

    def finish(self) -> ChainReport:
        report = self.report
        report.links = self.links.keys()
        if not report.links:
            report.uncovered += [one.number for one in self.loose]
            self.loose.clear()
        for one in self.loose:
            if one is self.loose[-1] and _is_torn(one):
                report.torn.append(one.number)
            else:
                report.changed.append(_changed(one, "added"))
        report.changed.sort(key=lambda one: one.number)
        report.head = self.before
        return report


_FIRST: Final = b'{"type":"'
_ID: Final = re.compile(rb'"id":"([^"\\]{1,64})"')


def _body(data: bytes, found: re.Match[bytes]) -> bytes:
    """A line as it was before it got its link."""
    return data[: len(data) - len(found[0])] + b"}"


def _is_torn(line: _Line) -> bool:
    """True for the beginning of a line whose writing was cut short."""
    return line.data.startswith(_FIRST) and not _object(line.data)


def _changed(line: _Line, change: Change) -> ChangedLine:
    type_ = _object(line.data).get("type") if len(line.data) == line.size else None
    kind = type_ if isinstance(type_, str) else ""
    return ChangedLine(line.number, line.offset, line.size, kind, change)


def _object(data: bytes) -> dict[str, Any]:
    try:
        return object_of(json.loads(data))
    except (ValueError, RecursionError):
        return {}

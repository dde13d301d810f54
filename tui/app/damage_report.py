"""The damage of a session, in words, with before and after. Blocks; writes nothing.

A finding about the file shows the bytes of its line and what was made of them; one about the
conversation shows the messages there, as recorded and as they will be sent.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

from tui.context.history import history
from tui.context.repair import repair
from tui.core.dataclass import dataclass, field
from tui.core.errors import SessionError
from tui.core.facts import INTERRUPTION
from tui.core.formatting import plural
from tui.core.messages import Message
from tui.session.jsonl import Findings, parse, split
from tui.session.reader import open_session
from tui.session.records import LEFT_OUT, Finding, Record

SHOWN_BYTES = 64 * 1024
"""Bytes of a line that are shown."""

KINDS_NAMED = 6
"""Number of kinds of damage that a summary names."""

_JOINED_BYTES = 256 * 1024
_LINE = re.compile(r"line (\d+)(?: \(byte (\d+)\))?")
_MESSAGE = re.compile(r"messages\.(\d+)(?:\.content\.(\d+))?")
_GONE = frozenset({"B40", "B52", "B55", "B56", "B57", "B58"})
"""Damage that leaves nothing of a line."""

_OF_LINES = frozenset(f"B{number}" for number in range(40, 55))
_WORDS: dict[str, str] = {
    "B01": "call(s) without a result",
    "B02": "result(s) without a call",
    "B03": "call id(s) used twice",
    "B04": "second result(s) of a call",
    "B05": "result(s) out of place",
    "B06": "result(s) out of place",
    "B07": "call(s) with broken input",
    "B08": "call(s) with an invalid id",
    "B09": "call(s) with an invalid name",
    "B10": "empty text(s)",
    "B11": "empty text(s)",
    "B12": "mark(s) on an empty text",
    "B13": "empty message(s)",
    "B14": "answer(s) ending in a space",
    "B16": "answer(s) ending in thinking",
    "B17": "thinking without its signature",
    "B18": "thinking without its text",
    "B23": "call(s) cut short",
    "B25": "half of a server's call(s)",
    "B27": "field(s) that can't be sent",
    "B28": "message(s) with a wrong role",
    "B29": "error(s) without text",
    "B30": "image(s) too large",
    "B31": "image(s) too large",
    "B32": "image(s) that can't be read",
    "B33": "image(s) of a wrong type",
    "B38": "broken character(s)",
    "B39": "message(s) out of order",
    "B40": "last line(s) cut short",
    "B41": "torn line(s)",
    "B42": "line(s) with several records",
    "B43": "line(s) with NUL bytes",
    "B44": "record(s) stored twice",
    "B45": "file(s) without content",
    "B46": "record(s) over several lines",
    "B48": "byte order mark(s)",
    "B49": "line(s) not in UTF-8",
    "B51": "record(s) too long",
    "B52": "line(s) that can't be read",
    "B53": "record(s) with a lost link",
    "B54": "missing header(s)",
    "B55": "answer(s) that failed",
    "B56": "record(s) of an unknown kind",
    "B57": "error(s) among the answers",
    "B58": "prompt(s) stored twice",
    LEFT_OUT: "kind(s) of record left out",
}


def damage_findings(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that are more than an interrupted turn, or than what another program keeps for
    itself: those that a person is asked about."""
    return [finding for finding in findings if finding.code not in {INTERRUPTION, LEFT_OUT}]


def findings_summary(findings: Sequence[Finding]) -> str:
    """Count findings by kind, the most frequent first, in words."""
    kinds = Counter(_WORDS.get(finding.code, "other finding(s)") for finding in findings)
    named = [_counted(count, kind) for kind, count in kinds.most_common(KINDS_NAMED)]
    left = len(kinds) - KINDS_NAMED
    return ", ".join([*named, f"{left} other kinds"] if left > 0 else named)


def kind_of(code: str) -> str:
    """The kind of findings with a code, in words."""
    return _WORDS.get(code, "other findings").replace("(s)", "s").replace("(is|are)", "are")


def kinds_summary(codes: Sequence[str]) -> str:
    """Name kinds of findings, in words."""
    return ", ".join([*dict.fromkeys(map(kind_of, codes))][:KINDS_NAMED])


def _counted(count: int, kind: str) -> str:
    one = count == 1
    kind = kind.replace("(s)", "" if one else "s")
    return f"{count:,} {kind.replace('(is|are)', 'is' if one else 'are')}"


def where(finding: Finding) -> str:
    """The place of a finding, as a person counts."""
    if match := _MESSAGE.match(finding.where):
        block = f", part {int(match[2]) + 1}" if match[2] else ""
        return f"message {int(match[1]) + 1:,}{block}"
    if match := _LINE.match(finding.where):
        return f"line {int(match[1]):,}"
    return finding.where


@dataclass
class Damage:
    """A damaged session: its file, the records of its branch, what was found.

    Before and after are made when they are asked for, one finding at a time.
    """

    path: Path
    records: Sequence[Record]
    findings: Sequence[Finding]
    _cache: dict[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])

    def sides(self, number: int) -> tuple[str, str]:
        """Return the content before and after, of the finding of that number."""
        if number not in self._cache:
            finding = self.findings[number]
            if match := _MESSAGE.match(finding.where):
                sides = self._messages(int(match[1]))
            elif (match := _LINE.match(finding.where)) and match[2] is not None:
                sides = self._line(int(match[2]), finding)
            else:
                sides = ("", finding.action)
            self._cache[number] = sides
        return self._cache[number]

    # The conversation

    @cached_property
    def _recorded(self) -> list[Message]:
        return history(self.records).messages

    @cached_property
    def _repaired(self) -> list[Message]:
        return repair(self._recorded, tail="open")[0]

    @cached_property
    def _same(self) -> list[tuple[int, int]]:
        """The messages that are the same before and after: their numbers, in order."""
        places = {_key(message): n for n, message in enumerate(self._repaired)}
        same: list[tuple[int, int]] = []
        last = -1
        for n, message in enumerate(self._recorded):
            at = places.get(_key(message), -1)
            if at > last:
                same.append((n, at))
                last = at
        return same

    def _messages(self, number: int) -> tuple[str, str]:
        before = max((pair for pair in self._same if pair[0] < number), default=(-1, -1))
        end = (len(self._recorded), len(self._repaired))
        behind = min((pair for pair in self._same if pair[0] > number), default=end)
        recorded = self._recorded[before[0] + 1 : behind[0]]
        sent = self._repaired[before[1] + 1 : behind[1]]
        return _pretty(recorded), _pretty(sent) if sent else "(left out)"

    # The file

    def _line(self, offset: int, finding: Finding) -> tuple[str, str]:
        try:
            with open_session(self.path) as file:
                file.seek(offset)
                data = file.read(_JOINED_BYTES)
        except (SessionError, OSError) as error:
            return f"({error})", finding.action
        line = data.partition(b"\n")[0]
        read = BytesIO(data if finding.code == "B46" else line + b"\n").read
        made: list[dict[str, Any]] = []
        for _, value in parse(split(read), Findings()):
            made.append(value)
            if finding.code == "B46":
                break
        linked = [self._as_linked(value) for value in made]
        shown = line[:SHOWN_BYTES].decode(errors="backslashreplace").replace("\0", "\\x00")
        more = f"\n… {len(line) - SHOWN_BYTES:,} more bytes" if len(line) > SHOWN_BYTES else ""
        if finding.code in _GONE or finding.code not in _OF_LINES or not linked:
            return shown + more, f"({finding.action})"
        return shown + more, "\n".join([f"({finding.action})", *map(_json, linked)])

    def _as_linked(self, value: dict[str, Any]) -> dict[str, Any]:
        """A record of a line, with the parent that it has now."""
        record = self._by_id.get(str(value.get("id")))
        return value | {"parent": record.parent} if record and "parent" in value else value

    @cached_property
    def _by_id(self) -> dict[str, Record]:
        return {record.id: record for record in self.records}


def _key(message: Message) -> tuple[object, ...]:
    return (message["role"], *map(id, message["content"]))


def _pretty(messages: Sequence[Message]) -> str:
    return "\n".join(_json(dict(message)) for message in messages)


def _json(value: dict[str, Any]) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2)
    if len(text) <= SHOWN_BYTES:
        return text
    return f"{text[:SHOWN_BYTES]}\n… {plural(len(text) - SHOWN_BYTES, 'more character')}"

"""Facts for pruning about the answers of a growing branch: each is looked at once.

A branch that was rewound is looked at again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tui.context.breaks import BREAK, thoughtless
from tui.context.cache_cost import LIFE_S, LONG_LIFE_S
from tui.context.overrides import content_of
from tui.context.record_index import continues
from tui.context.request_trail import has_thinking
from tui.core.dataclass import dataclass, field
from tui.core.messages import Usage
from tui.session.records import Record, is_answer


@dataclass(slots=True)
class AnswerFacts:
    """The number of answers since the last compaction, the last of all answers, and how long the
    cache holds what was written last."""

    since_compaction: int = 0
    last: Record | None = None
    life_s: float = LIFE_S
    _count: int = 0
    _end: Record | None = None

    def follow(self, records: Sequence[Record]) -> None:
        """Take in the records that came since."""
        if not continues(records, self._count, self._end):
            self.since_compaction, self.last, self.life_s, self._count = 0, None, LIFE_S, 0
        for number in range(self._count, len(records)):
            self._take(records[number])
        self._count = len(records)
        self._end = records[-1] if records else None

    def _take(self, record: Record) -> None:
        if record.type == "compaction":
            self.since_compaction = 0
        if record.type != "assistant":
            return
        if is_answer(record):
            self.since_compaction += 1
            self.last = record
        usage = Usage.from_json(record.data.get("usage"))
        if usage.cache_creation_input_tokens:
            self.life_s = LONG_LIFE_S if usage.ephemeral_1h_input_tokens else LIFE_S


@dataclass(slots=True)
class ThinkingAnswers:
    """The answers that are sent with their thinking, by the numbers of their records."""

    _numbers: list[int] = field(default_factory=list[int])
    _thoughtless: frozenset[str] = frozenset()
    _count: int = 0
    _end: Record | None = None

    def between(self, records: Sequence[Record], start: int, end: int) -> int:
        """Count them from record number `start` to before number `end`."""
        self._follow(records)
        return max(0, bisect_left(self._numbers, end) - bisect_left(self._numbers, start))

    def _follow(self, records: Sequence[Record]) -> None:
        """Take in the records that came since. A break changes what is sent of those before it."""
        grown = continues(records, self._count, self._end)
        fresh = range(self._count, len(records))
        if not grown or any(records[n].type in {BREAK, "uncompaction"} for n in fresh):
            self._numbers, fresh = [], range(len(records))
            self._thoughtless = thoughtless(records)
        for number in fresh:
            record = records[number]
            if record.type != "assistant" or record.id in self._thoughtless:
                continue
            if has_thinking(content_of(record)):
                self._numbers.append(number)
        self._count = len(records)
        self._end = records[-1] if records else None

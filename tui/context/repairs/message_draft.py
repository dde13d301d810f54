"""Messages under repair, and the report of the repairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.late_pattern import late_pattern
from tui.core.messages import Block
from tui.session.records import Finding

_PLACE = late_pattern(r"messages\.(\d+)(?:\.content\.(\d+))?")

Note: TypeAlias = Callable[[str, str], None]
"""Notes a code and an action, for a place that is already known."""


def place(where: str) -> tuple[int, int]:
    """Parse a place into the indices of its message and block; -1 for one that it does not name."""
    names = _PLACE.match(where)
    return (int(names[1]), int(names[2] or -1)) if names else (-1, -1)


@dataclass(slots=True)
class RepairReport:
    """The changes made. `gone` has the ids of calls left out on purpose."""

    findings: list[Finding] = field(default_factory=list[Finding])
    gone: set[str] = field(default_factory=set[str])

    def add(self, code: str, where: str, action: str) -> None:
        self.findings.append(Finding(code, where, action))

    def in_order(self) -> tuple[Finding, ...]:
        """The findings in the order of the messages they are about."""
        return tuple(sorted(self.findings, key=lambda finding: place(finding.where)))

    def at(self, where: str) -> Note:
        return lambda code, action: self.add(code, where, action)


class DraftBlock(NamedTuple):
    """A block, and its place in the original messages."""

    where: str
    block: Block

    @property
    def kind(self) -> str:
        return str(self.block.get("type"))


@dataclass(slots=True)
class MessageDraft:
    """A message under repair. Its items are replaced, never changed."""

    role: Literal["user", "assistant"]
    where: str
    items: list[DraftBlock] = field(default_factory=list[DraftBlock])

    def has(self, kind: str) -> bool:
        return any(item.kind == kind for item in self.items)


def without(block: Block, *names: str) -> Block:
    return {name: value for name, value in block.items() if name not in names}

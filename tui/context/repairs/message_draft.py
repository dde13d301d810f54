"""Messages under repair, and the report of what was done to them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from tui.core.messages import Block
from tui.session.records import Finding

_PLACE = re.compile(r"messages\.(\d+)(?:\.content\.(\d+))?")

Note: TypeAlias = Callable[[str, str], None]
"""Notes a code and what was done, for a place known to whoever made it."""


def place(where: str) -> tuple[int, int]:
    """The message and block that a place names; -1 for what it does not name."""
    found = _PLACE.match(where)
    return (int(found[1]), int(found[2] or -1)) if found else (-1, -1)


@dataclass(slots=True)
class Report:
    """What was done. `gone` holds the ids of calls left out on purpose."""

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
    """A block, and where it stood in the messages as they were given."""

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

"""Messages under repair, and the report of what was done to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from tui.messages import Block
from tui.session.records import Finding

Note: TypeAlias = Callable[[str, str], None]
"""Notes a code and what was done, for a place known to whoever made it."""


@dataclass(slots=True)
class Report:
    """Findings in the order they were made. `gone` holds the ids of calls left out on purpose."""

    findings: list[Finding] = field(default_factory=list[Finding])
    gone: set[str] = field(default_factory=set[str])

    def add(self, code: str, where: str, action: str) -> None:
        self.findings.append(Finding(code, where, action))

    def at(self, where: str) -> Note:
        return lambda code, action: self.add(code, where, action)


class Item(NamedTuple):
    """A block, and where it stood in the messages as they were given."""

    where: str
    block: Block

    @property
    def kind(self) -> str:
        return str(self.block.get("type"))


@dataclass(slots=True)
class Draft:
    """A message under repair. Its items are replaced, never changed."""

    role: Literal["user", "assistant"]
    where: str
    items: list[Item] = field(default_factory=list[Item])

    def has(self, kind: str) -> bool:
        return any(item.kind == kind for item in self.items)

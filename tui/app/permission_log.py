"""The rules in force and the decisions of a session, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from tui.core.config import Permissions
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.permissions.types import Mode
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent

MODE_NAMES: Final[Mapping[Mode, str]] = {
    "ask": "asks before changes",
    "accept_edits": "accepts edits",
    "plan": "plan: read only",
}
_REFUSED = frozenset({"deny", "no"})


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision: when, about which call, what was said, by whom, and why."""

    time: str
    tool: str
    subject: str
    answer: str
    by: str
    reason: str

    @property
    def level(self) -> str:
        if self.answer in _REFUSED:
            return "error"
        return "warning" if self.by == "elevated" else "success"


def decisions(records: Iterable[Record]) -> list[DecisionRow]:
    """What the `permission` records of a session say, oldest first."""
    found: list[DecisionRow] = []
    for record in records:
        if record.type == "permission":
            said = [one_line(str(record.data.get(name) or "")) for name in _FIELDS]
            found.append(DecisionRow(_clock(record.time), *said))
    return found


_FIELDS = ("tool", "subject", "answer", "by", "reason")


def _clock(time: str) -> str:
    try:
        return f"{datetime.fromisoformat(time).astimezone():%H:%M:%S}"
    except ValueError:
        return ""


def rule_lines(rules: Permissions, agent: Agent, *, elevated: bool) -> list[tuple[str, str]]:
    """The rules in force in the order in which they count: a name, and what holds."""
    lines = [
        ("mode", MODE_NAMES[agent.mode]),
        ("folders", ", ".join(map(shorten, agent.folders))),
        ("ceiling", rules.ceiling),
    ]
    lines += [
        (name, ", ".join(map(str, getattr(rules, name))) or "none")
        for name in ("deny", "ask", "allow", "auto_grant")
    ]
    if elevated:
        lines.insert(0, ("ELEVATED", "nothing is asked; what is denied or blocked stays so"))
    return lines

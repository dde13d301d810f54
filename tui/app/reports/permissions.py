"""/permissions: the rules in force with their origin, and the decisions of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, cast

from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line, visible
from tui.core.workspace import PRIVATE_DIR
from tui.permissions.rules import Rule
from tui.permissions.types import MODE_NAMES
from tui.session.records import Record
from tui.settings import layers

if TYPE_CHECKING:
    from pathlib import Path

    from tui.agent.agent import Agent
    from tui.app.services import AppServices

SESSION = "this session"
YOURS = "your config.toml"
FOLDER = "this folder's config.toml"
RUN = "the command line or the environment"


@dataclass(frozen=True, slots=True)
class PermissionsReport:
    """`rules` are names with what holds, in the order in which they count; the decisions follow
    each other, the oldest first."""

    rules: Sequence[tuple[str, str]]
    decisions: Sequence[DecisionRow]


async def permissions_report(
    agent: Agent, services: AppServices, *, elevated: bool
) -> PermissionsReport:
    rows = await asyncio.to_thread(
        rule_rows, agent, services.folders.config_file, services.workspace
    )
    rules = list(_rules_in_force(agent, services, rows))
    if elevated:
        rules.insert(0, ("ELEVATED", "no prompts; denied and blocked commands still refused"))
    return PermissionsReport(rules, decisions(agent.session.records))


def _rules_in_force(
    agent: Agent, services: AppServices, rows: Sequence[RuleRow]
) -> Iterator[tuple[str, str]]:
    configured = services.permissions()
    yield "mode", MODE_NAMES[agent.permissions.mode]
    yield "folders", ", ".join(map(shorten, agent.permissions.folders))
    yield "elevated to", configured.ceiling
    for name in ("deny", "ask", "allow", "session"):
        texts = [row.text for row in rows if row.kind == name]
        if texts or name != "session":
            yield name, ", ".join(texts) or "none"
    yield "write freely", ", ".join(configured.auto_grant) or "none"


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A rule in force: what it does, where it comes from, how many calls it decided."""

    kind: str
    rule: Rule
    origin: str
    matched: int

    @property
    def text(self) -> str:
        times = f", matched {plural(self.matched, 'call')}" if self.matched else ""
        return f"{visible(str(self.rule))} ({self.origin}{times})"


def rule_rows(agent: Agent, config_file: Path, workspace: Path) -> list[RuleRow]:
    """The rules and the yeses of this session in the order in which they count. Reads files."""
    policy = agent.permissions.gate.policy
    places = (
        (YOURS, config_file),
        (FOLDER, workspace / PRIVATE_DIR / "config.toml"),
    )
    files = [(origin, _rules_of(file)) for origin, file in places]
    decided = [record.data for record in agent.session.records if record.type == "permission"]
    rows: list[RuleRow] = []
    for kind, rules in (("deny", policy.deny), ("ask", policy.ask), ("allow", policy.allow)):
        for rule in rules:
            found = [origin for origin, texts in files if str(rule) in texts.get(kind, ())]
            count = sum(data.get("by") == str(rule) for data in decided)
            rows.append(RuleRow(kind, rule, found[0] if found else RUN, count))
    by_session = [data for data in decided if data.get("by") == "session"]
    for rule in dict.fromkeys(
        rule for grant in agent.permissions.gate.grants for rule in grant.shown
    ):
        count = sum(
            rule.names(str(data.get("tool"))) and rule.matches(str(data.get("subject")))
            for data in by_session
        )
        rows.append(RuleRow("session", rule, SESSION, count))
    return rows


def _rules_of(file: Path) -> dict[str, Sequence[str]]:
    """The rules that a file names, none where it cannot be read."""
    try:
        table = layers.parse(file.read_bytes(), file)
    except (OSError, HoldfastError):
        return {}
    rules: object = table.get("permissions")
    return cast("dict[str, Sequence[str]]", rules) if isinstance(rules, dict) else {}


_REFUSED = frozenset({"deny", "no"})


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """One decision: its time, its call, the answer, who gave it, and why."""

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
    """List the contents of a session's `permission` records, oldest first."""
    rows: list[DecisionRow] = []
    for record in records:
        if record.type == "permission":
            fields = [one_line(str(record.data.get(name) or "")) for name in _FIELDS]
            rows.append(DecisionRow(_clock(record.time), *fields))
    return rows


_FIELDS = ("tool", "subject", "answer", "by", "reason")


def _clock(time: str) -> str:
    try:
        return f"{datetime.fromisoformat(time).astimezone():%H:%M:%S}"
    except ValueError:
        return ""

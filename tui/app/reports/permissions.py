"""/permissions: the rules in force with their origin, and the decisions of a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias, cast

from tui.app.reports import Row
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.formatting import plural, shortened
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
ELEVATED = "no prompts; denied and blocked commands still refused"


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
    rules = list(_rules_in_force(agent, rows))
    if elevated:
        rules.insert(0, ("ELEVATED", ELEVATED))
    return PermissionsReport(rules, decisions(agent.session.records))


def _settings(agent: Agent) -> Iterator[tuple[str, str]]:
    configured = agent.permissions.configured
    yield "mode", MODE_NAMES[agent.permissions.mode]
    yield "folders", ", ".join(map(shorten, agent.permissions.folders))
    yield "elevated to", configured.ceiling
    yield "write freely", ", ".join(configured.auto_grant) or "none"


def _rules_in_force(agent: Agent, rows: Sequence[RuleRow]) -> Iterator[tuple[str, str]]:
    *settings, free = _settings(agent)
    yield from settings
    for name in ("deny", "ask", "allow", "session"):
        texts = [row.text for row in rows if row.kind == name]
        if texts or name != "session":
            yield name, ", ".join(texts) or "none"
    yield free


PermissionRows: TypeAlias = "tuple[Sequence[Row], Mapping[str, RuleRow]]"
REVOCABLE = frozenset({"allow", "session"})
"""The kinds of rules that a person can take back."""
_LOOKS = {"deny": ("✗", "error"), "ask": ("?", "warning")}
_ABOUT = {
    "mode": "What is asked by default. Shift+Tab switches it.",
    "folders": "Where the tools work. /add-dir adds a folder.",
    "elevated to": "Where file tools may go under /elevated on.",
    "write freely": "Files that tools write without asking.",
}
_SUBJECT_CHARS = 60


async def permission_rows(agent: Agent, services: AppServices, *, elevated: bool) -> PermissionRows:
    """Make the rows of a panel, and return the rules by their row's key: how calls are decided, the
    rules in the order in which they count, the decisions with the newest first."""
    rules = await asyncio.to_thread(
        rule_rows, agent, services.folders.config_file, services.workspace
    )
    by_key = {f"rule {rule.kind} {rule.rule}": rule for rule in rules}
    rows = [
        Row(name, (value,), name, about=(*([value] if "," in value else ()), _ABOUT[name]))
        for name, value in _settings(agent)
    ]
    if elevated:
        rows.insert(0, Row("ELEVATED", (ELEVATED,), "elevated", look="warning", about=(ELEVATED,)))
    rows += [_rule(key, rule) for key, rule in by_key.items()]
    made = decisions(agent.session.records)
    if made:
        rows.append(Row(plural(len(made), "decision"), key="decisions", dim=True))
    rows += [_decision(len(made) - n, one) for n, one in enumerate(reversed(made))]
    return rows, by_key


def _rule(key: str, rule: RuleRow) -> Row:
    mark, look = _LOOKS.get(rule.kind, ("✓", "success"))
    times = plural(rule.matched, "call") if rule.matched else ""
    verb = {"session": "allow"}.get(rule.kind, rule.kind)
    returns = rule.kind in REVOCABLE and rule.origin in {FOLDER, RUN}
    about = (
        visible(str(rule.rule)),
        f"From {rule.origin}." + (f" It decided {times} in this session." if times else ""),
        *(["Revoked, it returns next time."] if returns else []),
    )
    actions = {"copy", "revoke"} if rule.kind in REVOCABLE else {"copy"}
    name = one_line(visible(str(rule.rule)))
    return Row(name, (verb, rule.origin, times), key, mark, look, about, frozenset(actions))


def _decision(number: int, one: DecisionRow) -> Row:
    call = f"{one.tool} {one.subject}"
    short = shortened(call, _SUBJECT_CHARS)
    about = (call, f"{one.answer} · {one.by} · {one.reason}")
    mark = "✗" if one.level == "error" else "✓"
    values = one.answer, one.by, one.time
    actions = frozenset({"copy"})
    return Row(short, values, f"decision {number}", mark, one.level, about, actions, depth=1)


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

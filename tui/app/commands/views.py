"""What commands show, as data: each front end has its own words and layout for it. Here are also
the rules in force and the decisions of a session, in words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import floor
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app.workspace_diff import diff_text
from tui.context.file_changes import changes
from tui.context.workspace_changes import WorkspaceChanges, changed_since
from tui.core.config import Permissions
from tui.core.formatting import money, tokens
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line
from tui.permissions.types import MODE_NAMES
from tui.session.checkpoints.entries import CheckpointError
from tui.session.records import Record

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.commands.permissions import RuleRow
    from tui.app.conversation import Conversation

UNPRICED = "One of the models has no known price, so the cost is unknown."


def usage_rows(agent: Agent) -> list[tuple[str, list[str]]]:
    """What /usage shows: a name, then the last prompt's figure and the session's."""
    found = agent.spending()
    both = (found.prompt, found.session)
    uses = [spent.usage for spent in both]
    return [
        ("", ["last prompt", "session"]),
        ("requests", [str(spent.requests) for spent in both]),
        ("input", [tokens(use.input_tokens) for use in uses]),
        ("cache write", [tokens(use.cache_creation_input_tokens) for use in uses]),
        ("cache read", [tokens(use.cache_read_input_tokens) for use in uses]),
        ("output", [tokens(use.output_tokens) for use in uses]),
        ("cost", [money(spent.usd if spent.requests else None) for spent in both]),
    ]


def status_figures(agent: Agent) -> list[str]:
    """What /status says of cache and cost, once something was answered."""
    found = agent.spending()
    if (share := found.last.cache_share) is None:
        return []
    return [
        f"cache    {floor(100 * share)} % of the last request",
        f"cost     {money(found.session.usd)}",
    ]


def checker_states(agent: Agent) -> str:
    """The language servers and linters of the session and their state; "" before the first
    edit that one could check."""
    return ", ".join(
        f"{one.name} {one.state}" + (f" ({one_line(one.detail)})" if one.detail else "")
        for one in agent.checkers
    )


async def session_diff(conversation: Conversation) -> tuple[int, str] | None:
    """How many files the session changed, by its tools and its commands, and one unified diff of
    them all, from before the session to how they are now; where there are none it is said."""
    agent = conversation.agent
    now = await agent.checkpoints.now() if agent and agent.checkpoints else ""
    found = await asyncio.to_thread(_since_start, agent, now) if agent else None
    if agent is None or found is None or not found.own_files:
        hint = "" if now else "(Changes made by commands aren't known: there are no checkpoints.)"
        conversation.frontend.say("No files changed in this session.", hint=hint)
        return None
    text = await asyncio.to_thread(_diff_text, agent, found, conversation.services.workspace)
    return len(found.own_files), text


def _since_start(agent: Agent, now: str) -> WorkspaceChanges:
    records = list(agent.session.records)
    written = WorkspaceChanges(known=False, beside=tuple(changes(records)))
    first = next((n for n, record in enumerate(records) if record.type == "user"), None)
    if agent.checkpoints is None or not now or first is None:
        return written
    try:
        return changed_since(records, first, now, agent.checkpoints.store().difference)
    except CheckpointError:
        return written


def _diff_text(agent: Agent, found: WorkspaceChanges, root: Path) -> str:
    content = agent.checkpoints.store().content if agent.checkpoints else _no_content
    return diff_text(found, root, content)


def _no_content(digest: bytes) -> bytes:
    raise CheckpointError(f"There is no copy of {digest.hex()}.")


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


def rule_lines(
    rules: Permissions, agent: Agent, rows: Sequence[RuleRow], *, elevated: bool
) -> list[tuple[str, str]]:
    """The rules in force in the order in which they count: a name, and what holds."""
    lines = [
        ("mode", MODE_NAMES[agent.permissions.mode]),
        ("folders", ", ".join(map(shorten, agent.permissions.folders))),
        ("ceiling", rules.ceiling),
    ]
    for name in ("deny", "ask", "allow"):
        told = [row.text for row in rows if row.kind == name]
        lines.append((name, ", ".join(told) or "none"))
    if granted := [row.text for row in rows if row.kind == "session"]:
        lines.append(("session", ", ".join(granted)))
    lines.append(("auto_grant", ", ".join(rules.auto_grant) or "none"))
    if elevated:
        lines.insert(0, ("ELEVATED", "no prompts; denied and blocked commands still refused"))
    return lines

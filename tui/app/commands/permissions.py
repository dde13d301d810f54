"""/permissions revoke and /permissions try: rules with their origin, revoked and tried."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.text_cleaning import visible
from tui.core.workspace import PRIVATE_DIR
from tui.permissions.rules import Rule
from tui.permissions.types import Call
from tui.settings import edit, layers

if TYPE_CHECKING:
    from pathlib import Path

    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation

_SESSION = "this session"
_YOURS = "your config.toml"
_FOLDER = "this folder's config.toml"
_RUN = "the command line or the environment"
_USAGE = "/permissions shows them; /permissions revoke, /permissions try COMMAND."
_KEYS = "123456789abcdefghijklmnopqrstuvwxyz"


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
        (_YOURS, config_file),
        (_FOLDER, workspace / PRIVATE_DIR / "config.toml"),
    )
    files = [(origin, _rules_of(file)) for origin, file in places]
    asked = [record.data for record in agent.session.records if record.type == "permission"]
    rows: list[RuleRow] = []
    for kind, rules in (("deny", policy.deny), ("ask", policy.ask), ("allow", policy.allow)):
        for rule in rules:
            found = [origin for origin, texts in files if str(rule) in texts.get(kind, ())]
            count = sum(data.get("by") == str(rule) for data in asked)
            rows.append(RuleRow(kind, rule, found[0] if found else _RUN, count))
    given = [data for data in asked if data.get("by") == "session"]
    for rule in dict.fromkeys(
        rule for grant in agent.permissions.gate.grants for rule in grant.shown
    ):
        count = sum(
            rule.names(str(data.get("tool"))) and rule.matches(str(data.get("subject")))
            for data in given
        )
        rows.append(RuleRow("session", rule, _SESSION, count))
    return rows


def _rules_of(file: Path) -> dict[str, Sequence[str]]:
    """The rules that a file names, none where it cannot be read."""
    try:
        table = layers.parse(file.read_bytes(), file)
    except (OSError, HoldfastError):
        return {}
    rules: object = table.get("permissions")
    return cast("dict[str, Sequence[str]]", rules) if isinstance(rules, dict) else {}


async def permissions(conversation: Conversation, argument: str) -> None:
    """Revoke a rule, or say what would become of a command."""
    agent = conversation.open_agent()
    if agent is None:
        return
    word, _, rest = argument.partition(" ")
    if word == "revoke" and not rest:
        await _revoke(conversation, agent)
    elif word == "try" and rest.strip():
        conversation.frontend.say(would_run(agent, rest.strip()))
    else:
        conversation.frontend.say("Unknown /permissions argument.", "warning", hint=_USAGE)


def would_run(agent: Agent, command: str) -> str:
    """What would become of a command now, without running it."""
    call = Call("try", "run_command", "run", command, command)
    decision = agent.permissions.try_call(call)
    fate = {
        "allow": "would run without a question",
        "ask": "would ask",
        "deny": "would be refused",
    }[decision.answer]
    if decision.walls and decision.answer != "deny":
        fate += f" (⛨ {decision.level})"
    risk = f", {decision.risk}" if decision.risk else ""
    return f"{visible(command)}: {fate}{risk}. {visible(decision.reason)}"


async def _revoke(conversation: Conversation, agent: Agent) -> None:
    """Ask which one, and take it back: out of the session, and of the person's own file."""
    folders, workspace = conversation.services.folders, conversation.services.workspace
    found = await asyncio.to_thread(rule_rows, agent, folders.config_file, workspace)
    rows = [row for row in found if row.kind in {"allow", "session"}][: len(_KEYS)]
    if not rows:
        conversation.frontend.say("Nothing to revoke: no allow rules or grants yet.")
        return
    options = [
        AnswerOption(key, row.text, f"rule{number}")
        for number, (key, row) in enumerate(zip(_KEYS, rows, strict=False))
    ]
    question = ChoiceQuestion(
        "Revoke what?",
        "The next matching call asks again.",
        tuple(options),
    )
    chosen = await conversation.frontend.choose(question)
    if chosen is None:
        return
    row = rows[int(chosen.removeprefix("rule"))]
    if row.origin == _YOURS:
        await asyncio.to_thread(edit.forget_allowed, folders, str(row.rule))
    agent.permissions.gate.revoke(row.rule)
    conversation.frontend.refresh()
    stays = row.origin in {_FOLDER, _RUN}
    conversation.frontend.say(
        f"Revoked: {visible(str(row.rule))}.",
        "success",
        hint=f"It returns next time: it comes from {row.origin}." if stays else "",
    )

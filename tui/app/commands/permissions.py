"""/permissions revoke and /permissions try."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tui.app.dialog_data import AnswerOption, ChoiceQuestion
from tui.app.reports.permissions import FOLDER, REVOCABLE, RUN, YOURS, RuleRow, rule_rows
from tui.core.text_cleaning import visible
from tui.permissions.types import Call
from tui.settings import edit

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.app.conversation import Conversation

_USAGE = "/permissions shows them; /permissions revoke, /permissions try COMMAND."
_KEYS = "123456789abcdefghijklmnopqrstuvwxyz"


async def permissions(conversation: Conversation, argument: str) -> None:
    """Revoke a rule, or say what would become of a command."""
    agent = conversation.open_agent()
    if agent is None:
        return
    word, _, operand = argument.partition(" ")
    if word == "revoke" and not operand:
        await _revoke(conversation, agent)
    elif word == "try" and operand.strip():
        conversation.frontend.say(would_run(agent, operand.strip()))
    else:
        conversation.frontend.say("Unknown /permissions argument.", "warning", hint=_USAGE)


def would_run(agent: Agent, command: str) -> str:
    """Say what would become of a command now, without running it."""
    call = Call("try", "run_command", "run", command, command)
    decision = agent.permissions.try_call(call)
    fate = {
        "allow": "would run without a question",
        "ask": "would ask",
        "deny": "would be refused",
    }[decision.answer]
    if decision.walls and decision.answer != "deny":
        fate += f" (sandbox: {decision.level})"
    risk = f", {decision.risk}" if decision.risk else ""
    return f"{visible(command)}: {fate}{risk}. {visible(decision.reason)}"


async def _revoke(conversation: Conversation, agent: Agent) -> None:
    """Ask which one, and take it back."""
    folders, workspace = conversation.services.folders, conversation.services.workspace
    every_row = await asyncio.to_thread(rule_rows, agent, folders.config_file, workspace)
    rows = [row for row in every_row if row.kind in REVOCABLE][: len(_KEYS)]
    if not rows:
        conversation.frontend.say("Nothing to revoke: nothing is allowed yet beyond the usual.")
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
    await revoke(conversation, agent, rows[int(chosen.removeprefix("rule"))])


async def revoke(conversation: Conversation, agent: Agent, row: RuleRow) -> None:
    """Take a rule back: out of the session, and of the person's own file. Raises HoldfastError."""
    if row.origin == YOURS:  # it would be back with the next start
        folders = conversation.services.folders
        await asyncio.to_thread(edit.forget_allowed, folders, str(row.rule))
    agent.permissions.gate.revoke(row.rule)
    conversation.frontend.refresh()
    stays = row.origin in {FOLDER, RUN}
    conversation.frontend.say(
        f"Revoked: {visible(str(row.rule))}.",
        "success",
        hint=f"It returns next time: it comes from {row.origin}." if stays else "",
    )

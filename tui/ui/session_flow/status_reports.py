"""/status and /usage: reports that stand in the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.ports import Agent
from tui.core.paths import shorten
from tui.ui.widgets.figures import money, tokens

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk

UNPRICED = "A model without a configured price answered, so the cost is not known."


def status(desk: Desk) -> None:
    agent, services = desk.bridge.agent, desk.bridge.services
    if agent is None:
        desk.bridge.chat.notice.say("No session is open yet.")
        return
    path = agent.session.path
    lines = [
        f"session  {agent.session.id}",
        f"file     {shorten(path) if path else 'none: kept in memory only'}",
        f"folder   {shorten(services.workspace)}",
        f"model    {agent.model}, window {tokens(agent.window)}",
        f"mode     {agent.mode.replace('_', ' ')}",
    ]
    _report(desk, "Status", lines)


def usage(desk: Desk) -> None:
    """What the session has cost by price class, and beside it what the last prompt has."""
    agent = desk.bridge.agent
    if agent is None:
        desk.bridge.chat.notice.say("No session is open yet.")
        return
    rows = usage_rows(agent)
    lines = [f"{name:<12}{one:>12}{all_:>12}" for name, (one, all_) in rows]
    if agent.spending().session.usd is None:
        lines.append(UNPRICED)
    _report(desk, "Usage in tokens", lines)


def usage_rows(agent: Agent) -> list[tuple[str, list[str]]]:
    """What /usage tells: a name, then the last prompt's figure and the session's."""
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


def _report(desk: Desk, title: str, lines: list[str]) -> None:
    from tui.ui.widgets.conversation.items import NoticeItem  # noqa: PLC0415 - it draws

    detail = "\n".join(lines)
    desk.bridge.chat.add(NoticeItem(title, detail=detail, folded=False))

"""/status and /usage: reports that stand in the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.commands.usage import UNPRICED, usage_rows
from tui.core.formatting import tokens
from tui.core.paths import shorten

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


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


def _report(desk: Desk, title: str, lines: list[str]) -> None:
    from tui.ui.widgets.conversation.items import NoticeItem  # noqa: PLC0415 - it draws

    detail = "\n".join(lines)
    desk.bridge.chat.add(NoticeItem(title, detail=detail, folded=False))

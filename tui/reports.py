"""/status and /usage: reports that stand in the conversation."""

from __future__ import annotations

from tui.desk import Desk
from tui.paths import shorten
from tui.widgets.conversation.items import NoticeItem
from tui.widgets.figures import money, tokens


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
    usage, state = desk.bridge.presenter.usage, desk.bridge.chat.status.state
    lines = [
        f"read     {tokens(usage.prompt_tokens)} tokens",
        f"  fresh  {tokens(usage.input_tokens)}",
        f"  cached {tokens(usage.cache_read_input_tokens)}",
        f"  stored {tokens(usage.cache_creation_input_tokens)}",
        f"written  {tokens(usage.output_tokens)} tokens",
        f"cost     {money(state.cost_usd)}"
        + ("" if state.cost_usd is not None else "  no price is configured for this model"),
    ]
    _report(desk, "Usage since the program started", lines)


def _report(desk: Desk, title: str, lines: list[str]) -> None:
    detail = "\n".join(lines)
    desk.bridge.chat.add(NoticeItem(title, detail=detail, folded=False))

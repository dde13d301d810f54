"""Commands about what the agent may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tui.app.commands.permissions import widened
from tui.core.paths import shorten

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


def plan(desk: Desk, _: str) -> None:
    """Into plan mode, or back to asking."""
    agent, chat = desk.bridge.agent, desk.bridge.chat
    if agent is None:
        chat.notice.say("No session is open yet.")
        return
    agent.mode = "ask" if agent.mode == "plan" else "plan"
    chat.show_mode(agent.mode)
    if agent.mode == "plan":
        chat.notice.say("Plan mode: the agent only reads.", hint="/plan again leaves it.")
    else:
        chat.notice.say("Plan mode is over: the agent asks before it changes anything.")


def permissions(desk: Desk, _: str) -> None:
    from tui.app.permission_log import decisions, rule_lines  # noqa: PLC0415
    from tui.ui.screens.permissions import PermissionsScreen  # noqa: PLC0415

    agent = desk.bridge.agent
    if agent is None:
        desk.bridge.chat.notice.say("No session is open yet.")
        return
    rules = rule_lines(
        desk.bridge.services.permissions(),
        mode=agent.mode,
        elevated=desk.bridge.chat.header.state.elevated,
        folders=[shorten(folder) for folder in agent.folders],
    )
    desk.app.push_screen(PermissionsScreen(rules, decisions(agent.session.records)))


def add_dir(desk: Desk, folder: str) -> None:
    """Let the file tools work in another folder, until the program ends."""
    agent, say = desk.bridge.agent, desk.bridge.chat.notice.say
    if agent is None:
        say("No session is open yet.")
        return
    text, level, hint = widened(agent, desk.bridge.services.workspace, folder)
    say(text, level, hint=hint)

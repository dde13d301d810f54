"""Commands about what the agent may do."""

from __future__ import annotations

import os
from pathlib import Path

from tui.desk import Desk
from tui.paths import shorten


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
    from tui.screens.permissions import PermissionsScreen, decisions, rule_lines  # noqa: PLC0415

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
    if not folder:
        told = ", ".join(shorten(each) for each in agent.folders)
        say(f"The tools work in {told}.", hint="/add-dir FOLDER adds one.")
        return
    given = Path(folder.strip("\"'")).expanduser()
    real = Path(os.path.realpath(desk.bridge.services.workspace / given))
    if not real.is_dir():
        say(f"{folder} is no folder.", "warning")
    elif agent.add_dir(real):
        say(f"The tools may work in {shorten(real)} too.", "success", hint="Until you leave.")
    else:
        say(f"{shorten(real)} is inside already.")

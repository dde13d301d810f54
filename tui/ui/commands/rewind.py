"""/rewind: back to an earlier prompt, in the conversation and, if wanted, in the files.

The session branches inside its file: what came since stays there, on a branch of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tui.app.commands.rewind import RESTORED, Point, outcome_lines, points, restored, shown_path
from tui.app.ports import Agent, SessionChoice
from tui.context.file_changes import RestoredFile
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.text_cleaning import one_line

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk
    from tui.ui.widgets.conversation.items import NoticeItem


def rewind(desk: Desk, _: str) -> None:
    bridge = desk.bridge
    agent, say = bridge.agent, bridge.chat.notice.say
    found = points(agent.session.records) if agent else []
    if agent is None or not found:
        say("There is no prompt to go back to yet.")
    elif bridge.busy:
        say("The agent is at work.", "warning", hint="Esc stops it.")
    elif agent.session.path is None:
        say("This session is not kept on disk, so it has no branches to go back to.", "warning")
    elif agent.session.read_only:
        say("This session is open read-only.", "warning", hint="/fork goes on with a copy.")
    else:
        desk.app.run_worker(_lead(desk, agent, found), group="rewind", exclusive=True)


async def _lead(desk: Desk, agent: Agent, found: Sequence[Point]) -> None:
    from tui.ui.screens.picker import PickScreen  # noqa: PLC0415 - on demand

    screen = PickScreen(
        "rewind",
        [_row(point) for point in found],
        cursor=len(found) - 1,
        enter="go back before it",
    )
    chosen = await desk.app.push_screen_wait(screen)
    if chosen is None or desk.bridge.agent is not agent:
        return
    point = found[chosen]
    if not point.changed:
        await back_to(desk, agent, point)
        return
    answer = await _ask(desk, point)
    if answer in {"both", "talk"} and desk.bridge.agent is agent:
        await back_to(desk, agent, point, files=answer == "both")


def _row(point: Point) -> list[tuple[str, str]]:
    try:
        time = f"{datetime.fromisoformat(point.record.time).astimezone():%H:%M}"
    except ValueError:
        time = ""
    files = f"  {plural(len(point.changed), 'file')} changed since" if point.changed else ""
    return [(f"{time:<7}", "muted"), (one_line(point.text)[:200], "text"), (files, "accent")]


async def _ask(desk: Desk, point: Point) -> str | None:
    from tui.ui.widgets.choice_dialog import Way, WaysModal  # noqa: PLC0415 - on demand

    root = desk.bridge.services.workspace
    modal = WaysModal(
        "Rewind the files too?",
        f"{plural(len(point.changed), 'file')} changed since that prompt. A file that somebody"
        " else has changed meanwhile is left alone, and what is replaced is kept.",
        (
            Way("f", "The conversation and the files", "both"),
            Way("c", "Only the conversation", "talk"),
            Way("b", "Back", "back"),
        ),
        details=[shown_path(change.path, root) for change in point.changed],
        warning=True,
    )
    return await desk.app.push_screen_wait(modal)


async def back_to(desk: Desk, agent: Agent, point: Point, *, files: bool = False) -> None:
    """Go on from before a prompt, which is laid ready to be sent again."""
    bridge = desk.bridge
    path, services = agent.session.path, bridge.services
    try:
        await agent.session.rewind(point.record.id)
    except HoldfastError as error:
        bridge.chat.notice.say(error.message, "error", hint="Nothing was rewound.")
        return
    done: list[RestoredFile] = []
    if files:
        done = await asyncio.to_thread(restored, point.changed, services.workspace)
    mode, model, prompt = agent.mode, agent.model, bridge.chat.prompt
    prompt.past.add(prompt.value)
    bridge.attaching.learn(point.record)  # which stands on another branch from now on
    prompt.put_whole(point.text)
    await bridge.close(typed=False)  # it is opened again, by this program
    await desk.open_session(SessionChoice(path)).wait()
    if bridge.agent is None:
        return
    bridge.agent.mode = mode
    bridge.chat.show_mode(mode)
    if bridge.agent.model != model:
        await bridge.use_model(model)
    bridge.chat.notice.say(
        "Back before that prompt; what came since stays in the session's file.", "success"
    )
    if done:
        bridge.chat.add(outcome_item(done, services.workspace))
    prompt.focus()


def outcome_item(done: Sequence[RestoredFile], root: Path) -> NoticeItem:
    """What became of each file, one line each."""
    from tui.ui.widgets.conversation.items import NoticeItem  # noqa: PLC0415 - it draws

    title, lines = outcome_lines(done, root)
    level = "info" if all(each.outcome in RESTORED for each in done) else "warning"
    return NoticeItem(title, level, "\n".join(lines), folded=False)

"""Commands about the session as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tui.app.commands.export import FORMATS, written
from tui.app.ports import Agent, SessionChoice
from tui.core.errors import HoldfastError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.session.records import Finding

if TYPE_CHECKING:
    from tui.ui.session_flow.command_context import Desk


def new(desk: Desk, _: str) -> None:
    async def begin() -> None:
        desk.open_session(SessionChoice())

    if not desk.leaving.save_first(begin):
        desk.open_session(SessionChoice())


async def resume(desk: Desk, wanted: str) -> None:
    if not wanted:
        await _browse(desk)
        return
    rows = await desk.bridge.services.list_sessions()
    found = [row for row in rows if row.id.startswith(wanted)]
    if len(found) == 1:
        desk.open_session(SessionChoice(found[0].path))
    else:
        many = f"{len(found)} sessions begin" if found else "No session of this folder begins"
        desk.bridge.chat.notice.say(
            f"{many} with {wanted}.", "warning", hint="/sessions lists them."
        )


async def _browse(desk: Desk) -> None:
    from tui.app.dialog_data import Picked  # noqa: PLC0415
    from tui.app.resume import shelf_of  # noqa: PLC0415
    from tui.ui.screens.sessions import SessionsScreen  # noqa: PLC0415
    from tui.ui.session_flow.resume_options import picked_choice  # noqa: PLC0415 - as those below: on demand

    def chosen(picked: Picked | None) -> None:
        if picked is not None:
            desk.open_session(picked_choice(picked))

    agent = desk.bridge.agent
    current = agent.session.path if agent else None
    screen = SessionsScreen(
        shelf_of(desk.bridge.services), current=current, rename=desk.bridge.rename
    )
    desk.app.push_screen(screen, chosen)


def _begun(desk: Desk, what: str) -> Agent | None:
    """The agent whose session holds something; else it is said that there is nothing yet."""
    agent = desk.bridge.agent
    if agent is None or not agent.session.records:
        desk.bridge.chat.notice.say(f"There is nothing to {what} yet.")
        return None
    return agent


async def fork(desk: Desk, _: str) -> None:
    """Go on with a copy of the session, as it stands in memory."""
    from tui.app.resume import forked  # noqa: PLC0415

    if agent := _begun(desk, "fork"):
        desk.open_session(await forked(agent.session, desk.bridge.services))


def rename(desk: Desk, title: str) -> None:
    if not title:
        desk.bridge.chat.notice.say("What is the title?", hint="/rename a few words")
    elif _begun(desk, "rename"):
        desk.bridge.rename(title)


async def export(desk: Desk, format_: str) -> None:
    """Write the session, as it stands in memory, into the workspace."""
    say = desk.bridge.chat.notice.say
    wanted = FORMATS.get(format_.lower() or "md")
    if wanted is None:
        say(f"{format_} is no format.", "warning", hint="/export md, html or jsonl")
        return
    agent = _begun(desk, "export")
    if agent is None:
        return
    root = desk.bridge.services.workspace
    path, secrets = await asyncio.to_thread(written, agent.session, root, wanted)
    removed = f"{plural(secrets, 'secret')} removed." if secrets else ""
    say(f"Written: {shorten(path)}.", "success", hint=removed)


async def repair(desk: Desk, _: str) -> None:
    """Show what is damaged; after a refused request, the ways on from it."""
    agent = _begun(desk, "repair")
    if agent is None:
        return
    if agent.offers():
        from tui.ui.session_flow import error_dialog  # noqa: PLC0415

        await error_dialog.retry(desk, "")
        return
    if desk.bridge.busy:
        desk.bridge.chat.notice.say("The agent is at work.", "warning", hint="Esc stops it.")
        return
    from tui.app.damage_report import beyond_interruption  # noqa: PLC0415

    found = beyond_interruption((*agent.session.findings, *agent.view().findings))
    if not found:
        desk.bridge.chat.notice.say("Nothing in this session needs repair.", "success")
        return
    desk.app.run_worker(_show_damage(desk, agent, found), group="recovery", exclusive=True)


async def _show_damage(desk: Desk, agent: Agent, found: Sequence[Finding]) -> None:
    from tui.app.damage_report import Damage  # noqa: PLC0415
    from tui.app.resume import written_copy  # noqa: PLC0415
    from tui.session.records import new_session_id  # noqa: PLC0415
    from tui.ui.screens.repair import RepairScreen  # noqa: PLC0415

    path, clock = agent.session.path, desk.bridge.services.clock
    if path is None:
        desk.bridge.chat.notice.say(f"Repaired in memory, in {plural(len(found), 'place')}.")
        return
    id_ = new_session_id()
    copy = path.with_name(f"{clock.now():%Y%m%dT%H%M%SZ}-{id_}.jsonl")
    damage = Damage(path, agent.session.records, tuple(found))
    answer = await desk.app.push_screen_wait(RepairScreen(damage, copy, title=agent.session.title))
    if answer == "copy":
        try:
            await asyncio.to_thread(written_copy, path, copy, id_, clock)
        except HoldfastError as error:
            desk.bridge.chat.notice.say(error.message, "error", hint=error.hint)
            return
        desk.open_session(SessionChoice(copy))
    elif answer == "read_only":
        await desk.bridge.close(typed=False)
        desk.open_session(SessionChoice(path, read_only=True))

"""What stands between a file and a session to go on with: damage, another program, open calls.

Each is told and decided by the person. Called from a worker, since it waits for answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App

from tui.agent import events
from tui.agent.leftovers import Leftovers, Orphan, left_open, new_findings
from tui.bridge import Bridge
from tui.context.interrupted import Interrupted
from tui.errors import SessionInUseError
from tui.live.services import Agent, SessionChoice
from tui.live.taking_up import forked, forked_file, known, shelf_of, told, written_copy
from tui.screens.choices import Picked
from tui.screens.damage import Damage, beyond_interruption
from tui.session.records import new_session_id
from tui.smooth import smooth
from tui.tools.process import end_group
from tui.widgets.choice import Choice
from tui.widgets.figures import plural
from tui.widgets.resume_card import Left, ResumeCard
from tui.widgets.transcript import entry_of

RECHECK_S = 2.0
"""How often it is looked whether everything is saved and the session still ours."""


def picked_choice(picked: Picked) -> SessionChoice:
    """What the browser gave back, as the session to open."""
    return SessionChoice(picked.row.path, message=picked.message, foreign=bool(picked.row.agent))


@dataclass(slots=True)
class Resuming:
    """The questions on the way to a session. One for the whole run of the screen."""

    app: App[Any]
    bridge: Bridge
    open_session: Callable[[SessionChoice], object]
    _told: str = ""
    _lost: str = ""
    _checking: bool = False

    # Before it is open

    async def from_elsewhere(self, path: Path) -> SessionChoice | None:
        """Another agent's session becomes a copy of ours; its damage is shown first."""
        from tui.screens.repair import RepairScreen  # noqa: PLC0415 - on demand
        from tui.session import importers  # noqa: PLC0415 - on demand

        shelf = shelf_of(self.bridge.services)
        loaded = await asyncio.to_thread(importers.load, path)
        branch = loaded.branch
        found = beyond_interruption(await asyncio.to_thread(shelf.damage, loaded))
        if found:
            screen = RepairScreen(Damage(path, branch, found), None)
            if await self.app.push_screen_wait(screen) != "continue":
                return None
        return SessionChoice(await asyncio.to_thread(shelf.take_over, path))

    async def accept(self, choice: SessionChoice, agent: Agent) -> SessionChoice | None:
        """A session was read: the choice itself where it shall be shown, another, or None."""
        from tui.screens.repair import RepairScreen  # noqa: PLC0415 - on demand

        session, path = agent.session, choice.path
        if path is None:
            return choice
        with smooth():
            seen = await asyncio.to_thread(agent.view)  # of a long session it takes a while
        found = (*session.findings, *seen.findings)
        found = beyond_interruption(new_findings(session.records, found))
        if not found or choice.read_only:
            return choice
        id_, clock = new_session_id(), self.bridge.services.clock
        copy = path.with_name(f"{clock.now():%Y%m%dT%H%M%SZ}-{id_}.jsonl")
        damage = Damage(path, session.records, found)
        answer = await self.app.push_screen_wait(RepairScreen(damage, copy, title=session.title))
        match answer:
            case "continue":
                return choice
            case "read_only":
                return replace(choice, read_only=True)
            case "copy":
                await asyncio.to_thread(written_copy, path, copy, id_, clock)
                return SessionChoice(copy)
            case _:
                return None

    async def in_use(self, choice: SessionChoice, error: SessionInUseError) -> SessionChoice | None:
        """Another program has the session: take it over, only read it, or go on with a copy."""
        from tui.widgets.ways import Way, WaysModal  # noqa: PLC0415 - on demand

        modal = WaysModal(
            "This session is open elsewhere",
            f"{error.message} Two programs that write one session would mix it up.",
            (
                Way("t", "Take it over: the other program writes no more", "take_over"),
                Way("r", "Open it read-only", "read_only"),
                Way("f", "Fork it: go on with a copy", "fork"),
                Way("b", "Back", "back"),
            ),
            warning=True,
        )
        match await self.app.push_screen_wait(modal):
            case "take_over":
                return replace(choice, take_over=True)
            case "read_only":
                return replace(choice, read_only=True)
            case "fork" if choice.path is not None:
                return SessionChoice(
                    await asyncio.to_thread(forked_file, choice.path, self.bridge.services)
                )
            case _:
                return None

    # Once it is open

    async def opened(self, choice: SessionChoice) -> None:
        """The session is shown: go to the place that was searched for, tell what was left open."""
        agent = self.bridge.agent
        self._lost = ""
        if agent is None:
            return
        chat, records = self.bridge.chat, agent.session.records
        await self._clear()
        if agent.session.read_only:
            chat.notice.say("This session is open read-only.", hint="/fork goes on with a copy.")
            return
        if choice.message:
            item = entry_of(records, choice.message, chat.conversation.items)
            if item is not None:
                chat.conversation.go_to(item)
        if choice.path is not None:
            root = self.bridge.services.workspace
            left = await asyncio.to_thread(left_open, list(records), root)
            if left and agent is self.bridge.agent and not self.bridge.busy:
                calls, commands = map(_call, left.calls), map(_command, left.orphans)
                card = ResumeCard([*calls], [*commands], partial(self._act, left))
                await chat.query_one("#left").mount(card, before="#notice")

    async def _act(self, left: Leftovers, name: str) -> None:
        """One of the ways of the card was chosen."""
        agent, chat = self.bridge.agent, self.bridge.chat
        if agent is None or (self.bridge.busy and name != "stop"):
            chat.notice.say("The agent is at work.", "warning", hint="Esc stops it.")
            return
        ids = [call.call_id for call in left.calls]
        match name:
            case "tell":
                await self._clear()
                self.bridge.submit(told(left))
            case "again":
                await self._clear()
                self.bridge.go_on(ids)
            case "leave":
                await self._clear()
                await agent.close_calls(ids)
                chat.notice.say("Left as it is.", hint="The model sees that it was interrupted.")
            case _:
                await self._stop(left)

    async def _stop(self, left: Leftovers) -> None:
        clock, chat = self.bridge.services.clock, self.bridge.chat
        focused = any(choice.has_focus for choice in chat.query(Choice))
        await self._clear()
        ended = [await end_group(each.pid, each.born, clock) for each in left.orphans]
        if all(ended):
            chat.notice.say(f"{plural(len(ended), 'command')} stopped.", "success")
        else:
            chat.notice.say("Not every command could be stopped.", "warning")
        if left.calls:
            rest = Leftovers(left.calls)
            card = ResumeCard([*map(_call, left.calls)], (), partial(self._act, rest))
            await chat.query_one("#left").mount(card, before="#notice")
            if focused:
                card.query(Choice).first().focus()

    async def recheck(self) -> None:
        """Try again what could not be saved, and notice a session that was taken away."""
        agent = self.bridge.agent
        if agent is None or self.bridge.opening or self._checking:
            return
        self._checking = True
        try:
            await self._recheck(agent)
        finally:
            self._checking = False

    async def _recheck(self, agent: Agent) -> None:
        before = self._told
        self._told = await agent.session.recheck()
        if self._told != before:
            self.bridge.presenter.show(events.StorageChanged(not self._told, self._told))
        if agent.session.read_only and agent.session.lost and agent.session.id != self._lost:
            self._lost = agent.session.id
            await self._offer_fork(agent)

    async def _offer_fork(self, agent: Agent) -> None:
        from tui.widgets.ways import Way, WaysModal  # noqa: PLC0415 - on demand

        modal = WaysModal(
            "This session was taken over",
            f"{agent.session.lost} Nothing more is written here. A fork keeps all that stands on"
            " this screen, what was not saved too.",
            (
                Way("f", "Fork what I have, and go on with that", "fork"),
                Way("r", "Stay here, read-only", "stay"),
            ),
            warning=True,
        )
        if await self.app.push_screen_wait(modal) == "fork":
            self.open_session(await forked(agent.session, self.bridge.services))

    async def _clear(self) -> None:
        await self.bridge.chat.query(ResumeCard).remove()


def _call(call: Interrupted) -> Left:
    return Left(call.tool, call.label, known(call), call.outcome != "unknown")


def _command(orphan: Orphan) -> Left:
    since = orphan.started[:16].replace("T", " ")
    return Left(f"process {orphan.pid}", orphan.command, f"still running, since {since} UTC", False)

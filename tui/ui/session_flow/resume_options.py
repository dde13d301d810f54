"""What stands between a file and a session to go on with: damage, another program, open calls.

Each is told and decided by the person. Called from a worker, since it waits for answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from textual.app import App

from tui.agent.interrupted_work import Leftovers, Orphan, left_open
from tui.app.damage_report import Damage
from tui.app.dialog_data import Picked
from tui.app.ports import Agent, SessionChoice
from tui.app.resume import (
    IN_USE,
    MIXED_UP,
    Watch,
    after_damage,
    after_in_use,
    copy_of,
    damage,
    elsewhere,
    forked,
    known,
    stopped,
    told,
)
from tui.context.interrupted_calls import Interrupted
from tui.core.errors import SessionInUseError
from tui.core.gc_pause import gc_pause
from tui.ui.turn_controller import Bridge
from tui.ui.widgets.choice import Choice
from tui.ui.widgets.record_items import entry_of
from tui.ui.widgets.resume_card import Left, ResumeCard


def picked_choice(picked: Picked) -> SessionChoice:
    """What the browser gave back, as the session to open."""
    return SessionChoice(picked.row.path, message=picked.message, foreign=bool(picked.row.agent))


@dataclass(slots=True)
class Resuming:
    """The questions on the way to a session. One for the whole run of the screen."""

    app: App[Any]
    bridge: Bridge
    open_session: Callable[[SessionChoice], object]
    _watch: Watch = field(default_factory=Watch)
    _checking: bool = False

    # Before it is open

    async def from_elsewhere(self, path: Path) -> SessionChoice | None:
        """Another agent's session becomes a copy of ours; its damage is shown first."""
        from tui.ui.screens.repair import RepairScreen  # noqa: PLC0415 - on demand

        services = self.bridge.services
        found = await elsewhere(path, services)
        if found.findings:
            screen = RepairScreen(Damage(path, found.records, found.findings), None)
            if await self.app.push_screen_wait(screen) != "continue":
                return None
        return await found.taken_over(services)

    async def accept(self, choice: SessionChoice, agent: Agent) -> SessionChoice | None:
        """A session was read: the choice itself where it shall be shown, another, or None."""
        from tui.ui.screens.repair import RepairScreen  # noqa: PLC0415 - on demand

        session, path = agent.session, choice.path
        if path is None or choice.read_only:
            return choice
        with gc_pause():
            found = await damage(agent)  # of a long session it takes a while
        if not found:
            return choice
        clock = self.bridge.services.clock
        copy = copy_of(path, clock)
        wrong = Damage(path, session.records, found)
        screen = RepairScreen(wrong, copy[0], title=session.title)
        return await after_damage(await self.app.push_screen_wait(screen), choice, copy, clock)

    async def in_use(self, choice: SessionChoice, error: SessionInUseError) -> SessionChoice | None:
        """Another program has the session: take it over, only read it, or go on with a copy."""
        from tui.ui.widgets.choice_dialog import Way, WaysModal  # noqa: PLC0415 - on demand

        modal = WaysModal(
            "This session is open elsewhere",
            f"{error.message} {MIXED_UP}",
            tuple(Way(name[0], label, name) for name, label in IN_USE.items()),
            warning=True,
        )
        answer = await self.app.push_screen_wait(modal)
        return await after_in_use(answer, choice, self.bridge.services)

    # Once it is open

    async def opened(self, choice: SessionChoice) -> None:
        """The session is shown: go to the place that was searched for, tell what was left open."""
        agent = self.bridge.agent
        self._watch.opened()
        if agent is None:
            return
        chat, records = self.bridge.chat, agent.session.records
        await self._clear()
        chat.show_read_only(agent.session.read_only)
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
        chat = self.bridge.chat
        focused = any(choice.has_focus for choice in chat.query(Choice))
        await self._clear()
        all_, words = await stopped(left.orphans, self.bridge.services.clock)
        chat.notice.say(words, "success" if all_ else "warning")
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
        changed, lost = await self._watch.look(agent.session)
        if changed is not None:
            self.bridge.presenter.show(changed)
        if lost:
            await self._offer_fork(agent)

    async def _offer_fork(self, agent: Agent) -> None:
        from tui.ui.widgets.choice_dialog import Way, WaysModal  # noqa: PLC0415 - on demand

        self.bridge.chat.show_read_only(True)
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

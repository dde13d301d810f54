"""The agent: one session's prompts, turned into events and a complete record.

`send` is the edge: it runs a turn in a task of its own and hands out what the turn publishes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tui.agent import events
from tui.agent.background_tasks import Background
from tui.agent.compaction import Preview
from tui.agent.cost import Spending, spending
from tui.agent.directives import Directives
from tui.agent.event_stream import Running
from tui.agent.events import Event
from tui.agent.inside import put_together
from tui.agent.interrupted_work import calls_of
from tui.agent.limits import Spent
from tui.agent.opening_events import first_events
from tui.agent.parts import Parts
from tui.agent.request_builder import Fit
from tui.agent.shell_output import Keeping
from tui.agent.steering import NO_IMAGES, Typed
from tui.context import recall
from tui.context.overrides import Overlay
from tui.context.recall import Passage
from tui.context.repair_levels import RepairLevel
from tui.context.token_ledger import Ledger
from tui.context.view import View
from tui.core.config import Config
from tui.core.images import Image
from tui.permissions.policy import Policy
from tui.permissions.types import Mode
from tui.provider.base import ModelInfo, Request

if TYPE_CHECKING:
    from tui.tools.mcp import Server


class Agent:
    """Takes prompts. One turn at a time; what is typed meanwhile is queued by `steer`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.session = parts.session
        told: asyncio.Queue[Event | None] = asyncio.Queue()
        self._publish = told.put_nowait
        self._inside = put_together(parts, self._publish)
        self._running = Running(self._inside.turns, told)
        self._background = Background(self._inside.provider, parts.kept, parts.clock)
        self._preparing, self._turns = self._inside.preparing, self._inside.turns

    @property
    def model(self) -> str:
        return self._preparing.model.id

    @property
    def model_info(self) -> ModelInfo:
        return self._preparing.model

    @property
    def window(self) -> int:
        return self._preparing.model.window

    @property
    def directives(self) -> Directives:
        return self._inside.switches.now

    @property
    def was_elevated(self) -> bool:
        """Whether the session was elevated when it was left, and is not now (K47)."""
        return self._inside.switches.was_elevated and not self.directives.elevated

    @property
    def spent(self) -> Spent:
        """What the turns of this agent have cost."""
        return self._turns.spent

    def spending(self) -> Spending:
        """What the whole session has cost, earlier runs included, and its last prompt."""
        return spending(self.session.records, self._parts.config.prices)

    @property
    def queue(self) -> tuple[str, ...]:
        """What was typed while the agent worked and has not been handed over yet."""
        return self._turns.steering.texts

    @property
    def mode(self) -> Mode:
        return self._inside.settings.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._inside.settings.mode = mode

    @property
    def folders(self) -> tuple[Path, ...]:
        """Where the file tools work: the workspace first."""
        return self._inside.settings.folders

    def add_dir(self, folder: Path) -> bool:
        """Let the tools work in a real folder too, from the next call on. False if they may."""
        return self._inside.settings.add_dir(folder)

    def take_up(self, config: Config) -> None:
        """Go by changed settings where a running session can: the rules, from the next call on,
        and the redaction. What was granted for the session stays. Raises UsageError."""
        gate, rules = self._parts.gate, config.permissions
        read = Policy.of(allow=rules.allow, ask=rules.ask, deny=rules.deny)
        gate.policy = replace(gate.policy, allow=read.allow, ask=read.ask, deny=read.deny)
        self.session.redact = config.redact == "record"

    @property
    def busy(self) -> bool:
        return self._running.busy

    async def start(self) -> list[Event]:
        """The events that stand before the first turn.

        Does not touch the network; begins to load what the first request will need.
        """
        self._background.begin()
        self._inside.joining.begin()
        return await first_events(self._parts, self._inside)

    async def send(
        self, text: str, *, attached: str = "", images: Mapping[str, Image] = NO_IMAGES
    ) -> AsyncGenerator[Event]:
        """Run one turn and yield its events; the last is TurnFinished.

        `attached` goes behind what was typed and is never read for directives (K33). `images` go
        along by the words that stand for them in the text, as do those that it names with `@`.
        Closing the iterator interrupts the turn. Nothing is raised: a failure is an event.
        """
        work = self._turns.run(text, attached, images=images)
        async with aclosing(self._running.told(work)) as told:
            async for event in told:
                yield event

    async def go_on(self, again: Collection[str] = ()) -> AsyncGenerator[Event]:
        """Run a turn without a new prompt: after a failure, an interruption, or where it is parked.

        A parked session goes on when its time has come; Parked is told again until then. In all
        else as `send`. `again` are ids of calls that an earlier run left without a result: they
        are run first, with the questions that they need.
        """
        calls = calls_of(self.session.records, again)
        async with aclosing(self._running.told(self._turns.run(None, again=calls))) as told:
            async for event in told:
                yield event

    async def close_calls(self, ids: Collection[str]) -> None:
        """Give calls that an earlier run left open their result: that they were interrupted (R2).

        Raises RuntimeError while a turn runs.
        """
        if self.busy:
            raise RuntimeError("a turn is running")
        await self._turns.dispatcher.close(calls_of(self.session.records, ids))

    def steer(self, text: str, images: Mapping[str, Image] = NO_IMAGES) -> None:
        """Queue a text for the running turn; it is sent once the running tools are done.

        `images` are as for `send`.
        """
        self._turns.steering.add(Typed(text, images))
        self._tell_queue()

    def unqueue(self) -> tuple[str, ...]:
        """Take back what is queued, for instance to edit it."""
        texts = self._turns.steering.take_back()
        self._tell_queue()
        return texts

    def cancel(self) -> None:
        """Interrupt the running turn, if any. It still ends with TurnFinished.

        A turn that is closing its books already ends as it would have.
        """
        self._running.cancel()

    @property
    def servers(self) -> Sequence[Server]:
        """The MCP servers that are configured."""
        return self._parts.servers.all if self._parts.servers else ()

    def switch_tool(self, server: Server, tool: str, *, on: bool) -> None:
        """Offer a server's tool to the model, or keep it from it, from the next request on."""
        self._inside.joining.switch(server, tool, on=on)

    @property
    def keeping(self) -> Keeping:
        """Where what the person's own commands print is kept, and cut for the model."""
        return self._inside.keeping

    @property
    def ledger(self) -> Ledger:
        """The items of the next request."""
        return self._preparing.ledger

    def use_model(self, info: ModelInfo) -> Fit:
        """Ask another model from the next request on. Returns whether the session fits it.

        A parked turn goes on with it at once.
        """
        fit = self.fits(info)
        self._preparing.use(info)
        if self._inside.parking.waiting:
            self._parts.control.retry_now()
        return fit

    def fits(self, info: ModelInfo) -> Fit:
        """Whether the session as it stands fits a model; to be asked before switching."""
        return self._preparing.fits(info)

    def retry_now(self) -> bool:
        """Wait no longer, for a retry or a parked turn. False where nothing was waited for."""
        return self._parts.control.retry_now()

    def other_model(self) -> bool:
        """Go on with a fallback model. False where there is none, or nothing was waited for."""
        return bool(self._parts.fallbacks) and self._parts.control.other_model()

    def offers(self) -> tuple[RepairLevel, ...]:
        """The rungs of the repair ladder that are left after a refused request; else none."""
        return self._inside.repairing.offers()

    async def repair(self, rung: RepairLevel) -> Sequence[Event]:
        """Send what the model sees as it stands on a rung, from the next request on (R13).

        Recorded; `go_on` then asks again. Raises RuntimeError while a turn runs.
        """
        if self.busy:
            raise RuntimeError("a turn is running")
        findings = self._inside.repairing.climb(rung)
        await self._inside.recorder.sync()
        told = events.RepairApplied(tuple(finding.to_json() for finding in findings))
        return (told, *self._preparing.measured())

    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Event]:
        """Change how records stand in what the model sees, from the next request on.

        Allowed at any time: a request that is under way stays as it was sent. While a turn runs
        the events come in it; else they are returned, as no turn will tell them. Raises
        HoldfastError where a target is no record of this session that the model sees.
        """
        return await self._inside.standing.overlay(changes, told=self.busy)

    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Event]:
        """Keep records from everything that takes results away by itself, or let them go again.

        When, events and errors as for `overlay`.
        """
        return await self._inside.standing.pin(pins, told=self.busy)

    def plan_compaction(self, focus: str = "") -> Preview | None:
        """What `compact` would keep, sum up and hold on to; None where there is nothing to do."""
        return self._inside.compactor.plan(focus)

    async def compact(self, focus: str = "") -> AsyncGenerator[Event]:
        """Put a summary in the place of the beginning (/compact); yields what happens, as `send`.

        `cancel` stops it and changes nothing. The last event is CompactionFinished, whose
        `problem` says why not where it failed; only a notice comes where there is nothing to do.
        """
        async for event in self._running.told(self._compact(focus)):
            yield event

    async def uncompact(self) -> Sequence[Event]:
        """Send the full view again, from the next request on. Raises RuntimeError in a turn."""
        if self.busy:
            raise RuntimeError("a turn is running")
        if not await self._inside.compactor.undo():
            return (events.Notice("No compaction is in force."),)
        return (events.CompactionUndone(self.ledger.tokens), *self._preparing.measured())

    async def flush_memory(self) -> AsyncGenerator[Event]:
        """Keep in MEMORY.md what is worth it of what is new (/new, on quit); nothing where none is.

        Yields what happens, as `send`; `cancel` stops it.
        """
        async for event in self._running.told(self._flush()):
            yield event

    @property
    def memory_pending(self) -> bool:
        """Whether `flush_memory` would ask the model at all (R28)."""
        return self._inside.memory.pending()

    def search_covered(self, query: str) -> Sequence[Passage]:
        """What was said in the messages that a summary stands for, newest first."""
        return recall.search(self.session.records, query)

    def view(self) -> View:
        """What the model will see of the record, less the prompt that follows."""
        return self._preparing.look(prompt_follows=True)

    def next_request(self, *, prompt_follows: bool = False) -> Request:
        """The request that the record makes; with `prompt_follows`, less the prompt."""
        return self._preparing.request(prompt_follows=prompt_follows)

    def fixed_texts(self) -> dict[str, str]:
        """The texts of the ledger's items that every request carries, by id."""
        return self._preparing.fixed_texts()

    async def close(self) -> None:
        """Interrupt, stop background commands, sync and let go of everything.

        A parked session stays parked.
        Raises StorageError when something recorded could not be saved to the end.
        """
        self._turns.closing = True
        await self._running.end()
        self._background.close()
        await self._inside.close(self._parts)

    def _tell_queue(self) -> None:
        if self.busy:
            self._publish(events.QueueChanged(self.queue))

    async def _compact(self, focus: str) -> None:
        if self._inside.compactor.plan() is None:
            self._publish(events.Notice("There is nothing to compact yet."))
            return
        await self._running.beside(self._inside.compactor.compact("manual", focus=focus))
        for fact in self._preparing.measured():
            self._publish(fact)

    async def _flush(self) -> None:
        await self._running.beside(self._inside.memory.flush())

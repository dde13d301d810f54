"""The agent: one session's prompts, turned into events and a complete record.

`send` is the edge: it runs a turn in a task of its own and hands out what the turn publishes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tui.agent import directives as directive_words
from tui.agent import events
from tui.agent.directives import Directives
from tui.agent.dispatch import Dispatcher, Settings
from tui.agent.events import Event
from tui.agent.limits import Limits, Spent
from tui.agent.loop import Turn
from tui.agent.measuring import Measuring
from tui.agent.recorder import Recorder
from tui.clock import Clock
from tui.config import Config
from tui.context import request
from tui.context.ledger import Ledger
from tui.context.overlay import SPEAKING, Overlay
from tui.context.view import View, Viewer
from tui.errors import CredentialsError, HoldfastError, LimitReachedError, ProviderError
from tui.guards.clamp import Room
from tui.guards.pipeline import GuardLimits
from tui.kept import Kept
from tui.messages import Block, blocks_of, text_block, text_of, tool_calls
from tui.permissions.base import Approver, Mode
from tui.permissions.gate import Gate
from tui.provider.base import ModelInfo, Provider, Request
from tui.session.session import Session
from tui.tools.base import Tool
from tui.tools.files import FileLedger
from tui.tools.jobs import Jobs
from tui.workspace import Workspace

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Parts:
    """What an agent is made of. The agent owns the session, the provider and the jobs.

    `switches` are directives to begin with (-y, --verbose), `notices` what the person should
    know before the first turn. `layers` are the names and texts that `system` is made of, for
    the ledger; `cache` is the folder where calibrations are kept, None to keep none.
    """

    session: Session
    provider: Provider
    model: ModelInfo
    tools: Mapping[str, Tool[Any]]
    gate: Gate
    approver: Approver
    workspace: Workspace
    system: list[Block]
    config: Config
    clock: Clock
    jobs: Jobs
    limits: Limits = field(default_factory=Limits)
    switches: Mapping[str, bool] = field(default_factory=dict[str, bool])
    notices: Sequence[str] = ()
    layers: Sequence[tuple[str, str]] = ()
    cache: Path | None = None
    kept: Kept | None = None


class Agent:
    """Takes prompts. One turn at a time; what is typed meanwhile is queued by `steer`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.session = parts.session
        self.queue: tuple[str, ...] = ()
        self.model_info = parts.model
        self.spent = Spent()
        kept = Directives()
        if "directives" in parts.session.metadata:
            kept = directive_words.from_json(parts.session.directives)
        self._was_elevated = kept.elevated
        self.directives = replace(kept, elevated=False)
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._learning: asyncio.Task[None] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._stop = threading.Event()
        self._cancelled = False
        self._interruptible = False
        guard = parts.config.guard
        self._viewer = Viewer(Room(guard.clamp_bytes, guard.clamp_lines))
        self._tools = [tool.schema() for tool in parts.tools.values()]
        self._measuring = Measuring(
            parts.model,
            layers=parts.layers or [("prompt", text_of(parts.system))],
            tools=self._tools,
            records=parts.session.records,
            threshold=parts.config.compaction.threshold,
            cache=parts.cache,
            think=directive_words.THINK_PROMPT if self.directives.think else "",
        )
        self._call_ids: set[str] = set()
        self._recorder = Recorder(parts.session, self._publish, self.ledger.add)
        self._settings = Settings(parts.workspace)
        self._dispatcher = Dispatcher(
            tools=parts.tools,
            gate=parts.gate,
            approver=parts.approver,
            recorder=self._recorder,
            settings=self._settings,
            clock=parts.clock,
            files=FileLedger(),
            jobs=parts.jobs,
            limits=self._guard_limits,
            publish=self._publish,
            kept=parts.kept,
        )
        for record in parts.session.records:
            if record.type == "assistant":
                calls = tool_calls(blocks_of(record.data.get("content")))
                self._call_ids.update(str(call.get("id")) for call in calls)

    @property
    def model(self) -> str:
        return self.model_info.id

    @property
    def window(self) -> int:
        return self.model_info.window

    @property
    def mode(self) -> Mode:
        return self._settings.mode

    @mode.setter
    def mode(self, mode: Mode) -> None:
        self._settings.mode = mode

    @property
    def busy(self) -> bool:
        return self._task is not None and not self._task.done()

    async def start(self) -> list[Event]:
        """The events that stand before the first turn.

        Does not touch the network; begins to load what the first request will need.
        """
        self._loading = asyncio.create_task(self._load(), name="loading")
        self._sweeping = asyncio.create_task(self._sweep(), name="sweeping")
        session = self.session
        path = str(session.path) if session.path else None
        found: list[Event] = [
            events.SessionStarted(
                session.id, path, self.model, str(self._parts.workspace.root), session.resumed
            )
        ]
        seen = self._look()
        findings = (*session.findings, *seen.findings)
        if findings:
            found.append(events.RepairApplied(tuple(f.to_json() for f in findings)))
        self._settings.verbose = self.directives.verbose
        if self._parts.switches:
            self._apply(self._parts.switches)
            await self._recorder.sync()
        if self.directives != Directives():
            found.append(events.DirectivesChanged(**self.directives.to_json()))
        if self._was_elevated and not self.directives.elevated:
            found.append(
                events.Notice("This session was elevated. Send /elevated to switch it on again.")
            )
        found.extend(map(events.Notice, self._parts.notices))
        found.extend(self._measured())
        return found

    async def send(self, text: str, *, attached: str = "") -> AsyncGenerator[Event]:
        """Run one turn and yield its events; the last is TurnFinished.

        `attached` goes behind what was typed and is never read for directives (K33). Closing the
        iterator interrupts the turn. Nothing is raised: a failure is an event.
        """
        if self.busy:
            raise RuntimeError("a turn is running; use steer()")
        self._cancelled = False
        task = self._task = asyncio.create_task(self._turn(text, attached), name="turn")
        task.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
        finally:
            self.cancel()
            await asyncio.wait({task})
            self._task = None
            while not self._events.empty():
                self._events.get_nowait()

    def steer(self, text: str) -> None:
        """Queue a text for the running turn; it is sent once the running tools are done."""
        self._set_queue((*self.queue, text))

    def unqueue(self) -> tuple[str, ...]:
        """Take back what is queued, for instance to edit it."""
        texts = self.queue
        self._set_queue(())
        return texts

    def cancel(self) -> None:
        """Interrupt the running turn, if any. It still ends with TurnFinished.

        A turn that is closing its books already ends as it would have.
        """
        if self._task is not None and self.busy and not self._cancelled:
            self._cancelled = True
            if self._interruptible:
                self._task.cancel()

    @property
    def ledger(self) -> Ledger:
        """The items of the next request."""
        return self._measuring.ledger

    def use_model(self, info: ModelInfo) -> None:
        """Ask another model from the next request on."""
        self.model_info = info
        self._measuring.use(info)
        if self._learning is not None:
            self._learning.cancel()
            self._learning = None

    async def overlay(self, changes: Sequence[Overlay]) -> Sequence[Event]:
        """Change how records stand in what the model sees, from the next request on.

        Allowed at any time: a request that is under way stays as it was sent. While a turn runs
        the events come in it; else they are returned, as no turn will tell them. Raises
        HoldfastError where a target is no record of this session that the model sees.
        """
        return await self._change("overlay", [asdict(change) for change in changes])

    async def pin(self, pins: Mapping[str, bool]) -> Sequence[Event]:
        """Keep records from everything that takes results away by itself, or let them go again.

        When, events and errors as for `overlay`.
        """
        changes = [{"target": target, "pinned": pinned} for target, pinned in pins.items()]
        return await self._change("pin", changes)

    def view(self) -> View:
        """What the model will see of the record, less the prompt that follows."""
        return self._look(prompt_follows=True)

    def fixed_texts(self) -> dict[str, str]:
        """The texts of the ledger's items that every request carries, by id."""
        layers = list(self._parts.layers) or [("prompt", text_of(self._parts.system))]
        if self.directives.think:
            layers.append(("think", directive_words.THINK_PROMPT))
        texts = {f"system:{name}": text for name, text in layers}
        schemas = {f"tool:{tool['name']}": json.dumps(tool, indent=2) for tool in self._tools}
        return texts | schemas

    async def close(self) -> None:
        """Interrupt, stop background commands, sync and let go of everything.

        Raises StorageError when something recorded could not be saved to the end.
        """
        self.cancel()
        if self._task is not None:
            await asyncio.wait({self._task})
        self._stop.set()
        for task in (self._learning, self._loading, self._sweeping):
            if task is not None:
                task.cancel()
        try:
            await self._parts.jobs.close()
        finally:
            try:
                await self.session.close()
            finally:
                if self._parts.kept is not None:
                    await asyncio.to_thread(self._parts.kept.close)
                await self._parts.provider.aclose()

    async def _change(self, type_: str, changes: list[dict[str, Any]]) -> Sequence[Event]:
        known = {
            record.id: {"call_id": record.data.get("call_id")}
            if record.type == "tool_result"
            else {}
            for record in self.session.records
            if record.type in SPEAKING
        }
        if unknown := [change["target"] for change in changes if change["target"] not in known]:
            raise HoldfastError(f"There is nothing of the id {unknown[0]} in this session.")
        for change in changes:
            self._recorder.append(type_, **change)
        self._look()
        told = tuple(change | known[change["target"]] for change in changes)
        facts = (events.ContextChanged(told), *self._measured())
        if self.busy:
            await self._recorder.show(*facts)
            return ()
        await self._recorder.sync()
        return facts

    def _publish(self, event: Event) -> None:
        self._events.put_nowait(event)

    def _set_queue(self, texts: tuple[str, ...]) -> None:
        self.queue = texts
        if self.busy:
            self._publish(events.QueueChanged(texts))

    def _debug(self, text: str) -> None:
        if self._settings.verbose:
            self._publish(events.Debug(text))

    def _look(self, *, prompt_follows: bool = False) -> View:
        """The view of the record now; the ledger takes from it how each record stands."""
        seen = self._viewer.build(
            self.session.records, model=self.model, prompt_follows=prompt_follows
        )
        self._measuring.look(seen)
        return seen

    def _measured(self) -> list[Event]:
        self.model_info, facts = self._measuring.facts(self.model_info)
        return facts

    async def _turn(self, text: str, attached: str) -> None:
        """The turn boundary: whatever happens inside, the record is closed and the end is told."""
        turn = Turn(
            provider=self._parts.provider,
            recorder=self._recorder,
            dispatcher=self._dispatcher,
            ledger=self.ledger,
            measured=self._measured,
            call_ids=self._call_ids,
            prepare=lambda: self._prepare(turn),
            take_queued=self._take_queued,
            publish=self._publish,
            debug=self._debug,
            prices=self._parts.config.prices,
        )
        outcome = "done"
        try:
            self._interruptible = True
            if self._cancelled:
                raise asyncio.CancelledError  # noqa: TRY301 - it came before this task had begun
            if await self._take(text, attached):
                await turn.run()
        except asyncio.CancelledError:
            outcome = "interrupted"
            self._record_interrupt(turn)
        except LimitReachedError as reached:
            outcome = "limit"
            self._recorder.append("note", text=str(reached))
            self._publish(events.Notice(str(reached)))
        except HoldfastError as error:
            outcome = "failed"
            self._fail(error, turn)
        except Exception as error:
            log.exception("the turn failed")
            outcome = "failed"
            self._fail(
                HoldfastError(
                    f"Something went wrong inside the program ({type(error).__name__}: {error}).",
                    hint="Nothing is lost. The details are in the log file.",
                ),
                turn,
            )
        finally:
            self._interruptible = False
        self.spent += turn.spent
        known = turn.spent.requests or self.model in self._parts.config.prices
        usd = turn.spent.usd if known else None
        await self._measuring.keep()
        await self._recorder.show(events.TurnFinished(outcome, turn.spent.usage, usd))

    async def _take(self, typed: str, attached: str = "") -> bool:
        """Take over typed text: switch its directives, record the rest. False if none is left."""
        parsed = directive_words.parse(typed)
        facts: list[Event] = []
        if parsed.changes:
            self._apply(parsed.changes)
            facts.append(events.DirectivesChanged(**self.directives.to_json()))
            facts.append(events.Notice(directive_words.acknowledgement(parsed.changes)))
        text = "\n\n".join(part for part in (parsed.text, attached) if part.strip())
        if text:
            self._recorder.append("user", content=[text_block(text)], text=text)
            facts.append(events.UserMessage(text))
        await self._recorder.show(*facts)
        return bool(text)

    async def _take_queued(self) -> bool:
        """Take over what was typed meanwhile, one text at a time: an interrupt loses none."""
        taken = False
        while self.queue:
            text, *rest = self.queue
            self._set_queue(tuple(rest))
            taken |= await self._take(text)
        return taken

    def _apply(self, changes: Mapping[str, bool]) -> None:
        self.directives = self.directives.with_changes(changes)
        self._measuring.carry(directive_words.THINK_PROMPT if self.directives.think else "")
        now = self.directives
        self._settings.elevated = now.elevated
        self._settings.verbose = now.verbose
        self._settings.workspace = self._settings.workspace.widen(now.elevated)
        self._recorder.append("directive", **now.to_json())

    def _prepare(self, turn: Turn) -> Request:
        """The next request, checked: no record can make one that the API rejects."""
        priced = self.model in self._parts.config.prices
        self._parts.limits.check(self.spent + turn.spent, priced=priced)
        if self._learning is None:
            self._learning = asyncio.create_task(self._learn(), name="model info")
        return self.next_request()

    def next_request(self, *, prompt_follows: bool = False) -> Request:
        """The request that the record makes; with `prompt_follows`, less the prompt."""
        seen = self._look(prompt_follows=prompt_follows)
        return request.build(
            model=self.model_info,
            system=self._parts.system,
            messages=seen.messages,
            tools=self._tools,
            prompt_tokens=self.ledger.tokens,
            think=directive_words.THINK_PROMPT if self.directives.think else "",
        )

    async def _load(self) -> None:
        """The SDK, in a thread. What fails is told by the request.

        The token ranks (40 MB) are left to the first result that is large enough to be counted.
        """
        with suppress(HoldfastError):
            await self._parts.provider.load()

    async def _sweep(self) -> None:
        """Let full outputs go that no session names and that have had their time (L26)."""
        if self._parts.kept is not None:
            now = self._parts.clock.now()
            gone = await asyncio.to_thread(self._parts.kept.sweep, now, self._stop)
            if gone:
                log.info("%d kept outputs that no session names were removed", gone)

    async def _learn(self) -> None:
        """Ask the server for the model's window while the first request is under way."""
        info = await self._parts.provider.model_info(self.model)
        if info.id == self.model:
            self.model_info = info

    def _record_interrupt(self, turn: Turn) -> None:
        self._recorder.append(
            "interrupt",
            reason="cancelled",
            text="".join(turn.partial_text),
            thinking="".join(turn.partial_thinking),
        )

    def _fail(self, error: HoldfastError, turn: Turn) -> None:
        kind = "auth" if isinstance(error, CredentialsError) else "unknown"
        status = request_id = None
        if isinstance(error, ProviderError):
            kind, status, request_id = error.error_class, error.status, error.request_id
        self._recorder.append(
            "error",
            error_class=kind,
            message=error.message,
            hint=error.hint,
            status=status,
            request_id=request_id,
            text="".join(turn.partial_text),
        )
        self._publish(events.ErrorRaised(kind, error.message, True, error.hint))

    def _guard_limits(self) -> GuardLimits:
        return GuardLimits.of(self._parts.config.guard, window=self.window)

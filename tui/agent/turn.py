"""The turn boundary: whatever happens inside, the record is closed and the end is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tui.agent import directives as words
from tui.agent import events, mentions
from tui.agent.deferred_retry import Parking
from tui.agent.directive_state import Switches
from tui.agent.events import Event
from tui.agent.limits import Spent
from tui.agent.mcp_tools import Joining
from tui.agent.model_stream import Asking
from tui.agent.overflow_recovery import Compactor, Recovery
from tui.agent.parts import Parts
from tui.agent.pruning import Pruning
from tui.agent.recorder import Recorder
from tui.agent.request_builder import Preparing
from tui.agent.request_repair import Repairing
from tui.agent.runtime_state import Settings
from tui.agent.steering import NO_IMAGES, Steering
from tui.agent.tool_dispatch import Dispatcher
from tui.agent.turn_loop import Turn
from tui.context.binding import BREAK
from tui.core import images as pictures
from tui.core.errors import CredentialsError, HoldfastError, LimitReachedError, ProviderError
from tui.core.images import Image
from tui.core.messages import Block, blocks_of, text_block, tool_calls
from tui.provider.base import Provider, Request

log = logging.getLogger(__name__)

_THINKING_REFUSED = (
    "The server refused the reasoning of earlier answers. The request is sent again without it, "
    "and it stays left out."
)


@dataclass(slots=True)
class Turns:
    """Runs the turns of one agent, one at a time.

    `steering` is what was typed meanwhile; `spent` what all turns have cost, `beside` what
    questions beside the conversation have since the last turn ended. `running` is whether a turn
    can be interrupted: one that is closing its books ends as it would have. `stopped` is set by
    whoever interrupts, before it cancels the task; `closing` when the program goes: a parked turn
    then stays parked.
    """

    parts: Parts
    preparing: Preparing
    switches: Switches
    settings: Settings
    recorder: Recorder
    dispatcher: Dispatcher
    repairing: Repairing
    parking: Parking
    provider: Provider
    publish: Callable[[Event], None]
    compactor: Compactor | None = None
    pruning: Pruning | None = None
    joining: Joining | None = None
    beside: Spent = field(default_factory=Spent)
    steering: Steering = field(default_factory=Steering)
    spent: Spent = field(default_factory=Spent)
    running: bool = False
    stopped: bool = False
    closing: bool = False
    _call_ids: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        for record in self.parts.session.records:
            if record.type == "assistant":
                calls = tool_calls(blocks_of(record.data.get("content")))
                self._call_ids.update(str(call.get("id")) for call in calls)

    async def run(
        self,
        typed: str | None,
        attached: str = "",
        again: Sequence[Block] = (),
        images: Mapping[str, Image] = NO_IMAGES,
    ) -> None:
        """One turn. Nothing is raised: a failure is an event.

        Without a text it goes on where the session stands, once its time has come; the calls
        `again`, which have no result yet, are run before.
        """
        asking = Asking(
            self.provider, self.recorder, self.publish, lambda: self.preparing.ledger.tokens
        )
        recovery = Recovery(
            self.preparing,
            self.recorder,
            self.repairing,
            self.compactor,
            self.parts.config.guard.token_share,
        )

        async def prepare() -> Request:
            return await self._prepare(turn, recovery)

        async def mend(error: ProviderError, request: Request) -> bool:
            if error.park_until is not None:
                return await self.parking.park(error, asking.said)
            if self.repairing.without_thinking(error, request):
                await self.recorder.show(events.Notice(_THINKING_REFUSED))
                return True
            return await recovery.after(error, request, asking.said)

        turn = Turn(
            asking=asking,
            recorder=self.recorder,
            dispatcher=self.dispatcher,
            measured=self.preparing.measured,
            hash_of=self.preparing.hash_of,
            call_ids=self._call_ids,
            prepare=prepare,
            mend=mend,
            room=recovery.window_full,
            take_queued=self._take_queued,
            publish=self.publish,
            debug=self._debug,
            prices=self.parts.config.prices,
        )
        outcome = "done"
        self.preparing.most_output = None
        self.parking.begin()
        try:
            self.running = True
            if self.stopped:
                raise asyncio.CancelledError  # noqa: TRY301 - it came before this task had begun
            if await self._begin(typed, attached, again, images):
                await turn.run()
        except asyncio.CancelledError:
            outcome = "interrupted"
            self._record_interrupt(asking)
        except LimitReachedError as reached:
            outcome = "limit"
            self.recorder.append("note", text=str(reached))
            self.publish(events.Notice(str(reached)))
        except HoldfastError as error:
            outcome = "failed"
            self._fail(error, asking.said)
        except Exception as error:
            log.exception("the turn failed")
            outcome = "failed"
            self._fail(
                HoldfastError(
                    f"Something went wrong inside the program ({type(error).__name__}: {error}).",
                    hint="Nothing is lost. The details are in the log file.",
                ),
                asking.said,
            )
        finally:
            self.running = False
        turn.spent += self.beside
        self.beside = Spent()
        self.spent += turn.spent
        known = turn.spent.requests or self.preparing.model.id in self.parts.config.prices
        usd = turn.spent.usd if known else None
        await self.preparing.keep()
        await self.recorder.show(events.TurnFinished(outcome, turn.spent.usage, usd))

    async def _begin(
        self,
        typed: str | None,
        attached: str,
        again: Sequence[Block],
        images: Mapping[str, Image],
    ) -> bool:
        """Whether there is anything to ask the model."""
        if typed is not None:
            return await self._take(typed, attached, await self._with_mentioned(typed, images))
        if not any(record.type == "user" for record in self.parts.session.records):
            self.publish(events.Notice("There is nothing to go on with yet."))
            return False
        await self.parking.resume()
        if again:
            await self.dispatcher.run_all(again)
        return True

    async def _with_mentioned(self, typed: str, images: Mapping[str, Image]) -> Mapping[str, Image]:
        """The images of a prompt and those that it names with `@`; what is refused is told."""
        workspace, text = self.settings.workspace, words.parse(typed).text
        records = self.parts.session.records
        found = await mentions.look(text, workspace, images.values(), records)
        for error in found.refused:
            self.publish(events.Notice(str(error)))
        return {**images, **found.images} if found.images else images

    async def _take(
        self, typed: str, attached: str = "", images: Mapping[str, Image] = NO_IMAGES
    ) -> bool:
        """Take over typed text: switch its directives, record the rest. False if none is left.

        `images` are those that come along, by their words.
        """
        parsed = words.parse(typed)
        facts: list[Event] = []
        if parsed.changes:
            self.switches.apply(parsed.changes)
            facts.append(events.DirectivesChanged(**self.switches.now.to_json()))
            facts.append(events.Notice(words.acknowledgement(parsed.changes)))
        said = pictures.with_words(parsed.text, images)
        text = "\n\n".join(part for part in (said, attached) if part.strip())
        if text:
            content = [*(image.block for image in images.values()), text_block(text)]
            named = {"images": list(images)} if images else {}
            self.recorder.append("user", content=content, text=parsed.text or text, **named)
            rest = text.removeprefix(said or text).lstrip("\n")
            facts.append(events.UserMessage(text, rest))
        await self.recorder.show(*facts)
        return bool(text)

    async def _take_queued(self) -> bool:
        """Take over what was typed meanwhile, one text at a time: an interrupt loses none."""
        taken = False
        while typed := self.steering.first:
            images = await self._with_mentioned(typed.text, typed.images)
            if self.steering.take(typed):
                self.publish(events.QueueChanged(self.steering.texts))
                taken |= await self._take(typed.text, images=images)
        return taken

    async def _prepare(self, turn: Turn, recovery: Recovery) -> Request:
        """The next request, checked: no record can make one that the API rejects."""
        priced = self.preparing.model.id in self.parts.config.prices
        self.parts.limits.check(self.spent + turn.spent + self.beside, priced=priced)
        self.preparing.learn()
        if self.joining is not None:
            await self.joining.before_request()
        await recovery.before()
        if self.pruning is not None:
            await self.pruning.before_request()
        made = self.repairing.request()
        if self.parts.session.records[-1].type == BREAK:
            self._debug("[DEBUG] Thinking: what there is so far is left out from here on")
        if self.pruning is not None and self.settings.verbose:
            self.pruning.sent(made)
        return made

    def _debug(self, text: str) -> None:
        if self.settings.verbose:
            self.publish(events.Debug(text))

    def _record_interrupt(self, asking: Asking) -> None:
        if self.closing and self.parking.waiting:
            return
        self.recorder.append(
            "interrupt",
            reason="cancelled",
            text=asking.said,
            thinking="".join(asking.partial_thinking),
        )

    def _fail(self, error: HoldfastError, said: str) -> None:
        kind = "auth" if isinstance(error, CredentialsError) else "unknown"
        status = request_id = None
        if isinstance(error, ProviderError):
            kind, status, request_id = error.error_class, error.status, error.request_id
        self.recorder.append(
            "error",
            error_class=kind,
            message=error.message,
            hint=error.hint,
            status=status,
            request_id=request_id,
            text=said,
        )
        offers = self.repairing.offers()
        self.publish(events.ErrorRaised(kind, error.message, True, error.hint, offers))

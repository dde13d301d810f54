"""One turn: ask the model, run what it calls, until it has nothing left to do.

Whatever happens inside, the record is closed and the end is published: nothing is raised.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from msgspec import UNSET, structs

from tui.agent import answer_reports
from tui.agent.agent_context import AgentContext
from tui.agent.calls.dispatch import ToolDispatcher
from tui.agent.compaction import Compactor
from tui.agent.directive_state import DirectiveState
from tui.agent.hooks import HookRunner
from tui.agent.limits import (
    LOOP_REPEATS,
    GoalLimitError,
    GoalOverError,
    LoopDetector,
    Spent,
    session_cost,
)
from tui.agent.mcp_tools import McpTools
from tui.agent.mentions import call, with_mentioned
from tui.agent.model_stream import ModelStream
from tui.agent.overflow_recovery import OverflowRecovery
from tui.agent.pause import TurnPausedError
from tui.agent.prompts import HOOKS_SAY, CommandTurn, GoalWish, ParsedPrompt
from tui.agent.recovery import DeferredRetry, RequestRepair
from tui.agent.request.check import check
from tui.agent.request.due import due
from tui.agent.request.frame_state import server_waits
from tui.agent.request.image_limits import shrink_refused
from tui.agent.request.pruning import PruneSchedule
from tui.agent.request.state import RequestState
from tui.agent.request.view import prepare
from tui.agent.sub_agent_list import SubAgentList
from tui.context import notices
from tui.context.interrupted_calls import open_calls, printed_before
from tui.context.request_trail import has_thinking
from tui.core import facts, images
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import CredentialsError, HoldfastError, LimitReachedError, ProviderError
from tui.core.fact_words import acknowledgement, bill_of_break, request_line
from tui.core.formatting import money, tokens
from tui.core.messages import Block, blocks_of, string_of, text_block, text_of, tool_calls
from tui.core.server_results import sources_of
from tui.permissions.policy import Grant
from tui.provider.base import (
    Completed,
    ModelInfo,
    Request,
)
from tui.session.records import HOOK, MENTIONED, Record

if TYPE_CHECKING:
    from tui.agent.goal import GoalRunner

log = logging.getLogger(__name__)

_HELD = 5
"""Number of times that hooks may keep a turn from ending."""
_NAMED = 8
"""Number of changed files that are named."""
_THINKING_REFUSED = (
    "The server rejected the reasoning in earlier answers. Holdfast sends the request again "
    "without it and leaves it out from now on."
)
_BLOCK_REFUSED = (
    "The server rejected its own summary of the conversation. Holdfast sends the request again "
    "with the summary's text."
)
_NOT_ELEVATED: Final = (
    "Not elevated: not all of your rules can be read, and a deny rule may be among them. Mend the"
    " file and start again."
)
_HOOK_ERRORS: Final = {
    "rate_limit": "rate_limit",
    "overloaded": "overloaded",
    "auth": "authentication_failed",
    "billing": "billing_error",
    "invalid_request": "invalid_request",
    "not_found": "model_not_found",
    "server": "server_error",
}
"""The words of hooks for our classes of errors; "unknown" for others."""


@dataclass(slots=True)
class TurnRunner:
    """Runs the turns of one agent, one at a time.

    `closing` is set when the program goes: a parked turn then stays parked.
    """

    ctx: AgentContext
    requests: RequestState
    directives: DirectiveState
    dispatcher: ToolDispatcher
    compactor: Compactor
    pruning: PruneSchedule
    mcp: McpTools
    repair: RequestRepair
    deferred: DeferredRetry
    sub_agents: SubAgentList
    hooks: HookRunner
    closing: bool = False
    # Of the turn that runs:
    _stream: ModelStream = field(init=False)
    _overflow: OverflowRecovery = field(init=False)
    _loops: LoopDetector = field(init=False)
    _held: int = 0
    """Number of times that hooks kept it from ending."""
    _noted: set[str] = field(default_factory=set[str])
    """The notices about how answers ended."""
    _counted: int = field(init=False)
    """The number of records whose cost was told."""

    def __post_init__(self) -> None:
        self._counted = len(self.ctx.records)

    async def run(
        self,
        prompt: ParsedPrompt | None,
        again: Collection[str] = (),
        *,
        repeat: bool = False,
        goal: GoalWish | None = None,
    ) -> None:
        """One turn. Nothing is raised: a failure is an event.

        Without a prompt it continues where the session stands, once its time has come; the calls
        `again`, which have no result yet, get it before (`ToolDispatcher.recover`). With a `goal`,
        so does the work on that of the session.
        """
        self._stream = ModelStream(self.ctx, self.requests)
        self._overflow = OverflowRecovery(self.ctx, self.requests, self.repair, self.compactor)
        self._loops = LoopDetector()
        self._held = 0
        if self.ctx.parent is None:
            self.ctx.state.pause.wanted = False
            self.ctx.toolbox.jobs.stay()
        self.hooks.wake()
        self.requests.most_output = None
        self.deferred.begin()
        outcome = "done"
        usual: ModelInfo | None = None
        try:
            usual = self._begin_command(prompt.command if prompt else None)
            with self.ctx.events.interruptible():
                if await self._begin(prompt, again, repeat=repeat, goal=goal):
                    await self._go_on()
        except TurnPausedError:
            outcome = "interrupted"
        except asyncio.CancelledError:
            outcome = "interrupted"
            self._record_interrupt()
        except (GoalOverError, LimitReachedError) as reached:
            outcome = self._limited(reached)
        except HoldfastError as error:
            outcome = "failed"
            self._fail(error)
        except Exception as error:
            log.exception("the turn failed")
            outcome = "failed"
            what = "; ".join([f"{type(error).__name__}: {error}", *_notes(error)])
            self._fail(
                HoldfastError(
                    f"Something went wrong inside Holdfast ({what}).",
                    hint="Nothing is lost. Details are in the log file.",
                )
            )
        spent = self._spent()
        known = spent.requests or self.ctx.price is not None
        usd = spent.usd if known else None
        await self.requests.meter.save_ratio()
        self._end_command(usual)
        await self._name_changes()
        if outcome == "done":
            await self._hear_checks()
        self.dispatcher.shared.checks.collect()
        self.hooks.rest()
        await self.ctx.recorder.show(facts.TurnFinished(outcome, spent.usage, usd))

    def _limited(self, reached: GoalOverError | LimitReachedError) -> Literal["limit", "failed"]:
        """Record that a limit was reached, unless that is done; how the turn ended."""
        if isinstance(reached, GoalOverError):
            return reached.outcome
        if isinstance(reached, GoalLimitError):
            self._goals().reach_limit(str(reached))
        else:
            self.ctx.record(facts.Note(str(reached)))
        return "limit"

    def _goals(self) -> GoalRunner:
        from tui.agent.goal import GoalRunner  # noqa: PLC0415 - few sessions have one

        return GoalRunner(self.ctx, self.dispatcher)

    async def _hear_checks(self) -> None:
        """Wait a little for the last edits' problems; an interrupt ends only that."""
        with suppress(asyncio.CancelledError), self.ctx.events.interruptible():
            await self.dispatcher.shared.checks.finish()

    def _spent(self) -> Spent:
        """Count what was recorded since the last turn ended, questions beside the conversation
        included."""
        records = self.ctx.records
        fresh, self._counted = records[self._counted :], len(records)
        return session_cost(fresh, self.ctx.config.prices).session

    def _begin_command(self, command: CommandTurn | None) -> ModelInfo | None:
        """Let the turn of a command do what it may, and ask the command's model; the one that is
        asked afterwards again, None where none is borrowed."""
        if command is None:
            return None
        ctx, usual = self.ctx, self.ctx.link.model
        if command.rules:
            ctx.rules.gate.turn_grants = (Grant("", command.rules, command=command.name),)
            rules = ", ".join(map(str, command.rules))
            ctx.publish(facts.Notice(f"/{command.name} allows in this turn: {rules}."))
        if command.model is None or command.model.id == usual.id:
            return None
        model, size = command.model, ctx.ledger.tokens
        if not self.requests.fits(model).ok:
            why = "its window is too small for this session"
            what = f"/{command.name} asks for {model.id}, but {why}. Asking {usual.id}."
            ctx.publish(facts.Notice(what))
            return None
        self.requests.use(model)
        price = ctx.price_of(model.id)
        usd = price.forecast(written=size, prompt=size, life=ctx.link.cache_life) if price else None
        cost = f" (≈ {money(usd)})" if usd else ""
        what = f"/{command.name} asks {model.id} in this turn"
        ctx.publish(facts.Notice(f"{what}: {tokens(size)} tokens are written for it{cost}."))
        return usual

    def _end_command(self, usual: ModelInfo | None) -> None:
        """End what a command allowed with its turn, and return to the usual model."""
        if self.ctx.parent is None:
            self.ctx.rules.gate.turn_grants = ()
        if usual is not None:
            self.requests.use(usual)
            self.ctx.publish(self.requests.meter.measure())

    async def _begin(
        self,
        prompt: ParsedPrompt | None,
        again: Collection[str],
        *,
        repeat: bool,
        goal: GoalWish | None,
    ) -> bool:
        """Begin the turn; return True if there is anything to ask the model."""
        await self.sub_agents.settle()
        await self.requests.frame.read_files()
        if goal is not None:
            self._goals().take_up(goal)
        if prompt is not None:
            await self._close_open_calls()
            hooked = await self._hooked(await with_mentioned(prompt, self.ctx))
            return hooked is not None and await self._take(hooked)
        if not any(record.type == "user" for record in self.ctx.records):
            self.ctx.publish(facts.Notice("There is nothing to continue yet."))
            return False
        await self.deferred.resume()
        if again:
            await self.dispatcher.recover(again, repeat=repeat)
        await self._close_open_calls()
        return self.ctx.parent is not None or not await self._goals().resume()

    async def _close_open_calls(self) -> None:
        """Give what an earlier run left open its result, before anything else is recorded."""
        if left := open_calls(self.ctx.records):
            await self.dispatcher.close(left)

    async def _take(self, prompt: ParsedPrompt) -> bool:
        """Switch what the prompt's directives say, record the rest, show both, and read the files
        that it names.

        False where there was nothing for the model in it.
        """
        shown: list[facts.Fact] = []
        if prompt.changes.get("elevated") and self.ctx.rules.gate.policy.lost:
            changes = {name: to for name, to in prompt.changes.items() if name != "elevated"}
            prompt = replace(prompt, changes=changes)
            shown.append(facts.Notice(_NOT_ELEVATED))
        if prompt.changes:
            self.directives.apply(prompt.changes, wait=prompt.waits)
            shown.append(facts.DirectivesChanged(**self.directives.now.to_json()))
            shown.append(facts.Notice(acknowledgement(prompt.changes)))
            if prompt.changes.get("think") and not self.ctx.link.model.adaptive_thinking:
                only = (
                    f"{self.ctx.link.model.id} has no adaptive thinking: /think only adds its text."
                )
                shown.append(facts.Notice(only))
        own = images.with_words(prompt.text, prompt.images)
        parts = [part for part in (own, prompt.attached) if part.strip()]
        printed = printed_before(self.ctx.records) if parts else ""
        text = "\n\n".join([*parts, *([printed] if printed else [])])
        if prompt.goal is not None:
            self._goals().begin(prompt.goal)
        # directives alone are no message
        if text:
            content = [*(image.block for image in prompt.images.values()), text_block(text)]
            message = facts.UserMessage(
                text,
                text.removeprefix(own or text).lstrip("\n"),
                content=content,
                typed=prompt.text or text,
                images=list(prompt.images),
                command=prompt.command.to_json() if prompt.command else {},
                by=prompt.by,
            )
            record = self.ctx.recorder.write(message)
            if self.ctx.checkpoints is not None and self.ctx.parent is None:
                self.ctx.checkpoints.begin(record.id)
            shown.append(message)
        await self.ctx.recorder.show(*shown)
        runs = prompt.command.runs if prompt.command else ()
        calls = [*(call("run_command", {"command": run}) for run in runs), *prompt.reads]
        if text and calls:
            await self._make(calls)
        return bool(text)

    async def _hooked(self, prompt: ParsedPrompt) -> ParsedPrompt | None:
        """The prompt with what the person's hooks add to it; None where one stops it."""
        if self.ctx.parent is not None:
            return await self._hooked_sub_agent(prompt)
        if not prompt.text.strip():
            return prompt
        opening = await self.hooks.opening()
        answer = await self.hooks.run("UserPromptSubmit", {"prompt": prompt.text})
        if answer.blocked:
            self.ctx.publish(
                facts.Notice(
                    f"A hook stopped this prompt: {answer.blocked} Up brings the prompt back."
                )
            )
            return None
        self.hooks.hand_over()
        return _with_heard(prompt, opening, answer.context)

    async def _hooked_sub_agent(self, prompt: ParsedPrompt) -> ParsedPrompt:
        """The first prompt of a sub-agent, with what the person's hooks add to it."""
        if any(record.type == "user" for record in self.ctx.records):
            return prompt
        answer = await self.hooks.run("SubagentStart", names=(self.ctx.role,))
        return _with_heard(prompt, answer.context)

    async def _may_end(self) -> bool:
        """Return True if the turn may end; where a hook says no, or has something to add, the model
        learns it and continues."""
        event = "Stop" if self.ctx.parent is None else "SubagentStop"
        given = {
            "stop_hook_active": self._held > 0,
            "last_assistant_message": _last_answer(self.ctx.records),
        }
        names = () if self.ctx.parent is None else (self.ctx.role,)
        answer = await self.hooks.run(event, given, names=names)
        if answer.ends or not (answer.blocked or answer.context):
            return self.ctx.parent is not None or await self._goal_lets_end()
        if self._held >= _HELD:
            self.ctx.publish(
                facts.Notice(f"The {event} hook held the turn {_HELD} times: it ends now.")
            )
            return self.ctx.parent is not None or await self._goal_lets_end()
        self._held += 1
        text = (
            f"The {event} hook says the work isn't done yet: {answer.blocked}"
            if answer.blocked
            else f"The {event} hook says: {answer.context}"
        )
        self.ctx.recorder.write(facts.UserMessage(text, content=[text_block(text)], by=HOOK))
        await self.ctx.recorder.show(facts.Notice(text))
        return False

    async def _goal_lets_end(self) -> bool:
        """Return True if no goal is worked on, or it is met. Raises GoalOverError."""
        if self.ctx.state.goal is None:
            return True
        try:
            return await self._goals().check()
        finally:  # a model may have checked it, for a price
            self.ctx.publish(self.requests.meter.measure())

    async def _make(self, calls: Sequence[Block]) -> None:
        """Read what a prompt names, and run what its command does, by calls that stand in the
        record as an answer's."""
        calls = self.dispatcher.unique_ids(calls)
        self.ctx.record(facts.CallsMentioned(calls, MENTIONED))
        await self.dispatcher.run_all(calls)

    async def collect(self, calls: Collection[str]) -> None:
        """Give calls whose commands are kept their results."""
        outcome = "done"
        try:
            with self.ctx.events.interruptible():
                await self.dispatcher.recover(calls)
        except TurnPausedError:
            outcome = "interrupted"
        except asyncio.CancelledError:
            outcome = "interrupted"
            self._record_interrupt()
        self.ctx.publish(facts.TurnFinished(outcome))

    async def _take_queued(self) -> bool:
        """Take over what was typed meanwhile, one text at a time: an interrupt loses none."""
        queue, taken = self.ctx.state.queue, False
        while queue:
            first = queue[0]
            prompt = await self._hooked(await with_mentioned(first, self.ctx))
            if queue and queue[0] is first:  # it was not taken back while its images were read
                del queue[0]
                self.ctx.publish_queue()
                taken |= prompt is not None and await self._take(prompt)
        return taken

    async def _go_on(self) -> None:
        """Until the model is done and nothing is queued."""
        while True:
            if self.ctx.state.pause.wanted:
                raise TurnPausedError
            answer = await self._answer()
            calls = tool_calls(await self._record(answer))
            self.ctx.state.turn_ends = False
            if calls:
                await self.dispatcher.run_all(calls)
                self._check_for_loop(calls)
            cut = await self._check_stop_reason(answer)
            self.ctx.publish(self.requests.meter.measure())
            queued = not server_waits(self.ctx.records) and await self._take_queued()
            works = calls and not self.ctx.state.turn_ends
            goes_on = works or queued or cut or answer.stop_reason == "pause_turn"
            if not goes_on and await self._may_end():
                return

    async def _answer(self) -> Completed:
        """Ask until there is an answer, with other requests where that helps."""
        while True:
            request = await self._next_request()
            try:
                async with self.ctx.within_limits(request):
                    answer = await self._stream.ask(request)
                    self.ctx.state.spend(
                        Spent.on(answer.usage, self.ctx.price_of(self._stream.model))
                    )
                    return answer
            except ProviderError as error:
                if not await self._recover(error, request):
                    raise
            self._stream.forget()

    async def _name_changes(self) -> None:
        """Say which files commands changed that tools run later, outside the sandbox."""
        confinement = self.ctx.toolbox.confinement
        if confinement is None or self.ctx.parent is not None:
            return
        lines = await confinement.traces.tidy()
        for line in dict.fromkeys([*confinement.traces.take_unsaid(), *lines]):
            self.ctx.publish(facts.Notice(f"{line}."))
        paths = await confinement.traces.changed_files()
        if paths:
            from tui.permissions.sandbox.run_later import in_words  # noqa: PLC0415 - on demand

            what = in_words(paths, self.ctx.workspace.root, _NAMED)
            text = f"Commands changed files that your tools run later: {what}."
            self.ctx.publish(facts.Notice(text))

    async def _next_request(self) -> Request:
        """The next request, checked: no record can make one that the API rejects."""
        ctx = self.ctx
        ctx.check_limits()
        self.requests.learn()
        if (confinement := self.ctx.toolbox.confinement) is not None:
            if self.ctx.toolbox.ahead:
                confinement.begin()
            else:
                await confinement.hide_secrets()
        await self.mcp.before_request()
        if late := self.dispatcher.shared.checks.take_late():
            self.requests.frame.say(late)
        if heard := self.hooks.take_late():
            self.requests.frame.say(notices.hooks(f"{HOOKS_SAY}\n{heard}"))
        prepared = await due(self.requests, self._overflow, self.pruning)
        return check(self.requests, prepared)

    async def _recover(self, error: ProviderError, request: Request) -> bool:
        """Do or wait for what makes another request worthwhile. False where nothing does."""
        if error.park_until is not None:
            return await self.deferred.park(error, self._stream.text)
        if self.repair.without_thinking(error, request):
            await self.ctx.recorder.show(facts.Notice(_THINKING_REFUSED))
            return True
        if self.repair.without_block(error, request):
            await self.ctx.recorder.show(facts.Notice(_BLOCK_REFUSED))
            return True
        if self.requests.features.switch_off(error, self._stream.model):
            return True
        if self.requests.shorten_answers(error, request):
            return True
        if error.images is not None:
            view = prepare(self.requests).view
            if await shrink_refused(self.ctx, view, error.images, request):
                return True
        return await self._overflow.after_error(error, request, self._stream.text)

    async def _record(self, answer: Completed) -> list[Block]:
        """Record the answer, then show it. Returns its content as recorded.

        Cancelled meanwhile, it closes the calls of the answer, which are in the record now.
        """
        content = self.dispatcher.unique_ids(answer.content)
        bound = self.requests.sent.hashes.get(self._stream.model, "")
        server = self.ctx.link.at(answer.model).host
        message = message_of(answer, content, bound, server)
        record = self.ctx.recorder.write(message)
        reports = self.requests.sent.reports(answer, self._stream.model)
        if any(isinstance(one, facts.RequestExtended) and one.broken for one in reports):
            from tui.agent.request.break_bill import billed  # noqa: PLC0415 - on demand

            if bill := billed(self.ctx, answer.usage, self._stream.model):
                self.ctx.recorder.write(bill)
                reports.append(bill_of_break(bill))
        cited = sources_of(content)
        own = session_cost([record], self.ctx.config.prices).session
        paid = facts.RequestPaid(own.usd, self.ctx.spent().session.usd)
        try:
            await self.ctx.recorder.show(
                message, *cited, *reports, paid, self.requests.meter.measure()
            )
        except asyncio.CancelledError:
            await self.dispatcher.close(tool_calls(content))
            raise
        figures = ", ".join(f"{name} {count:,}" for name, count in answer.usage.to_json().items())
        self.ctx.debug(
            f"[DEBUG] Answer: {answer.model}, {figures}, stop {answer.stop_reason}, "
            f"request {answer.request_id or '—'}"
            + "".join(
                f"\n{request_line(one)}"
                for one in reports
                if isinstance(one, facts.RequestExtended)
            )
        )
        return content

    async def _check_stop_reason(self, answer: Completed) -> bool:
        """Report an answer that did not end by itself, with what to do.

        Returns True if the model is to continue it.
        """
        match answer.stop_reason:
            case "refusal":
                details = answer.stop_details
                raise ProviderError(
                    "refusal",
                    answer_reports.refusal(details),
                    hint="Rephrase the prompt, or try another model with /model.",
                    category=string_of(details.get("category")),
                    explanation=string_of(details.get("explanation")),
                )
            case "model_context_window_exceeded":
                if await self._overflow.compact():
                    return True
                raise ProviderError(
                    "context_overflow",
                    "The context window is full.",
                    hint="Start a new session with /new.",
                )
            case _:
                pass
        if answer.stop_reason == "end_turn" and answer.says_why and text_of(answer.content).strip():
            return False
        from tui.agent import answer_end  # noqa: PLC0415 - for those that end in another way

        asked = self.requests.asked
        note = answer_end.check(answer, asked.max_tokens if asked else 0)
        # A server that ends every answer in its own way is told of once.
        if note and (answer.stop_reason in answer_end.CUT or note not in self._noted):
            self._noted.add(note)
            self.ctx.publish(facts.Notice(note))
        if again := answer_end.cut_again(self.ctx.records):
            self.ctx.publish(facts.Notice(again))
        return False

    def _check_for_loop(self, calls: Sequence[Block]) -> None:
        """Raises HoldfastError where the model makes the same call again and again."""
        call = self._loops.repeated(calls, self.ctx.records[-4 * len(calls) - 64 :])
        if call is None:
            return
        name = str(call.get("name"))
        self.ctx.publish(facts.LoopStopped(name, call["input"], LOOP_REPEATS))
        raise HoldfastError(
            f"Stopped: {name} was called {LOOP_REPEATS} times with the same result.",
            hint="Suggest another approach, or /retry to let it continue.",
        )

    def _record_interrupt(self) -> None:
        if (self.closing or self.ctx.state.pause.wanted) and self.deferred.waiting:
            return
        self.ctx.record(
            facts.TurnInterrupted("cancelled", self._stream.text, self._stream.thinking)
        )
        if self.ctx.state.goal is not None:
            self._goals().pause("its turn was stopped")

    def _fail(self, error: HoldfastError) -> None:
        kind = "auth" if isinstance(error, CredentialsError) else "unknown"
        status = request_id = None
        category = explanation = ""
        unreadable = UNSET
        if isinstance(error, ProviderError):
            kind, status, request_id = error.error_class, error.status, error.request_id
            category, explanation = error.category, error.explanation
            unreadable = error.unreadable or UNSET
        told = {"error": _HOOK_ERRORS.get(kind, "unknown"), "error_details": error.message}
        told["last_assistant_message"] = _last_answer(self.ctx.records)
        self.hooks.tell("StopFailure", told, names=(told["error"],))
        message = "; ".join([error.message, *_notes(error)])
        raised = facts.ErrorRaised(
            kind,
            message,
            True,
            error.hint,
            category=category,
            explanation=explanation,
            unreadable=unreadable,
            status=status,
            request_id=request_id,
            streamed=self._stream.text,
        )
        self.ctx.recorder.write(raised)
        self.ctx.publish(structs.replace(raised, offers=self.repair.offers()))


def message_of(
    answer: Completed, content: list[Block], bound: str, server: str
) -> facts.AssistantMessage:
    """An answer as a fact. `bound` is the hash of the request that it answers."""
    return facts.AssistantMessage(
        text_of(content),
        answer.stop_reason,
        answer.usage,
        answer.request_id,
        content=content,
        model=answer.model,
        server=server,
        message_id=answer.message_id or "",
        bound_to=bound if has_thinking(content) else UNSET,
    )


def _notes(error: Exception) -> list[str]:
    """Return the notes that were added to an error on its way here."""
    return list(getattr(error, "__notes__", []))


def _with_heard(prompt: ParsedPrompt, *heard: str) -> ParsedPrompt:
    """A prompt with what hooks want the model to know."""
    said = "\n\n".join(filter(None, heard))
    if not said:
        return prompt
    attached = "\n\n".join(filter(None, (prompt.attached, f"{HOOKS_SAY}\n{said}")))
    return replace(prompt, attached=attached)


def _last_answer(records: Sequence[Record]) -> str:
    """The text of the last answer."""
    last = next((one for one in reversed(records) if one.type == "assistant"), None)
    return text_of(blocks_of(last.data.get("content"))) if last is not None else ""

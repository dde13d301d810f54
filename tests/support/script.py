"""A scripted model, and tools that do what its script says: for the screens on a real agent.

A script is one turn, written as the events that a person shall see. `ScriptedModel` plays it: what
a model sends is streamed, a call is really made and run by a `ScriptedTool`, an error is raised.
What other parts of an agent would tell (a full disk, a compaction) is published as it is written.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias, cast

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.context.repair_levels import RepairLevel
from tui.core import facts
from tui.core.clock import Clock
from tui.core.errors import ErrorClass, HoldfastError, LimitReachedError, ProviderError
from tui.core.facts import (
    Alive,
    Fact,
    ModelSwitched,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from tui.core.messages import Block, ToolOutput, Usage, text_block
from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.core.workspace import Workspace
from tui.permissions.gate import Gate
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Approver, Call, Decision, Mode
from tui.provider.base import AttemptStarted, Completed, ModelInfo, Request, StreamPart
from tui.provider.catalogue import EFFORTS
from tui.tools.base import CallPreview, Effect, Params, Tool, ToolContext

MODEL = "claude-sonnet-5-5"
SUMMARY = "- what was said"
"""What the model answers to a question beside the conversation."""

REAL = frozenset({"ask_user", "present_plan"})
"""Tools that only talk to the person: a script's calls of them are real ones."""

ALLOWED = Decision("allow", "", "script")


class Ask:
    """A step of a script: a call that the person is asked about."""

    def __init__(self, call: Call, decision: Decision) -> None:
        self.call = call
        self.decision = decision


class Hold:
    """A step of a script: nothing happens until `release` is called, or the turn is cancelled.

    Behind a retry or a switch to it that is the wait, which a person can end (`RetryControl`).
    """

    def __init__(self) -> None:
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def wait(self) -> None:
        await self._released.wait()


class Burst:
    """A step of a script: so many pieces of text, all at once."""

    def __init__(self, count: int) -> None:
        self.count = count


Step: TypeAlias = Fact | Ask | Hold | Burst | Exception
Script: TypeAlias = Sequence[Step]

_OfAnswer = (
    *(TextDelta, ThinkingDelta, ToolInputDelta, Alive, RetryScheduled, ModelSwitched),
    *(facts.RequestSent, facts.AssistantMessage, facts.ErrorRaised, facts.UserMessage),
    *(facts.RecoveryStep, facts.Parked, Exception, Burst),
)
"""Steps that belong to the next answer: the calls before them are over."""


class ScriptedParams(Params, frozen=True):
    """The arguments of a scripted call, which are any."""

    id: str
    command: str | None = None


@dataclass(slots=True)
class ScriptedCall:
    """A call of a script. `asked` is what the person is asked, None where nobody is."""

    id: str
    name: str
    input: dict[str, Any]
    label: str = ""
    asked: Ask | None = None
    emit: Any = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Event = field(default_factory=asyncio.Event)
    output: asyncio.Future[ToolOutput] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    over: asyncio.Event = field(default_factory=asyncio.Event)

    async def reach(self, event: asyncio.Event) -> None:
        """Wait for one of the events above, or until the call is over without it."""
        waits = [asyncio.ensure_future(one.wait()) for one in (event, self.over)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def finish(self, output: ToolOutput) -> None:
        await self.reach(self.running)
        if not self.output.done():
            self.output.set_result(output)
        await self.over.wait()


class ScriptedTool(Tool[ScriptedParams]):
    """A tool whose calls do what the script says."""

    name = ""
    effect: ClassVar[Effect] = "none"
    params = ScriptedParams
    model: ScriptedModel

    @classmethod
    def named(cls, name: str, effect: Effect, model: ScriptedModel) -> Tool[Any]:
        made = type(cls.__name__, (cls,), {"name": name, "effect": effect, "model": model})
        return cast("Tool[Any]", made())

    def parse(self, arguments: object) -> ScriptedParams:
        call = self.model.begin_call(self.name, arguments)
        return ScriptedParams(id=call.id, command=call.asked.call.command if call.asked else None)

    def label(self, params: ScriptedParams) -> str:
        return self.model.calls[params.id].label

    def subject(self, params: ScriptedParams) -> str:
        call = self.model.calls[params.id]
        return call.asked.call.subject if call.asked else call.label

    def paths(self, params: ScriptedParams) -> tuple[str, ...]:
        asked = self.model.calls[params.id].asked
        return asked.call.paths if asked else ()

    async def preview(self, params: ScriptedParams, ctx: ToolContext) -> CallPreview:
        asked = self.model.calls[params.id].asked
        assert asked
        return CallPreview(asked.call.preview_kind, asked.call.preview)

    async def run(self, params: ScriptedParams, ctx: ToolContext) -> ToolOutput:
        call = self.model.calls[params.id]
        call.emit = ctx.host.emit
        call.running.set()
        return await call.output


class ScriptedGate(Gate):
    """A gate that decides the calls of a script as it says, and all others by the policy."""

    def __init__(self, gate: Gate, model: ScriptedModel) -> None:
        super().__init__(gate.policy)
        self._model = model

    def decide(
        self,
        call: Call,
        *,
        mode: Mode,
        elevated: bool,
        workspace: Workspace,
        holds: Collection[Level] = (),
    ) -> Decision:
        decided = super().decide(
            call, mode=mode, elevated=elevated, workspace=workspace, holds=holds
        )
        if (scripted := self._model.calls.get(call.id)) is None:
            return decided
        return scripted.asked.decision if scripted.asked else ALLOWED

    def scope_of(self, call: Call) -> str:
        scripted = self._model.calls.get(call.id)
        asked = scripted.asked if scripted else None
        return asked.call.scope if asked else super().scope_of(call)

    def always(self, call: Call, level: Level = Level.WORKSPACE) -> tuple[str, ...]:
        scripted = self._model.calls.get(call.id)
        asked = scripted.asked if scripted else None
        return (asked.call.always or (call.tool,)) if asked else super().always(call, level)


class Answers:
    """The person's answers, as they reach the agent."""

    def __init__(self, approver: Approver) -> None:
        self.given: list[Answer] = []
        self._approver = approver

    async def ask(self, call: Call, decision: Decision) -> Answer:
        answer = await self._approver.ask(call, decision)
        self.given.append(answer)
        return answer

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        return await self._approver.ask_user(questions, agent)

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        return await self._approver.review_plan(title, plan)


class ScriptedModel:
    """A provider that plays one script a turn; without one it answers nothing.

    `requests` are what the agent asked of the conversation. `wishes` say how waits ended that
    the person would not wait for. `tried` is the rung of the repair ladder that was tried before
    a request is refused. `loads` counts how often it was loaded ahead of one.
    """

    def __init__(self, scripts: deque[Script], clock: Clock) -> None:
        self.scripts = scripts
        self.requests: list[Request] = []
        self.calls: dict[str, ScriptedCall] = {}
        self.figures: deque[Fact] = deque()
        self.measured: list[Fact] = []
        self.wishes: list[str] = []
        self.tried: RepairLevel | None = None
        self.window = 200_000
        self.loads = 0
        self._clock = clock
        self._steps: deque[Step] = deque()
        self._written: dict[str, str] = {}
        self._begun = False
        self._conductor: asyncio.Task[None] | None = None
        self._ctx: AgentContext | None = None

    def serve(self, ctx: AgentContext) -> None:
        """Play for this agent."""
        self._ctx = ctx

    @property
    def ctx(self) -> AgentContext:
        assert self._ctx
        return self._ctx

    # The turn

    def end_turn(self) -> None:
        """Nothing of the script is left, whatever became of the turn."""
        if self._conductor is not None:
            self._conductor.cancel()
        self._conductor = None
        self._steps.clear()
        self._begun = False

    def see(self, event: Fact) -> Fact:
        """What the agent published, with the figures that the script gives: a clock that stands
        and texts of one line come to none that are worth a look."""
        match event:
            case facts.ToolFinished(id=id_) if id_ in self.calls:
                self.calls[id_].over.set()
            case facts.RequestSent() | facts.TurnFinished():
                pass
            case _:
                return event
        given = next((one for one in self.figures if _same(one, event)), None)
        if given is None:
            return event
        self.figures.remove(given)
        match given:
            case facts.ToolFinished(seconds=seconds, receipt=receipt):
                assert isinstance(event, facts.ToolFinished)
                return structs.replace(event, seconds=seconds, receipt=receipt)
            case facts.RequestSent(messages, tokens):
                assert isinstance(event, facts.RequestSent)
                return structs.replace(event, messages=messages, tokens=tokens)
            case _:
                assert isinstance(given, facts.TurnFinished)
                assert isinstance(event, facts.TurnFinished)
                return structs.replace(event, usage=given.usage, cost_usd=given.cost_usd)

    def before_prompt(self) -> None:
        """Raise where the script has no prompt: the turn fails before that is in the record."""
        script = self.scripts[0] if self.scripts else ()
        failure = next((one for one in script if isinstance(one, facts.ErrorRaised)), None)
        if not script or not isinstance(script[0], (facts.ErrorRaised, HoldfastError)):
            return
        for step in self.scripts.popleft():
            if isinstance(step, HoldfastError):
                raise step
            if not isinstance(step, (facts.ErrorRaised, facts.TurnFinished)):
                self._publish(cast("Fact", step))
        assert failure
        raise HoldfastError(failure.message, hint=failure.hint)

    def break_turn(self) -> None:
        """Raise where the script says that the agent itself is broken."""
        first = self.scripts[0][0] if self.scripts else None
        if isinstance(first, RuntimeError | ValueError):
            self.scripts.popleft()
            raise first

    # The provider

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:  # noqa: C901 - a case per step
        if not request.tools:
            async for part in self._aside(request):
                yield part
            return
        self.requests.append(request)
        self._next_script(request)
        while isinstance(self._first, facts.UserMessage):
            self._steps.popleft()
        sent = self._take(facts.RequestSent)
        yield AttemptStarted(sent.attempt if sent else 1, request.model)
        model, text = request.model, ""
        while self._steps:
            step = self._steps[0]
            match step:
                case facts.AssistantMessage(text, reason, usage, request_id):
                    self._steps.popleft()
                    yield self._completed(text, model, reason, usage, request_id)
                    return
                case facts.ToolStarted() | Ask() | facts.UserMessage():
                    break
                case facts.TurnFinished():
                    await self._end(step)
                    break
                case facts.ErrorRaised():
                    class_ = cast("ErrorClass", step.error_class)
                    self._refuse(ProviderError(class_, step.message, hint=step.hint))
                case Exception():
                    self._refuse(step)
                case _:
                    self._steps.popleft()
            match step:
                case Hold():
                    await self._wait(step)
                case Burst():
                    for number in range(step.count):
                        yield TextDelta(f"{number} ")
                case facts.RequestSent(attempt=attempt, model=model):
                    self.figures.append(step)
                    yield AttemptStarted(attempt, model)
                case TextDelta():
                    text += step.text
                    yield step
                case ToolInputDelta(id_, name):
                    self._written[id_] = name
                    yield step
                case RetryScheduled() | ModelSwitched():
                    text = ""
                    self._written.clear()
                    model = step.new if isinstance(step, ModelSwitched) else model
                    yield step
                case ThinkingDelta() | Alive():
                    yield step
                case _:
                    self._publish(cast("Fact", step))
        yield self._completed(text, model, "end_turn", Usage(1000, 50), None)

    async def count_tokens(self, request: Request) -> int:
        return len(request.messages)

    async def load(self) -> None:
        self.loads += 1

    async def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(model, self.window, 64_000, "catalogue", EFFORTS, "high")

    async def aclose(self) -> None:
        pass

    # Its parts

    @property
    def _first(self) -> Step | None:
        return self._steps[0] if self._steps else None

    def _take(self, kind: type[facts.RequestSent]) -> facts.RequestSent | None:
        if not isinstance(step := self._first, kind):
            return None
        self._steps.popleft()
        self.figures.append(step)
        return step

    def _next_script(self, request: Request) -> None:
        """A turn begins with the next script; a prompt that joins it has one of its own."""
        last = request.messages[-1]["content"]
        results = any(block.get("type") == "tool_result" for block in last if block)
        if self._steps or (self._begun and results):
            return
        self._begun = True
        self._steps.extend(self.scripts.popleft() if self.scripts else ())

    async def _aside(self, request: Request) -> AsyncGenerator[StreamPart]:
        yield AttemptStarted(1, request.model)
        yield TextDelta(SUMMARY)
        yield Completed([text_block(SUMMARY)], request.model, "end_turn", Usage(100, 10))

    async def _wait(self, hold: Hold) -> None:
        """Wait as a provider does between two attempts, or at the script's word."""
        control = self.ctx.link.control
        clock = _Held(self._clock, hold)
        switch = await control.wait(cast("Clock", clock), 0)
        if not clock.slept:
            self.wishes.append("other" if switch else "now")

    async def _end(self, step: facts.TurnFinished) -> None:
        self._steps.clear()
        match step.outcome:
            case "failed":
                raise ProviderError("unknown", "It failed.")
            case "limit":
                raise LimitReachedError("The limit is reached.")
            case "interrupted":
                self.ctx.events.cancel()
                await asyncio.Event().wait()
            case _:
                self.figures.append(step)

    def _refuse(self, error: Exception) -> None:
        self._steps.clear()
        if self.tried is not None:
            self.ctx.record(facts.RepairApplied((), self.tried, "person"))
            self.tried = None
        raise error

    def _completed(
        self, text: str, model: str, reason: str, usage: Usage, request_id: str | None
    ) -> Completed:
        calls = list(self._upcoming())
        content: list[Block] = [text_block(text)] if text else []
        for call in calls:
            content.append(
                {"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}
            )
            self.calls[call.id] = call
        for name in dict.fromkeys(call.name for call in calls if call.name not in REAL):
            effect: Effect = "none"
            for call in calls:
                if call.asked and call.name == name:
                    effect = call.asked.call.effect
            self.ctx.toolbox.tools[name] = ScriptedTool.named(name, effect, self)
        self._written.clear()
        if calls:
            self._conductor = asyncio.create_task(self._conduct(calls), name="script")
        elif self._steps:
            self._close_turn()
        # A script without an answer is about what happens besides: it is none of an empty answer.
        content = content or [{"type": "unseen_tool_result"}]
        return Completed(content, model, "tool_use" if calls else reason, usage, request_id)

    def _close_turn(self) -> None:
        """What a script says behind the last answer."""
        while self._steps and not isinstance(self._first, _OfAnswer):
            step = self._steps.popleft()
            match step:
                case facts.TurnFinished():
                    self.figures.append(step)
                case Hold() | Ask() | Burst() | Exception():
                    raise AssertionError(f"{step} is behind the last answer of a turn")
                case _:
                    self._publish(step)

    def _upcoming(self) -> Iterator[ScriptedCall]:
        """The calls of the answer that is complete: those that begin before the next one."""
        asks = {step.call.id: step for step in self._calls_part() if isinstance(step, Ask)}
        made: set[str] = set()
        for step in self._calls_part():
            match step:
                case facts.ToolStarted(id_, name, input_, label):
                    yield ScriptedCall(id_, name, dict(input_), label, asks.get(id_))
                case Ask(call=call):
                    id_ = call.id
                    if id_ not in made:
                        yield ScriptedCall(id_, call.tool, {}, call.subject, step)
                case _:
                    continue
            made.add(id_)
        for id_, name in self._written.items():
            if id_ not in made and made:
                yield ScriptedCall(id_, name, {})

    def _calls_part(self) -> Iterator[Step]:
        for step in self._steps:
            if isinstance(step, _OfAnswer):
                return
            yield step

    def _publish(self, event: Fact) -> None:
        if isinstance(event, facts.ContextMeasured):
            self.measured.append(event)
        self.ctx.publish(event)

    # The calls

    def begin_call(self, name: str, arguments: object) -> ScriptedCall:
        """The call of these arguments, which begins."""
        waiting = (call for call in self.calls.values() if not call.begun.is_set())
        call = next(c for c in waiting if c.name == name and c.input == arguments)
        call.begun.set()
        return call

    async def _conduct(self, calls: Sequence[ScriptedCall]) -> None:  # noqa: C901 - a case per step
        """Play what the script says of calls, until the next answer begins."""
        asked = {call.id for call in calls if call.asked}
        while self._steps and not isinstance(self._first, _OfAnswer):
            step = self._steps[0]
            if isinstance(step, facts.TurnFinished) and step.outcome in {"failed", "limit"}:
                break  # the model's next request meets it
            if isinstance(step, Hold) and all(call.over.is_set() for call in calls):
                break  # so does a wait behind the last call's end
            self._steps.popleft()
            match step:
                case facts.ToolStarted(id_):
                    await self.calls[id_].reach(self.calls[id_].begun)
                case facts.ToolOutputChunk(id_, text):
                    await self.calls[id_].reach(self.calls[id_].running)
                    self.calls[id_].emit(text)
                case facts.ToolFinished(id_):
                    await self._finish(step)
                case facts.PermissionAsked(id_) | facts.PermissionAnswered(id_) if id_ in asked:
                    pass  # they come of themselves
                case Ask():
                    await self._answered(self.calls[step.call.id])
                case Hold():
                    await self._wait(step)
                case facts.TurnFinished(outcome="interrupted"):
                    self.ctx.events.cancel()
                    return
                case facts.TurnFinished():
                    self.figures.append(step)
                case Burst() | Exception():
                    raise AssertionError(step)
                case _:
                    self._publish(step)
        for call in calls:
            await call.finish(ToolOutput.text(""))

    async def _finish(self, step: facts.ToolFinished) -> None:
        if self.calls[step.id].over.is_set():
            return
        self.figures.append(step)
        output = ToolOutput.text(step.text, is_error=step.is_error, summary=step.summary)
        await self.calls[step.id].finish(replace(output, display=step.display))

    async def _answered(self, call: ScriptedCall) -> None:
        """Wait for the person's answer; the call is over then, unless the script says more."""
        await call.reach(call.running)
        more = (one for one in self._calls_part() if getattr(one, "id", "") == call.id)
        if next(more, None) is None:
            await call.finish(ToolOutput.text(""))


class _Held:
    """A clock for one wait, which lasts as long as a script holds."""

    def __init__(self, clock: Clock, hold: Hold) -> None:
        self.slept = False
        self._hold = hold
        self.now, self.monotonic = clock.now, clock.monotonic

    async def sleep(self, _seconds: float) -> None:
        await self._hold.wait()
        self.slept = True


def _same(given: Fact, event: Fact) -> bool:
    if isinstance(given, facts.ToolFinished) and isinstance(event, facts.ToolFinished):
        return given.id == event.id
    return type(given) is type(event)

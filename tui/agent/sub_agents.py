"""Sub-agents: a call of `task` runs an agent of its own, in a session of its own.

The parent's record names each: `sub_agent` when it starts and when it ends (with what it cost), and
`file_change` for what it does to files, so that /rewind and /diff of the parent know it. The header
of its session names the parent and the call. What the parent's model gets is its last message.

A sub-agent asks the parent's server, passes the parent's permissions call by call, and works in the
parent's sandbox and folders. A call that an earlier run left open continues
its session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from tui.agent import events
from tui.agent.agent_context import AgentContext
from tui.agent.events import Event
from tui.agent.interrupted_work import last_of_turn, turn_is_open
from tui.agent.limits import Spent, spent_by_model
from tui.agent.prompts import ParsedPrompt
from tui.agent.recorder import to_the_end
from tui.context import system_prompt
from tui.context.file_changes import details_of
from tui.context.interrupted_calls import unsettled_calls
from tui.context.overrides import content_of
from tui.context.record_index import RecordIndex
from tui.context.system_prompt import Source
from tui.core.errors import HoldfastError, SessionError, ToolError
from tui.core.formatting import money, plural, tokens
from tui.core.messages import ToolOutput, string_of, text_of, tool_calls
from tui.core.text_cleaning import one_line
from tui.core.workspace import branch_of
from tui.permissions.types import Call
from tui.provider.base import (
    Alive,
    ModelInfo,
    Provider,
    RetryScheduled,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
)
from tui.session.reader import read
from tui.session.records import FILE_CHANGE, SUB_AGENT, Record
from tui.session.session import Session, children_of
from tui.settings.agent_definitions import SMALL, AgentDefinition, AgentDefinitions
from tui.tools.ask_user import AskUser
from tui.tools.jobs import Jobs
from tui.tools.present_plan import PresentPlan
from tui.tools.recall import Recall
from tui.tools.skill import Skill
from tui.tools.submit_result import SubmitResult
from tui.tools.task import SubAgentTool, TaskParams

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.tools.base import ToolContext

State: TypeAlias = Literal[
    "waiting", "running", "done", "failed", "limit", "stopped", "interrupted"
]

_ENDED: Final = frozenset({"done", "failed", "limit", "stopped"})

LIST_NAME: Final = "List of sub-agents"
"""What the model knows the list of definitions by."""

_TEXT_CHARS = 200
"""Of what a sub-agent says between its calls, in a line of its card."""
_CHANGED = 20
"""How many changed files its result names."""
_QUIET = (
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    Alive,
    events.SessionStarted,
    events.ContextMeasured,
    events.ContextFiles,
    events.DirectivesChanged,
    events.ToolOutputChunk,
    events.TurnFinished,
)
"""Events that whoever follows the parent is spared."""
_CHANGE_FIELDS = ("path", "before", "before_sha256", "after_sha256", "mode")


@dataclass(slots=True, eq=False)
class SubAgent:
    """A sub-agent of a session, as it works or as it ended. `call_id` is of the call that it works
    for, or worked for last; `path` is its session's file, None in memory."""

    call_id: str
    session_id: str
    path: Path | None
    agent: str
    description: str
    model: str
    state: State = "waiting"
    calls: int = 0
    spent: Spent = field(default_factory=Spent)
    now: str = ""
    """What it is doing, in a few words."""
    asks: bool = False
    """Whether it waits for the person's answer."""
    problem: str = ""
    """Why it failed."""
    started: float = 0.0
    """When it began to work, on the clock's monotonic scale; 0 before."""
    seconds: float = 0.0
    """How long it worked, once it has ended."""
    session: Session | None = None
    """While it works; where it is kept in memory only, for good."""
    stopped: bool = False
    """Whether the person let it end."""
    watch: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called whenever something of it is different."""
    cancel: Callable[[], None] = lambda: None

    @property
    def works(self) -> bool:
        """Whether it has not ended."""
        return self.state in {"waiting", "running"}

    @property
    def figures(self) -> str:
        """What it did and cost, as parts of a line."""
        usd = self.spent.usd
        used = [f"{tokens(self.spent.usage.total)} tokens"] if self.spent.requests else []
        cost = [money(usd)] if usd else []
        return " · ".join([plural(self.calls, "call"), *used, *cost])

    def stop(self) -> None:
        """Let it end where it is: what it did so far is its result. One that waits for its turn
        ends when that comes."""
        self.stopped = True
        self.cancel()
        self.tell()

    def tell(self) -> None:
        """Say to who watches that something is different."""
        for call in tuple(self.watch):
            call()


class SubAgents:
    """The sub-agents of one agent. `provider` is what they ask: the parent's, less what goes on
    with other models."""

    def __init__(
        self,
        ctx: AgentContext,
        provider: Provider,
        make: Callable[[AgentContext], Agent],
        effort: Callable[[], str],
    ) -> None:
        """`make` makes an agent; `effort` is the level that the person chose, "" for none."""
        self.provider = provider
        self._ctx, self._make, self._effort = ctx, make, effort
        self._places = asyncio.Semaphore(ctx.config.agents.parallel)
        self._records = RecordIndex({SUB_AGENT})
        self._found: dict[str, SubAgent] = {}
        self._read = 0
        self._last: Record | None = None
        self._taken: set[str] = set()
        """The sessions of earlier sub-agents that go on."""
        self._known: dict[str, SubAgent] = {}
        """By the id of the session, those of this run of the program."""
        self._settled = False

    @property
    def all(self) -> Sequence[SubAgent]:
        """The sub-agents of the session, those of earlier runs too, in the order of their start."""
        records = self._records.of(self._ctx.records)
        if len(records) < self._read or (self._read and records[self._read - 1] is not self._last):
            self._found, self._read = {}, 0  # the branch was rewound
        for record in records[self._read :]:
            one = _of_record(record)
            before = self._found.get(one.session_id)
            one.spent = Spent.of_sub_agent(record, self._ctx.config.prices)
            if before is not None:
                one.spent, one.calls = before.spent + one.spent, before.calls + one.calls
            self._found[one.session_id] = one
        self._read, self._last = len(records), records[-1] if records else None
        return [self._known.get(id_, one) for id_, one in self._found.items()]

    def file_of(self, one: SubAgent) -> Path | None:
        """The file of its session: beside the parent's, if that was moved. Blocks."""
        if one.path is None or self._ctx.session.path is None:
            return one.path
        beside = children_of(self._ctx.session.path) / one.path.name
        with suppress(OSError):
            return beside if beside.exists() else one.path
        return one.path

    def records_of(self, one: SubAgent) -> Sequence[Record]:
        """Its records, from its file where it has ended. Blocks; raises SessionError."""
        if one.session is not None:
            return one.session.records
        file = self.file_of(one)
        return read(file).branch if file is not None else ()

    def of_call(self, call_id: str) -> SubAgent | None:
        """The sub-agent that works or worked for a call."""
        records = self._records.of(self._ctx.records)
        named = (one.data for one in reversed(records) if one.data.get("call_id") == call_id)
        session = next((string_of(data.get("session")) for data in named), None)
        return next((one for one in self.all if one.session_id == session), None)

    async def settle(self) -> None:
        """Record what sub-agents did that ended with an earlier run of the program: what they cost
        and changed. To be called before anything else is recorded."""
        if self._settled or self._ctx.parent is not None:
            return
        self._settled = True
        for record in _unfinished(self._records.of(self._ctx.records)):
            try:
                own = list(await asyncio.to_thread(self.records_of, _of_record(record)))
            except SessionError:
                own = list[Record]()  # it had not begun, or is gone
            since = [one for one in own if one.id > record.id]
            noted = {
                (one.data.get("session"), one.data.get("session_call"))
                for one in self._ctx.records
                if one.type == FILE_CHANGE
            }
            for change in _changes(since, record.data):
                if (change["session"], change["session_call"]) not in noted:
                    self._ctx.recorder.append(FILE_CHANGE, **change)
            calls = sum(one.type == "tool_result" for one in since)
            used = spent_by_model(since)
            ended = {"state": "interrupted", "calls": calls, "spent": used}
            self._ctx.recorder.append(SUB_AGENT, **record.data | ended)

    async def run(self, params: TaskParams, tool: ToolContext) -> ToolOutput:
        """Carry out a call of `task`. Raises ToolError where no sub-agent can be started."""
        left_open = any(
            record.data.get("call_id") == tool.call_id
            for record in self._records.of(self._ctx.records)
        )
        before = self._earlier(params.resume, tool.call_id)
        if before is None:
            return await self._run(params, tool, None, left_open=False)
        self._taken.add(before.session_id)
        try:
            return await self._run(params, tool, before, left_open=left_open)
        finally:
            self._taken.discard(before.session_id)

    async def _run(
        self, params: TaskParams, tool: ToolContext, before: SubAgent | None, *, left_open: bool
    ) -> ToolOutput:
        ctx = self._ctx
        definition = await self._definition(before.agent if before else params.agent)
        self._check_allowed(definition.name, tool.call_id)
        model = await self._model(definition, tool)
        session = await self._session(before, tool.call_id)
        one = SubAgent(
            tool.call_id,
            session.id,
            session.path,
            definition.name,
            one_line(params.description),
            model.id,
            session=session,
        )
        self._known[session.id] = one
        work: _Work | None = None
        try:
            agent = await self._agent(one, definition, model, session)
            one.cancel = agent.cancel
            work = _Work(ctx, one, agent, tool, len(session.records), before)
            ctx.recorder.append(SUB_AGENT, **_facts(one), state="started")
            path = str(one.path) if one.path else None
            about, resumed = one.description, before is not None
            started = events.SubAgentStarted(
                one.call_id, one.session_id, path, one.agent, about, one.model, resumed
            )
            await ctx.recorder.show(started)
            async with self._place(one, tool):
                if not one.stopped:
                    await work.do(params.prompt, left_open=left_open)
        except asyncio.CancelledError:
            one.state = "interrupted"
            tool.emit(f"[its work so far is kept: session {one.session_id}]\n")
            raise
        finally:
            if work is not None:
                await to_the_end(work.end())
            else:
                del self._known[session.id]
                await to_the_end(session.close())
        assert work is not None
        return work.result()

    def _check_allowed(self, kind: str, call_id: str) -> None:
        """Raises ToolError where a rule forbids a kind, whatever the call calls it."""
        ctx = self._ctx
        call = Call(call_id, SubAgentTool.name, SubAgentTool.effect, kind)
        decision = ctx.gate.decide(
            call, mode=ctx.mode, elevated=ctx.elevated, workspace=ctx.workspace
        )
        if decision.answer == "deny":
            raise ToolError(f"Not allowed, not run: {decision.reason}")

    def _place(self, one: SubAgent, tool: ToolContext) -> asyncio.Semaphore:
        """The right to work, of which there are as many as may work at the same time."""
        if self._places.locked():
            one.now = "waits for its turn"
            most = self._ctx.config.agents.parallel
            tool.emit(f"Waits for its turn: {plural(most, 'sub-agent')} at the same time.\n")
        return self._places

    def _earlier(self, resume: str, call_id: str) -> SubAgent | None:
        """The sub-agent to go on with: the one that is named, or that of the call itself, if an
        earlier run of the program started it."""
        if not resume:
            return self.of_call(call_id)
        found = [one for one in self.all if one.session_id.startswith(resume.strip())]
        if len(found) != 1:
            known = ", ".join(one.session_id for one in self.all) or "none yet"
            raise ToolError(
                f"No sub-agent has the session {resume!r}.", hint=f"There are: {known}."
            )
        if found[0].session_id in self._taken or found[0].works:
            raise ToolError("This sub-agent still works.", hint="Wait for its result.")
        return found[0]

    async def _definition(self, name: str) -> AgentDefinition:
        find = self._ctx.find_agents
        found = await asyncio.to_thread(find) if find else AgentDefinitions({})
        if (definition := found.find(name)) is None:
            known = ", ".join(found.all) or "none"
            raise ToolError(f"There is no sub-agent {name!r}.", hint=f"There are: {known}.")
        return definition

    async def _model(self, definition: AgentDefinition, tool: ToolContext) -> ModelInfo:
        """The model that a definition names, that of the conversation where it can't be asked."""
        ctx, name = self._ctx, definition.model
        if not name:
            return ctx.model
        if name == SMALL:
            return ctx.small_model or ctx.model
        found = await asyncio.to_thread(ctx.find_model, name)
        if found is None:
            tool.emit(f"This server has no {one_line(name)}: {ctx.model.id} is asked.\n")
        return found or ctx.model

    async def _session(self, before: SubAgent | None, call_id: str) -> Session:
        clock = self._ctx.clock
        if before is None:
            return Session.create_child(self._ctx.session, call_id, clock=clock)
        if before.path is None:
            kept = self._known.get(before.session_id)
            if kept is None or kept.session is None:
                raise ToolError("The session of this sub-agent was not kept.")
            return kept.session
        file = await asyncio.to_thread(self.file_of, before)
        assert file is not None
        opening = asyncio.ensure_future(asyncio.to_thread(Session.open, file, clock=clock))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(HoldfastError):
                await (await opening).close()
            raise
        except HoldfastError as error:
            if not before.spent.requests and not await asyncio.to_thread(file.exists):
                # It never began.
                return Session.create_child(self._ctx.session, call_id, clock=clock)
            raise ToolError(error.message, hint=error.hint) from error

    async def _agent(
        self, one: SubAgent, definition: AgentDefinition, model: ModelInfo, session: Session
    ) -> Agent:
        """An agent that shares with the parent all but its session, its context and its jobs."""
        ctx = self._ctx

        def sources() -> Sequence[Source]:
            found = ctx.find_files() if ctx.find_files else ()
            role = Source("role", definition.name, definition.prompt)
            less = {"agents", "boot", "own"}
            less |= set() if definition.may_have(Skill.name) else {"skills"}
            return [role, *(source for source in found if source.origin not in less)]

        def composed() -> system_prompt.SystemPrompt:
            return system_prompt.compose(
                ctx.workspace,
                today=ctx.clock.now().astimezone().date(),
                auto_grant=ctx.config.permissions.auto_grant,
                branch=branch_of(ctx.workspace.root),
                sources=sources(),
                caps=ctx.config.bootstrap,
            )

        prompt = await asyncio.to_thread(composed)
        own = {SubAgentTool.name, Recall.name, AskUser.name, PresentPlan.name, SubmitResult.name}
        child = AgentContext(
            session=session,
            provider=self.provider,
            model=model,
            tools={
                name: tool
                for name, tool in ctx.tools.items()
                if name not in own and not name.startswith("mcp__")
            },
            gate=ctx.gate,
            approver=ctx.approver,
            workspace=ctx.workspace,
            system=prompt.blocks(),
            config=ctx.config,
            clock=ctx.clock,
            jobs=Jobs(ctx.clock),
            fallbacks=ctx.fallbacks,
            control=ctx.control,
            max_wait_s=ctx.max_wait_s,
            directives={"effort": level} if (level := self._effort()) else {},
            prompt=prompt,
            server=ctx.server,
            first_party=ctx.first_party,
            key=ctx.key,
            find_files=sources,
            find_hooks=ctx.find_hooks,
            skills=ctx.skills,
            cache=ctx.cache,
            outputs=ctx.outputs.of_session(session.path) if ctx.outputs else None,
            servers=ctx.servers,
            servers_shared=True,
            confinement=ctx.confinement,
            parent=ctx,
            role=f"{one.agent}: {one.description}",
            may_have=definition.may_have,
        )
        session.redact = ctx.session.redact
        if definition.read_only:
            child.mode = "plan"
        return self._make(child)


@dataclass(slots=True)
class _Work:
    """One run of a sub-agent. `first` is how many records its session had before, `before` what it
    was then; `spent` is of this run."""

    ctx: AgentContext
    one: SubAgent
    agent: Agent
    tool: ToolContext
    first: int
    before: SubAgent | None
    spent: Spent = field(default_factory=Spent)
    _answer: str = ""
    _figures: str = ""
    _had_ended: bool = False
    _changed: dict[str, None] = field(default_factory=dict[str, None])
    _noted: int = 0
    """How many of its records were looked at for what it did to files."""

    @property
    def _records(self) -> Sequence[Record]:
        return self.agent.session.records

    async def do(self, prompt: str, *, left_open: bool) -> None:
        """Let it work to the end of its turn. `left_open`: its call is made again, so it goes on
        where an earlier run of the program ended."""
        one, self._noted = self.one, self.first
        one.state, one.started = "running", self.ctx.clock.monotonic()
        for event in await self.agent.start():
            self._take(event)
        if one.stopped:
            one.state = "stopped"
            return
        begun = any(record.type == "user" for record in self._records)
        if left_open and begun and _has_ended(self._records):
            one.state, self._had_ended = "done", True
            return
        again = left_open and begun
        left = [c.call_id for c in unsettled_calls(self._records) if c.outcome == "never_started"]
        sent = ParsedPrompt(prompt, prompt)
        turn = self.agent.go_on(left) if again else self.agent.send(sent)
        async with aclosing(turn):
            async for event in turn:
                self._take(event)
        if self.ctx.pause.wanted and not one.stopped and turn_is_open(self._records):
            raise asyncio.CancelledError  # its call is left, and continues it

    def _take(self, event: Event) -> None:
        """Keep count of what happens, and hand it on."""
        one = self.one
        if isinstance(event, events.ToolFinished):
            self._note_changes()
        if isinstance(event, events.AssistantMessage):
            one.spent += Spent.on(event.usage, self.ctx.price_of(one.model))
        _follow(one, event)
        if line := _line_of(event):
            self.tool.emit(f"{line}\n")
        if not isinstance(event, _QUIET):
            self.ctx.publish(events.SubAgentEvent(one.call_id, one.agent, event))
        one.tell()

    def _note_changes(self) -> None:
        """Record for the parent what was done to files."""
        new, self._noted = self._records[self._noted :], len(self._records)
        for change in _changes(new, _facts(self.one)):
            self.ctx.recorder.append(FILE_CHANGE, **change)
            self._changed[self.ctx.workspace.show(Path(str(change["path"])))] = None

    async def end(self) -> None:
        """Close it, and record how it ended."""
        one, ctx = self.one, self.ctx
        if one.works:
            one.state = "stopped" if one.stopped else "failed"
        one.now, one.asks, one.cancel = "", False, lambda: None
        one.seconds = ctx.clock.monotonic() - one.started if one.started else 0.0
        self._note_changes()
        self._answer = last_words(self._records[0 if self._had_ended else self.first :])
        used = spent_by_model(self._records[self.first :])
        ended = {"state": one.state, "calls": one.calls, "spent": used}
        record = ctx.recorder.append(SUB_AGENT, **_facts(one), **ended)
        self.spent = one.spent = Spent.of_sub_agent(record, ctx.config.prices)
        self._figures = one.figures
        try:
            await self.agent.close()
        except HoldfastError as error:  # what it did is in memory still, and its result is told
            one.problem = f"{error.message} {error.hint}".strip()
        if one.path is not None:
            one.session = None
        await ctx.recorder.show(
            events.SubAgentFinished(
                one.call_id,
                one.session_id,
                one.agent,
                one.state,
                one.calls,
                self.spent.requests,
                self.spent.usage,
                self.spent.usd,
            )
        )
        if self.before is not None:
            one.spent, one.calls = self.before.spent + one.spent, self.before.calls + one.calls
        one.tell()

    def result(self) -> ToolOutput:
        """What the parent's model gets: the last words of a sub-agent, and how it ended."""
        one, answer = self.one, self._answer.strip()
        parts = [f"sub-agent {one.agent}", f"session {one.session_id}", self._figures]
        if changed := list(self._changed):
            more = f" and {len(changed) - _CHANGED} more" if len(changed) > _CHANGED else ""
            parts.append(f"changed {', '.join(changed[:_CHANGED])}{more}")
        foot = f'[{" · ".join(parts)} · resume="{one.session_id}" continues it]'
        failed = one.state != "done" or not answer
        if failed:
            how = {
                "stopped": "The user stopped it.",
                "limit": f"It reached a limit. {one.problem}",
                "done": "It ended without an answer.",
            }.get(one.state, f"It failed. {one.problem}")
            heard = f"Its last words: {answer}" if answer else "It had said nothing yet."
            answer = f"{how.strip()}\n\n{heard}"
        summary = self._figures
        if failed:
            summary = f"{one.state}: {one.problem or self._figures}"
        details = {"session": one.session_id, "path": str(one.path) if one.path else ""}
        text = f"{answer}\n\n{foot}"
        return replace(
            ToolOutput.text(text, is_error=failed, summary=summary),
            details=details | {"agent": one.agent, "state": one.state},
        )


def _follow(one: SubAgent, event: Event) -> None:
    """Keep what a sub-agent is doing."""
    match event:
        case events.RequestSent(model=model):
            one.now = f"waiting for {model}"
        case ThinkingDelta():
            one.now = "thinking"
        case TextDelta():
            one.now = "answering"
        case events.ToolStarted(name=name, label=label):
            one.calls += 1
            one.now = f"{name} {one_line(label)}".strip()
        case events.PermissionAsked(name=name):
            one.asks, one.now = True, f"asks: {name}"
        case events.QuestionAsked():
            one.asks, one.now = True, "asks you"
        case events.PermissionAnswered() | events.QuestionAnswered():
            one.asks = False
        case RetryScheduled():
            one.now = "waiting to retry"
        case events.ErrorRaised(message=message, hint=hint):
            one.problem = " ".join(filter(None, (message, hint)))
        case events.Notice(text):
            one.now = text  # of a limit that was reached there is no more than this
        case events.TurnFinished(outcome):
            one.state = "stopped" if outcome == "interrupted" else outcome
            one.problem = one.now if outcome == "limit" else one.problem
        case _:
            pass


def _line_of(event: Event) -> str:
    """What a sub-agent did, as a line of its card; "" for what has none."""
    match event:
        case events.AssistantMessage(text=text, stop_reason="tool_use"):
            return _short(text)
        case events.ToolStarted(name=name, label=label):
            return f"▸ {name} {one_line(label)}".rstrip()
        case events.ToolFinished(name=name, is_error=True, summary=summary):
            return f"✗ {name}: {one_line(summary)}"
        case RetryScheduled(delay_s=delay, reason=reason):
            return f"Retry in {delay:.0f} s: {one_line(reason)}"
        case _:
            return ""


def _facts(one: SubAgent) -> dict[str, str]:
    """What each record of a sub-agent says."""
    return {
        "call_id": one.call_id,
        "session": one.session_id,
        "path": str(one.path) if one.path else "",
        "agent": one.agent,
        "description": one.description,
        "model": one.model,
    }


def _of_record(record: Record) -> SubAgent:
    data = record.data
    call_id, session, path, agent, description, model, state = (
        string_of(data.get(name))
        for name in ("call_id", "session", "path", "agent", "description", "model", "state")
    )
    # One without an end was killed with the program.
    known = cast("State", state if state in _ENDED else "interrupted")
    where, calls = Path(path) if path else None, data.get("calls")
    count = calls if isinstance(calls, int) else 0
    about = one_line(description)
    return SubAgent(call_id, session, where, one_line(agent), about, model, known, count)


def _unfinished(records: Iterable[Record]) -> list[Record]:
    """The records of sub-agents that started and did not end."""
    found: dict[str, Record] = {}
    for record in records:
        session = string_of(record.data.get("session"))
        if record.data.get("state") == "started":
            found[session] = record
        else:
            found.pop(session, None)
    return list(found.values())


def _changes(records: Iterable[Record], facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What the records of a sub-agent did to files, as its parent records it."""
    for record in records:
        for details in details_of(record):
            if "after_sha256" in details:
                yield {
                    "call_id": facts.get("call_id"),
                    "session": facts.get("session"),
                    "session_call": record.data.get("call_id"),
                    **{name: details.get(name) for name in _CHANGE_FIELDS},
                }


def _has_ended(records: Sequence[Record]) -> bool:
    """Whether its turn came to an end of its own."""
    last = last_of_turn(records)
    return last is not None and last.type == "assistant" and not tool_calls(content_of(last))


def last_words(records: Iterable[Record]) -> str:
    """The text of the last answer that has one."""
    said = (text_of(content_of(one)) for one in reversed(list(records)) if one.type == "assistant")
    return next((text for text in said if text.strip()), "")


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _TEXT_CHARS else f"{line[: _TEXT_CHARS - 1]}…"

"""One run of a sub-agent, from its prompt to its result for the parent's model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from msgspec import structs

from tui.agent.agent_context import AgentContext
from tui.agent.interrupted_work import InterruptedWork, turn_is_open
from tui.agent.limits import Spent, spent_by_model
from tui.agent.prompts import ParsedPrompt
from tui.agent.sub_agent_list import SubAgent, changes_in, last_words
from tui.context import untrusted
from tui.context.overrides import content_of
from tui.core import facts
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError
from tui.core.facts import Alive, Fact, RetryScheduled, TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.formatting import shortened
from tui.core.messages import ToolOutput, string_of, tool_calls
from tui.core.server_results import is_result, result_of
from tui.core.text_cleaning import one_line
from tui.session.records import Record, last_of_turn
from tui.tools.registry import title, verb

if TYPE_CHECKING:
    from tui.agent.sub_agent_worktree import SubAgentWorktree
    from tui.session.session import Session
    from tui.tools.base import ToolContext

_TEXT_CHARS = 200
"""Characters of what a sub-agent says between its calls, in a line of its card."""
_CHANGED = 20
"""Number of changed files that its result names."""
_MCP = "mcp__", "read_mcp_resource"
"""The beginnings of the names of tools whose results MCP servers give."""
_QUIET = (
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    Alive,
    facts.SessionStarted,
    facts.ContextMeasured,
    facts.ContextFiles,
    facts.DirectivesChanged,
    facts.ToolOutputChunk,
    facts.TurnFinished,
)
"""Events that whoever follows the parent is spared."""


class RunnableAgent(Protocol):
    """An agent as far as a run needs it; see `Agent`, which starts sub-agents and so can't be named
    here."""

    session: Session

    async def start(self) -> list[Fact]: ...
    def send(self, prompt: ParsedPrompt) -> AsyncGenerator[Fact]: ...
    def go_on(self, again: Collection[str] = ()) -> AsyncGenerator[Fact]: ...
    def interrupted_work(self) -> InterruptedWork: ...
    def cancel(self) -> None: ...
    async def close(self) -> None: ...


MakeAgent: TypeAlias = Callable[[AgentContext], RunnableAgent]


@dataclass(slots=True)
class SubAgentRun:
    """One run of a sub-agent. `first` is how many records its session had before, `before` what it
    was then; `spent` is of this run."""

    ctx: AgentContext
    one: SubAgent
    agent: RunnableAgent
    tool: ToolContext
    first: int
    before: SubAgent | None
    own: SubAgentWorktree | None = None
    spent: Spent = field(default_factory=Spent)
    _answer: str = ""
    _figures: str = ""
    _had_ended: bool = False
    _changed: dict[str, None] = field(default_factory=dict[str, None])
    _noted: int = 0
    """Number of its records that were looked at for changes to files."""

    @property
    def _records(self) -> Sequence[Record]:
        return self.agent.session.records

    async def do(self, prompt: str, *, left_open: bool) -> None:
        """Let it work to the end of its turn. `left_open`: its call is made again, so it continues
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
        work = await asyncio.to_thread(self.agent.interrupted_work)
        left = [call.call_id for call in work.calls]
        sent = ParsedPrompt(prompt, prompt)
        turn = self.agent.go_on(left) if again else self.agent.send(sent)
        async with aclosing(turn):
            async for event in turn:
                self._take(event)
        if self.ctx.state.pause.wanted and not one.stopped and turn_is_open(self._records):
            raise asyncio.CancelledError  # its call is left, and continues it

    def _take(self, event: Fact) -> None:
        """Keep count of what happens, and hand it on."""
        one = self.one
        if isinstance(event, facts.ToolFinished):
            self._note_changes()
        if isinstance(event, facts.AssistantMessage):
            one.spent += Spent.on(event.usage, self.ctx.price_of(event.model or one.model))
        _follow(one, event)
        if line := _line_of(event):
            self.tool.host.emit(f"{line}\n")
        if not isinstance(event, _QUIET):
            self.ctx.publish(facts.SubAgentEvent(one.call_id, one.agent, event))
        one.tell()

    def _note_changes(self) -> None:
        """Record for the parent what was done to files."""
        new, self._noted = self._records[self._noted :], len(self._records)
        for change in changes_in(new, self.one.call_id, self.one.session_id):
            self.ctx.record(change)
            self._changed[self.ctx.workspace.show(Path(str(change.path)))] = None

    async def end(self) -> None:
        """Close it, and record how it ended."""
        one, ctx = self.one, self.ctx
        if one.works:
            one.state = "stopped" if one.stopped else "failed"
        one.now, one.asks, one.work = "", False, None
        one.seconds = ctx.clock.monotonic() - one.started if one.started else 0.0
        self._note_changes()
        self._answer = last_words(self._records[0 if self._had_ended else self.first :])
        ended = facts.SubAgentFinished(
            one.call_id,
            one.session_id,
            one.agent,
            one.state,
            one.calls,
            0,
            path=str(one.path) if one.path else "",
            description=one.description,
            model=one.model,
            spent=spent_by_model(self._records[self.first :]),
        )
        record = ctx.recorder.write(ended)
        self.spent = one.spent = Spent.of_sub_agent(record, ctx.config.prices)
        self._figures = one.figures
        try:
            await self.agent.close()
        except HoldfastError as error:  # its work is in memory still, and its result is returned
            one.problem = f"{error.message} {error.hint}".strip()
        if self.own is not None:
            await self.own.leave()
        if one.path is not None:
            one.session = None
        spent = self.spent
        await ctx.recorder.show(
            structs.replace(ended, requests=spent.requests, usage=spent.usage, cost_usd=spent.usd)
        )
        if self.before is not None:
            one.spent, one.calls = self.before.spent + one.spent, self.before.calls + one.calls
        one.tell()

    def _marked(self, answer: str) -> str:
        """Return its answer, marked as untrusted where texts that somebody else wrote are in its
        session."""
        if not answer or not (sources := _untrusted_sources(self._records)):
            return answer
        return untrusted.wrap(answer, f"sub-agent {self.one.agent}, read {', '.join(sources)}")

    def result(self) -> ToolOutput:
        """Make the result for the parent's model: the last words of a sub-agent, and how it
        ended."""
        one, answer = self.one, self._answer.strip()
        parts = [f"sub-agent {one.agent}", f"session {one.session_id}", self._figures]
        if changed := list(self._changed):
            more = f" and {len(changed) - _CHANGED} more" if len(changed) > _CHANGED else ""
            parts.append(f"changed {', '.join(changed[:_CHANGED])}{more}")
        foot = f'[{" · ".join(parts)} · resume="{one.session_id}" continues it]'
        failed = one.state != "done" or not answer
        heard = self._marked(answer)
        # the parent must not take the words of a failed run for a result
        if failed:
            how = {
                "stopped": "The user stopped it.",
                "limit": f"It reached a limit. {one.problem}",
                "done": "It ended without an answer.",
            }.get(one.state, f"It failed. {one.problem}")
            heard = f"Its last words: {heard}" if answer else "It had said nothing yet."
            heard = f"{how.strip()}\n\n{heard}"
        stays = self.own.stays if self.own else ""
        summary = " · ".join(filter(None, (self._figures, stays)))
        if failed:
            summary = f"{one.state}: {one.problem or self._figures}"
        details = {"session": one.session_id, "path": str(one.path) if one.path else ""}
        text = "\n\n".join(filter(None, (heard, self.own.outcome if self.own else "", foot)))
        return replace(
            ToolOutput.text(text, is_error=failed, summary=summary),
            details=details | {"agent": one.agent, "state": one.state},
        )


def _untrusted_sources(records: Iterable[Record]) -> list[str]:
    """Name the sources of texts in a session that somebody else wrote, each once."""
    sources: dict[str, None] = {}
    for record in records:
        content, name = content_of(record), string_of(record.data.get("name"))
        if record.type == "tool_result":
            marked = (untrusted.source_of(string_of(block.get("text"))) for block in content)
            sources |= dict.fromkeys(filter(None, marked))
            if name.startswith(_MCP):
                sources[name] = None
        elif record.type == "assistant":
            sources |= {result_of(block).name: None for block in content if is_result(block)}
    return list(sources)


def _follow(one: SubAgent, event: Fact) -> None:
    """Keep what a sub-agent is doing."""
    match event:
        case facts.RequestSent(model=model):
            one.now = f"waiting for {model}"
        case ThinkingDelta():
            one.now = "thinking"
        case TextDelta():
            one.now = "answering"
        case facts.ToolStarted(name=name, label=label):
            one.calls += 1
            one.now = one_line(title(name, label))
        case facts.PermissionAsked(name=name):
            one.asks, one.now = True, f"asks: {verb(name)}"
        case facts.QuestionAsked():
            one.asks, one.now = True, "asks you"
        case facts.PermissionAnswered() | facts.QuestionAnswered():
            one.asks = False
        case RetryScheduled():
            one.now = "waiting to retry"
        case facts.ErrorRaised(message=message, hint=hint):
            one.problem = " ".join(filter(None, (message, hint)))
        case facts.Notice(text):
            one.now = text  # of a limit that was reached there is no more than this
        case facts.TurnFinished(outcome):
            one.state = "stopped" if outcome == "interrupted" else outcome
            one.problem = one.now if outcome == "limit" else one.problem
        case _:
            pass


def _line_of(event: Fact) -> str:
    """Describe an event of a sub-agent in a line of its card; "" for one that has none."""
    match event:
        case facts.AssistantMessage(text=text, stop_reason="tool_use"):
            return shortened(one_line(text), _TEXT_CHARS)
        case facts.ToolStarted(name=name, label=label):
            return f"▸ {one_line(title(name, label))}"
        case facts.ToolFinished(name=name, is_error=True, summary=summary):
            return f"✗ {verb(name)}: {one_line(summary)}"
        case RetryScheduled(delay_s=delay, reason=reason):
            return f"Retry in {delay:.0f} s: {one_line(reason)}"
        case _:
            return ""


def _has_ended(records: Sequence[Record]) -> bool:
    """True if its turn came to an end of its own."""
    last = last_of_turn(records)
    return last is not None and last.type == "assistant" and not tool_calls(content_of(last))

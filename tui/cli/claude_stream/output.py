"""Facts as the lines of Claude Code's stream.

Kinds, fields and their order are those of 2.1.332, recorded in `tests/cli/claude_stream`; its
README names what differs. Words for the person go to standard error, as with `-p`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import uuid4

from msgspec import structs

from tui.app.outcome import NO_RESULT
from tui.cli.claude_stream import tool_names
from tui.cli.claude_stream.hooks import KnownCalls
from tui.cli.claude_stream.link import DriverLink, Line
from tui.cli.claude_stream.partial import PartialAnswer
from tui.cli.event_output import json_line, to_stderr
from tui.core import facts
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.fact_words import fact_lines
from tui.core.facts import Told, WireFact
from tui.core.messages import Usage, is_object, object_of, text_block, text_of
from tui.provider.prices import ModelPrice
from tui.tools.submit_result import SubmitResult

VERSION: Final = "2.1.332"
"""The version of Claude Code whose stream this is."""
ERRORS: Final[Mapping[str, str]] = {
    "auth": "authentication_failed",
    "rate_limit": "rate_limit",
    "overloaded": "server_error",
    "server": "server_error",
    "invalid_request": "invalid_request",
    "billing": "billing_error",
    "not_found": "model_not_found",
}
"""Its words for the classes of errors."""
_STATUS_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
INTERRUPTED: Final = "[Request interrupted by user]"
INTERRUPTED_TOOL: Final = "[Request interrupted by user for tool use]"
_STATES: Final[Mapping[str, str]] = {
    "done": "completed",
    "failed": "failed",
    "limit": "failed",
    "stopped": "stopped",
    "interrupted": "stopped",
}
"""Its words for the end of a sub-agent."""


@dataclass(slots=True)
class TurnFigures:
    """One turn, as its result tells it."""

    begun: float = 0.0
    asked: float = 0.0
    """When the last request was sent; 0 between requests."""
    api_s: float = 0.0
    users: int = 0
    """Lines of the user's part: results, and interruptions."""
    answer: str = ""
    stop_reason: str | None = None
    messages: int = 0
    """Number of answers that began."""
    denials: list[Line] = field(default_factory=list[Line])
    error: facts.ErrorRaised | None = None
    note: str = ""
    in_tools: bool = False


class Described(Protocol):
    """The session, as its lines tell it."""

    def describe(self) -> Line:
        """Return the line that begins a turn."""
        ...

    def cost(self) -> float | None:
        """Return what the session has cost, in US dollars; None where no price is known."""
        ...

    def price_of(self, model: str) -> ModelPrice | None:
        """Return the price of a model; None where it is not known."""
        ...

    def over_budget(self) -> str:
        """Return a sentence if the run has cost more than it may, "" if not."""
        ...


@dataclass(slots=True)
class StreamWriter:
    """Writes what happens. `result` takes what a schema asks for; `states` says to tell the SDK of
    running and waiting, `states_own` the driver. `session` is set once one is open."""

    link: DriverLink
    clock: Clock
    known: KnownCalls
    partial: bool = False
    states: bool = False
    states_own: bool = False
    result: SubmitResult | None = None
    session: Described | None = None
    session_id: str = ""
    model: str = ""
    turn: TurnFigures | None = None
    interrupts: bool = False
    """A call was answered with an interrupt."""
    reminds: bool = False
    """The turn ended without the result that was asked for, and the model is reminded of it."""
    _results: int = 0
    _parts: PartialAnswer = field(default_factory=PartialAnswer)
    _agents: dict[str, facts.SubAgentStarted] = field(
        default_factory=dict[str, facts.SubAgentStarted]
    )
    _calls: dict[str, int] = field(default_factory=dict[str, int])
    """Calls of each sub-agent, by the call that started it."""
    _usage: dict[str, Usage] = field(default_factory=dict[str, Usage])

    def system(self, subtype: str, **fields: Any) -> None:
        """Write a line of the program's."""
        head = {"type": "system", "subtype": subtype, **fields}
        self.link.write({**head, "session_id": self.session_id, "uuid": str(uuid4())})

    def state(self, state: str) -> None:
        """Say that the session runs, waits for the driver, or is idle, where that is wanted."""
        if self.states or self.states_own:
            hidden = {} if self.states_own else {"sdk_host_only": True}
            self.system("session_state_changed", state=state, **hidden)

    def begin(self) -> None:
        """A prompt is about to be sent."""
        self.turn = TurnFigures(begun=self.clock.monotonic())
        self.state("running")

    def see(self, fact: Told) -> None:
        """Write a fact, and what the person should know."""
        for line in fact_lines(fact):
            to_stderr(sys.stderr, line)
        match fact:
            case facts.SessionStarted():
                self.session_id, self.model = fact.session_id, fact.model
            case facts.UserMessage() if self.turn is not None and not self.turn.messages:
                described = self.session.describe() if self.session else {}
                self.link.write({**described, "uuid": str(uuid4())})
            case facts.SubAgentEvent():
                self._of_agent(fact)
            case facts.SubAgentStarted():
                self._agent_started(fact)
            case facts.SubAgentFinished():
                self._agent_finished(fact)
            case facts.CompactionStarted():
                self.system("status", status="compacting")
            case facts.CompactionFinished():
                self._compacted(fact)
            case facts.TurnFinished():
                self._finish(fact)
            case _:
                self._of_answer(fact)

    # The answer

    def _of_answer(self, fact: WireFact) -> None:
        turn = self.turn or TurnFigures()
        match fact:
            case facts.RequestSent():
                self.model = fact.model
                turn.asked, turn.messages = self.clock.monotonic(), turn.messages + 1
                self._parts = PartialAnswer(fact.model, self.known.root)
                if self.partial:
                    self.system("status", status="requesting")
            case facts.ThinkingDelta() | facts.TextDelta() | facts.ToolInputDelta():
                self._stream(self._parts.delta(fact))
            case facts.RetryScheduled():
                self._retry(fact)
            case facts.ErrorRaised():
                turn.error = fact
            case facts.Notice():
                turn.note = fact.text
            case facts.AssistantMessage():
                turn.api_s += self.clock.monotonic() - turn.asked if turn.asked else 0.0
                turn.asked, turn.in_tools = 0.0, True
                turn.answer, turn.stop_reason = fact.text or turn.answer, fact.stop_reason
                self._count(fact.model or self.model, fact.usage)
                self._stream(self._parts.blocks_end(fact))
                self._answer(fact, None)
                self._stream(self._parts.message_end(fact))
            case _:
                self._of_call(fact, None)

    def _stream(self, events: Sequence[Line]) -> None:
        if not self.partial:
            return
        for event in events:
            line = {"type": "stream_event", "event": event, "session_id": self.session_id}
            more = {"uuid": str(uuid4()), "api_message_id": self._parts.id}
            self.link.write({**line, "parent_tool_use_id": None, **more})

    def _answer(self, fact: facts.AssistantMessage, agent: facts.SubAgentStarted | None) -> None:
        """Write an answer: a line for each of its blocks."""
        id_ = fact.message_id or self._parts.id
        for block in fact.content:
            shown = dict(block)
            if block.get("type") == "tool_use" and is_object(given := block.get("input")):
                tool = str(block.get("name"))
                shown["name"], shown["input"] = tool_names.shown(tool, given, self.known.root)
            message = {
                "id": id_,
                "type": "message",
                "role": "assistant",
                "model": fact.model or self.model,
                "content": [shown],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": fact.usage.to_json(),
                "context_management": None,
            }
            self._message("assistant", message, agent)

    def _message(
        self, kind: str, message: Line, agent: facts.SubAgentStarted | None, **more: Any
    ) -> None:
        parent = {"parent_tool_use_id": agent.id if agent else None}
        ids = {"agent_id": agent.session_id} if agent else {}
        ids |= {"session_id": self.session_id, "uuid": str(uuid4()), "timestamp": self._now()}
        about = (
            {"subagent_type": agent.agent, "task_description": agent.description} if agent else {}
        )
        self.link.write({"type": kind, "message": message, **parent, **ids, **more, **about})

    def _now(self) -> str:
        return f"{self.clock.now():%Y-%m-%dT%H:%M:%S}.{self.clock.now().microsecond // 1000:03}Z"

    # Calls

    def _of_call(self, fact: WireFact, agent: facts.SubAgentStarted | None) -> None:
        match fact:
            case facts.ToolStarted():
                self.known.calls[fact.id] = fact.name, fact.input
            case facts.PermissionAnswered(answer="deny" | "no"):
                self._denied(fact)
            case facts.ToolFinished():
                self._result(fact, agent)
            case _:
                pass

    def _denied(self, fact: facts.PermissionAnswered) -> None:
        tool, given = self.known.calls.get(fact.id, (fact.name, {}))
        name, shown = tool_names.shown(tool, given, self.known.root)
        if self.turn is not None:
            denial = {"tool_name": name, "tool_use_id": fact.id, "tool_input": shown}
            self.turn.denials.append(denial)
        if fact.by not in {"person", "hook"}:
            self.system(
                "permission_denied", tool_name=name, tool_use_id=fact.id, message=fact.reason
            )

    def _result(self, fact: facts.ToolFinished, agent: facts.SubAgentStarted | None) -> None:
        tool, _ = self.known.calls.get(fact.id, (fact.name, {}))
        plain = all(block.get("type") == "text" for block in fact.content)
        content: object = text_of(fact.content) if plain else list(fact.content)
        if fact.is_error:
            block: Line = {"type": "tool_result", "content": content, "is_error": True}
            block |= {"tool_use_id": fact.id}
            about: object = f"Error: {text_of(fact.content)}"
        else:
            block = {"tool_use_id": fact.id, "type": "tool_result", "content": content}
            block |= {"is_error": False} if tool == "run_command" else {}
            about = _details(tool, fact)
        more = {"tool_use_result": about} if agent is None else {}
        if self.turn is not None and agent is None:
            self.turn.users += 1
        self._message("user", {"role": "user", "content": [block]}, agent, **more)

    # Sub-agents

    def _of_agent(self, fact: facts.SubAgentEvent) -> None:
        agent = self._agents.get(fact.id)
        match fact.event:
            case facts.AssistantMessage() as answer if agent is not None:
                self._count(answer.model or self.model, answer.usage)
                calls = [one for one in answer.content if one.get("type") == "tool_use"]
                self._progress(agent, answer.usage, calls)
                self._answer(_with_content(answer, calls), agent)
            case facts.ErrorRaised() | facts.TurnFinished():
                pass
            case other:
                self._of_call(other, agent)

    def _agent_started(self, fact: facts.SubAgentStarted) -> None:
        self._agents[fact.id] = fact
        _, given = self.known.calls.get(fact.id, ("", {}))
        prompt = str(given.get("prompt") or "")
        self.system(
            "task_started",
            task_id=fact.session_id,
            tool_use_id=fact.id,
            description=fact.description,
            subagent_type=fact.agent,
            is_backgrounded=False,
            spawn_depth=1,
            task_type="local_agent",
            prompt=prompt,
        )
        message = {"role": "user", "content": [text_block(prompt)]}
        self._message("user", message, fact)

    def _progress(
        self, agent: facts.SubAgentStarted, usage: Usage, calls: Sequence[Mapping[str, Any]]
    ) -> None:
        """Tell what a sub-agent is about to do."""
        for one in calls:
            tool, given = str(one.get("name")), object_of(one.get("input"))
            name = tool_names.name_of(tool, given)
            done = self._calls[agent.id] = self._calls.get(agent.id, 0) + 1
            self.system(
                "task_progress",
                task_id=agent.session_id,
                tool_use_id=agent.id,
                description=f"{name}: {agent.description}",
                subagent_type=agent.agent,
                usage={"total_tokens": usage.total, "tool_uses": done, "duration_ms": 0},
                last_tool_name=name,
            )

    def _agent_finished(self, fact: facts.SubAgentFinished) -> None:
        state = _STATES.get(fact.outcome, "failed")
        self.system("task_updated", task_id=fact.session_id, patch={"status": state})
        usage = {"total_tokens": fact.usage.total, "tool_uses": fact.calls, "duration_ms": 0}
        self.system(
            "task_notification",
            task_id=fact.session_id,
            tool_use_id=fact.id,
            status=state,
            output_file=fact.path,
            summary=fact.description,
            usage=usage,
        )

    # The end

    def _retry(self, fact: facts.RetryScheduled) -> None:
        words = {**ERRORS, "overloaded": "overloaded"}
        self.system(
            "api_retry",
            attempt=fact.attempt,
            max_retries=fact.max_attempts,
            retry_delay_ms=round(fact.delay_s * 1000),
            error_status=fact.status,
            error=words.get(fact.error_class, "unknown"),
        )

    def _compacted(self, fact: facts.CompactionFinished) -> None:
        worked = {"compact_error": fact.problem} if fact.problem else {}
        self.system(
            "status",
            status=None,
            compact_result="failed" if fact.problem else "success",
            **worked,
        )
        if fact.problem:
            return
        trigger = "manual" if fact.reason == "manual" else "auto"
        sizes = {"pre_tokens": fact.tokens_before, "post_tokens": fact.tokens_after}
        self.system("compact_boundary", compact_metadata={"trigger": trigger, **sizes})

    def _count(self, model: str, usage: Usage) -> None:
        self._usage[model] = self._usage.get(model, Usage()) + usage

    def _failure(self, error: facts.ErrorRaised) -> None:
        """Write an error in the place of an answer, as its own program does."""
        message = {
            "id": str(uuid4()),
            "model": "<synthetic>",
            "role": "assistant",
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "type": "message",
            "usage": Usage().to_json(),
            "content": [text_block(_error_text(error))],
            "context_management": None,
        }
        more = {
            "error": ERRORS.get(error.error_class, "unknown"),
            "is_api_error_message": True,
            "api_error_status": error.status,
            "api_error_type": _STATUS_TYPES.get(error.status or 0),
        }
        self._message("assistant", message, None, **more)

    def command_done(self, command: str, text: str) -> None:
        """Write the result of a command of the program's, which asked no model."""
        turn, self.turn = self.turn or TurnFigures(), None
        done = {"is_error": False, "subtype": "success", "result": text, "local_command": command}
        self._write_result(turn, done, Usage(), turns=0)

    def refused(self, why: str) -> None:
        """Write the result of a prompt that could not be sent."""
        turn, self.turn = self.turn or TurnFigures(), None
        ended = {"is_error": True, "subtype": "error_during_execution", "errors": [why]}
        self._write_result(turn, ended, Usage(), turns=0)

    def _finish(self, fact: facts.TurnFinished) -> None:
        missing = self.result is not None and not self.result.given
        if missing and fact.outcome == "done" and not self.reminds:
            self.reminds = True
            return
        turn, self.turn = self.turn or TurnFigures(), None
        self.reminds, outcome = False, fact.outcome
        if outcome == "interrupted":
            unfinished = [] if turn.in_tools else self._broken_off()
            text = INTERRUPTED_TOOL if self.interrupts else INTERRUPTED
            message = {"role": "user", "content": [text_block(text)]}
            self._message("user", message, None)
            self._stream(unfinished)
            turn.users += 1
        elif outcome == "failed" and turn.error is not None:
            self._failure(turn.error)
        ended = self._ending(turn, outcome)
        self.interrupts = False
        self._write_result(turn, ended, fact.usage, turns=1 + turn.users)

    def _broken_off(self) -> list[Line]:
        """Write what came of an answer that was interrupted. Returns the events that end it."""
        if text := self._parts.text:
            message = {
                "id": self._parts.id,
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": [text_block(text)],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": Usage().to_json(),
                "context_management": None,
            }
            self._message("assistant", message, None, aborted=True)
        return self._parts.broken_off()

    def _write_result(self, turn: TurnFigures, ended: Line, usage: Usage, *, turns: int) -> None:
        cost = self.session.cost() if self.session else None
        elapsed = round((self.clock.monotonic() - turn.begun) * 1000) if turn.begun else 0
        models = {
            name: {
                "inputTokens": spent.input_tokens,
                "outputTokens": spent.output_tokens,
                "cacheReadInputTokens": spent.cache_read_input_tokens,
                "cacheCreationInputTokens": spent.cache_creation_input_tokens,
                "webSearchRequests": 0,
                "costUSD": self._cost_of(name, spent),
            }
            for name, spent in self._usage.items()
        }
        line: Line = {
            "duration_api_ms": round(turn.api_s * 1000),
            "stop_reason": turn.stop_reason,
            "session_id": self.session_id,
            "total_cost_usd": cost,
            "usage": usage.to_json(),
            "modelUsage": models,
            "permission_denials": turn.denials,
            **ended,
            "type": "result",
            "duration_ms": elapsed,
            "num_turns": turns,
            "uuid": str(uuid4()),
            "queued_turn_count": 0,
            "result_index": self._results,
        }
        self._results += 1
        self.link.write(line)

    def _cost_of(self, model: str, usage: Usage) -> float | None:
        price = self.session.price_of(model) if self.session else None
        return price.cost(usage) if price else None

    def _ending(self, turn: TurnFigures, outcome: str) -> Line:
        """Return the fields of a result that say how the turn ended."""
        over = self.session.over_budget() if self.session else ""
        if outcome == "done" and over:
            # Our own formats call such a turn done: its answer is whole.
            return _over("budget_exhausted", "error_max_budget_usd", over)
        if outcome == "done":
            ended: Line = {"terminal_reason": "completed", "is_error": False}
            ended |= {"subtype": "success", "api_error_status": None, "result": turn.answer}
            if self.result is not None and not self.result.given:
                failed = "error_max_structured_output_retries"
                return {"is_error": True, "subtype": failed, "errors": [NO_RESULT]}
            if self.result is not None:
                value = self.result.value
                ended |= {"result": json_line(value), "structured_output": value}
            return ended
        if outcome == "failed" and turn.error is not None:
            status = turn.error.status
            ended = {"terminal_reason": "api_error", "is_error": True, "subtype": "success"}
            ended |= {"api_error_status": status, "api_error_type": _STATUS_TYPES.get(status or 0)}
            return ended | {"result": _error_text(turn.error)}
        if outcome == "limit":
            money = "$" in turn.note
            reason = "budget_exhausted" if money else "max_turns"
            subtype = "error_max_budget_usd" if money else "error_max_turns"
            return _over(reason, subtype, turn.note or "A limit was reached.")
        reason = "aborted_tools" if turn.in_tools else "aborted_streaming"
        reason = reason if outcome == "interrupted" else "error"
        errors = ["The turn was interrupted." if outcome == "interrupted" else "The turn failed."]
        subtype = "error_during_execution"
        return {"terminal_reason": reason, "is_error": True, "subtype": subtype, "errors": errors}


def _over(reason: str, subtype: str, why: str) -> Line:
    return {"terminal_reason": reason, "is_error": True, "subtype": subtype, "errors": [why]}


def _error_text(error: facts.ErrorRaised) -> str:
    status = f" {error.status}" if error.status else ""
    return f"API Error:{status} {error.message}"


def _details(tool: str, fact: facts.ToolFinished) -> object:
    """Return what its own program tells readers of a result beside what the model gets."""
    text = text_of(fact.content)
    if tool == "run_command":
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    return text


def _with_content(
    answer: facts.AssistantMessage, content: Sequence[dict[str, Any]]
) -> facts.AssistantMessage:
    return structs.replace(answer, content=list(content))


def init_line(
    *,
    session_id: str,
    cwd: Path,
    model: str,
    mode: str,
    tools: Sequence[str],
    servers: Sequence[Line],
    commands: Sequence[str],
    agents: Sequence[str],
    skills: Sequence[str],
    version: str,
) -> Line:
    """Return the line that begins a turn."""
    return {
        "type": "system",
        "subtype": "init",
        "cwd": str(cwd),
        "session_id": session_id,
        "tools": list(tools),
        "mcp_servers": list(servers),
        "model": model,
        "permissionMode": mode,
        "slash_commands": list(commands),
        "apiKeySource": "none",
        "claude_code_version": VERSION,
        "output_style": "default",
        "agents": list(agents),
        "skills": list(skills),
        "plugins": [],
        "holdfast_version": version,
    }

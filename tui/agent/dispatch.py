"""From a tool call to its one result: parse, decide, ask, record the intent, run, guard, record.

Every call of an answer leaves exactly one result in the record, whatever happens: a failure is a
result with is_error, a refusal too, and an interrupt closes what is still open. What a tool did
is recorded as done, even when the interrupt comes between its end and its record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from tui import tokens
from tui.agent.events import (
    Debug,
    Event,
    PermissionAnswered,
    PermissionAsked,
    TodosChanged,
    ToolFinished,
    ToolOutputChunk,
    ToolStarted,
)
from tui.agent.recorder import Recorder, to_the_end
from tui.clock import Clock
from tui.context.repair import INTERRUPTED
from tui.errors import ToolError
from tui.guards.clamp import Room, clamp_text
from tui.guards.pipeline import GuardLimits, guard, left_behind
from tui.guards.receipt import Keep, Receipt
from tui.kept import Kept
from tui.messages import Block, ToolOutput, text_block, text_of
from tui.permissions.base import Answer, Approver, Call, Decision, Mode
from tui.permissions.gate import Gate
from tui.private import safe_name
from tui.session.records import encode
from tui.tools.base import OutputLimits, Params, Todo, Tool, ToolContext
from tui.tools.files import FileLedger
from tui.tools.jobs import Jobs
from tui.workspace import Workspace

log = logging.getLogger(__name__)

SHOWN_CHARS = 8000
"""O19: text in events, per block."""

ERROR_CHARS = 400
"""O19: the preview of an error."""

PARTIAL_CHARS = 2000
"""How much of an interrupted call's output its record keeps."""


@dataclass(slots=True)
class Settings:
    """What may change between two calls: read before every execution (K45)."""

    workspace: Workspace
    mode: Mode = "ask"
    elevated: bool = False
    verbose: bool = False


@dataclass(slots=True)
class Dispatcher:
    """Carries out tool calls. Owned by one agent."""

    tools: Mapping[str, Tool[Any]]
    gate: Gate
    approver: Approver
    recorder: Recorder
    settings: Settings
    clock: Clock
    files: FileLedger
    jobs: Jobs
    limits: Callable[[], GuardLimits]
    publish: Callable[[Event], None]
    kept: Kept | None = None
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def run_all(self, calls: Sequence[Block]) -> None:
        """Run the calls of one answer: reads side by side, everything else alone and in order."""
        open_calls = {str(call["id"]): _Open(call) for call in calls}
        try:
            for group in self._groups(calls):
                async with asyncio.TaskGroup() as side_by_side:
                    for call in group:
                        side_by_side.create_task(self._run(open_calls, str(call["id"])))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        finally:
            await self._close(open_calls.values())

    async def close(self, calls: Iterable[Block]) -> None:
        """Give calls that will not be run their result."""
        await self._close(map(_Open, calls))

    def _groups(self, calls: Iterable[Block]) -> Iterator[list[Block]]:
        together: list[Block] = []
        for call in calls:
            tool = self.tools.get(str(call["name"]))
            if tool is not None and tool.effect in {"write", "run"}:
                if together:
                    yield together
                    together = []
                yield [call]
            else:
                together.append(call)
        if together:
            yield together

    async def _run(self, open_calls: dict[str, _Open], id_: str) -> None:
        """One call, from start to recorded result; then it is not open any more."""
        state = open_calls[id_]
        state.started = self.clock.monotonic()
        keep = "head"
        try:
            tool, params = self._parse(state.call)
            keep = tool.keep
            output = await self._permitted(state, tool, params)
        except ToolError as error:
            output = ToolOutput.text(str(error), is_error=True, summary=error.message)
        except Exception as error:
            log.exception("tool %s failed", state.name)
            said = f"{type(error).__name__}: {error}"
            output = ToolOutput.text(f"{state.name} failed: {said}", is_error=True, summary=said)
        await to_the_end(self._finish(open_calls, state, output, keep))

    def _parse(self, call: Block) -> tuple[Tool[Any], Params]:
        """The tool and its checked arguments; publishes ToolStarted either way."""
        name = str(call.get("name"))
        arguments: object = call.get("input")
        shown = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
        started = ToolStarted(str(call["id"]), name, shown)
        try:
            tool = self._tool(name)
            params = tool.parse(call.get("input"))
        except ToolError:
            self.publish(started)
            raise
        self.publish(ToolStarted(started.id, name, shown, tool.label(params)))
        return tool, params

    def _tool(self, name: str) -> Tool[Any]:
        if name in self.tools:
            return self.tools[name]
        known = ", ".join(self.tools)
        raise ToolError(f"There is no tool named {name!r}.", hint=f"The tools are: {known}.")

    async def _permitted(self, state: _Open, tool: Tool[Any], params: Params) -> ToolOutput:
        """Decide, ask if needed, record the intent, run."""
        ctx = self._context(state)
        call = Call(
            id=state.id,
            tool=tool.name,
            effect=tool.effect,
            subject=tool.subject(params),
            command=getattr(params, "command", None) if tool.effect == "run" else None,
            paths=tool.paths(params),
        )
        decision = self._decide(call)
        if decision.answer == "ask":
            preview = await tool.preview(params, ctx)
            call = replace(
                call,
                preview_kind=preview.kind,
                preview=preview.text,
                scope=self.gate.scope_of(call),
            )
            answer = await self._ask(call, decision)
            state.started = self.clock.monotonic()  # a person's thinking is not the tool's time
            self._record_permission(call, answer.answer, answer.by, answer.reason)
            if answer.answer == "no":
                return _refused(answer.reason, by_person=answer.by == "person")
        elif decision.answer == "deny":
            self._record_permission(call, "deny", decision.by, decision.reason)
            return _refused(decision.reason, by_person=False)
        elif tool.effect in {"write", "run"}:
            self._record_permission(call, "allow", decision.by, decision.reason)
        else:
            self._debug_decision(tool.name, "allow", decision.by, decision.reason)
        arguments = sha256(encode({"input": state.call.get("input")})).hexdigest()
        self.recorder.append(
            "intent", call_id=state.id, tool=tool.name, effect=tool.effect, args_sha256=arguments
        )
        await self.recorder.sync()
        return await tool.run(params, ctx)

    def _decide(self, call: Call) -> Decision:
        now = self.settings
        return self.gate.decide(call, mode=now.mode, elevated=now.elevated, workspace=now.workspace)

    async def _ask(self, call: Call, decision: Decision) -> Answer:
        """Ask the person; one question at a time, and an earlier answer may settle a later one."""
        async with self._asking:
            decision = self._decide(call)
            if decision.answer != "ask":
                yes = decision.answer == "allow"
                return Answer("once" if yes else "no", decision.reason, by=decision.by)
            self.publish(PermissionAsked(call.id, call.tool, decision.reason))
            answer = await self.approver.ask(call, decision)
            self.gate.record(call, answer)
            return answer

    def _record_permission(self, call: Call, answer: str, by: str, reason: str) -> None:
        self.recorder.append(
            "permission",
            call_id=call.id,
            tool=call.tool,
            subject=call.subject,
            answer=answer,
            by=by,
            reason=reason,
        )
        self.publish(PermissionAnswered(call.id, call.tool, answer, by, reason))
        self._debug_decision(call.tool, answer, by, reason)

    def _debug_decision(self, tool: str, answer: str, by: str, reason: str) -> None:
        if self.settings.verbose:
            self.publish(Debug(f"[DEBUG] Decision: {tool}: {answer} (by {by}): {reason}"))

    def _context(self, state: _Open) -> ToolContext:
        limits = self.limits()
        room = Room(limits.clamp_bytes, limits.clamp_lines)

        def emit(text: str) -> None:
            state.hear(text)
            text = clamp_text(text, room, "ends")
            for start in range(0, len(text), SHOWN_CHARS):
                self.publish(ToolOutputChunk(state.id, text[start : start + SHOWN_CHARS]))

        def set_todos(todos: Sequence[Todo]) -> None:
            self.publish(TodosChanged(tuple({"text": t.text, "status": t.status} for t in todos)))

        return ToolContext(
            call_id=state.id,
            workspace=self.settings.workspace,
            clock=self.clock,
            files=self.files,
            jobs=self.jobs,
            spill_path=self._spill_path(state),
            emit=emit,
            set_todos=set_todos,
            read_page_bytes=limits.page_bytes,
            read_page_lines=limits.clamp_lines,
            output=OutputLimits(limits.memory_chars, limits.disk.most, limits.disk.min_free),
            leave=state.leave,
        )

    def _spill_path(self, state: _Open) -> Path:
        return self.settings.workspace.tool_results / f"{safe_name(state.id)}.txt"

    async def _finish(
        self, open_calls: dict[str, _Open], state: _Open, output: ToolOutput, keep: Keep
    ) -> None:
        """Cut, record and show what a call came to."""
        seconds = self._seconds(state)
        guarded = await guard(
            output, tool=state.name, keep=keep, spill=self._spill_path(state), limits=self.limits()
        )
        receipt = await self._kept(guarded.receipt)
        summary = _preview(output.summary) if output.is_error else output.summary
        display = output.display[:SHOWN_CHARS]
        self.recorder.append(
            "tool_result",
            call_id=state.id,
            name=state.name,
            content=guarded.content,
            is_error=output.is_error,
            seconds=seconds,
            receipt=receipt,
            summary=summary,
            display=display,
            details=_with_limits(output.details, receipt),
        )
        del open_calls[state.id]
        text = text_of(guarded.content)
        finished = ToolFinished(
            state.id,
            state.name,
            output.is_error,
            seconds,
            receipt,
            summary,
            text[:SHOWN_CHARS],
            display,
            tuple(_without_data(b) for b in guarded.content if b.get("type") == "image"),
        )
        await self.recorder.show(finished)
        if self.settings.verbose:
            self.publish(Debug(await asyncio.to_thread(_debug_block, state.name, text)))

    async def _kept(self, receipt: Receipt | None) -> dict[str, Any] | None:
        """A receipt as it is recorded, once it is known whose the full copy is."""
        if receipt and receipt.path and self.kept:
            await asyncio.to_thread(self.kept.note, receipt.path)
        return receipt.to_json() if receipt else None

    async def _close(self, calls: Iterable[_Open]) -> None:
        await to_the_end(self._close_all(list(calls)))

    async def _close_all(self, calls: Sequence[_Open]) -> None:
        """Give calls that were interrupted their result (R2): the literal text for the model.

        What was heard of them is kept for the person: its end in the record, all of it in a
        file where that is more. A call that never began is not shown as finished either.
        """
        finished: list[Event] = []
        for state in calls:
            seconds, partial = self._seconds(state), state.partial()
            receipt = await self._left_behind(state)
            self.recorder.append(
                "tool_result",
                call_id=state.id,
                name=state.name,
                content=[text_block(INTERRUPTED)],
                is_error=True,
                seconds=seconds,
                receipt=receipt,
                summary="interrupted",
                display="",
                details={"interrupted": True, "partial": partial},
            )
            if state.started is not None:
                finished.append(
                    ToolFinished(
                        state.id, state.name, True, seconds, receipt, "interrupted", partial
                    )
                )
        await self.recorder.show(*finished)

    async def _left_behind(self, state: _Open) -> dict[str, Any] | None:
        output = state.left
        if output is None or (output.full is None and text_of(output.content) == state.partial()):
            return None
        try:
            spill, limits = self._spill_path(state), self.limits()
            return await self._kept(
                await left_behind(output, INTERRUPTED, spill=spill, limits=limits)
            )
        except Exception:  # the call gets its result, whatever becomes of the copy
            log.exception("what %s left behind could not be kept", state.name)
            return None

    def _seconds(self, state: _Open) -> float:
        started = state.started
        return 0.0 if started is None else round(self.clock.monotonic() - started, 3)


@dataclass(slots=True)
class _Open:
    """A call without a result yet, when it began, and the end of what it printed."""

    call: Block
    started: float | None = None
    left: ToolOutput | None = None
    _heard: list[str] = field(default_factory=list[str])
    _chars: int = 0

    @property
    def id(self) -> str:
        return str(self.call["id"])

    @property
    def name(self) -> str:
        return str(self.call.get("name"))

    def leave(self, output: ToolOutput) -> None:
        self.left = output

    def hear(self, text: str) -> None:
        self._heard.append(text[-PARTIAL_CHARS:])
        self._chars += len(self._heard[-1])
        while self._chars - len(self._heard[0]) >= PARTIAL_CHARS:
            self._chars -= len(self._heard.pop(0))

    def partial(self) -> str:
        return "".join(self._heard)[-PARTIAL_CHARS:]


def _debug_block(name: str, result: str) -> str:
    """K39's literal block: the text that the model received, and its tokens (K41)."""
    size = tokens.count_fast(result)
    return f"\n\n[DEBUG] Tool: {name}\n[DEBUG] Tokens: {size}\n[DEBUG] Result:\n{result}\n"


def _with_limits(details: dict[str, Any], receipt: dict[str, Any] | None) -> dict[str, Any]:
    """A result's details, and which limits cut it (decision 1)."""
    if receipt is None:
        return details
    return {**details, "limits": receipt["stages"], "path": receipt["path"]}


def _preview(error: str) -> str:
    """The first line of an error, for its card (O19)."""
    return error.split("\n", 1)[0][:ERROR_CHARS]


def _without_data(image: Block) -> dict[str, Any]:
    """An image as events carry it (O20): its size in the place of its data."""
    given: object = image.get("source")
    source = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    data = str(source.get("data") or "")
    size = len(data) * 3 // 4 - data.count("=", -2)
    return {"type": "image", "media_type": source.get("media_type"), "bytes": size, "omitted": True}


def _refused(reason: str, *, by_person: bool) -> ToolOutput:
    """The result of a call that was not allowed, worded for the model."""
    if by_person:
        text = "The person said no to this call; it was not run."
        text += f" They said: {reason}" if reason else " Ask what to do instead, or go on without."
    else:
        text = f"Not allowed, not run: {reason}"
    return ToolOutput.text(text, is_error=True, summary="denied")

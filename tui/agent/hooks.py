"""Runs the person's hooks (`tui.settings.hook_files`) and reads what they answer.

A hook gets a JSON object on its standard input and answers by its exit code, or by a JSON object on
its standard output; both as those of Claude Code. 0 is fine, 2 blocks with what it wrote to
standard error as the reason, any other code is a failure of the hook alone: it is said, and the
turn goes on. So is one that takes too long, which is killed, as is one that is interrupted. Each
run is in the record.

Hooks run outside the sandbox, as the person's own commands do, without the program's keys.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tui.agent.agent_context import AgentContext
from tui.agent.events import HookFinished
from tui.core import claude_names
from tui.core.messages import is_object, object_of, string_of
from tui.core.redaction import child_environment
from tui.core.text_cleaning import clean
from tui.settings.hook_files import TIMEOUT_MAX_S, Hook, HookEvent, Hooks
from tui.tools.process import shell

if TYPE_CHECKING:
    from asyncio.subprocess import Process

OUTPUT_MAX: Final = 256 * 1024
"""Bytes of an output that are read; what floods it is read on and dropped."""
CONTEXT_CHARS: Final = 10_000
"""Of a text of hooks that the model gets."""
_CHUNK = 64 * 1024
_POLL_S = 0.05
_DRAIN_S = 0.25
"""After its end, for what it had printed."""
_END_S = 10.0
"""For the hooks of a session that ends: nobody waits long for a program to quit."""

Verdict: TypeAlias = Literal["", "allow", "ask", "deny"]
Outcome: TypeAlias = Literal["ok", "blocked", "failed", "timeout", "cancelled"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """What the hooks of one event said together: `blocked` is why it must not go on, "" if it may;
    `context` what the model should know; `verdict` what they say about a call."""

    blocked: str = ""
    context: str = ""
    verdict: Verdict = ""
    reason: str = ""


NOTHING: Final = HookAnswer()


@dataclass(frozen=True, slots=True)
class _Run:
    """How one hook ended."""

    hook: Hook
    outcome: Outcome
    code: int | None
    seconds: float
    printed: str = ""
    problem: str = ""


_CHANGED: Final = (
    "not run, as a script that it names has changed since the session began; trust it in the next "
    "session"
)


@dataclass(slots=True)
class HookRunner:
    """Runs the hooks of one agent."""

    ctx: AgentContext
    _opening: asyncio.Task[HookAnswer] | None = None

    async def load(self) -> Hooks:
        """The hooks as they were when the session began: what is changed meanwhile, by a call
        perhaps, waits for the next one."""
        top = self.ctx.parent or self.ctx
        if top.hooks is None:
            top.hooks = asyncio.create_task(asyncio.to_thread(top.find_hooks or Hooks))
        return await asyncio.shield(top.hooks)

    def begin(self) -> None:
        """Run the hooks of a session that begins, beside all else."""
        source = "resume" if self.ctx.session.resumed else "startup"
        work = self.run("SessionStart", {"source": source}, names=(source,))
        self._opening = asyncio.create_task(work, name="hooks of the session")

    async def opening(self) -> str:
        """What they want the model to know, until it was handed over; waits for them."""
        return (await asyncio.shield(self._opening)).context if self._opening is not None else ""

    def hand_over(self) -> None:
        """What `opening` said is on its way to the model."""
        self._opening = None

    async def close(self) -> None:
        """Run the hooks of a session that ends, for a few seconds at most."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if any(record.type == "user" for record in self.ctx.records):
            await self.run("SessionEnd", {"reason": "other"}, most_s=_END_S)

    async def run(
        self,
        event: HookEvent,
        fields: Mapping[str, Any] | None = None,
        *,
        names: Iterable[str] = (),
        call_id: str = "",
        most_s: float = TIMEOUT_MAX_S,
    ) -> HookAnswer:
        """Run the hooks for an event side by side. Never raises but for a cancellation."""
        found = (await self.load()).of(event, names)
        if not found:
            return NOTHING
        given = json.dumps(self._common(event) | dict(fields or {}), default=str).encode()
        work = [asyncio.create_task(self._run(hook, given, most_s)) for hook in found]
        try:
            runs = await asyncio.gather(*work)
        finally:
            for one in work:
                # One that was cancelled itself had not begun.
                if one.done() and not one.cancelled() and one.exception() is None:
                    self._record(one.result(), call_id)
        return _together(runs)

    async def before_tool(self, call_id: str, tool: str, input_: Mapping[str, Any]) -> HookAnswer:
        """The hooks before a call."""
        names = claude_names.names_of(tool)
        fields = {
            "tool_name": names[0],
            "tool_input": claude_names.input_of(input_),
            "tool_use_id": call_id,
        }
        return await self.run("PreToolUse", fields, names=names, call_id=call_id)

    async def after_tool(
        self, call_id: str, tool: str, input_: Mapping[str, Any], text: str, *, failed: bool
    ) -> HookAnswer:
        """The hooks after a call that ran."""
        names = claude_names.names_of(tool)
        fields = {
            "tool_name": names[0],
            "tool_input": claude_names.input_of(input_),
            "tool_use_id": call_id,
            "tool_response": {"success": not failed, "text": text},
        }
        return await self.run("PostToolUse", fields, names=names, call_id=call_id)

    def _common(self, event: HookEvent) -> dict[str, Any]:
        ctx = self.ctx
        modes = {"ask": "default", "accept_edits": "acceptEdits", "plan": "plan"}
        mode = "bypassPermissions" if ctx.elevated and ctx.mode != "plan" else modes[ctx.mode]
        return {
            "hook_event_name": event,
            "session_id": ctx.session.id,
            "transcript_path": str(ctx.session.path or ""),
            "cwd": str(ctx.workspace.root),
            "permission_mode": mode,
        }

    async def _run(self, hook: Hook, given: bytes, most_s: float) -> _Run:
        started = self.ctx.clock.monotonic()

        def ended(outcome: Outcome, code: int | None, *texts: str) -> _Run:
            return _Run(hook, outcome, code, self.ctx.clock.monotonic() - started, *texts)

        root, limit = self.ctx.workspace.root, min(hook.timeout_s, most_s)
        environment = child_environment() | {"CLAUDE_PROJECT_DIR": str(root)}
        if not await asyncio.to_thread(hook.holds_in, root):
            return ended("failed", None, "", _CHANGED)
        try:
            process = await asyncio.create_subprocess_exec(
                *shell(),
                hook.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=root,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return ended(
                "failed", None, "", f"can't run: {getattr(error, 'strerror', '') or error}"
            )
        try:
            async with asyncio.timeout(limit):
                printed, problem, code = await _communicate(process, given)
        except asyncio.CancelledError:
            return ended("cancelled", None)  # so that it is recorded; `run` raises
        except TimeoutError:
            return ended("timeout", None, "", f"took longer than {limit:g} s")
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # what it left running, too
        blocks = code == 2
        outcome: Outcome = "blocked" if blocks else "failed" if code else "ok"
        return ended(outcome, code, printed, problem)

    def _record(self, run: _Run, call_id: str) -> None:
        """Keep how a hook ended, and show it."""
        hook, seconds = run.hook, round(run.seconds, 3)
        text = clean(run.problem.strip())[:CONTEXT_CHARS] if run.outcome != "ok" else ""
        ended = HookFinished(
            hook.event, hook.command, run.outcome, run.code, seconds, text, call_id
        )
        said = {name: value for name, value in ended.to_json().items() if name != "type"}
        self.ctx.recorder.append("hook", **said)
        self.ctx.publish(ended)


async def _communicate(process: Process, given: bytes) -> tuple[str, str, int]:
    """What it prints, what it writes to standard error, and its exit code. Something that it left
    running may still hold both: its end is not waited for."""
    assert process.stdin
    assert process.stdout
    assert process.stderr
    out, err = bytearray(), bytearray()
    writes = asyncio.create_task(_write(process.stdin, given))
    reads = {
        asyncio.create_task(_read(process.stdout, out)),
        asyncio.create_task(_read(process.stderr, err)),
    }
    try:
        while process.returncode is None:
            await asyncio.wait(reads, timeout=_POLL_S)
            if all(read.done() for read in reads):
                await process.wait()
        await asyncio.wait(reads, timeout=_DRAIN_S)
    finally:
        for task in (writes, *reads):
            task.cancel()
        await asyncio.gather(writes, *reads, return_exceptions=True)
    texts = (bytes(data).decode("utf-8", "replace") for data in (out, err))
    return next(texts), next(texts), process.returncode


async def _write(stream: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it needs not read it
        stream.write(given)
        await stream.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.close()


async def _read(stream: asyncio.StreamReader, into: bytearray) -> None:
    while chunk := await stream.read(_CHUNK):
        into += chunk[: OUTPUT_MAX - len(into)]


def _together(runs: Sequence[_Run]) -> HookAnswer:
    """What the hooks of an event come to: one that blocks is enough, and deny goes before ask."""
    blocked: list[str] = []
    context: list[str] = []
    verdicts: dict[Verdict, str] = {}
    for run in runs:
        if run.outcome == "blocked":
            blocked.append(run.problem.strip() or f"the hook {run.hook.command} blocked it")
        elif run.outcome == "ok":
            _answer(run, blocked, context, verdicts)
    verdict: Verdict = ""
    for one in _BY_WEIGHT:
        if one in verdicts:
            verdict = one
            break
    return HookAnswer(
        clean("\n".join(blocked))[:CONTEXT_CHARS],
        clean("\n\n".join(filter(str.strip, context)))[:CONTEXT_CHARS],
        verdict,
        clean(verdicts.get(verdict, ""))[:CONTEXT_CHARS],
    )


_BY_WEIGHT: Final[Sequence[Verdict]] = ("deny", "ask", "allow")
_SPEAKS: Final = frozenset({"UserPromptSubmit", "SessionStart"})
"""Events whose hooks tell the model what they print."""
_VERDICTS: Final[Mapping[str, Verdict]] = {
    "allow": "allow", "approve": "allow", "ask": "ask", "deny": "deny",
}  # fmt: skip


def _answer(
    run: _Run, blocked: list[str], context: list[str], verdicts: dict[Verdict, str]
) -> None:
    """Take up what a hook printed: an object says what it wants, other text is for the model."""
    printed = run.printed.strip()
    try:
        found: object = json.loads(printed) if printed.startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    if not is_object(found):
        if run.hook.event in _SPEAKS:
            context.append(printed)
        return
    said = found
    own = object_of(said.get("hookSpecificOutput"))
    reason = string_of(said.get("reason")) or string_of(own.get("permissionDecisionReason"))
    decision = string_of(own.get("permissionDecision")) or string_of(said.get("decision"))
    if decision == "block" or said.get("continue") is False:
        blocked.append(reason or string_of(said.get("stopReason")) or "a hook blocked it")
    elif verdict := _VERDICTS.get(decision):
        verdicts.setdefault(verdict, reason)
    if extra := string_of(own.get("additionalContext")):
        context.append(extra)

"""Runs the person's hooks (`tui.settings.hook_files`) and reads what they answer.

A hook gets a JSON object on its standard input and answers by its exit code, or by a JSON object on
its standard output (`tui.agent.hook_answers`); both as those of Claude Code. A decision counts
whatever the exit code. Without one, 0 is fine, 2 blocks with what it wrote to standard error as the
reason, and any other code is a failure of the hook alone: it is shown, and the turn continues,
unless the hook's `on_error` is "block". The same holds for one that takes too long, which is
killed. A call is asked about where a hook that was to judge it could not be run. Each run is in the
record.

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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tui.agent import hook_answers
from tui.agent.agent_context import AgentContext
from tui.agent.hook_answers import OUTPUT_MAX, SPEAKS, HookReply, Verdict
from tui.core import claude_names
from tui.core.errors import HoldfastError
from tui.core.facts import HookFinished, Notice
from tui.core.redaction import child_environment
from tui.core.text_cleaning import clean, one_line
from tui.settings.hook_files import EVENTS, TIMEOUT_MAX_S, Hook, HookCallback, HookEvent, Hooks
from tui.tools.process import shell

if TYPE_CHECKING:
    from asyncio.subprocess import Process

CONTEXT_CHARS: Final = 10_000
"""Characters of a text of hooks that the model gets."""
_NAME_CHARS = 200
"""Characters of a hook's command, where it is named."""
_CHUNK = 64 * 1024
_POLL_S = 0.05
_DRAIN_S = 0.25
"""After its end, for what it had printed."""
_END_S = 10.0
"""For the hooks of a session that ends: nobody waits long for a program to quit."""

Outcome: TypeAlias = Literal["ok", "blocked", "failed", "timeout", "cancelled"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The joint answer of the hooks of one event: `blocked` is why it is stopped, "" if it may
    continue; `context` what the model should know; `verdict` the decision about a call that may
    run, and `changed` the input that it gets instead of its own."""

    blocked: str = ""
    context: str = ""
    verdict: Verdict = ""
    reason: str = ""
    changed: dict[str, Any] | None = None
    of_driver: bool = False
    """True if all of it is the driving program's word, which it gave about what it changed too."""


NOTHING: Final = HookAnswer()


@dataclass(frozen=True, slots=True)
class _Run:
    """The end of one hook: `problem` is why it failed or blocks."""

    hook: Hook
    outcome: Outcome
    code: int | None
    seconds: float
    said: HookReply = hook_answers.NOTHING
    problem: str = ""


_CHANGED: Final = (
    "a script that it names has changed since the session began; trust it in the next session"
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
        if top.rules.hooks is None:
            top.rules.hooks = asyncio.create_task(asyncio.to_thread(top.rules.find_hooks or Hooks))
        return await asyncio.shield(top.rules.hooks)

    def begin(self) -> None:
        """Run the hooks of a session that begins, beside all else."""
        self._opening = asyncio.create_task(self._begin(), name="hooks of the session")

    async def _begin(self) -> HookAnswer:
        source = "resume" if self.ctx.session.resumed else "startup"
        self.ctx.publish(*map(Notice, (await self.load()).problems))
        return await self.run("SessionStart", {"source": source}, names=(source,))

    async def opening(self) -> str:
        """Return the text that they want the model to know, until it was handed over; waits for
        them."""
        return (await asyncio.shield(self._opening)).context if self._opening is not None else ""

    def hand_over(self) -> None:
        """Note that the text of `opening` is on its way to the model."""
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
        hooks = (await self.load()).of(event, names)
        if not hooks:
            return NOTHING
        event_data = json.dumps(self._common(event) | dict(fields or {}), default=str).encode()
        work = [asyncio.create_task(self._run(hook, event_data, most_s)) for hook in hooks]
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
        answer = await self.run("PreToolUse", fields, names=names, call_id=call_id)
        if answer.changed is None:
            return answer
        changed = claude_names.own_input(input_, answer.changed)
        return replace(answer, changed=None if changed == input_ else changed)

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
        mode = (
            "bypassPermissions"
            if ctx.state.elevated and ctx.state.mode != "plan"
            else modes[ctx.state.mode]
        )
        return {
            "hook_event_name": event,
            "session_id": ctx.session.id,
            "transcript_path": str(ctx.session.path or ""),
            "cwd": str(ctx.workspace.root),
            "permission_mode": mode,
        }

    async def _run(self, hook: Hook, given: bytes, most_s: float) -> _Run:
        started = self.ctx.clock.monotonic()
        limit = min(hook.timeout_s, most_s)
        process = (
            _Process(hook, self.ctx.workspace.root, limit)
            if hook.callback is None
            else _Called(hook.callback, limit)
        )
        outcome, problem = await process.run(given)
        printed, code = bytes(process.out), process.code
        reply = hook_answers.NOTHING
        try:
            reply = await asyncio.to_thread(hook_answers.read, printed, hook.event)
        except asyncio.CancelledError:
            outcome = "cancelled"
        if outcome == "cancelled":
            reply = hook_answers.NOTHING
        elif hook.event in _BLOCK and (why := _blocks(hook, outcome, code, reply, problem)):
            outcome, problem = "blocked", why
        elif reply.unclear:
            outcome, problem = "failed", f"its answer can't be understood: {reply.unclear}"
        elif reply.verdict and outcome == "failed":
            outcome = "ok"
        return _Run(hook, outcome, code, self.ctx.clock.monotonic() - started, reply, problem)

    def _record(self, run: _Run, call_id: str) -> None:
        """Keep how a hook ended, and show it; of one that cannot run, the question says it."""
        if run.hook.problem:
            return
        hook, seconds = run.hook, round(run.seconds, 3)
        texts = (run.said.notice, run.said.text if hook.event not in SPEAKS else "")
        shown = "\n".join(filter(None, texts))
        text = _cut(shown if run.outcome == "ok" else run.problem)
        ended = run.outcome, run.code, seconds, text, call_id
        self.ctx.record(HookFinished(hook.event, hook.command, *ended))


@dataclass(slots=True)
class _Called:
    """Runs a hook that is a function of the driving program."""

    callback: HookCallback
    limit: float
    code: int | None = None
    out: bytes = b""

    async def run(self, given: bytes) -> tuple[Outcome, str]:
        """Run the hook; return its outcome, and what is wrong then."""
        try:
            async with asyncio.timeout(self.limit):
                self.out = await self.callback(given)
        except asyncio.CancelledError:
            return "cancelled", ""  # so that it is recorded
        except TimeoutError:
            return "timeout", f"took longer than {self.limit:g} s"
        except HoldfastError as error:
            return "failed", error.message
        return "ok", ""


@dataclass(slots=True)
class _Process:
    """Runs the command of a hook."""

    hook: Hook
    root: Path
    limit: float
    code: int | None = None
    out: bytearray = field(default_factory=bytearray)

    async def run(self, given: bytes) -> tuple[Outcome, str]:
        """Run the hook; return its outcome, and what is wrong then. An interrupt ends it; the
        caller raises."""
        hook = self.hook
        if hook.problem:
            return "failed", hook.problem
        environment = child_environment() | {"CLAUDE_PROJECT_DIR": str(self.root)}
        if not await asyncio.to_thread(hook.holds_in, self.root):
            return "failed", _CHANGED
        try:
            process = await asyncio.create_subprocess_exec(
                *shell(),
                hook.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                cwd=self.root,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return "failed", f"can't run: {getattr(error, 'strerror', '') or error}"
        try:
            async with asyncio.timeout(self.limit):
                problem = await self._communicate(process, given)
        except asyncio.CancelledError:
            return "cancelled", ""  # so that it is recorded
        except TimeoutError:
            return "timeout", f"took longer than {self.limit:g} s"
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # what it left running, too
        return "failed" if self.code else "ok", problem

    async def _communicate(self, process: Process, given: bytes) -> str:
        """Wait for its end and what it prints; returns what it wrote to standard error. Something
        that it left running may still hold both: its end is not waited for."""
        assert process.stdin
        assert process.stdout
        assert process.stderr
        err = bytearray()
        writes = asyncio.create_task(_write(process.stdin, given))
        reads = {
            asyncio.create_task(_read(process.stdout, self.out)),
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
        self.code = process.returncode
        return bytes(err[:OUTPUT_MAX]).decode("utf-8", "replace")


async def _write(stream: asyncio.StreamWriter, given: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it needs not read it
        stream.write(given)
        await stream.drain()
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.close()


async def _read(stream: asyncio.StreamReader, into: bytearray) -> None:
    while chunk := await stream.read(_CHUNK):
        into += chunk[: OUTPUT_MAX + 1 - len(into)]  # one more says that there was more


_BLOCK: Final = frozenset(EVENTS) - {"SessionStart", "SessionEnd"}
"""Events that a hook can block."""


def _blocks(hook: Hook, outcome: Outcome, code: int | None, said: HookReply, problem: str) -> str:
    """Say why a hook blocks what it ran for; "" if it doesn't."""
    name = f"the hook {one_line(hook.command)[:_NAME_CHARS]}"
    if said.unclear and hook.event != "PostToolUse":
        reason = f" It says: {said.reason}" if said.reason else ""
        return f"{name} blocks it, as its answer can't be understood: {said.unclear}.{reason}"
    if said.verdict == "deny" or code == 2:
        return (
            said.reason
            if said.verdict == "deny" and said.reason
            else (problem.strip() or f"{name} blocked it")
        )
    judged = said.verdict and outcome != "timeout"
    if hook.on_error == "block" and outcome in {"failed", "timeout"} and not judged:
        ended = f"exit code {code}" if outcome == "failed" and code is not None else ""
        what = ": ".join(filter(None, (ended, problem.strip())))
        return f"{name} failed ({what}), and what it can't judge is blocked"
    return ""


def _together(runs: Sequence[_Run]) -> HookAnswer:
    """Combine the results of an event's hooks: one that blocks is enough, and ask goes before
    allow."""
    blocked = [run.problem for run in runs if run.outcome == "blocked"]
    verdicts: dict[Verdict, str] = {}
    changed: list[dict[str, Any]] = []
    for run in runs:
        if run.outcome == "failed" and run.code is None:
            # A guard that did not run has not agreed.
            verdicts.setdefault("ask", f"A hook that judges this did not run: {run.problem}.")
        elif run.outcome == "ok" and run.said.verdict:
            verdicts.setdefault(run.said.verdict, run.said.reason)
        if run.said.changed is not None and run.said.changed not in changed:
            changed.append(run.said.changed)
    verdict = hook_answers.strictest(verdicts)
    if len(changed) > 1:
        blocked.append("several hooks want to change what this call does")
    return HookAnswer(
        _cut("\n".join(blocked)),
        _cut("\n\n".join(filter(str.strip, map(_context, runs)))),
        verdict,
        _cut(verdicts.get(verdict, "")),
        changed[0] if changed else None,
        of_driver=all(run.hook.callback is not None for run in runs),
    )


def _context(run: _Run) -> str:
    """Return the text that a hook wants the model to know."""
    reply = run.said
    speaks = run.hook.event in SPEAKS and run.outcome == "ok"
    return "\n\n".join(filter(None, (reply.text if speaks else "", reply.context)))


def _cut(text: str) -> str:
    """The beginning of a long text of hooks, which says how much is missing."""
    text = clean(text.strip())
    if len(text) <= CONTEXT_CHARS:
        return text
    return f"{text[:CONTEXT_CHARS]}\n[cut: {CONTEXT_CHARS:,} of {len(text):,} characters of a hook]"

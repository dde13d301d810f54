"""Runs the person's hooks (`tui.settings.hook_files`) and reads what they answer.

A hook gets a JSON object on its standard input (`tui.agent.hook_data`) and answers by its exit
code, or by a JSON object on its standard output (`tui.agent.hook_answers`); both as those of Claude
Code 2.1.332. A decision counts whatever the exit code. Without one, 0 is fine, 2 blocks with what
it wrote to standard error as the reason, and any other code is a failure of the hook alone: it is
shown, and the turn continues, unless the hook's `on_error` is "block". The same holds for one that
takes too long, which is killed. A call is asked about where a hook that was to judge it could not
be run. Each run is in the record.

Hooks run outside the sandbox, as the person's own commands do, without the program's keys.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Coroutine, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tui.agent import hook_answers
from tui.agent.agent_context import AgentContext
from tui.agent.hook_answers import SPEAKS, HookReply, Verdict
from tui.core import claude_names
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError
from tui.core.facts import HookFinished, Notice
from tui.core.messages import ToolOutput, text_of
from tui.core.text_cleaning import clean, one_line
from tui.permissions.policy import Policy, decide
from tui.permissions.types import Call
from tui.settings.hook_files import EVENTS, TIMEOUT_MAX_S, Hook, HookCallback, HookEvent, Hooks

if TYPE_CHECKING:
    from tui.agent.hook_process import HookOutcome

CONTEXT_CHARS: Final = 10_000
"""Characters of a text of hooks that the model gets."""
_NAME_CHARS = 200
"""Characters of a hook's command, where it is named."""
_END_S = 10.0
"""For the hooks of a session that ends: nobody waits long for a program to quit."""
_NOTIFY_S: Final = 6.0
"""Seconds after which a question that is still open is told to hooks, as Claude Code 2.1.332 has
it (seen)."""
_IDLE_S: Final = 60.0
"""Likewise, for a conversation that rests after a turn."""
_NEEDED: Final = "Claude needs your permission"
_IDLE: Final = "Claude is waiting for your input"
"""Its words for both, which hooks look for."""
_LAST_S = 2.0
"""For those that nobody waits for, when the session ends."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class HookAnswer:
    """The joint answer of the hooks of one event: `blocked` is why it is stopped, "" if it may
    continue; `context` what the model should know; `verdict` the decision about a call that may
    run, and `changed` the input that it gets instead of its own. `ends` is true where the turn
    ends. `result` is what a result is to be, None where none changes it."""

    blocked: str = ""
    context: str = ""
    verdict: Verdict = ""
    reason: str = ""
    changed: dict[str, Any] | None = None
    ends: bool = False
    result: object = None
    script: str = ""
    """Lines that set variables for later commands."""


NOTHING: Final = HookAnswer()


@dataclass(frozen=True, slots=True)
class _Run:
    """The end of one hook: `problem` is why it failed or blocks."""

    hook: Hook
    outcome: HookOutcome
    code: int | None
    seconds: float
    said: HookReply = hook_answers.NOTHING
    problem: str = ""
    script: str = ""


@dataclass(slots=True)
class HookRunner:
    """Runs the hooks of one agent."""

    ctx: AgentContext
    _opening: asyncio.Task[HookAnswer] | None = None
    _resting: asyncio.Task[None] | None = None
    _detached: set[asyncio.Task[object]] = field(default_factory=set[asyncio.Task[object]])
    """The hooks that run and that nobody waits for."""
    _late: list[str] = field(default_factory=list[str])
    """The texts of those, which the model has not heard."""

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
        if problems := (await self.load()).problems:
            self.ctx.publish(*map(Notice, (*problems, "To work without hooks: holdfast --bare.")))
        answer = await self.run("SessionStart", {"source": source}, names=(source,))
        if answer.script.strip():
            await self._export(answer.script)
        return answer

    async def _export(self, script: str) -> None:
        """Set variables for the session's commands, and name those that the walls take away."""
        from tui.agent.hook_process import exported  # noqa: PLC0415 - most have no hooks
        from tui.permissions.sandbox.environment import clean_environment  # noqa: PLC0415 - likewise

        ctx = self.ctx
        try:
            found = await exported(script, ctx.workspace.root, ctx.session.id)
        except HoldfastError as error:
            what = "Commands don't get the variables that hooks set for them in CLAUDE_ENV_FILE"
            ctx.publish(Notice(f"{what}. {error.message}"))
            return
        ctx.toolbox.exports = found
        if ctx.toolbox.confinement is not None:
            kept = clean_environment(found, ctx.toolbox.confinement.settings.keep_env)
            if lost := sorted(found.keys() - kept.keys()):
                what = f"A hook sets {', '.join(lost)}, which confined commands don't get."
                ctx.publish(Notice(f"{what} [sandbox] keep_env names what they may have."))

    async def opening(self) -> str:
        """Return the text that they want the model to know, until it was handed over; waits for
        them."""
        return (await asyncio.shield(self._opening)).context if self._opening is not None else ""

    def hand_over(self) -> None:
        """Note that the text of `opening` is on its way to the model."""
        self._opening = None

    async def close(self) -> None:
        """Run the hooks of a session that ends, for a few seconds at most."""
        self.wake()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if any(record.type == "user" for record in self.ctx.records):
            await self.run("SessionEnd", {"reason": "other"}, most_s=_END_S)
        if self._detached:
            await asyncio.wait(self._detached, timeout=_LAST_S)
        for task in self._detached:
            task.cancel()
        await asyncio.gather(*self._detached, return_exceptions=True)

    def tell(
        self, event: HookEvent, fields: Mapping[str, Any], *, names: Iterable[str] = ()
    ) -> None:
        """Run the hooks for an event beside all else; nothing that they answer counts."""
        self._keep(self.run(event, fields, names=names))

    def _keep(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work, name="hooks that nobody waits for")
        self._detached.add(task)
        task.add_done_callback(self._detached.discard)

    async def run(
        self,
        event: HookEvent,
        fields: Mapping[str, Any] | None = None,
        *,
        names: Iterable[str] = (),
        about: Call | None = None,
        call_id: str = "",
        most_s: float = TIMEOUT_MAX_S,
    ) -> HookAnswer:
        """Run the hooks for an event side by side, those with a condition if it holds for the call
        that it is `about`. Never raises but for a cancellation."""
        hooks = (await self.load()).of(event, names)
        if about is not None and any(hook.only_if for hook in hooks):
            hooks = await asyncio.to_thread(self._meant, hooks, about)
        if not hooks:
            return NOTHING
        given = self._common(event) | dict(fields or {})
        # Without blanks, as hooks that search the text expect it.
        event_data = json.dumps(given, default=str, separators=(",", ":")).encode()
        for hook in hooks:
            if hook.detached:
                self._detach(hook, event_data, call_id)
        work = [
            asyncio.create_task(self._run(hook, event_data, most_s, call_id))
            for hook in hooks
            if not hook.detached
        ]
        try:
            runs = await asyncio.gather(*work)
        finally:
            for one in work:
                # One that was cancelled itself had not begun.
                if one.done() and not one.cancelled() and one.exception() is None:
                    self._record(one.result(), call_id)
        return _together(runs)

    def _meant(self, hooks: Sequence[Hook], call: Call) -> list[Hook]:
        """Return the hooks whose condition holds for a call, in doubt too. Blocks."""
        return [hook for hook in hooks if not hook.only_if or self._is_about(hook, call)]

    def _is_about(self, hook: Hook, call: Call) -> bool:
        policy = replace(Policy.of(deny=hook.only_if), home=self.ctx.rules.gate.policy.home)
        workspace = self.ctx.workspace
        refused = decide(call, policy, mode="ask", elevated=True, grants=(), workspace=workspace)
        return refused.answer == "deny"

    def _detach(self, hook: Hook, event_data: bytes, call_id: str) -> None:
        """Run a hook beside all else: it decides nothing, and what it adds is said later."""

        async def run() -> None:
            ended = await self._run(hook, event_data, TIMEOUT_MAX_S, call_id)
            if ended.outcome == "ok":
                self._late += filter(None, (ended.said.notice, ended.said.context))
            plain = replace(ended.said, verdict="", unclear="", stops=False)
            outcome = "ok" if ended.outcome == "blocked" and not ended.code else ended.outcome
            outcome = "failed" if outcome == "blocked" else outcome
            self._record(replace(ended, said=plain, outcome=outcome), call_id)

        self._keep(run())

    def take_late(self) -> str:
        """Return what the model has not heard of hooks that nobody waited for."""
        late, self._late = self._late, []
        return _cut("\n".join(late))

    def rest(self) -> None:
        """Begin the time after a turn: hooks hear of it if the person doesn't come back."""
        self.wake()
        if self.ctx.parent is None:
            told = self._notify(_IDLE_S, "idle_prompt", _IDLE)
            self._resting = asyncio.create_task(told, name="hooks about a rest")

    def wake(self) -> None:
        """End the time after a turn."""
        if self._resting is not None:
            self._resting.cancel()
            self._resting = None

    @contextmanager
    def asking(self) -> Generator[None]:
        """Within it the person is asked about a call: hooks hear of it if that takes a while."""
        told = self._notify(_NOTIFY_S, "permission_prompt", _NEEDED)
        task = asyncio.create_task(told, name="hooks about a question")
        try:
            yield
        finally:
            task.cancel()

    async def _notify(self, seconds: float, kind: str, message: str) -> None:
        if (await self.load()).of("Notification", (kind,)):
            await self.ctx.clock.sleep(seconds)
            given = {"message": message, "notification_type": kind}
            self.tell("Notification", given, names=(kind,))

    async def before_tool(self, call: Call, input_: Mapping[str, Any]) -> HookAnswer:
        """The hooks before a call."""
        return await self._of_call("PreToolUse", call, input_)

    async def at_request(self, call: Call, input_: Mapping[str, Any]) -> HookAnswer:
        """The hooks before the person is asked about a call."""
        fields: dict[str, Any] = {"permission_suggestions": []}
        return await self._of_call("PermissionRequest", call, input_, fields)

    async def _of_call(
        self,
        event: HookEvent,
        call: Call,
        input_: Mapping[str, Any],
        fields: Mapping[str, Any] | None = None,
    ) -> HookAnswer:
        if not (await self.load()).all:
            return NOTHING
        from tui.agent import hook_data  # noqa: PLC0415 - most have no hooks

        root = self.ctx.workspace.root
        data = hook_data.data_of(call.id, call.tool, input_, root) | dict(fields or {})
        names = claude_names.names_of(call.tool)
        answer = await self.run(event, data, names=names, about=call, call_id=call.id)
        self._end_turn(answer)
        if answer.changed is None:
            return answer
        changed = claude_names.own_input(input_, answer.changed, root)
        return replace(answer, changed=None if changed == input_ else changed)

    async def after_tool(
        self,
        call_id: str,
        tool: str,
        input_: Mapping[str, Any],
        output: ToolOutput,
        about: Call | None = None,
    ) -> HookAnswer:
        """The hooks after a call that ran: `result` is the text that its result becomes."""
        if not (await self.load()).all:
            return NOTHING
        from tui.agent import hook_data  # noqa: PLC0415 - most have no hooks

        text, root = text_of(output.content), self.ctx.workspace.root
        response = hook_data.response_of(tool, input_, text, root)
        data = hook_data.data_of(call_id, tool, input_, root)
        data |= {"error": text} if output.is_error else {"tool_response": response}
        event: HookEvent = "PostToolUseFailure" if output.is_error else "PostToolUse"
        names = claude_names.names_of(tool)
        answer = await self.run(event, data, names=names, about=about, call_id=call_id)
        self._end_turn(answer)
        if answer.result is None:
            return answer
        changed = hook_data.changed_text(response, answer.result)
        return replace(answer, result=None if changed == text else changed)

    def _end_turn(self, answer: HookAnswer) -> None:
        """End the turn after its calls where a hook wants that, and say so."""
        if answer.ends:
            self.ctx.state.turn_ends = True
            self.ctx.publish(Notice(f"A hook ended the turn: {answer.blocked or answer.reason}"))

    def _common(self, event: HookEvent) -> dict[str, Any]:
        ctx = self.ctx
        modes = {"ask": "default", "accept_edits": "acceptEdits", "plan": "plan"}
        mode = (
            "bypassPermissions"
            if ctx.state.elevated and ctx.state.mode != "plan"
            else modes[ctx.state.mode]
        )
        agent = (
            {"agent_id": ctx.session.id, "agent_type": ctx.role} if ctx.parent is not None else {}
        )
        return agent | {
            "hook_event_name": event,
            "session_id": ctx.session.id,
            "transcript_path": str(ctx.session.path or ""),
            "cwd": str(ctx.workspace.root),
            "permission_mode": mode,
        }

    async def _run(self, hook: Hook, given: bytes, most_s: float, call_id: str) -> _Run:
        from tui.agent.hook_process import HookProcess  # noqa: PLC0415 - most have no hooks

        started = self.ctx.clock.monotonic()
        limit = min(hook.timeout_s, most_s)
        root, session = self.ctx.workspace.root, self.ctx.session
        process = (
            HookProcess(hook, root, limit, session.id, session.traceparent(call_id))
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
        seconds = self.ctx.clock.monotonic() - started
        return _Run(hook, outcome, code, seconds, reply, problem, process.script)

    def _record(self, run: _Run, call_id: str) -> None:
        """Keep how a hook ended, and show it; of one that cannot run, the question says it."""
        if run.hook.problem:
            return
        hook, seconds = run.hook, round(run.seconds, 3)
        texts = (run.said.notice, run.said.text if hook.event not in SPEAKS else "")
        shown = "\n".join(filter(None, texts))
        text = _cut(shown if run.outcome == "ok" else run.problem)
        ended = run.outcome, run.code, seconds, text, call_id
        self.ctx.record(HookFinished(hook.event, hook.line, *ended))


@dataclass(slots=True)
class _Called:
    """Runs a hook that is a function of the driving program."""

    callback: HookCallback
    limit: float
    code: int | None = None
    out: bytes = b""
    script: str = ""

    async def run(self, given: bytes) -> tuple[HookOutcome, str]:
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


_BLOCK: Final = frozenset(EVENTS) - {
    "SessionStart", "SessionEnd", "StopFailure", "SubagentStart", "PostCompact", "Notification",
}  # fmt: skip
"""Events that a hook can block."""
_AFTER: Final = frozenset({"PostToolUse", "PostToolUseFailure"})
"""Events after a call: there is nothing left to stop."""


def _blocks(
    hook: Hook, outcome: HookOutcome, code: int | None, said: HookReply, problem: str
) -> str:
    """Say why a hook blocks what it ran for; "" if it doesn't."""
    name = f"the hook {one_line(hook.line)[:_NAME_CHARS]}"
    if said.unclear and hook.event not in _AFTER:
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
    results: list[object] = []
    for run in runs:
        if run.outcome == "failed" and run.code is None:
            # A guard that did not run has not agreed.
            verdicts.setdefault("ask", f"A hook that judges this did not run: {run.problem}.")
        elif run.outcome == "ok" and run.said.verdict:
            verdicts.setdefault(run.said.verdict, run.said.reason)
        if run.said.changed is not None and run.said.changed not in changed:
            changed.append(run.said.changed)
        if run.said.result is not None and run.said.result not in results:
            results.append(run.said.result)
    verdict = hook_answers.strictest(verdicts)
    if verdict == "allow" and changed and not all(_allows_its_change(run) for run in runs):
        verdict = ""  # a yes is to the input that its hook knew
    if len(changed) > 1:
        blocked.append("several hooks want to change what this call does")
    if len(results) > 1:
        # Each may have taken out what another left in.
        results = ["[left out: several of the user's hooks changed this result, each differently]"]
    return HookAnswer(
        _cut("\n".join(blocked)),
        _cut("\n\n".join(filter(str.strip, map(_context, runs)))),
        verdict,
        _cut(verdicts.get(verdict, "")),
        changed[0] if changed else None,
        any(run.said.stops for run in runs),
        results[0] if results else None,
        "\n".join(run.script for run in runs if run.script),
    )


def _allows_its_change(run: _Run) -> bool:
    """True unless a hook changed a call without a yes of its own."""
    return run.said.changed is None or run.said.verdict == "allow"


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

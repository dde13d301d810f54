"""From a tool call to its one result: parse, decide, ask, record the intent, run, guard, record.

Every call of an answer leaves exactly one result in the record, whatever happens: a failure is a
result with is_error, a refusal too, and an interrupt closes what is still open.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from tui.agent.agent_context import AgentContext
from tui.agent.checkpoints import CallChanges
from tui.agent.edit_checks import EditChecks
from tui.agent.hooks import NOTHING, HookAnswer, HookRunner
from tui.agent.interrupted_work import InterruptedWork, calls_of, interrupted_work
from tui.agent.pause import TurnPausedError
from tui.agent.server_features import ServerFeatures
from tui.agent.supervised_commands import SupervisedCommands
from tui.agent.tool_results import SHOWN_CHARS, PendingCall, ToolResults
from tui.agent.user_questions import put
from tui.core.cancellation import to_the_end
from tui.core.documents import PAGE_TOKENS
from tui.core.errors import ToolError
from tui.core.facts import (
    CallBegan,
    PermissionAnswered,
    PermissionAsked,
    ProcessBegan,
    TodosChanged,
    ToolOutputChunk,
    ToolStarted,
)
from tui.core.messages import (
    Block,
    ToolOutput,
    as_meant,
    blocks_of,
    list_of,
    object_of,
    string_of,
    text_of,
    tool_calls,
)
from tui.core.questions import UserAnswers, UserQuestion
from tui.core.text_cleaning import without_colours
from tui.permissions.plain_command import ReadableArea
from tui.permissions.plain_command import parse as parse_plain
from tui.permissions.plain_environment import plain_environment
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Call, Decision
from tui.session.records import encode
from tui.tools.base import Params, Todo, Tool, ToolContext, UrlAccess
from tui.tools.file_access import as_now, take_snapshot
from tui.tools.limits.clamp import Room, clamp_text
from tui.tools.limits.pipeline import GuardLimits
from tui.tools.process import born
from tui.tools.run_command import CommandDetachedError
from tui.tools.stale_text import StaleFileError

if TYPE_CHECKING:
    from tui.keeper.command import Starter
    from tui.permissions.named_needs import NamedNeeds
    from tui.permissions.reading_rules import ReadingRules
    from tui.permissions.sandbox.explain import Explanation
    from tui.permissions.sandbox.inner_clones import StoppedClones

_ONLY_SETS = frozenset({"config", "remote"})
"""Subcommands of git that do nothing else than to write its settings."""
_DOES_MORE = frozenset({"branch", "submodule", "clone", "switch", "checkout", "worktree"})
"""Those that may have done a part before they fail."""

_CHANGED_BY_HOOK = "A hook changed what this call does: it is shown as it would run."

SHOWN_LABEL_CHARS = 1000
"""Of a call's label in its event."""
LABEL_CHARS = 200
"""Of a call's label in its intent, and of a command in the record of its process."""

_SHOWN_FILES = 5
_NO_LEVEL_BETWEEN = "The sandbox on this machine only confines commands that write nothing."

log = logging.getLogger(__name__)


class _UnknownEndError(Exception):
    """A command began under an earlier run of the program, and nothing says how it ended."""


@dataclass(frozen=True, slots=True)
class _Checked:
    """A call whose arguments were checked, with what it takes to run it."""

    state: PendingCall
    call: Call
    tool: Tool[Any]
    params: Params
    ctx: ToolContext


@dataclass(frozen=True, slots=True)
class _Stopped:
    """A command that was stopped at a level where it could write, and what would give it more."""

    key: tuple[object, ...]
    level: Level
    wider: Level
    needs: str
    wrote: tuple[str, ...]
    known: bool
    """Whether what it wrote is known."""

    def asking(self, decision: Decision) -> Decision:
        """The same call, asked about at the wider level."""
        files = ", ".join(self.wrote[:_SHOWN_FILES])
        if more := len(self.wrote[_SHOWN_FILES:]):
            files = f"{files} and {more} more"
        wrote = f"wrote {files}" if files else "wrote nothing in the workspace"
        wrote = wrote if self.known else "may have written files"
        why = f"It was stopped at the level {self.level}: it {self.needs}. That try {wrote}."
        return replace(decision, answer="ask", reason=why, by="sandbox", level=self.wider)


@dataclass(slots=True)
class ToolDispatcher:
    """Carries out the tool calls of one agent."""

    ctx: AgentContext
    results: ToolResults
    features: ServerFeatures
    hooks: HookRunner
    checks: EditChecks = field(init=False)
    kept: SupervisedCommands = field(init=False)
    _ids: set[str] = field(default_factory=set[str])
    """Of all calls of the session."""
    _repeated: Collection[str] = ()
    """The calls that a person lets run again, whatever they may have done."""
    _holds: Collection[Level] = ()
    """The levels that the sandbox holds for the command that is looked at: they run one by one."""
    _stopped: _Stopped | None = None
    """The last command, where walls stopped it and it may have written."""

    def __post_init__(self) -> None:
        self.checks = EditChecks(self.ctx)
        self.kept = SupervisedCommands(self.ctx)
        for record in self.ctx.records:
            if record.type == "assistant":
                calls = tool_calls(blocks_of(record.data.get("content")))
                self._ids.update(str(call.get("id")) for call in calls)

    def unique_ids(self, content: Sequence[Block]) -> list[Block]:
        """The content with call ids new to the session; some servers count from 0 again."""
        renamed = list(content)
        for index, block in enumerate(content):
            if block.get("type") == "tool_use":
                given = fresh = str(block.get("id") or "call")
                n = 1
                while fresh in self._ids or self.kept.exists(fresh):
                    n += 1
                    fresh = f"{given}_{n}"
                self._ids.add(fresh)
                renamed[index] = {**block, "id": fresh}
        return renamed

    async def run_all(self, calls: Sequence[Block]) -> None:
        """Run the calls of one answer: reads side by side, everything else alone and in order.

        Raises TurnPausedError where the turn was paused and calls are left.
        """
        calls = [as_meant(call) for call in calls]
        open_calls = {str(call["id"]): PendingCall(call) for call in calls}
        try:
            for group in self._groups(calls):
                if self.ctx.state.pause.wanted:
                    break
                async with asyncio.TaskGroup() as side_by_side:
                    for call in group:
                        side_by_side.create_task(self._run(open_calls, str(call["id"])))
            if self.ctx.state.pause.wanted and open_calls:
                open_calls = {}  # they are made when the turn continues
                raise TurnPausedError
        except ExceptionGroup as group:
            raise _first_of(group) from group
        finally:
            await self.close_open(open_calls.values())

    def interrupted_work(self) -> InterruptedWork:
        """What an earlier run of the session left open. Blocks."""
        ctx, jobs = self.ctx, self.kept.jobs()
        records, path = list(ctx.records), ctx.session.path
        return interrupted_work(records, ctx.workspace.root, path, ctx.toolbox.kept, jobs)

    async def recover(self, ids: Collection[str], *, repeat: bool = False) -> None:
        """Give calls that an earlier run left open their results: what is kept, or what comes of
        those that may run (`Interrupted.recovery`). Where it is not known what one did, it stays
        open, unless it is to be repeated: a person said so.

        Raises as `run_all`.
        """
        work = await asyncio.to_thread(self.interrupted_work)
        unknown = {call.call_id for call in work.calls if call.recovery == "unknown"}
        self._repeated = unknown if repeat else ()
        try:
            await self.run_all(
                calls_of(self.ctx.records, {*ids} - unknown.difference(self._repeated))
            )
        finally:
            self._repeated = ()

    async def close_open(self, calls: Collection[PendingCall]) -> None:
        """Give calls that were interrupted their result; nothing of their commands is kept."""
        await self.results.close(calls)
        for state in calls:
            await self.kept.recorded(state.id)

    async def close(self, calls: Iterable[Block]) -> None:
        """Give calls that an earlier run left open their result, which won't be run."""
        left = [PendingCall(call) for call in calls]
        ids = {state.id for state in left}
        begun = [
            string_of(record.data.get("call_id"))
            for record in self.ctx.records
            if record.type == "intent"
            and record.data.get("effect") == "run"
            and record.data.get("call_id") in ids
        ]
        if begun and self.ctx.checkpoints is not None:
            await self.ctx.checkpoints.after(begun[-1])
        await self.close_open(left)

    def _groups(self, calls: Iterable[Block]) -> Iterator[list[Block]]:
        together: list[Block] = []
        for call in calls:
            tool = self.ctx.toolbox.callable_tool(str(call["name"]))
            if tool is not None and tool.effect in {"write", "run"}:
                if together:
                    yield together
                    together = []
                yield [call]
            else:
                together.append(call)
        if together:
            yield together

    async def _run(self, open_calls: dict[str, PendingCall], id_: str) -> None:
        """One call, from start to recorded result; then it is not open any more."""
        state = open_calls[id_]
        state.started = self.ctx.clock.monotonic()
        keep, tool = "head", None
        try:
            tool, params = self._parse(state.call, await self.kept.seconds(state.id))
            keep = tool.keep
            output = await self._resumed(state, tool, params)
            output = output or await self._permitted(state, tool, params)
        except CommandDetachedError:
            self.ctx.state.pause.begin()  # it stays without a result, for the program's next run
            return
        except _UnknownEndError:
            return  # it is closed as one that was interrupted
        except asyncio.CancelledError:
            if state.finished is not None:  # what it did counts, whatever hooks had to say
                await to_the_end(self.results.finish(open_calls, state, state.finished, keep))
            raise
        except ToolError as error:
            output = ToolOutput.text(str(error), is_error=True, summary=error.message)
            if isinstance(error, StaleFileError):
                output = replace(output, details=self._shown_by(error))
        except Exception as error:
            log.exception("tool %s failed", state.name)
            what = f"{type(error).__name__}: {error}"
            output = ToolOutput.text(f"{state.name} failed: {what}", is_error=True, summary=what)
        await to_the_end(self.results.finish(open_calls, state, output, keep))
        if tool is not None and tool.effect == "run":
            await self.kept.recorded(state.id)

    def _shown_by(self, error: StaleFileError) -> dict[str, Any]:
        """The details of a refused edit: where it says all that changed, the model knows it."""
        if (found := error.found) is None:
            return {}
        self.ctx.toolbox.files.note_seen(found.path, found.stat, found.sha256, found.data)
        fact = {"path": str(found.path), "size": found.stat.st_size}
        return {**fact, "mtime_ns": found.stat.st_mtime_ns, "sha256": found.sha256}

    async def _resumed(
        self, state: PendingCall, tool: Tool[Any], params: Params
    ) -> ToolOutput | None:
        """What comes of a command that an earlier run of the program had begun and kept; None where
        there is none, so that the call may run. Raises _UnknownEndError where it began, and it is
        not known how it ended."""
        if tool.effect != "run":
            return None
        kept = await self.kept.state(state.id)
        if kept == "lost" and state.id in self._repeated:
            await self.kept.forget(state.id)
            return None
        if not kept:
            return None
        async with self._alone(state):
            known = kept in {"running", "finished"}
            output = await tool.resume(params, self._context(state)) if known else None
            if output is None:
                raise _UnknownEndError
            if self.ctx.checkpoints is not None:
                output = (await self.ctx.checkpoints.after(state.id)).added_to(output)
            if self.ctx.toolbox.confinement is not None:
                lines = [f"[{line}]" for line in await self.ctx.toolbox.confinement.tidy()]
                output = output.with_lines(lines) if lines else output
        state.started = self.ctx.clock.monotonic() - float(output.details.get("seconds") or 0)
        state.finished = output
        return await self._after(state, output)

    async def _after(self, state: PendingCall, output: ToolOutput) -> ToolOutput:
        """The result with what hooks say about it, and with what they made of its files."""
        text, failed = text_of(output.content), output.is_error
        hooked = await self.hooks.after_tool(
            state.id, state.name, _input(state.call), text, failed=failed
        )
        if hooked is not NOTHING and not failed:
            details, changed = await asyncio.to_thread(as_now, output.details)
            names = ", ".join(self.ctx.workspace.show(path) for path in changed)
            what = [f"[a hook changed {names}: read it again before you edit it]"] if names else []
            output = replace(output, details=details).with_lines(what)
        lines = [f"[a hook of the user says: {hooked.blocked}]"] if hooked.blocked else []
        lines += [hooked.context] if hooked.context else []
        return output.with_lines(lines) if lines else output

    def _parse(self, call: Block, seconds: float) -> tuple[Tool[Any], Params]:
        """The tool and its checked arguments; publishes ToolStarted either way. Its command has
        run that many seconds already."""
        name = str(call.get("name"))
        arguments: object = call.get("input")
        shown = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
        started = ToolStarted(str(call["id"]), name, shown)
        try:
            tool = self._tool(name)
            params = tool.parse(call.get("input"))
        except ToolError:
            self.ctx.publish(started)
            raise
        label = tool.label(params)
        label = label if len(label) <= SHOWN_LABEL_CHARS else f"{label[: SHOWN_LABEL_CHARS - 1]}…"
        self.ctx.publish(ToolStarted(started.id, name, shown, label, seconds))
        return tool, params

    def _tool(self, name: str) -> Tool[Any]:
        if (tool := self.ctx.toolbox.callable_tool(name)) is not None:
            return tool
        known = ", ".join(self.ctx.toolbox.tools)
        raise ToolError(f"There is no tool named {name!r}.", hint=f"The tools are: {known}.")

    async def _permitted(self, state: PendingCall, tool: Tool[Any], params: Params) -> ToolOutput:
        """Let hooks look at a call, and carry it out as far as it is allowed."""
        if self.ctx.parent is not None and not self.ctx.isolated:
            self.ctx.workspace = self.ctx.parent.workspace
        if self.ctx.toolbox.confinement is not None:
            temporary = await self.ctx.toolbox.confinement.temporary()
            self.ctx.workspace = replace(self.ctx.workspace, temporary=temporary)
            self.ctx.toolbox.confinement.denied = self.ctx.rules.gate.policy.denied_places
        checked = self._checked(state, tool, params)
        self._holds = await self._levels(checked.call)
        hooked = await self.hooks.before_tool(state.id, tool.name, _input(state.call))
        lines = [hooked.context] if hooked.context else []
        if hooked.changed is not None and not hooked.blocked:
            checked = self._changed(checked, hooked.changed)
            self._holds = await self._levels(checked.call)
            given = json.dumps(_input(state.call), ensure_ascii=False, default=str)
            lines.append(f"[a hook of the user changed the input of this call to: {given}]")
        output = await self._decided(checked, hooked)
        return output.with_lines(lines)

    def _checked(self, state: PendingCall, tool: Tool[Any], params: Params) -> _Checked:
        """A call as the permissions see it."""
        call = Call(
            id=state.id,
            tool=tool.name,
            effect=tool.effect,
            subject=tool.subject(params),
            command=getattr(params, "command", None) if tool.effect == "run" else None,
            paths=tool.paths(params),
            background=bool(getattr(params, "background", False)),
            agent=self.ctx.role,
        )
        return _Checked(state, call, tool, params, self._context(state))

    def _changed(self, checked: _Checked, given: Mapping[str, Any]) -> _Checked:
        """A call with the input that a hook gives it: from here on it is this call."""
        state, tool = checked.state, checked.tool
        try:
            params = tool.parse(given)
        except ToolError as error:
            raise ToolError(f"A hook gave the call an input that it can't have. {error}") from error
        state.call = {**state.call, "input": dict(given)}
        return self._checked(state, tool, params)

    async def _decided(self, checked: _Checked, hooked: HookAnswer) -> ToolOutput:
        """Decide, ask if needed, record the intent, run."""
        state, call, tool = checked.state, checked.call, checked.tool
        decision = _hooked(self._decide(call), hooked)
        if decision.answer == "ask":
            call = await self._previewed(checked, decision.level)
            answer = await self._ask(call, decision, hooked)
            state.started = self.ctx.clock.monotonic()  # a person's thinking is not the tool's time
            self._record_permission(call, answer.answer, answer.by, answer.reason, decision.level)
            decision = replace(decision, by=answer.by)
            if answer.answer == "no":
                self._stopped = None
                return _refused(answer.reason, by_person=answer.by == "person")
        elif decision.answer == "deny":
            self._record_permission(call, "deny", decision.by, decision.reason)
            return _refused(decision.reason, by_person=False)
        elif tool.effect not in {"none", "read"} or decision.by == "elevated":
            self._record_permission(call, "allow", decision.by, decision.reason, decision.level)
        else:
            self._debug_decision(tool.name, "allow", decision.by, decision.reason)
        if tool.effect != "write":
            return await self._run_recorded(decision, checked)
        async with self._alone(state):
            if self.ctx.checkpoints is not None:
                await self.ctx.checkpoints.ready()
            output = await self._run_recorded(decision, checked)
        state.finished = output
        self._tell_parents(output)
        return await self.checks.after_edit(output)

    def _tell_parents(self, output: ToolOutput) -> None:
        """Let the agents that work in the same folder know who wrote a file."""
        wrote = {
            string_of(one.get("path")): string_of(one.get("after_sha256"))
            for one in [output.details, *map(object_of, list_of(output.details.get("files")))]
            if "after_sha256" in one
        }
        ctx = self.ctx
        while ctx.parent is not None and not ctx.isolated:
            ctx = ctx.parent
            ctx.toolbox.by_sub_agents.update(wrote)

    @asynccontextmanager
    async def _alone(self, state: PendingCall) -> AsyncGenerator[None]:
        """While nothing else writes or runs, in a sub-agent neither. That wait is not the tool's
        time."""
        async with self.ctx.rules.writing:
            state.started = self.ctx.clock.monotonic()
            yield

    async def _run_recorded(self, decision: Decision, checked: _Checked) -> ToolOutput:
        """Record that a call which is allowed begins, and run it."""
        state, call, tool, params = checked.state, checked.call, checked.tool, checked.params
        if tool.effect in {"read", "write"}:
            self.ctx.toolbox.touched.update(decision.paths)
        if tool.effect in {"write", "run"}:
            self._stopped = None
        arguments = sha256(encode({"input": state.call.get("input")})).hexdigest()
        label = " ".join(tool.label(params).split())[:LABEL_CHARS]
        target = await self._target(tool, params)
        self.ctx.record(CallBegan(state.id, tool.name, tool.effect, arguments, label, **target))
        await self.ctx.recorder.sync()
        if self.ctx.session.lost:  # whoever has the session now decides about this call
            raise ToolError(f"{self.ctx.session.lost} Nothing was done.")
        ctx = replace(
            checked.ctx,
            recorded=self.ctx.session.saved,
            allowed=frozenset(decision.paths),
            url_access=partial(self._url_access, call),
        )
        if decision.by == "safe":
            ctx = replace(ctx, environment=plain_environment(ctx.workspace))
        if decision.by == "safe" and decision.level is Level.OUTSIDE:
            ctx = replace(ctx, starter=await self._steady(call))
        output = await self._carry_out(decision, replace(checked, ctx=ctx))
        state.finished = output
        self.ctx.state.turn_ends |= output.ends_turn
        return await self._after(state, output)

    async def _carry_out(self, decision: Decision, checked: _Checked) -> ToolOutput:
        """Run what is allowed; where a wall stops a command, ask for what it needs."""
        call = checked.call
        if call.command is None:
            if checked.tool.effect != "run":
                return await checked.tool.run(checked.params, checked.ctx)
            async with self._checkpoints(call.id) as changes:
                output = await checked.tool.run(checked.params, checked.ctx)
            return changes.added_to(output)
        level = decision.level
        output, said = await self._at(level, checked, reads=decision.by == "safe")
        output = await self._past_watching(decision, checked, output)
        past = await self._past_clones(level, checked, output)
        if past is not output:
            return past
        if said is None or said.level is None or self.ctx.state.mode == "plan":
            return output
        so_far = _so_far(call, level, said, failed=output.is_error)
        if not so_far:
            return self._stop(call, level, said, output)
        wider = said.level if said.level in self._holds else Level.OUTSIDE
        other = "" if wider is said.level else f" {_NO_LEVEL_BETWEEN}"
        why, once = f"It {said.needs}. {so_far}{other}", said.git_settings
        asked = Decision("ask", why, "sandbox", decision.risk, wider, walls=True, once=once)
        answer = await self._ask_again(checked, asked)
        if answer.answer == "no":
            reason = f" {answer.reason}" if answer.reason else ""
            return output.with_lines([f"[what it needs was not allowed.{reason}]"])
        await self.kept.forget(call.id)
        output, again = await self._at(wider, checked, git_settings=said.git_settings)
        past = await self._past_clones(wider, checked, output)
        return self._stop(call, wider, again, output) if past is output else past

    async def _past_watching(
        self, decision: Decision, checked: _Checked, output: ToolOutput
    ) -> ToolOutput:
        """What a command gave; where no walls hold it and its folders can't be watched, ask whether
        it may run without that."""
        if decision.by != "safe" or decision.level is not Level.OUTSIDE or not output.is_error:
            return output
        from tui.permissions.sandbox.steady_command import UNWATCHED  # noqa: PLC0415 - on demand

        code = output.details.get("exit_code")
        if code not in UNWATCHED:
            return output
        why = f"{UNWATCHED[code]}. It would run unwatched: a swapped folder may lead it anywhere."
        asked = replace(decision, answer="ask", reason=why, by="default")
        free = self.ctx.state.elevated and self.ctx.state.mode != "plan"
        answer = Answer("once") if free else await self._ask_again(checked, asked)
        if answer.answer == "no":
            reason = f" {answer.reason}" if answer.reason else ""
            return output.with_lines([f"[to run it unwatched was not allowed.{reason}]"])
        await self.kept.forget(checked.call.id)
        unwatched = replace(checked, ctx=replace(checked.ctx, starter=None))
        return (await self._at(decision.level, unwatched, reads=True))[0]

    async def _past_clones(self, level: Level, checked: _Checked, output: ToolOutput) -> ToolOutput:
        """What a command gave; where the walls of a clone in the workspace stopped it, ask whether
        it may do that, and run it again."""
        call, confinement, workspace = (
            checked.call,
            self.ctx.toolbox.confinement,
            self.ctx.workspace,
        )
        confined = level not in {Level.READ_ONLY, Level.OUTSIDE} and not call.background
        if confinement is None or call.command is None or not confined:
            return output
        cwd = workspace.resolve(call.paths[0]) if call.paths else workspace.root
        said = text_of(output.content)
        stopped = await asyncio.to_thread(
            confinement.stopped_clones, call.command, cwd, said, failed=output.is_error
        )
        if stopped is None:
            return output
        what = stopped.words(workspace.root)
        why = f"It {what}, and was stopped there. It would run again, from its start."
        asked = Decision("ask", why, "sandbox", level=level, walls=True, once=True)
        answer = await self._ask_again(checked, asked)
        if answer.answer == "no":
            reason = f" {answer.reason}" if answer.reason else ""
            return output.with_lines([f"[it {what}: that was not allowed.{reason}]"])
        await self.kept.forget(call.id)
        return (await self._at(level, checked, clones=stopped))[0]

    def _stop(
        self, call: Call, level: Level, said: Explanation | None, output: ToolOutput
    ) -> ToolOutput:
        """Keep that walls stopped a command which may have written: it is not run again by itself,
        and the same call, if it is the next one, asks for more."""
        if said is None or said.level is None or said.git_settings or not output.is_error:
            return output
        wrote = tuple(map(string_of, list_of(output.details.get("changed_files"))))
        known = self.ctx.checkpoints is not None
        self._stopped = _Stopped(_key(call), level, said.level, said.needs, wrote, known=known)
        return output.with_lines([f"[the same call again asks for the level {said.level}]"])

    async def _ask_again(self, checked: _Checked, asked: Decision) -> Answer:
        """Ask whether a command that a wall stopped may have what it needs."""
        call = await self._previewed(checked, asked.level)
        async with self.ctx.rules.asking:
            answer = await self._question(call, asked)
        checked.state.started = self.ctx.clock.monotonic()
        self._record_permission(call, answer.answer, answer.by, answer.reason, asked.level)
        return answer

    async def _at(
        self,
        level: Level,
        checked: _Checked,
        *,
        reads: bool = False,
        git_settings: bool = False,
        clones: StoppedClones | None = None,
    ) -> tuple[ToolOutput, Explanation | None]:
        """Run a command at a level of the sandbox; with it what a wall kept it from, if anything.

        The model is told that in the output, and what was moved away or put back. `reads`: it is
        known to change nothing.
        """
        if level is Level.READ_ONLY and self._holds:
            return await self._confined(level, checked)
        watched = nullcontext(CallChanges()) if reads else self._checkpoints(checked.call.id)
        async with self._alone(checked.state), watched as changes:
            output, said = await self._confined(
                level, checked, git_settings=git_settings, clones=clones
            )
        return changes.added_to(output), said

    async def _steady(self, call: Call) -> Starter:
        """Make a starter for a command that only reads, where no walls hold it."""
        from tui.permissions.sandbox.steady import steady  # noqa: PLC0415 - on demand

        ctx = self.ctx
        workspace = ctx.workspace.widen(ctx.state.elevated)
        area = ReadableArea(workspace, ctx.rules.gate.policy.private)

        def made() -> Starter:
            folder = workspace.resolve(call.paths[0]) if call.paths else workspace.root
            return steady(call.command or "", folder, area, ctx.toolbox.jobs.starter)

        return await asyncio.to_thread(made)

    @asynccontextmanager
    async def _checkpoints(self, call_id: str) -> AsyncGenerator[CallChanges]:
        """While a call may change files in the workspace."""
        if self.ctx.checkpoints is None:
            yield CallChanges()
            return
        async with self.ctx.checkpoints.around(call_id) as changes:
            yield changes

    async def _confined(
        self,
        level: Level,
        checked: _Checked,
        *,
        git_settings: bool = False,
        clones: StoppedClones | None = None,
    ) -> tuple[ToolOutput, Explanation | None]:
        tool, params, ctx = checked.tool, checked.params, checked.ctx
        confinement = self.ctx.toolbox.confinement
        if confinement is None or level is Level.OUTSIDE:
            return await tool.run(params, ctx), None
        starter = confinement.starter(level, git_settings=git_settings, clones=clones)
        output = await tool.run(params, replace(ctx, starter=starter))
        # What only reads puts nothing anywhere; another sub-agent's command may be starting.
        moved = await confinement.tidy() if level is not Level.READ_ONLY else []
        lines = [f"[{line}]" for line in moved]
        said = await confinement.explain(
            text_of(output.content),
            level,
            partial(self._named, checked.call),
            failed=output.is_error,
        )
        if said and (output.is_error or said.needs):
            lines.append(f"[{said.text}]")
        return output.with_lines(lines), said

    async def _named(self, call: Call) -> NamedNeeds:
        """What the words of a command name that it needs."""
        from tui.permissions.named_needs import named_needs  # noqa: PLC0415 - on demand

        workspace, home = self.ctx.workspace, self.ctx.rules.gate.policy.home
        folder = workspace.resolve(call.paths[0]) if call.paths else workspace.root
        return await asyncio.to_thread(named_needs, call.command or "", folder, workspace, home)

    async def _previewed(self, checked: _Checked, level: Level) -> Call:
        """A call with what a person who is asked about a level gets to see."""
        preview = await checked.tool.preview(checked.params, checked.ctx)
        call, gate = checked.call, self.ctx.rules.gate
        return replace(
            call,
            preview_kind=preview.kind,
            preview=preview.text,
            scope=gate.scope_of(call),
            always=gate.always(call, self._granted(level)),
        )

    def _granted(self, level: Level) -> Level:
        """What a lasting yes stands for: where there is no sandbox, its word for later ones."""
        return level if self._holds else Level.WORKSPACE

    async def _target(self, tool: Tool[Any], params: Params) -> dict[str, Any]:
        """For a write: the file, and what it holds before (null: there is none). For one of
        several files, all of them."""
        paths = tool.paths(params)
        if tool.effect != "write" or not paths:
            return {}
        try:
            files = [await asyncio.to_thread(self._before, path) for path in paths]
        except ToolError:
            return {}  # the tool will say what is wrong
        return files[0] if len(files) == 1 else {"files": files}

    def _before(self, named: str) -> dict[str, Any]:
        path = self.ctx.workspace.resolve(named)
        found = take_snapshot(path, named)
        if found is not None and found.sha256 is None:
            return {"path": str(path)}
        return {"path": str(path), "before_sha256": found.sha256 if found else None}

    def _decide(self, call: Call) -> Decision:
        now = self.ctx
        decision = now.rules.gate.decide(
            call,
            mode=now.state.mode,
            elevated=now.state.elevated,
            workspace=now.workspace,
            holds=self._holds,
        )
        stopped = self._stopped
        if stopped is None or stopped.key != _key(call) or decision.answer == "deny":
            return decision
        narrow = decision.level in self._holds and decision.level is not stopped.wider
        return stopped.asking(decision) if narrow and not now.state.elevated else decision

    def _url_access(self, call: Call, url: str) -> UrlAccess:
        """What the permissions say about an address that a call is led to."""
        decision = self._decide(replace(call, subject=url))
        free = decision.answer == "ask" and decision.by == "default"
        return UrlAccess("site" if free else decision.answer, decision.private)

    async def _levels(self, call: Call) -> Collection[Level]:
        """The levels that the sandbox holds for a command; none for anything else."""
        confinement = self.ctx.toolbox.confinement
        return await confinement.levels() if confinement and call.command is not None else ()

    async def _ask(self, call: Call, decision: Decision, hooked: HookAnswer) -> Answer:
        """Ask the person; one question at a time, and an earlier answer may settle a later one."""
        async with self.ctx.rules.asking:
            paths = decision.paths
            decision = _hooked(self._decide(call), hooked)
            if decision.paths != paths and decision.answer != "deny":
                raise ToolError("The path now leads somewhere else; nothing was done.")
            if decision.answer != "ask":
                yes = decision.answer == "allow"
                return Answer("once" if yes else "no", decision.reason, by=decision.by)
            return await self._question(call, decision)

    async def _question(self, call: Call, decision: Decision) -> Answer:
        self.ctx.publish(PermissionAsked(call.id, call.tool, decision.reason))
        answer = await self.ctx.state.pause.question(self.ctx.rules.approver.ask(call, decision))
        self.ctx.rules.gate.record(call, answer, self._granted(decision.level))
        return answer

    def _record_permission(
        self, call: Call, answer: str, by: str, reason: str, level: Level = Level.OUTSIDE
    ) -> None:
        runs = self._holds and call.command is not None and answer not in {"deny", "no"}
        shown = level.value if runs else ""
        self.ctx.record(
            PermissionAnswered(call.id, call.tool, answer, by, reason, shown, call.subject)
        )
        self._debug_decision(call.tool, answer, by, reason)

    def _debug_decision(self, tool: str, answer: str, by: str, reason: str) -> None:
        self.ctx.debug(f"[DEBUG] Decision: {tool}: {answer} (by {by}): {reason}")

    def _context(self, state: PendingCall) -> ToolContext:
        limits = self.ctx.guard_limits
        room = Room(limits.config.clamp_bytes, limits.config.clamp_lines)

        def emit(text: str) -> None:
            state.add_output(without_colours(text))
            for part in chunks_of(clamp_text(text, room, "ends")):
                self.ctx.publish(ToolOutputChunk(state.id, part))

        def set_todos(todos: Sequence[Todo]) -> None:
            items = tuple({"text": todo.text, "status": todo.status} for todo in todos)
            self.ctx.publish(TodosChanged(items))

        def started(pid: int) -> None:
            command = " ".join(str(state.call.get("input", {}).get("command", "")).split())
            self.ctx.record(ProcessBegan(state.id, pid, born(pid), command[:LABEL_CHARS]))

        def waited() -> None:
            state.started = self.ctx.clock.monotonic()

        async def ask(questions: Sequence[UserQuestion]) -> UserAnswers:
            try:
                return await put(self.ctx, state.id, state.name, questions)
            finally:
                waited()

        confinement = self.ctx.toolbox.confinement
        return ToolContext(
            call_id=state.id,
            start_reader=confinement.start_reader if confinement is not None else None,
            reading=self._reading(),
            workspace=self.ctx.workspace,
            clock=self.ctx.clock,
            files=self.ctx.toolbox.files,
            jobs=self.ctx.toolbox.jobs,
            spill_path=self.results.spill_path(state),
            kept=self.kept.folder(state.id),
            emit=emit,
            set_todos=set_todos,
            read_page_bytes=limits.page_bytes,
            guard=limits.config,
            leave=state.set_partial,
            started=started,
            waited=waited,
            ask=ask,
            document_pages=self._document_pages(limits),
        )

    def _reading(self) -> Callable[[Path], Literal["allow", "ask", "deny"]]:
        """What the rules say about reading a file; what they name is looked up when that is
        asked."""
        now = self.ctx
        rules: list[ReadingRules] = []

        def answer(path: Path) -> Literal["allow", "ask", "deny"]:
            if not rules:
                rules.append(
                    now.rules.gate.policy.reading(now.workspace, elevated=now.state.elevated)
                )
            return rules[0].answer(path)

        return answer

    def _document_pages(self, limits: GuardLimits) -> int:
        """How many pages of a PDF fit into one result as a document: half of what a result may
        have in tokens. 0 where it is not known that the model takes documents."""
        model, refused = self.ctx.link.model, self.features.off(self.ctx.link.model.id)
        if not (self.ctx.link.first_party and model.documents) or "documents" in refused:
            return 0
        return limits.share_tokens // 2 // PAGE_TOKENS


def chunks_of(text: str) -> Iterator[str]:
    """A text in parts of at most SHOWN_CHARS; no escape sequence is cut."""
    start = 0
    while start < len(text):
        end = start + SHOWN_CHARS
        mark = text.rfind("\x1b", start + 1, end)
        if mark > start and end < len(text) and "m" not in text[mark:end]:
            end = mark
        yield text[start:end]
        start = end


def _first_of(group: ExceptionGroup[Exception]) -> Exception:
    """The first error of calls that ran side by side; each is logged, their number is a note."""
    errors = list(_leaves(group))
    for error in errors:
        log.error("couldn't finish a call", exc_info=error)
    if more := len(errors) - 1:
        errors[0].add_note(f"and {more} more, see the log file")
    return errors[0]


def _leaves(group: ExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, ExceptionGroup):
            yield from _leaves(cast("ExceptionGroup[Exception]", error))
        else:
            yield error


def _input(call: Block) -> dict[str, Any]:
    return object_of(call.get("input"))


def _hooked(decision: Decision, hooked: HookAnswer) -> Decision:
    """A decision after what hooks said: they forbid anything, ask about what is allowed, and allow
    what would be asked; what they changed is always asked, as it would run. What rules or the
    program forbid stays so."""
    if decision.answer == "deny":
        return decision
    if hooked.blocked:
        return replace(decision, answer="deny", reason=hooked.blocked, by="hook")
    if hooked.changed is not None:
        texts = (
            _CHANGED_BY_HOOK,
            hooked.reason,
            decision.reason if decision.answer == "ask" else "",
        )
        return replace(decision, answer="ask", reason=" ".join(filter(None, texts)), by="hook")
    if hooked.verdict == "ask" and decision.answer == "allow":
        reason = hooked.reason or "A hook asks about it."
        return replace(decision, answer="ask", reason=reason, by="hook")
    if hooked.verdict == "allow" and decision.answer == "ask":
        return replace(decision, answer="allow", reason=hooked.reason or "A hook.", by="hook")
    return decision


def _one_step_of_git(command: str | None) -> str:
    """The subcommand, where a command is a single one of git: it does it or fails as a whole."""
    words = [part.words for part in parse_plain(command or "") or ()]
    return words[0][1] if len(words) == 1 and words[0][0] == "git" and len(words[0]) > 1 else ""


def _so_far(call: Call, level: Level, said: Explanation, *, failed: bool) -> str:
    """What a command has done that may run again with more; "" where it could do a part of its work
    twice."""
    if level is Level.READ_ONLY and not said.git_settings:
        return "So far it only read: nothing was changed."
    git = "" if call.background else _one_step_of_git(call.command)
    sets = git in _ONLY_SETS or (git == "branch" and not failed)
    if level is Level.READ_ONLY and (failed or sets):
        return "So far it only read: nothing was changed."
    atomic = failed and bool(git) and git not in _DOES_MORE and not said.tried
    return "Git hasn't done it." if atomic or (said.git_settings and sets) else ""


def _key(call: Call) -> tuple[object, ...]:
    return call.tool, call.subject, call.paths, call.background


def _refused(reason: str, *, by_person: bool) -> ToolOutput:
    """The result of a call that was not allowed, worded for the model."""
    if by_person:
        text = "Declined by the user; it didn't run."
        text += (
            f" Reason: {reason}" if reason else " Ask what to do instead, or continue without it."
        )
    else:
        text = f"Not allowed, not run: {reason}"
    return ToolOutput.text(text, is_error=True, summary="denied")

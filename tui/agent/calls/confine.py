"""Fourth station, of commands only: the walls around one, and what it may do past them.

A command runs at the level that was decided. Where a wall stops it, the person is asked if it may
have what it needs, and it runs again. One that may have done a part of its work is not run twice
by itself: the same call, if it is the next one, asks for more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from tui.agent.agent_context import AgentContext
from tui.agent.calls.decide import ask_again, ask_for_more
from tui.agent.calls.exclusive import alone, watched
from tui.agent.calls.state import CallContext, CheckedCall, StoppedCommand
from tui.agent.checkpoints import CallChanges
from tui.core.dataclass import dataclass, replace
from tui.core.messages import ToolOutput, list_of, string_of, text_of
from tui.core.redaction import child_environment
from tui.core.workspace import Workspace
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Call, Decision

if TYPE_CHECKING:
    from pathlib import Path

    from tui.keeper.command import Starter
    from tui.permissions.named_needs import NamedNeeds
    from tui.permissions.sandbox.confinement import Confinement
    from tui.permissions.sandbox.explain import Explanation
    from tui.permissions.sandbox.git_copies import PendingSettings
    from tui.permissions.sandbox.inner_clones import StoppedClones

_DOES_MORE = frozenset({"branch", "submodule", "clone", "switch", "checkout", "worktree"})
"""Subcommands that may have done a part before they fail."""
_NO_LEVEL_BETWEEN = "The sandbox on this machine only confines commands that write nothing."


@dataclass(frozen=True, slots=True)
class Trial:
    """The limits within which a command runs."""

    level: Level
    reads: bool = False
    """True if it is known to change nothing."""
    watched: bool = False
    """True if no walls hold it, and what starts it watches the folders that it reads."""
    clones: StoppedClones | None = None
    widened: bool = False
    """True if it runs again, at the level that it needs."""


Ran: TypeAlias = "tuple[ToolOutput, Explanation | None]"
"""The output of a command, and what a wall kept it from, if anything."""


@dataclass(frozen=True, slots=True)
class Need:
    """The permission that a command which was stopped needs to get further."""

    trial: Trial
    asked: Decision
    refused: str
    """The beginning of the line for the model if the person says no."""
    free: bool = False
    """True if nobody has to be asked."""


async def run_command(shared: CallContext, call: CheckedCall, decision: Decision) -> ToolOutput:
    """Run a command that is allowed; where a wall stops it, ask for what it needs."""
    reads = decision.by == "safe"
    trial = Trial(decision.level, reads=reads, watched=reads and decision.level is Level.OUTSIDE)
    call = await _equipped(shared.ctx, call, trial) if reads else _with_exports(shared.ctx, call)
    ran = await _run(shared.ctx, call, trial)
    while (need := await _need(shared.ctx, call, decision, trial, ran)) is not None:
        before, answer = call.notes, Answer("once")
        if not need.free:
            call, answer = await ask_for_more(shared, call, need.asked)
        if answer.answer == "no":
            reason = f" {answer.reason}" if answer.reason else ""
            output = await _with_git_settings(shared, call, decision, trial, ran[0])
            return output.with_lines([f"[{need.refused} was not allowed.{reason}]"])
        await shared.commands.forget(call.call.id)
        decision = replace(decision, by=answer.by)
        _drop_git_settings(shared.ctx)
        trial = need.trial
        again, met = await _run(shared.ctx, call, trial)
        ran = again.with_lines(call.notes[len(before) :]), met
    output = await _with_git_settings(shared, call, decision, trial, ran[0])
    return _stopped(shared, call, trial, (output, ran[1]))


def _drop_git_settings(ctx: AgentContext) -> None:
    """Forget what a command has set that runs again: it sets it again."""
    if ctx.toolbox.confinement is not None:
        ctx.toolbox.confinement.traces.take_pending()


async def _with_git_settings(
    shared: CallContext, call: CheckedCall, decision: Decision, trial: Trial, output: ToolOutput
) -> ToolOutput:
    """Ask about the settings of git that a command has made and that may lead to a program or to
    another machine, and put them in their place if the person agrees."""
    from tui.permissions.sandbox.git_copies import put_all  # noqa: PLC0415 - on demand

    confinement = shared.ctx.toolbox.confinement
    if confinement is None or not (pending := confinement.traces.take_pending()):
        return output
    if decision.by == "person" and all(map(partial(_says, call.call.command), pending)):
        lines = await asyncio.to_thread(put_all, pending)
        return output.with_lines([f"[{line}]" for line in lines])
    what = "; ".join(map(str, pending))
    why = f"It set {what}. Outside the sandbox, git may run what this names, or connect to it."
    asked = Decision("ask", why, "sandbox", decision.risk, trial.level, walls=True, once=True)
    refused = shared.ctx.state.mode == "plan"
    answer = Answer("no") if refused else (await ask_again(shared, call, asked))[1]
    if answer.answer == "no":
        reason = f" {answer.reason}" if answer.reason else ""
        return output.with_lines([f"[not applied: {what}.{reason}]"])
    lines = await asyncio.to_thread(put_all, pending)
    return output.with_lines([f"[{line}]" for line in lines])


def _says(command: str | None, pending: PendingSettings) -> bool:
    """True if a plain line of git, which the person has allowed, names each address, and nothing
    else needs a yes."""
    words = _words_of_git(command)
    return pending.only_addresses and all(value in words for _, value in pending.asked)


async def _equipped(ctx: AgentContext, call: CheckedCall, trial: Trial) -> CheckedCall:
    """Give a command that only reads its environment, and what starts it where no walls hold it."""
    from tui.permissions.plain_environment import plain_environment  # noqa: PLC0415 - on demand

    traceparent = ctx.session.traceparent(call.call.id)
    environment = plain_environment(call.context.workspace, traceparent)
    starter = await _watcher(ctx, call.call) if trial.watched else None
    return replace(call, context=replace(call.context, environment=environment, starter=starter))


def _with_exports(ctx: AgentContext, call: CheckedCall) -> CheckedCall:
    """Give a command the session's id, and what hooks set for those of the session; one that nobody
    is asked about runs without."""
    own = child_environment(ctx.session.id, ctx.session.traceparent(call.call.id))
    environment = {**own, **ctx.toolbox.exports}
    return replace(call, context=replace(call.context, environment=environment))


def _folder(workspace: Workspace, call: Call) -> Path:
    """The folder that a command is run in."""
    return workspace.resolve(call.paths[0]) if call.paths else workspace.root


async def _watcher(ctx: AgentContext, call: Call) -> Starter:
    """Make a starter for a command that only reads, where no walls hold it."""
    from tui.permissions.plain_command import ReadableArea  # noqa: PLC0415 - on demand
    from tui.permissions.sandbox.steady import steady  # noqa: PLC0415 - on demand

    workspace = ctx.workspace.widen(ctx.state.elevated)
    area = ReadableArea(workspace, ctx.rules.gate.policy.private)

    def make() -> Starter:
        folder = _folder(workspace, call)
        return steady(call.command or "", folder, area, ctx.toolbox.jobs.starter)

    return await asyncio.to_thread(make)


async def _run(ctx: AgentContext, call: CheckedCall, trial: Trial) -> Ran:
    """Run a command, alone unless the sandbox lets it change nothing."""
    harmless = trial.level is Level.READ_ONLY and bool(call.levels)
    unwatched = harmless or trial.reads
    async with (
        nullcontext() if harmless else alone(ctx, call.state),
        nullcontext(CallChanges()) if unwatched else watched(ctx, call.call.id) as changes,
    ):
        output, met = await _run_confined(ctx, call, trial)
    return changes.added_to(output), met


async def _run_confined(ctx: AgentContext, call: CheckedCall, trial: Trial) -> Ran:
    level, starter = trial.level, call.context.starter if trial.watched else None
    confinement = ctx.toolbox.confinement if level is not Level.OUTSIDE else None
    if confinement is not None:
        ends = not call.call.background
        starter = confinement.starter(level, git_copies=ends, clones=trial.clones)
    walls = level.value if confinement is not None else ""
    context = replace(call.context, starter=starter, walls=walls)
    output = await call.tool.run(call.params, context)
    if confinement is None:
        return output, None
    return await _explained(ctx, confinement, call, level, output)


async def _explained(
    ctx: AgentContext,
    confinement: Confinement,
    call: CheckedCall,
    level: Level,
    output: ToolOutput,
) -> Ran:
    """Add what was moved away or put back after a command, and which wall it met."""
    # What only reads puts nothing anywhere; another sub-agent's command may be starting.
    moved = await confinement.traces.tidy() if level is not Level.READ_ONLY else []
    lines = [f"[{line}]" for line in moved]
    text, names = text_of(output.content), partial(_named_needs, ctx, call.call)
    met = await confinement.explain(text, level, names, failed=output.is_error)
    if met and (output.is_error or met.needs):
        lines.append(f"[{met.text}]")
    return output.with_lines(lines), met


async def _named_needs(ctx: AgentContext, call: Call) -> NamedNeeds:
    """Read from the words of a command what it needs."""
    from tui.permissions.named_needs import named_needs  # noqa: PLC0415 - on demand

    workspace, home = ctx.workspace, ctx.rules.gate.policy.home
    folder = _folder(workspace, call)
    return await asyncio.to_thread(named_needs, call.command or "", folder, workspace, home)


async def _need(
    ctx: AgentContext, call: CheckedCall, decision: Decision, trial: Trial, ran: Ran
) -> Need | None:
    """Return what a command needs to get further; None if nothing more is asked for it."""
    if trial.clones is not None:
        return None
    return (
        _unwatched(ctx, decision, trial, ran)
        or await _past_clones(ctx, call.call, trial, ran)
        or _wider(ctx, call, decision, trial, ran)
    )


def _unwatched(ctx: AgentContext, decision: Decision, trial: Trial, ran: Ran) -> Need | None:
    """To run without being watched, because its folders can't be."""
    cause = _unwatchable(ran[0]) if trial.watched else ""
    if not cause:
        return None
    why = f"{cause}. It would run unwatched: a swapped folder may lead it anywhere."
    asked = replace(decision, answer="ask", reason=why, by="default")
    free = ctx.state.elevated and ctx.state.mode != "plan"
    return Need(replace(trial, watched=False), asked, "to run it unwatched", free)


def _unwatchable(output: ToolOutput) -> str:
    """The reason why the folders of a command could not be watched; "" if they were."""
    from tui.permissions.sandbox.steady_command import UNWATCHED  # noqa: PLC0415 - on demand

    return UNWATCHED.get(output.details.get("exit_code", 0), "") if output.is_error else ""


async def _past_clones(ctx: AgentContext, call: Call, trial: Trial, ran: Ran) -> Need | None:
    """To do what the walls of a clone in the workspace stopped it at."""
    output, confinement, stopped = ran[0], ctx.toolbox.confinement, None
    confined = trial.level not in {Level.READ_ONLY, Level.OUTSIDE} and not call.background
    if confinement is not None and confined:
        stopped = await asyncio.to_thread(
            confinement.traces.stopped_clones,
            call.command or "",
            _folder(ctx.workspace, call),
            text_of(output.content),
            failed=output.is_error,
        )
    if stopped is None:
        return None
    what = stopped.words(ctx.workspace.root)
    why = f"It {what}, and was stopped there. It would run again, from its start."
    asked = Decision("ask", why, "sandbox", level=trial.level, walls=True, once=True)
    return Need(Trial(trial.level, clones=stopped), asked, f"it {what}: that")


def _wider(
    ctx: AgentContext, call: CheckedCall, decision: Decision, trial: Trial, ran: Ran
) -> Need | None:
    """To run at a wider level, unless it would do a part of its work twice."""
    output, met = ran
    if met is None or met.level is None or trial.widened or ctx.state.mode == "plan":
        return None
    so_far = _so_far(call.call, trial.level, met, failed=output.is_error)
    level = met.level if met.level in call.levels else Level.OUTSIDE
    other = "" if level is met.level else f" {_NO_LEVEL_BETWEEN}"
    why = f"It {met.needs}. {so_far}{other}"
    asked = Decision("ask", why, "sandbox", decision.risk, level, walls=True)
    wider = Trial(level, widened=True)
    return Need(wider, asked, "what it needs") if so_far else None


def _so_far(call: Call, level: Level, met: Explanation, *, failed: bool) -> str:
    """Say what a command that may run again with more has done; "" if it could do a part of its
    work twice."""
    if level is Level.READ_ONLY:
        return "So far it only read: nothing was changed."
    git = "" if call.background else _one_step_of_git(call.command)
    atomic = failed and bool(git) and git not in _DOES_MORE and not met.tried
    return "Git did nothing." if atomic else ""


def _one_step_of_git(command: str | None) -> str:
    """The subcommand of a single command of git: it does all of it or fails as a whole."""
    return next(iter(_words_of_git(command)[1:]), "")


def _words_of_git(command: str | None) -> Sequence[str]:
    """The words of a plain line that is a single command of git."""
    from tui.permissions.plain_command import parse  # noqa: PLC0415 - on demand

    parts = [part.words for part in parse(command or "") or ()]
    return parts[0] if len(parts) == 1 and parts[0][0] == "git" else ()


def _stopped(shared: CallContext, call: CheckedCall, trial: Trial, ran: Ran) -> ToolOutput:
    """Return the output; keep that walls stopped a command which may have written."""
    (output, met), ctx = ran, shared.ctx
    asks = trial.clones is None and (trial.widened or ctx.state.mode != "plan")
    if not (asks and output.is_error) or met is None or met.level is None:
        return output
    wrote = tuple(map(string_of, list_of(output.details.get("changed_files"))))
    known = ctx.checkpoints is not None
    shared.stopped = StoppedCommand(call.key, trial.level, met.level, met.needs, wrote, known=known)
    return output.with_lines([f"[the same call again asks for the level {met.level}]"])

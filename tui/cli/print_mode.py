"""`holdfast -p`: one prompt, its answer on stdout. The only writer to stdout besides the CLI.

The same facts as on the full screen, as plain text, one JSON object, or one JSON line each. What is
not data (errors, notices, retries, debug) goes to stderr.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, aclosing
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TextIO

from tui.agent.agent import Agent
from tui.agent.composition import make_agent
from tui.agent.launch import Launch, OwnParts
from tui.agent.model_access import asked_model, refreshed_models
from tui.agent.prompts import CommandTurn, ParsedPrompt, parse
from tui.app import launch_config
from tui.app.commands import TAKEN, find, split
from tui.app.options.arguments import Options
from tui.app.outcome import NO_RESULT, Outcome
from tui.app.router import refuse_command
from tui.app.session_path import session_path
from tui.cli.event_output import Format, exit_code, json_line, to_stderr, write_event, write_line
from tui.cli.standard_input import standard_input
from tui.core import facts, gc_pause
from tui.core.clock import Clock, SystemClock
from tui.core.errors import StorageError, UsageError
from tui.core.facts import Fact
from tui.core.formatting import moment_of, plural, wait_time
from tui.core.signals import heeded_signals
from tui.session.session import Session
from tui.settings.user_commands import find as find_own
from tui.tools.submit_result import SubmitResult

_STEPS = ((60, 10.0), (600, 60.0), (float("inf"), 600.0))
"""Intervals of the reports about a wait: up to so many seconds left, every so many seconds."""

ONLY_SWITCHED = (
    "Nothing was asked, so this session isn't kept, and what was switched ends with it. Write a "
    "prompt after it, or continue a session with -c."
)

NOT_SAVED_HINT = (
    "Can't save the session. Make its folder writable, choose another with HOLDFAST_HOME, or "
    "use --no-session."
)


async def run(
    agent: Agent,
    prompt: str,
    *,
    attached: str = "",
    command: CommandTurn | None = None,
    result: SubmitResult | None = None,
    format_: Format,
    clock: Clock,
) -> int:
    """Send one prompt as `converse` does, and write what comes of it. Returns the exit code.

    Raises BrokenPipeError or StorageError if stdout cannot be written.
    """
    out, started = sys.stdout, clock.monotonic()
    outcome = await converse(
        agent,
        prompt,
        attached=attached,
        command=command,
        result=result,
        format_=format_,
        clock=clock,
    )
    if format_ == "text" and outcome.given:
        write_line(out, json_line(outcome.value))
    elif format_ == "text" and outcome.answer and outcome.outcome == "done":
        write_line(out, outcome.answer)
    elif format_ == "json":
        elapsed = round((clock.monotonic() - started) * 1000)
        write_line(out, json_line(outcome.to_json(turns=agent.spent.requests, duration_ms=elapsed)))
    if outcome.error == NO_RESULT:
        to_stderr(sys.stderr, NO_RESULT)
    return exit_code(outcome)


async def converse(
    agent: Agent,
    prompt: str,
    *,
    attached: str = "",
    command: CommandTurn | None = None,
    result: SubmitResult | None = None,
    format_: Format = "text",
    clock: Clock,
) -> Outcome:
    """Send one prompt, with `attached` (standard input) after it, and return what came of it; what
    happens meanwhile is written.

    Closes the agent. SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) interrupt the
    turn, which is then recorded as interrupted; before the turn they keep it from beginning.
    Closing is not interrupted. A session that cannot be saved costs the session, not the answer.

    Args:
        command: the person's own command that the prompt names.
        result: the tool that takes a result which fits a schema, if one is asked for: without a
        result the run has failed.

    Raises BrokenPipeError or StorageError if stdout cannot be written.
    """
    out, err = sys.stdout, sys.stderr
    outcome = Outcome()

    def tell(event: Fact) -> None:
        outcome.see(event)
        write_event(event, format_, out, err)

    def stop() -> None:
        nonlocal asked_to_stop
        asked_to_stop = True
        agent.cancel()

    def hang_up() -> None:
        """The terminal is lost: leave what runs to the next run of the session."""
        nonlocal asked_to_stop, leaving
        asked_to_stop = True
        leaving = asyncio.create_task(agent.leave(), name="leaving")
        leaving.add_done_callback(lambda _: agent.cancel())

    countdown, asked_to_stop = Countdown(clock, err), False
    leaving: asyncio.Task[None] | None = None
    with heeded_signals(stop, hang_up):
        try:
            agent.models.load()
            for event in await agent.start():
                tell(event)
            attached = await _with_interruption(agent, attached, err, tell)
            if asked_to_stop:
                tell(facts.TurnFinished("interrupted"))
            else:
                # Later prompts, which ask for a missing result, go without the attachment and the
                # command.
                own = command.text if command else ""
                attached = "\n\n".join(filter(None, (own, attached)))
                for text in outcome.prompts(prompt, result):
                    sent = _parsed(agent, text, attached, command)
                    to_stderr(err, _directives_note(sent, agent))
                    attached, command = "", None
                    async with aclosing(_sent(agent, sent)) as turn:
                        async for event in turn:
                            tell(event)
                            countdown.see(event)
        finally:
            countdown.stop()
            await _close(agent, outcome, err)
    return outcome


def _parsed(agent: Agent, text: str, attached: str, command: CommandTurn | None) -> ParsedPrompt:
    """A prompt as it was given. Raises UsageError for a goal that can't be worked on."""
    if not _names_goal(text):
        return replace(parse(text, attached), command=command)
    from tui.app.commands.goal import goal_prompt, objection  # noqa: PLC0415 - few prompts set one

    sent = goal_prompt(text)
    if sent.goal and not sent.goal.text and (problem := objection(agent, sent.goal)):
        raise problem
    return replace(sent, attached=attached)


def _sent(agent: Agent, prompt: ParsedPrompt) -> AsyncGenerator[Fact]:
    if prompt.goal and not prompt.goal.text:
        return agent.go_on(goal=prompt.goal)
    return agent.send(prompt)


def _names_goal(text: str) -> bool:
    named = split(text.strip())
    return named is not None and named[0].lower() == "goal"


def _directives_note(sent: ParsedPrompt, agent: Agent) -> str:
    """Return the note for directives without a prompt in a new session, whose file begins with a
    prompt."""
    alone = bool(sent.changes) and not sent.text.strip() and not sent.attached
    return ONLY_SWITCHED if alone and not agent.session.resumed else ""


async def _close(agent: Agent, outcome: Outcome, err: TextIO) -> None:
    """Close the agent; report what ends with it, and what could not be saved."""
    if running := agent.jobs.running:
        stopped = plural(running, "background command")
        to_stderr(err, f"Stopping {stopped}: they end with this run.")
    try:
        await agent.close()
    except StorageError as error:
        to_stderr(err, "" if outcome.unsaved else error.message, NOT_SAVED_HINT)


async def _with_interruption(
    agent: Agent, attached: str, err: TextIO, tell: Callable[[Fact], None]
) -> str:
    """Report what an earlier run of the session left open, and wait for what it left running.
    Returns the text that goes along with the prompt: the model is told about commands that still
    run, since no result of a call reports them."""
    if not agent.session.resumed:
        return attached
    from tui.app.interruption import (  # noqa: PLC0415 - most sessions are new
        interruption_report,
        summary_of,
        taken_over,
    )

    work = await asyncio.to_thread(agent.interrupted_work)
    if work.supervised:
        to_stderr(err, taken_over(work))
        for event in await agent.note(taken_over(work)):
            tell(event)
        async with aclosing(agent.collect(work.supervised)) as collected:
            async for event in collected:
                if not isinstance(event, facts.TurnFinished):
                    tell(event)
        work = work.uncertain
    if not work:
        return attached
    to_stderr(err, *interruption_report(work))
    return "\n\n".join(filter(None, (summary_of(work), attached))) if work.orphans else attached


class Countdown:
    """Writes to `err` now and then how long a parked turn still waits."""

    def __init__(self, clock: Clock, err: TextIO) -> None:
        self._clock, self._err = clock, err
        self._task: asyncio.Task[None] | None = None

    def see(self, event: Fact) -> None:
        """Start with a Parked; any other fact stops the countdown."""
        self.stop()
        if isinstance(event, facts.Parked) and (until := moment_of(event.until)):
            self._task = asyncio.create_task(self._count(until), name="countdown")

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _count(self, until: datetime) -> None:
        while (left := (until - self._clock.now()).total_seconds()) > 0:
            to_stderr(self._err, f"Waiting for the server: {wait_time(left)} left. Ctrl+C stops.")
            step = next(step for limit, step in _STEPS if left <= limit)
            await self._clock.sleep(min(left, step))


def print_answer(options: Options) -> int:
    """Run `holdfast -p`: one prompt, the answer on stdout. Returns the exit code.

    Ends the pause of collections that whoever loads this module begins.
    """
    with ExitStack() as pause:
        pause.callback(gc_pause.end)
        with launch_config.scratch_of(options) as scratch:
            launch = launch_config.prepare(options, scratch)
            return _print_answer(options, launch, pause.close)


def _print_answer(options: Options, launch: Launch, loaded: Callable[[], None]) -> int:
    from tui.permissions.gate import RulesOnly  # noqa: PLC0415

    clock = SystemClock()
    if options.printing.input_format == "stream-json":
        from tui.cli.stream_input import answer_lines  # noqa: PLC0415 - seldom needed

        loaded()
        return asyncio.run(answer_lines(options, sys.stdin.fileno(), sys.stdout))
    typed, attached = options.prompt or "", standard_input()
    if not (typed.strip() or attached):
        raise UsageError("No prompt given.", hint='Type one: holdfast -p "…", or pipe it in.')
    if _names_goal(typed):
        from tui.app.commands.goal import goal_prompt  # noqa: PLC0415 - few prompts set one

        goal_prompt(typed)  # one that is wrong is refused before anything begins
    else:
        refuse_command(typed)
    result = (
        SubmitResult(read_schema(options.printing.json_schema))
        if options.printing.json_schema
        else None
    )
    own = OwnParts(tools=(result,) if result else ())
    launch = replace(launch_config.with_key(launch), own=own)
    if path := session_path(options):
        session = Session.open(path, clock=clock)
    else:
        session = launch_config.new_session(options, launch, clock, unattended="print")
        if options.opening.newest:
            to_stderr(sys.stderr, "No session in this folder yet: starting a new one.")

    async def converse() -> int:
        agent = make_agent(launch, session, RulesOnly(), clock=clock)
        loaded()
        async with refreshed_models(launch, clock):
            return await run(
                agent,
                typed,
                attached=attached,
                command=await _command(launch, typed, agent.session.id),
                result=result,
                format_=options.printing.output_format,
                clock=clock,
            )

    return asyncio.run(converse())


async def _command(launch: Launch, typed: str, session_id: str) -> CommandTurn | None:
    """Return the person's own command that a prompt names; anything else is sent as it is."""
    named = split(typed.strip())
    if named is None or find(named[0]):
        return None
    from tui.app.commands.own import (  # noqa: PLC0415 - few prompts name one
        command_turn,
        turn_variables,
        user_commands,
    )

    root = launch.workspace.root
    commands = user_commands(launch.folders, root, lambda: launch.trust, TAKEN, bare=launch.bare)
    await asyncio.to_thread(commands.load)
    command = find_own(commands.commands, named[0])
    if command is None:
        return None
    find_model = partial(asked_model, launch)
    say, variables = partial(to_stderr, sys.stderr), turn_variables(root, session_id)
    return await command_turn(command, named[1], find_model, say, variables)


def read_schema(path: Path) -> object:
    """Read a JSON schema from a file. Raises UsageError."""
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"Can't read {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} isn't JSON: {error}.") from error

"""Claude Code's stream: a program that drives its command line drives this one.

`holdfast --output-format claude-stream-json --input-format claude-stream-json`, and the command
line of its SDKs, which comes without `-p` and with CLAUDE_CODE_ENTRYPOINT set.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, TextIO, cast

from tui.agent.launch import OwnParts
from tui.app.api import opened
from tui.app.options.arguments import Options
from tui.app.outcome import Outcome
from tui.app.session_path import forked, workspace_of
from tui.cli.claude_stream import command_line, tool_names
from tui.cli.claude_stream.approver import DriverApprover
from tui.cli.claude_stream.command_line import DriverOptions
from tui.cli.claude_stream.hooks import KnownCalls, hooks_of
from tui.cli.claude_stream.link import DriverLink, Line
from tui.cli.claude_stream.mcp_servers import DriverServer
from tui.cli.claude_stream.output import StreamWriter
from tui.cli.claude_stream.session import DriverFrontend, DriverSession
from tui.cli.event_output import EXIT_DONE, exit_code, to_stderr
from tui.cli.standard_input import standard_input
from tui.cli.stream_input import MAX_LINE, read_lines
from tui.core.clock import SystemClock
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, UsageError
from tui.core.facts import Fact
from tui.core.messages import is_object, list_of, object_of, string_of
from tui.core.signals import heeded_signals
from tui.settings import agent_definitions
from tui.settings.agent_definitions import AgentDefinition
from tui.tools.submit_result import SubmitResult

_STATES = "CLAUDE_CODE_SDK_READS_SESSION_STATE"
_STATES_OWN = "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS"
_NO = frozenset({"", "0", "false", "no", "off"})


def run_as_claude(words: Sequence[str]) -> int:
    """Run with Claude Code's own command line. Returns the exit code."""
    options, driver = command_line.read(words)
    for one in driver.left:
        to_stderr(sys.stderr, one)
    return asyncio.run(answer_driver(options, driver, sys.stdin.fileno(), sys.stdout))


def run(options: Options) -> int:
    """Run with our own command line. Returns the exit code."""
    driver = DriverOptions(asks=True, partial=True, may_elevate=options.permissions.yolo)
    if options.printing.input_format == "text":
        text = "\n\n".join(filter(None, (options.prompt or "", standard_input())))
        if not text.strip():
            raise UsageError("No prompt given.", hint='Type one: holdfast -p "…", or pipe it in.')
        driver = replace(driver, asks=False, prompt=text)
    return asyncio.run(answer_driver(options, driver, sys.stdin.fileno(), sys.stdout))


async def answer_driver(options: Options, driver: DriverOptions, source: int, out: TextIO) -> int:
    """Hold a conversation with the driver at the other end of a file descriptor, until its lines
    end. Returns the exit code: that of the last turn.

    SIGINT, SIGTERM and SIGHUP stop what runs and end it. Raises what opening a session raises.
    """
    link, inbox = DriverLink(out), asyncio.Queue[Line | None]()
    known = KnownCalls({}, workspace_of(options))
    if driver.prompt is None:
        pump = asyncio.create_task(_pump(source, link, inbox), name="driver's lines")
    else:
        inbox.put_nowait({"type": "user", "message": {"role": "user", "content": driver.prompt}})
        inbox.put_nowait(None)
        pump = None
    try:
        first = await inbox.get()
        if first is None:
            return EXIT_DONE
        try:
            return await _converse(options, driver, Lines(link, inbox, known), first)
        except HoldfastError as error:
            if _is_initialize(first):
                link.refuse(string_of(first.get("request_id")), str(error))
            raise
    finally:
        if pump is not None:
            pump.cancel()


@dataclass(frozen=True, slots=True)
class Lines:
    """The two directions of the stream, and the calls that were told."""

    link: DriverLink
    inbox: asyncio.Queue[Line | None]
    known: KnownCalls


async def _converse(options: Options, driver: DriverOptions, lines: Lines, first: Line) -> int:
    """Hold the conversation that begins with a line, which may be an `initialize`."""
    link, known = lines.link, lines.known
    request = object_of(first.get("request")) if _is_initialize(first) else {}
    if driver.fork:
        options = await asyncio.to_thread(forked, options)
    options = _with_prompts(options, request)
    servers = tuple(
        DriverServer(name, link)
        for name in dict.fromkeys(
            (*driver.servers, *map(str, list_of(request.get("sdkMcpServers"))))
        )
    )
    for server in servers:
        await server.begin()
        to_stderr(sys.stderr, server.problem)
    hooks, problems = hooks_of(request.get("hooks"), link, known)
    agents, odd = _agents(request.get("agents"))
    to_stderr(sys.stderr, *problems, *odd)
    schema = request.get("jsonSchema", driver.schema)
    result = SubmitResult(schema) if schema is not None else None
    own = OwnParts(
        tools=(*(tool for one in servers for tool in one.tools), *([result] if result else [])),
        hooks=hooks,
        agents=agents,
        only=driver.only,
        without=tool_names.NOT_OFFERED | driver.without,
    )
    approver = DriverApprover(link, known, asks=driver.asks)
    writer = StreamWriter(
        link,
        SystemClock(),
        known,
        partial=driver.partial,
        states=_is_on(_STATES),
        states_own=_is_on(_STATES_OWN),
        result=result,
    )
    outcome, stopped = Outcome(outcome="done"), asyncio.Event()

    def see(fact: Fact) -> None:
        outcome.see(fact)
        approver.see(fact)
        writer.see(fact)

    def stop() -> None:
        stopped.set()
        conversation.cancel()

    async with opened(
        options, approver, own=own, see=see, frontend=DriverFrontend, kind="print"
    ) as conversation:
        most = options.limits.max_cost
        session = DriverSession(conversation, link, writer, approver, driver, servers, most)
        approver.session = writer.session = session
        with heeded_signals(stop):
            working = asyncio.create_task(session.work(), name="prompts")
            try:
                await session.take(first)
                await _until_end(lines.inbox, stopped, session)
                link.end()
                if not stopped.is_set():
                    await session.settled()
            finally:
                working.cancel()
                with suppress(asyncio.CancelledError):
                    await working
            if outcome.outcome == "done" and session.over_budget():
                outcome.outcome = "limit"
    return exit_code(outcome)


async def _until_end(
    inbox: asyncio.Queue[Line | None], stopped: asyncio.Event, session: DriverSession
) -> None:
    """Carry out each line, until the input ends or the conversation is stopped."""
    end = asyncio.create_task(stopped.wait(), name="stopped")
    try:
        while True:
            line = asyncio.create_task(inbox.get(), name="line")
            await asyncio.wait({line, end}, return_when=asyncio.FIRST_COMPLETED)
            if not line.done() or (taken := line.result()) is None:
                line.cancel()
                return
            await session.take(taken)
    finally:
        end.cancel()


async def _pump(source: int, link: DriverLink, inbox: asyncio.Queue[Line | None]) -> None:
    """Read the driver's lines: answers go to who waits for them, all else to the inbox."""
    lines = read_lines(source)
    while text := await lines.get():
        line = _parsed(text)
        if line is None:
            continue
        if line.get("type") != "control_response":
            inbox.put_nowait(line)
        elif not link.answered(line):
            to_stderr(sys.stderr, "Ignored an answer from the driver: nothing waits for it.")
    inbox.put_nowait(None)
    link.end()


def _parsed(text: bytes) -> Line | None:
    """Read a line; None for one that can't be used, which is said."""
    if not text.strip():
        return None
    why = f"it is longer than {MAX_LINE // 1_000_000} MB" if len(text) > MAX_LINE else ""
    value: object = None
    if not why:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            why = f"it isn't JSON ({error})"
    if not why and not is_object(value):
        why = "it isn't an object"
    if why:
        to_stderr(sys.stderr, f"Ignored a line from the driver: {why}.")
        return None
    return cast("Line", value)


def _is_initialize(line: Line) -> bool:
    request = object_of(line.get("request"))
    return line.get("type") == "control_request" and request.get("subtype") == "initialize"


def _is_on(name: str) -> bool:
    return os.environ.get(name, "").strip().lower() not in _NO


def _with_prompts(options: Options, request: Line) -> Options:
    """Return the options with the system prompt of `initialize`."""
    own = "\n\n".join(map(str, list_of(request.get("systemPrompt"))))
    added = string_of(request.get("appendSystemPrompt"))
    options = options.having(system_prompt=own) if own else options
    return options.having(append_system_prompt=added) if added else options


def _agents(given: object) -> tuple[tuple[AgentDefinition, ...], tuple[str, ...]]:
    """Read the kinds of sub-agents of `initialize`, and name what is left out of them."""
    agents, odd = list[AgentDefinition](), list[str]()
    for name, one in object_of(given).items():
        head: dict[str, Any] = dict(object_of(one))
        prompt = string_of(head.pop("prompt", ""))
        definition = agent_definitions.of_fields(name, head, prompt)
        if isinstance(definition, str):
            odd.append(f"The sub-agent {name} is left out: {definition}.")
            continue
        agents.append(definition)
        known = {"description", "tools", "disallowedTools", "model", "permissionMode"}
        left = ", ".join(sorted(head.keys() - known))
        odd += [f"The sub-agent {name}: {left} left out."] if left else []
    return tuple(agents), tuple(odd)


def is_sdk_call(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """True if the command line is one of an SDK's."""
    return command_line.is_sdk_call(words, environment)

"""Commands that tell how things stand, and those about what the agent may do."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from tui.commands.changes import diff_text
from tui.commands.permissions import widened
from tui.context.changes import changes
from tui.desk import choosing
from tui.desk.reports import UNPRICED, usage_rows
from tui.errors import UsageError
from tui.figures import plural
from tui.live.services import Agent
from tui.paths import shorten
from tui.permissions.base import Mode
from tui.plain import ways
from tui.plain.lines import meter, todo_lines
from tui.plain.spoken import changed, diff, numbered, said, sentence, shown
from tui.screens.decided import MODE_NAMES, decisions, rule_lines
from tui.tools.mcp import Server

if TYPE_CHECKING:
    from tui.plain.talk import Talk

_DECISIONS: Final = 20
_LOG_LINES: Final = 20
_LOG_BYTES: Final = 20_000
_MCP: Final = "/mcp, /mcp restart NAME, /mcp off NAME TOOL, /mcp on NAME TOOL, or /mcp log NAME"


def opened(talk: Talk) -> Agent:
    """The agent. Raises UsageError where no session is open."""
    if talk.agent is None:
        raise UsageError("No session is open yet.", hint="/new begins one.")
    return talk.agent


async def status(talk: Talk, _: str) -> None:
    agent, services = opened(talk), talk.services
    session = agent.session
    where = shorten(session.path) if session.path else "none, kept in memory only"
    on = [
        name
        for name, value in (("ELEVATED", talk.teller.elevated), ("verbose", talk.teller.verbose))
        if value
    ]
    measured = talk.teller.measured
    talk.face.say(
        f"Session {session.id}: {said(session.title) or 'untitled'}.",
        f"File: {where}.",
        f"Folder: {shorten(services.workspace)}.",
        f"Model: {agent.model}, window {agent.window:,} tokens.",
        sentence(f"Mode: {MODE_NAMES[agent.mode]}", f"On: {', '.join(on)}" if on else ""),
        f"Context: {meter(measured)}" if measured else "Context: nothing was measured yet.",
        f"Doing: {'a turn or a command runs' if talk.busy else 'nothing, it is your turn'}.",
    )


async def usage(talk: Talk, _: str) -> None:
    agent = opened(talk)
    rows = usage_rows(agent)[1:]
    told = [
        f"{name}: {one} for the last prompt, {all_} in the session." for name, (one, all_) in rows
    ]
    known = agent.spending().session.usd is not None
    talk.face.say("Usage in tokens.", *(line.replace("—", "not known") for line in told))
    talk.face.say(*([] if known else [UNPRICED]))


async def help_(talk: Talk, _: str) -> None:
    from tui.commands.table import COMMANDS  # noqa: PLC0415 - on demand
    from tui.plain.commands import HELP, REASONS  # noqa: PLC0415 - it names this module

    await asyncio.to_thread(talk.own.load)
    talk.face.say(
        "Type a prompt and press Enter. A backslash at the end of a line, or three quotes around"
        " the text, make it several lines.",
        "While the agent works you may type on: it is sent when the agent can take it.",
        "Ctrl+C stops what runs; at an empty prompt twice it leaves, as Ctrl+D does at once.",
        "Tab completes a command, and a file behind @. ! before a line runs it in the shell, and"
        " the model sees its output with your next prompt; !! keeps it from the model.",
        "Commands:",
        *(
            said(f"/{command.name} {argument}").rstrip() + f": {text}."
            for command in COMMANDS
            for argument, text in (HELP.get(command.name, (command.argument, command.help)),)
            if command.name not in REASONS
        ),
        *(f"/{own.name}, yours: {said(own.description)}" for own in talk.own.found.values()),
        f"Only on the full screen: {', '.join(f'/{name}' for name in REASONS)}.",
    )
    talk.face.say(*(said(problem) for problem in talk.own.problems[:1]))


async def todos(talk: Talk, _: str) -> None:
    talk.face.say(*(todo_lines(talk.teller.todos) or ["The agent keeps no list now."]))


async def output(talk: Talk, number: str) -> None:
    """The whole output of a tool: /output is the last one, /output 2 the one before it."""
    kept = talk.teller.outputs
    place = int(number[:4]) if number.isdecimal() else 1
    if number and not number.isdecimal():
        raise UsageError("/output reads the last tool's output, /output 2 the one before it.")
    if not 1 <= place <= len(kept):
        raise UsageError("There is no such output." if kept else "No tool has run yet.")
    found = kept[-place]
    lines = shown(found.text.rstrip("\n")) if found.text.strip() else ["It printed nothing."]
    talk.face.say(f"Output of {said(found.name)}:", *lines, "End of output.")


async def diff_(talk: Talk, _: str) -> None:
    found = changes(list(opened(talk).session.records))
    if not found:
        talk.face.say(
            "This session's tools have changed no file. What a command did to files is not known"
            " here."
        )
        return
    text = await asyncio.to_thread(diff_text, found, talk.services.workspace)
    talk.face.say(f"{plural(len(found), 'file')} changed: {changed(text)}.", *diff(text))


async def plan(talk: Talk, wanted: str) -> None:
    """/plan: into plan mode or back; /plan edits accepts edits, /plan ask asks again."""
    agent = opened(talk)
    modes: dict[str, Mode] = {
        "": "ask" if agent.mode == "plan" else "plan",
        "edits": "accept_edits",
        "accept edits": "accept_edits",
        "ask": "ask",
        "off": "ask",
        "on": "plan",
    }
    mode = modes.get(wanted.strip().lower())
    if mode is None:
        raise UsageError(f"/plan {wanted} is not known.", hint="/plan, /plan edits or /plan ask")
    agent.mode = mode
    told = {
        "ask": "Mode: the agent asks before it changes anything.",
        "accept_edits": "Mode: edits of files are accepted; commands are asked for. /plan ask"
        " leaves it.",
        "plan": "Plan mode: the agent only reads. /plan again leaves it.",
    }
    talk.face.say(told[mode])


async def permissions(talk: Talk, _: str) -> None:
    agent = opened(talk)
    rules = rule_lines(
        talk.services.permissions(),
        mode=agent.mode,
        elevated=talk.teller.elevated,
        folders=[shorten(folder) for folder in agent.folders],
    )
    talk.face.say("Rules in force; deny counts before ask, ask before allow.")
    talk.face.say(*(f"{name}: {said(value)}." for name, value in rules))
    found = decisions(agent.session.records)
    talk.face.say(f"{plural(len(found), 'decision')}." if found else "No decision yet.")
    talk.face.say(
        *(
            said(f"{one.time}, {one.tool} {one.subject}: {one.answer} by {one.by}. {one.reason}")
            for one in found[-_DECISIONS:]
        )
    )


async def add_dir(talk: Talk, folder: str) -> None:
    text, _, hint = widened(opened(talk), talk.services.workspace, folder)
    talk.face.say(f"{text} {hint}".rstrip())


async def mcp(talk: Talk, argument: str) -> None:
    """The MCP servers: how they stand; restart one, switch a tool, read its log."""
    agent = opened(talk)
    if not agent.servers:
        talk.face.say("No MCP server is configured: [mcp.NAME] in config.toml adds one.")
        return
    verb, *rest = argument.split()[:3] or [""]
    if not verb:
        for server in agent.servers:
            talk.face.say(*server_lines(server))
        talk.face.say(sentence(_MCP))
        return
    server = next((one for one in agent.servers if rest and one.name == rest[0]), None)
    if server is None:
        raise UsageError("Which server?", hint=_MCP)
    match verb, rest[1:]:
        case "restart", []:
            await server.restart()
            talk.face.say(f"{server.name} is being started again.")
        case (("on" | "off"), [tool]) if any(one.own_name == tool for one in server.tools):
            agent.switch_tool(server, tool, on=verb == "on")
            now = "offered to the model" if verb == "on" else "kept from the model"
            talk.face.say(f"{tool} is {now} from the next request on.")
        case "log", []:
            lines = await asyncio.to_thread(_end_of, server)
            talk.face.say(*lines)
        case _:
            raise UsageError(f"/mcp {argument} is not known.", hint=_MCP)


def server_lines(server: Server) -> list[str]:
    """A server, and below it its tools."""
    detail = f": {said(server.detail)}" if server.detail else ""
    return [
        f"Server {server.name}, {server.state}, {plural(len(server.tools), 'tool')}{detail}.",
        *(
            f"  {tool.own_name}{', off' if tool.own_name in server.switched_off else ''}:"
            f" {said(tool.description)[:120]}"
            for tool in server.tools
        ),
    ]


def _end_of(server: Server) -> list[str]:
    try:
        data = server.log_file.read_bytes()[-_LOG_BYTES:]
    except OSError:
        data = b""
    lines = shown(data.decode("utf-8", "replace").rstrip("\n"))[-_LOG_LINES:] if data else []
    return lines or ["The server has written nothing."]


async def model(talk: Talk, name: str) -> None:
    """/model chooses the model of the next request, /model NAME names it."""
    agent = opened(talk)
    if name:
        await ways.use_model(talk, name)
    elif talk.busy:
        rows = await choosing.rows(talk.services, agent)
        talk.face.say(*numbered(ways.model_line(row) for row in rows), "/model NAME switches.")
    else:
        await ways.choose_model(talk)


async def tasks(talk: Talk, _: str) -> None:
    """How the tasks of this folder's run stand."""
    from tui.batch.report import Summary  # noqa: PLC0415 - on demand
    from tui.batch.standing import StandingRun  # noqa: PLC0415

    run = StandingRun(talk.services.workspace, talk.services.clock)
    await run.refresh()
    if run.state is None:
        talk.face.say("There is no run in this folder: holdfast run TASKS.md begins one.")
        return
    talk.face.say(f"Run of {shorten(run.state.task_file)}: {Summary(run.state).totals()}.")
    talk.face.say(
        *(said(f"{task.index + 1}, {task.status}: {task.task}")[:200] for task in run.state.tasks),
        "holdfast run --headless goes on with it, in plain lines.",
    )


async def doctor(talk: Talk, _: str) -> None:
    """What `holdfast doctor` finds."""
    from tui import doctor as checks  # noqa: PLC0415 - it looks at much

    what = checks.Subject.of(talk.services.workspace, talk.services.folders, os.environ)
    found = await asyncio.to_thread(checks.examine, what)
    told = {"ok": "well", "warn": "to know", "fail": "problem"}
    for check in found:
        fix = f"To do: {check.fix}" if check.fix else ""
        talk.face.say(sentence(f"{check.name}, {told[check.status]}: {check.detail}", fix))


async def config(talk: Talk, _: str) -> None:
    """Where the settings stand, and whether they are sound."""
    from tui.commands.settings import config_problem  # noqa: PLC0415 - on demand

    file = talk.services.folders.config_file
    problem = await asyncio.to_thread(config_problem, file) if file.is_file() else None
    told = f"Wrong: {problem.message}" if problem else "It is sound"
    there = told if file.is_file() else "It does not exist yet"
    talk.face.say(
        sentence(f"The settings are the file {shorten(file)}", there),
        "Edit it with an editor of yours; !nano or the like needs a terminal of its own.",
    )

"""Commands that only show something, in plain lines; and the reasons why some need the full
screen."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tui.agent.sub_agent_list import last_words
from tui.app import manual
from tui.app.commands.table import COMMANDS
from tui.app.mcp_offers import tools_of
from tui.app.quitting import ask_to_quit
from tui.app.reports import Report
from tui.app.reports.agents import agent_row
from tui.app.reports.jobs import NONE as NO_JOBS
from tui.app.reports.jobs import USAGE as JOBS_USAGE
from tui.app.reports.jobs import job_row
from tui.app.reports.jobs import named as named_job
from tui.app.reports.keys import action_rows, terminal_name
from tui.app.reports.permissions import permissions_report
from tui.app.reports.session import copied, session_diff, status_rows
from tui.context.overrides import SPEAKING
from tui.context.token_ledger import Item
from tui.core import clipboard
from tui.core.browser import open_page
from tui.core.errors import UsageError
from tui.core.fact_words import ITEM_STATES
from tui.core.facts import AssistantMessage, Overlay
from tui.core.formatting import plural
from tui.core.keymap import keymap_of
from tui.core.paths import shorten
from tui.core.retold import retold
from tui.plain.fact_lines import meter, spending, todo_lines
from tui.plain.markdown_to_speech import code_of, read
from tui.plain.speech_text import changed, counted, diff, sentence, shown, spoken
from tui.tools.mcp import Server

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.background_jobs import OwnedJob
    from tui.plain.frontend import PlainFrontend
    from tui.session.records import Record

SHOWN: Final = 30
"""Most items listed: the largest ones. `/context all` lists every one."""
_SUMMED: Final[Mapping[str, str]] = {"system": "System prompt", "tools": "Tools"}
"""Names for kinds of which only the sum is said."""
_USAGE: Final = "/context, /context all, /context hide N, show N, pin N, unpin N, or read N"


async def context(frontend: PlainFrontend, argument: str) -> None:
    """List the items of the next request with their tokens; hide, show, pin or unpin one."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    await asyncio.to_thread(agent.context.view)  # so that the ledger knows the state of all items
    items = agent.context.ledger.items()
    verb, _, number = argument.strip().lower().partition(" ")
    if verb in {"", "all"} and not number:
        measured = frontend.speaker.measured
        frontend.terminal.say(
            f"Context: {meter(measured)}" if measured else "Nothing measured yet."
        )
        frontend.terminal.say(*item_lines(items, every=bool(verb)), sentence(_USAGE))
        return
    item = _numbered(items, number)
    match verb:
        case "hide" | "show" | "mask" | "unmask":
            view = "masked" if verb in {"hide", "mask"} else "full"
            await _changed(frontend, agent, item, Overlay(_speaking(agent, item), view))
        case "pin" | "unpin":
            await _pinned(frontend, agent, item, on=verb == "pin")
        case "read":
            frontend.terminal.say(*_text(agent, item))
        case _:
            raise UsageError(f"Unknown /context {argument}.", hint=_USAGE)


async def pin(frontend: PlainFrontend, argument: str) -> None:
    """/pin N pins or unpins an item of /context; /pin alone, the newest result."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    await asyncio.to_thread(agent.context.view)
    items = agent.context.ledger.items()
    if argument.strip():
        item = _numbered(items, argument)
    else:
        results = [one for one in items if one.kind == "result"]
        if not results:
            frontend.terminal.say("No tool result yet. /context lists what there is.")
            return
        item = results[-1]
    await _pinned(frontend, agent, item, on=not item.pinned)


def item_lines(items: Sequence[Item], *, every: bool) -> list[str]:
    """List every item in the order of the request; otherwise the sums of system and tools, and the
    largest others. The numbers are the same in both."""
    numbered = list(enumerate(items, 1))
    if every:
        return [_item_line(*one) for one in numbered]
    lines: list[str] = []
    for kind, name in _SUMMED.items():
        sizes = [item.tokens for item in items if item.kind == kind]
        if sizes:
            lines.append(f"{name}: {plural(len(sizes), 'item')}, {counted(sum(sizes))}.")
    others = [one for one in numbered if one[1].kind not in _SUMMED]
    others.sort(key=lambda one: -one[1].tokens)
    lines += [_item_line(*one) for one in others[:SHOWN]]
    if smaller := others[SHOWN:]:
        size = sum(item.tokens for _, item in smaller)
        lines.append(f"{plural(len(smaller), 'smaller item')}: {counted(size)}.")
    return [*lines, "/context all lists every item in request order."]


def _item_line(number: int, item: Item) -> str:
    """Describe one item of the context: its kind, size and state."""
    facts = [item.kind, counted(item.tokens), spoken(item.label)]
    facts += [ITEM_STATES.get(item.state, item.state)]
    facts += ["pinned"] if item.pinned else []
    return f"{number}: {', '.join(filter(None, facts))}"


def _numbered(items: list[Item], number: str) -> Item:
    if not number.strip().isdecimal() or not 1 <= int(number.strip()[:9]) <= len(items):
        known = f"a number from 1 to {len(items)}" if items else "nothing yet"
        raise UsageError(f"No item {number.strip() or 'named'}.", hint=f"Known: {known}.")
    return items[int(number) - 1]


def _speaking(agent: Agent, item: Item) -> str:
    """Return the id of an item's record. Raises UsageError for what every request carries."""
    if any(r.id == item.id and r.type in SPEAKING for r in agent.session.records):
        return item.id
    raise UsageError("System items are always sent; they can't be hidden or pinned.")


async def _changed(frontend: PlainFrontend, agent: Agent, item: Item, overlay: Overlay) -> None:
    before = agent.context.ledger.tokens
    for event in await agent.context.overlay([overlay]):
        frontend.show(event)
    saved = before - agent.context.ledger.tokens
    if saved:
        frontend.terminal.say(
            f"{spoken(item.label)}: {counted(abs(saved))} {'less' if saved > 0 else 'more'}."
        )


async def _pinned(frontend: PlainFrontend, agent: Agent, item: Item, *, on: bool) -> None:
    for event in await agent.context.pin({_speaking(agent, item): on}):
        frontend.show(event)


def _text(agent: Agent, item: Item) -> list[str]:
    """Return the whole text of an item."""
    from tui.context.overrides import content_of  # noqa: PLC0415 - on demand
    from tui.core.messages import text_of  # noqa: PLC0415

    fixed = agent.context.fixed_texts().get(item.id)
    record = next((r for r in agent.session.records if r.id == item.id), None)
    text = fixed if fixed is not None else text_of(content_of(record)) if record else ""
    return shown(text or "It contains no text.")


PlainView: TypeAlias = "Callable[[PlainFrontend, str], Coroutine[Any, Any, None]]"

REASONS: Final[Mapping[str, str]] = {c.name: c.screen_only for c in COMMANDS if c.screen_only}
"""Say why a command is not for plain lines."""

HELP: Final[Mapping[str, tuple[str, str]]] = {
    "help": ("[TOPIC]", "this list, or a topic of the manual"),
    "rewind": (
        "[N | undo]",
        "rewind to an earlier prompt, with the files if you want; 1 is the last, undo goes back",
    ),
    "tree": ("[N | ID]", "all branches of this session; switch to one, with its files or without"),
    "context": (
        "[all | hide N | show N | pin N | unpin N | read N]",
        "the context, largest items first, with tokens",
    ),
    "pin": ("[N]", "pin or unpin item N of /context, or the last tool result"),
    "memory": ("[save | NOTE]", "read MEMORY.md out; save a note, or what's new"),
    "output": ("[N]", "read the whole output of the last tool, or the Nth from the end"),
    "plan": (
        "[edits | ask]",
        "plan mode: read-only (toggle); edits accepts file edits",
    ),
    "agents": ("[stop N | read N]", "sub-agents; stop one, or read its last message"),
    "jobs": (
        "[N | stop N | move]",
        "background commands; read one's output, stop it, or move the running one there",
    ),
    "mcp": (
        "[restart NAME | on NAME TOOL | off NAME TOOL | log NAME | login NAME | logout NAME]",
        "the MCP servers and their tools",
    ),
    "config": ("", "where the settings are, and whether they are valid"),
}
"""The argument and help of commands that differ from those on the full screen."""

_DECISIONS: Final = 20
_LOG_LINES: Final = 20
_TOOLS: Final = 100
"""Most tools of one server that are read out."""
_LOG_BYTES: Final = 20_000
_MCP: Final = (
    "/mcp, /mcp restart NAME, /mcp off NAME TOOL, /mcp on NAME TOOL, /mcp log NAME, "
    "/mcp login NAME, or /mcp logout NAME"
)


async def help_(frontend: PlainFrontend, words: str) -> None:
    """Say what can be typed; with words, the topic of the manual that they name."""
    if words:
        topics = await asyncio.to_thread(manual.named, words)
        if len(topics) == 1:
            frontend.terminal.say(*read(topics[0].text))
        else:
            names = ", ".join(topic.name for topic in topics or manual.topics())
            frontend.terminal.say(f"Which topic? {names}.")
        return
    own = frontend.conversation.user_commands
    await asyncio.to_thread(own.load)
    frontend.terminal.say(
        "Type a prompt and press Enter. To write several lines, end a line with a backslash or"
        " wrap the text in three quotes.",
        "You can type while the agent works: Holdfast sends it as soon as the agent can take it.",
        "Ctrl+C stops what runs; twice at an empty prompt it quits, like Ctrl+D.",
        "Tab completes commands, and files after @; images are attached that way too.",
        "Start a line with ! to run it in the shell; the model sees its output with your next"
        " prompt. !! keeps it from the model.",
        "Commands:",
        *(
            spoken(f"/{command.name} {argument}").rstrip() + f": {text}."
            for command in COMMANDS
            for argument, text in (HELP.get(command.name, (command.argument, command.help)),)
            if command.name not in REASONS
        ),
        *(
            f"/{each.name}{'' if each.shipped else ', yours'}: {spoken(each.description)}."
            for each in own.commands.values()
        ),
        f"Only on the full screen: {', '.join(f'/{name}' for name in REASONS)}.",
    )
    frontend.terminal.say(*(spoken(problem) for problem in own.problems[:1]))


async def keys(frontend: PlainFrontend, _: str) -> None:
    """List the keys of the full screen's actions: in plain lines no key arrives alone."""
    keymap = keymap_of(frontend.services.settings.now.keys)
    frontend.terminal.say(
        f"Terminal: {terminal_name(os.environ)}.",
        "Here your terminal's own line reads the keys, so Holdfast can't show them."
        " Use /keys on the full screen.",
        "Keys of the full screen, by their names in [keys]:",
        *(f"{row.name}: {row.values[0]}" for row in action_rows(keymap)),
    )


async def status(frontend: PlainFrontend, _: str) -> None:
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    speaker, measured, services = frontend.speaker, frontend.speaker.measured, frontend.services
    switched = {"ELEVATED": speaker.elevated, "verbose": speaker.verbose}
    on = ", ".join(name for name, value in switched.items() if value)
    rows = [
        row
        for row in status_rows(agent, services.workspace, services.settings.now)
        if row.name not in {"cache", "cost"}
    ]
    busy = frontend.conversation.busy
    doing = "running a turn or a command" if busy else "nothing, it's your turn"
    frontend.report(Report(spoken(agent.session.title) or "Untitled session", rows))
    frontend.terminal.say(
        *([f"On: {on}."] if on else []),
        f"Context: {meter(measured)}" if measured else "Context: nothing measured yet.",
        *filter(None, (spending(measured),) if measured else ()),
        f"Doing: {doing}.",
    )


async def todos(frontend: PlainFrontend, _: str) -> None:
    frontend.terminal.say(*(todo_lines(frontend.speaker.todos) or ["No to-do list yet."]))


async def output(frontend: PlainFrontend, number: str) -> None:
    """Read the whole output of a tool: /output reads the last one, /output 2 the one before it."""
    kept = frontend.speaker.outputs
    place = int(number[:4]) if number.isdecimal() else 1
    if number and not number.isdecimal():
        raise UsageError("/output reads the last tool's output, /output 2 the one before.")
    if not 1 <= place <= len(kept):
        raise UsageError("No such output." if kept else "No tool has run yet.")
    entry = kept[-place]
    lines = shown(entry.text.rstrip("\n")) if entry.text.strip() else ["It printed nothing."]
    frontend.terminal.say(f"Output of {spoken(entry.name)}:", *lines, "End of output.")


async def copy(frontend: PlainFrontend, number: str) -> None:
    """Copy the last answer, or a block of the newest answer with code, by its number there."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    answer, code = await asyncio.to_thread(_copyable, agent.session.records)
    chosen = copied(number, answer, code)
    if chosen.text:
        frontend.terminal.copy(chosen.text)
        await asyncio.to_thread(clipboard.write, chosen.text)
    frontend.say(chosen.said, chosen.level, hint=chosen.hint)


def _copyable(records: Sequence[Record]) -> tuple[str, list[str]]:
    """Return the last answer, and the code blocks of the last one that has any."""
    last = ""
    for record in reversed(records):
        (_, fact), *_ = retold([record])
        if isinstance(fact, AssistantMessage) and fact.text.strip():
            last = last or fact.text.strip()
            if code := code_of(fact.text):
                return last, code
    return last, []


async def diff_(frontend: PlainFrontend, _: str) -> None:
    if changes := await session_diff(frontend.conversation):
        count, text = changes
        frontend.terminal.say(f"{plural(count, 'file')} changed: {changed(text)}.", *diff(text))


async def timeline(frontend: PlainFrontend, prompt: str) -> None:
    """Say what happened in the session, in short; with a number, every step of that prompt, with
    `all`, every step."""
    from tui.app.reports.timeline import prompt_steps, step_line, timeline_report  # noqa: PLC0415 - on demand
    from tui.context.timeline import SessionTimeline  # noqa: PLC0415

    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    prices, cwd = frontend.services.settings.now.prices, agent.session.header.cwd
    made = SessionTimeline(prices, cwd)
    await asyncio.to_thread(made.extend, tuple(agent.session.records))
    if not made.steps:
        frontend.terminal.say("Nothing has happened yet.")
        return
    if not prompt:
        report = timeline_report(made)
        frontend.terminal.say(
            *map(spoken, report.lines), "Every step of a prompt: /timeline 1. All: /timeline all."
        )
        return
    steps = made.steps if prompt == "all" else prompt_steps(made, prompt)
    if not steps:
        prompts = plural(len(made.marks["prompt"]), "prompt")
        raise UsageError(f"There is no prompt {prompt} here.", hint=f"The session has {prompts}.")
    frontend.terminal.say(*(sentence(step_line(step)) for step in steps))


async def tasks(frontend: PlainFrontend, _: str) -> None:
    """Say the state of the tasks of this folder's run."""
    from tui.batch.report import RunSummary  # noqa: PLC0415 - on demand
    from tui.batch.run_store import OfflineRun  # noqa: PLC0415

    run = OfflineRun(frontend.services.workspace)
    await run.refresh()
    if run.state is None:
        frontend.terminal.say("No run in this folder. Start one with: holdfast run TASKS.md")
        return
    frontend.terminal.say(
        f"Run of {shorten(run.state.task_file)}: {RunSummary(run.state).totals()}."
    )
    frontend.terminal.say(
        *(
            spoken(f"{task.index + 1}, {task.status}: {task.task}")[:200]
            for task in run.state.tasks
        ),
        "Continue it in plain lines with: holdfast run --headless",
    )


async def doctor(frontend: PlainFrontend, _: str) -> None:
    """Say what `holdfast doctor` finds."""
    from tui.app import doctor as checks  # noqa: PLC0415 - it looks at much

    services, agent = frontend.services, frontend.conversation.agent
    model = agent.models.current if agent else ""
    results = await asyncio.to_thread(checks.examine_session, services, model)
    status_words = {"ok": "well", "warn": "warning", "fail": "problem"}
    for check in results:
        fix = f"To do: {check.fix}" if check.fix else ""
        frontend.terminal.say(
            sentence(f"{check.name}, {status_words[check.status]}: {check.detail}", fix)
        )


async def config(frontend: PlainFrontend, _: str) -> None:
    """Say where the settings are, and whether they are valid."""
    from tui.settings.layers import config_problem  # noqa: PLC0415 - on demand

    file = frontend.services.folders.config_file
    problem = await asyncio.to_thread(config_problem, file) if file.is_file() else None
    validity = f"Wrong: {problem.message}" if problem else "They are valid"
    state = validity if file.is_file() else "The file doesn't exist yet"
    frontend.terminal.say(
        sentence(f"Settings file: {shorten(file)}", state),
        "Edit it in another terminal: editors such as nano can't run in this one.",
    )


async def permissions(frontend: PlainFrontend, argument: str) -> None:
    from tui.app.commands import permissions as editor  # noqa: PLC0415 - on demand

    if argument:
        await editor.permissions(frontend.conversation, argument)
        return
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    report = await permissions_report(agent, frontend.services, elevated=frontend.speaker.elevated)
    frontend.terminal.say("Rules: deny before ask, ask before allow.")
    frontend.terminal.say(*(f"{name}: {spoken(value)}." for name, value in report.rules))
    found = report.decisions
    frontend.terminal.say(f"{plural(len(found), 'decision')}." if found else "No decisions yet.")
    frontend.terminal.say(
        *(
            spoken(f"{one.time}, {one.tool} {one.subject}: {one.answer} by {one.by}. {one.reason}")
            for one in found[-_DECISIONS:]
        )
    )


async def agents(frontend: PlainFrontend, argument: str) -> None:
    """List the sub-agents and the available kinds; stop one, or read its last answer."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    say, listed = frontend.terminal.say, agent.sub_agents.all
    verb, *rest = argument.split()[:2] or [""]
    if not verb:
        if not listed:
            say("No sub-agents in this session yet.")
        for number, one in enumerate(listed, 1):
            row = agent_row(one, frontend.services.clock)
            say(sentence(f"{number}: {row.name}: {row.about[0]}"))
        kinds = await asyncio.to_thread(agent.find_agents)
        say(*(spoken(f"Kind {one.name}: {one.description}")[:300] for one in kinds.all.values()))
        say(*map(spoken, kinds.problems))
        return
    number = int(rest[0][:6]) if rest and rest[0].isdecimal() else 0
    if verb not in {"stop", "read"} or not 0 < number <= len(listed):
        raise UsageError(f"Unknown /agents {argument}.", hint="/agents stop N, or /agents read N")
    one = listed[number - 1]
    if verb == "stop":
        one.stop()
        say(f"Stopping sub-agent {number}." if one.works else f"Sub-agent {number} has ended.")
    else:
        records = await asyncio.to_thread(agent.sub_agents.records_of, one)
        say(*read(last_words(records) or "It has said nothing yet."))


async def mcp(frontend: PlainFrontend, argument: str) -> None:
    """Say the state of the MCP servers; restart one, switch a tool, read its log."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    if not agent.mcp.all:
        frontend.terminal.say("No MCP servers configured. Add one with holdfast mcp add.")
        return
    verb, *rest = argument.split()[:3] or [""]
    if not verb:
        for server in agent.mcp.all:
            frontend.terminal.say(*server_lines(agent, server))
        frontend.terminal.say(sentence(_MCP))
        return
    server = next((one for one in agent.mcp.all if rest and one.name == rest[0]), None)
    if server is None:
        raise UsageError("Which server?", hint=_MCP)
    match verb, rest[1:]:
        case (("on" | "off"), [tool]) if any(one.own_name == tool for one in server.tools):
            switched = next(one for one in server.tools if one.own_name == tool)
            reload = (await agent.mcp.price_of_switch(switched)).reload
            for event in agent.mcp.switch_tool(server, tool, on=verb == "on"):
                frontend.show(event)
            now = "available to the model" if verb == "on" else "hidden from the model"
            frontend.terminal.say(f"{tool} is {now}, starting with the next request.")
            if reload:
                frontend.terminal.say(f"/reload adds that to each request: {reload}.")
        case _, []:
            await _whole_server(frontend, server, verb)
        case _:
            raise UsageError(f"Unknown /mcp {argument}.", hint=_MCP)


async def _whole_server(frontend: PlainFrontend, server: Server, verb: str) -> None:
    """Carry out a verb for a server, not for one of its tools."""
    match verb:
        case "restart":
            await server.restart()
            frontend.terminal.say(f"Restarting {server.name}.")
        case "log":
            text = await server.log_end(_LOG_BYTES)
            frontend.terminal.say(*shown(text.rstrip("\n"))[-_LOG_LINES:])
        case "login":
            await _sign_in(frontend, server)
        case "logout":
            await server.sign_out()
            frontend.terminal.say(f"Signed out of {server.name}.")
        case _:
            raise UsageError(f"Unknown /mcp {verb}.", hint=_MCP)


async def _sign_in(frontend: PlainFrontend, server: Server) -> None:
    """Sign in to a server: say the address; the one it ends at may be pasted."""
    pasted: asyncio.Queue[str] = asyncio.Queue()

    async def show(address: str) -> None:
        opened = await asyncio.to_thread(open_page, address)
        what = "Sign in in your browser. The page is" if opened else "Open in a browser"
        frontend.terminal.say(f"{what}: {address}")
        text = await frontend.terminal.answer(
            "Press Enter once you have signed in, or paste the address that the browser ends at: "
        )
        if text and text.strip():
            pasted.put_nowait(text)

    await server.sign_in(show, pasted.get)
    frontend.terminal.say(f"Signed in to {server.name}.")


def server_lines(agent: Agent, server: Server) -> list[str]:
    """Return a server, and below it its tools."""
    more = len(server.tools) - _TOOLS
    detail = f": {spoken(server.detail)}" if server.detail else ""
    return [
        f"Server {server.name}, {server.state}, {tools_of(agent, server)}{detail}.",
        *([f"  Also {server.offers}."] if server.offers else []),
        *(
            f"  {tool.own_name}{', off' if tool.own_name in server.switched_off else ''}:"
            f" {spoken(tool.description)[:120]}"
            for tool in server.tools[:_TOOLS]
        ),
        *([f"  and {plural(more, 'more tool')}"] if more > 0 else []),
    ]


async def quit_(frontend: PlainFrontend, _: str) -> None:
    if frontend.conversation.in_turn:  # otherwise it is asked when the prompt has ended
        frontend.quitting = await ask_to_quit(frontend.conversation)
        if frontend.quitting is None:
            return
    frontend.leave()


async def jobs(frontend: PlainFrontend, argument: str) -> None:
    """/jobs lists the background commands; N reads the end of one's output, stop N stops it, and
    move continues the running command in the background."""
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    match argument.split():
        case []:
            frontend.terminal.say(*(job_lines(agent.jobs.all) or [NO_JOBS]))
        case ["move"]:
            frontend.conversation.to_background()
        case ["stop", number]:
            job = named_job(agent, number).job
            if job.ended:
                frontend.terminal.say(f"{job.id} has already ended.")
            else:
                await job.stop("person")
        case [number]:
            owned = named_job(agent, number)
            text = await asyncio.to_thread(owned.job.tail, lines=_LOG_LINES, chars=_LOG_BYTES)
            frontend.terminal.say(*job_lines([owned], int(number.removeprefix("job-"))))
            frontend.terminal.say(*(shown(text) if text else ["No output yet."]))
        case _:
            raise UsageError(f"Unknown /jobs {argument}.", hint=JOBS_USAGE)


def job_lines(jobs: Sequence[OwnedJob], first: int = 1) -> list[str]:
    """Return for each background command its number, state, start time, and the place of its
    output."""
    lines: list[str] = []
    for number, owned in enumerate(jobs, first):
        row = job_row(owned)
        command, facts, where = row.about
        lines.append(sentence(f"{number}: {command}, {row.values[0]}"))
        lines.append(sentence(f"  {facts}, {'output ' if owned.job.bytes else ''}{where}"))
    return lines


async def usage(frontend: PlainFrontend, words: str) -> None:
    """Say what the session has cost, and where it went."""
    from tui.app.reports.usage import (  # noqa: PLC0415 - on demand
        attribution_of,
        spoken_tables,
        usage_report,
    )

    if agent := frontend.conversation.open_agent():
        frontend.report(usage_report(agent))
        found = await asyncio.to_thread(attribution_of, agent)
        for line in spoken_tables(found, words):
            frontend.terminal.say(sentence(line))


VIEWS: Final[Mapping[str, PlainView]] = {
    "help": help_,
    "keys": keys,
    "context": context,
    "pin": pin,
    "output": output,
    "copy": copy,
    "diff": diff_,
    "timeline": timeline,
    "tasks": tasks,
    "todos": todos,
    "permissions": permissions,
    "agents": agents,
    "jobs": jobs,
    "mcp": mcp,
    "status": status,
    "usage": usage,
    "config": config,
    "doctor": doctor,
    "quit": quit_,
}


def view(frontend: PlainFrontend, name: str, argument: str) -> Coroutine[Any, Any, None] | None:
    """Return the coroutine for a command that only plain lines have; None for one with a shared
    handler."""
    if name in REASONS:
        return _refuse(frontend, name)
    return VIEWS[name](frontend, argument) if name in VIEWS else None


async def _refuse(frontend: PlainFrontend, name: str) -> None:
    frontend.terminal.say(REASONS[name])

"""The commands: one table from name to handler. A later command is one more row."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tui import themes
from tui.desk import Desk
from tui.errors import HoldfastError
from tui.services import SessionChoice
from tui.widgets.figures import plural

_COMMAND = re.compile(r"/([a-z][a-z-]*)(?:\s+(.*))?\s*", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Command:
    """`run` gets the desk and what stood after the name. Without `run` it is a directive: the
    agent gets the whole text as typed."""

    name: str
    help: str
    run: Callable[[Desk, str], Awaitable[None] | None] | None = None
    aliases: tuple[str, ...] = ()
    argument: str = ""


def find(word: str) -> Command | None:
    """The command of that name or alias."""
    wanted = word.lower()
    return next((c for c in COMMANDS if wanted == c.name or wanted in c.aliases), None)


def split(text: str) -> tuple[str, str] | None:
    """Name and argument of a typed command; None for other text, a path among them."""
    found = _COMMAND.fullmatch(text)
    return (found[1].lower(), (found[2] or "").strip()) if found else None


def unknown(word: str) -> tuple[str, str]:
    """What to say of a command that does not exist, and what to do."""
    import difflib  # noqa: PLC0415 - for a typing mistake only

    names = [name for c in COMMANDS for name in (c.name, *c.aliases)]
    near = difflib.get_close_matches(word, names, n=1)
    meant = f"Did you mean /{near[0]}? " if near else ""
    return f"There is no /{word}.", f"{meant}/help lists all; a space before it sends it as text."


async def route(desk: Desk, text: str) -> bool:
    """Do what was typed: a command, a shell line, or a prompt. False keeps it in the prompt."""
    say = desk.bridge.chat.notice.say
    desk.bridge.chat.notice.clear()
    if text.startswith("!") and text[1:].strip():
        desk.bridge.run_shell(text[1:].strip())
        return True
    named = split(text)
    if named is None:
        desk.bridge.submit(text)
        return True
    command = find(named[0])
    if command is None:
        what, hint = unknown(named[0])
        say(what, "warning", hint=hint)
        return False
    if command.run is None:
        desk.bridge.submit(text)
        return True
    try:
        done = command.run(desk, named[1])
        if done is not None:
            await done
    except HoldfastError as error:
        say(error.message, "error", hint=error.hint)
    return True


def _help(desk: Desk, _: str) -> None:
    from tui.screens.help import HelpScreen, HelpSection  # noqa: PLC0415 - as are those below: on demand
    from tui.widgets.keys import HELP  # noqa: PLC0415

    keys = [
        HelpSection(title, tuple((k.shown, k.help) for k in table if k.shown))
        for title, table in HELP
    ]
    rows = tuple((" ".join((_names(c), c.argument)).strip(), c.help) for c in COMMANDS)
    desk.app.push_screen(HelpScreen([HelpSection("Commands", rows), *keys]))


def _names(command: Command) -> str:
    return ", ".join(f"/{name}" for name in (command.name, *command.aliases))


def _new(desk: Desk, _: str) -> None:
    desk.open_session(SessionChoice())


async def _resume(desk: Desk, wanted: str) -> None:
    if not wanted:
        await _browse(desk)
        return
    rows = await desk.bridge.services.list_sessions()
    found = [row for row in rows if row.id.startswith(wanted)]
    if len(found) == 1:
        desk.open_session(SessionChoice(found[0].path))
    else:
        many = f"{len(found)} sessions begin" if found else "No session of this folder begins"
        desk.bridge.chat.notice.say(
            f"{many} with {wanted}.", "warning", hint="/sessions lists them."
        )


async def _browse(desk: Desk) -> None:
    from tui.resuming import picked_choice, shelf_of  # noqa: PLC0415
    from tui.screens.choices import Picked  # noqa: PLC0415
    from tui.screens.sessions import SessionsScreen  # noqa: PLC0415

    def chosen(picked: Picked | None) -> None:
        if picked is not None:
            desk.open_session(picked_choice(picked))

    agent = desk.bridge.agent
    current = agent.session.path if agent else None
    screen = SessionsScreen(shelf_of(desk.bridge), current=current, rename=desk.bridge.rename)
    desk.app.push_screen(screen, chosen)


async def _fork(desk: Desk, _: str) -> None:
    """Go on with a copy of the session, as it stands in memory."""
    if desk.bridge.agent is None or not desk.bridge.agent.session.records:
        desk.bridge.chat.notice.say("There is nothing to fork yet.")
        return
    from tui.resuming import forked  # noqa: PLC0415

    desk.open_session(await forked(desk.bridge))


def _rename(desk: Desk, title: str) -> None:
    if not title:
        desk.bridge.chat.notice.say("What is the title?", hint="/rename a few words")
    elif desk.bridge.agent is None or not desk.bridge.agent.session.records:
        desk.bridge.chat.notice.say("There is nothing to rename yet.")
    else:
        desk.bridge.rename(title)


def _context(desk: Desk, _: str) -> None:
    from tui.screens.context import ContextScreen  # noqa: PLC0415

    bridge = desk.bridge
    if bridge.agent is None:
        bridge.chat.notice.say("No session is open yet.")
        return
    root = bridge.services.workspace
    desk.app.push_screen(ContextScreen(bridge.agent, bridge.presenter.show, root))


async def _pin(desk: Desk, _: str) -> None:
    from tui.marking import mark  # noqa: PLC0415 - on demand

    await mark(desk.bridge, "pin")


def _copy(desk: Desk, _: str) -> None:
    text, notice = desk.bridge.presenter.last_answer, desk.bridge.chat.notice
    if text:
        desk.app.copy_to_clipboard(text)
        notice.say(f"The last answer is copied: {plural(len(text), 'character')}.", "success")
    else:
        notice.say("There is no answer to copy yet.")


def _output(desk: Desk, width: str) -> None:
    if not width:
        desk.bridge.chat.panes.toggle()
    elif (share := width.removesuffix("%").strip()).isdecimal():
        desk.bridge.chat.panes.resize(int(share[:4]) / 100)
    else:
        desk.bridge.chat.notice.say("The width is a percentage.", "warning", hint="/output 40")


async def _find(desk: Desk, text: str) -> None:
    await desk.bridge.chat.action_find(text)


async def _tasks(desk: Desk, _: str) -> None:
    from tui.batch.standing import StandingRun  # noqa: PLC0415
    from tui.batch.state import TaskState  # noqa: PLC0415
    from tui.screens.tasks import TasksScreen  # noqa: PLC0415
    from tui.session import catalog  # noqa: PLC0415

    services = desk.bridge.services
    run = StandingRun(services.workspace, services.clock)
    await run.refresh()

    async def leave() -> None:
        await desk.app.pop_screen()

    async def open_task(task: TaskState) -> None:
        id_ = task.session_id or ""
        path = await asyncio.to_thread(catalog.resolve, id_, services.folders)
        await leave()
        desk.open_session(SessionChoice(path))

    screen = TasksScreen(run, services.clock, on_open=open_task, on_leave=leave)
    await desk.app.push_screen(screen)
    await screen.furnish()


def _status(desk: Desk, _: str) -> None:
    from tui import reports  # noqa: PLC0415

    reports.status(desk)


def _usage(desk: Desk, _: str) -> None:
    from tui import reports  # noqa: PLC0415

    reports.usage(desk)


async def _retry(desk: Desk, argument: str) -> None:
    from tui import recovery  # noqa: PLC0415

    await recovery.retry(desk, argument)


async def _model(desk: Desk, name: str) -> None:
    from tui import choosing  # noqa: PLC0415

    await choosing.model(desk, name)


async def _doctor(desk: Desk, _: str) -> None:
    from tui import examining  # noqa: PLC0415

    await examining.doctor(desk)


def _drill(desk: Desk, faults: str) -> None:
    from tui import examining  # noqa: PLC0415

    examining.drill(desk, faults)


async def _theme(desk: Desk, name: str) -> None:
    services, notice = desk.bridge.services, desk.bridge.chat.notice
    names = ", ".join(themes.available(services.folders.config / "themes"))
    if not name:
        notice.say(f"Themes: {names}.", hint=f"This is {desk.app.theme}.")
        return
    problems = desk.use_theme(name)
    await services.save_theme(name)
    if problems:
        notice.say(str(problems[0]), "warning", hint="The built-in colour is used.")


async def _quit(desk: Desk, _: str) -> None:
    await desk.app.action_quit()


COMMANDS: tuple[Command, ...] = (
    Command("help", "keys and commands", _help),
    Command("new", "begin a new session; the old one is kept", _new, ("clear",)),
    Command("resume", "go on with a session", _resume, ("sessions",), "[ID]"),
    Command("rename", "give the session a title", _rename, argument="TITLE"),
    Command("fork", "go on with a copy; the original stays as it is", _fork),
    Command("context", "what the model sees, item by item; mask and pin", _context),
    Command("pin", "keep the chosen tool result in the context, or let it go", _pin),
    Command("copy", "copy the last answer", _copy),
    Command("find", "find in the conversation", _find, argument="[TEXT]"),
    Command("output", "show or hide the output pane, or set its width", _output, (), "[%]"),
    Command("tasks", "the tasks of this folder's run, and how they stand", _tasks),
    Command("status", "session, folder, model, mode", _status),
    Command("usage", "tokens and cost", _usage, ("cost",)),
    Command("model", "choose the model that answers, or name it", _model, argument="[NAME]"),
    Command("retry", "send it again now, or with another model", _retry, argument="[other]"),
    Command("theme", "list the themes, or switch", _theme, argument="[NAME]"),
    Command("think", "reason step by step before acting", argument="[on|off]"),
    Command("verbose", "show every decision", argument="[on|off]"),
    Command("elevated", "nothing is asked any more", argument="[on|off]"),
    Command("doctor", "check the installation, the key and the sessions", _doctor),
    Command("drill", "see what happens to errors, in a scratch session", _drill, (), "[FAULTS]"),
    Command("quit", "save and leave", _quit, ("exit",)),
)
"""In the order of the help screen."""

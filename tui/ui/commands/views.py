"""Commands that show something, or change how it is shown."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from tui.core.formatting import plural
from tui.ui.session_flow.command_context import Desk


async def help_(desk: Desk, words: str) -> None:
    """Keys and commands: first what works where the person is, and everywhere. With words, the
    manual."""
    from tui.app.commands.registry import COMMANDS, Command  # noqa: PLC0415 - as are those below: on demand
    from tui.core.text_cleaning import one_line  # noqa: PLC0415
    from tui.ui.screens.help import HelpScreen, HelpSection  # noqa: PLC0415
    from tui.ui.widgets.dialog import Dialog  # noqa: PLC0415
    from tui.ui.widgets.keys import APP_KEYS, HELP, HERE  # noqa: PLC0415

    def names(command: Command) -> str:
        return ", ".join(f"/{name}" for name in (command.name, *command.aliases))

    screen = desk.app.screen
    within = (screen.focused or screen).ancestors_with_self
    here = next((HERE[name] for w in within if (name := type(w).__name__) in HERE), None)
    await asyncio.to_thread(desk.own.load)
    rows = tuple((f"{names(c)} {c.argument}".strip(), c.help) for c in COMMANDS)
    own = tuple(
        (f"/{c.name} {one_line(c.argument)}".strip(), one_line(c.description))
        for c in desk.own.commands.values()
    )
    keys = [
        (table, HelpSection(title, tuple((k.shown, k.help) for k in table if k.shown)))
        for title, table in HELP
    ]
    first = [replace(section, here=True) for table, section in keys if table is here]
    if not first and isinstance(screen, Dialog):
        first = [HelpSection(*screen.explained, here=True)]
    everywhere = [section for table, section in keys if table is APP_KEYS]
    sections = [*first, *everywhere, HelpSection("Commands", rows)]
    if own:
        sections.append(HelpSection("Your own commands", own))
    rest = [section for table, section in keys if table is not here and table is not APP_KEYS]
    desk.app.push_screen(HelpScreen([*sections, *rest], words))
    if desk.own.problems:
        desk.bridge.chat.notice.say(one_line(desk.own.problems[0]), "warning")


def copy(desk: Desk, _: str) -> None:
    text, notice = desk.bridge.presenter.last_answer, desk.bridge.chat.notice
    if text:
        desk.app.copy_to_clipboard(text)
        notice.say(f"The last answer is copied: {plural(len(text), 'character')}.", "success")
    else:
        notice.say("There is no answer to copy yet.")


def output(desk: Desk, width: str) -> None:
    if not width:
        desk.bridge.chat.panes.toggle()
    elif (share := width.removesuffix("%").strip()).isdecimal():
        wanted = int(share[:4]) / 100
        given = desk.bridge.chat.panes.resize(wanted)
        if abs(given - wanted) > 0.015:  # else it is rounded to cells
            least = "most" if given < wanted else "least"
            text = f"{round(100 * given)} % of the width now: the {least} that it gets here."
            desk.bridge.chat.notice.say(f"The output has {text}")
    else:
        desk.bridge.chat.notice.say("The width is a percentage.", "warning", hint="/output 40")


async def find(desk: Desk, text: str) -> None:
    await desk.bridge.chat.action_find(text)


async def tasks(desk: Desk, _: str) -> None:
    from tui.ui.tasks import task_flow as tasks_desk  # noqa: PLC0415 - on demand

    await tasks_desk.show(desk)


def todos(desk: Desk, _: str) -> None:
    from tui.ui.widgets.conversation.items import NoticeItem  # noqa: PLC0415

    marks = {"completed": "✓", "in_progress": "▸"}
    listed = desk.bridge.chat.todos.todos
    if not listed:
        desk.bridge.chat.notice.say("The agent keeps no list now.")
        return
    lines = [f"{marks.get(str(t.get('status')), '·')} {t.get('text', '')}" for t in listed]
    done = sum(t.get("status") == "completed" for t in listed)
    title = f"To do: {done} of {len(listed)} done"
    desk.bridge.chat.add(NoticeItem(title, detail="\n".join(lines), folded=False))


def status(desk: Desk, _: str) -> None:
    from tui.ui.session_flow import status_reports  # noqa: PLC0415

    status_reports.status(desk)


def usage(desk: Desk, _: str) -> None:
    from tui.ui.session_flow import status_reports  # noqa: PLC0415

    status_reports.usage(desk)


async def quit_(desk: Desk, _: str) -> None:
    await desk.app.action_quit()

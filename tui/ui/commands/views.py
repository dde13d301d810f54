"""Commands that only the full screen has: views on screens of their own, panes, the editor.

All others have one handler for every front end, in `tui.app`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import structs

from tui.app.reports import Report
from tui.app.reports.session import copied, session_diff, status_rows
from tui.core.facts import Overlay
from tui.core.formatting import plural
from tui.ui.screens.external_programs import step_aside

if TYPE_CHECKING:
    from tui.app.dialog_data import ShownLine
    from tui.ui.frontend import ScreenFrontend


async def _load(*modules: str) -> None:
    """Import modules in a thread: those of a large screen take 10 to 40 ms without a key."""
    if not all(module in sys.modules for module in modules):
        await asyncio.to_thread(lambda: [*map(import_module, modules)])


async def help_(frontend: ScreenFrontend, words: str) -> None:
    """Show keys and commands, first those that work here, then those that work everywhere. With
    words, search the manual."""
    from tui.app import manual  # noqa: PLC0415 - as are those below: on demand
    from tui.app.commands.table import COMMANDS, SlashCommand  # noqa: PLC0415
    from tui.core.text_cleaning import one_line  # noqa: PLC0415
    from tui.ui.screens.help import HelpScreen, HelpSection  # noqa: PLC0415
    from tui.ui.widgets.dialog import Dialog  # noqa: PLC0415
    from tui.ui.widgets.keys import APP_KEYS, HELP, HERE  # noqa: PLC0415

    def names(command: SlashCommand) -> str:
        return ", ".join(f"/{name}" for name in (command.name, *command.aliases))

    screen, own = frontend.app.screen, frontend.conversation.user_commands
    within = (screen.focused or screen).ancestors_with_self
    # The innermost widget with a key table decides what "here" means.
    here = next((HERE[name] for w in within if (name := type(w).__name__) in HERE), None)
    await asyncio.gather(asyncio.to_thread(own.load), asyncio.to_thread(manual.all_sections))
    rows = tuple((f"{names(c)} {c.argument}".strip(), c.help) for c in COMMANDS)
    prompts = [
        (c.shipped, (f"/{c.name} {one_line(c.argument)}".strip(), one_line(c.description)))
        for c in own.commands.values()
    ]
    rows += tuple(row for shipped, row in prompts if shipped)
    theirs = tuple(row for shipped, row in prompts if not shipped)
    own_keys = frontend.app.own_keys
    keys = [(table, HelpSection.of(title, table, own_keys)) for title, table in HELP]
    first = [replace(section, here=True) for table, section in keys if table is here]
    # A dialog without a table explains its own keys.
    if not first and isinstance(screen, Dialog):
        first = [HelpSection(*screen.explained, here=True)]
    everywhere = [section for table, section in keys if table is APP_KEYS]
    sections = [*first, *everywhere, HelpSection("Commands", rows)]
    if theirs:
        sections.append(HelpSection("Your own commands", theirs))
    others = [section for table, section in keys if table is not here and table is not APP_KEYS]
    frontend.app.push_screen(HelpScreen([*sections, *others], words))
    if own.problems:
        frontend.say(one_line(own.problems[0]), "warning")


async def keys(frontend: ScreenFrontend, _: str) -> None:
    """Show what pressed keys send and do, until it is closed."""
    from tui.ui.screens.key_viewer import QUESTIONS, KeysScreen, Meanings  # noqa: PLC0415 - on demand

    meanings = Meanings(frontend.chat, frontend.app.own_keys)
    await frontend.app.push_screen(KeysScreen(os.environ, meanings))
    if os.environ.get("TERM") != "linux":  # the console answers none of them
        frontend.terminal.write(QUESTIONS)


async def copy(frontend: ScreenFrontend, number: str) -> None:
    """Copy the last answer, or a block of the newest answer with code, as it was written."""
    from tui.ui.widgets.markdown.code import blocks  # noqa: PLC0415 - on demand

    answer = frontend.chat.conversation.with_code
    code = await asyncio.to_thread(blocks, answer.text) if number and answer else []
    chosen = copied(number, frontend.renderer.last_answer, code)
    if chosen.text:
        frontend.app.copy_to_clipboard(chosen.text)
    frontend.say(chosen.said, chosen.level, hint=chosen.hint)


async def output(frontend: ScreenFrontend, width: str) -> None:
    panes = frontend.chat.panes
    if not width:
        panes.toggle()
    elif (share := width.removesuffix("%").strip()).isdecimal():
        asked_for = int(share[:4]) / 100
        got = panes.resize(asked_for)
        if abs(got - asked_for) > 0.015:  # otherwise only rounded to cells
            limit = "most" if got < asked_for else "least"
            frontend.say(f"Output pane: {round(100 * got)} % is the {limit} that fits here.")
    else:
        frontend.say("Give the width as a percentage.", "warning", hint="/output 40")


async def find(frontend: ScreenFrontend, text: str) -> None:
    await frontend.chat.action_find(text)


async def diff(frontend: ScreenFrontend, _: str) -> None:
    """Show what the session's own tools changed in files."""
    from tui.ui.screens.reports import DiffScreen  # noqa: PLC0415 - on demand
    from tui.ui.widgets.diff import counts  # noqa: PLC0415

    if changes := await session_diff(frontend.conversation):
        count, text = changes
        title = f"{plural(count, 'file')} changed · {counts(text)}"
        frontend.app.push_screen(DiffScreen(title, text))


async def tasks(frontend: ScreenFrontend, _: str) -> None:
    await _load("tui.ui.tasks.task_flow")
    from tui.ui.tasks import task_flow  # noqa: PLC0415 - on demand

    await task_flow.show(frontend)


async def watch(frontend: ScreenFrontend, session: str) -> None:
    """Show a session live that another process has. No command: a choice where one is opened."""
    from tui.ui.desk import places  # noqa: PLC0415 - on demand

    await places.watch(frontend, session)


async def desk(frontend: ScreenFrontend, _: str) -> None:
    await _load("tui.ui.desk.over_chat")
    from tui.ui.desk import over_chat  # noqa: PLC0415 - on demand

    await over_chat.show(frontend)


async def todos(frontend: ScreenFrontend, _: str) -> None:
    marks = {"completed": "✓", "in_progress": "▸"}
    listed = frontend.chat.todos.todos
    if not listed:
        frontend.say("No to-do list yet.")
        return
    lines = [f"{marks.get(str(t.get('status')), '·')} {t.get('text', '')}" for t in listed]
    done = sum(t.get("status") == "completed" for t in listed)
    frontend.report(Report(f"To do: {done} of {len(listed)} done", lines))


async def permissions(frontend: ScreenFrontend, argument: str) -> None:
    from tui.app.commands import permissions as editor  # noqa: PLC0415 - on demand

    if argument:
        await editor.permissions(frontend.conversation, argument)
        return
    from tui.ui.screens.permissions import PermissionsScreen, rows_of  # noqa: PLC0415 - on demand

    if agent := frontend.conversation.open_agent():
        rows = await rows_of(frontend, agent)
        frontend.app.push_screen(PermissionsScreen(frontend, agent, rows))


async def mcp(frontend: ScreenFrontend, _: str) -> None:
    from tui.ui.screens.mcp import McpScreen  # noqa: PLC0415 - on demand

    if agent := frontend.conversation.open_agent():
        frontend.app.push_screen(McpScreen(agent, frontend.show))


async def jobs(frontend: ScreenFrontend, argument: str) -> None:
    """Show the background commands; with a number, the output of one."""
    from tui.app.reports.jobs import USAGE, named  # noqa: PLC0415 - as those below: on demand
    from tui.core.errors import UsageError  # noqa: PLC0415
    from tui.ui.screens.job_stopping import stop_asked  # noqa: PLC0415
    from tui.ui.screens.jobs import JobsScreen, job_screen  # noqa: PLC0415

    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    match argument.split():
        case []:

            async def forward() -> None:
                from tui.app.commands.forward import forward  # noqa: PLC0415

                await forward(frontend.conversation, "")

            frontend.app.push_screen(JobsScreen(agent, forward))
        case ["move"]:
            frontend.conversation.to_background()
        case ["stop", number]:
            await stop_asked(frontend.app, named(agent, number).job)
        case [number]:
            frontend.app.push_screen(job_screen(named(agent, number)))
        case _:
            raise UsageError(f"Unknown /jobs {argument}.", hint=USAGE)


async def agents(frontend: ScreenFrontend, _: str) -> None:
    from tui.ui.screens.sub_agents import AgentsScreen, open_sub_agent  # noqa: PLC0415 - on demand

    if agent := frontend.conversation.open_agent():
        stored = await asyncio.to_thread(agent.find_agents)
        screen = AgentsScreen(agent.sub_agents, stored, frontend.services.clock)
        chosen = await frontend.app.push_screen_wait(screen)
        if chosen is not None:
            await open_sub_agent(frontend, chosen)


async def hooks(frontend: ScreenFrontend, _: str) -> None:
    """Show the hooks as they are in the files now."""
    from tui.app.reports.hooks import rows_of_hooks  # noqa: PLC0415 - on demand
    from tui.ui.screens.installed import HooksScreen  # noqa: PLC0415

    if agent := frontend.conversation.open_agent():
        rows = await rows_of_hooks(agent, frontend.services)
        frontend.app.push_screen(HooksScreen(rows))


async def skills(frontend: ScreenFrontend, _: str) -> None:
    """Show the skills as they are in the files now; one may be put into the prompt."""
    from tui.app.reports.skills import NOT_OFFERED, skill_rows  # noqa: PLC0415 - on demand
    from tui.ui.screens.installed import SkillsScreen  # noqa: PLC0415

    conversation = frontend.conversation
    own, agent = conversation.user_commands, conversation.agent
    await asyncio.to_thread(own.load)
    rows = list(skill_rows(own.skills)) if own.skills else []
    if rows and agent and not agent.offers_skills:
        frontend.say(NOT_OFFERED)
    if name := await frontend.app.push_screen_wait(SkillsScreen(rows)):
        frontend.put_prompt(f"/{name} ")


async def status(frontend: ScreenFrontend, _: str) -> None:
    agent = frontend.conversation.open_agent()
    if agent is None:
        return
    services = frontend.services
    frontend.report(
        Report(
            "Status",
            list(status_rows(agent, services.workspace, services.settings.now)),
        )
    )


async def quit_(frontend: ScreenFrontend, _: str) -> None:
    await frontend.app.action_quit()


async def context(frontend: ScreenFrontend, _: str) -> None:
    await _load("tui.ui.screens.context", "tui.ui.screens.timeline_moment")
    from tui.ui.screens.context import ContextScreen  # noqa: PLC0415 - on demand
    from tui.ui.screens.timeline_moment import MomentOpener  # noqa: PLC0415

    if agent := frontend.conversation.open_agent():
        root, opener = frontend.services.workspace, MomentOpener(frontend)
        screen = ContextScreen(agent, frontend.renderer.show, root, opener)
        frontend.app.push_screen(screen)


async def btw(frontend: ScreenFrontend, question: str) -> None:
    """Ask on the side, beside what runs."""
    await _load("tui.ui.screens.side_question")
    from tui.ui.screens.side_question import show  # noqa: PLC0415 - on demand

    await show(frontend, question)


async def usage(frontend: ScreenFrontend, words: str) -> None:
    """Show where tokens and money went, by what is asked for."""
    await _load("tui.app.reports.usage", "tui.ui.screens.usage")
    from tui.app.reports.usage import GROUPED, SessionUsage  # noqa: PLC0415 - as above
    from tui.ui.screens.usage import UsageScreen  # noqa: PLC0415

    if agent := frontend.conversation.open_agent():
        by = words.strip().lower()
        frontend.app.push_screen(
            UsageScreen(SessionUsage(agent), by if by in GROUPED else "prompt")
        )


async def timeline(frontend: ScreenFrontend, prompt: str) -> None:
    """Show the session in time, at a prompt if its number is given. What is folded is kept: it
    opens at once the next time."""
    await _load("tui.ui.screens.timeline", "tui.ui.screens.timeline_moment")
    from tui.ui.screens.timeline import TimelineScreen  # noqa: PLC0415 - on demand
    from tui.ui.screens.timeline_moment import MomentOpener  # noqa: PLC0415

    if (agent := frontend.conversation.open_agent()) is None:
        return
    prices, opener = frontend.services.settings.now.prices, MomentOpener(frontend)
    known, frontend.timeline = frontend.timeline, None  # nobody else may add to it meanwhile
    screen = TimelineScreen(agent, prices, opener, known, prompt)

    def keep(_: None) -> None:
        frontend.timeline = screen.timeline

    frontend.app.push_screen(screen, keep)


async def pin(frontend: ScreenFrontend, _: str) -> None:
    await mark(frontend, "pin")


async def mark(
    frontend: ScreenFrontend, what: Literal["mask", "pin"], *, shown: bool = False
) -> None:
    """Mask or pin the result of the tool call under the cursor, or undo that; with `shown`, of the
    one whose output is shown."""
    from tui.ui.widgets.conversation.items import ToolItem  # noqa: PLC0415 - it draws

    chat, agent = frontend.chat, frontend.conversation.agent
    item = frontend.renderer.shown if shown else chat.conversation.cursor
    say = chat.side.say if shown else chat.notice.say
    if agent is None or not isinstance(item, ToolItem):
        say(
            f"No tool call here to {what}.", hint="Choose one with Tab and ↑ ↓, or see all with F2."
        )
        return
    records = reversed(agent.session.records)
    results = (r for r in records if r.type == "tool_result" and r.data.get("call_id") == item.id)
    record = next(results, None)
    if record is None:
        say("The model doesn't have a result for this call.")
        return
    if what == "mask":
        events = await agent.context.overlay(
            [Overlay(record.id, "full" if item.masked else "masked")]
        )
    else:
        events = await agent.context.pin({record.id: not item.pinned})
    for event in events:
        frontend.show(event)


def ask_line(frontend: ScreenFrontend, line: ShownLine | None) -> None:
    """Show where a line of a view comes from; one without a path is of the call whose output is
    shown."""
    from tui.ui.screens.why import WhyScreen  # noqa: PLC0415 - on demand

    if line is not None and not line.path:
        item = frontend.renderer.shown
        path = item.input.get("path") if item else None
        line = replace(line, path=path) if isinstance(path, str) else None
    if line is None:
        frontend.app.notify("No line of a file is in sight.", markup=False)
    else:
        frontend.app.push_screen(WhyScreen(frontend, line))


async def config(frontend: ScreenFrontend, words: str) -> None:
    """Show the settings that match `words`, or all of them."""
    from tui.ui.screens.settings import SettingsScreen  # noqa: PLC0415 - on demand

    frontend.app.push_screen(SettingsScreen(frontend, words))


async def theme(frontend: ScreenFrontend, name: str) -> None:
    """Switch to the theme of that name, or to one that is chosen, and save it."""
    from tui.ui.screens.picker import pick_theme  # noqa: PLC0415 - on demand

    app, services = frontend.app, frontend.services
    chosen = name or await pick_theme(app, "theme", enter="keep")
    if chosen is None:
        return
    problems = app.use_theme(chosen)
    services.settings.now = structs.replace(services.settings.now, theme=chosen)
    await services.save_theme(chosen)
    if problems:
        frontend.say(str(problems[0]), "warning", hint="Using the built-in color.")


async def vim(frontend: ScreenFrontend, _: str) -> None:
    """Switch vim's modes in the prompt on or off, permanently."""
    from tui.settings.edit import set_user_value  # noqa: PLC0415 - on demand

    settings = frontend.services.settings
    on = not settings.now.vim
    settings.change_to(structs.replace(settings.now, vim=on))
    if on:
        frontend.say("Vim keys are on.", hint="Esc for normal mode, i to insert. /vim: off.")
    else:
        frontend.say("Vim keys are off.")
    await asyncio.to_thread(set_user_value, frontend.services.folders, "vim", on or None)


async def doctor(frontend: ScreenFrontend, _: str) -> None:
    """Show what `holdfast doctor` finds."""
    from tui.app import doctor as checks  # noqa: PLC0415 - on demand
    from tui.ui.screens.reports import DoctorScreen  # noqa: PLC0415

    services, agent = frontend.services, frontend.conversation.agent
    model = agent.models.current if agent else ""
    examined = asyncio.to_thread(checks.examine_session, services, model)
    frontend.app.push_screen(DoctorScreen(examined))


async def tour(frontend: ScreenFrontend, _: str) -> None:
    """Step aside for `holdfast tour`, then return to the session as it was."""
    _run_aside(frontend, "tour")


async def drill(frontend: ScreenFrontend, faults: str) -> None:
    """Step aside for `holdfast drill`, then return to the session as it was."""
    from tui.app.options.flags import FAULTS  # noqa: PLC0415 - on demand

    names = [name.strip() for name in faults.split(",") if name.strip()]
    if unknown := [name for name in names if name not in FAULTS]:
        hint = f"/drill {','.join(FAULTS)}"
        frontend.say(f"Unknown fault {unknown[0]}.", "warning", hint=hint)
        return
    _run_aside(frontend, "drill", *([",".join(names)] if names else []))


def _run_aside(frontend: ScreenFrontend, *words: str) -> None:
    if frontend.conversation.says_idle() and (trouble := step_aside(frontend.app, *words)):
        frontend.say(trouble, "warning")


_VIEWS = (
    *(
        help_,
        keys,
        copy,
        context,
        btw,
        timeline,
        pin,
        find,
        output,
        diff,
        desk,
        watch,
        tasks,
        todos,
        permissions,
        agents,
        hooks,
        jobs,
    ),
    *(skills, mcp, status, usage, theme, vim, config, doctor, tour, drill, quit_),
)
VIEWS: Final[Mapping[str, Callable[[ScreenFrontend, str], Coroutine[Any, Any, None]]]] = {
    view.__name__.rstrip("_"): view for view in _VIEWS
}
"""The commands by name."""

"""Commands that tell how things stand."""

from __future__ import annotations

import asyncio
import os

from tui.app.commands.diff import diff_text
from tui.app.commands.usage import UNPRICED, usage_rows
from tui.app.permission_log import MODE_NAMES
from tui.context.file_changes import changes
from tui.core.errors import UsageError
from tui.core.formatting import plural
from tui.core.paths import shorten
from tui.plain.conversation import Talk, opened
from tui.plain.event_lines import meter, todo_lines
from tui.plain.speech_text import changed, diff, said, sentence, shown


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


async def tasks(talk: Talk, _: str) -> None:
    """How the tasks of this folder's run stand."""
    from tui.batch.report import RunSummary  # noqa: PLC0415 - on demand
    from tui.batch.run_store import OfflineRun  # noqa: PLC0415

    run = OfflineRun(talk.services.workspace, talk.services.clock)
    await run.refresh()
    if run.state is None:
        talk.face.say("There is no run in this folder: holdfast run TASKS.md begins one.")
        return
    talk.face.say(f"Run of {shorten(run.state.task_file)}: {RunSummary(run.state).totals()}.")
    talk.face.say(
        *(said(f"{task.index + 1}, {task.status}: {task.task}")[:200] for task in run.state.tasks),
        "holdfast run --headless goes on with it, in plain lines.",
    )


async def doctor(talk: Talk, _: str) -> None:
    """What `holdfast doctor` finds."""
    from tui.app import doctor as checks  # noqa: PLC0415 - it looks at much

    what = checks.Subject.of(talk.services.workspace, talk.services.folders, os.environ)
    found = await asyncio.to_thread(checks.examine, what)
    told = {"ok": "well", "warn": "to know", "fail": "problem"}
    for check in found:
        fix = f"To do: {check.fix}" if check.fix else ""
        talk.face.say(sentence(f"{check.name}, {told[check.status]}: {check.detail}", fix))


async def config(talk: Talk, _: str) -> None:
    """Where the settings stand, and whether they are sound."""
    from tui.settings.layers import config_problem  # noqa: PLC0415 - on demand

    file = talk.services.folders.config_file
    problem = await asyncio.to_thread(config_problem, file) if file.is_file() else None
    told = f"Wrong: {problem.message}" if problem else "It is sound"
    there = told if file.is_file() else "It does not exist yet"
    talk.face.say(
        sentence(f"The settings are the file {shorten(file)}", there),
        "Edit it with an editor of yours; !nano or the like needs a terminal of its own.",
    )

"""`holdfast ps`, `attach`, `logs` and `stop`: the sessions that run in the background."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TextIO

from tui.app import background
from tui.app.background import BackgroundSession
from tui.app.options.arguments import Options
from tui.app.unattended_commands import (
    UnattendedCommand,
    end_commands,
    unattended_commands,
)
from tui.cli.session_io import print_json
from tui.core import plain_detection
from tui.core.clock import Clock, SystemClock
from tui.core.errors import HoldfastError, SessionError
from tui.core.formatting import age, money, plural
from tui.core.paths import Folders, folders, shorten
from tui.core.standard_output import clipped, note, print_table, print_text
from tui.core.text_cleaning import one_line
from tui.desk.far_session import FAR
from tui.session import catalog, naming
from tui.tools.process import end_group

STOP_PATIENCE_S: Final = 15.0
"""Seconds that a process that was asked to stop may take to complete its record."""
_POLL_S: Final = 0.2
_CHUNK: Final = 1 << 16
TAKE_OVER_HINT: Final = (
    "Commands of sessions that aren't open: `holdfast -r ID` takes them over, `holdfast stop ID`"
    " ends them."
)


def ps(options: Options, home: Folders, clock: Clock) -> int:
    """List them. Returns the exit code."""
    now = clock.now()
    sessions = (
        background.sessions(home, now) if options.sessions.all else background.listed(home, now)
    )
    commands = unattended_commands(home)
    if options.json:
        return print_json([one.to_json() for one in (*sessions, *commands)])
    lines = [*(_row(one, now) for one in sessions), *(_command_row(one, now) for one in commands)]
    rows = [("ID", "STATE", "SINCE", "COST", "TITLE", "FOLDER"), *lines] if lines else []
    print_table(rows)
    if commands:
        note(TAKE_OVER_HINT)
    if not lines:
        note(
            "Nothing runs in the background."
            if options.sessions.all
            else "Nothing to list; see --all."
        )
    return 0


def _row(one: BackgroundSession, now: datetime) -> tuple[str, ...]:
    words, title = one_line(one.words), one_line(one.title) or "(no prompt)"
    return (
        one.id,
        clipped(words, 60),
        age(background.moment(one.since, now), now),
        money(one.cost_usd) if one.cost_usd else "—",
        clipped(title, 40),
        one_line(shorten(one.cwd)),
    )


def _command_row(one: UnattendedCommand, now: datetime) -> tuple[str, ...]:
    """A command without its session."""
    title = catalog.describe(Path(one.path)).title if one.path else "(its session is gone)"
    return (
        one.id,
        one.words,
        age(background.moment(one.since, now), now),
        "—",
        clipped(one_line(title) or "(no prompt)", 40),
        one_line(shorten(one.cwd)),
    )


def attach(options: Options, home: Folders, clock: Clock) -> int:
    """Watch one on the screen, or continue it in plain lines. Returns the exit code; raises
    HoldfastError."""
    if (options.target or "").startswith(FAR):
        from tui.cli.desk import attach_far  # noqa: PLC0415 - of another machine alone

        return attach_far(options)
    on_screen = not (
        options.screen.plain
        or plain_detection.why(())
        or not (sys.stdin.isatty() and sys.stdout.isatty())
    )
    try:
        one = background.find(home, options.target, clock.now())
    except SessionError:
        if not (on_screen and options.target):
            raise
        path = naming.find(options.target, home)
        return _watch(options, catalog.describe(path).id)
    if one.running and not one.here:
        raise SessionError(f"{one.id} runs on {one.host}.", hint="Attach to it there.")
    if not one.running:
        background.mark_seen(home, one)
    if not one.running and not Path(one.path).exists():
        raise SessionError(
            f"{one.id} ended before anything was recorded.", hint="Start it again with --bg."
        )
    if not on_screen and not Path(one.cwd).is_dir():
        raise SessionError(f"Its folder is gone: {one.cwd}.", hint="Restore the folder first.")
    if not on_screen and not one.running:
        note(f"{one.id} doesn't run any more ({one_line(one.words)}); opening its session.")
    started = background.options_from_json(one.options)
    wanted = started.having(
        resume=one.path,
        profile=None,  # the session's own counts
        attach=True,
        background=False,
        yolo=False,  # the person who attaches decides
        plain=options.screen.plain,
        theme=options.screen.theme,
    )
    if on_screen:
        return _watch(wanted, one.id)
    os.chdir(one.cwd)
    from tui.plain import open_plain  # noqa: PLC0415 - one of them

    return open_plain(wanted.having(plain=True))


def _watch(options: Options, session: str) -> int:
    """Watch a session of this machine on the screen; `options` are those to take it over with."""
    from tui.desk.local_host import LocalHost  # noqa: PLC0415 - not for the others
    from tui.ui.desk.attached import open_attached  # noqa: PLC0415
    from tui.ui.start.fullscreen_main import open_screen  # noqa: PLC0415

    host = LocalHost(folders())
    return open_attached(options, host, session, lambda wanted: open_screen(wanted, None))


def logs(options: Options, home: Folders, clock: Clock) -> int:
    """Print the output of one, and with --follow what follows, until it ends."""
    one = background.find(home, options.target, clock.now())
    path = background.log_of(home, one.id)
    try:
        file = path.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SessionError(
            f"Can't read {shorten(path)}: {error.strerror or error}.",
            hint=f"Its session has everything: holdfast sessions show {one.id}",
        ) from error
    with file:
        if options.sessions.follow:
            asyncio.run(follow(file, print_part, lambda: background.is_running(one), clock))
        else:
            while part := file.readline(_CHUNK):
                print_part(part)
    background.mark_seen(home, background.find(home, one.id, clock.now()))
    return 0


async def follow(
    file: TextIO, show: Callable[[str], None], runs: Callable[[], bool], clock: Clock
) -> None:
    """Show what is in a file and what comes, until nobody writes any more."""
    going = True
    while going:
        going = runs()  # before it is read: what came last is shown too
        while part := file.readline(_CHUNK):  # sequences end with their line
            show(part)
        if going:
            await clock.sleep(_POLL_S)


def print_part(text: str) -> None:
    print_text(text, end="")
    sys.stdout.flush()


def stop(options: Options, home: Folders, clock: Clock) -> int:
    """Let one record that it was interrupted, and end; or end the commands that a session left
    running. Returns the exit code."""
    wanted = options.target
    if wanted and (commands := [c for c in unattended_commands(home) if c.id.startswith(wanted)]):
        return _stop_commands(commands, clock)
    one = background.find(home, wanted, clock.now())
    if not one.running:
        note(f"{one.id} doesn't run any more: {one_line(one.words).rstrip('.')}.")
        return 0
    if not one.here:
        raise SessionError(f"{one.id} runs on {one.host}.", hint="Stop it there.")
    return asyncio.run(_stop(one, clock))


def _stop_commands(commands: Sequence[UnattendedCommand], clock: Clock) -> int:
    ids = list(dict.fromkeys(one.id for one in commands))
    if len(ids) > 1:
        raise SessionError(f"Which one? {', '.join(ids)}.", hint="`holdfast ps` lists them.")
    if failed := asyncio.run(end_commands(commands, clock)):
        raise HoldfastError(f"Couldn't be stopped: {'; '.join(failed)}.")
    running = sum(one.state == "running" for one in commands)
    summary = (
        f"Stopped {plural(running, 'command')} of {ids[0]}."
        if running
        else "Nothing runs that could be stopped."
    )
    print_text(f"{summary} See how it ended: holdfast -r {ids[0]}" if commands[0].path else summary)
    return 0


async def _stop(one: BackgroundSession, clock: Clock) -> int:
    background.send(one, signal.SIGTERM)
    until = clock.monotonic() + STOP_PATIENCE_S
    while background.is_running(one) and clock.monotonic() < until:
        await clock.sleep(_POLL_S)
    killed = background.is_running(one)
    if killed and not await end_group(one.pid, one.born, clock):
        raise HoldfastError(f"Process {one.pid} can't be ended.", hint=f"kill -9 {one.pid}")
    how = "Killed" if killed else "Stopped"
    print_text(f"{how} {one.id}. Continue it with: holdfast attach {one.id}")
    return 0


_COMMANDS: Final = {"ps": ps, "attach": attach, "logs": logs, "stop": stop}


def run(options: Options) -> int:
    """Carry out one of the commands. Returns the exit code; raises HoldfastError."""
    return _COMMANDS[options.command](options, folders(), SystemClock())

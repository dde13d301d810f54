"""`holdfast desk`, `holdfast serve`, and `holdfast attach` for another machine's sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from tui.app import background
from tui.app.options.arguments import Options
from tui.cli.session_io import print_json
from tui.core import log, plain_detection
from tui.core.clock import Clock, SystemClock
from tui.core.formatting import age, money
from tui.core.paths import folders, shorten
from tui.core.standard_output import clipped, note, print_table
from tui.core.text_cleaning import one_line
from tui.desk.far_session import far_session
from tui.desk.host import DeskHost, DeskRow
from tui.desk.hosts import far_host, hosts_of
from tui.desk.local_host import LocalHost
from tui.permissions.asked import summary_of
from tui.settings import bare

FIRST_WORD_S: Final = 20.0
"""Seconds in which a machine has to say what there is."""
_STATE_CELLS: Final = 60
_TITLE_CELLS: Final = 40
_ORDER: Final = (
    *("waiting", "working", "parked", "idle", "failed", "interrupted", "stopped", "done", "saved"),
)


def run(options: Options) -> int:
    """Carry out `desk` or `serve`. Returns the exit code; raises HoldfastError."""
    if options.command == "serve":
        return serve()
    if options.json or plain_detection.why(()) or not (sys.stdin.isatty() and sys.stdout.isatty()):
        for notice in bare.own(home := folders())[1]:
            note(notice)
        hosts = hosts_of(home, options.opening.hosts)
        return asyncio.run(print_desk(options, hosts, SystemClock()))
    from tui.ui.desk.app import open_desk  # noqa: PLC0415 - on a terminal alone

    return open_desk(options)


def serve() -> int:
    """Serve this machine's sessions on standard input and output. Returns the exit code."""
    from tui.desk.serve import serve_stdio  # noqa: PLC0415 - not for this machine's own desk

    home = folders()
    log.to_file(home.log)
    host = LocalHost(home)
    return serve_stdio(Path.home(), sys.stdin.fileno(), sys.stdout.fileno(), host)


def attach_far(options: Options) -> int:
    """Look into a session on another machine. Returns the exit code; raises UsageError."""
    far = far_session(options.target or "")
    host = far_host(far.host)
    plain_detection.need_terminal("Looking into a session on another machine needs a terminal.")
    from tui.ui.desk.attached import open_attached  # noqa: PLC0415 - on a terminal alone

    return open_attached(options, host, far.id, _open_here)


def _open_here(options: Options) -> int:
    """Open a session's own screen, for whoever takes it over."""
    from tui.ui.start.fullscreen_main import open_screen  # noqa: PLC0415 - seldom needed

    return open_screen(options, None)


async def print_desk(options: Options, hosts: Sequence[DeskHost], clock: Clock) -> int:
    """Print what the machines have now, as JSON or as a table. Returns the exit code: 1 where one
    can't be reached."""
    try:
        await asyncio.gather(*(_first_word(host, clock) for host in hosts))
        rows = [row for host in hosts for row in host.rows]
        rows.sort(key=lambda row: row.since, reverse=True)
        rows.sort(key=lambda row: _ORDER.index(row.state))
        problems = [host.problem for host in hosts if host.problem]
    finally:
        await asyncio.gather(*(host.close() for host in hosts))
    if options.json:
        print_json({"sessions": [row_to_json(row) for row in rows]})
    else:
        print_rows([row for row in rows if row.state != "saved"], clock.now())
    for problem in problems:
        note(problem)
    return 1 if problems else 0


async def _first_word(host: DeskHost, clock: Clock) -> None:
    """Wait until a machine has told what it has, or why it can't be reached."""
    told = asyncio.Event()
    host.follow(told.set)
    waits = [asyncio.ensure_future(told.wait()), asyncio.ensure_future(_time_out(clock))]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for one in waits:
            one.cancel()


async def _time_out(clock: Clock) -> bool:
    await clock.sleep(FIRST_WORD_S)
    return False


def row_to_json(row: DeskRow) -> dict[str, Any]:
    """A session of the desk for programs. `question` is the first one that waits, null for none."""
    return {
        "id": row.id,
        "host": row.host,
        "state": row.state,
        "detail": row.detail,
        "question": summary_of(row.questions[0].asked) if row.questions else None,
        "title": row.title,
        "cost_usd": None if row.cost_usd is None else round(row.cost_usd, 6),
        "cwd": row.cwd,
        "branch": row.branch,
        "model": row.model,
        "profile": row.profile,
        "started": row.started,
        "since": row.since,
        "kind": row.kind,
        "problem": row.problem,
    }


def print_rows(rows: Sequence[DeskRow], now: datetime) -> None:
    """Print sessions as a table, one a line."""
    if not rows:
        note("No session is open, and none has ended lately; see `holdfast sessions list --all`.")
        return
    several = any(row.host for row in rows)
    heads = ("ID", "STATE", "SINCE", "COST", "TITLE", *(("HOST",) if several else ()), "FOLDER")
    lines = [heads, *(_cells(row, now, several=several) for row in rows)]
    print_table(lines)


def _cells(row: DeskRow, now: datetime, *, several: bool) -> tuple[str, ...]:
    state = background.STATE_WORDS.get(row.state, row.state)
    detail = row.problem or row.detail
    return (
        row.id,
        clipped(one_line(f"{state}: {detail}" if detail else state), _STATE_CELLS),
        age(background.moment(row.since, now), now),
        money(row.cost_usd) if row.cost_usd else "—",
        clipped(one_line(row.title) or "(no prompt)", _TITLE_CELLS),
        *((one_line(row.host) or "here",) if several else ()),
        one_line(shorten(row.cwd)),
    )

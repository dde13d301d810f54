"""`holdfast report`: what ran last night, over all sessions: red, waiting, refused, undone, paid.

Nothing is written but the file that is named, and the index of bills in the cache folder.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from tui.app.morning import Morning, NightCommit, NightFinding, NightPlaces, NightSpan, morning_of
from tui.app.morning.words import markdown_report, text_report
from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.batch.report import why
from tui.batch.state import RunFolder, RunState
from tui.cli.session_io import file_of, reading_progress
from tui.core.clock import SystemClock
from tui.core.errors import UsageError
from tui.core.formatting import moment_of, plural
from tui.core.paths import folders, shorten
from tui.core.redaction import mask_values
from tui.core.standard_output import note, print_data, terminal_width
from tui.core.workspace import checkout_of
from tui.session import importers
from tui.session.copies import write_new
from tui.session.export import Exported
from tui.session.records import can_be_typed
from tui.settings.layers import own_prices

_EVENING: Final = 18
"""The hour of yesterday from which on it is the last night."""


def run(options: Options) -> int:
    """Print what ran, or write it to a file. Returns the exit code; raises HoldfastError."""
    now = SystemClock().now()
    span = _span(options, now)
    home = folders()
    others = importers.usual_folders(Path.home(), os.environ)
    where = workspace_of(options) if options.help.here else None
    morning = morning_of(
        NightPlaces(home, others, where), span, own_prices(home, os.environ), now, reading_progress
    )
    _add_runs(morning)
    made = _made(morning, options)
    out = file_of(options)
    if out is not None:
        write_new(out.absolute(), made.text.encode("utf-8", "replace"))
        note(f"Written to {shorten(out)}.")
    else:
        print_data(made.text, end="")
    if made.secrets:
        note(f"Removed {plural(made.secrets, 'secret')}.")
    return 0


def _span(options: Options, now: datetime) -> NightSpan:
    """The time that is meant. Raises UsageError for one that ends before it begins."""
    asked, until = options.sessions.since, _moment(options.help.until, now)
    since = _moment(asked, now) or _last_evening(now)
    if until is not None and until <= since:
        raise UsageError(
            "--until must be later than --since.", hint="Without --since, it is yesterday at 18:00."
        )
    return NightSpan(since, until)


def _last_evening(now: datetime) -> datetime:
    """Yesterday at 18:00 here."""
    yesterday = now.astimezone().replace(tzinfo=None) - timedelta(days=1)
    return yesterday.replace(hour=_EVENING, minute=0, second=0, microsecond=0).astimezone()


def _moment(asked: float | datetime | None, now: datetime) -> datetime | None:
    if asked is None or isinstance(asked, datetime):
        return asked
    try:
        return now - timedelta(seconds=asked)
    except OverflowError:
        return datetime.min.replace(tzinfo=now.tzinfo)


def _made(morning: Morning, options: Options) -> Exported:
    """The report in the form that is wanted."""
    match options.sessions.shape:
        case "json":
            value, secrets = mask_values(morning.to_json())
            return Exported(f"{json.dumps(value, ensure_ascii=True, indent=2)}\n", secrets)
        case "html":
            from tui.app.morning.page import morning_page  # noqa: PLC0415 - only where asked for

            return morning_page(morning)
        case "md":
            return markdown_report(morning)
        case _:
            return text_report(morning, None if file_of(options) else terminal_width(sys.stdout))


# Runs of task files


def _add_runs(morning: Morning) -> None:
    """Add what became of the tasks of runs in the folders where sessions ran."""
    places: dict[Path, None] = {}
    for night in morning.sessions:
        if night.folder:
            folder = Path(night.folder)
            places |= dict.fromkeys((folder, checkout_of(folder)))
    for target in places:
        run = RunFolder(target)
        try:
            state = run.load()
        except UsageError as error:
            morning.rows.append(NightFinding("unknown", error.message))
            continue
        if state is not None and _is_of(morning, state):
            _add_run(morning, state, active=run.worked_on())


def _is_of(morning: Morning, state: RunState) -> bool:
    """True if a run began in the span, or a session of it worked then."""
    began = moment_of(state.started_at)
    ids = {night.id for night in morning.sessions}
    return (began is not None and morning.span.holds(state.started_at)) or any(
        task.session_id in ids for task in state.tasks
    )


def _add_run(morning: Morning, state: RunState, *, active: bool) -> None:
    for task in state.tasks:
        words = "completed without a change" if task.unchanged else task.status
        morning.tasks[words] = morning.tasks.get(words, 0) + 1
    by_id = {night.id: night for night in morning.sessions}
    name = state.task_file.rsplit("/", 1)[-1]
    command = f"holdfast run {name} --status" if can_be_typed(name) else ""
    for row in _task_rows(state, name, command, active=active):
        morning.rows.append(row)
    for task in state.tasks:
        night = by_id.get(task.session_id or "")
        if night is not None and task.change and task.status in {"completed", "unmerged"}:
            words = f"task {task.index + 1}: {task.change[:12]}"
            night.work.commits.append(NightCommit(words, task.change, in_git=True))
    morning.rows = [*dict.fromkeys(morning.rows)]


def _task_rows(state: RunState, name: str, command: str, *, active: bool) -> Iterable[NightFinding]:
    for task in state.tasks:
        title = f"Task {task.index + 1} of {name}, {task.task}"
        if task.status in {"failed", "interrupted", "unmerged"}:
            yield NightFinding("unfinished", f"{title}: {why(task)}", command=command)
        elif task.status == "running" and not active:
            yield NightFinding(
                "died", f"{title}: it was running, and nothing works on it now.", command=command
            )
    yield from _not_begun(state, name, command, active=active)


def _not_begun(state: RunState, name: str, command: str, *, active: bool) -> Iterator[NightFinding]:
    left = state.counts().get("pending", 0)
    if left:
        now = "a run has them before it" if active else "no run works on them"
        words = f"{plural(left, 'task')} of {name} not begun; {now}."
        yield NightFinding("unfinished", words, command=command)
    if state.batch is not None:
        yield NightFinding("parked", f"{name}: a message batch is waited for.", command=command)

"""Background commands that have ended, and those the model has not heard of yet. Pure.

A `job_ended` record is made when one ends. The model learns of it once, by a notice of the kind
"job" at the end of the conversation, unless command_status has already returned its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from tui.context import untrusted
from tui.core.facts.work import END_UNKNOWN
from tui.core.late_pattern import late_pattern
from tui.core.messages import list_of, object_of, string_of
from tui.session.records import Record

TAIL_LINES: Final = 20
TAIL_CHARS: Final = 2000
"""The end of its output that is recorded and included in the notice."""

_ID = late_pattern(r"job-\d{1,9}")
_STATE = late_pattern(r"exit code \d{1,3}|killed by \w{1,20}")
_STOPPED: Final = {
    "person": "stopped by the user",
    "model": "stopped",
    "program": "stopped when the session was closed",
}


def unreported(records: Sequence[Record]) -> list[Record]:
    """Return the `job_ended` records of a branch that the model has not seen yet, in order."""
    waiting: dict[str, Record] = {}
    for record in records:
        data = record.data
        match record.type:
            case "job_ended" if not (data.get("hidden") or data.get("end_read")):
                waiting[record.id] = record
            case "tool_result" if waiting:
                details = object_of(data.get("details"))
                if details.get("running") is False:
                    ended = details.get("job")
                    waiting = {i: r for i, r in waiting.items() if r.data.get("job") != ended}
            case "notice" if waiting:
                for id_ in list_of(data.get("jobs")):
                    waiting.pop(str(id_), None)
            case _:
                pass
    return list(waiting.values())


def notice_of(ended: Iterable[Record]) -> dict[str, Any]:
    """Build the fields of a notice about commands that have ended; their output is marked as
    data."""
    records = list(ended)
    text = "\n\n".join(_report_on(record.data) for record in records)
    return {"kind": "job", "text": text, "jobs": [record.id for record in records]}


def _report_on(data: dict[str, Any]) -> str:
    job, state = string_of(data.get("job")), string_of(data.get("state"))
    job = job if _ID.fullmatch(job) else "a job"
    state = state if state == END_UNKNOWN or _STATE.fullmatch(state) else "ended"
    state = _STOPPED.get(string_of(data.get("stopped_by")), state)
    seconds = data.get("seconds")
    took = f" after {seconds:.1f} s" if isinstance(seconds, int | float) else ""
    sentence = f"The background command {job} has ended{took}: {state}."
    if state == END_UNKNOWN:
        sentence = (
            f"The process that watched the background command {job} was killed: nobody knows how "
            "it ended, or whether it did."
        )
    lines = [f"command: {string_of(data.get('command'))}"]
    if path := string_of(data.get("path")):
        lines.append(f"all output: {path}")
    if tail := string_of(data.get("text")):
        lines += ["its last lines:", tail]
    wrapped = untrusted.wrap("\n".join(lines), f"background command {job}")
    return f"{sentence}\n{wrapped}"

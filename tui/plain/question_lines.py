"""Questions as lines: what there is to know, then the answers by name, each with what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from tui.agent.interrupted_work import InterruptedWork
from tui.app.damage_report import findings_summary, where
from tui.app.dialog_data import (
    ChoiceQuestion,
    DamageQuestion,
    FailedRequest,
    ModelQuestion,
    ModelRow,
    PointQuestion,
    Question,
    SessionRow,
)
from tui.app.interruption import known
from tui.core.formatting import plural
from tui.plain.speech_text import counted, sentence, spoken
from tui.session.records import Finding

Labels: TypeAlias = Sequence[tuple[str, str]]
"""Names of answers, each with what it says."""

_FINDINGS: Final = 20
_SESSIONS: Final = 20
_POINTS: Final = 30
_NOTHING: Final = "The check of the request finds nothing that is against the rules it knows."


def of(question: Question) -> tuple[list[str], Labels]:
    """The lines of a question, and its answers."""
    match question:
        case ChoiceQuestion(title, text, options, details):
            lines = [sentence(title, *text.split("\n\n")), *map(spoken, details)]
            return lines, [(option.name, option.label) for option in options]
        case DamageQuestion(damage, copy):
            return damage_lines(damage.findings), _damage_options(copy=copy is not None)
        case ModelQuestion(rows):
            return ["Which model?"], [(row.name, model_line(row)) for row in rows]
        case PointQuestion(points):
            labels = [
                (
                    str(place),
                    spoken(point.text)[:120]
                    + (
                        f", {plural(len(point.changed), 'file')} changed since"
                        if point.changed
                        else ""
                    ),
                )
                for place, point in enumerate(points)
            ]
            return ["Back to before which prompt? The newest first."], labels[: -_POINTS - 1 : -1]
        case FailedRequest():
            ways = [(way.name, f"{way.label}: {way.help}") for way in question.ways]
            return trouble_lines(question), ways


def trouble_lines(trouble: FailedRequest) -> list[str]:
    """What is known of a failed request."""
    status = f"Status {trouble.status}" if trouble.status else ""
    id_ = f"request {trouble.request_id}" if trouble.request_id else ""
    lines = [sentence(trouble.title, ", ".join(filter(None, (status, id_))))]
    lines += [sentence(trouble.meaning)] if trouble.meaning else []
    if trouble.before:
        lines.append(sentence(f"Tried already: {', '.join(trouble.before)}"))
    if trouble.findings is not None:
        lines += [f"Finding: {spoken(one)}" for one in trouble.findings[:_FINDINGS]] or [_NOTHING]
        if (more := len(trouble.findings) - _FINDINGS) > 0:
            lines.append(f"And {more:,} more findings.")
    return lines


def damage_lines(found: Sequence[Finding]) -> list[str]:
    """What was found, counted, then one by one."""
    places = "one place" if len(found) == 1 else f"{len(found):,} places"
    lines = [
        sentence(
            f"This session is damaged. It needs repair in {places}: {findings_summary(found)}"
        ),
        "Nothing in the file is changed: it is repaired in memory.",
        *(sentence(f"{where(one)}: {one.action}, {one.code}") for one in found[:_FINDINGS]),
    ]
    if (more := len(found) - _FINDINGS) > 0:
        lines.append(f"And {more:,} more.")
    return lines


def _damage_options(*, copy: bool) -> Labels:
    if not copy:
        return [("continue", "Continue with a repaired copy of it"), ("back", "Back")]
    return [
        ("continue", "Continue; what comes next is added at the end of the file"),
        ("read_only", "Open it read-only"),
        ("copy", "Write a repaired copy into a file of its own, and go on with that"),
        ("back", "Back"),
    ]


def model_line(row: ModelRow) -> str:
    """A model, and whether the session fits it."""
    facts = [row.name, f"window {counted(row.window)}"]
    facts += ["in use now"] if row.now else []
    facts += [f"fallback {row.fallback}"] if row.fallback else []
    facts += [] if row.fits else [f"too small, the session needs {counted(row.needs)}"]
    facts += [f"price {row.price}"] if "$" in row.price else []
    facts += [row.retires] if row.retires else []
    return ", ".join(facts)


def sessions(rows: Sequence[SessionRow], current: str) -> tuple[list[str], Labels]:
    """The sessions to choose from; `current` is the id of the one that is open."""
    labels = [
        (
            row.id,
            f"{row.title or 'untitled'}, {row.updated.astimezone():%d %B %H:%M},"
            f" {plural(row.messages, 'message')}"
            + (f", {row.state.replace('_', ' ')}" if row.state != "ok" else "")
            + (", open now" if row.id == current else ""),
        )
        for row in rows[:_SESSIONS]
    ]
    head = f"{plural(len(rows), 'session')} of this folder, the newest first."
    more = "" if len(rows) <= _SESSIONS else "holdfast sessions list shows all"
    return [sentence(head, more)], labels


def interrupted(work: InterruptedWork) -> tuple[list[str], Labels]:
    """Each call with what is known of it, each command that still runs; and the ways on."""
    lines = ["The last run of this session was interrupted."]
    lines += [
        spoken(f"Tool {call.tool} {call.label}".rstrip() + f": {known(call)}.")
        for call in work.calls
    ]
    lines += [
        spoken(
            f"Still running: process {each.pid}, {each.command}, since"
            f" {each.started[:16].replace('T', ' ')} UTC."
        )
        for each in work.orphans
    ]
    ways = [("tell", "Tell the model what is known, and let it go on")]
    if work.calls:
        ways.append(("again", "Run what was interrupted again, with the questions it needs"))
    if work.orphans:
        count = len(work.orphans)
        runs = "runs" if count == 1 else "run"
        ways.append(("stop", f"Stop {plural(count, 'command')} that still {runs}"))
    ways.append(("leave", "Leave it: the model sees that it was interrupted"))
    return lines, ways

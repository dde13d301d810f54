"""A report over sessions in words: lines for a terminal, and Markdown. Pure.

The summary begins with what is red. Where nothing is, it says so with what was looked at: that no
check ran is not that all is well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tui.app.morning.findings import FIGURES, RED, TITLES, Kind, Morning, Row, SessionNight
from tui.app.reports.usage_table import cost, unknown_prices
from tui.core.formatting import local, moment_of, plural
from tui.core.paths import shorten
from tui.core.redaction import mask
from tui.core.standard_output import folded
from tui.core.text_cleaning import one_line, visible

MOST: Final = 100
"""Most findings of a kind that are listed; the others are counted."""
_SESSIONS: Final = 300
_PROMPTS: Final = 20
_FILES: Final = 12
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")


def span_words(morning: Morning) -> str:
    """The time and the sessions that a report is about."""
    until = morning.span.until
    end = local(until) if until else f"now ({local(morning.made)})"
    where = f", in {shorten(morning.where)}" if morning.where else ", in all folders"
    return f"{local(morning.span.since)} to {end}{where}"


def figures(morning: Morning) -> list[tuple[Kind, int]]:
    """The kinds of findings that there are, the worst first, with their numbers."""
    counts = morning.counts()
    return [(kind, counts[kind]) for kind in FIGURES if counts[kind]]


def verdict(morning: Morning) -> str:
    """The summary in one sentence: what is red, or that nothing is with what was checked."""
    found = figures(morning)
    if not morning.sessions and not morning.rows and not morning.tasks:
        return "Nothing ran."
    said = ", ".join(f"{count:,} {FIGURES[kind]}" for kind, count in found)
    if any(kind in RED for kind, _ in found):
        return f"{said}."
    checked = sum(one.checks > 0 for one in morning.sessions)
    looked = f"{plural(morning.checks, 'check')} ran, in {checked:,} of {len(morning.sessions):,}"
    looked += f" {'session' if len(morning.sessions) == 1 else 'sessions'}"
    if not morning.checks:
        looked = "no test, linter or build ran, so nothing was checked"
    calm = f"Nothing is red: {looked}."
    return f"{calm} But {said}." if said else calm


def done_words(morning: Morning) -> str:
    """What was asked and done, in numbers."""
    nights = morning.sessions
    asked, done = sum(len(one.asked) for one in nights), sum(one.answered for one in nights)
    running = f", {morning.running:,} still open" if morning.running else ""
    parts = [
        f"{plural(len(nights), 'session')}{running}",
        f"{plural(asked, 'prompt')}, {done:,} answered to the end",
        plural(sum(one.calls for one in nights), "call"),
        f"{plural(len({name for one in nights for name in one.files}), 'file')} changed",
        plural(sum(len(one.commits) for one in nights), "commit"),
        plural(sum(one.checkpoints for one in nights), "checkpoint"),
    ]
    if morning.tasks:
        of = ", ".join(f"{count:,} {name}" for name, count in morning.tasks.items())
        parts.append(f"{plural(sum(morning.tasks.values()), 'task')} of task files: {of}")
    return "; ".join(parts) + "."


def money_lines(morning: Morning) -> Iterator[str]:
    """What it cost, and what isn't in that."""
    total = morning.total()
    yield f"{cost(total)} in all, {round(total.tokens):,} tokens."
    models = morning.by_model()
    if len(models) > 1:
        yield "; ".join(f"{model or 'a model not named'}: {cost(one)}" for model, one in models.items())
    if unknown := [model for model, one in models.items() if one.unpriced]:
        tokens = sum(round(models[model].unpriced) for model in unknown)
        yield f"{unknown_prices(unknown)} {tokens:,} tokens have no price in these sums."
    cut = sum(
        row.kind in {"died", "unfinished"} and row.words.startswith(("Interrupted", "The program"))
        for one in morning.sessions
        for row in one.rows
    )
    if cut:
        turns = plural(cut, "turn")
        yield f"{turns} cut off: what the answer then cost is in no record, and not in these sums."


def facts_of(night: SessionNight) -> list[str]:
    """What a session was, in a few words each."""
    parts = [
        shorten(night.folder) if night.folder else "",
        f"branch {night.branch}" if night.branch else "",
        ", ".join(night.models),
        f"started by {night.started_by}" if night.started_by else "",
        times(night),
    ]
    return [part for part in parts if part]


def times(night: SessionNight) -> str:
    """When a session worked, in the person's time zone."""
    first, last = moment_of(night.first), moment_of(night.last)
    if first is None or last is None:
        return ""
    there, then = first.astimezone(), last.astimezone()
    same = there.date() == then.date()
    return f"{there:%a %H:%M} to {then:{'%H:%M' if same else '%a %H:%M'}}"


def done_of(night: SessionNight) -> str:
    """What a session did, in numbers."""
    parts = [
        f"{night.answered:,} of {plural(len(night.asked), 'prompt')} answered to the end",
        plural(night.calls, "call"),
        f"{plural(len(night.files), 'file')} changed",
        plural(len(night.commits), "commit"),
        plural(night.checkpoints, "checkpoint"),
        plural(night.checks, "check"),
        cost(night.amount) if night.spent else "nothing billed",
    ]
    return ", ".join(parts)


def row_words(row: Row) -> str:
    """A finding with how often it was found."""
    return f"{row.words} ({row.times:,} times)" if row.times > 1 else row.words


def place_of(row: Row) -> str:
    """When a finding was, and the record that says so."""
    then = moment_of(row.time)
    when = f"{then.astimezone():%a %H:%M}" if then else ""
    return ", ".join(filter(None, (when, f"record {row.record}" if row.record else "")))


def command_of(row: Row, night: SessionNight | None) -> str:
    """What opens the session of a finding, or answers it."""
    if row.command or night is None:
        return row.command
    return night.command or f"its id can't be typed; the file is {night.path}"


def name_of(night: SessionNight) -> str:
    """A session by its id and its title."""
    return f"{night.id} {night.title or '(no prompt)'}"


class TextReport:
    """The lines of a report, safe to print, with secrets masked. `secrets` counts those."""

    def __init__(self, width: int | None) -> None:
        self.width = width
        self.lines: list[str] = []
        self.secrets = 0

    def add(self, head: str, text: str) -> None:
        """Add a text below or behind a head, in as many lines as it takes."""
        safe = self.safe(text)
        self.lines += folded(head, safe, self.width) if self.width else [head + safe]

    def safe(self, text: str) -> str:
        masked, count = mask(visible(one_line(text)))
        self.secrets += count
        return masked


def text_report(morning: Morning, width: int | None = None) -> TextReport:
    """The report as lines of at most `width` columns."""
    text = TextReport(width)
    text.add("", f"What ran: {span_words(morning)}")
    text.add("", verdict(morning))
    text.add("", done_words(morning))
    for line in money_lines(morning):
        text.add("", line)
    for kind, found in _by_kind(morning):
        text.lines += ["", f"{TITLES[kind]} ({sum(row.times for row, _ in found):,})"]
        for row, night in found[:MOST]:
            text.add("- ", row_words(row))
            place = place_of(row)
            if night is not None:
                text.add("    ", name_of(night) + (f" ({place})" if place else ""))
            if command := command_of(row, night):
                text.add("    ", command)
        if len(found) > MOST:
            text.add("- ", f"{len(found) - MOST:,} more of this kind.")
    if morning.sessions:
        text.lines += ["", f"Sessions ({len(morning.sessions):,})"]
    for night in morning.sessions[:_SESSIONS]:
        text.add("- ", f"{name_of(night)}: {night.state}")
        for fact in (", ".join(facts_of(night)), done_of(night)):
            text.add("    ", fact)
        for asked in night.asked[:_PROMPTS]:
            text.add("    Asked: ", asked.words)
        if (more := len(night.asked) - _PROMPTS) > 0:
            text.add("    ", f"{plural(more, 'more prompt')}.")
        if night.files:
            text.add("    Changed: ", files_words(night))
        for commit in night.commits[:_FILES]:
            text.add("    Committed: ", commit)
        text.add("    ", night.command or f"Its id can't be typed; the file is {night.path}")
    if (more := len(morning.sessions) - _SESSIONS) > 0:
        text.add("- ", f"{plural(more, 'more session')}: use html or json, or a shorter time.")
    text.lines.append("")
    text.add("", FROM_RECORDS)
    return text


FROM_RECORDS: Final = (
    "Worked out from the records alone; what a model says of its work counts for nothing."
)


def files_words(night: SessionNight) -> str:
    """The files that a session changed."""
    shown = ", ".join(shorten(name) for name in night.files[:_FILES])
    more = len(night.files) - _FILES
    return f"{shown} and {more:,} more" if more > 0 else shown


def _by_kind(morning: Morning) -> Iterator[tuple[Kind, list[tuple[Row, SessionNight | None]]]]:
    every: dict[Kind, list[tuple[Row, SessionNight | None]]] = {}
    for row, night in morning.findings():
        every.setdefault(row.kind, []).append((row, night))
    yield from every.items()


def markdown_report(morning: Morning) -> tuple[str, int]:
    """The report in Markdown, and how many secrets were masked in it."""
    secrets = 0

    def md(text: str) -> str:
        nonlocal secrets
        masked, count = mask(visible(one_line(text)))
        secrets += count
        return _MARKDOWN.sub(r"\\\1", masked)

    def code(text: str) -> str:
        safe = visible(one_line(text)).replace("`", "'")
        return f"`{safe}`" if safe else ""

    lines = ["# What ran", "", md(span_words(morning)), "", f"**{md(verdict(morning))}**", ""]
    lines += [md(done_words(morning)), ""]
    lines += [*(f"- {md(line)}" for line in money_lines(morning)), ""]
    for kind, found in _by_kind(morning):
        lines += [f"## {TITLES[kind]} ({sum(row.times for row, _ in found):,})", ""]
        for row, night in found[:MOST]:
            where = f" ({md(name_of(night))}{', ' * bool(place_of(row))}{md(place_of(row))})" if night else ""
            lines.append(f"- {md(row_words(row))}{where} {code(command_of(row, night))}".rstrip())
        if len(found) > MOST:
            lines.append(f"- {len(found) - MOST:,} more of this kind.")
        lines.append("")
    lines += [f"## Sessions ({len(morning.sessions):,})", ""] if morning.sessions else []
    for night in morning.sessions[:_SESSIONS]:
        lines.append(f"- **{md(name_of(night))}**: {md(night.state)}. {code(night.command)}".rstrip())
        lines += [f"  - {md(fact)}" for fact in (", ".join(facts_of(night)), done_of(night)) if fact]
        lines += [f"  - Asked: {md(one.words)}" for one in night.asked[:_PROMPTS]]
        lines += [f"  - Changed: {md(files_words(night))}"] if night.files else []
        lines += [f"  - Committed: {md(one)}" for one in night.commits[:_FILES]]
    if (more := len(morning.sessions) - _SESSIONS) > 0:
        lines.append(f"- {plural(more, 'more session')}.")
    lines += ["", FROM_RECORDS]
    return "\n".join(lines) + "\n", secrets

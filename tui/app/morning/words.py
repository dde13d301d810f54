"""A report over sessions in words: lines for a terminal, and Markdown. Pure.

The summary begins with what is red. Where nothing is, it says so with what was looked at: that no
check ran is not that all is well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from tui.app.morning.findings import (
    EXCHANGES,
    FIGURES,
    RED,
    TITLES,
    ExchangeKind,
    Kind,
    Morning,
    NightCommit,
    NightFinding,
    SessionNight,
)
from tui.app.reports.usage_table import cost, cut_off
from tui.core.facts import DEFAULT_PROFILE
from tui.core.formatting import local, moment_of, plural
from tui.core.paths import shorten
from tui.core.redaction import mask
from tui.core.standard_output import folded
from tui.core.text_cleaning import one_line, visible
from tui.session.export import Exported

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
    checked = sum(one.work.checks > 0 for one in morning.sessions)
    looked = f"{plural(morning.checks, 'check')} ran, in {checked:,} of {len(morning.sessions):,}"
    looked += f" {'session' if len(morning.sessions) == 1 else 'sessions'}"
    if not morning.checks:
        looked = "no test, linter or build gave a result, so nothing was checked"
    so_far = " so far" if morning.running else ""
    calm = f"Nothing is red{so_far}: {looked}."
    return f"{calm} But {said}." if said else calm


def done_words(morning: Morning) -> str:
    """Put in numbers what was asked and done."""
    nights = morning.sessions
    asked, done = sum(one.work.turns for one in nights), sum(one.work.answered for one in nights)
    left = sum(one.work.left for one in nights)
    running = f", {morning.running:,} still open" if morning.running else ""
    parts = [
        f"{plural(len(nights), 'session')}{running}",
        f"{done:,} of {plural(asked, 'prompt')} answered to the end",
        *([f"{plural(left, 'prompt')} undone"] * bool(left)),
        *exchanges_words({kind: morning.exchanged(kind) for kind in EXCHANGES}),
        plural(sum(one.work.calls for one in nights), "call"),
        f"{plural(len({name for one in nights for name in one.work.files}), 'file')} changed",
        commits_words([commit for one in nights for commit in one.work.commits]),
        plural(sum(one.work.checkpoints for one in nights), "checkpoint"),
    ]
    if morning.tasks:
        of = ", ".join(f"{count:,} {name}" for name, count in morning.tasks.items())
        parts.append(f"{plural(sum(morning.tasks.values()), 'task')} of task files: {of}")
    return "; ".join(parts) + "."


def money_lines(morning: Morning) -> Iterator[str]:
    """Say what it cost, and what isn't in that."""
    total = morning.total()
    yield f"Cost: {cost(total)}, {round(total.tokens):,} tokens."
    models = morning.by_model()
    if len(models) > 1:
        yield "; ".join(
            f"{model or 'a model not named'}: {cost(one)}" for model, one in models.items()
        )
    if [*(paid := morning.by_profile())] not in ([], [DEFAULT_PROFILE]):
        yield "; ".join(f"profile {name}: {cost(one)}" for name, one in paid.items())
    if total.unpriced:
        yield f"{round(total.unpriced):,} of these tokens have no known price."
    if words := cut_off(sum(night.work.lost for night in morning.sessions)):
        yield words


def facts_of(night: SessionNight) -> list[str]:
    """Describe a session, each fact in a few words."""
    parts = [
        shorten(night.folder) if night.folder else "",
        f"branch {night.branch}" if night.branch else "",
        ", ".join(night.models),
        *(f"profile {name}" for name in night.paid if name != DEFAULT_PROFILE),
        f"started: {night.started_by}" if night.started_by else "",
        times(night),
    ]
    return [part for part in parts if part]


def times(night: SessionNight) -> str:
    """The hours in which a session worked, in the person's time zone."""
    first, last = moment_of(night.first), moment_of(night.last)
    if first is None or last is None:
        return ""
    there, then = first.astimezone(), last.astimezone()
    same = there.date() == then.date()
    return f"{there:%a %H:%M} to {then:{'%H:%M' if same else '%a %H:%M'}}"


def done_of(night: SessionNight) -> str:
    """Put in numbers what a session did."""
    parts = [
        f"{night.work.answered:,} of {plural(night.work.turns, 'prompt')} answered to the end",
        *([f"{plural(night.work.left, 'prompt')} undone"] * bool(night.work.left)),
        *exchanges_words({kind: night.exchanged(kind) for kind in EXCHANGES}),
        plural(night.work.calls, "call"),
        f"{plural(len(night.work.files), 'file')} changed",
        commits_words(night.work.commits),
        plural(night.work.checkpoints, "checkpoint"),
        plural(night.work.checks, "check"),
        cost(night.amount) if night.spent else "nothing billed",
    ]
    return ", ".join(parts)


def exchanges_words(counts: Mapping[ExchangeKind, int]) -> Iterator[str]:
    """Count the questions, goals and side questions that there were."""
    for kind, count in counts.items():
        if count and kind != "note":
            yield plural(count, kind)


def commits_words(commits: Sequence[NightCommit]) -> str:
    """Count commits, and those of them that only a command's output tells of."""
    said = sum(not one.in_git for one in commits)
    return plural(len(commits), "commit") + f" ({said:,} only said by commands)" * bool(said)


def row_words(row: NightFinding) -> str:
    """A finding with how often it was found."""
    return f"{row.words} ({row.times:,} times)" if row.times > 1 else row.words


def place_of(row: NightFinding) -> str:
    """The time of a finding, and the record that says so."""
    then = moment_of(row.time)
    when = f"{then.astimezone():%a %H:%M}" if then else ""
    return ", ".join(filter(None, (when, f"record {row.record}" if row.record else "")))


def command_of(row: NightFinding, night: SessionNight | None) -> str:
    """The command that opens the session of a finding, or answers it."""
    return row.command if row.command or night is None else opening(night)


def opening(night: SessionNight) -> str:
    """The command that opens a session; where its name can't be typed, where it is."""
    return night.command or f"Its id can't be typed; the file is {night.path}"


def name_of(night: SessionNight) -> str:
    """A session by its id and its title."""
    return f"{night.id} {night.title or '(no prompt)'}"


FROM_RECORDS: Final = (
    "Worked out from the records alone; what a model says of its work counts for nothing."
)


def files_words(night: SessionNight) -> str:
    """The files that a session changed."""
    shown = ", ".join(shorten(name) for name in night.work.files[:_FILES])
    more = len(night.work.files) - _FILES
    return f"{shown} and {more:,} more" if more > 0 else shown


# Line by line

Form: TypeAlias = Literal["title", "text", "verdict", "head", "item", "detail", "command"]
Line: TypeAlias = tuple[Form, str]


def outline(morning: Morning) -> Iterator[Line]:
    """Yield the whole report line by line, each with its form."""
    yield "title", "What ran"
    yield "text", span_words(morning)
    yield "verdict", verdict(morning)
    yield "text", done_words(morning)
    for line in money_lines(morning):
        yield "text", line
    every: dict[Kind, list[tuple[NightFinding, SessionNight | None]]] = {}
    for row, night in morning.findings():
        every.setdefault(row.kind, []).append((row, night))
    for kind, found in every.items():
        yield "head", f"{TITLES[kind]} ({sum(row.times for row, _ in found):,})"
        for row, night in found[:MOST]:
            yield from _finding(row, night)
        if (more := len(found) - MOST) > 0:
            yield "item", f"{more:,} more of this kind."
    if morning.sessions:
        yield "head", f"Sessions ({len(morning.sessions):,})"
    for night in morning.sessions[:_SESSIONS]:
        yield from _session(night)
    if (more := len(morning.sessions) - _SESSIONS) > 0:
        yield "item", f"{plural(more, 'more session')}: use html or json, or a shorter time."
    yield "head", FROM_RECORDS


def _finding(row: NightFinding, night: SessionNight | None) -> Iterator[Line]:
    yield "item", row_words(row)
    place = place_of(row)
    if night is not None:
        yield "detail", f"{name_of(night)} ({place})" if place else name_of(night)
    if command := command_of(row, night):
        yield "command", command


def _session(night: SessionNight) -> Iterator[Line]:
    yield "item", f"{name_of(night)}: {night.state}"
    if facts := facts_of(night):
        yield "detail", ", ".join(facts)
    yield "detail", done_of(night)
    asked = Counter(one.words for one in night.work.asked)
    for words, times in [*asked.items()][:_PROMPTS]:
        yield "detail", f"Asked: {words}" + (f" ({times:,} times)" if times > 1 else "")
    if (more := len(asked) - _PROMPTS) > 0:
        yield "detail", f"{plural(more, 'more prompt')}."
    exchanged = night.work.exchanges
    for one in exchanged[:_PROMPTS]:
        yield "detail", one.line
    if (more := sum(one.times for one in exchanged[_PROMPTS:])) > 0:
        things = "question or note" if more == 1 else "questions and notes"
        yield "detail", f"{more:,} more {things}."
    if night.work.files:
        yield "detail", f"Changed: {files_words(night)}"
    for commit in night.work.commits[:_FILES]:
        yield "detail", f"Committed: {commit.label}"
    yield "command", opening(night)


_TEXT: Final[Mapping[Form, str]] = {"item": "- ", "detail": "    ", "command": "    "}
_MARKS: Final[Mapping[Form, tuple[str, str]]] = {
    "title": ("# ", "\n"),
    "text": ("", "\n"),
    "verdict": ("**", "**\n"),
    "head": ("\n## ", "\n"),
    "item": ("- ", ""),
    "detail": ("  - ", ""),
    "command": ("  - `", "`"),
}


def text_report(morning: Morning, width: int | None = None) -> Exported:
    """The report as lines of at most `width` columns, safe to print, without secrets."""
    made: list[str] = []
    secrets = 0
    for form, words in outline(morning):
        text, count = mask(visible(one_line(words)))
        secrets += count
        made += [""] if form == "head" else []
        head = _TEXT.get(form, "")
        made += folded(head, text, width) if width else [head + text]
    return Exported("\n".join(made) + "\n", secrets)


def markdown_report(morning: Morning) -> Exported:
    """The report in Markdown, in which nothing of a session is markup, without secrets."""
    made: list[str] = []
    secrets = 0
    for form, words in outline(morning):
        text, count = mask(visible(one_line(words)))
        secrets += count
        begin, end = _MARKS[form]
        safe = text.replace("`", "'") if form == "command" else _MARKDOWN.sub(r"\\\1", text)
        made.append(f"{begin}{safe}{end}")
    return Exported("\n".join(made) + "\n", secrets)

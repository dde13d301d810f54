"""/why: the prompt, call, approval, model and price behind lines of a file, for every front end."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from tui.app.reports import Report, Row
from tui.context.blame import (
    FileBlame,
    RecordedStep,
    allowed_by,
    cost,
    fork_command,
    is_call,
    label,
    open_command,
    words,
)
from tui.core.config import Price
from tui.core.dataclass import dataclass
from tui.core.formatting import moment_of, money, plural, ranges, shortened
from tui.core.git.history import CommittedLine
from tui.core.text_cleaning import one_line

_SOURCES = 8
"""Most sources of one report; `holdfast blame` has them all."""
_SAID_CHARS = 200
_CODE_CHARS = 100


@dataclass(frozen=True, slots=True)
class WhyAnswer:
    """An answer about lines of a file. `name` is the file's, as it is shown; `first` and `last` are
    counted from 1. `own` is the session that is open, `here` are those that /resume finds."""

    name: str
    found: FileBlame
    lines: Sequence[str]
    first: int
    last: int
    prices: Mapping[str, Price]
    own: str = ""
    here: frozenset[str] = frozenset()

    @property
    def title(self) -> str:
        whole = (self.first, self.last) == (1, len(self.lines))
        numbers = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"Why {self.name}" + ("" if whole else f":{numbers}")

    @property
    def sources(self) -> Mapping[int, Sequence[int]]:
        """The lines of each origin, counted from 0, in the order of the first ones."""
        of: dict[int, list[int]] = {}
        for line in range(self.first - 1, self.last):
            of.setdefault(self.found.of[line], []).append(line)
        return of


def why_report(answer: WhyAnswer, *, ways: bool = True) -> Report:
    """The answer as what stays in the conversation; an uncertain one with all its candidates. With
    `ways`, it names the commands that lead to the sessions."""
    rows: list[Row | str] = []
    sources = answer.sources
    for lines in [*sources.values()][:_SOURCES]:
        if rows:
            rows.append("")
        if len(sources) > 1:
            numbers = ranges((n + 1 for n in lines), comma=", ")
            rows.append(f"Line{'s' * (len(lines) > 1)} {numbers}")
        if len(lines) == 1:
            rows.append(Row("code", (one_line(answer.lines[lines[0]])[:_CODE_CHARS],)))
        rows += _source(answer, lines, ways=ways)
    notes = [*answer.found.notes]
    if (more := len(sources) - _SOURCES) > 0:
        command = f"holdfast blame {shlex.quote(answer.name)}"
        notes.append(f"{plural(more, 'more source')}: {command} names them all.")
    return Report(answer.title, rows, notes=tuple(notes))


def _source(answer: WhyAnswer, lines: Sequence[int], *, ways: bool) -> Iterator[Row | str]:
    """Yield the rows about the one source of lines: one step, or the candidates."""
    found, line = answer.found, lines[0]
    makers, certain = found.makers(line), found.certain(line)
    if not certain:
        yield f"Uncertain: {found.origins[found.of[line]].why}. It may be one of these:"
    for number, step in enumerate(makers, 1):
        if not certain:
            yield f"{number} of {len(makers)}"
        yield from _step(answer, step, found.commit_of(lines) if certain else None, ways=ways)
    for number in found.origins[found.of[line]].formatters:
        yield Row("formatted by", (label(found.steps[number]),))


def _step(
    answer: WhyAnswer, step: RecordedStep, commit: CommittedLine | None, *, ways: bool
) -> Iterator[Row]:
    time = moment_text(step, commit)
    if not is_call(step):
        yield Row("from", (words(step, commit, answer.prices)[0],))
        if time:
            yield Row("time", (time,))
        return
    if step.said:
        yield Row("prompt", (f"“{shortened(one_line(step.said), _SAID_CHARS)}”",))
    yield Row("call", tuple(filter(None, (label(step), allowed_by(step)))))
    usd = cost(step, answer.prices)
    price = "" if usd is None else f"{money(usd)} for the request"
    if facts := tuple(filter(None, (one_line(step.model), price))):
        yield Row("model", facts)
    if time:
        yield Row("time", (time,))
    yield Row("session", (one_line(step.session),))
    if ways:
        yield from (Row(*way) for way in commands_for(answer, step))


def commands_for(answer: WhyAnswer, step: RecordedStep) -> Iterator[tuple[str, tuple[str]]]:
    """Yield what leads to a step's prompt, and to a session that begins before it."""
    command = open_command(step)
    if step.session == answer.own:
        yield "open", ("This is the session that is open.",)
    elif command and step.session in answer.here and step.prompt:
        yield "open", (f"/resume {step.session} {step.prompt}",)
    elif command:
        yield "open", (command,)
    if command := fork_command(step):
        yield "fork", (command,)


def moment_text(step: RecordedStep, commit: CommittedLine | None) -> str:
    """The time of a step, or of the commit that has its line; "" where neither is known."""
    time = moment_of(step.time)
    if time is None and commit is not None:
        time = datetime.fromtimestamp(commit.time, UTC)
    return time.astimezone().strftime("%d %b %Y %H:%M") if time else ""

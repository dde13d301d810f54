"""The record in a page: each prompt with its answer and its steps, each with an anchor. What there
is no room for is summed up and named as left out."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tui.app.reports.timeline import KINDS, failed_attempts, step_words
from tui.app.session_page.markup import PageText
from tui.app.session_report import Turn, calls, turn_parts
from tui.context.timeline import SessionTimeline, TimelineStep
from tui.core.config import Price
from tui.core.dataclass import dataclass, field
from tui.core.formatting import money, plural
from tui.core.late_pattern import late_pattern
from tui.session.records import is_prompt

_ROOM: Final = 1_500_000
"""Bytes for the record of all prompts together."""
_TURNS: Final = 240
"""Most prompts that have a part of their own."""
_STEPS: Final = 600
"""Most steps of a prompt."""
_TEXT: Final = 20_000
"""Most characters of a prompt or an answer."""
_INNER: Final = 12_000
"""Most bytes for the steps of a sub-agent."""
_LEAST: Final = 400
_CLOCK: Final = late_pattern(r"\d\d:\d\d:\d\d")
_NOISE: Final = frozenset({"request", "call", "pause"})
"""The kinds of which there are many: when they went well, they are left out first."""
_COUNTED: Final[Mapping[str, str]] = {
    "question": "question", "job": "background command", "change": "context change",
    "trouble": "failure",
}  # fmt: skip


@dataclass(slots=True)
class TurnSteps:
    """One prompt: its records, the places of its steps, and what went wrong in it."""

    number: int
    """0 for what was before the first prompt."""
    turn: Turn
    steps: range
    usd: float = 0.0
    unpriced: bool = False
    bad: int = 0


@dataclass(slots=True)
class PageRecord:
    """The turns of a session, and where in the page each step is found."""

    timeline: SessionTimeline
    turns: list[TurnSteps]
    shown: list[TurnSteps] = field(default_factory=list[TurnSteps])
    left: dict[int, str] = field(default_factory=dict[int, str])
    """For each turn that has no part of its own, the anchor of what is said of it."""
    anchored: set[int] = field(default_factory=set[int])
    inner: Mapping[str, SessionTimeline] = field(default_factory=dict[str, SessionTimeline])
    """The timelines of sub-agents, by the records that end them."""

    def anchor(self, place: int) -> str:
        """The anchor of a step: its own, or that of its prompt."""
        if place in self.anchored:
            return f"s{place}"
        starts = [one.steps.start for one in self.turns]
        return self.turn_anchor(max(0, bisect_right(starts, place) - 1))

    def name(self, place: int) -> str:
        """The words of a link to a step: its time where it is shown, otherwise its prompt."""
        clock = self.timeline.steps[place].time[11:19]
        if place in self.anchored and _CLOCK.fullmatch(clock):
            return clock
        starts = [one.steps.start for one in self.turns]
        number = self.turns[max(0, bisect_right(starts, place) - 1)].number
        return f"prompt {number}" if number else "before the first prompt"

    def turn_anchor(self, index: int) -> str:
        """The anchor of a turn, by its place in the list."""
        if not 0 <= index < len(self.turns):
            return "record"
        return self.left.get(index) or f"p{self.turns[index].number}"


def page_record(
    timeline: SessionTimeline, all_turns: Sequence[Turn], inner: Mapping[str, SessionTimeline]
) -> PageRecord:
    """Share out the steps among the prompts, and choose those that have a part of their own."""
    prompts = [*timeline.marks["prompt"].steps]
    opens = not all_turns or not is_prompt(all_turns[0][0][0])
    starts = [0, *(prompts if opens else prompts[1:])]
    made: list[TurnSteps] = []
    for n, (start, end) in enumerate(pairwise([*starts, len(timeline.steps)])):
        turn = all_turns[n] if n < len(all_turns) else []
        if not turn:
            continue
        one = TurnSteps(n + (not opens), turn, range(start, end))
        for place in one.steps:
            step = timeline.steps[place]
            if step.kind != "break":  # it is in the price of the request
                one.usd += step.usd or 0.0
                one.unpriced |= step.usd is None
            one.bad += step.failed or step.verdict == "red"
        made.append(one)
    record = PageRecord(timeline, made, inner=inner)
    _choose(record)
    return record


def _choose(record: PageRecord) -> None:
    """Choose the turns with parts of their own: the first and last ones, the dearest, those in
    which something went wrong."""
    turns = record.turns
    kept = {*range(min(20, len(turns))), *range(max(0, len(turns) - 80), len(turns))}
    for ranks in ([one.bad for one in turns], [one.usd for one in turns]):
        rest = [n for n in range(len(turns)) if n not in kept]
        kept |= {*heapq.nlargest((_TURNS - len(kept)) // 2, rest, key=ranks.__getitem__)}
    if len(turns) <= _TURNS:
        kept = {*range(len(turns))}
    for n, turn in enumerate(turns):
        if n in kept:
            record.shown.append(turn)
        elif n - 1 in record.left:
            record.left[n] = record.left[n - 1]
        else:
            record.left[n] = f"left{turn.number}"


def record_parts(record: PageRecord, prices: Mapping[str, Price], text: PageText) -> Iterator[str]:
    """Yield the parts of all prompts. Each has its share of the room; what one leaves over is for
    those after it."""
    room, waiting = _ROOM, len(record.shown)
    gap: list[TurnSteps] = []
    for n, turn in enumerate(record.turns):
        if n in record.left:
            gap.append(turn)
            continue
        if gap:
            yield _gap_line(record, gap)
            gap = []
        part = _turn(record, turn, prices, text, room // max(1, waiting))
        waiting -= 1
        room -= len(part.encode())
        yield part
    if gap:
        yield _gap_line(record, gap)


def _gap_line(record: PageRecord, gap: Sequence[TurnSteps]) -> str:
    first, last = gap[0].number, gap[-1].number
    places = (place for turn in gap for place in turn.steps)
    told = counted(record.timeline.steps[place] for place in places)
    words = f"Prompts {first:,} to {last:,} are" if last > first else f"Prompt {first:,} is"
    return f'<p class="left" id="left{first}">{words} left out here: {told}.</p>'


def counted(steps: Iterable[TimelineStep]) -> str:
    """Count steps by kind, with what failed among them and what they cost."""
    kinds: Counter[str] = Counter()
    failed, usd, unknown = 0, 0.0, 0
    for step in steps:
        kinds[_COUNTED.get(step.kind, KINDS[step.kind])] += 1
        failed += step.failed
        if step.kind != "break":
            usd += step.usd or 0.0
            unknown += step.usd is None
    words = [plural(count, kind) for kind, count in kinds.most_common()]
    words += [f"{failed:,} failed"] if failed else []
    words += [money(usd)] if usd else []
    words += [f"{plural(unknown, 'price')} unknown"] if unknown else []
    return ", ".join(words) or "nothing"


def _turn(
    record: PageRecord, one: TurnSteps, prices: Mapping[str, Price], text: PageText, room: int
) -> str:
    parts = [*turn_parts(one.turn, prices)]
    asked = next((part for part in parts if part.who.startswith("Asked at ")), None)
    label = text.label(asked.text if asked else "Before the first prompt", 110)
    price = "price unknown" if one.unpriced and not one.usd else money(one.usd)
    price += " + ?" if one.unpriced and one.usd else ""
    bad = f' · <b class="bad">{one.bad:,} went wrong</b>' if one.bad else ""
    said = {"Files changed", "Went wrong", "Seen by the model", "Cost", "Answer"}
    body: list[str] = []
    chars = max(_LEAST, min(_TEXT, room // 8))
    if asked:
        body.append(f"<h3>{text(asked.who)}</h3><pre>{text.long(asked.text, chars)}</pre>")
    body += [_part(part.who, part.text, text, chars) for part in parts if part.who in said]
    if not body and not one.steps:
        return f'<span id="p{one.number}"></span>'
    used = sum(len(piece.encode()) for piece in body) + 400
    body.insert(1 if asked else 0, _steps(record, one, text, room - used))
    number = f"{one.number}. " if one.number else ""
    return (
        f'<details class="turn" id="p{one.number}" open><summary>{number}{label}'
        f" <small>{plural(len(one.steps), 'step')} · {price}{bad}</small></summary>"
        f"{''.join(body)}</details>"
    )


def _part(who: str, words: str, text: PageText, chars: int) -> str:
    if who == "Answer":
        return f'<h3>{who}</h3><pre class="answer">{text.long(words, chars)}</pre>'
    lines = words.split("\n")
    most = max(4, chars // 200)
    items = [f"<li>{text.label(line.removeprefix('- '), 400)}</li>" for line in lines[:most]]
    if (more := len(lines) - most) > 0:
        items.append(f'<li class="left">{plural(more, "more line")} left out here</li>')
    kind = ' class="bad"' if who == "Went wrong" else ""
    return f"<h3>{who}</h3><ul{kind}>{''.join(items)}</ul>"


def _steps(record: PageRecord, one: TurnSteps, text: PageText, room: int) -> str:
    """The steps of a prompt, as many as there is room for: what matters first."""
    steps = record.timeline.steps
    done = dict(calls(one.turn))
    places = [place for place in one.steps if steps[place].kind != "prompt"]
    lines: dict[int, str] = {}
    for place in heapq.nsmallest(_STEPS, places, key=lambda place: _rank(steps[place])):
        line = _line(place, steps[place], done, text, _within(record, steps[place], text, room))
        room -= len(line.encode())
        if room < 0:
            break
        lines[place] = line
    record.anchored |= {*lines}
    if not places:
        return ""
    items = [lines[place] for place in sorted(lines)]
    if len(lines) < len(places):
        told = counted(steps[place] for place in places if place not in lines)
        items.append(f'<li class="left">Left out here: {told}.</li>')
    return f'<h3>Done</h3><ol class="steps">{"".join(items)}</ol>'


def _rank(step: TimelineStep) -> tuple[int, float]:
    """The order in which steps get their room."""
    if step.turned or step.kind not in _NOISE:
        return 0, 0.0
    return (1 if step.failed or step.verdict == "red" else 2 if step.files else 3), step.at


def _within(record: PageRecord, step: TimelineStep, text: PageText, room: int) -> str:
    """The steps of a sub-agent, as far as a share of the room goes; "" where none are known."""
    inner = record.inner.get(step.record) if step.kind == "agent" else None
    if inner is None:
        return ""
    places = [n for n, one in enumerate(inner.steps) if one.kind != "prompt"]
    room, lines = min(_INNER, room // 20), dict[int, str]()
    for n in heapq.nsmallest(_STEPS, places, key=lambda n: _rank(inner.steps[n])):
        line = f"<li>{_words(inner.steps[n], {}, text)}</li>"
        room -= len(line.encode())
        if room < 0:
            break
        lines[n] = line
    items = [lines[n] for n in sorted(lines)]
    if len(lines) < len(places):
        left = counted(inner.steps[n] for n in places if n not in lines)
        items.append(f'<li class="left">Left out here: {left}.</li>')
    told = counted(inner.steps[n] for n in places)
    if words := failed_attempts(inner):
        told += f"; {words.removesuffix('.')}"
    return (
        f'<details class="inner"><summary>Inside: {told}</summary>'
        f'<ol class="steps">{"".join(items)}</ol></details>'
    )


def _line(
    place: int, step: TimelineStep, done: Mapping[str, str], text: PageText, within: str
) -> str:
    kind = "bad" if step.failed or step.verdict == "red" else step.verdict or step.kind
    return f'<li id="s{place}" class="{kind}">{_words(step, done, text)}{within}</li>'


def _words(step: TimelineStep, done: Mapping[str, str], text: PageText) -> str:
    words = done.get(step.record, "") if step.kind in {"call", "question"} else ""
    if not words:
        words = f"{KINDS[step.kind].capitalize()}: {step_words(step)}"
    elif step.verdict:
        words += f" {'Turned' if step.turned else 'Still'} {step.verdict}."
    if step.note:
        sentence = step.note[0].isupper()
        words = f"{words.removesuffix('.')}{'.' if sentence else ' ·'} {step.note}"
    told = text.label(words, 420)
    clock = text.label(step.time[11:19], 8)
    return f"<time>{clock}</time> {told}"

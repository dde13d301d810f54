"""A timeline as SVG: the stacked context over time, below it what ran, broke, was checked and
changed. Nothing in it is longer for a longer session: what shares a column is drawn as one."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tui.app.reports.timeline import step_words
from tui.app.reports.timeline_picture import PARTS, Window, whole
from tui.app.session_page.markup import PageText, Picture
from tui.context.timeline import LANES, Lane, SessionTimeline, TimelineStep
from tui.core.dataclass import dataclass, field
from tui.core.formatting import duration, money, tokens, wait_time

WIDTH: Final = 1160
_LEFT: Final = 90
_PLOT: Final = WIDTH - _LEFT - 8
_COLUMN: Final = 3
_COLUMNS: Final = _PLOT // _COLUMN
_TOP: Final = 22
_CHART: Final = 210
_ROW: Final = 20
_BAR: Final = 13
_NAMED: Final = 56
"""Fewest pixels of a bar with its name in it."""
_NAME_HIGH: Final = 15
"""Fewest pixels that a part of the context is high where its name is."""
_LINKED: Final = 120
"""Most bars of a lane that lead to their step; the others are drawn only."""
_PRICED: Final = 8
_LANE_NAMES: Final = {
    "request": "model", "call": "calls", "agent": "agents", "job": "background",
    "question": "you", "wait": "waits",
}  # fmt: skip

Anchor = Callable[[int], str]
"""The anchor of a step by its place."""


@dataclass(slots=True)
class _Canvas:
    timeline: SessionTimeline
    text: PageText
    anchor: Anchor
    window: Window
    edges: list[float]
    inner: Mapping[str, SessionTimeline]
    y: int = _TOP
    pieces: list[str] = field(default_factory=list[str])

    def x(self, time: float) -> float:
        share = (time - self.window.start) / max(1e-9, self.window.end - self.window.start)
        return round(_LEFT + max(0.0, min(1.0, share)) * _COLUMNS * _COLUMN, 1)

    def label(self, words: str, y: int) -> None:
        x = _LEFT - 8
        self.pieces.append(f'<text class="l" x="{x}" y="{y}" text-anchor="end">{words}</text>')

    def linked(self, place: int, drawn: str) -> None:
        """Add a shape that names its step and leads to it. Whoever uses the keyboard has the same
        links in the tables: a tab stop for each bar would be in the way."""
        told = self.text.label(step_words(self.timeline.steps[place]))
        self.pieces.append(
            f'<a href="#{self.anchor(place)}" tabindex="-1">{drawn[:-2]}><title>{told}</title>'
            f"</{drawn[1 : drawn.index(' ')]}></a>"
        )


def timeline_picture(
    timeline: SessionTimeline,
    text: PageText,
    anchor: Anchor,
    inner: Mapping[str, SessionTimeline],
) -> Picture:
    """Draw a whole session. `inner` are the timelines of its sub-agents, by the records that end
    them."""
    window = whole(timeline)
    canvas = _Canvas(timeline, text, anchor, window, window.edges(_COLUMNS), inner)
    _context(canvas)
    _guides(canvas)
    canvas.y += _CHART + 6
    _marks(canvas)
    _axis(canvas)
    for kind in LANES:
        group = timeline.lanes[kind]
        for number, lane in enumerate(group.rows if group else ()):
            canvas.label("" if number else _LANE_NAMES[kind], canvas.y + 11)
            _lane(canvas, lane, kind)
            canvas.y += _ROW if kind != "request" else _ROW + 2
    _checks(canvas)
    _levels(canvas, "files", list(timeline.changed.between(canvas.edges)), "")
    spent = list(timeline.spent.between(canvas.edges))
    _levels(canvas, "cost", spent, f"at most {money(max(spent, default=0.0))} in a column")
    told = _description(timeline)
    drawn = "".join(canvas.pieces)
    return Picture("timeline", WIDTH, canvas.y + 4, "The session in time", told, drawn)


def _description(timeline: SessionTimeline) -> str:
    requests, checks = len(timeline.requests), len(timeline.marks["check"])
    most = tokens(max(timeline.inputs.values, default=0))
    return (
        f"{duration(timeline.now)} from left to right. Above, the input of {requests:,}"
        f" requests, at most {most} tokens, by kind of content, cached and new told apart. Below,"
        f" breaks of the cache, compactions, requests, calls, waits and {checks:,} checks. The"
        " table has the same by prompt."
    )


# The stacked context


def _context(canvas: _Canvas) -> None:
    timeline = canvas.timeline
    most = max(timeline.inputs.values, default=0)
    bottom = canvas.y + _CHART
    for share in (1.0, 0.5):
        y = round(bottom - _CHART * share)
        canvas.pieces.append(f'<path class="grid" d="M{_LEFT} {y}H{WIDTH - 8}"/>')
        if most:
            canvas.label(tokens(round(most * share)), y + 4)
    canvas.label("context", bottom - 2)
    if not most:
        return
    columns = [*_columns(canvas)]
    scale = _CHART / most
    for number, part in enumerate(PARTS):
        for kind in ("c", "n"):
            spans = [_span(parts, cached, number, kind) for parts, cached in columns]
            if path := _area(spans, bottom, scale):
                canvas.pieces.append(f'<path class="{part} {kind}" d="{path}"/>')
    for number, part in enumerate(PARTS):
        spans = [(sum(parts[:number]), sum(parts[: number + 1])) for parts, _ in columns]
        if number:
            canvas.pieces.append(f'<path class="between" d="{_floor(spans, bottom, scale)}"/>')
        wide = 7 * len(part) + 8
        if found := _room(spans, scale, wide):
            x, y = found[0], round(bottom - found[1] * scale, 1)
            canvas.pieces.append(
                f'<path class="plate" d="M{x - wide / 2} {y - 7}h{wide}v14h-{wide}z"/>'
                f'<text class="part" x="{x}" y="{y + 4}" text-anchor="middle">{part}</text>'
            )
    edge = [(0.0, float(cached)) for _, cached in columns]
    line = "".join(
        f"M{left} {bottom - top * scale:.1f}H{right}" for left, right, _, top in _runs(edge) if top
    )
    canvas.pieces.append(f'<path class="edge" d="{line}"/>')


def _columns(canvas: _Canvas) -> Iterator[tuple[Sequence[int], int]]:
    """The parts of the largest request in each column, or of the last one before it, and how much
    of it was cached, as far as all requests in the column were."""
    timeline = canvas.timeline
    places = [bisect_left(timeline.requests.times, edge) for edge in canvas.edges]
    for first, last in pairwise(places):
        new = 0
        place = first - 1
        if last > first:
            place, most = timeline.inputs.largest(first, last)
            new = most * timeline.news.total(first, last)
            new //= max(1, timeline.inputs.total(first, last))
        sent = timeline.steps[timeline.requests.steps[place]].sent if place >= 0 else None
        yield (sent.parts, max(0, sent.tokens - new)) if sent else ((0,) * 5, 0)


def _span(parts: Sequence[int], cached: int, number: int, kind: str) -> tuple[float, float]:
    """The stretch of a part that was cached, or that was new, in tokens."""
    below = sum(parts[:number])
    top = below + parts[number]
    middle = min(top, max(below, cached))
    return (below, middle) if kind == "c" else (middle, top)


def _floor(spans: Sequence[tuple[float, float]], bottom: int, scale: float) -> str:
    """A line below a part, where there is any of it: that tells parts of the same gray apart."""
    return "".join(
        f"M{left} {bottom - low * scale:.1f}H{right}"
        for left, right, low, high in _runs(spans)
        if high > low
    )


def _room(
    spans: Sequence[tuple[float, float]], scale: float, width: int
) -> tuple[float, float] | None:
    """The middle of the best place in a part for its name, in pixels and tokens; None where it is
    too low everywhere."""
    wide = width // _COLUMN + 1
    most, found = _NAME_HIGH / scale, None
    for first in range(0, len(spans) - wide + 1, max(1, wide // 4)):
        some = spans[first : first + wide]
        low, high = max(low for low, _ in some), min(high for _, high in some)
        if high - low > most:
            most, found = high - low, (_LEFT + (first + wide / 2) * _COLUMN, (low + high) / 2)
    return found


def _runs(spans: Sequence[tuple[float, float]]) -> Iterator[tuple[int, int, float, float]]:
    """Columns with the same stretch, as one: left and right in pixels, and the stretch."""
    first = 0
    for place in range(1, len(spans) + 1):
        if place == len(spans) or spans[place] != spans[first]:
            low, high = spans[first]
            yield _LEFT + first * _COLUMN, _LEFT + place * _COLUMN, low, high
            first = place


def _area(spans: Sequence[tuple[float, float]], bottom: int, scale: float) -> str:
    return "".join(
        f"M{left} {bottom - low * scale:.1f}V{bottom - high * scale:.1f}H{right}"
        f"V{bottom - low * scale:.1f}z"
        for left, right, low, high in _runs(spans)
        if high > low
    )


# Marks


def _guides(canvas: _Canvas) -> None:
    """Lines through the context where it broke or was compacted, the dearest with their price."""
    marks = canvas.timeline.marks["context"].steps
    steps = [(place, canvas.timeline.steps[place]) for place in marks]
    steps = [one for one in steps if one[1].kind in {"break", "compaction"}]
    dearest = heapq.nlargest(60, steps, key=lambda one: one[1].usd or 0.0)
    taken: list[float] = []
    for place, step in dearest:
        x = canvas.x(step.at)
        top, end = canvas.y, canvas.y + _CHART
        canvas.pieces.append(f'<path class="guide {step.kind}" d="M{x} {top}V{end}"/>')
        if len(taken) < _PRICED and all(abs(x - other) > 64 for other in taken):
            taken.append(x)
            price = "price unknown" if step.usd is None else money(step.usd)
            at = max(x, _LEFT + 26)
            drawn = f'<text class="price {step.kind}" x="{at}" y="{top - 6}" text-anchor="middle"'
            canvas.pieces.append(
                f'<a href="#{canvas.anchor(place)}" tabindex="-1">{drawn}>{price}</text></a>'
            )


def _marks(canvas: _Canvas) -> None:
    """A sign for each change of the context, one for a column."""
    marks = canvas.timeline.marks["context"]
    if not len(marks):
        return
    canvas.label("changes", canvas.y + 11)
    y = canvas.y + 2
    for start, end in pairwise(canvas.edges):
        there = marks.between(start, end)
        found = {canvas.timeline.steps[marks.steps[n]].kind: marks.steps[n] for n in there}
        for kind in ("compaction", "break", "change"):
            if kind in found:
                x = canvas.x(start)
                shape = {
                    "compaction": f"M{x - 5} {y}h10l-5 9z",
                    "break": f"M{x - 5} {y + 9}h10l-5 -9z",
                    "change": f"M{x - 3} {y + 2}h6v6h-6z",
                }[kind]
                canvas.linked(found[kind], f'<path class="{kind}" d="{shape}"/>')
                break
    canvas.y += _ROW


def _axis(canvas: _Canvas) -> None:
    """A line with the prompts by their number, the time since the start, and where time is cut."""
    timeline, y = canvas.timeline, canvas.y + 7
    canvas.label("prompts", canvas.y + 11)
    canvas.pieces.append(f'<path class="axis" d="M{_LEFT} {y}H{WIDTH - 8}"/>')
    free = 0.0
    for place in timeline.marks["prompt"].steps:
        step = timeline.steps[place]
        x = canvas.x(step.at)
        if x < free:
            continue
        words = f"{step.number}"
        wide = 7 * len(words) + 8
        x = min(x, WIDTH - 8 - wide)
        drawn = f'<path class="prompt" d="M{x} {y - 7}h{wide}v14h-{wide}z"/>'
        canvas.linked(place, drawn)
        canvas.pieces.append(
            f'<text class="number" x="{x + wide / 2}" y="{y + 4}" text-anchor="middle">'
            f"{words}</text>"
        )
        free = x + wide + 2
    canvas.y += _ROW
    free = 0.0
    for place in timeline.marks["pause"].steps:
        step = timeline.steps[place]
        x = canvas.x(step.end)
        if step.seconds > 0 and x >= free:
            words = f"⋯ {wait_time(step.seconds)}"
            x = min(x, WIDTH - 8 - 6 * len(words))
            canvas.pieces.append(f'<text class="pause" x="{x}" y="{canvas.y + 8}">{words}</text>')
            free = x + 7 * len(words) + 8
    canvas.label("pauses", canvas.y + 9) if free else None
    canvas.y += _ROW - 2 if free else 0


def _lane(canvas: _Canvas, lane: Lane, kind: str) -> None:
    """The bars of a lane. Those too small to be told apart are one shape."""
    least = (canvas.window.end - canvas.window.start) * 4 / (_COLUMNS * _COLUMN)
    bars = [n for n in range(len(lane.steps)) if lane.ends[n] - lane.starts[n] >= least]
    if len(bars) > _LINKED:
        bars = heapq.nlargest(_LINKED, bars, key=lambda n: lane.ends[n] - lane.starts[n])
    y, linked = canvas.y, set(bars)
    small: dict[str, dict[int, float]] = {"": {}, " bad": {}}
    for n, (start, end) in enumerate(zip(lane.starts, lane.ends, strict=True)):
        x, right = canvas.x(start), canvas.x(end)
        step = canvas.timeline.steps[lane.steps[n]]
        bad = " bad" if step.failed or step.verdict == "red" else ""
        if n not in linked:
            column = int(x / 2) * 2
            small[bad][column] = max(small[bad].get(column, 0.0), right - column, 1.5)
            continue
        width = round(max(1.5, right - x), 1)
        drawn = f'<rect class="{kind}{bad}" x="{x}" y="{y}" width="{width}" height="{_BAR}"/>'
        canvas.linked(lane.steps[n], drawn)
        if width >= _NAMED:
            _name(canvas, step, x, y, width)
        if (inner := canvas.inner.get(step.record)) is not None and kind == "agent":
            _requests_within(canvas, inner, x, width)
    for bad, found in small.items():
        path = "".join(f"M{x} {y}h{round(w, 1)}v{_BAR}H{x}z" for x, w in found.items())
        if path:
            canvas.pieces.append(f'<path class="{kind}{bad}" d="{path}"/>')


def _requests_within(canvas: _Canvas, inner: SessionTimeline, x: float, width: float) -> None:
    """The requests of a sub-agent, as a thin line below its bar."""
    scale, found = width / max(1e-9, inner.now), dict[int, float]()
    for lane in inner.lanes["request"].rows:
        for start, end in zip(lane.starts, lane.ends, strict=True):
            column = int(start * scale)
            found[column] = max(found.get(column, 1.0), round((end - start) * scale, 1))
    y = canvas.y + _BAR + 1
    path = "".join(f"M{round(x + at, 1)} {y}h{wide}v3h-{wide}z" for at, wide in found.items())
    if path:
        canvas.pieces.append(f'<path class="request" d="{path}"/>')


def _name(canvas: _Canvas, step: TimelineStep, x: float, y: int, width: float) -> None:
    words = f"{step.number} {step.label}" if step.kind == "request" else step.label
    name = canvas.text.drawn(words, max(4, int(width / 6.2) - 1))
    canvas.pieces.append(f'<text class="in" x="{x + 3}" y="{y + 10}">{name}</text>')


def _checks(canvas: _Canvas) -> None:
    """A line from the first check on, thick and red while one of them is."""
    timeline, marks = canvas.timeline, canvas.timeline.marks["check"]
    if not len(marks):
        return
    y = canvas.y + 7
    canvas.label("checks", canvas.y + 11)
    ends = [*marks.times[1:], canvas.window.end]
    lines: dict[bool, dict[int, float]] = {True: {}, False: {}}
    for n, end in enumerate(ends):
        x = int(canvas.x(marks.times[n]))
        found = lines[timeline.reds[n] > 0]
        found[x] = max(found.get(x, 0.0), canvas.x(end))
    for red, found in lines.items():
        path = "".join(f"M{x} {y}H{end}" for x, end in found.items())
        if path:
            canvas.pieces.append(f'<path class="checks {"red" if red else "green"}" d="{path}"/>')
    free = 0.0
    for n, place in enumerate(marks.steps):
        step, x = timeline.steps[place], canvas.x(marks.times[n])
        if step.turned and x >= free:
            free = x + 9
            red = step.verdict == "red"
            sign = f"M{x - 4} {y - 4}l8 8m0 -8l-8 8" if red else f"M{x - 4} {y}l3 4l6 -8"
            canvas.pieces.append(f'<circle class="bed" cx="{x}" cy="{y}" r="7"/>')
            canvas.linked(place, f'<path class="sign {step.verdict}" d="{sign}"/>')
    canvas.y += _ROW


def _levels(canvas: _Canvas, name: str, numbers: Sequence[float], words: str) -> None:
    """A bar for each column, the largest one full."""
    most = max(numbers, default=0.0)
    if most <= 0:
        return
    canvas.label(name, canvas.y + 14)
    bottom = canvas.y + 18
    path = "".join(
        f"M{left} {bottom}v-{max(1.0, 18 * high / most):.1f}h{right - left}V{bottom}z"
        for left, right, _, high in _runs([(0.0, one) for one in numbers])
        if high > 0
    )
    told = f"<title>{words}</title>" if words else ""
    canvas.pieces.append(f'<path class="{name}" d="{path}">{told}</path>')
    canvas.y += 24

"""A timeline as rows of characters: the stacked context over time, and below it what ran. Pure.

A cell is a character, its role and the role behind it; roles get their colors from whoever draws.
Only what is in the window is looked at, by bisection: a picture of a long session takes no longer
than one of a short one with as many columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeAlias

from tui.context.timeline import Lane, SessionTimeline, SizedRequest, TimelineStep
from tui.core.dataclass import dataclass, replace
from tui.core.formatting import money, tokens
from tui.core.text_cleaning import one_line

Part: TypeAlias = Literal["system", "tools", "messages", "results", "thinking"]
Cell: TypeAlias = tuple[str, str, str]
"""A character, its role, and the role of what is behind it, "" for the background."""

PARTS: Final[tuple[Part, ...]] = ("system", "tools", "messages", "results", "thinking")
CACHED: Final = "-cached"
"""The end of the role of a part that came from the cache."""
LABEL: Final = 9
"""Cells of the labels at the left."""
NARROW: Final = 50
"""With fewer cells, labels are shorter."""

_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_SHADES: Final = " ░▒▓█"
TEXTURES: Final[Mapping[str, str]] = dict(zip(PARTS, "▓▒█░▚", strict=True))
"""The characters of the parts where there are no colors."""
_SIGNS: Final = (
    ("!", "error", "cache restart"),
    ("▼", "warning", "compaction"),
    ("○", "accent", "other change"),
    ("✗", "error", "red"),
    ("✓", "success", "green"),
)
_LANES: Final = {
    "request": ("model", "primary"),
    "call": ("calls", "accent"),
    "agent": ("agents", "secondary"),
    "job": ("jobs", "muted"),
    "question": ("you", "warning"),
    "wait": ("waits", "error"),
}
ROLES: Final = (
    *PARTS, *(f"{part}{CACHED}" for part in PARTS),
    "text", "muted", "rule", "primary", "secondary", "accent", "success", "warning", "error", "ink",
)  # fmt: skip
_EMPTY: Final[Cell] = (" ", "text", "")
_UNREAD: Final[Cell] = ("░", "rule", "")
_UNREAD_TEXTURE: Final[Cell] = ("·", "rule", "")
"""A cell of what isn't folded yet."""
_NAMED: Final = 6
"""Fewest cells of a bar with its name in it."""


class Window(NamedTuple):
    """The stretch of the axis that is in sight, in seconds."""

    start: float
    end: float

    def edges(self, columns: int) -> list[float]:
        """The times between the columns, and those at both ends."""
        width = (self.end - self.start) / max(1, columns)
        return [self.start + n * width for n in range(columns)] + [self.end]

    def column(self, time: float, columns: int) -> int:
        """The column of a moment."""
        share = (time - self.start) / max(1e-9, self.end - self.start)
        return max(0, min(columns - 1, int(share * columns)))


@dataclass(frozen=True, slots=True)
class PictureRow:
    """One row: its label, and a cell for each column."""

    label: str
    cells: Sequence[Cell]
    role: str = "muted"


def whole(timeline: SessionTimeline) -> Window:
    """The window with the whole session."""
    return Window(0.0, max(timeline.now, 1.0) * 1.0001)


def aligned(timelines: Sequence[SessionTimeline]) -> list[Window]:
    """Windows of one length with all of several sessions, their first prompts in one column."""
    firsts = [next(iter(timeline.marks["prompt"].times), 0.0) for timeline in timelines]
    before = max(firsts)
    pairs = zip(timelines, firsts, strict=True)
    after = max(whole(timeline).end - first for timeline, first in pairs)
    return [Window(first - before, first + after) for first in firsts]


@dataclass(frozen=True, slots=True)
class Unread:
    """The part of a session that isn't folded yet: the requests in it that are known, in the order
    of their times, which are guessed by the pace of what is before; and the window that the whole
    session needs then."""

    times: Sequence[float]
    tokens: Sequence[int]
    whole: Window


def unread(timeline: SessionTimeline, requests: Sequence[SizedRequest], count: int) -> Unread:
    """The part that a timeline lacks of a session with so many records, by its outline."""
    end = whole(timeline).end
    pace = end / max(1, timeline.count)
    left = [one for one in requests if one.place >= timeline.count]
    times = [end + (one.place - timeline.count) * pace for one in left]
    return Unread(times, [one.tokens for one in left], Window(0.0, max(end, count * pace)))


def label_width(width: int) -> int:
    """The cells of the labels in a picture of that width."""
    return LABEL if width >= NARROW else 7


def picture(
    timeline: SessionTimeline,
    window: Window,
    width: int,
    height: int,
    *,
    colors: bool = True,
    left: Unread | None = None,
) -> list[PictureRow]:
    """Draw the window in at most so many cells and rows, the labels included. What is `left` to be
    read is drawn in outline."""
    columns = max(1, width - label_width(width) - 1)
    edges = window.edges(columns)
    below = _rows(timeline, window, edges, height)
    chart = max(1, height - len(below))
    most = max((*_inputs(timeline, edges), *(left.tokens if left else ())), default=0)
    rows = [*_chart(timeline, edges, chart, most, colors=colors), *below]
    ended = bisect_left(edges, whole(timeline).end)
    if ended < columns:  # beyond it there is nothing, and nothing goes on
        rows = [replace(row, cells=_until(row.cells, ended)) for row in rows]
        if left:
            beyond = [*_outline(left, edges[ended:], chart, most, colors=colors)]
            for n in range(chart):
                cells = [*rows[n].cells[:ended], *(column[chart - 1 - n] for column in beyond)]
                rows[n] = replace(rows[n], cells=cells)
    return [replace(row, label=row.label[: label_width(width)]) for row in rows]


def _until(cells: Sequence[Cell], column: int) -> Sequence[Cell]:
    return [*cells[:column], *[_EMPTY] * (len(cells) - column)]


def legend(width: int, *, colors: bool = True) -> list[tuple[str, str]]:
    """The parts of the context with their looks, from the cache and new: as many as fit."""
    pieces: list[tuple[str, str]] = []
    room = width
    for part in reversed(PARTS):
        swatch = [("█", part + CACHED), ("█", part)] if colors else [(TEXTURES[part], part)]
        if (room := room - len(swatch) - len(part) - 2) < 0:
            break
        pieces += [*swatch, (f" {part} ", "muted")]
    words = " pale: from the cache"
    if colors and room >= len(words):
        pieces.append((words, "muted"))
    return pieces


def signs(width: int) -> list[tuple[str, str]]:
    """The marks below the chart in words: as many as fit."""
    pieces: list[tuple[str, str]] = []
    for sign, role, name in _SIGNS:
        gap = "  " if pieces else ""
        if (width := width - len(gap) - len(name) - 2) < 0:
            break
        pieces += [(f"{gap}{sign}", role), (f" {name}", "muted")]
    return pieces


# The rows below the chart


def _rows(
    timeline: SessionTimeline, window: Window, edges: Sequence[float], height: int
) -> list[PictureRow]:
    """The rows for which there is room, in the order in which they are read."""
    marks, lanes = timeline.marks, timeline.lanes
    first = {kind: [0] for kind, group in lanes.items() if group}
    wanted: list[tuple[str, int]] = [("axis", 0)]
    wanted += [("context", 0)] if len(marks["context"]) else []
    wanted += [("tests", 0)] if len(marks["check"]) else []
    wanted += [("request", 0)] if "request" in first else []
    wanted += [("cost", 0)] if timeline.spent.total else []
    wanted += [("call", 0)] if "call" in first else []
    wanted += [("cache", 0)] if timeline.inputs else []
    wanted += [(kind, 0) for kind in ("agent", "question", "wait", "job") if kind in first]
    wanted += [("files", 0)] if timeline.changed.total else []
    for kind in ("agent", "call", "job"):
        rows = enumerate(lanes[kind].rows)
        wanted += [(kind, n) for n, lane in rows if n and lane.between(*window)]
    room = height - max(3, height // 3)
    order = ("cache", "context", "axis", *_LANES, "tests", "files", "cost")
    chosen = sorted(
        wanted[: max(min(1, height - 1), room)], key=lambda one: (order.index(one[0]), one[1])
    )
    return [_row(timeline, window, edges, *one) for one in chosen]


def _row(
    timeline: SessionTimeline, window: Window, edges: Sequence[float], name: str, number: int
) -> PictureRow:
    match name:
        case "axis":
            return PictureRow("prompts", _axis(timeline, edges))
        case "context":
            return PictureRow("context", _context(timeline, edges))
        case "tests":
            return PictureRow("tests", _checks(timeline, edges))
        case "cache":
            return PictureRow("cache", list(_cache(timeline, edges)))
        case "cost":
            sums = list(timeline.spent.between(edges))
            most = max(sums)
            label = f"cost {money(most)}" if most else "cost"
            return PictureRow(label if len(label) <= LABEL else "cost", _levels(sums, "warning"))
        case "files":
            return PictureRow("files", _levels(list(timeline.changed.between(edges)), "success"))
        case kind:
            label, role = _LANES[kind]
            lane = next(g for k, g in timeline.lanes.items() if k == kind).rows[number]
            cells = _lane(timeline, lane, window, edges, role)
            return PictureRow("" if number else label, cells)


def _axis(timeline: SessionTimeline, edges: Sequence[float]) -> list[Cell]:
    """A line with a tick where a prompt was sent and a mark where time is cut out."""
    prompts, pauses = timeline.marks["prompt"], timeline.marks["pause"]
    cells: list[Cell] = [("─", "rule", "")] * (len(edges) - 1)
    numbers: list[tuple[int, str]] = []
    for column, (start, end) in enumerate(pairwise(edges)):
        if pauses.between(start, end):
            cells[column] = ("~", "muted", "")
        if there := prompts.between(start, end):
            cells[column] = ("┬", "text", "")
            number = timeline.steps[prompts.steps[there.start]].number
            numbers.append((column + 1, str(number)))
    for first, number in numbers:
        room = cells[first : first + len(number) + 1]
        if len(room) > len(number) and all(letter in "─~" for letter, _, _ in room):
            cells[first : first + len(number)] = [(digit, "muted", "") for digit in number]
    return cells


def _context(timeline: SessionTimeline, edges: Sequence[float]) -> list[Cell]:
    """Breaks, compactions and other changes of what the model sees."""
    marks, cells = timeline.marks["context"], list[Cell]()
    places = [bisect_left(marks.times, edge) for edge in edges]
    for first, last in pairwise(places):
        if first == last:
            cells.append(_EMPTY)
            continue
        kinds = {timeline.steps[step].kind for step in marks.steps[first:last]}
        if "compaction" in kinds:
            cells.append(("▼", "warning", ""))
        elif "break" in kinds:
            cells.append(("!", "error", ""))
        else:
            cells.append(("○", "accent", ""))
    return cells


def _checks(timeline: SessionTimeline, edges: Sequence[float]) -> list[Cell]:
    """A line from the first check on: thick while one is red; a sign where it turned, that of red
    where it was red only within a cell."""
    marks, cells = timeline.marks["check"], list[Cell]()
    before = bisect_left(marks.times, edges[0])
    red = before > 0 and timeline.reds[before - 1] > 0
    begun = before > 0
    for start, end in pairwise(edges):
        there = marks.between(start, end)
        was, known = red, begun
        if there:
            red, begun = timeline.reds[there.stop - 1] > 0, True
        fell = any(timeline.reds[n] > 0 for n in there) and not red
        if there and (red != was or not known or fell):
            cells.append(("✗", "error", "") if red or fell else ("✓", "success", ""))
        elif begun:
            cells.append(("━", "error", "") if red else ("─", "success", ""))
        else:
            cells.append(_EMPTY)
    return cells


def _cache(timeline: SessionTimeline, edges: Sequence[float]) -> Iterator[Cell]:
    """The least share of a prompt that came from the cache."""
    times, inputs, news = timeline.requests.times, timeline.inputs, timeline.news
    places = [bisect_left(times, edge) for edge in edges]
    for first, last in pairwise(places):
        sent = inputs.total(first, last)
        if not sent:
            yield _EMPTY
            continue
        share = 1 - news.total(first, last) / sent
        role = "success" if share >= 0.8 else "warning" if share >= 0.4 else "error"
        yield (_EIGHTHS[max(1, round(share * 8))], role, "")


def _levels(numbers: Sequence[float], role: str) -> list[Cell]:
    """A bar for each number, the largest one full."""
    most = max(numbers, default=0.0)
    if most <= 0:
        return [_EMPTY] * len(numbers)
    return [
        (_EIGHTHS[max(1, round(one / most * 8))], role, "") if one > 0 else _EMPTY
        for one in numbers
    ]


def _lane(
    timeline: SessionTimeline, lane: Lane, window: Window, edges: Sequence[float], role: str
) -> list[Cell]:
    """The bars of a lane; where several share a column, a shade says how much of it they take."""
    cells: list[Cell] = []
    for start, end in pairwise(edges):
        bars = lane.between(start, end)
        if not bars:
            cells.append(_EMPTY)
            continue
        shade = "█"
        if len(bars) > 1:
            shade = _SHADES[max(1, round(lane.share(bars, start, end) * 4))]
        cells.append((shade, "error" if lane.failed(bars) else role, ""))
    columns = len(cells)
    width = (window.end - window.start) / columns
    for bar in _wide(lane, window, _NAMED * width):
        first = window.column(max(lane.starts[bar], window.start), columns)
        last = window.column(min(lane.ends[bar], window.end), columns)
        step = timeline.steps[lane.steps[bar]]
        name, most = _name(step), last - first - 1
        shown = name if len(name) <= most else f"{name[: most - 1].rstrip()}…"
        if last - first < _NAMED or not name.isascii():
            continue  # letters of other scripts may take two cells
        colour = "error" if step.failed or step.verdict == "red" else role
        for n, letter in enumerate(f"{shown} ", first):
            cells[n] = (letter, "ink", colour)
    return cells


def _wide(lane: Lane, window: Window, least: float) -> Iterator[int]:
    """The bars of the window that are so long, in seconds: no more than fit beside each other."""
    bars = lane.between(window.start, window.end)
    if len(bars) * least > 50 * (window.end - window.start):
        return  # far too many for one of them to be named
    for bar in bars:
        if lane.ends[bar] - lane.starts[bar] < least:
            continue
        if min(lane.ends[bar], window.end) - max(lane.starts[bar], window.start) >= least:
            yield bar


def _name(step: TimelineStep) -> str:
    return one_line(f"{step.number} {step.label}" if step.kind == "request" else step.label)


# The stacked context


def _inputs(timeline: SessionTimeline, edges: Sequence[float]) -> Sequence[int]:
    """The tokens of the requests in sight."""
    times = timeline.requests.times
    first, last = (bisect_left(times, edge) for edge in (edges[0], edges[-1]))
    return timeline.inputs.values[max(0, first - 1) : last]


def _outline(
    left: Unread, edges: Sequence[float], height: int, most: int, *, colors: bool
) -> Iterator[list[Cell]]:
    """Yield columns, from below, as high as the last request of each or before it."""
    full = _UNREAD if colors else _UNREAD_TEXTURE
    for edge in edges[1:]:
        place = max(0, bisect_left(left.times, edge) - 1)
        tokens = left.tokens[place] if left.tokens else 0
        high = round(height * tokens / most) if most else 0
        yield [full if row < high else _EMPTY for row in range(height)]


def _chart(
    timeline: SessionTimeline, edges: Sequence[float], height: int, most: int, *, colors: bool
) -> list[PictureRow]:
    places = [bisect_left(timeline.requests.times, edge) for edge in edges]
    columns = [
        _column(timeline, first, last, most, height, colors=colors)
        for first, last in pairwise(places)
    ]
    rows: list[PictureRow] = []
    for row in range(height - 1, -1, -1):
        label = tokens(most) if row == height - 1 and most else ""
        if height >= 5 and row == height // 2 - 1 and most:
            label = tokens(round(most * (row + 1) / height))
        rows.append(PictureRow(label, [column[row] for column in columns]))
    return rows


def _column(
    timeline: SessionTimeline, first: int, last: int, most: int, height: int, *, colors: bool
) -> list[Cell]:
    """The context in one column, from below: that of the largest request in it, with the share that
    wasn't cached in all of them; between requests, that of the last one."""
    if last > first:
        inputs, news = timeline.inputs, timeline.news
        place, largest = inputs.largest(first, last)
        new = round(largest * news.total(first, last) / max(1, inputs.total(first, last)))
    elif first:
        place, new = first - 1, 0
    else:
        return [_EMPTY] * height
    sent = timeline.steps[timeline.requests.steps[place]].sent
    if sent is None or not most:
        return [_EMPTY] * height
    tops, roles = _layers(sent.parts, max(0, sent.tokens - new), height * 8 / most, colors=colors)
    cells: list[Cell] = []
    layer = 0
    while len(cells) < height:
        bottom = len(cells) * 8
        while layer < len(tops) and tops[layer] <= bottom:
            layer += 1
        if layer == len(tops):
            cells += [_EMPTY] * (height - len(cells))
        elif rows := min(tops[layer] // 8, height) - len(cells):
            full = "█" if colors else TEXTURES[roles[layer]]
            cells += [(full, roles[layer], "")] * rows
        else:
            cells.append(_mixed(tops, roles, layer, bottom, colors=colors))
    return cells


def _layers(
    parts: Sequence[int], cached: int, scale: float, *, colors: bool
) -> tuple[list[int], list[str]]:
    """The tops of the layers in eighths of a row, and their roles. What was cached is a beginning
    of the request."""
    tops, roles, total = list[int](), list[str](), 0
    for part, size in zip(PARTS, parts, strict=True):
        below, total = total, total + size
        if colors and below < cached < total:
            tops.append(round(cached * scale))
            roles.append(part + CACHED)
        if size:
            tops.append(round(total * scale))
            roles.append(part + CACHED if colors and total <= cached else part)
    if tops and not tops[-1]:
        tops[-1] = 1
    return tops, roles


def _mixed(
    tops: Sequence[int], roles: Sequence[str], layer: int, bottom: int, *, colors: bool
) -> Cell:
    """The cell of several layers, or of the last one's end, whose lower edge is so many eighths
    above the ground. `layer` is the lowest one in it."""
    end, floor = bottom + 8, bottom
    inside: list[tuple[int, str]] = []
    while floor < end and layer < len(tops):
        top = tops[layer]
        if top > floor:
            inside.append(((min(end, top)) - floor, roles[layer]))
            floor = top
        layer += 1
    filled = 8 if floor > end else floor - bottom
    if not colors:
        largest = max(inside)[1]
        return (TEXTURES[largest] if filled >= 4 else "▁", largest, "")
    if filled < 8:
        return (_EIGHTHS[filled], max(inside)[1], "")
    lower, upper = inside[0], max(inside[1:])
    return (_EIGHTHS[lower[0]], lower[1], upper[1])

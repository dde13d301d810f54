"""A tool call as a card: one line with its state, and what is inside when it is unfolded."""

from __future__ import annotations

import json
from typing import Any

from rich.cells import cell_len

from tui.core import formatting
from tui.core.text_cleaning import clean
from tui.ui.widgets.conversation.items import STOPPED, ToolItem
from tui.ui.widgets.conversation.style import BODY_MAX, MARGIN, inner
from tui.ui.widgets.diff import draw_diff
from tui.ui.widgets.markdown.text import Line, Span, Styles, clip, decoration, line, prefixed, wrap

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MARKS: dict[str, tuple[str, str, str]] = {
    "writing": ("…", "running", "writing"),
    "written": ("…", "detail", "waits its turn"),
    "waiting": ("?", "warning", "waits for you"),
    "running": ("●", "running", "running"),
    "ok": ("✓", "ok", ""),
    "error": ("✗", "error", "failed"),
    "denied": ("⊘", "warning", "denied"),
    "interrupted": ("■", "warning", "interrupted"),
}


_LABEL = 24
"""Cells of a label before which what is said at the right gives way."""
_WIDEST = 120
"""Cells of the row at most: what it says at the right is still seen to belong to the left."""
_BRIEF = 3
"""Lines of an error that are told in red; more of them are what a command printed."""


def has_inside(item: ToolItem) -> bool:
    """Whether there is something to unfold."""
    return bool(item.diff or item.preview or item.receipt or item.input)


def size(count: int) -> tuple[str, str]:
    """A number of bytes as a short figure and its unit."""
    figure, unit = formatting.size(count).split(" ")
    return (f"{float(figure):.0f}" if float(figure) >= 10 else figure), unit


def badge(receipt: dict[str, Any]) -> str:
    """The short form of a receipt: ✂ 471→3 KB."""
    (total, unit), (shown, shown_unit) = _sizes(receipt)
    if _grown(receipt):
        return f"✂ {total} {unit}"
    return (
        f"✂ {total}→{shown} {unit}"
        if unit == shown_unit
        else f"✂ {total} {unit}→{shown} {shown_unit}"
    )


def _sizes(receipt: dict[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    return size(receipt.get("bytes_total") or 0), size(receipt.get("bytes_shown") or 0)


def _grown(receipt: dict[str, Any]) -> bool:
    """Whether the model got more bytes than there were: a notice about little, or binary data,
    of which a byte is shown as a character of three."""
    return (receipt.get("bytes_shown") or 0) >= (receipt.get("bytes_total") or 0)


def _seconds(seconds: float, *, running: bool = False) -> str:
    if seconds < 60:
        return f"{int(seconds)} s" if running else f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"


def _right(item: ToolItem, styles: Styles, room: int, all_room: int, frame: int) -> list[Span]:
    """State, seconds, summary and badge; the least needed goes first when there is no room: all
    of it where it takes no more than `all_room`, else what takes `room`."""
    glyph, look, word = _MARKS[item.state]
    told = item.summary
    bare = item.seconds is None and not item.preview and bool(told)
    if item.state == "interrupted" and (bare or told == STOPPED):
        word, told = told, ""  # what is known of it says that it was
    if told == word:
        told = ""
    if item.state == "running" and frame >= 0:
        glyph = SPINNER[frame % len(SPINNER)]
    detail = styles["c-detail"]
    state: Span = (glyph, styles[f"c-{look}"])
    words: Span | None = (
        (f" {word}", styles[f"c-{look}"]) if word and item.state != "running" else None
    )
    running = item.state == "running"
    seconds: Span | None = (
        (f" {_seconds(item.seconds, running=running)}", detail)
        if item.seconds is not None and item.seconds >= (1 if running else 0.1)
        else None
    )
    space = "  " if words or seconds else " "
    summary: Span | None = (space + clip(told, 40), detail) if told else None
    first = told.partition(" · ")[0]  # such as the exit code
    brief: Span | None = (space + clip(first, 40), detail) if told else None
    cut: Span | None = (f"  {badge(item.receipt)}", styles["c-badge"]) if item.receipt else None
    words_of_marks = (
        "ELEVATED" * item.elevated,
        "masked" * item.masked,
        "◆ pinned" * item.pinned,
    )
    said = " ".join(filter(None, words_of_marks))
    marks: Span | None = (f"  {said}", styles["c-badge"]) if said else None
    for at, parts in enumerate(
        (
            [state, words, seconds, summary, cut, marks],
            [state, words, seconds, brief, cut, marks],
            [state, words, seconds, cut, marks],
            [state, seconds, cut, marks],
            [state, cut, marks],
            [state, marks],
            [state],
        )
    ):
        spans = [part for part in parts if part is not None]
        if sum(cell_len(text) for text, _ in spans) <= (room if at else min(room, all_room)):
            return spans
    return []


def _short(label: str, room: int) -> str:
    """A label in so many cells. A path keeps its end, cut at a slash where that leaves enough."""
    if cell_len(label) <= room or " " in label or "/" not in label:
        return clip(label, room)
    end = label
    while end and cell_len(end) >= room:
        end = end[1:]
    _, slash, whole = end.partition("/")
    return f"…/{whole}" if slash and len(whole) > len(end) // 2 else f"…{end}"


def draw_card(item: ToolItem, width: int, styles: Styles, frame: int) -> list[Line]:
    can = has_inside(item)
    wide, width = width, min(width, _WIDEST)
    mark = "·" if not can else "▸" if item.folded else "▾"
    room = max(4, width - MARGIN - 1)
    wanted = 3 + cell_len(item.name) + 2 + cell_len(item.label) + 2
    least = wanted - max(0, cell_len(item.label) - _LABEL)
    right = _right(
        item, styles, max(room // 2, room - wanted), max(room - least, room - wanted), frame
    )
    right_cells = sum(cell_len(text) for text, _ in right)
    left_room = room - right_cells - (2 if right else 0)
    name = clip(item.name, max(1, left_room))
    left: list[Span] = [(f" {mark} ", styles["c-fold"]), (name, styles["c-tool"])]
    label_room = left_room - cell_len(name) - 2
    if item.label and label_room > 0:
        left.append((f"  {_short(item.label, label_room)}", styles["c-label"]))
    used = sum(cell_len(text) for text, _ in left)
    space = max(1, width - 1 - used - right_cells)
    drawn = [
        line([*left, (" " * space, styles["text"]), *right], source=f"{name} {item.label}".rstrip())
    ]
    drawn[0] = drawn[0]._replace(start=MARGIN, end=sum(len(text) for text, _ in left))
    if item.folded or not can:
        return drawn
    rail: list[Span] = [("   ", styles["text"]), ("│ ", styles["c-rail"])]
    rows = list(_inside(item, inner(wide) - 2, styles))
    if len(rows) > BODY_MAX:
        more = f"… +{len(rows) - BODY_MAX:,} lines"
        rows = [*rows[:BODY_MAX], decoration([(more, styles["c-fold"])])]
    return drawn + [prefixed(row, rail) for row in rows]


def _inside(item: ToolItem, width: int, styles: Styles) -> list[Line]:
    rows: list[Line] = []
    if not item.diff:
        rows += _input(item, width, styles)
    if item.diff:
        rows += draw_diff(item.diff, width, styles)
    if item.preview and not (item.diff and item.state == "ok"):
        text = clean(item.preview.rstrip("\n"))
        brief = item.state == "error" and text.count("\n") < _BRIEF
        base = styles["c-error"] if brief else styles["c-detail"]
        rows += [
            part
            for row in text.split("\n")[: BODY_MAX + 1]
            for part in wrap([(row.expandtabs(4), base)], width)
        ]
    if item.receipt:
        rows.append(_receipt(item.receipt, width, styles))
    return rows


def _input(item: ToolItem, width: int, styles: Styles) -> list[Line]:
    """What the card's one line does not say of the call's input."""
    rows: list[Line] = []
    for key, value in item.input.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if text in item.label and cell_len(item.label) < width // 2:
            continue
        parts = wrap(
            [(clean(text[:2000]).expandtabs(4), styles["c-label"])], max(2, width - len(key) - 2)
        )
        for index, part in enumerate(parts[:6]):
            head = f"{key}  " if not index else " " * (len(key) + 2)
            rows.append(prefixed(part, [(head, styles["c-detail"])]))
        if len(parts) > 6:
            rows.append(
                decoration(
                    [(" " * (len(key) + 2) + f"… +{len(parts) - 6} lines", styles["c-fold"])]
                )
            )
    return rows


def _receipt(receipt: dict[str, Any], width: int, styles: Styles) -> Line:
    text = shrunk(receipt)
    path = clean(str(receipt.get("path") or "")).replace("\n", " ")
    if path:
        text += " · full copy: "
        room = width - cell_len(text)
        cut = len(path) > room
        while cut and path and cell_len(path) >= room:
            path = path[1:]
        text += f"…{path}" if cut else path
    return line([(clip(text, width), styles["c-badge"])])


def shrunk(receipt: dict[str, Any]) -> str:
    """What a receipt says of sizes: ✂ 471 KB → 3 KB."""
    total, shown = (" ".join(figure) for figure in _sizes(receipt))
    return f"✂ {total}" if _grown(receipt) else f"✂ {total} → {shown}"

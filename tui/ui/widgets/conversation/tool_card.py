"""A tool call as a card: one line with its state, and what is inside when it is unfolded."""

from __future__ import annotations

import json
from typing import Any

from rich.cells import cell_len

from tui.core import formatting
from tui.core.text_cleaning import clean
from tui.ui.widgets.conversation.items import STOPPED, ToolItem
from tui.ui.widgets.conversation.style import BODY_MAX, MARGIN, inner, railed
from tui.ui.widgets.diff import draw_diff
from tui.ui.widgets.markdown.text import (
    Line,
    Span,
    Styles,
    cells,
    clip,
    decoration,
    line,
    prefixed,
    wrap,
)

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MARKS: dict[str, tuple[str, str, str]] = {
    "writing": ("…", "running", "writing"),
    "written": ("…", "detail", "waiting its turn"),
    "waiting": ("?", "warning", "waiting for you"),
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
    lost = "" if receipt.get("path") else " not kept"
    if _grown(receipt):
        return f"✂ {total} {unit}{lost}"
    before = total if unit == shown_unit else f"{total} {unit}"
    return f"✂ {before}→{shown} {shown_unit}{lost}"


def copy_state(receipt: dict[str, Any]) -> str:
    """How much of the whole is on the disk."""
    if not receipt.get("path"):
        return "no full copy kept"
    some = receipt.get("bytes_kept") or 0
    if 0 < some < (receipt.get("bytes_total") or 0):
        return f"kept only the first {formatting.size(some)}"
    return "full copy kept"


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
    running = item.state == "running"
    told = item.summary
    bare = item.seconds is None and not item.preview and bool(told)
    if item.state == "interrupted" and (bare or told == STOPPED):
        word, told = told, ""  # what is known of it says that it was
    if told == word:
        told = ""
    if running and frame >= 0:
        glyph = SPINNER[frame % len(SPINNER)]
    detail, badges = styles["c-detail"], styles["c-badge"]
    state: list[Span] = [(glyph, styles[f"c-{look}"])]
    words = [(f" {word}", styles[f"c-{look}"])] if word and not running else []
    timed = item.seconds is not None and item.seconds >= (1 if running else 0.1)
    seconds = [(f" {_seconds(item.seconds or 0, running=running)}", detail)] if timed else []
    space = "  " if words or seconds else " "
    first = told.partition(" · ")[0]  # such as the exit code
    summary = [(space + clip(told, 40), detail)] if told else []
    brief = [(space + clip(first, 40), detail)] if told else []
    cut = [(f"  {badge(item.receipt)}", badges)] if item.receipt else []
    flags = (
        f"⛨ {item.level}" * bool(item.level),
        "ELEVATED" * item.elevated,
        "masked" * item.masked,
        "◆ pinned" * item.pinned,
    )
    said = " ".join(filter(None, flags))
    marks = [(f"  {said}", badges)] if said else []
    forms = (
        state + words + seconds + summary + cut + marks,
        state + words + seconds + brief + cut + marks,
        state + words + seconds + cut + marks,
        state + seconds + cut + marks,
        state + cut + marks,
        state + marks,
        state,
    )
    if cells(forms[0]) <= min(room, all_room):
        return forms[0]
    return next((form for form in forms[1:] if cells(form) <= room), list[Span]())


def _short(label: str, room: int) -> str:
    """A label in so many cells. A path keeps its end, cut at a slash where that leaves enough."""
    if cell_len(label) <= room or " " in label or "/" not in label:
        return clip(label, room)
    end = _tail(label, room)
    _, slash, whole = end.partition("/")
    return f"…/{whole}" if slash and len(whole) > len(end) // 2 else f"…{end}"


def _tail(text: str, room: int) -> str:
    """The end of a text that leaves a cell of the room for an ellipsis."""
    while text and cell_len(text) >= room:
        text = text[1:]
    return text


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
    right_cells = cells(right)
    left_room = room - right_cells - (2 if right else 0)
    name = clip(item.name, max(1, left_room))
    left: list[Span] = [(f" {mark} ", styles["c-fold"]), (name, styles["c-tool"])]
    label_room = left_room - cell_len(name) - 2
    if item.label and label_room > 0:
        left.append((f"  {_short(item.label, label_room)}", styles["c-label"]))
    space: Span = (" " * max(1, width - 1 - cells(left) - right_cells), styles["text"])
    head = line(
        [*left, space, *right],
        start=MARGIN,
        end=sum(len(text) for text, _ in left),
        source=f"{name} {item.label}".rstrip(),
    )
    if item.folded or not can:
        return [head]
    return [head, *railed(_inside(item, inner(wide) - 2, styles), styles, styles["text"])]


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
        under = " " * (len(key) + 2)
        shown = clean(text[:2000]).expandtabs(4)
        parts = wrap([(shown, styles["c-label"])], max(2, width - len(under)))
        for index, part in enumerate(parts[:6]):
            rows.append(prefixed(part, [(under if index else f"{key}  ", styles["c-detail"])]))
        if len(parts) > 6:
            rows.append(decoration([(f"{under}… +{len(parts) - 6} lines", styles["c-fold"])]))
    return rows


def _receipt(receipt: dict[str, Any], width: int, styles: Styles) -> Line:
    text, state = shrunk(receipt), copy_state(receipt)
    path = clean(str(receipt.get("path") or "")).replace("\n", " ")
    if not path:
        text += f" · {state}"
    else:
        text += " · full copy: " if state == "full copy kept" else f" · {state}: "
        room = width - cell_len(text)
        text += f"…{_tail(path, room)}" if len(path) > room else path
    return line([(clip(text, width), styles["c-badge"])])


def shrunk(receipt: dict[str, Any]) -> str:
    """What a receipt says of sizes: ✂ 471 KB → 3 KB."""
    total, shown = (" ".join(figure) for figure in _sizes(receipt))
    return f"✂ {total}" if _grown(receipt) else f"✂ {total} → {shown}"

"""A tool call as a card: one row with its state, the last lines of a command that runs or has
failed, and the inside when it is unfolded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.cells import cell_len
from rich.segment import Segment

from tui.core import formatting
from tui.core.text_cleaning import clean, current_lines, one_line
from tui.tools.registry import title, verb
from tui.ui.widgets.conversation.items import (
    QUESTION,
    SHOWS_ALL,
    STOPPED,
    TERMINAL,
    ToolItem,
    terminal_of,
)
from tui.ui.widgets.conversation.style import BODY_MAX, MARGIN, inner, railed
from tui.ui.widgets.markdown.text import (
    Line,
    Span,
    Styles,
    cells,
    chop,
    clip,
    decoration,
    line,
    prefixed,
    wrap,
)
from tui.ui.widgets.text_view import coloured

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
_FINE = "exit 0"
_UNUSUAL = {"workspace + network": "network", "outside": "outside"}
"""Marks of what a command was allowed beyond the usual: levels of the sandbox, by their names."""


_LABEL = 24
"""Cells of a label that are kept before what follows it is shortened."""
_OUTCOME = 60
"""Cells of a summary at most."""
WIDEST = 120
"""Most cells of the row, so that its right end still visibly belongs to the left."""
_BRIEF = 3
"""Lines of an error that are shown in red; more lines are a command's output."""
_TAIL = 5
"""Lines shown of a command that runs or has failed, without unfolding it."""
_TERMINAL_TAIL = 3
"""Lines shown of a terminal's screen once a step in it is done."""
_SLOW_S = 1.0
"""A shorter call shows no time, and none of its output while it runs."""


def has_inside(item: ToolItem) -> bool:
    """True if there is something to unfold."""
    return bool(item.diff or item.preview or item.receipt or item.input)


def size(count: int) -> tuple[str, str]:
    """Return a number of bytes as a short figure and its unit."""
    figure, unit = formatting.size(count).split(" ")
    return (f"{float(figure):.0f}" if float(figure) >= 10 else figure), unit


def badge(receipt: dict[str, Any]) -> str:
    """Return the short form of a receipt: ✂ 471→3 KB."""
    (total, unit), (shown, shown_unit) = _sizes(receipt)
    lost = "" if receipt.get("path") else " not kept"
    if _grown(receipt):
        return f"✂ {total} {unit}{lost}"
    before = total if unit == shown_unit else f"{total} {unit}"
    return f"✂ {before}→{shown} {shown_unit}{lost}"


def copy_state(receipt: dict[str, Any]) -> str:
    """Say how much of the whole is on the disk."""
    if not receipt.get("path"):
        return "no full copy kept"
    some = receipt.get("bytes_kept") or 0
    if 0 < some < (receipt.get("bytes_total") or 0):
        return f"kept only the first {formatting.size(some)}"
    return "full copy kept"


def _sizes(receipt: dict[str, Any]) -> tuple[tuple[str, str], tuple[str, str]]:
    return size(receipt.get("bytes_total") or 0), size(receipt.get("bytes_shown") or 0)


def _grown(receipt: dict[str, Any]) -> bool:
    """True if the model got more bytes than there were: a notice about little, or binary data, each
    byte of which is shown as a character of three."""
    return (receipt.get("bytes_shown") or 0) >= (receipt.get("bytes_total") or 0)


def _time(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"


def _outcome(item: ToolItem) -> str:
    """Return the text after the label: the state, if its mark says too little, and the summary."""
    word, outcome = _MARKS[item.state][2], item.summary
    if item.name == TERMINAL and item.state == "ok":
        return _of_terminal(item)
    if item.state == "denied":  # of a rule, the reason begins with that word
        outcome = one_line(outcome)
        return outcome if outcome.lower().startswith(word) else _joined(word, outcome)
    if item.state == "running" or (item.state == "ok" and outcome == _FINE):
        return ""
    bare = item.seconds is None and not item.preview and bool(outcome)
    if item.state == "interrupted" and (bare or outcome == STOPPED):
        word = ""  # the summary says so already
    if item.state == "error" and outcome:
        word = ""  # its mark says that it failed
    return _joined(word, outcome)


def _of_terminal(item: ToolItem) -> str:
    """Return the state of a terminal after a step, as far as the row doesn't show it already."""
    name = terminal_of(item)
    state = item.summary.removeprefix(name).strip()
    started = item.input.get("action") == "start"
    return _joined(name if started else "", "" if state.startswith("running") else state)


def _joined(*words: str) -> str:
    return " · ".join(dict.fromkeys(filter(None, words)))


def _right(item: ToolItem, styles: Styles) -> list[Span]:
    """Return the right end of the row: how the model sees it, who allowed it, how long it took."""
    flags = (
        "hidden" * item.masked,
        "outdated" * item.outdated,
        "◆ pinned" * item.pinned,
        "ELEVATED" * item.elevated,
        _UNUSUAL.get(item.level, ""),
    )
    parts: list[Span] = [(flag, styles["c-badge"]) for flag in flags if flag]
    if (item.seconds or 0) >= _SLOW_S:
        parts.append((f"{_time(item.seconds or 0):>5}", styles["c-detail"]))
    return [part for one in parts for part in (("  ", styles["text"]), one)]


def _short(label: str, room: int) -> str:
    """Return a label in that many cells. A path keeps its end, cut at a slash if enough remains."""
    if cell_len(label) <= room or " " in label or "/" not in label:
        return clip(label, room)
    end = _tail(label, room)
    _, slash, whole = end.partition("/")
    return f"…/{whole}" if slash and len(whole) > len(end) // 2 else f"…{end}"


def _tail(text: str, room: int) -> str:
    """Return the end of a text that leaves a cell of the room for an ellipsis."""
    while text and cell_len(text) >= room:
        text = text[1:]
    return text


def draw_card(item: ToolItem, width: int, styles: Styles, frame: int) -> list[Line]:
    """Return the row of a call and, if unfolded, its inside; otherwise the last lines of a command
    that runs or has failed."""
    head = _row(item, width, styles, frame)
    if not item.folded and has_inside(item):
        rows = _bounded(_inside(item, inner(width) - 2, styles), item, styles)
        return [head, *railed(rows, styles, styles["text"])]
    rows = _last_lines(item, inner(width) - 2, styles)
    tail = item.tail.strip()
    if (
        item.summary and tail.startswith(item.summary) and "\n" not in tail
    ):  # the tail repeats the summary
        rows = []
        if item.summary not in head.text:
            head = _row(replace(item, summary=""), width, styles, frame)
            rows = wrap(coloured(tail, styles["c-detail"]), inner(width) - 2)[:_TAIL]
    return [head, *railed(rows, styles, styles["text"])]


def draw_group(items: Sequence[ToolItem], width: int, styles: Styles, frame: int) -> list[Line]:
    """Return one row for consecutive calls of a kind; the last screen below those in a terminal."""
    first = items[0]
    if first.name == TERMINAL:
        return _draw_steps(items, width, styles, frame)
    running = next((item for item in items if item.state == "running"), None)
    labels = list(dict.fromkeys(item.label for item in items))
    names = ", ".join(label.rpartition("/")[2] for label in labels)
    count = f"{len(labels):,} files" if labels[1:] else f"1 file {len(items)}×"
    left: list[Span] = [
        (f" {_glyph(running or items[-1], frame)} ", styles[f"c-{_MARKS[items[-1].state][1]}"]),
        (verb(first.name), styles["c-tool"]),
        (f" {count}", styles["c-label"]),
    ]
    room = min(width, WIDEST) - 3 - cells(left)
    left.append((f"  {clip(names, max(1, room))}", styles["c-detail"]))
    source = "\n".join(title(item.name, item.label) for item in items)
    end = sum(len(text) for text, _ in left)
    return [line(left, start=MARGIN, end=end, source=source)]


def _draw_steps(items: Sequence[ToolItem], width: int, styles: Styles, frame: int) -> list[Line]:
    """Return one row for steps in one terminal, with what was typed, the last step in sight."""
    last, name = items[-1], terminal_of(items[0])
    typed = [item.label.removeprefix(f"{name} ← ").removesuffix(f" {name}") for item in items]
    left: list[Span] = [
        (f" {_glyph(last, frame)} ", styles[f"c-{_MARKS[last.state][1]}"]),
        (verb(last.name), styles["c-tool"]),
        (f" {name} {len(items)} steps", styles["c-label"]),
    ]
    state = _outcome(last)
    end: list[Span] = [(f"  {clip(state, _OUTCOME)}", styles["c-detail"])] if state else []
    room = min(width, WIDEST) - 5 - cells(left) - cells(end)
    while len(typed) > 1 and cell_len(", ".join(typed)) > room - 3:
        del typed[0]
    more = "… " if len(typed) < len(items) else ""
    left.append((f"  {clip(more + ', '.join(typed), max(1, room))}", styles["c-detail"]))
    left += end
    source = "\n".join(title(item.name, item.label) for item in items)
    row = line(left, start=MARGIN, end=sum(len(text) for text, _ in left), source=source)
    rows = _last_lines(last, inner(width) - 2, styles)
    return [row, *railed(rows, styles, styles["text"])]


def _glyph(item: ToolItem, frame: int) -> str:
    if item.state == "running" and frame >= 0:
        return SPINNER[frame % len(SPINNER)]
    return _MARKS[item.state][0]


def _row(item: ToolItem, width: int, styles: Styles, frame: int) -> Line:
    look = styles[f"c-{_MARKS[item.state][1]}"]
    room = max(4, min(width, WIDEST) - MARGIN - 1)
    right = _right(item, styles)
    name = clip(verb(item.name), room)
    of_cut: list[Span] = [(f"  {badge(item.receipt)}", styles["c-badge"])] if item.receipt else []
    label = item.label
    room -= cell_len(name) + 1
    outcome = _outcome(item)
    # The summary gives way before the label does; the reason of a no has all the room there is, and
    # how a call failed stays while the badge goes.
    outcome_look = styles["c-detail"] if item.state == "ok" else look
    others = min(cell_len(label), _LABEL) + cells([*of_cut, *right]) + 2
    most = max(_OUTCOME, room - others) if item.state == "denied" else _OUTCOME
    brief, failed = outcome.partition(" · ")[0], item.state == "error"
    last: tuple[str, list[Span]] = (brief, []) if failed else ("", of_cut)
    for words, cut in ((outcome, of_cut), (brief, of_cut), last):
        outcome_part: list[Span] = [(f"  {clip(words, most)}", outcome_look)] if words else []
        left_room = room - cells([*outcome_part, *cut, *right])
        if left_room >= min(cell_len(label), _LABEL):
            break
    # Still too little: keep only the last mark, or drop the time.
    if left_room < min(cell_len(label), 8):
        right = _right(replace(item, seconds=0), styles)[-2:]
        left_room = room - cells([*outcome_part, *cut, *right])
    left: list[Span] = [(f" {_glyph(item, frame)} ", look), (name, styles["c-tool"])]
    if label and left_room > 0:
        left.append((f" {_short(label, left_room)}", styles["c-label"]))
    left += [*outcome_part, *cut]
    whole = min(width, WIDEST) - 1
    space: Span = (" " * max(0, whole - cells(left) - cells(right)), styles["text"])
    shown = [*left, space, *right] if right else left
    end = sum(len(text) for text, _ in left)
    return line(shown, start=MARGIN, end=end, source=title(item.name, item.label))


def _last_lines(item: ToolItem, width: int, styles: Styles) -> list[Line]:
    """Return the end of a command's output, while it runs and if it failed, and that of a
    terminal's screen."""
    shown = item.name == TERMINAL and item.state == "ok"
    visible = shown or item.state == "error"
    visible = visible or (item.state == "running" and (item.seconds or 0) >= _SLOW_S)
    text = item.picture or current_lines(item.tail)
    if not visible or not text:
        return []
    rows = [row.rstrip() for row in text.split("\n")]
    drawn = [coloured(row[: 8 * width + 80], styles["c-detail"]) for row in rows]
    full = [_clipped(row, width) for row in drawn if any(text.strip() for text, _ in row)]
    return full[-_TERMINAL_TAIL if shown else -_TAIL :]


def _clipped(spans: list[Span], width: int) -> Line:
    """Return a line of output in `width` cells, with an ellipsis if it is longer."""
    if cells(spans) <= width:
        return line(spans)
    first = chop(spans, max(2, width - 1))[0]
    more = Segment("…", spans[-1][1])
    return first._replace(segments=[*first.segments, more], cells=first.cells + 1)


def _inside(item: ToolItem, width: int, styles: Styles) -> list[Line]:
    rows: list[Line] = []
    if not item.diff and not (item.name == QUESTION and item.preview):
        rows += _input(item, width, styles)
    if item.diff:
        from tui.ui.widgets.diff import draw_diff  # noqa: PLC0415 - not for the first frame

        rows += draw_diff(item.diff, width, styles)
    if item.preview and not (item.diff and item.state == "ok"):
        text = item.preview.rstrip("\n")
        brief = item.state == "error" and text.count("\n") < _BRIEF
        base = styles["c-error"] if brief else styles["c-detail"]
        rows += [
            part
            for row in text.split("\n")[: BODY_MAX + 1]
            for part in wrap(coloured(row, base), width)
        ]
    if item.receipt:
        rows.append(_receipt(item.receipt, width, styles))
    return rows


def _bounded(rows: list[Line], item: ToolItem, styles: Styles) -> list[Line]:
    """Return the rows that a card shows; the last one says how many more there are."""
    if len(rows) < BODY_MAX:
        return rows
    remaining = max(len(rows), item.diff.count("\n")) - BODY_MAX + 1
    more = f"… +{remaining:,} lines · {SHOWS_ALL}"
    return [*rows[: BODY_MAX - 1], decoration([(more, styles["c-fold"])])]


def _input(item: ToolItem, width: int, styles: Styles) -> list[Line]:
    """Return the parts of the call's input that the card's one line does not show."""
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
            remaining = len(parts) - 6 + text.count("\n", 2000)
            rows.append(decoration([(f"{under}… +{remaining:,} lines", styles["c-fold"])]))
    return rows


def _receipt(receipt: dict[str, Any], width: int, styles: Styles) -> Line:
    text, state = shrunk(receipt), copy_state(receipt)
    path = clean(str(receipt.get("path") or "")).replace("\n", " ")
    if not path:
        text += f" · {state}"
    else:
        text += f" · {SHOWS_ALL} · copy: " if state == "full copy kept" else f" · {state}: "
        room = width - cell_len(text)
        text += f"…{_tail(path, room)}" if len(path) > room else path
    return line([(clip(text, width), styles["c-badge"])])


def shrunk(receipt: dict[str, Any]) -> str:
    """Return the sizes in a receipt: ✂ 471 KB → 3 KB."""
    total, shown = (" ".join(figure) for figure in _sizes(receipt))
    return f"✂ {total}" if _grown(receipt) else f"✂ {total} → {shown}"

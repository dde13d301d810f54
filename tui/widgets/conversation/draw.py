"""Items → lines. Column 0 is kept for the cursor, 1 and 2 for the item's mark."""

from __future__ import annotations

import json
from typing import Any, Literal

from rich.cells import cell_len
from rich.style import Style

from tui.widgets import figures, markdown
from tui.widgets.conversation.diff import draw_diff
from tui.widgets.conversation.items import (
    AssistantItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tui.widgets.markdown.styles import Styles
from tui.widgets.markdown.text import (
    Line,
    Span,
    clip,
    decoration,
    line,
    prefixed,
    wrap,
)
from tui.widgets.plain import clean

MARGIN = 3
LONG = 20
"""Lines of a person's text from which it is folded, and of which so many stay in sight: """
LONG_SHOWN = 8
BODY_MAX = 400
"""Lines of a card's inside."""

SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MARKS: dict[str, tuple[str, str, str]] = {
    "writing": ("…", "running", "writing"),
    "waiting": ("?", "warning", "waits for you"),
    "running": ("●", "running", "running"),
    "ok": ("✓", "ok", ""),
    "error": ("✗", "error", "failed"),
    "denied": ("⊘", "warning", "denied"),
    "interrupted": ("■", "warning", "interrupted"),
}
_NOTICES = {"info": "·", "warning": "!", "error": "✗", "success": "✓"}


def inner(width: int) -> int:
    """The cells that an item's text gets: a margin on both sides."""
    return max(8, width - MARGIN - 1)


def source(item: Item) -> str:
    """The text that copying an item gives."""
    match item:
        case ToolItem():
            head = f"{item.name} {item.label}".rstrip()
            return "\n".join(part for part in (head, item.diff or item.preview) if part)
        case NoticeItem():
            return "\n".join(part for part in (item.text, item.detail) if part)
        case _:
            return item.text


def foldable(item: Item) -> bool:
    """Whether an item has something to fold."""
    match item:
        case AssistantItem():
            return False
        case NoticeItem():
            return bool(item.detail)
        case ToolItem():
            return bool(item.diff or item.preview or item.receipt or item.input)
        case UserItem():
            return _long(item.text)
        case ThinkingItem():
            return True


def shortened(item: Item) -> bool:
    """Whether the last row of an item stands for what is not shown."""
    return isinstance(item, UserItem) and item.folded and _long(item.text)


def estimate(item: Item, width: int) -> int:
    """About how many rows an item takes; exact only once it is drawn."""
    match item:
        case AssistantItem():
            return 1 + len(item.text) // max(20, width - 12)
        case UserItem():
            return 2 + min(LONG, len(item.text) // width)
        case _:
            return 1


def gap(before: Item | None, item: Item) -> bool:
    """Whether a blank row stands between two items: cards in a row stand together."""
    if before is None:
        return False
    small = (ToolItem, ThinkingItem)
    return not (isinstance(before, small) and isinstance(item, small))


def draw(item: Item, width: int, styles: Styles, frame: int = -1) -> list[Line]:
    """The lines of an item in `width` cells, mark and margin included."""
    match item:
        case UserItem():
            return _user(item, width, styles)
        case AssistantItem():
            return reply(markdown.render(item.text, styles, inner(width)), styles)
        case ThinkingItem():
            return _thinking(item, width, styles)
        case ToolItem():
            return _tool(item, width, styles, frame)
        case NoticeItem():
            return _notice(item, width, styles)


def reply(rows: list[Line], styles: Styles, start: int = 0) -> list[Line]:
    """The model's text behind its mark; `start` is the index of the first row."""
    text = styles["text"]
    return [
        prefixed(row, [(" ● ", styles["c-reply"])] if not start + index else [("   ", text)])
        for index, row in enumerate(rows)
    ]


def _long(text: str) -> bool:
    return text.count("\n") >= LONG or len(text) > 80 * LONG


def _user(item: UserItem, width: int, styles: Styles) -> list[Line]:
    queued = item.state == "queued"
    bar: list[Span] = [(" ▌ ", styles["c-queued-bar" if queued else "c-you-bar"])]
    look = styles["c-queued" if queued else "c-you-text"]
    title: list[Span] = [*bar, ("you", styles["c-queued" if queued else "c-you"])]
    if queued:
        title.append((" · queued", styles["c-queued"]))
    text = item.text.strip("\n")
    hidden = ""
    shorten = item.folded and _long(text)
    if shorten:
        rest = text.count("\n") + 1 - LONG_SHOWN
        text = "\n".join(text[: LONG_SHOWN * max(80, width)].split("\n", LONG_SHOWN)[:LONG_SHOWN])
        hidden = (
            f"… +{rest:,} lines" if rest > 0 else f"… +{len(item.text) - len(text):,} characters"
        )
    rows = wrap([(clean(text).expandtabs(4), look)], min(inner(width), 120))
    rows = rows[:LONG_SHOWN] if shorten else rows
    drawn = [decoration(title), *(prefixed(row, bar) for row in rows)]
    if hidden:
        drawn.append(decoration([*bar, (hidden, styles["c-fold"])]))
    return drawn


def _thinking(item: ThinkingItem, width: int, styles: Styles) -> list[Line]:
    muted = styles["c-thinking"]
    words = len(item.text.split()) if len(item.text) < 20_000 else len(item.text) // 6
    mark = "▸" if item.folded else "▾"
    title = "thinking…" if item.streaming else f"thinking · {words:,} words"
    drawn = [decoration([(f" {mark} ", styles["c-fold"]), (title, muted)])]
    rail: list[Span] = [("   ", muted), ("│ ", styles["c-rail"])]
    if not item.folded:
        plain = dict(styles) | {"text": muted}
        rows = markdown.render(item.text, plain, inner(width) - 2)
    elif item.streaming:
        recent = clean(item.text[-4 * width :].strip()).expandtabs(4)
        rows = [row for row in wrap([(recent, muted)], min(inner(width) - 2, 120)) if row.cells]
        rows = rows[-3:]
    else:
        return drawn
    return drawn + [prefixed(row, rail) for row in rows]


def size(count: int) -> tuple[str, str]:
    """A number of bytes as a short figure and its unit."""
    figure, unit = figures.size(count).split(" ")
    return (f"{float(figure):.0f}" if float(figure) >= 10 else figure), unit


def badge(receipt: dict[str, Any]) -> str:
    """The short form of a receipt: ✂ 471→3 KB."""
    total, unit = size(receipt.get("bytes_total") or 0)
    shown, shown_unit = size(receipt.get("bytes_shown") or 0)
    return (
        f"✂ {total}→{shown} {unit}"
        if unit == shown_unit
        else f"✂ {total} {unit}→{shown} {shown_unit}"
    )


def _seconds(seconds: float, *, running: bool = False) -> str:
    if seconds < 60:
        return f"{int(seconds)} s" if running else f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"


def _right(item: ToolItem, styles: Styles, room: int, frame: int) -> list[Span]:
    """State, seconds, summary and badge; the least needed goes first when there is no room."""
    glyph, look, word = _MARKS[item.state]
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
    summary: Span | None = (space + clip(item.summary, 40), detail) if item.summary else None
    cut: Span | None = (f"  {badge(item.receipt)}", styles["c-badge"]) if item.receipt else None
    words_of_marks = ("masked" * item.masked, "◆ pinned" * item.pinned)
    said = " ".join(filter(None, words_of_marks))
    marks: Span | None = (f"  {said}", styles["c-badge"]) if said else None
    for parts in (
        [state, words, seconds, summary, cut, marks],
        [state, words, seconds, cut, marks],
        [state, seconds, cut, marks],
        [state, cut, marks],
        [state, marks],
        [state],
    ):
        spans = [part for part in parts if part is not None]
        if sum(cell_len(text) for text, _ in spans) <= room:
            return spans
    return []


def _tool(item: ToolItem, width: int, styles: Styles, frame: int) -> list[Line]:
    can = foldable(item)
    mark = "·" if not can else "▸" if item.folded else "▾"
    room = max(4, width - MARGIN - 1)
    right = _right(item, styles, max(room * 3 // 5, room - 40), frame)
    right_cells = sum(cell_len(text) for text, _ in right)
    left_room = room - right_cells - (2 if right else 0)
    name = clip(item.name, max(1, left_room))
    left: list[Span] = [(f" {mark} ", styles["c-fold"]), (name, styles["c-tool"])]
    label_room = left_room - cell_len(name) - 2
    if item.label and label_room > 0:
        left.append((f"  {clip(item.label, label_room)}", styles["c-label"]))
    used = sum(cell_len(text) for text, _ in left)
    space = max(1, width - 1 - used - right_cells)
    drawn = [
        line([*left, (" " * space, styles["text"]), *right], source=f"{name} {item.label}".rstrip())
    ]
    drawn[0] = drawn[0]._replace(start=MARGIN, end=sum(len(text) for text, _ in left))
    if item.folded or not can:
        return drawn
    rail: list[Span] = [("   ", styles["text"]), ("│ ", styles["c-rail"])]
    rows = list(_inside(item, inner(width) - 2, styles))
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
        base = styles["c-error"] if item.state == "error" else styles["c-detail"]
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
    sizes = (" ".join(size(receipt.get(key) or 0)) for key in ("bytes_total", "bytes_shown"))
    return f"✂ {' → '.join(sizes)}"


def _notice(item: NoticeItem, width: int, styles: Styles) -> list[Line]:
    look: Style = styles["c-ok" if item.kind == "success" else f"c-{item.kind}"]
    fold: Literal["▸", "▾"] = "▸" if item.folded else "▾"
    rows = wrap([(clean(item.text).expandtabs(4), look)], min(inner(width) - 4, 120))
    if item.detail:
        last = rows[-1]
        more = line([(f" {fold}", styles["c-fold"])])
        rows[-1] = last._replace(
            segments=last.segments + more.segments,
            cells=last.cells + more.cells,
            end=len(last.text),
        )
    mark: list[Span] = [(f" {_NOTICES[item.kind]} ", look)]
    drawn = [
        prefixed(row, mark if not index else [("   ", look)]) for index, row in enumerate(rows)
    ]
    if item.detail and not item.folded:
        rail: list[Span] = [("   ", look), ("│ ", styles["c-rail"])]
        text = clean(item.detail.rstrip("\n")).expandtabs(4)
        inside = wrap([(text, styles["c-detail"])], inner(width) - 2)
        drawn += [prefixed(row, rail) for row in inside[:BODY_MAX]]
        if len(inside) > BODY_MAX:
            more_rows = f"… +{len(inside) - BODY_MAX:,} lines"
            drawn.append(decoration([*rail, (more_rows, styles["c-fold"])]))
    return drawn

"""Draws items as lines, and knows their source text, whether they fold, and how they are spaced."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.style import Style
from textual.selection import Selection

from tui.core.errors import words
from tui.core.formatting import plural
from tui.core.images import words_in
from tui.core.text_cleaning import clean
from tui.tools.registry import title
from tui.ui.widgets import markdown
from tui.ui.widgets.conversation.items import (
    AssistantItem,
    AttemptItem,
    Item,
    NoticeItem,
    ThinkingItem,
    ToolItem,
    UserItem,
    terminal_of,
)
from tui.ui.widgets.conversation.style import inner, railed
from tui.ui.widgets.conversation.tool_card import draw_card, draw_group, has_inside
from tui.ui.widgets.line_view import LAST_ROW, place
from tui.ui.widgets.line_view.strips import copied, extent
from tui.ui.widgets.markdown.lazy import MarkedLines
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
from tui.ui.widgets.text_view import plain

if TYPE_CHECKING:
    from tui.app.dialog_data import ShownLine

LONG = 20
"""A person's text of more lines than this is folded, and `LONG_SHOWN` of them stay visible."""
LONG_SHOWN = 8
_BEGINNING = 400
"""Characters of the first line of reasoning, which is shown while it is folded."""
_READ = "read_file"
_NAMED = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")
"""A name in the first of two columns."""
_ROOM_MIN = 20
"""Cells of a second column that is worth one."""
_SMOOTH = frozenset({"writing", "written", "running", "ok"})
_NOTICES = {"info": "·", "warning": "!", "error": "✗", "success": "✓"}


def source(item: Item) -> str:
    """Return the text that copying an item gives."""
    match item:
        case ToolItem():
            head = title(item.name, item.label)
            printed = plain(item.preview.split("\n"))
            return "\n".join(part for part in (head, item.diff or printed) if part)
        case NoticeItem() | AttemptItem():
            return "\n".join(filter(None, (_head(item), _detail(item))))
        case _:
            return item.text


def foldable(item: Item) -> bool:
    """True if an item has something to fold."""
    match item:
        case AssistantItem():
            return False
        case NoticeItem() | AttemptItem():
            return bool(_detail(item))
        case ToolItem():
            return has_inside(item)
        case UserItem():
            return _long(item.text)
        case ThinkingItem():
            return True


def shortened(item: Item) -> bool:
    """True if the last row of an item stands for hidden text."""
    return isinstance(item, UserItem) and item.folded and _long(item.text)


def estimate(item: Item, width: int) -> int:
    """Estimate how many rows an item takes; exact only once it is drawn."""
    match item:
        case AssistantItem():
            return 1 + len(item.text) // max(20, width - 12)
        case UserItem():
            return 1 + min(LONG, len(item.text) // width)
        case _:
            return 1


def gap(before: Item | None, item: Item) -> bool:
    """True if there is a blank row between two items: consecutive cards are kept together, and so
    are notes."""
    if before is None:
        return False
    together = ((ToolItem, ThinkingItem), (NoticeItem, AttemptItem))
    return not any(isinstance(before, kind) and isinstance(item, kind) for kind in together)


def joins(before: Item, item: Item) -> bool:
    """True if two neighbors share one row: files that are read, steps in a terminal, and attempts
    that failed."""
    match before, item:
        case ToolItem(), ToolItem():
            return _alike(before, item) and all(
                one.state in _SMOOTH and one.folded
                and not (one.alone or one.masked or one.pinned or one.outdated or one.elevated)
                for one in (before, item)
            )  # fmt: skip
        case AttemptItem(), AttemptItem():
            return not (before.alone or item.alone) and item.attempt == before.attempt + 1
        case _:
            return False


def _alike(before: ToolItem, item: ToolItem) -> bool:
    """True for two files that are read, and two steps in one terminal after its start."""
    if before.name == item.name == _READ:
        return True
    steps = "terminal" in before.input and "terminal" in item.input
    return steps and bool(terminal_of(item)) and terminal_of(before) == terminal_of(item)


def draw(
    item: Item, width: int, styles: Styles, frame: int = -1, along: Sequence[Item] = ()
) -> Sequence[Line]:
    """Return the lines of an item in `width` cells, mark and margin included.

    `along` are the items after it that share its row.
    """
    if along:
        group = [item, *along]
        if isinstance(item, ToolItem):
            calls = [one for one in group if isinstance(one, ToolItem)]
            return draw_group(calls, width, styles, frame)
        return _retried([one for one in group if isinstance(one, AttemptItem)], width, styles)
    match item:
        case UserItem():
            return _user(item, width, styles)
        case AssistantItem():
            return reply(markdown.render(item.text, styles, inner(width)), styles)
        case ThinkingItem():
            return _thinking(item, width, styles)
        case ToolItem():
            return draw_card(item, width, styles, frame)
        case NoticeItem() | AttemptItem():
            return _notice(item, width, styles)


def has_file(item: Item) -> bool:
    """True if a card shows lines of a file."""
    if not isinstance(item, ToolItem):
        return False
    return bool(item.diff) or (item.name == _READ and isinstance(item.input.get("path"), str))


def asked_line(item: ToolItem, rows: Sequence[int], width: int, styles: Styles) -> ShownLine | None:
    """Return the line of a file that a person asks about who sees these rows of a call's card,
    counted below its first one; None where its call has no file."""
    from tui.app.dialog_data import ShownLine  # noqa: PLC0415 - not for the first frame

    if item.diff:
        from tui.ui.widgets.diff import Diff  # noqa: PLC0415 - not for the first frame

        diff = Diff(item.diff)
        first, last = 0, len(diff) - 1
        if not item.folded and rows:
            first, last = (
                diff.part_at(row, inner(width) - 2, styles) for row in (rows[0], rows[-1])
            )
        return diff.asked_line(range(first, last + 1)) or diff.asked_line(range(len(diff)))
    path, offset = item.input.get("path"), item.input.get("offset")
    if item.name != _READ or not isinstance(path, str):
        return None
    return ShownLine(path, offset if isinstance(offset, int) else 1)


def reply(rows: Sequence[Line], styles: Styles, before: Sequence[Line] = ()) -> MarkedLines:
    """Return the model's text after its mark, behind the lines that come `before` it."""
    first: list[Span] = [(" ● ", styles["c-reply"])]
    others: list[Span] = [("   ", styles["text"])]
    return MarkedLines(before, rows, first, others)


def _long(text: str) -> bool:
    return text.count("\n") >= LONG or len(text) > 80 * LONG


def _marked(text: str, look: Style, styles: Styles) -> list[Span]:
    """Return a prompt's text, with the words that stand for images highlighted."""
    named = words_in(text)
    if not named:
        return [(text, look)]
    parts = re.split("(" + "|".join(map(re.escape, named)) + ")", text)
    return [(part, styles["c-reply"] if part in named else look) for part in parts if part]


def _beginning(text: str, room: int, look: Style, styles: Styles) -> tuple[list[Line], str]:
    """Return the first lines of a long text that fit completely in a few rows, and how much is
    left."""
    lines = text.split("\n", LONG_SHOWN)[:LONG_SHOWN]
    rows: list[Line] = []
    shown = 0
    for line_ in lines:
        part = line_[: LONG_SHOWN * room]
        more = wrap(_marked(clean(part).expandtabs(4), look, styles), room)
        if rows and len(rows) + len(more) > LONG_SHOWN:
            break
        rows += more
        shown += 1
    remaining = text.count("\n") + 1 - shown
    if remaining:
        return rows[:LONG_SHOWN], f"… +{remaining:,} lines"
    return rows[:LONG_SHOWN], f"… +{len(text) - len(lines[0][: LONG_SHOWN * room]):,} characters"


def _user(item: UserItem, width: int, styles: Styles) -> list[Line]:
    queued = item.state == "queued"
    bar: list[Span] = [(" ▌ ", styles["c-queued-bar" if queued else "c-you-bar"])]
    look = styles["c-queued" if queued else "c-you-text"]
    text = item.text.strip("\n")
    room, hidden = min(inner(width), 120), ""
    if item.folded and _long(text):
        rows, hidden = _beginning(text, room, look, styles)
    else:
        rows = wrap(_marked(clean(text).expandtabs(4), look, styles), room)
    drawn = [prefixed(row, bar) for row in rows]
    if queued:
        drawn.append(decoration([*bar, ("queued", styles["c-queued"])]))
    if hidden:
        drawn.append(decoration([*bar, (hidden, styles["c-fold"])]))
    return drawn


def _thinking(item: ThinkingItem, width: int, styles: Styles) -> list[Line]:
    muted = styles["c-thinking"]
    count = len(item.text.split()) if len(item.text) < 20_000 else len(item.text) // 6
    mark = "▸" if item.folded else "▾"
    head = "thinking…" if item.streaming else f"thinking · {plural(count, 'word')}"
    shown: list[Span] = [(f" {mark} ", styles["c-fold"]), (head, muted)]
    if item.folded and not item.streaming and (begins := _first_line(item.text, styles)):
        shown.append((clip(f"  {begins}", max(0, min(width, 120) - cells(shown) - 2)), muted))
    drawn = [decoration(shown)]
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


def _first_line(text: str, styles: Styles) -> str:
    """Return the beginning of a text, without Markdown marks."""
    first = text[:2_000].strip().partition("\n")[0][:_BEGINNING]
    rows = markdown.render(first, styles, _BEGINNING)
    return next((row.text.strip() for row in rows if row.text.strip()), "")


def _retried(items: Sequence[AttemptItem], width: int, styles: Styles) -> list[Line]:
    """Return one row for the retries of a request: how many there were, and why."""
    counts = Counter(words(item.error_class) for item in items)
    why = ", ".join(f"{count}× {reason}" for reason, count in counts.items())
    if len(counts) == 1:
        why = _reason(items[-1].error_class, items[-1].status)
    text = f"retried {len(items)}× · {why}"
    return _notice(NoticeItem(text, "warning"), width, styles)


def _head(item: NoticeItem | AttemptItem) -> str:
    """Return the text that is visible while an item is folded."""
    if isinstance(item, NoticeItem):
        return f"{item.text} {item.hint}".strip()
    parts = [f"attempt {item.attempt} failed: {_reason(item.error_class, item.status)}"]
    soon = item.delay_s < 0.5
    parts.append("next at once" if soon else f"next after {math.ceil(item.delay_s)} s")
    parts += [item.request_id] if item.request_id else []
    parts += [f"{plural(item.received, 'character')} received"] if item.received else []
    return " · ".join(parts)


def _reason(error_class: str, status: int | None) -> str:
    return f"{words(error_class)} ({status})" if status else words(error_class)


def _detail(item: NoticeItem | AttemptItem) -> str:
    """Return the text that is folded away."""
    if isinstance(item, NoticeItem):
        return item.detail
    return "\n".join(part for part in (item.message, item.text) if part.strip())


def _notice(item: NoticeItem | AttemptItem, width: int, styles: Styles) -> list[Line]:
    kind = item.kind if isinstance(item, NoticeItem) else "warning"
    detail = _detail(item)
    look = styles["c-ok" if kind == "success" else f"c-{kind}"]
    hint = clean(item.hint).expandtabs(4) if isinstance(item, NoticeItem) else ""
    shown = clean(_head(item)).expandtabs(4).removesuffix(hint)
    rows = wrap([(shown, look), (hint, styles["text"])], min(inner(width) - 4, 120))
    if detail:
        last = rows[-1]
        more = line([(" ▸" if item.folded else " ▾", styles["c-fold"])])
        rows[-1] = last._replace(
            segments=last.segments + more.segments,
            cells=last.cells + more.cells,
            end=len(last.text),
        )
    mark: list[Span] = [(f" {_NOTICES[kind]} ", look)]
    drawn = [
        prefixed(row, mark if not index else [("   ", look)]) for index, row in enumerate(rows)
    ]
    if detail and not item.folded:
        text = clean(detail.rstrip("\n")).expandtabs(4)
        room = inner(width) - 2
        inside = [row for one in text.split("\n") for row in _hanging(one, room, styles)]
        drawn += railed(inside, styles, look)
    return drawn


def _hanging(text: str, width: int, styles: Styles) -> list[Line]:
    """Return a line of details as rows, all indented like the first; like what follows its name, if
    it has one and there is room."""
    named = _NAMED.match(text)
    head = named[0] if named and width - len(named[0]) >= _ROOM_MIN else ""
    head = head or text[: len(text) - len(text.lstrip(" "))]
    look, blank = styles["c-detail"], " " * len(head)
    rows = wrap([(text[len(head) :], look)], max(2, width - len(head)))
    return [
        prefixed(row, [(blank if n else head, look)], "" if n else head)
        for n, row in enumerate(rows)
    ]


def selected_source(
    items: Sequence[Item], lines: Callable[[int], Sequence[Line]], selection: Selection
) -> str:
    """Return the source of a selection: the text of whole items, and what is drawn of the
    others."""
    if not items:
        return ""
    start, end = selection
    first = (*place(start.y), start.x) if start else (0, 0, 0)
    last = (*place(end.y), end.x) if end else (len(items) - 1, LAST_ROW, 1 << 30)
    parts: list[str] = []
    for index in range(max(0, first[0]), min(last[0], len(items) - 1) + 1):
        # The whole item is selected.
        begins = (first[1], first[2]) if index == first[0] else (0, 0)
        stops = (last[1], last[2]) if index == last[0] else (LAST_ROW, 1 << 30)
        if begins == (0, 0) and stops[0] == LAST_ROW:
            text = source(items[index])
        else:
            rows = lines(index)
            # A part is selected; it still counts as whole if it covers everything that can be
            # selected.
            begins = max(begins, (int(gap(items[index - 1] if index else None, items[index])), 0))
            text = copied(rows, begins, stops)
            bounds = [step for step, row in enumerate(rows) if extent(row)[0] < extent(row)[1]]
            if bounds and begins <= (bounds[0], extent(rows[bounds[0]])[0]):
                tail = (bounds[-1], extent(rows[bounds[-1]])[1])
                text = source(items[index]) if stops >= tail else text
        before = items[index - 1] if parts else None
        parts.append(("\n" if gap(before, items[index]) else "") + text)
    return "\n".join(parts)

"""What the inspector says over and under its items: how full the window is, and by what. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from tui.context.token_ledger import PARTS, Item
from tui.core.formatting import plural, tokens
from tui.core.text_cleaning import one_line
from tui.ui.widgets.context_meter import KINDS, MARK, MeterState, bar

KEYS = (
    ("enter", "open"),
    ("m", "mask"),
    ("p", "pin"),
    ("u", "undo"),
    ("b", "many"),
    ("/", "filter"),
    ("t a k", "sort"),
    ("y", "copy"),
    ("tab", "request"),
    ("esc", "back"),
)
NOTHING_SAID = """\
Nothing has been said yet, so there is nothing to look at.
Every message and every tool result of the next request will stand here, with what it weighs.
A result that is not needed any more can be masked: the model then sees one line in its place.
What is masked is not lost. The record keeps it, and u brings it back."""
FIXED = "Every request carries this: it can be neither masked nor pinned."
_NEARLY_FULL = 0.95


def title(items: Sequence[Item], count: int, window: int) -> Content:
    """The tokens, the window, and how the items stand."""
    full = count / window if window else 0.0
    look = "$foreground"
    if full > MARK:
        look = "$text-error" if full > _NEARLY_FULL else "$text-warning"
    return Content.assemble(
        ("context", "bold $text-primary"),
        (f"   {tokens(count)}", f"bold {look}"),
        (f" / {tokens(window)}  {full:.0%}".replace("%", " %"), look),
        (f"   {' · '.join(_facts(items))}", "$text-muted"),
    )


def _facts(items: Sequence[Item]) -> list[str]:
    counts = {
        state: sum(item.state == state for item in items)
        for state in ("cut", "masked", "pruned", "summarised", "repaired")
    }
    counts["pinned"] = sum(item.pinned for item in items)
    return [
        plural(len(items), "item"),
        *(f"{count:,} {state}" for state, count in counts.items() if count),
    ]


def totals(items: Sequence[Item], count: int, window: int, width: int) -> Content:
    """A bar of what each kind of item takes of the window, and the names of the kinds."""
    parts: dict[str, int] = {}
    for item in items:
        part = PARTS[item.kind]
        parts[part] = parts.get(part, 0) + item.tokens
    legend = Content("  ").join(
        [
            Content.assemble((glyph, style), (f" {kind} {tokens(parts[kind])}", "$text-muted"))
            for kind, (glyph, style) in KINDS.items()
            if parts.get(kind)
        ]
    )
    width = max(10, width)
    drawn = bar(MeterState(count, 0, count, window, parts), width)
    return Content("\n").join([drawn, legend.truncate(width, ellipsis=True)])


def tabs(*, request: bool) -> Content:
    """The names of the tabs, the open one in colour."""
    on, off = "bold $text-primary", "$text-muted"
    return Content.assemble(
        ("items", off if request else on), ("   ", ""), ("request", on if request else off)
    )


def nothing(words: str) -> Content:
    """Why there is no row."""
    if words:
        return Content(f"Nothing matches “{one_line(words)}”.\nEsc clears the filter.")
    return Content(NOTHING_SAID)

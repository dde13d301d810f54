"""What an empty conversation says: what this is, what to ask for, what is worth knowing."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from tui.ui.widgets.panes import CachedRender, hanging

WIDTH = 88
"""Cells of its text at most."""
_KEY = 11
"""The cells of a key and what stands between it and what it does."""

_WHAT = (
    "Describe what you want. Holdfast reads, edits and runs commands here,"
    " and asks before changing anything."
)
_INSTANCES = (
    "read README.md and tell me what this project is about",
    "run the tests and fix what fails",
)
_WORTH_KNOWING = (
    ("@", "mention a file"),
    ("!", "run a shell command yourself"),
    ("esc", "stop · twice to rewind"),
    ("shift+tab", "switch mode: ask / accept edits / plan"),
    ("ctrl+g", "edit the prompt in your editor"),
    ("tab", "focus the panes"),
)
"""Shown where there is room to spare."""


def intro(version: str, width: int, height: int) -> Content:
    """Its words in `width` cells, a third of the free rows above them."""
    width = max(8, min(WIDTH, width))
    rows = _rows(version, width)
    more = _rows(version, width, _worth_knowing(width))
    if len(more) + 8 <= height:
        rows = more
    above = max(1, (height - len(rows)) // 3)
    return Content("\n").join([Content("")] * above + rows)


def _rows(version: str, width: int, more: Sequence[Content] = ()) -> list[Content]:
    blank = Content("")
    return [
        Content.assemble(("holdfast", "bold $text-primary"), (f" {version}", "$text-muted")),
        blank,
        *Content.styled(_WHAT, "$foreground").wrap(width),
        blank,
        Content.styled("Try", "$text-muted"),
        *(Content.styled(f"  {one}", "$text-secondary") for one in _INSTANCES),
        blank,
        *more,
        Content.assemble(
            ("f1", "$text-accent"),
            (" keys and commands     ", "$text-muted"),
            ("f3", "$text-accent"),
            (" earlier sessions", "$text-muted"),
        ),
    ]


def _worth_knowing(width: int) -> list[Content]:
    rows = [Content.styled("Shortcuts", "$text-muted")]
    for key, does in _WORTH_KNOWING:
        head = Content.styled(f"  {key:<{_KEY}}", "$text-accent")
        rows += hanging(head, Content.styled(does, "$foreground").wrap(max(8, width - _KEY - 2)))
    return [*rows, Content("")]


class Intro(CachedRender):
    """As high as there is room for it."""

    def __init__(self, version: str, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._version = version

    def render(self) -> Content:
        return intro(self._version, self.content_size.width, self.content_size.height)

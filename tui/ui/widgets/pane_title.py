"""The lines over the panes: a title at the left, words at the right, a joint where one ends."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive

from tui.ui.widgets.cached_render import Still


class PaneRule(Still):
    """A horizontal line of one row.

    `title` and `right` are content, `joint` the column at which a vertical line ends here (None
    for none). It is `lit` while the pane under it has the focus.
    """

    DEFAULT_CSS = """
    PaneRule { height: 1; width: 1fr; color: $rule; }
    PaneRule.-lit { color: $primary; }
    """

    title: reactive[Content] = reactive(Content(""))
    right: reactive[Content] = reactive(Content(""))
    joint: reactive[int | None] = reactive[int | None](None)
    lit: reactive[bool] = reactive(False, toggle_class="-lit")

    def __init__(self, title: str = "", *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.set_reactive(PaneRule.title, Content.styled(title, "$text-muted"))

    def render(self) -> Content:
        width = self.size.width
        right = self.right.truncate(max(0, width - 8), ellipsis=True)
        tail = right.cell_length + 4 if right else 0
        title = self.title.truncate(max(0, width - tail - 5), ellipsis=True)
        if self.lit:
            title = title.stylize("bold $text-primary")
        line = ["─"] * width
        if self.joint is not None and 0 < self.joint < width:
            line[self.joint] = "┴"
        head = title.cell_length + 4 if title else 0
        body = "".join(line)
        parts: list[Content | str] = []
        if title:
            parts += [body[:2], " ", title, " "]
        parts.append(body[head : width - tail])
        if right:
            parts += [" ", right, " ", body[-2:]]
        return Content.assemble(*parts)

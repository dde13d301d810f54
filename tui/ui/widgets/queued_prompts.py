"""What was typed while the agent works, and waits for its turn."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from tui.core.text_cleaning import one_line
from tui.ui.widgets.key_hints import in_a_row

ROWS = 3
_KEY = (("↑", "edit"),)


class Queued(Widget):
    """One row a text, at most three; hidden when nothing waits. The first one says which key takes
    them back into the prompt."""

    DEFAULT_CSS = f"""
    Queued {{ height: auto; max-height: {ROWS}; width: 1fr; padding: 0 1; display: none; }}
    Queued.-some {{ display: block; }}
    """

    texts: reactive[tuple[str, ...]] = reactive((), layout=True)

    def watch_texts(self) -> None:
        self.set_class(bool(self.texts), "-some")

    def render(self) -> Content:
        width = max(1, self.content_size.width)
        shown = self.texts if len(self.texts) <= ROWS else self.texts[: ROWS - 1]
        rows = [
            Content.assemble(("queued ", "$text-secondary"), (one_line(text), "$text-muted"))
            for text in shown
        ]
        key = in_a_row(_KEY)
        room = width - key.cell_length - 1
        if rows and room > 0:
            rows[0] = Content.assemble(rows[0].truncate(room, ellipsis=True, pad=True), " ", key)
        rows = [row.truncate(width, ellipsis=True) for row in rows]
        if more := len(self.texts) - len(shown):
            rows.append(Content.styled(f"       and {more} more", "$text-muted"))
        return Content("\n").join(rows)

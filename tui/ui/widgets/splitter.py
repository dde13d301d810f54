"""The line between two panes that stand side by side; it is dragged to make one wider."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive

from tui.ui.widgets.cached_render import Still


class Splitter(Still):
    """A column of one cell. `joints` are the rows on which a horizontal line ends here."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    Splitter { width: 1; height: 1fr; color: $rule; pointer: ew-resize; }
    Splitter:hover, Splitter.-dragged { color: $primary; }
    """

    @dataclass
    class Dragged(Message):
        """The mouse pulled the line to column `x` of the screen."""

        x: int

    class Dropped(Message):
        """The mouse let it go."""

    joints: reactive[frozenset[int]] = reactive(frozenset[int]())

    def render(self) -> Content:
        rows = ["├" if row in self.joints else "│" for row in range(self.size.height)]
        return Content("\n".join(["┬", *rows[1:]]))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        self.add_class("-dragged")
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self.has_class("-dragged"):
            self.post_message(self.Dragged(event.screen_x))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        event.stop()
        if self.has_class("-dragged"):
            self.remove_class("-dragged")
            self.release_mouse()
            self.post_message(self.Dropped())

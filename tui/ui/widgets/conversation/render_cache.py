"""The drawn lines of items: a bounded cache, and the documents of those that still stream."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from rich.style import Style

from tui.core.dataclass import dataclass, field
from tui.ui.widgets import markdown
from tui.ui.widgets.conversation import item_renderer
from tui.ui.widgets.conversation.items import AssistantItem, Item, ThinkingItem
from tui.ui.widgets.line_view import RenderedItem
from tui.ui.widgets.markdown import Document
from tui.ui.widgets.markdown.lazy import MarkedLines
from tui.ui.widgets.markdown.text import BLANK

KEPT_LINES = 6_000
"""Lines that are kept beside the visible ones."""
AT_ONCE = 4_000
"""Characters of a stream after which they are parsed without waiting for the frame: a fast answer
brings several times as many between two frames, and no key waits for all of them."""

Streaming: TypeAlias = AssistantItem | ThinkingItem


@dataclass(slots=True)
class _Stream:
    """Text on its way: `pending`, of `size` characters, is not in the item yet, `document` was fed
    all of `text`. `grown` since the last frame, whose picture keeps `settled` lines."""

    text: str
    pending: list[str] = field(default_factory=list[str])
    size: int = 0
    document: Document | None = None
    grown: bool = False
    settled: int = 0


class RenderCache:
    """Draws items on demand, and keeps those drawn last."""

    def __init__(self) -> None:
        self.width = 0
        self.frame = -1
        self._styles: Mapping[str, Style] = {}
        self._kept: OrderedDict[Item, RenderedItem] = OrderedDict()
        self._lines = 0
        self._streams: dict[Item, _Stream] = {}

    def reset(self, width: int, styles: Mapping[str, Style]) -> None:
        """Forget everything drawn: the width or the theme has changed."""
        self.width, self._styles = width, styles
        self._kept.clear()
        self._lines = 0
        for stream in self._streams.values():
            stream.document = None

    def clear(self) -> None:
        """Forget all items."""
        self._streams.clear()
        self._kept.clear()
        self._lines = 0

    def drop(self, item: Item) -> None:
        """Forget how an item was drawn."""
        picture = self._kept.pop(item, None)
        if picture is not None:
            self._lines -= len(picture.lines)

    def trim(self, seen: Collection[Item]) -> None:
        """Forget the invisible items that were drawn longest ago, if there are too many lines."""
        if self._lines <= KEPT_LINES:
            return
        for item in seen:
            self._kept.move_to_end(item)
        for item in list(self._kept):
            if self._lines <= KEPT_LINES or item in seen:
                break
            self.drop(item)

    def get(self, item: Item, *, gap: bool, along: Sequence[Item] = ()) -> RenderedItem:
        """Return an item's picture; `gap` puts a blank row first, `along` are the items after it
        that share its row."""
        picture = self._kept.get(item)
        if picture is not None:
            return picture
        before = [BLANK] if gap else []
        stream = self._streams.get(item)
        if stream is not None and isinstance(item, AssistantItem):
            if stream.document is None:
                stream.document = Document(self._styles, item_renderer.inner(self.width))
                stream.document.feed(item.text)
            stream.document.draw()
            stream.settled = stream.document.settled
            lines = item_renderer.reply(stream.document.lines, self._styles, before)
        elif isinstance(item, AssistantItem):
            rows = markdown.render(item.text, self._styles, item_renderer.inner(self.width))
            lines = item_renderer.reply(rows, self._styles, before)
        else:
            drawn = item_renderer.draw(item, self.width, self._styles, self.frame, along)
            lines = [*before, *drawn]
        picture = self._kept[item] = RenderedItem(lines)
        self._lines += len(lines)
        return picture

    # Streams

    @property
    def streaming(self) -> bool:
        """True while text is on its way."""
        return bool(self._streams)

    def stream(self, item: Streaming, text: str) -> None:
        """Add text that is poured into an item with the next frame, or now if it is much."""
        stream = self._streams.get(item)
        if stream is None:
            stream = self._streams[item] = _Stream(item.text)
        stream.pending.append(text)
        stream.size += len(text)
        if stream.size >= AT_ONCE and item in self._kept:
            self._pour(item, stream)
            if stream.document is not None:
                stream.document.advance()

    def pour(self) -> list[Streaming]:
        """Move pending text into the items, and return those that grew."""
        grown: list[Streaming] = []
        for item, stream in self._streams.items():
            if isinstance(item, AssistantItem | ThinkingItem):
                if stream.pending:
                    self._pour(item, stream)
                if stream.grown:
                    stream.grown = False
                    grown.append(item)
        return grown

    def _pour(self, item: Streaming, stream: _Stream) -> None:
        text = "".join(stream.pending)
        stream.pending.clear()
        stream.size, stream.grown = 0, True
        if stream.document is not None and item.text == stream.text:
            stream.document.feed(text)
        else:  # the text was set elsewhere
            stream.document = None
        item.text += text
        stream.text = item.text

    def grow(self, item: Streaming, *, gap: bool) -> None:
        """Draw what was poured into an item; only what may have changed is drawn."""
        stream, picture = self._streams[item], self._kept.get(item)
        document = stream.document
        if picture is None or document is None:
            self.drop(item)
            return
        keep = stream.settled
        document.draw()
        stream.settled = document.settled
        self._renew(picture, keep, gap=gap)

    def _renew(self, picture: RenderedItem, keep: int, *, gap: bool) -> None:
        """Update a picture from its document, whose first `keep` lines are unchanged."""
        lines, before = picture.lines, len(picture.lines)
        assert isinstance(lines, MarkedLines)
        lines.renew(keep)
        for row in range(keep + gap, before):
            picture.strips.pop(row, None)
        self._lines += len(lines) - before

    def finish(self, item: Streaming, *, gap: bool) -> None:
        """Finish an item whose text is complete; its picture equals that of drawing it at once."""
        stream = self._streams.pop(item, None)
        if stream is not None and stream.pending:
            self._pour(item, stream)
        document = stream.document if stream is not None else None
        picture = self._kept.get(item)
        if document is None or stream is None or item.text != stream.text or picture is None:
            self.drop(item)
            return
        keep = min(stream.settled, document.finish())
        self._renew(picture, keep, gap=gap)

    def forget_stream(self, item: Item) -> None:
        """Forget an item that is gone; text that was on its way to it is void."""
        self._streams.pop(item, None)
        self.drop(item)

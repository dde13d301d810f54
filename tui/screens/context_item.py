"""One item of the context: as the model sees it, and in full, side by side."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from tui.context.ledger import Item
from tui.context.overlay import Stand, content_of
from tui.messages import Block, blocks_of
from tui.session.records import Record
from tui.widgets.figures import size, tokens
from tui.widgets.full_copy import pieces
from tui.widgets.ledger_rows import share
from tui.widgets.output_view import OutputView
from tui.widgets.plain import one_line
from tui.widgets.rule import PaneRule


@dataclass(frozen=True, slots=True)
class Texts:
    """An item's texts. `path` is the file of the full copy where something was cut."""

    sent: str
    recorded: str
    receipt: dict[str, Any] | None = None

    @property
    def path(self) -> Path | None:
        path = (self.receipt or {}).get("path")
        return Path(path) if isinstance(path, str) and path else None


def texts_of(record: Record | None, stand: Stand | None, fixed: str = "") -> Texts:
    """The texts of a record, or of a part that every request carries."""
    if record is None:
        return Texts(fixed, fixed)
    recorded = shown(content_of(record))
    receipt: object = record.data.get("receipt")
    return Texts(
        shown(stand.blocks) if stand else recorded,
        recorded,
        cast("dict[str, Any]", receipt) if isinstance(receipt, dict) else None,
    )


def shown(blocks: Iterable[Block]) -> str:
    """Blocks as text to be read; what is no text is told in a line or as JSON."""
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "thinking", "thinking": str(text)}:
            return f"── thinking ──\n{text}"
        case {"type": "tool_use"}:
            given = json.dumps(block.get("input"), ensure_ascii=False, indent=2, default=str)
            return f"── call of {block.get('name')} ──\n{given}"
        case {"type": "tool_result"}:
            return f"── result ──\n{shown(blocks_of(block.get('content')))}"
        case {"type": "image", "source": {"data": str(data), "media_type": str(kind)}}:
            return f"── {kind}, {size(len(data) * 3 // 4)} ──"
        case _:
            return json.dumps(block, ensure_ascii=False, indent=2, default=str)


def receipt_line(texts: Texts) -> str:
    """What was cut of the output, and where the whole of it is."""
    receipt = texts.receipt
    if not receipt:
        return ""
    stages = ", ".join(map(str, cast("list[object]", receipt.get("stages") or [])))
    figures = [receipt.get(name) for name in ("bytes_total", "bytes_shown")]
    total, kept = (number if isinstance(number, int) else 0 for number in figures)
    text = f"✂ {size(total)} → {size(kept)} by {stages or 'a guard'}"
    lines = receipt.get("lines_total"), receipt.get("lines_shown")
    if isinstance(lines[0], int) and isinstance(lines[1], int):
        text += f" · {lines[0]:,} → {lines[1]:,} lines"
    return f"{text} · full copy: {texts.path}" if texts.path else f"{text} · no full copy was kept"


class ContextItemScreen(Screen[str]):
    """Dismissed with "mask" or "pin" where that is asked for, with "" by Esc."""

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close('')", "back", show=False),
        Binding("m", "close('mask')", "mask", show=False),
        Binding("p", "close('pin')", "pin", show=False),
        Binding("tab", "app.focus_next", show=False),
        Binding("shift+tab", "app.focus_previous", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = "#sent"

    def __init__(self, item: Item, texts: Texts, window: int) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (100, "-wide")]
        self._item = item
        self._texts = texts
        self._window = window
        whole = texts.path is None
        self.set_class(whole and texts.sent == texts.recorded, "-same")

    def compose(self) -> ComposeResult:
        yield Static(self._title(), id="title", markup=False)
        receipt = Static(Content(receipt_line(self._texts)), id="receipt", markup=False)
        receipt.display = bool(self._texts.receipt)
        yield receipt
        with Horizontal(id="texts"):
            with Vertical(classes="side"):
                yield PaneRule("as the model sees it", id="sent-rule")
                yield OutputView(id="sent", classes="text")
            yield Static(id="between")
            with Vertical(classes="side", id="whole-side"):
                yield PaneRule("in full", id="whole-rule")
                yield OutputView(id="whole", classes="text")
        yield PaneRule()
        yield Static(self._keys(), id="keys", markup=False)

    def on_mount(self) -> None:
        sent, whole = self.query_one("#sent", OutputView), self.query_one("#whole", OutputView)
        sent.show("", self._texts.sent)
        self.call_after_refresh(sent.action_edge, -1)
        if self.has_class("-same"):
            rule = self.query_one("#sent-rule", PaneRule)
            rule.title = Content.styled("the model sees all of it", "$text-muted")
        elif self._texts.path is None:
            whole.show("", self._texts.recorded)
            self.call_after_refresh(whole.action_edge, -1)
        else:
            self._read(self._texts.path)

    @work(exclusive=True)
    async def _read(self, path: Path) -> None:
        """The full copy, piece by piece; the recorded text where it is gone."""
        whole, rule = self.query_one("#whole", OutputView), self.query_one("#whole-rule", PaneRule)
        reading = pieces(path)
        try:
            piece = await asyncio.to_thread(next, reading, None)
            first = True
            while piece is not None:
                whole.write(piece)
                if first:
                    self.call_after_refresh(whole.action_edge, -1)
                first = False
                piece = await asyncio.to_thread(next, reading, None)
        except (OSError, ValueError):
            rule.title = Content.styled("as recorded: the full copy is gone", "$text-warning")
            whole.show("", self._texts.recorded)
            self.call_after_refresh(whole.action_edge, -1)

    def action_close(self, action: str) -> None:
        self.dismiss(action)

    def _title(self) -> Content:
        item = self._item
        return Content.assemble(
            (item.kind, "bold $text-primary"),
            (f"  {one_line(item.label[:400])}", "$foreground"),
            (f"   {tokens(item.tokens)} tokens, {share(item.tokens, self._window)}", "$text-muted"),
            (f"   {item.state}", "$text-accent" if item.state != "full" else "$text-muted"),
            ("   ◆ pinned" if item.pinned else "", "$text-warning"),
        )

    def _keys(self) -> Content:
        masked, pinned = self._item.state == "masked", self._item.pinned
        keys = (
            ("m", "unmask" if masked else "mask"),
            ("p", "unpin" if pinned else "pin"),
            ("y", "copy this side"),
            ("tab", "other side"),
            ("esc", "back"),
        )
        return Content("   ").join(
            [Content.assemble((key, "$text-accent"), (f" {t}", "$text-muted")) for key, t in keys]
        )

"""One item of the next request: as the model sees it, and in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.context.masks import record_of
from tui.context.overrides import Stand, content_of
from tui.context.token_ledger import Item
from tui.core.dataclass import dataclass, replace
from tui.core.formatting import plural, size, tokens
from tui.core.images import facts, of_block
from tui.core.messages import Block, blocks_of, object_of, string_of, tool_calls
from tui.core.text_cleaning import one_line
from tui.session.records import Record
from tui.ui.screens.context_rows import share, state_name
from tui.ui.screens.external_programs import Program, open_copy, open_text
from tui.ui.screens.table_screen import SHORT, WIDE
from tui.ui.toolkit.base_screen import BaseScreen
from tui.ui.widgets.asked_line import LineAsked
from tui.ui.widgets.conversation.tool_card import shrunk
from tui.ui.widgets.file_viewer.line_file import LineFile
from tui.ui.widgets.file_viewer.pane import FilePane, open_file_pane
from tui.ui.widgets.file_viewer.view import COPY_MAX
from tui.ui.widgets.keys import in_rows
from tui.ui.widgets.notices import NoticeLine
from tui.ui.widgets.panes import PaneRule

if TYPE_CHECKING:
    from tui.agent.agent import Agent


@dataclass(frozen=True, slots=True)
class ItemTexts:
    """An item's texts. `path` is the file of the full copy if something was cut."""

    sent: str
    recorded: str
    receipt: dict[str, Any] | None = None

    @property
    def path(self) -> Path | None:
        path = (self.receipt or {}).get("path")
        return Path(path) if isinstance(path, str) and path else None


def texts_of(record: Record | None, stand: Stand | None, fixed: str = "") -> ItemTexts:
    """Return the texts of a record, or of a part that every request carries."""
    if record is None:
        return ItemTexts(fixed, fixed)
    recorded = shown(content_of(record))
    receipt: object = record.data.get("receipt")
    return ItemTexts(
        shown(stand.blocks) if stand else recorded,
        recorded,
        cast("dict[str, Any]", receipt) if isinstance(receipt, dict) else None,
    )


def texts_in(agent: Agent, item: Item) -> ItemTexts:
    """Return the texts of an item as it is in the next request of an agent."""
    id_, place = record_of(item.id)
    record = next((one for one in agent.session.records if one.id == id_), None)
    stand = agent.context.view().stands.get(id_)
    if record is not None and place is not None:
        blocks = content_of(record)
        sent = stand.blocks if stand else blocks
        split = len(sent) == len(blocks)
        return ItemTexts(shown([sent[place]] if split else sent), shown(blocks[place : place + 1]))
    return texts_of(record, stand, "" if record else agent.context.fixed_texts().get(item.id, ""))


def file_of(records: Sequence[Record], item: Item) -> str:
    """Return the path of the file that an item shows as it was read; "" where it shows none."""
    id_, _ = record_of(item.id)
    record = next((one for one in records if one.id == id_ and one.type == "tool_result"), None)
    if record is None:
        return ""
    wanted = record.data.get("call_id")
    for other in records:
        if other.type == "assistant":
            for call in tool_calls(blocks_of(other.data.get("content"))):
                if call.get("id") == wanted and call.get("name") == "read_file":
                    return string_of(object_of(call.get("input")).get("path"))
    return ""


def shown(blocks: Iterable[Block]) -> str:
    """Return blocks as text to read; other content becomes a line or JSON."""
    return "\n\n".join(_block(block) for block in blocks)


def _block(block: Block) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "thinking", "thinking": str(text)}:
            return f"── thinking ──\n{text}"
        case {"type": "tool_use"}:
            arguments = json.dumps(block.get("input"), ensure_ascii=False, indent=2, default=str)
            return f"── call to {block.get('name')} ──\n{arguments}"
        case {"type": "tool_result"}:
            return f"── result ──\n{shown(blocks_of(block.get('content')))}"
        case {"type": "image", "source": {"data": str(data), "media_type": str(kind)}}:
            image = of_block(block, "")
            return f"── {kind}, {facts(image) if image else size(len(data) * 3 // 4)} ──"
        case {"type": "document", "source": {"type": "base64", "data": str(data)}}:
            return f"── {block.get('title') or 'PDF'}, {size(len(data) * 3 // 4)} ──"
        case _:
            return json.dumps(block, ensure_ascii=False, indent=2, default=str)


def receipt_line(texts: ItemTexts) -> str:
    """Describe how the output was cut, and where all of it is."""
    receipt = texts.receipt
    if not receipt:
        return ""
    stages = ", ".join(map(str, cast("list[object]", receipt.get("stages") or [])))
    text = f"{shrunk(receipt)} by {stages or 'a limit'}"
    lines = receipt.get("lines_total"), receipt.get("lines_shown")
    if isinstance(lines[0], int) and isinstance(lines[1], int):
        text += f" · {lines[0]:,} → {lines[1]:,} lines"
    return f"{text} · full copy: {texts.path}" if texts.path else f"{text} · no full copy kept"


class ContextItemScreen(BaseScreen, Screen[str]):
    """Shows one item; dismissed with "mask" or "pin" if asked for, with "" by Esc.

    `results` is the folder of full outputs, `price` the price of masking in words, `file` the path
    of the file that it shows.
    """

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close('')", "back", show=False),
        Binding("m", "close('mask')", "mask", show=False),
        Binding("p", "close('pin')", "pin", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("B", "ask_line", "why", show=False),
        Binding("v", "outside('pager')", "pager", show=False),
        Binding("e", "outside('editor')", "editor", show=False),
        Binding("tab", "app.focus_next", show=False),
        Binding("shift+tab", "app.focus_previous", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = None

    def __init__(
        self,
        item: Item,
        texts: ItemTexts,
        results: Path,
        window: int,
        *,
        price: str = "",
        file: str = "",
    ) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (WIDE, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-short"), (SHORT, "-high")]
        self._item, self._texts, self._window = item, texts, window
        self._results, self._price, self._file = results, price, file
        whole = texts.path is None
        self.set_class(whole and texts.sent == texts.recorded, "-same")

    def compose(self) -> ComposeResult:
        yield Static(self._title(), id="title", markup=False)
        if self._texts.receipt:
            yield Static(Content(receipt_line(self._texts)), id="receipt", markup=False)
        with Horizontal(id="texts"):
            with Vertical(classes="side"):
                yield PaneRule("what the model sees", id="sent-rule")
                yield FilePane(id="sent")
            yield Static(id="between")
            with Vertical(classes="side", id="whole-side"):
                yield PaneRule("in full", id="whole-rule")
                yield FilePane(id="whole")
        yield NoticeLine(id="notice")
        yield PaneRule(id="keys-rule")
        if self._price:
            yield Static(Content(self._price), id="price", markup=False)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        sent, whole = self.query_one("#sent", FilePane), self.query_one("#whole", FilePane)
        sent.view.wrap = whole.view.wrap = True
        sent.show(LineFile(self._texts.sent))
        sent.view.focus()
        if self.has_class("-same"):
            rule = self.query_one("#sent-rule", PaneRule)
            rule.title = Content.styled("the model sees all of it", "$text-muted")
        elif self._texts.path is None:
            whole.show(LineFile(self._texts.recorded))
        else:
            self._read(self._texts.path)

    def on_resize(self) -> None:
        self.query_one("#keys", Static).update(self._keys())

    @work(exclusive=True)
    async def _read(self, path: Path) -> None:
        """Show the full copy; if it is gone, the recorded text and the reason."""
        whole, rule = self.query_one("#whole", FilePane), self.query_one("#whole-rule", PaneRule)
        file, why = await open_file_pane(path, self._results)
        if file is None:
            rule.title = Content.styled("as recorded, without the full copy", "$text-warning")
            self.query_one("#notice", NoticeLine).say(why, "warning")
        whole.show(file or LineFile(self._texts.recorded))

    @property
    def _side(self) -> FilePane:
        """The side that has the focus."""
        whole = self.query_one("#whole", FilePane)
        return whole if whole.has_focus_within else self.query_one("#sent", FilePane)

    def action_copy(self) -> None:
        """Copy this side, up to the clipboard's limit."""
        text = self._side.view.text()
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        message = f"Copied {plural(len(text), 'character')}."
        if self._side.view.file.size > COPY_MAX:
            message = f"Copied the first {size(COPY_MAX)}."
        self.query_one("#notice", NoticeLine).say(message, "success")

    def action_ask_line(self) -> None:
        """Ask where the line comes from that is at the top of this side."""
        line = self._side.view.asked_line() if self._file else None
        self.post_message(LineAsked(line and replace(line, path=self._file)))

    async def action_outside(self, program: Program) -> None:
        """Open this side in the person's own pager or editor."""
        view, app = self._side.view, cast("App[Any]", self.app)
        path = view.file.path
        trouble = await open_copy(app, path, self._results, program) if path else None
        if trouble is None:
            trouble = await open_text(app, view.file.read(0, view.file.size), program)
        if trouble:
            self.query_one("#notice", NoticeLine).say(trouble, "error")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        return not isinstance(self.focused, Input) or action == "close"

    def action_close(self, action: str) -> None:
        self.dismiss(action)

    def _title(self) -> Content:
        item = self._item
        return Content.assemble(
            (item.kind, "bold $text-primary"),
            (f"  {one_line(item.label[:400])}", "$foreground"),
            (f"   {tokens(item.tokens)} tokens, {share(item.tokens, self._window)}", "$text-muted"),
            (f"   {state_name(item)}", "$text-accent"),
            ("   ◆ pinned" if item.pinned else "", "$text-warning"),
        )

    def _keys(self) -> Content:
        masked, pinned = self._item.state == "masked", self._item.pinned
        keys = (
            ("m", "show" if masked else "hide"),
            ("p", "unpin" if pinned else "pin"),
            ("y", "copy this side"),
            ("/", "find"),
            *((("B", "why"),) if self._file else ()),
            ("v", "pager"),
            ("e", "editor"),
            ("tab", "other side"),
            ("esc", "back"),
        )
        return in_rows(keys, self.size.width - 2, rows=1 if self.size.height < SHORT else 2)

"""One item of the context: as the model sees it, and in full, side by side."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar, cast

from textual import work
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input, Static

from tui.context.token_ledger import Item
from tui.core.formatting import plural, size, tokens
from tui.core.output_store import why_missing
from tui.core.text_cleaning import one_line
from tui.ui.screens.context.rows import share
from tui.ui.screens.context.texts import Texts, receipt_line
from tui.ui.screens.external_programs import Program, look, look_at_text
from tui.ui.toolkit.base_app import Sized
from tui.ui.widgets.file_viewer.line_file import CopyFile
from tui.ui.widgets.file_viewer.pane import CopyPane
from tui.ui.widgets.file_viewer.view import COPY_MAX
from tui.ui.widgets.key_hints import in_rows
from tui.ui.widgets.notice import NoticeLine
from tui.ui.widgets.pane_title import PaneRule


def _file(text: str) -> CopyFile:
    return CopyFile(text.encode("utf-8", "replace"))


class ContextItemScreen(Sized, Screen[str]):
    """Dismissed with "mask" or "pin" where that is asked for, with "" by Esc."""

    CSS_PATH = "context.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "close('')", "back", show=False),
        Binding("m", "close('mask')", "mask", show=False),
        Binding("p", "close('pin')", "pin", show=False),
        Binding("y", "copy", "copy", show=False),
        Binding("v", "outside('pager')", "pager", show=False),
        Binding("e", "outside('editor')", "editor", show=False),
        Binding("tab", "app.focus_next", show=False),
        Binding("shift+tab", "app.focus_previous", show=False),
    ]
    AUTO_FOCUS: ClassVar[str | None] = None

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
                yield CopyPane(id="sent")
            yield Static(id="between")
            with Vertical(classes="side", id="whole-side"):
                yield PaneRule("in full", id="whole-rule")
                yield CopyPane(id="whole")
        yield NoticeLine(id="notice")
        yield PaneRule()
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        sent, whole = self.query_one("#sent", CopyPane), self.query_one("#whole", CopyPane)
        sent.view.wrap = whole.view.wrap = True
        sent.show(_file(self._texts.sent))
        sent.view.focus()
        if self.has_class("-same"):
            rule = self.query_one("#sent-rule", PaneRule)
            rule.title = Content.styled("the model sees all of it", "$text-muted")
        elif self._texts.path is None:
            whole.show(_file(self._texts.recorded))
        else:
            self._read(self._texts.path)

    def on_resize(self) -> None:
        self.query_one("#keys", Static).update(self._keys())

    @work(exclusive=True)
    async def _read(self, path: Path) -> None:
        """The full copy; the recorded text where it is gone, and why it is."""
        whole, rule = self.query_one("#whole", CopyPane), self.query_one("#whole-rule", PaneRule)
        try:
            whole.show(await asyncio.to_thread(CopyFile, path))
        except (OSError, ValueError) as error:
            why = await asyncio.to_thread(why_missing, path)
            if not isinstance(error, (FileNotFoundError, NotADirectoryError)):
                why = f"The full copy cannot be read: {getattr(error, 'strerror', error)}."
            rule.title = Content.styled("as recorded: the full copy is gone", "$text-warning")
            self.query_one("#notice", NoticeLine).say(why, "warning")
            whole.show(_file(self._texts.recorded))

    @property
    def _side(self) -> CopyPane:
        """The side that has the focus."""
        whole = self.query_one("#whole", CopyPane)
        return whole if whole.has_focus_within else self.query_one("#sent", CopyPane)

    def action_copy(self) -> None:
        """Copy this side, as far as a clipboard takes it."""
        text = self._side.view.text()
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        said = f"Copied: {plural(len(text), 'character')}."
        if self._side.view.file.size > COPY_MAX:
            said = f"Copied the first {size(COPY_MAX)}."
        self.query_one("#notice", NoticeLine).say(said, "success")

    async def action_outside(self, program: Program) -> None:
        """Open this side in the person's own pager or editor."""
        view, app = self._side.view, cast("App[Any]", self.app)
        if view.file.path:
            trouble = await look(app, view.file.path, program)
        else:
            trouble = await look_at_text(app, view.file.read(0, view.file.size), program)
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
            (f"   {item.state}", "$text-accent" if item.state != "full" else "$text-muted"),
            ("   ◆ pinned" if item.pinned else "", "$text-warning"),
        )

    def _keys(self) -> Content:
        masked, pinned = self._item.state == "masked", self._item.pinned
        keys = (
            ("m", "unmask" if masked else "mask"),
            ("p", "unpin" if pinned else "pin"),
            ("y", "copy this side"),
            ("/", "find"),
            ("v", "pager"),
            ("e", "editor"),
            ("tab", "other side"),
            ("esc", "back"),
        )
        return in_rows(keys, self.size.width - 2)

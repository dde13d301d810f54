"""The right side of the chat: what a tool printed, and what was cut from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Static
from textual.worker import Worker

from tui.core.text_cleaning import one_line
from tui.ui.widgets.keys import fitting
from tui.ui.widgets.panes import CachedVertical, PaneRule

if TYPE_CHECKING:
    from tui.ui.screens.external_programs import Program
    from tui.ui.widgets.file_viewer.pane import FilePane
    from tui.ui.widgets.notices import Kind
    from tui.ui.widgets.output_view import OutputView

_NO_OUTPUT = """\
Tool output appears here.
Select a tool call and press Enter to see it again."""
SAID_S = 4.0
"""Seconds that a message takes the place of the keys."""


class OutputSide(CachedVertical):
    """The output pane. `output` and `copy` exist after `furnish`; one of them is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "open_all", "Open all", show=False),
        Binding("p", "mark('pin')", "Pin", show=False),
        Binding("m", "mark('mask')", "Mask", show=False),
        Binding("y", "copy", "Copy", show=False),
        Binding("B", "ask_line", "Why", show=False),
        Binding("e", "outside('editor')", "Editor", show=False),
        Binding("v", "outside('pager')", "Pager", show=False),
        Binding("slash", "search", "Search", show=False),
        Binding("escape", "shrink", "Smaller", show=False),
    ]

    output: OutputView
    copy: FilePane
    results: Callable[[], Path]
    """Returns the folder of full outputs: a copy that a receipt names is opened only there."""

    class Resized(Message):
        """Posted when its size changes, or it starts or stops covering the conversation."""

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, classes="-no-output")
        self.rule = PaneRule("output", id="output-rule")
        self._badge = Static(id="output-badge", markup=False)
        self._keys = Static(id="output-keys", markup=False)
        self._receipt: dict[str, Any] | None = None
        self._reading: Worker[None] | None = None
        self._quiet: Timer | None = None
        self._masked = self._pinned = False

    def compose(self) -> ComposeResult:
        yield self.rule
        yield Static(_NO_OUTPUT, id="no-output", markup=False)
        yield self._badge
        yield self._keys

    @property
    def in_sight(self) -> bool:
        """True if it is visible beside the conversation."""
        return self.display and not self.screen.has_class("-narrow")

    async def furnish(self) -> None:
        """Add what the first frame does without."""
        from tui.ui.widgets.file_viewer.pane import FilePane  # noqa: PLC0415
        from tui.ui.widgets.output_view import OutputView  # noqa: PLC0415

        self.output, self.copy = OutputView(id="output"), FilePane(id="output-copy")
        self.copy.display = False
        await self.mount(self.output, self.copy, after="#no-output")
        self._hint()

    def show(
        self,
        title: str,
        text: str,
        *,
        diff: bool = False,
        receipt: dict[str, Any] | None = None,
        whole: bool = False,
        prose: bool = False,
    ) -> None:
        """Show an output, a diff, or `prose`; with `whole`, all of it if `receipt` names a copy."""
        self.remove_class("-no-output")
        self._stop_reading()
        self.badge(receipt)
        self.rule.title = Content.assemble(
            ("output · ", "$text-muted"), (one_line(title), "$foreground")
        )
        self.output.show(title, text, diff=diff, prose=prose)
        if whole and self._path:
            self._reading = self.run_worker(self._open_copy(self._path))

    def badge(self, receipt: dict[str, Any] | None, state: str = "") -> None:
        """Say how the shown output was cut, and what has become of the full copy."""
        from tui.ui.widgets.conversation.tool_card import copy_state, shrunk  # noqa: PLC0415 - not for the first frame

        self._receipt = receipt
        text = f"{shrunk(receipt)} · {state or copy_state(receipt)}" if receipt else ""
        self._badge.update(Content(text))
        self.set_class(bool(text), "-cut")

    def clear(self) -> None:
        """Show that nothing was printed yet."""
        self.add_class("-no-output")
        self._stop_reading()
        self.badge(None)
        self.output.clear()
        self.rule.title = Content.styled("output", "$text-muted")
        self.action_shrink()

    def say(self, text: str, kind: Kind = "info", *, hint: str = "") -> None:
        """Show a message in place of the keys for a while."""
        style = "$text-error" if kind == "error" else "$text-success"
        self._keys.update(Content.styled(f"{text} {hint}".rstrip(), style))
        if self._quiet:
            self._quiet.stop()
        self._quiet = self.set_timer(SAID_S, self._hint)

    def show_marks(self, *, masked: bool, pinned: bool) -> None:
        """Show how the model sees the shown output."""
        self._masked, self._pinned = masked, pinned
        self._hint()

    def _hint(self) -> None:
        """Show the keys that work on the shown output, as many as there is room for."""
        if self._quiet:
            self._quiet.stop()
            self._quiet = None
        expanded = self.screen.has_class("-whole")
        keys = (
            ("o", "smaller" if expanded else "open"),
            ("p", "unpin" if self._pinned else "pin"),
            ("m", "show" if self._masked else "hide"),
            ("y", "copy"),
            ("/", "find"),
            *((("B", "why"),) if self._has_lines else ()),
            ("v", "pager"),
            ("e", "editor"),
        )
        shown = fitting(keys, (self.size.width or 60) - 2)
        focused = self.has_focus_within  # elsewhere they are letters or other keys
        self._keys.update(shown if focused else Content.styled(shown.plain, "$text-muted"))

    @property
    def _has_lines(self) -> bool:
        """True if a line in sight can be asked about; false before there is an output."""
        return "output" in vars(self) and self.output.has_lines

    def on_descendant_focus(self) -> None:
        self.rule.lit = True
        if self._quiet is None:
            self._hint()

    def on_descendant_blur(self) -> None:
        self.rule.lit = self.has_focus_within
        if self._quiet is None:
            self._hint()

    def on_resize(self) -> None:
        self._hint()
        self.post_message(self.Resized())

    @property
    def _path(self) -> Path | None:
        path = (self._receipt or {}).get("path")
        return Path(path) if isinstance(path, str) and path else None

    @property
    def whole(self) -> bool:
        """True while the full copy is shown."""
        return self.copy.display

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading.cancel()
            self._reading = None
        if self.copy.display:
            focused = self.copy.has_focus_within
            self.copy.display, self.output.display = False, True
            self.copy.clear()
            if focused:
                self.output.focus()

    async def _open_copy(self, path: Path, *, search: bool = False) -> None:
        from tui.ui.widgets.file_viewer.pane import open_file_pane  # noqa: PLC0415 - not for the first frame

        file, why = await open_file_pane(path, self.results())
        if file is None:
            self.badge(self._receipt, f"{why[:1].lower()}{why[1:].rstrip('.')}")
            return
        self._show_file(file)
        self.badge(self._receipt, "this is the full copy")
        if search:
            self.copy.action_search()

    def _show_file(self, file: Any) -> None:
        focused = self.output.has_focus
        self.copy.display, self.output.display = True, False
        self.copy.show(file)
        if focused:
            self.copy.view.focus()

    # What its keys do

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:  # noqa: ARG002
        if action == "shrink":
            return self.screen.has_class("-whole")
        if action == "search":
            return self.output.has_focus
        if action in {"open_all", "mark", "copy", "outside", "ask_line"}:
            typing = self.whole and self.copy.has_focus_within and not self.copy.view.has_focus
            return not self.has_class("-no-output") and not typing
        return True

    async def action_open_all(self) -> None:
        """Show the full copy, if there is one, over the whole screen; again restores the layout."""
        if self.screen.has_class("-whole"):
            self.action_shrink()
            return
        self.screen.add_class("-whole")
        self.post_message(self.Resized())
        self._hint()
        if self._path and not self.whole:
            await self._open_copy(self._path)

    def action_shrink(self) -> None:
        """Go back beside the conversation."""
        self.screen.remove_class("-whole")
        self.post_message(self.Resized())
        self._hint()

    async def action_mark(self, what: Literal["mask", "pin"]) -> None:
        await self.run_action(f"app.mark('{what}', True)")

    def action_copy(self) -> None:
        """Copy the selection, else what is shown, up to the clipboard's limit."""
        from tui.core.formatting import plural, size  # noqa: PLC0415
        from tui.ui.widgets.file_viewer.view import COPY_MAX  # noqa: PLC0415

        view = self.copy.view if self.whole else self.output
        part = view.selected_text
        text = part or (self.copy.view.text() if self.whole else self.output.text)
        self.app.copy_to_clipboard(text)  # pyright: ignore[reportUnknownMemberType]
        if self.whole and not part and self.copy.view.file.size > COPY_MAX:
            self.say(f"Copied the first {size(COPY_MAX)}; the rest is in {self._path}")
        else:
            self.say(f"Copied {plural(len(text), 'character')}.")

    def action_ask_line(self) -> None:
        """Ask where the line comes from that is at the top of what is in sight."""
        from tui.ui.widgets.asked_line import LineAsked  # noqa: PLC0415

        line = self.copy.view.asked_line() if self.whole else self.output.asked_line()
        if line is None:
            self.say("No line of a file is in sight.")
        else:
            self.post_message(LineAsked(line))

    async def action_search(self) -> None:
        """Search what is shown; all of the full copy, if there is one."""
        from tui.ui.widgets.file_viewer.line_file import LineFile  # noqa: PLC0415

        if self._path:
            await self._open_copy(self._path, search=True)
            if self.whole:
                return
        self._show_file(LineFile(self.output.raw))
        self.copy.action_search()

    async def action_outside(self, program: Program) -> None:
        """Open the full copy, else what is shown, in the person's own pager or editor."""
        from tui.ui.screens.external_programs import open_copy, open_text  # noqa: PLC0415

        path, app = self._path, cast("App[Any]", self.app)
        trouble = await open_copy(app, path, self.results(), program) if path else None
        if trouble is None:
            text = self.output.raw.encode("utf-8", "replace")
            trouble = await open_text(app, text, program)
        if trouble:
            self.say(trouble, "error")

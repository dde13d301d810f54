"""The side of the chat: what a tool printed, what was cut of it, how full the context is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static
from textual.worker import Worker

from tui.widgets.context_meter import ContextMeter
from tui.widgets.plain import one_line
from tui.widgets.rule import PaneRule

if TYPE_CHECKING:
    from tui.widgets.output_view import OutputView

_NO_OUTPUT = """\
What tools print appears here while they run.
Enter on a tool call in the conversation shows its output again."""


class OutputSide(Vertical):
    """`output` exists after `furnish`."""

    output: OutputView

    def __init__(self, *, id: str) -> None:  # noqa: A002
        super().__init__(id=id, classes="-no-output")
        self.rule = PaneRule("output", id="output-rule")
        self.meter_rule = PaneRule("context", id="meter-rule")
        self.meter = ContextMeter(id="meter")
        self._badge = Static(id="output-badge", markup=False)
        self._reading: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        yield self.rule
        yield self._badge
        yield Static(_NO_OUTPUT, id="no-output", markup=False)
        yield self.meter_rule
        yield self.meter

    async def furnish(self) -> None:
        """Add what the first frame does without."""
        from tui.widgets.output_view import OutputView  # noqa: PLC0415

        self.output = OutputView(id="output")
        await self.mount(self.output, after="#no-output")

    def show(
        self,
        title: str,
        text: str,
        *,
        diff: bool = False,
        receipt: dict[str, Any] | None = None,
        whole: bool = False,
    ) -> None:
        """Show an output, or a diff. `whole`: then all of it, where `receipt` knows a copy."""
        self.remove_class("-no-output")
        self._stop_reading()
        self.badge(receipt)
        self.rule.title = Content.assemble(
            ("output · ", "$text-muted"), (one_line(title), "$foreground")
        )
        self.output.show(title, text, diff=diff)
        if whole and receipt and receipt.get("path"):
            self._reading = self.run_worker(self._show_whole(title, receipt))

    def badge(self, receipt: dict[str, Any] | None, kept: str = "full copy kept") -> None:
        """Say what was cut of the output that is shown, and what is left of the rest."""
        from tui.widgets.conversation.draw import shrunk  # noqa: PLC0415 - not for the first frame

        text = shrunk(receipt) if receipt else ""
        if receipt and receipt.get("path"):
            text += f" · {kept}"
        self._badge.update(Content(text))
        self.set_class(bool(text), "-cut")

    def clear(self) -> None:
        """Nothing was printed yet."""
        self.add_class("-no-output")
        self._stop_reading()
        self.badge(None)
        self.output.clear()
        self.rule.title = Content.styled("output", "$text-muted")

    def _stop_reading(self) -> None:
        if self._reading:
            self._reading.cancel()
            self._reading = None

    async def _show_whole(self, title: str, receipt: dict[str, Any]) -> None:
        from tui.widgets.full_copy import pieces  # noqa: PLC0415

        self.badge(receipt, "reading the full copy")
        reading = pieces(Path(str(receipt["path"])))
        try:
            piece = await asyncio.to_thread(next, reading, None)
            self.output.show(title, "")
            while piece is not None:
                self.output.write(piece)
                piece = await asyncio.to_thread(next, reading, None)
        except (OSError, ValueError):
            self.badge(receipt, "the full copy is gone")
        else:
            self.badge(receipt, "this is the full copy")

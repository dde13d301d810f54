"""What the person's own commands print, cut like a tool's before the model gets it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tui.core.files import safe_name
from tui.core.messages import ToolOutput, text_block, text_of
from tui.core.output_store import OutputStore
from tui.tools.limits.pipeline import GuardLimits, guard
from tui.tools.output_capture import Capture, OutputLimits

_LIKE: Final = "run_command"
"""The tool whose limits hold."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """Where full copies go: `folder`, noted in `kept` as the session's."""

    folder: Path
    limits: Callable[[], GuardLimits]
    kept: OutputStore | None = None

    def capture(self, name: str) -> Capture:
        """Takes the output of the command called `name`. To be fed in a thread, and closed; then
        it is for `cut`, or for `drop`."""
        limits = self.limits()
        disk = OutputLimits(limits.memory_chars, limits.disk.most, limits.disk.min_free)
        return Capture(self._place(name), disk)

    async def cut(
        self, capture: Capture, name: str, words: str, code: int
    ) -> tuple[str, dict[str, Any] | None]:
        """What the model gets of an output, with `words` on how it ended, and the receipt where
        that is not all (INTERFACE's shape)."""
        body = f"{capture.text.rstrip()}\n({words})"
        output = ToolOutput(
            [text_block(body)], details={"exit_code": code}, full=capture.full, raw=capture.raw
        )
        spill = self._place(name)
        guarded = await guard(output, tool=_LIKE, keep="ends", spill=spill, limits=self.limits())
        receipt = guarded.receipt
        if receipt and receipt.path and self.kept:
            await asyncio.to_thread(self.kept.note, receipt.path)
        return text_of(guarded.content), receipt.to_json() if receipt else None

    def _place(self, name: str) -> Path:
        return self.folder / f"{safe_name(name)}.txt"


def drop(capture: Capture) -> None:
    """Nobody will be told of an output: no copy of it stays."""
    if capture.full:
        capture.full.unlink(missing_ok=True)

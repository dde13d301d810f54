"""From what a tool did to its one result: guarded, recorded, shown.

What a tool did is recorded as done, even when the interrupt comes between its end and its record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tui.agent.events import Debug, Event, Notice, ToolFinished
from tui.agent.pending_call import OpenCall
from tui.agent.recorder import Recorder, to_the_end
from tui.agent.runtime_state import Settings
from tui.context.repair import INTERRUPTED
from tui.core.clock import Clock
from tui.core.files import safe_name
from tui.core.messages import Block, ToolOutput, text_block, text_of
from tui.core.output_store import OutputStore
from tui.tokens import tokenizer
from tui.tools.limits.pipeline import GuardLimits, guard, interrupted_receipt
from tui.tools.limits.receipt import Keep, Receipt

log = logging.getLogger(__name__)

SHOWN_CHARS = 8000
"""O19: text in events, per block."""

ERROR_CHARS = 400
"""O19: the preview of an error."""


@dataclass(slots=True)
class Results:
    """Makes the results of calls. Owned by one dispatcher."""

    recorder: Recorder
    settings: Settings
    clock: Clock
    limits: Callable[[], GuardLimits]
    publish: Callable[[Event], None]
    kept: OutputStore | None = None

    def spill_path(self, state: OpenCall) -> Path:
        return self.settings.workspace.tool_results / f"{safe_name(state.id)}.txt"

    async def finish(
        self, open_calls: dict[str, OpenCall], state: OpenCall, output: ToolOutput, keep: Keep
    ) -> None:
        """Cut, record and show what a call came to; then it is not open any more."""
        seconds = self._seconds(state)
        guarded = await guard(
            output, tool=state.name, keep=keep, spill=self.spill_path(state), limits=self.limits()
        )
        receipt = await self._kept(guarded.receipt)
        summary = _preview(output.summary) if output.is_error else output.summary
        display = output.display[:SHOWN_CHARS]
        self.recorder.append(
            "tool_result",
            call_id=state.id,
            name=state.name,
            content=guarded.content,
            is_error=output.is_error,
            seconds=seconds,
            receipt=receipt,
            summary=summary,
            display=display,
            details=_with_limits(output.details, receipt),
        )
        del open_calls[state.id]
        text = text_of(guarded.content)
        finished = ToolFinished(
            state.id,
            state.name,
            output.is_error,
            seconds,
            receipt,
            summary,
            text[:SHOWN_CHARS],
            display,
            tuple(_without_data(b) for b in guarded.content if b.get("type") == "image"),
        )
        await self.recorder.show(finished)
        if self.settings.verbose:
            await self._debug(state.name, text)

    async def _debug(self, name: str, text: str) -> None:
        """Tell K39's block. Where it cannot be made, that is told; the result stands (K48)."""
        try:
            block = await asyncio.to_thread(_debug_block, name, text)
        except Exception as error:
            log.exception("the debug block of %s could not be made", name)
            said = f"Verbose did not apply to {name}: {type(error).__name__}: {error}"
            self.publish(Notice(said))
        else:
            self.publish(Debug(block))

    async def _kept(self, receipt: Receipt | None) -> dict[str, Any] | None:
        """A receipt as it is recorded, once it is known whose the full copy is."""
        if receipt and receipt.path and self.kept:
            await asyncio.to_thread(self.kept.note, receipt.path)
        return receipt.to_json() if receipt else None

    async def close(self, calls: Iterable[OpenCall]) -> None:
        """Give calls that were interrupted their result (R2); to the end, even when cancelled."""
        await to_the_end(self._close_all(list(calls)))

    async def _close_all(self, calls: Sequence[OpenCall]) -> None:
        """Give calls that were interrupted their result (R2): the literal text for the model.

        What was heard of them is kept for the person: its end in the record, all of it in a
        file where that is more. A call that never began is not shown as finished either.
        """
        finished: list[Event] = []
        for state in calls:
            seconds, partial = self._seconds(state), state.partial()
            receipt = await self._left_behind(state)
            self.recorder.append(
                "tool_result",
                call_id=state.id,
                name=state.name,
                content=[text_block(INTERRUPTED)],
                is_error=True,
                seconds=seconds,
                receipt=receipt,
                summary="interrupted",
                display="",
                details={"interrupted": True, "partial": partial},
            )
            if state.started is not None:
                finished.append(
                    ToolFinished(
                        state.id, state.name, True, seconds, receipt, "interrupted", partial
                    )
                )
        await self.recorder.show(*finished)

    async def _left_behind(self, state: OpenCall) -> dict[str, Any] | None:
        output = state.left
        if output is None or (output.full is None and text_of(output.content) == state.partial()):
            return None
        try:
            spill, limits = self.spill_path(state), self.limits()
            return await self._kept(
                await interrupted_receipt(output, INTERRUPTED, spill=spill, limits=limits)
            )
        except Exception:  # the call gets its result, whatever becomes of the copy
            log.exception("what %s left behind could not be kept", state.name)
            return None

    def _seconds(self, state: OpenCall) -> float:
        started = state.started
        return 0.0 if started is None else round(self.clock.monotonic() - started, 3)


def _debug_block(name: str, result: str) -> str:
    """The block for a result: the text that the model received, and its tokens."""
    size = tokenizer.count(result)
    return f"\n\n[DEBUG] Tool: {name}\n[DEBUG] Tokens: {size}\n[DEBUG] Result:\n{result}\n"


def _with_limits(details: dict[str, Any], receipt: dict[str, Any] | None) -> dict[str, Any]:
    """A result's details, and which limits cut it (decision 1)."""
    if receipt is None:
        return details
    return {**details, "limits": receipt["stages"], "path": receipt["path"]}


def _preview(error: str) -> str:
    """The first line of an error, for its card (O19)."""
    return error.split("\n", 1)[0][:ERROR_CHARS]


def _without_data(image: Block) -> dict[str, Any]:
    """An image as events carry it (O20): its size in the place of its data."""
    given: object = image.get("source")
    source = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    data = str(source.get("data") or "")
    size = len(data) * 3 // 4 - data.count("=", -2)
    return {"type": "image", "media_type": source.get("media_type"), "bytes": size, "omitted": True}

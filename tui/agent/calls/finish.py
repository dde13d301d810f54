"""Last station of a call: its result is cut for the model, kept in full, recorded and shown.

What a tool did is recorded as done, even if an interrupt comes between its end and its record.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tui.agent.agent_context import AgentContext
from tui.agent.calls.state import PendingCall
from tui.agent.request.image_limits import fit_images
from tui.context.repair import INTERRUPTED
from tui.context.untrusted import wrap
from tui.core.cancellation import to_the_end
from tui.core.errors import ToolError
from tui.core.facts import ContextChanged, Debug, Fact, Notice, Pinned, ToolFinished
from tui.core.files import safe_name
from tui.core.messages import Block, ToolOutput, text_block, text_of
from tui.core.output_store import OutputStore
from tui.tokens import tokenizer
from tui.tools.limits.pipeline import guard, interrupted_receipt
from tui.tools.limits.receipt import Receipt
from tui.tools.stale_text import StaleFileError

log = logging.getLogger(__name__)

SHOWN_CHARS = 8000
"""The length of a text in events, per block."""
ERROR_CHARS = 400
"""The length of the preview of an error."""


def spill_path(ctx: AgentContext, state: PendingCall) -> Path:
    """The file for the full output of a call."""
    return ctx.workspace.tool_results / f"{safe_name(state.id)}.txt"


def failed(ctx: AgentContext, error: ToolError) -> ToolOutput:
    """Return the result of a call that could not be done, in the words of its tool."""
    output = ToolOutput.text(str(error), is_error=True, summary=error.message)
    if isinstance(error, StaleFileError):
        output = replace(output, details=_shown_by(ctx, error))
    return output


def _shown_by(ctx: AgentContext, error: StaleFileError) -> dict[str, Any]:
    """The details of an edit that was refused: if it shows all that changed, the model knows it."""
    if (snapshot := error.found) is None:
        return {}
    stat = snapshot.stat
    ctx.toolbox.files.note_seen(snapshot.path, stat, snapshot.sha256, snapshot.data)
    file = {"path": str(snapshot.path), "size": stat.st_size}
    return {**file, "mtime_ns": stat.st_mtime_ns, "sha256": snapshot.sha256}


async def finish(ctx: AgentContext, state: PendingCall, output: ToolOutput) -> None:
    """Cut, record and show the result of a call."""
    seconds = _seconds(ctx, state)
    limits, spill, outputs = ctx.guard_limits, spill_path(ctx, state), ctx.toolbox.outputs
    output = await fit_images(output, spill, outputs)
    guarded = await guard(output, tool=state.name, keep=state.keep, spill=spill, limits=limits)
    receipt = await noted(guarded.receipt, outputs)
    content = _marked(guarded.content, output.source)
    text = text_of(content)
    finished = ToolFinished(
        state.id,
        state.name,
        output.is_error,
        seconds,
        receipt,
        _preview(output.summary) if output.is_error else output.summary,
        text[:SHOWN_CHARS],
        output.display[:SHOWN_CHARS],
        tuple(_without_data(b) for b in content if b.get("type") == "image"),
        content,
        _with_limits(output.details, receipt),
    )
    await _record(ctx, state, finished, pin=output.pin)
    if ctx.state.verbose:
        await _debug(ctx, state.name, text)


async def _record(
    ctx: AgentContext, state: PendingCall, finished: ToolFinished, *, pin: bool
) -> None:
    """Write a result, pin it if it is to stay, and show both."""
    record = ctx.recorder.write(finished)
    state.recorded = True
    shown: list[Fact] = [finished]
    if pin:
        pinned = Pinned(record.id, pinned=True)
        ctx.record(pinned)
        shown.append(ContextChanged((pinned.to_record() | {"call_id": state.id},)))
    await ctx.recorder.show(*shown)


async def close(ctx: AgentContext, calls: Iterable[PendingCall]) -> None:
    """Give calls that were interrupted their result; to the end, even when cancelled."""
    await to_the_end(_close_all(ctx, list(calls)))


async def _close_all(ctx: AgentContext, calls: Sequence[PendingCall]) -> None:
    """Give calls that were interrupted their result: a literal text for the model.

    What they printed is kept for the person: its end in the record, and all of it in a file if that
    is more. A call that never began is not shown as finished either.
    """
    shown: list[Fact] = []
    for state in calls:
        seconds, partial = _seconds(ctx, state), state.partial
        finished = ToolFinished(
            state.id,
            state.name,
            True,
            seconds,
            await _partial_receipt(ctx, state),
            "interrupted",
            partial,
            content=[text_block(INTERRUPTED)],
            details={"interrupted": True, "partial": partial},
        )
        ctx.recorder.write(finished)
        if state.started is not None:
            shown.append(finished)
    await ctx.recorder.show(*shown)


async def noted(receipt: Receipt | None, outputs: OutputStore | None) -> dict[str, Any] | None:
    """Return a receipt as it is recorded, once the store knows that the full copy is needed."""
    if receipt and receipt.path and outputs:
        await asyncio.to_thread(outputs.note, receipt.path)
    return receipt.to_json() if receipt else None


async def _partial_receipt(ctx: AgentContext, state: PendingCall) -> dict[str, Any] | None:
    """Keep all of what an interrupted call printed, if that is more than its record has."""
    output = state.output
    if output is None or (output.full is None and text_of(output.content) == state.partial):
        return None
    try:
        spill, limits = spill_path(ctx, state), ctx.guard_limits
        receipt = await interrupted_receipt(output, INTERRUPTED, spill=spill, limits=limits)
        return await noted(receipt, ctx.toolbox.outputs)
    except Exception:  # the call gets its result, whatever becomes of the copy
        log.exception("couldn't keep the partial output of %s", state.name)
        return None


def _seconds(ctx: AgentContext, state: PendingCall) -> float:
    started = state.started
    return 0.0 if started is None else round(ctx.clock.monotonic() - started, 3)


async def _debug(ctx: AgentContext, name: str, text: str) -> None:
    """Show what the model received. If that fails a notice says so; the result is not touched."""
    try:
        block = await asyncio.to_thread(_debug_block, name, text)
    except Exception as error:
        log.exception("couldn't make the debug block of %s", name)
        problem = f"Verbose had no effect on {name}: {type(error).__name__}: {error}"
        ctx.publish(Notice(problem))
    else:
        ctx.publish(Debug(block))


def _debug_block(name: str, result: str) -> str:
    """The text that the model received, and its tokens."""
    size = tokenizer.count(result)
    return f"\n\n[DEBUG] Tool: {name}\n[DEBUG] Tokens: {size}\n[DEBUG] Result:\n{result}\n"


def _with_limits(details: dict[str, Any], receipt: dict[str, Any] | None) -> dict[str, Any]:
    """Add to a result's details which limits cut it, and, if it is of no file, where the full copy
    is."""
    if receipt is None:
        return details
    return {"path": receipt["path"], **details, "limits": receipt["stages"]}


def _marked(content: list[Block], source: str) -> list[Block]:
    """Mark the texts of a result as untrusted if it has a source; that is done after the cut."""
    if not source:
        return content
    return [
        {**block, **text_block(wrap(str(block.get("text", "")), source))}
        if block.get("type") == "text"
        else block
        for block in content
    ]


def _preview(error: str) -> str:
    """The first line of an error, for its card."""
    return error.split("\n", 1)[0][:ERROR_CHARS]


def _without_data(image: Block) -> dict[str, Any]:
    """An image as events carry it: with its size in place of its data."""
    given: object = image.get("source")
    source = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    data = str(source.get("data") or "")
    size = len(data) * 3 // 4 - data.count("=", -2)
    return {"type": "image", "media_type": source.get("media_type"), "bytes": size, "omitted": True}

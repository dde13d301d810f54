"""From a finished tool to its record: cut for the model, kept in full, shown.

What a tool did is recorded as done, even when the interrupt comes between its end and its record.
What the person's own commands print is cut in the same way.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tui.agent.agent_context import AgentContext
from tui.agent.image_limits import fit_images
from tui.agent.supervised_commands import sweep
from tui.context.repair import INTERRUPTED
from tui.context.untrusted import wrap
from tui.core.cancellation import to_the_end
from tui.core.facts import ContextChanged, Debug, Fact, Notice, Pinned, ToolFinished
from tui.core.files import safe_name
from tui.core.messages import Block, ToolOutput, text_block, text_of
from tui.core.output_store import OutputStore
from tui.tokens import tokenizer
from tui.tools.limits.pipeline import GuardLimits, guard, interrupted_receipt
from tui.tools.limits.receipt import Keep, Receipt
from tui.tools.output_capture import Capture

if TYPE_CHECKING:
    from tui.agent.background_jobs import BackgroundJobs
    from tui.keeper.command import Starter, SupervisedCommand
    from tui.tools.jobs import Job, Origin

log = logging.getLogger(__name__)

SHOWN_CHARS = 8000
"""Of a text in events, per block."""

ERROR_CHARS = 400
"""Of the preview of an error."""

PARTIAL_CHARS = 2000
"""How much of an interrupted call's output its record keeps."""

_LIKE: Final = "run_command"
"""The tool whose limits hold for the person's own commands."""


@dataclass(slots=True)
class PendingCall:
    """A call without a result yet, and when it began."""

    call: Block
    started: float | None = None
    output: ToolOutput | None = None
    """What the tool had when it was interrupted."""
    partial: str = ""
    """The end of what it printed."""
    finished: ToolOutput | None = None
    """What it came to, while hooks are asked about it."""

    @property
    def id(self) -> str:
        return str(self.call["id"])

    @property
    def name(self) -> str:
        return str(self.call.get("name"))

    def set_partial(self, output: ToolOutput) -> None:
        self.output = output

    def add_output(self, text: str) -> None:
        self.partial = (self.partial + text)[-PARTIAL_CHARS:]


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Makes the results of one agent's calls."""

    ctx: AgentContext

    def spill_path(self, state: PendingCall) -> Path:
        return self.ctx.workspace.tool_results / f"{safe_name(state.id)}.txt"

    async def finish(
        self, open_calls: dict[str, PendingCall], state: PendingCall, output: ToolOutput, keep: Keep
    ) -> None:
        """Cut, record and show what a call came to; then it is not open any more."""
        seconds = self._seconds(state)
        limits, spill = self.ctx.guard_limits, self.spill_path(state)
        output = await fit_images(output, spill, self.ctx.toolbox.outputs)
        guarded = await guard(output, tool=state.name, keep=keep, spill=spill, limits=limits)
        receipt = await _noted(guarded.receipt, self.ctx.toolbox.outputs)
        summary = _preview(output.summary) if output.is_error else output.summary
        display = output.display[:SHOWN_CHARS]
        content = _marked(guarded.content, output.source)
        text, details = text_of(content), _with_limits(output.details, receipt)
        finished = ToolFinished(
            state.id,
            state.name,
            output.is_error,
            seconds,
            receipt,
            summary,
            text[:SHOWN_CHARS],
            display,
            tuple(_without_data(b) for b in content if b.get("type") == "image"),
            content,
            details,
        )
        record = self.ctx.recorder.write(finished)
        del open_calls[state.id]
        shown: list[Fact] = [finished]
        if output.pin:
            pinned = Pinned(record.id, pinned=True)
            self.ctx.record(pinned)
            shown.append(ContextChanged((pinned.to_record() | {"call_id": state.id},)))
        await self.ctx.recorder.show(*shown)
        if self.ctx.state.verbose:
            await self._debug(state.name, text)

    async def _debug(self, name: str, text: str) -> None:
        """Show what the model received. Where that fails a notice says so; the result stands."""
        try:
            block = await asyncio.to_thread(_debug_block, name, text)
        except Exception as error:
            log.exception("couldn't make the debug block of %s", name)
            problem = f"Verbose had no effect on {name}: {type(error).__name__}: {error}"
            self.ctx.publish(Notice(problem))
        else:
            self.ctx.publish(Debug(block))

    async def close(self, calls: Iterable[PendingCall]) -> None:
        """Give calls that were interrupted their result; to the end, even when cancelled."""
        await to_the_end(self._close_all(list(calls)))

    async def _close_all(self, calls: Sequence[PendingCall]) -> None:
        """Give calls that were interrupted their result: a literal text for the model.

        What was printed by them is kept for the person: its end in the record, all of it in a
        file where that is more. A call that never began is not shown as finished either.
        """
        finished: list[Fact] = []
        for state in calls:
            seconds, partial = self._seconds(state), state.partial
            receipt = await self._partial_receipt(state)
            made = ToolFinished(
                state.id,
                state.name,
                True,
                seconds,
                receipt,
                "interrupted",
                partial,
                content=[text_block(INTERRUPTED)],
                details={"interrupted": True, "partial": partial},
            )
            self.ctx.recorder.write(made)
            if state.started is not None:
                finished.append(made)
        await self.ctx.recorder.show(*finished)

    async def _partial_receipt(self, state: PendingCall) -> dict[str, Any] | None:
        output = state.output
        if output is None or (output.full is None and text_of(output.content) == state.partial):
            return None
        try:
            spill, limits = self.spill_path(state), self.ctx.guard_limits
            receipt = await interrupted_receipt(output, INTERRUPTED, spill=spill, limits=limits)
            return await _noted(receipt, self.ctx.toolbox.outputs)
        except Exception:  # the call gets its result, whatever becomes of the copy
            log.exception("couldn't keep the partial output of %s", state.name)
            return None

    def _seconds(self, state: PendingCall) -> float:
        started = state.started
        return 0.0 if started is None else round(self.ctx.clock.monotonic() - started, 3)


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """What the person's own commands print, cut like a tool's before the model gets it.

    Full copies go into `folder`.
    """

    folder: Path
    limits: GuardLimits
    jobs: BackgroundJobs
    """Where a command can be moved to."""
    outputs: OutputStore | None = None

    def in_front(self) -> AbstractContextManager[asyncio.Event]:
        """While a command runs in front: the event is set once it is to be moved."""
        return self.jobs.ctx.toolbox.jobs.in_front()

    @property
    def starter(self) -> Starter:
        return self.jobs.ctx.toolbox.jobs.starter

    async def move(self, command: SupervisedCommand, origin: Origin) -> Job:
        """Keep a command in the background."""
        path = self.place(f"job-{origin.call_id}")
        if origin.hidden:  # the model may read what lies in the workspace
            path = command.folder.with_suffix(".txt")
        return await self.jobs.adopt(command, path=path, origin=origin)

    async def cut(
        self, capture: Capture, name: str, words: str, code: int
    ) -> tuple[str, dict[str, Any] | None]:
        """What the model gets of an output, with `words` on how it ended, and the receipt where
        that is not all."""
        body = f"{capture.text.rstrip()}\n({words})"
        output = ToolOutput(
            [text_block(body)], details={"exit_code": code}, full=capture.full, raw=capture.raw
        )
        spill = self.place(name)
        guarded = await guard(output, tool=_LIKE, keep="ends", spill=spill, limits=self.limits)
        return text_of(guarded.content), await _noted(guarded.receipt, self.outputs)

    def place(self, name: str) -> Path:
        """The lasting name of the full output of the command called `name`."""
        return self.folder / f"{safe_name(name)}.txt"


async def _noted(receipt: Receipt | None, outputs: OutputStore | None) -> dict[str, Any] | None:
    """A receipt as it is recorded, once it is known whose the full copy is."""
    if receipt and receipt.path and outputs:
        await asyncio.to_thread(outputs.note, receipt.path)
    return receipt.to_json() if receipt else None


async def sweep_outputs(ctx: AgentContext, stop: threading.Event) -> None:
    """Remove full outputs that no session names and that have had their time, and what is left of
    commands that nobody took over."""
    if ctx.toolbox.kept is not None:
        await asyncio.to_thread(sweep, ctx.toolbox.kept.parent, ctx.clock.now().timestamp())
    if ctx.toolbox.outputs is not None:
        gone = await asyncio.to_thread(ctx.toolbox.outputs.sweep, ctx.clock.now(), stop)
        if gone:
            log.info("removed %d kept outputs that no session names", gone)


def drop(capture: Capture) -> None:
    """Nobody will be told of an output: no copy of it stays."""
    if capture.full:
        capture.full.unlink(missing_ok=True)


def _debug_block(name: str, result: str) -> str:
    """The text that the model received, and its tokens."""
    size = tokenizer.count(result)
    return f"\n\n[DEBUG] Tool: {name}\n[DEBUG] Tokens: {size}\n[DEBUG] Result:\n{result}\n"


def _with_limits(details: dict[str, Any], receipt: dict[str, Any] | None) -> dict[str, Any]:
    """A result's details, and which limits cut it; the path of the full copy, where the result is
    of no file."""
    if receipt is None:
        return details
    return {"path": receipt["path"], **details, "limits": receipt["stages"]}


def _marked(content: list[Block], source: str) -> list[Block]:
    """A result with its texts marked as untrusted where it has a source, after they were cut."""
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
    """An image as events carry it: its size in the place of its data."""
    given: object = image.get("source")
    source = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    data = str(source.get("data") or "")
    size = len(data) * 3 // 4 - data.count("=", -2)
    return {"type": "image", "media_type": source.get("media_type"), "bytes": size, "omitted": True}

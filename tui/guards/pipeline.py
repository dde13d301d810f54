"""The one place that every tool result passes: spill → clamp → share (decision 1)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tui import tokens
from tui.config import Guard
from tui.guards import spill as spilling
from tui.guards.clamp import Room, clamp
from tui.guards.receipt import Keep, Receipt, Size, Stage
from tui.guards.share import share, threshold
from tui.guards.spill import Copy
from tui.guards.text import byte_length, line_count
from tui.messages import Block, RawOutput, ToolOutput, text_block

TOOL_BYTES: Mapping[str, int] = {
    "grep_search": 20_000,
    "find_by_name": 20_000,
    "run_command": 50_000,
    "command_status": 50_000,
    "read_file": 100_000,
}
"""L4: what a tool may return before its output is spilled."""


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """The limits in force for one result."""

    default_bytes: int = 50_000
    tool_bytes: Mapping[str, int] = field(default_factory=lambda: TOOL_BYTES)
    preview_bytes: int = 2048
    clamp_bytes: int = 51_200
    clamp_lines: int = 2000
    share_tokens: int = 38_400

    @classmethod
    def of(cls, config: Guard, *, window: int) -> GuardLimits:
        """Limits from the configuration and the active model's window (K21)."""
        return cls(
            default_bytes=config.default_bytes,
            tool_bytes={**TOOL_BYTES, **config.bytes},
            preview_bytes=config.preview_bytes,
            clamp_bytes=config.clamp_bytes,
            clamp_lines=config.clamp_lines,
            share_tokens=threshold(window, config.token_share),
        )

    def bytes_of(self, tool: str) -> int:
        return self.tool_bytes.get(tool, self.default_bytes)

    @property
    def page_bytes(self) -> int:
        """A page of read_file that no stage cuts (L21): a token has at least one byte."""
        return min(self.clamp_bytes, self.share_tokens)


@dataclass(frozen=True, slots=True)
class Guarded:
    """What the model gets, and the receipt if anything was cut."""

    content: list[Block]
    receipt: Receipt | None


async def guard(
    output: ToolOutput, *, tool: str, keep: Keep, spill: Path, limits: GuardLimits
) -> Guarded:
    """Bring one result within all limits. Off the event loop where there is work to do.

    `spill` is where the full copy goes when something is cut; a copy that the tool has written
    itself (`output.full`) is used as it is. What is measured is the raw output. Content under
    every limit is returned as it is.
    """
    texts = [str(b.get("text", "")) for b in output.content if b.get("type") == "text"]
    size = sum(map(byte_length, texts))
    small = size <= min(limits.bytes_of(tool), limits.clamp_bytes, limits.share_tokens)
    whole = output.raw is None and output.full is None
    if whole and small and sum(map(line_count, texts)) <= limits.clamp_lines:
        return Guarded(output.content, None)
    cut = partial(_cut, output, texts, keep=keep, spill=spill, limits=limits)
    return await asyncio.to_thread(cut, spill_over=limits.bytes_of(tool))


def _cut(
    output: ToolOutput,
    texts: Sequence[str],
    *,
    keep: Keep,
    spill: Path,
    limits: GuardLimits,
    spill_over: int,
) -> Guarded:
    size = sum(map(byte_length, texts))
    stages: list[Stage] = []
    copy = _copy_of(output)
    raw = output.raw or RawOutput(size, sum(map(line_count, texts)))
    if output.raw is None and copy is not None:
        raw = RawOutput(copy.bytes, copy.lines, partial=True)
    shown = texts
    if texts and (raw.partial or raw.bytes > spill_over):
        copy = copy or spilling.write_copy(texts, spill)
        stages.append("spill")
        code = output.details.get("exit_code")
        shown = [
            spilling.notice(
                copy,
                raw.bytes,
                texts[0],
                texts[-1],
                preview_bytes=limits.preview_bytes,
                exit_code=code if isinstance(code, int) else None,
                ends=keep == "ends",
            )
        ]
    clamped = clamp(shown, Room(limits.clamp_bytes, limits.clamp_lines), keep)
    if clamped is not shown:
        stages.append("clamp")
    shared = share(clamped, limits.share_tokens, keep)
    if shared is not clamped:
        stages.append("share")
    if not stages:
        return Guarded(output.content, None)
    copy = copy or spilling.write_copy(texts, spill)
    receipt = Receipt(
        stages=tuple(stages),
        total=Size(raw.bytes, raw.lines, _tokens(texts, raw.bytes, size)),
        shown=Size(
            sum(map(byte_length, shared)),
            sum(map(line_count, shared)),
            sum(map(tokens.count, shared)),
        ),
        kept=keep,
        path=copy.path,
        sha256=copy.sha256,
        bytes_kept=copy.bytes,
    )
    return Guarded(_replaced(output.content, shared), receipt)


def _copy_of(output: ToolOutput) -> Copy | None:
    """The full copy that the tool has made, or could not make; None where it left that to us."""
    raw = output.raw
    lost = raw.lost if raw else ""
    if output.full is None:
        return Copy(error=lost or "no reason is known") if raw and raw.partial else None
    copy = spilling.measure_copy(output.full)
    if lost and copy.path:
        kept = f"only the first {spilling.human_size(copy.bytes)} are in {copy.path}"
        return replace(copy, error=f"{kept}: {lost}")
    return copy


def _tokens(texts: Sequence[str], total_bytes: int, held_bytes: int) -> int:
    """Tokens of the raw output; scaled up where only a part of it is in memory."""
    counted = sum(map(tokens.count, texts))
    return counted if total_bytes <= held_bytes else counted * total_bytes // max(1, held_bytes)


def _replaced(content: Sequence[Block], texts: Sequence[str]) -> list[Block]:
    """The content with its text blocks replaced in order; other blocks stay where they are.

    With fewer texts than text blocks, the blocks left over go.
    """
    queue = list(texts)
    result: list[Block] = []
    for block in content:
        if block.get("type") != "text":
            result.append(block)
        elif queue:
            result.append({**block, **text_block(queue.pop(0))})
    return result

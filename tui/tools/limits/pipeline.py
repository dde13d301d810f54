"""The one place that every tool result passes: spill, then clamp, then token share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from tui.core.config import Guard
from tui.core.messages import Block, RawOutput, ToolOutput, text_block
from tui.tokens import cl100k, tokenizer
from tui.tools.limits import spill as spilling
from tui.tools.limits.clamp import (
    CAP_CHARS,
    Room,
    byte_length,
    cap_chars,
    clamp,
    encode,
    line_count,
    share,
    threshold,
)
from tui.tools.limits.receipt import Keep, Receipt, Size, Stage
from tui.tools.limits.spill import FullCopy, joined

TOOL_BYTES: Mapping[str, int] = {
    "grep_search": 20_000,
    "find_by_name": 20_000,
    "run_command": 50_000,
    "command_status": 50_000,
    "read_file": 100_000,
}
"""How many bytes a tool may return before its output is spilled."""


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """The limits in force for one result: those of the configuration, and its share of a window."""

    config: Guard = field(default_factory=Guard)
    share_tokens: int = 38_400

    @classmethod
    def of(cls, config: Guard, *, window: int) -> GuardLimits:
        """Limits from the configuration and the active model's window, in tokens."""
        return cls(config, threshold(window, config.token_share))

    def bytes_of(self, tool: str) -> int:
        """How many bytes a tool may return before its output is spilled."""
        default = TOOL_BYTES.get(tool, self.config.default_bytes)
        return self.config.bytes.get(tool, default)

    @property
    def page_bytes(self) -> int:
        """The largest page of read_file that no stage cuts: a token has at least one byte."""
        return min(self.config.clamp_bytes, self.share_tokens, self.bytes_of("read_file"))


@dataclass(frozen=True, slots=True)
class GuardedOutput:
    """What the model gets, and the receipt if anything was cut."""

    content: list[Block]
    receipt: Receipt | None


async def guard(
    output: ToolOutput, *, tool: str, keep: Keep, spill: Path, limits: GuardLimits
) -> GuardedOutput:
    """Bring one result within all limits, in a thread if there is anything to cut.

    `spill` is the path for the full copy when something is cut; a copy that the tool has written
    itself (`output.full`) is used as it is, and removed if nothing is cut. What is measured is
    the raw output. Content under every limit is returned as it is.
    """
    texts = _texts(output)
    size = sum(map(byte_length, texts))
    most = limits.bytes_of(tool)
    small = size <= min(most, limits.config.clamp_bytes, limits.share_tokens, CAP_CHARS)
    if (
        output.full is None
        and _whole(output, most)
        and small
        and sum(map(line_count, texts)) <= limits.config.clamp_lines
    ):
        return GuardedOutput(output.content, None)
    cut = partial(_cut, output, texts, keep=keep, spill=spill, limits=limits, spill_over=most)
    return await asyncio.to_thread(cut)


async def interrupted_receipt(
    output: ToolOutput, shown: str, *, spill: Path, limits: GuardLimits
) -> Receipt | None:
    """The receipt of a call that was interrupted: the model gets `shown` and nothing else.

    The full copy holds all that the tool had put out. None if that was nothing.
    """
    texts = _texts(output)
    raw = output.raw or RawOutput(sum(map(byte_length, texts)), sum(map(line_count, texts)))
    if not raw.bytes:
        return None
    receipt = partial(_receipt, output, texts, [shown], raw=raw, stages=("spill",), keep="head")
    return await asyncio.to_thread(receipt, spill=spill, limits=limits)


def _texts(output: ToolOutput) -> list[str]:
    return [str(b.get("text", "")) for b in output.content if b.get("type") == "text"]


def _whole(output: ToolOutput, most: int) -> bool:
    """Whether the content is all there was, or a cleaner rendition of not too much."""
    raw = output.raw
    return raw is None or not (raw.partial or raw.overwritten or raw.bytes > most)


def _cut(
    output: ToolOutput,
    texts: Sequence[str],
    *,
    keep: Keep,
    spill: Path,
    limits: GuardLimits,
    spill_over: int,
) -> GuardedOutput:
    size = sum(map(byte_length, texts))
    stages: list[Stage] = []
    copy = _copy_of(output, texts)
    raw = output.raw or RawOutput(size, sum(map(line_count, texts)))
    if output.raw is None and copy is not None:
        raw = RawOutput(copy.bytes, copy.lines, partial=True)
    shown = texts
    if texts and (raw.partial or raw.bytes > spill_over):
        copy = copy or _write(output, texts, spill, limits)
        stages.append("spill")
        code = output.details.get("exit_code")
        shown = [
            spilling.notice(
                copy,
                raw.bytes,
                texts[0],
                texts[-1],
                preview_bytes=limits.config.preview_bytes,
                exit_code=code if isinstance(code, int) else None,
                ends=keep == "ends",
            )
        ]
    elif texts and raw.overwritten:
        copy = copy or _write(output, texts, spill, limits)
        *before, last = texts
        shown = [*before, f"{last}\n{spilling.overwritten_notice(copy, raw.overwritten)}"]
    room = Room(limits.config.clamp_bytes, limits.config.clamp_lines)
    clamped = cap_chars(clamp(shown, room, keep))
    if clamped is not shown:
        stages.append("clamp")
    shared = share(clamped, limits.share_tokens, keep)
    if shared is not clamped:
        stages.append("share")
    if not stages and not raw.overwritten:
        if output.full is not None:
            output.full.unlink(missing_ok=True)
        return GuardedOutput(output.content, None)
    receipt = _receipt(
        output,
        texts,
        shared,
        raw=raw,
        stages=tuple(stages),
        copy=copy,
        keep=keep,
        spill=spill,
        limits=limits,
    )
    return GuardedOutput(_replaced(output.content, shared), receipt)


def _receipt(
    output: ToolOutput,
    texts: Sequence[str],
    shown: Sequence[str],
    *,
    raw: RawOutput,
    stages: tuple[Stage, ...],
    copy: FullCopy | None = None,
    keep: Keep,
    spill: Path,
    limits: GuardLimits,
) -> Receipt:
    """The receipt for what was cut. Writes the full copy if there is none yet."""
    copy = copy or _copy_of(output, texts) or _write(output, texts, spill, limits)
    return Receipt(
        stages=stages,
        total=Size(raw.bytes, raw.lines, _tokens(texts, raw, copy)),
        shown=Size(
            sum(map(byte_length, shown)),
            sum(map(line_count, shown)),
            sum(map(tokenizer.count, shown)),
        ),
        kept=keep,
        path=copy.path,
        sha256=copy.sha256,
        bytes_kept=copy.bytes,
        overwritten=raw.overwritten,
    )


def _write(output: ToolOutput, texts: Sequence[str], spill: Path, limits: GuardLimits) -> FullCopy:
    """Write the full copy: the raw bytes if they are in memory, else the text."""
    data = output.raw.data if output.raw else None
    data = encode(joined(texts)) if data is None else data
    return spilling.write_copy(data, spill, limits.config)


def _copy_of(output: ToolOutput, texts: Sequence[str]) -> FullCopy | None:
    """The full copy that the tool has made, or could not make; None if it has not tried."""
    raw = output.raw
    lost = raw.lost if raw else ""
    if output.full is not None:
        copy = spilling.measure_copy(output.full)
        if lost and copy.path:
            kept = f"only the first {spilling.human_size(copy.bytes)} are in {copy.path}"
            return replace(copy, error=f"{kept}: {lost}")
        return copy
    at_hand = raw is None or raw.data is not None or (texts and not raw.partial and not lost)
    return None if at_hand else FullCopy(error=lost or "no reason is known")


def _tokens(texts: Sequence[str], raw: RawOutput, copy: FullCopy) -> int:
    """Tokens of the raw output. Above 2 MB an estimate from the part that is in memory."""
    held = sum(map(byte_length, texts))
    if raw.data is not None:
        return tokenizer.count(raw.data.decode(errors="replace"))
    if raw.bytes == held:
        return sum(map(tokenizer.count, texts))
    if copy.path is not None and raw.bytes == copy.bytes <= cl100k.SAMPLE_CHARS:
        with suppress(OSError):
            return tokenizer.count(copy.path.read_bytes().decode(errors="replace"))
    return sum(map(tokenizer.count, texts)) * raw.bytes // max(1, held)


def _replaced(content: Sequence[Block], texts: Sequence[str]) -> list[Block]:
    """The content with its text blocks replaced in order; other blocks stay in their place.

    With fewer texts than text blocks, the last text blocks are left out.
    """
    queue = list(texts)
    result: list[Block] = []
    for block in content:
        if block.get("type") != "text":
            result.append(block)
        elif queue:
            result.append({**block, **text_block(queue.pop(0))})
    return result

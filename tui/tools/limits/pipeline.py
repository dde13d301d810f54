"""The one place that every tool result passes: spill, then clamp, then token share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui.core.config import Guard
from tui.core.dataclass import dataclass, field, replace
from tui.core.messages import Block, RawOutput, ToolOutput, text_block
from tui.core.workspace import text_of_path
from tui.tokens import cl100k, estimate, tokenizer
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
    "recall": 100_000,
    # The whole fetched page: the first part of a long one is worth more than a preview.
    "web_fetch": 16_000_000,
}
"""Bytes that a tool may return before its output is spilled."""


@dataclass(frozen=True, slots=True)
class GuardLimits:
    """The limits in force for one result: those of the configuration, and its share of a window."""

    config: Guard = field(default_factory=Guard)
    share_tokens: int = 38_400

    @classmethod
    def of(cls, config: Guard, *, window: int) -> GuardLimits:
        """Return the limits from the configuration and the active model's window, in tokens."""
        return cls(config, threshold(window, config.token_share))

    def bytes_of(self, tool: str) -> int:
        """Return the bytes that a tool may return before its output is spilled."""
        default = TOOL_BYTES.get(tool, self.config.default_bytes)
        return self.config.bytes.get(tool, default)

    @property
    def page_bytes(self) -> int:
        """The largest page of read_file that no stage cuts: a token has at least one byte."""
        return min(self.config.clamp_bytes, self.share_tokens, self.bytes_of("read_file"))


@dataclass(frozen=True, slots=True)
class GuardedOutput:
    """The content for the model, and the receipt if anything was cut."""

    content: list[Block]
    receipt: Receipt | None


async def guard(
    output: ToolOutput, *, tool: str, keep: Keep, spill: Path, limits: GuardLimits
) -> GuardedOutput:
    """Bring one result within all limits, in a thread if there is anything to cut.

    `spill` is the path for the full copy if something is cut; a copy that the tool has written
    itself (`output.full`) is used as it is, and removed if nothing is cut. The raw output is
    measured. Content under every limit is returned as it is.
    """
    result = _Result(output, keep, spill, limits)
    most, config = limits.bytes_of(tool), limits.config
    small = result.size <= min(most, config.clamp_bytes, limits.share_tokens, CAP_CHARS)
    if output.full is None and small and result.lines <= config.clamp_lines and result.whole(most):
        return GuardedOutput(output.content, None)
    return await asyncio.to_thread(result.cut, most)


async def interrupted_receipt(
    output: ToolOutput, shown: str, *, spill: Path, limits: GuardLimits
) -> Receipt | None:
    """Return the receipt of a call that was interrupted: the model gets `shown` and nothing else.

    The full copy holds everything that the tool had put out. None if that was nothing.
    """
    result = _Result(output, "head", spill, limits)
    raw = output.raw or RawOutput(result.size, result.lines)
    return await asyncio.to_thread(result.receipt, [shown], raw, ("spill",)) if raw.bytes else None


@dataclass
class _Result:
    """One result on its way; `size` and `lines` are of its texts."""

    output: ToolOutput
    keep: Keep
    spill: Path
    limits: GuardLimits

    def __post_init__(self) -> None:
        blocks = (block for block in self.output.content if block.get("type") == "text")
        self.texts = [str(block.get("text", "")) for block in blocks]
        self.size = sum(map(byte_length, self.texts))
        self.lines = sum(map(line_count, self.texts))

    def whole(self, most: int) -> bool:
        """True if the content is all there was, or a cleaner rendition of not too much."""
        raw = self.output.raw
        return raw is None or not (raw.partial or raw.overwritten or raw.bytes > most)

    def cut(self, spill_over: int) -> GuardedOutput:
        """Apply each stage that is needed; the first if there are more than `spill_over` bytes."""
        output, texts, limits = self.output, self.texts, self.limits
        stages: list[Stage] = []
        copy = self._copy()
        raw = output.raw or RawOutput(self.size, self.lines)
        if output.raw is None and copy is not None:
            raw = RawOutput(copy.bytes, copy.lines, partial=True)
        shown: Sequence[str] = texts
        if texts and (raw.partial or raw.bytes > spill_over):
            copy = copy or self._write()
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
                    ends=self.keep == "ends",
                )
            ]
        elif texts and raw.overwritten:
            copy = copy or self._write()
            *before, last = texts
            shown = [*before, f"{last}\n{spilling.overwritten_notice(copy, raw.overwritten)}"]
        shown, more = self._within(shown, "head" if stages else self.keep)
        # The notices of the clamp and the share name no file.
        if more and not stages and not raw.overwritten:
            copy = copy or self._write()
            shown = self._naming(copy, more)
        stages += more
        if not stages and not raw.overwritten:
            if output.full is not None:
                output.full.unlink(missing_ok=True)
            return GuardedOutput(output.content, None)
        receipt = self.receipt(shown, raw, tuple(stages), copy)
        return GuardedOutput(_replaced(output.content, shown), receipt)

    def _within(
        self, texts: Sequence[str], keep: Keep, *, reserved: int = 0
    ) -> tuple[Sequence[str], list[Stage]]:
        """Cut the texts to the clamp, less that many bytes and a line, and to the token share.
        Returns the stages that cut. Of a spilled output, the important part comes first."""
        config = self.limits.config
        room = Room(config.clamp_bytes - reserved, config.clamp_lines - bool(reserved))
        clamped = cap_chars(clamp(texts, room, keep), CAP_CHARS - reserved)
        shared = share(clamped, self.limits.share_tokens, keep)
        cut: dict[Stage, bool] = {"clamp": clamped is not texts, "share": shared is not clamped}
        return shared, [stage for stage, was in cut.items() if was]

    def _naming(self, copy: FullCopy, stages: Sequence[Stage]) -> Sequence[str]:
        """Return the cut texts with a line that names the full copy; without it if there is no
        room."""
        line = f"\n[{spilling.where(copy)}]"
        reserved = byte_length(line) if "clamp" in stages else 0
        *before, last = self._within(self.texts, self.keep, reserved=reserved)[0]
        named = [*before, f"{last}{line}"]
        most = self.limits.share_tokens
        fits = sum(map(byte_length, named)) <= most or sum(map(tokenizer.count, named)) <= most
        return named if fits else self._within(self.texts, self.keep)[0]

    def receipt(
        self,
        shown: Sequence[str],
        raw: RawOutput,
        stages: tuple[Stage, ...],
        copy: FullCopy | None = None,
    ) -> Receipt:
        """Return the receipt for what was cut. Writes the full copy if there is none yet.

        Tokens are counted where they decided on the cut. Elsewhere they are estimated: nothing
        depends on them, and a tokenizer takes a tenth of a second and 40 MB.
        """
        copy = copy or self._copy() or self._write()
        count = tokenizer.count if "share" in stages else estimate.tokens
        tokens = sum(map(count, shown))
        lines = copy.lines if copy.bytes == raw.bytes else raw.lines  # some may not have been read
        return Receipt(
            stages=stages,
            total=Size(raw.bytes, lines, self._tokens(raw, copy, count)),
            shown=Size(sum(map(byte_length, shown)), sum(map(line_count, shown)), tokens),
            kept=self.keep,
            path=copy.path,
            sha256=copy.sha256,
            bytes_kept=copy.bytes,
            overwritten=raw.overwritten,
        )

    def _write(self) -> FullCopy:
        """Write the full copy: the raw bytes if they are in memory, otherwise the text."""
        data = self.output.raw.data if self.output.raw else None
        data = encode(joined(self.texts)) if data is None else data
        return spilling.write_copy(data, self.spill, self.limits.config)

    def _copy(self) -> FullCopy | None:
        """Return the full copy that the tool has made, or could not make; None if it has not
        tried."""
        raw = self.output.raw
        lost = raw.lost if raw else ""
        if self.output.full is not None:
            copy = spilling.copy_on_disk(self.output.full, raw)
            if lost and copy.path:
                some = f"only the first {spilling.human_size(copy.bytes)}"
                saved = f"{some} are in {text_of_path(copy.path)}"
                return replace(copy, error=f"{saved}: {lost}")
            return copy
        at_hand = (
            raw is None or raw.data is not None or (self.texts and not raw.partial and not lost)
        )
        return None if at_hand else FullCopy(error=lost or "reason unknown")

    def _tokens(self, raw: RawOutput, copy: FullCopy, count: Callable[[str], int]) -> int:
        """Return the tokens of the raw output. Above 2 MB by those of the part that is in
        memory."""
        if raw.data is not None:
            return count(raw.data.decode(errors="replace"))
        if raw.bytes != self.size and copy.path and raw.bytes == copy.bytes <= cl100k.SAMPLE_CHARS:
            with suppress(OSError):
                return count(copy.path.read_bytes().decode(errors="replace"))
        held = sum(map(count, self.texts))
        return held if raw.bytes == self.size else held * raw.bytes // max(1, self.size)


def _replaced(content: Sequence[Block], texts: Sequence[str]) -> list[Block]:
    """Replace the text blocks of the content in order; other blocks stay in their place.

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

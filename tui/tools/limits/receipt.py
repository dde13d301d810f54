"""The receipt: one for every cut, from which notice, badge and pane take their figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

from tui.core.dataclass import dataclass

Stage: TypeAlias = Literal["spill", "clamp", "share"]
Keep: TypeAlias = Literal["head", "ends"]
"""The part of a long output that matters: the beginning, or both ends."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a text: bytes of UTF-8, lines (a final newline is no extra line), tokens."""

    bytes: int
    lines: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """A cut: the stages that made it, the sizes, and the place of the full copy.

    `total` is the tool's raw output, `shown` what the model gets, notices included; `kept` is the
    part that was kept. `path`, `sha256` and `bytes_kept` are of the full copy: None, None and 0 if
    there is none. It has fewer bytes than the total if the disk took no more, and more if it has
    lines that separate several blocks. `overwritten` counts the bytes left out because carriage
    returns replaced them, as in progress bars: no stage, but a cut as well.
    """

    stages: tuple[Stage, ...]
    total: Size
    shown: Size
    kept: Keep
    path: Path | None
    sha256: str | None
    bytes_kept: int = 0
    overwritten: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the receipt as it is recorded and printed; `overwritten` only if it is not 0."""
        return {
            "stages": list(self.stages),
            "bytes_total": self.total.bytes,
            "bytes_shown": self.shown.bytes,
            "lines_total": self.total.lines,
            "lines_shown": self.shown.lines,
            "tokens_total": self.total.tokens,
            "tokens_shown": self.shown.tokens,
            "kept": self.kept,
            "path": str(self.path) if self.path else None,
            "sha256": self.sha256,
            "bytes_kept": self.bytes_kept,
            **({"overwritten": self.overwritten} if self.overwritten else {}),
        }

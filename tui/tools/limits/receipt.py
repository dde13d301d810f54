"""The receipt: one for every cut; notice, badge and pane are drawn from it (decision 25)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

Stage: TypeAlias = Literal["spill", "clamp", "share"]
Keep: TypeAlias = Literal["head", "ends"]


@dataclass(frozen=True, slots=True)
class Size:
    """How much text: bytes of UTF-8, lines (a final newline is no extra line), tokens."""

    bytes: int
    lines: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was cut, by which stages, and where the whole is.

    `total` is the tool's raw output, `shown` what the model gets, notices included. `path`,
    `sha256` and `bytes_kept` are of the full copy: None, None and 0 where there is none. Fewer
    bytes than the total are kept where the disk did not take more (L29); more, where the file
    has lines that tell several blocks apart. `overwritten` is how many bytes are left out since
    they were written over on their line, as progress bars are: no stage, and a cut all the same.
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
        """INTERFACE's shape, and `overwritten` where it is not 0."""
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

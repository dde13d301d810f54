"""How wide the side is and whether it is open, kept from one run to the next."""

from __future__ import annotations

import json
import logging
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

log = logging.getLogger(__name__)

NARROWEST, WIDEST = 0.2, 0.75


@dataclass(frozen=True, slots=True)
class Layout:
    """`side` is the share of the screen's width that output and context get."""

    side: float = 0.44
    open: bool = True

    def resized(self, side: float) -> Layout:
        """The same with another width, as far as that is sensible."""
        return Layout(max(NARROWEST, min(WIDEST, side)), open=True)


def load(path: Path) -> Layout:
    """What was kept; the usual layout where nothing was, or nothing that can be read."""
    try:
        found: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return Layout()
    data = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    side, shown = data.get("side"), data.get("open")
    layout = Layout(open=shown if isinstance(shown, bool) else True)
    if isinstance(side, float) and NARROWEST <= side <= WIDEST:
        layout = Layout(side, layout.open)
    return layout


def save(path: Path, layout: Layout) -> None:
    """Keep a layout. Where that fails the next run has the usual one."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new.write_text(json.dumps(asdict(layout)))
        new.replace(path)
    except OSError:
        log.debug("the layout could not be kept", exc_info=True)
        with suppress(OSError):
            new.unlink()

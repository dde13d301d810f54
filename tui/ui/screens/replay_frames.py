"""A terminal's recording (asciicast, version 2) as the screens that it showed, with their times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

from tui.core.dataclass import dataclass, replace
from tui.core.errors import UsageError
from tui.core.messages import list_of, object_of, string_of
from tui.core.terminal_screen import TerminalScreen
from tui.keeper.emulator import Emulator

IDLE_S: Final = 2.0
"""The longest time in which nothing happens that a replay waits."""
_STEP_S: Final = 0.05
_FRAMES_MAX: Final = 10_000
_BYTES_MAX: Final = 64 * 1024 * 1024
_SIZE_MAX: Final = (200, 500)


@dataclass(frozen=True, slots=True)
class ReplayFrame:
    """A screen, the second at which it is played, the second at which it was there, and what was
    noted then: input of the model, or who had the keyboard."""

    at: float
    since: float
    screen: TerminalScreen
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Event:
    since: float
    kind: str
    text: str


def frames_of(path: Path) -> Iterator[ReplayFrame]:
    """Yield the frames of a recording, one after the other; lines that can't be read are left out.
    Blocks. Raises OSError, and UsageError for a file that is no recording."""
    with path.open("rb") as file:
        header, *lines = file.read(_BYTES_MAX).splitlines() or [b""]
    rows, cols = _size_of(header)
    events = [one for line in lines if (one := _event(line)) is not None]
    step = max(_STEP_S, (events[-1].since if events else 0.0) / _FRAMES_MAX)
    emulator, played, before = Emulator(rows, cols), 0.0, 0.0
    shown = TerminalScreen.of_json(emulator.data())
    yield ReplayFrame(0.0, 0.0, shown)
    for number, event in enumerate(events):
        note = ""
        match event.kind:
            case "o":
                emulator.feed(event.text)
            case "r":
                with suppress(ValueError):
                    cols, rows = (int(one) for one in event.text.split("x"))
                    emulator.resize(*_bounded(rows, cols))
            case "m" | "i":
                note = event.text if event.kind == "m" else f"typed {event.text!r}"
            case _:
                continue
        last = number + 1 == len(events)
        if note or last or events[number + 1].since - before >= step:
            played += min(event.since - before, IDLE_S)
            before = event.since
            now = TerminalScreen.of_json(emulator.data())
            shown = replace(now, lines=_shared(shown.lines, now.lines))
            yield ReplayFrame(played, event.since, shown, note)


def _shared(before: tuple[Any, ...], now: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return lines; those that haven't changed are the same objects as before."""
    same = zip(before, now, strict=False)
    kept = tuple(old if old == new else new for old, new in same)
    return (*kept, *now[len(kept) :])


def _size_of(header: bytes) -> tuple[int, int]:
    with suppress(ValueError):
        data = object_of(json.loads(header))
        rows, cols = data.get("height"), data.get("width")
        if data.get("version") == 2 and isinstance(rows, int) and isinstance(cols, int):
            return _bounded(rows, cols)
    raise UsageError("This file is no recording of a terminal.", hint="It has no asciicast header.")


def _bounded(rows: int, cols: int) -> tuple[int, int]:
    return max(1, min(rows, _SIZE_MAX[0])), max(1, min(cols, _SIZE_MAX[1]))


def _event(line: bytes) -> _Event | None:
    with suppress(ValueError):
        fields = list_of(cast("object", json.loads(line)))
        since = fields[0] if len(fields) == 3 else None
        if isinstance(since, int | float) and since >= 0:
            return _Event(float(since), string_of(fields[1]), string_of(fields[2]))
    return None

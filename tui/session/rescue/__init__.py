"""Other agents' sessions mended in their own format: bytes to bytes and a report. No I/O here.

    rescue(data, name)   a mended copy, what was done to it, and what had to be set aside

Lines that are sound stay as they are, byte by byte, whatever their type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tui.core.gc_pause import gc_pause
from tui.session.importers import claude_code, codex, pi
from tui.session.jsonl import JsonObject
from tui.session.rescue import calls, trees
from tui.session.rescue.lines import MendedLine, Repairs, mended_lines

RescueFormat: TypeAlias = Literal["claude_code", "codex", "pi"]

_MATCHES: Mapping[RescueFormat, Callable[[JsonObject], bool]] = {
    "codex": codex.matches,
    "claude_code": claude_code.matches,
    "pi": pi.matches,
}


@dataclass(frozen=True, slots=True)
class Rescued:
    """A mended session. `set_aside` holds the original bytes of all that is not in `data` as it
    was, one piece a line."""

    format: RescueFormat
    data: bytes
    repairs: tuple[str, ...]
    set_aside: bytes


def format_of(lines: list[MendedLine]) -> RescueFormat | None:
    """The format most of the records have."""
    votes: dict[RescueFormat, int] = {}
    names: tuple[RescueFormat, ...] = ("codex", "claude_code", "pi")
    for line in lines:
        for name in names:
            if _MATCHES[name](line.value):
                votes[name] = votes.get(name, 0) + 1
                break
    return max(votes, key=lambda name: votes[name]) if votes else None


def rescue(data: bytes, name: str = "") -> Rescued | None:
    """The session, mended; None if no record of a known format is in it.

    A sound session comes back unchanged, with no repairs. `name` is the name of its file, which
    has the session's id in it where that is lost in the file.
    """
    with gc_pause():
        return _rescued(data, name)


def _rescued(data: bytes, name: str) -> Rescued | None:
    repairs = Repairs()
    lines = mended_lines(data, repairs)
    found = format_of(lines)
    if found is None:
        return None
    if found == "claude_code":
        lines = calls.sound_messages(lines, repairs)
    lines = trees.repair(found, lines, repairs, name)
    if found == "claude_code":
        lines = calls.paired(lines, repairs)
    out = b"".join(line.raw for line in lines) if repairs.said else data
    aside = b"".join(piece.rstrip(b"\n") + b"\n" for piece in repairs.set_aside)
    return Rescued(found, out, tuple(repairs.said), aside)

"""Other agents' sessions mended in their own format: bytes to bytes and a report.

    rescue(data, name)              a mended copy, what was done to it, and what was set aside
    rescue_database(source, copy)   the same of opencode's database, in a file: the only I/O here

Lines that are sound stay as they are, byte by byte, whatever their type.
"""

from __future__ import annotations

from collections import Counter

from tui.core.dataclass import dataclass
from tui.core.gc_pause import gc_pause
from tui.session.formats import MEND, LineFormat, format_of
from tui.session.formats.lines import Repairs, mended_lines
from tui.session.formats.opencode.mending import RescuedDatabase, rescue_database
from tui.session.formats.opencode.store import MAGIC

__all__ = ["MAGIC", "Rescued", "RescuedDatabase", "rescue", "rescue_database"]


@dataclass(frozen=True, slots=True)
class Rescued:
    """A mended session. `set_aside` holds the original bytes of all that is not in `data` as it
    was, one piece a line."""

    format: LineFormat
    data: bytes
    repairs: tuple[str, ...]
    set_aside: bytes


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
    votes = Counter[LineFormat](found for line in lines if (found := format_of(line.value)))
    if not votes:
        return None
    format_ = votes.most_common(1)[0][0]
    lines = MEND[format_](lines, repairs, name)
    out = b"".join(line.raw for line in lines) if repairs.said else data
    aside = b"".join(piece.rstrip(b"\n") + b"\n" for piece in repairs.set_aside)
    return Rescued(format_, out, tuple(repairs.said), aside)

"""The lines between a desk and the Holdfast on another machine, over the stdin and stdout of ssh.

The far side begins with `MARKER`, for shells print what they like before, and its `Greeting`; the
desk answers with its own. From then on a line is one JSON object, either way. A session's lines
(`tui.app.door.lines`) are numbered by their channel and carried as they are: in a `ChannelLine`, or
in pieces, each of them a `LinePiece` with so many bytes after it. Pieces are counted by who gets
them (`PiecesReceived`), so that no more are on their way than the line carries in a moment, and
what is short and urgent isn't behind them.

A line that holds no object is noise of some other program there, and means nothing.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from tui.app.door import lines
from tui.core.errors import HoldfastError
from tui.desk.host import DeskRow

FAR_PROTOCOL: Final = 1
"""The number of this protocol. It changes where an older program would misread a line."""

MARKER: Final = b"HOLDFAST SERVES "
CONTROL: Final = 0
"""The channel of messages that are about no session."""


class BrokenLineError(HoldfastError):
    """A message came over the line that is none of these."""


class _FarLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class Greeting(_FarLine, frozen=True, tag="greeting"):
    """The first line of either side: its protocols, version, and where it is."""

    protocol: int = FAR_PROTOCOL
    lines: int = lines.PROTOCOL
    version: str = ""
    machine: str = ""
    home: str = ""
    pid: int = 0


class ChangedRows(_FarLine, frozen=True, tag="rows"):
    """The rows that are new or other than before, and the ids of those that are gone; the first
    of a line has the ids of all in `every`. `problem` is the far machine's own, as for
    `DeskHost`."""

    rows: tuple[DeskRow, ...] = ()
    gone: tuple[str, ...] = ()
    every: tuple[str, ...] | None = None
    problem: str = ""


class OpenChannel(_FarLine, frozen=True, tag="open"):
    """Open a session's lines as the channel `channel`, a number above all before."""

    channel: int
    session: str


class ChannelOpened(_FarLine, frozen=True, tag="opened"):
    """The channel is open."""

    channel: int


class ChannelClosed(_FarLine, frozen=True, tag="closed"):
    """The channel is closed, by either side. `reason` says why, where it isn't over."""

    channel: int
    reason: str = ""
    hint: str = ""


class ChannelLine(_FarLine, frozen=True, tag="line"):
    """A line of a channel."""

    channel: int
    line: msgspec.Raw


class LinePiece(_FarLine, frozen=True, tag="piece"):
    """A piece of a channel's line; its `size` bytes follow, with this checksum, for other programs
    there may print in between. With `last` the line is whole."""

    channel: int
    size: int
    crc: int
    last: bool = False


class PiecesReceived(_FarLine, frozen=True, tag="received"):
    """The bytes of all pieces that have come."""

    size: int


class StartSession(_FarLine, frozen=True, tag="start"):
    """Start a session in the background."""

    number: int
    cwd: str
    prompt: str


class StartOutcome(_FarLine, frozen=True, tag="started"):
    """It was started, or was not, as `reason` says."""

    number: int
    session: str = ""
    reason: str = ""
    hint: str = ""


class DismissSession(_FarLine, frozen=True, tag="dismiss"):
    """Somebody has seen how a session ended."""

    session: str


class Heartbeat(_FarLine, frozen=True, tag="beat"):
    """This side is there."""


FarLine: TypeAlias = (
    Greeting
    | ChangedRows
    | OpenChannel
    | ChannelOpened
    | ChannelClosed
    | ChannelLine
    | LinePiece
    | PiecesReceived
    | StartSession
    | StartOutcome
    | DismissSession
    | Heartbeat
)

_ENCODER: Final = msgspec.json.Encoder(enc_hook=str)
_DECODER: Final = msgspec.json.Decoder(FarLine, dec_hook=lambda kind, value: kind(value))
_TYPES: Final = frozenset(
    str(kind.__struct_config__.tag) for kind in FarLine.__args__ if issubclass(kind, _FarLine)
)


class _Typed(msgspec.Struct):
    type: str = ""


def far_line_of(message: FarLine) -> bytes:
    """The line of a message, with its newline."""
    return _ENCODER.encode(message) + b"\n"


def far_message_of(line: bytes) -> FarLine | None:
    """The message of a line; None for noise, and for a kind that only a later program knows.
    Raises BrokenLineError."""
    if b"{" not in line:
        return None
    try:
        return _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        if _of_later_kind(line):
            return None
        raise BrokenLineError(f"A line can't be read: {error}.") from error


def _of_later_kind(line: bytes) -> bool:
    try:
        kind = msgspec.json.decode(line, type=_Typed).type
    except (ValueError, RecursionError):
        return False
    return bool(kind) and kind not in _TYPES

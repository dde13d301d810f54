"""Scripts: the practice model's turns, written down in a TOML file.

    [[turn]]
    thinking = "…"
    text = "I'll look."
    tools = [{name = "read_file", input = {path = "README.md"}}]
    delay_s = 0.0
    usage = {input_tokens = 1200, output_tokens = 30}
    stop_reason = "end_turn"
    faults = [{status = 429, retry_after = 3}, {cut_after = 20}]

Every key is optional. A turn is played for one request; each of its faults first takes an attempt
at that request (`bad_json` ends the request: the turn is then played for the next one; after
`slow_s` the turn itself follows at once). An exhausted script is an error.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tui.core.errors import UsageError
from tui.core.files import read_small
from tui.core.toml_files import parse_toml

_LIMIT = 10_000_000

_Count = Annotated[int, msgspec.Meta(ge=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class ToolUse(_Part, frozen=True, kw_only=True):
    """A tool call of a turn. The tool need not exist."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    input: dict[str, Any] = {}


class UsageFigures(_Part, frozen=True, kw_only=True):
    """Usage figures that replace the counted ones."""

    input_tokens: _Count = 0
    output_tokens: _Count = 0
    cache_creation_input_tokens: _Count = 0
    cache_read_input_tokens: _Count = 0


class Fault(_Part, frozen=True, kw_only=True):
    """One fault: exactly one of the first seven fields is set.

    `status` is an HTTP answer, with `retry_after` seconds, the server's `message` and error `type`,
    or instead the title of an `html` page. `cut_after` and `eof_after` end the stream after this
    many characters, by a lost connection and without the closing event; `stall_s` is a silence that
    ends in a timeout, `slow_s` one that ends well; `bad_json` breaks the input of the last tool
    call. `after` delays a status, a stall or an overflow by that many characters, into mid-stream.

    `overflow` says that the prompt is too long: `true` once, `"until_smaller"` as long as the
    request is not smaller than the first one, `"max_tokens"` as long as its `max_tokens` is not
    lower.
    """

    status: Annotated[int, msgspec.Meta(ge=200, le=599)] | None = None
    cut_after: _Count | None = None
    eof_after: _Count | None = None
    stall_s: _Seconds | None = None
    slow_s: _Seconds | None = None
    overflow: bool | Literal["until_smaller", "max_tokens"] = False
    bad_json: bool = False
    retry_after: _Seconds | None = None
    message: str | None = None
    type: str | None = None
    html: str | None = None
    after: _Count = 0

    def __post_init__(self) -> None:
        named = (self.status, self.cut_after, self.eof_after, self.stall_s, self.slow_s)
        kinds = sum(value is not None for value in named) + bool(self.overflow) + self.bad_json
        if kinds != 1:
            raise ValueError(
                "a fault is exactly one of status, cut_after, eof_after, stall_s, slow_s, "
                "overflow, bad_json"
            )
        if self.status is None:
            for name in ("retry_after", "message", "type", "html"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} goes with status")
        elif self.status < 400 and self.html is None:
            raise ValueError("a status below 400 needs an html page to be a fault")


class ScriptedTurn(_Part, frozen=True, kw_only=True):
    """The answer to one request."""

    thinking: str = ""
    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    delay_s: _Seconds = 0.0
    usage: UsageFigures | None = None
    stop_reason: str | None = None
    faults: tuple[Fault, ...] = ()


class Script(_Part, frozen=True, kw_only=True):
    """A whole script. `name` is for messages."""

    turn: tuple[ScriptedTurn, ...] = ()
    name: str = "script"


def read_script(path: Path) -> Script:
    """Read a script. Raises UsageError that names the file, the turn and the key."""
    try:
        data, _ = read_small(path, limit=_LIMIT)
        source = parse_toml(data.decode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise UsageError(f"{path}: not a TOML file: {error}.") from error
    if unknown := sorted(set(source) - {"turn"}):
        raise UsageError(f"{path}: {unknown[0]}: unknown key.", hint="A script is [[turn]] tables.")
    try:
        # Dates become strings: the input of a tool is JSON.
        script = msgspec.convert(msgspec.to_builtins(source), Script)
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {_where(str(error))}") from error
    if not script.turn:
        raise UsageError(f"{path}: there is no turn.", hint="Write at least one [[turn]] table.")
    return msgspec.structs.replace(script, name=str(path))


def _where(message: str) -> str:
    """Rephrase `Expected … - at `$.turn[1].text`` as `turn 2, text: Expected …`."""
    text, _, path = message.partition(" - at ")
    place = re.fullmatch(r"`\$\.turn(?:\[(\d+|\.{3})\])?\.?(.*)`", path)
    if place is None:
        return f"{text}."
    number, key = place.groups()
    turn = f"turn {int(number) + 1}" if number and number.isdigit() else "turn"
    return f"{turn}{', ' if key else ''}{key}: {text}."

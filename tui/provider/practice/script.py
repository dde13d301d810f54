"""Scripts: the practice model's turns, written down in a TOML file.

    [[turn]]
    thinking = "…"
    text = "I'll look."
    tools = [{name = "read_file", input = {path = "README.md"}}]
    delay_s = 0.0
    usage = {input_tokens = 1200, output_tokens = 30}
    stop_reason = "end_turn"
    faults = [{status = 429, retry_after = 3}, {cut_after = 20}]

Every key is optional. A turn is played for one request; each of its faults takes an attempt at
that request first (`bad_json` ends the request: the turn is then played for the next one; after
`slow_s` the turn itself follows at once). An exhausted script is an error. The faults and their
fields stand in `tui.provider.practice.fault.Fault`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tui import tokens
from tui.clock import Clock
from tui.errors import ProviderError, UsageError
from tui.messages import Usage
from tui.provider.base import ModelInfo, Request, StreamPart
from tui.provider.practice.answer import WINDOW, Answer, Call, count_input, model_info, stream
from tui.provider.practice.fault import Fault, Seconds
from tui.provider.practice.faults import Faults, inject
from tui.storage.files import read_small

_LIMIT = 10_000_000

_Count = Annotated[int, msgspec.Meta(ge=0)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class ToolUse(_Part, frozen=True, kw_only=True):
    """A tool call of a turn. The tool need not exist."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    input: dict[str, Any] = {}


class Figures(_Part, frozen=True, kw_only=True):
    """Usage figures in the place of counted ones."""

    input_tokens: _Count = 0
    output_tokens: _Count = 0
    cache_creation_input_tokens: _Count = 0
    cache_read_input_tokens: _Count = 0


class ScriptTurn(_Part, frozen=True, kw_only=True):
    """The answer to one request."""

    thinking: str = ""
    text: str = ""
    tools: tuple[ToolUse, ...] = ()
    delay_s: Seconds = 0.0
    usage: Figures | None = None
    stop_reason: str | None = None
    faults: tuple[Fault, ...] = ()

    def answer(self) -> Answer:
        return Answer(
            text=self.text,
            thinking=self.thinking,
            calls=tuple(Call(tool.name, tool.input) for tool in self.tools),
            stop_reason=self.stop_reason,
            usage=Usage(**msgspec.structs.asdict(self.usage)) if self.usage else None,
        )


class Script(_Part, frozen=True, kw_only=True):
    """A whole script. `name` is for messages."""

    turn: tuple[ScriptTurn, ...] = ()
    name: str = "script"


def read_script(path: Path) -> Script:
    """Read a script. Raises UsageError that names the file, the turn and the key."""
    try:
        data, _ = read_small(path, limit=_LIMIT)
        source = tomllib.loads(data.decode())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}.") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}.") from error
    except RecursionError as error:
        raise UsageError(f"{path}: nested too deeply.") from error
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
    """`Expected … - at `$.turn[1].text`` as `turn 2, text: Expected …`."""
    text, _, path = message.partition(" - at ")
    found = re.fullmatch(r"`\$\.turn(?:\[(\d+|\.{3})\])?\.?(.*)`", path)
    if found is None:
        return f"{text}."
    number, key = found.groups()
    turn = f"turn {int(number) + 1}" if number and number.isdigit() else "turn"
    return f"{turn}{', ' if key else ''}{key}: {text}."


class ScriptedModel:
    """A provider that replays a script, turn by turn, whatever it is asked.

    `window` and `delay_s` (between deltas) are as for the practice model. Answers are never cut.
    """

    def __init__(
        self, script: Script, clock: Clock, *, delay_s: float = 0.0, window: int = WINDOW
    ) -> None:
        self._script = script
        self._clock = clock
        self._delay_s = delay_s
        self._window = window
        self._next = 0
        self._faults: Faults | None = None

    @property
    def remaining(self) -> int:
        """How many turns have not been played."""
        return len(self._script.turn) - self._next

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:
        if not self.remaining:
            raise ProviderError(
                "unknown",
                f"The practice script {self._script.name} has no turn left: it has "
                f"{len(self._script.turn)} and one more was asked for.",
                hint="Add a [[turn]] to the script.",
            )
        turn = self._script.turn[self._next]
        parts = stream(
            turn.answer(),
            request,
            clock=self._clock,
            delay_s=self._delay_s,
            first_delay_s=turn.delay_s,
            window=self._window,
            max_output=None,
        )
        self._faults = self._faults or Faults(turn.faults)
        if (fault := await self._faults.take(request)) is not None:
            parts = inject(fault, parts, request, self._clock, window=self._window)
            if fault.slow_s is not None:
                self._turn_over()
        else:
            self._turn_over()
        async with aclosing(parts):
            async for part in parts:
                yield part

    def _turn_over(self) -> None:
        self._next += 1
        self._faults = None

    async def count_tokens(self, request: Request) -> int:
        return await count_input(request)

    async def load(self) -> None:
        """Get the token counter ready, which every answer needs."""
        await tokens.load()

    async def model_info(self, model: str) -> ModelInfo:
        return model_info(model, self._window)

    async def aclose(self) -> None:
        """Nothing is held open."""

"""A prompt that is to be repeated, as it is typed (/every) and as a session's record has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tui.app.commands import find, split
from tui.app.commands.goal import goal_options, goal_prompt, seconds_of
from tui.core.dataclass import dataclass
from tui.core.errors import UsageError
from tui.core.messages import string_of
from tui.session.records import EVERY, Record, is_prompt

LEAST_S: Final = 10.0
"""Seconds of the shortest interval."""
OVER: Final = "over"
"""In the record, in the place of the command: it is repeated no more."""


@dataclass(frozen=True, slots=True)
class RepeatWish:
    """A prompt that is to be repeated every `interval_s` seconds: at most `runs` times, until it
    has cost `usd`, for so many `seconds`; None for the configured limit, `usd` 0 for none. `typed`
    is the whole command."""

    prompt: str
    interval_s: float
    typed: str
    runs: int | None = None
    usd: float | None = None
    seconds: float | None = None


def named(text: str, name: str) -> str | None:
    """The argument of a typed command of this name; None for any other text."""
    words = split(text.strip())
    command = find(words[0]) if words else None
    return words[1] if words and command is not None and command.name == name else None


def check_prompt(text: str) -> None:
    """Raises UsageError for a prompt that a background session can't work on: a /goal or /every
    that is wrong."""
    if named(text, "goal") is not None:
        goal_prompt(text)
    repeat_wish(text)


def repeat_wish(text: str) -> RepeatWish | None:
    """Return what a text repeats; None if it isn't /every. Raises UsageError."""
    argument = named(text, "every")
    return None if argument is None else read_repetition(argument)


def read_repetition(argument: str) -> RepeatWish:
    """Read `[OPTIONS] 10m [OPTIONS] PROMPT`. Raises UsageError."""
    before = goal_options(argument)
    interval, *others = before.rest.split(maxsplit=1) or [""]
    seconds, after = seconds_of(interval), goal_options("".join(others))
    prompt = after.rest
    hint = "Such as: /every 10m look for new issues"
    if math.isnan(seconds) or seconds < LEAST_S:
        least = f"a time of at least {LEAST_S:.0f}s, such as 10m or 2h"
        raise UsageError(f"/every takes {least}, not {interval!r}.", hint=hint)
    if not prompt:
        raise UsageError("No prompt given to repeat.", hint=hint)
    if named(prompt, "every") is not None:
        raise UsageError("A repeated prompt can't repeat another one.")
    check_prompt(prompt)
    return RepeatWish(
        prompt,
        seconds,
        f"/every {argument}",
        runs=before.rounds if after.rounds is None else after.rounds,
        usd=before.usd if after.usd is None else after.usd,
        seconds=before.seconds if after.seconds is None else after.seconds,
    )


def cut_off(records: Sequence[Record]) -> RepeatWish | None:
    """Return what a session repeated until its process ended; None if nothing, if it was to end, or
    if a person has sent a prompt since."""
    for record in reversed(records):
        if is_prompt(record) and record.data.get("by") != EVERY:
            return None
        if record.type == "note" and (typed := string_of(record.data.get("every"))):
            try:
                return repeat_wish(typed)
            except UsageError:
                return None
    return None

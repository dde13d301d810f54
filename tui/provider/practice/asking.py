"""What the steps share: asking for a call, and wording what came back."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from tui.provider.practice.answer import Call
from tui.provider.practice.dialogue import Outcome
from tui.provider.practice.steps import code

Work: TypeAlias = Generator["str | tuple[Call, ...]", tuple[Outcome, ...], None]
"""Yields text to say, or calls; is sent the outcomes of the calls."""

Asking: TypeAlias = Generator["str | tuple[Call, ...]", tuple[Outcome, ...], Outcome]

SHOWN = 8
"""How many items of a list are shown."""


def say(text: str) -> Work:
    yield text


def ask(name: str, **arguments: Any) -> Asking:
    """One call and its outcome. Arguments that are None are left out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    (outcome,) = yield (Call(name, given),)
    return outcome


def must_be_read(outcome: Outcome) -> bool:
    return "has not been read" in outcome.text or "since it was last read" in outcome.text


def is_missing(outcome: Outcome) -> bool:
    """Whether a file or folder was not there."""
    lower = outcome.text.lower()
    return any(words in lower for words in ("does not exist", "no such file", "there is no file"))


def first_line(outcome: Outcome) -> str:
    """The first line of a result, as a sentence."""
    line = next(
        (line.strip() for line in outcome.text.splitlines() if line.strip()), "no reason given"
    )
    line = line if len(line) <= 300 else line[:299] + "…"
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def bullets(names: Sequence[str], limit: int = 12) -> str:
    more = [f"- … and {len(names) - limit} more"] if len(names) > limit else []
    return "\n".join([*(f"- {code(name)}" for name in names[:limit]), *more])


def place(path: str) -> str:
    return "this folder" if path == "." else code(path)


def joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"

"""The directives /think, /verbose and /elevated: how they are read and what they switch.

They are recognised only at the start of what a person typed (K30, K33); everything else stays as
it was, byte for byte.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, cast

log = logging.getLogger(__name__)

_LEADING = re.compile(
    r"\s*/(think|verbose|elevated)(?=\s|$)(?:[ \t]+(on|off)(?=\s|$))?", re.IGNORECASE
)

THINK_PROMPT = (
    "Think step-by-step. Show your reasoning process explicitly before taking action. "
    "Consider edge cases, alternative approaches, and potential issues. "
    "When analyzing code, read related files to understand full context."
)
"""K34's literal text."""


@dataclass(frozen=True, slots=True)
class Directives:
    """Which directives are on."""

    think: bool = False
    verbose: bool = False
    elevated: bool = False

    def to_json(self) -> dict[str, bool]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def with_changes(self, changes: Mapping[str, bool]) -> Directives:
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A typed message: the switches it began with, and the text that remains."""

    text: str
    changes: dict[str, bool] = field(default_factory=dict[str, bool])


def parse(typed: str) -> Parsed:
    """Take the leading directives off a typed message. `/think off` switches off (K29)."""
    changes: dict[str, bool] = {}
    end = 0
    while found := _LEADING.match(typed, end):
        changes[found[1].lower()] = (found[2] or "on").lower() == "on"
        end = found.end()
    return Parsed(typed[end:].lstrip() if changes else typed, changes)


def permissions(directives: Directives) -> dict[str, bool]:
    """What elevated means for a tool call (K43)."""
    on = directives.elevated
    return {
        "auto_approve": on,
        "restrict_to_workspace": not on,
        "allow_high_risk": on,
    }


def acknowledgement(changes: dict[str, bool]) -> str:
    """One line for the person about what was switched (K32)."""
    words = {
        ("think", True): "think is on: the model is asked to reason before it acts",
        ("think", False): "think is off",
        ("verbose", True): "verbose is on: every decision is shown",
        ("verbose", False): "verbose is off",
        ("elevated", True): (
            "ELEVATED is on: nothing is asked any more; blocked commands stay blocked"
        ),
        ("elevated", False): "elevated is off: writes and commands are asked for again",
    }
    return " · ".join(words[name, value] for name, value in changes.items())


def from_json(value: Any) -> Directives:
    """Directives from a record. Anything odd counts as off, and is logged (K44)."""
    known = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    found = {f.name: known.get(f.name) for f in fields(Directives)}
    if odd := [name for name, on in found.items() if not isinstance(on, bool)]:
        log.warning("the record's directives are damaged (%s); they count as off", ", ".join(odd))
    return Directives(**{name: on is True for name, on in found.items()})

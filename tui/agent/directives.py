"""The directives /think, /verbose and /elevated: how they are read, and those in force.

They are recognised only at the start of what a person typed; everything else stays as it was,
byte for byte.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext
    from tui.agent.request_builder import RequestBuilder

log = logging.getLogger(__name__)

_LEADING = re.compile(
    r"\s*/(think|verbose|elevated)(?=\s|$)(?:[ \t]+(on|off)(?=\s|$))?", re.IGNORECASE
)

THINK_PROMPT = (
    "Think step-by-step. Show your reasoning process explicitly before taking action. "
    "Consider edge cases, alternative approaches, and potential issues. "
    "When analyzing code, read related files to understand full context."
)
"""What /think adds to the system prompt, to the letter."""


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
class ParsedPrompt:
    """What a person typed: the switches that it began with, and the text that remains."""

    typed: str
    text: str
    changes: Mapping[str, bool] = field(default_factory=dict[str, bool])


def parse(typed: str) -> ParsedPrompt:
    """Take the leading directives off what was typed. `/think off` switches off."""
    changes: dict[str, bool] = {}
    end = 0
    while found := _LEADING.match(typed, end):
        changes[found[1].lower()] = (found[2] or "on").lower() == "on"
        end = found.end()
    return ParsedPrompt(typed, typed[end:].lstrip() if changes else typed, changes)


def parsed(prompt: str | ParsedPrompt) -> ParsedPrompt:
    """A prompt, read unless it has been."""
    return parse(prompt) if isinstance(prompt, str) else prompt


def acknowledgement(changes: Mapping[str, bool]) -> str:
    """One line for the person about what was switched."""
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
    """Directives from a record. Anything odd counts as off, and is logged."""
    known = cast("dict[str, object]", value) if isinstance(value, dict) else {}
    found = {f.name: known.get(f.name) for f in fields(Directives)}
    if odd := [name for name, on in found.items() if not isinstance(on, bool)]:
        log.warning("the record's directives are damaged (%s); they count as off", ", ".join(odd))
    return Directives(**{name: on is True for name, on in found.items()})


class DirectiveState:
    """The directives in force in one session. A resumed one is not elevated until asked again."""

    def __init__(self, ctx: AgentContext, requests: RequestBuilder) -> None:
        recorded = Directives()
        if "directives" in ctx.session.metadata:
            recorded = from_json(ctx.session.directives)
        self.was_elevated = recorded.elevated
        self.now = replace(recorded, elevated=False)
        self._ctx, self._requests = ctx, requests
        requests.think(self.now.think)
        ctx.verbose = self.now.verbose

    def apply(self, changes: Mapping[str, bool]) -> None:
        """Switch, and record it."""
        self.now = self.now.with_changes(changes)
        self._requests.think(self.now.think)
        self._ctx.elevated = self.now.elevated
        self._ctx.verbose = self.now.verbose
        self._ctx.workspace = self._ctx.workspace.widen(self.now.elevated)
        self._ctx.recorder.append("directive", **self.now.to_json())

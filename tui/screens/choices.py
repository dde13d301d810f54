"""What screens are handed and hand back: plain data, so that nothing heavy is loaded for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session of the browser. `size` is in bytes; `state` as `sessions list` names it."""

    id: str
    path: Path
    title: str
    updated: datetime
    messages: int
    size: int
    state: str = "ok"


@dataclass(frozen=True, slots=True)
class KeySetup:
    """A key for Anthropic's own server."""

    key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ServerSetup:
    """Any server that speaks the Messages API. The key may be empty."""

    base_url: str
    model: str
    key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class PracticeSetup:
    """The practice model, for this run."""


Setup: TypeAlias = KeySetup | ServerSetup | PracticeSetup

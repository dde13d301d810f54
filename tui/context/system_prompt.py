"""The system prompt, in layers (decision 28). The prose stands in `prompts/*.md`.

The layers that exist: 1 identity, 2 security, 3 tools, 3b command tiers, 3c environment.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files

from tui.messages import Block, text_block
from tui.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Layer:
    """One part of the system prompt."""

    name: str
    text: str


def layers(
    workspace: Workspace, *, today: date, auto_grant: Sequence[str] = (), branch: str = ""
) -> tuple[Layer, ...]:
    """The layers of a session's system prompt, in order. Made once a session, so it caches."""
    return (
        Layer("identity", _prose("identity")),
        Layer("security", "# Security\n\n" + _prose("security")),
        Layer("tools", "# Tools\n\n" + _prose("tools")),
        Layer("tiers", "# Commands\n\n" + _prose("tiers")),
        Layer("environment", _environment(workspace, today, auto_grant, branch)),
    )


def blocks(parts: Sequence[Layer]) -> list[Block]:
    """The layers as the system blocks of a request."""
    return [text_block("\n\n".join(part.text for part in parts if part.text))]


def _environment(workspace: Workspace, today: date, auto_grant: Sequence[str], branch: str) -> str:
    """Layer 3c (R20): absent values are left out."""
    facts = [
        ("Working directory", str(workspace.root)),
        ("Added directories", ", ".join(map(str, workspace.extra))),
        ("Ceiling directory", "" if str(workspace.ceiling) == "/" else str(workspace.ceiling)),
        ("Auto-grant patterns", ", ".join(auto_grant)),
        ("Git branch", branch),
        ("Platform", f"{platform.system()} {platform.machine()}".strip()),
        ("Date", today.isoformat()),
    ]
    lines = [f"{name}: {value}" for name, value in facts if value]
    return "# Environment\n\n" + "\n".join(lines)


@cache
def _prose(name: str) -> str:
    source = files("tui.context") / "prompts" / f"{name}.md"
    return source.read_text(encoding="utf-8").strip()

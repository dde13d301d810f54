"""The words of the permission system, and the port through which a person is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Risk: TypeAlias = Literal["safe", "standard", "high-risk", "blocked"]
Mode: TypeAlias = Literal["ask", "accept_edits", "plan"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the policy sees it.

    `subject` is what rules match (command, path or URL); `command` is set for commands only;
    `paths` are as the model named them. `preview_kind` and `preview` are for the person,
    and so is `scope`: what a lasting yes would cover.
    """

    id: str
    tool: str
    effect: Literal["none", "read", "write", "run"]
    subject: str
    command: str | None = None
    paths: tuple[str, ...] = ()
    preview_kind: Literal["command", "diff", "text"] = "text"
    preview: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says, and why. `by` names the source: a rule's text, "elevated", …"""

    answer: Literal["allow", "ask", "deny"]
    reason: str
    by: str
    risk: Risk | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said. `reason` is handed to the model with a "no"."""

    answer: Literal["once", "session", "always", "no"]
    reason: str = ""
    by: str = "person"


class Approver(Protocol):
    """Asks a person. Cancelling the question is a "no"."""

    async def ask(self, call: Call, decision: Decision) -> Answer: ...

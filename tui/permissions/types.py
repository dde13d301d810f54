"""The types of the permission system, and the port through which a person is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.core.text_cleaning import visible
from tui.permissions.sandbox.walls import Level

_SHOWN, _RULES = 100, 3
"""Characters of a rule, and rules, that a question names."""

Risk: TypeAlias = Literal["safe", "standard", "high-risk", "blocked"]
Mode: TypeAlias = Literal["ask", "accept_edits", "plan"]

MODE_NAMES: Final[Mapping[Mode, str]] = {
    "ask": "ask first",
    "accept_edits": "accept edits",
    "plan": "plan: read-only",
}

REACHES: Final[Mapping[Level, str]] = {
    Level.READ_ONLY: "It can change nothing and has no network",
    Level.WORKSPACE: "Runs in the workspace, no network",
    Level.NETWORK: "Runs in the workspace, with network",
    Level.OUTSIDE: "Can reach beyond this folder",
}
"""What a command can do at a level of the sandbox, for who decides about it."""


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the policy sees it. Preview and scope are for the person who is asked."""

    id: str
    tool: str
    effect: Literal["none", "read", "fetch", "write", "run"]
    subject: str
    """What rules match: a command, a path or a URL."""
    command: str | None = None
    """None for every tool but the one that runs commands."""
    paths: tuple[str, ...] = ()
    """As the model named them; for a command the folder it is run in, if it names one."""
    preview_kind: Literal["command", "diff", "text"] = "text"
    preview: str = ""
    scope: str = ""
    """What a lasting yes would cover, in words."""
    always: tuple[str, ...] = ()
    """The rules that "always" would write into the person's configuration."""
    background: bool = False
    """Whether a command is to run on while the conversation continues."""
    agent: str = ""
    """The sub-agent that makes it, and what it is about, or the task of several at a time; "" for
    the conversation's own."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy answers, and why. `by` names the source: a rule's text, "elevated", …

    `level` is what a command may do once it is allowed; `walls`: a sandbox is there, so that it
    says something.
    """

    answer: Literal["allow", "ask", "deny"]
    reason: str
    by: str
    risk: Risk | None = None
    level: Level = Level.OUTSIDE
    walls: bool = False
    marks: tuple[str, ...] = ()
    """The parts of a command that make it this risky, as they are written there."""
    once: bool = False
    """Whether a yes counts for this very call alone: no lasting one would cover the next."""
    paths: tuple[Path, ...] = ()
    """The real paths it is about: what they lead to may be another file soon after."""
    private: bool = False
    """Whether a web address may lead into the person's own network."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The person's answer. `reason` is handed to the model with a "no"."""

    answer: Literal["once", "session", "always", "no"]
    reason: str = ""
    by: str = "person"


def written_rules(call: Call) -> str:
    """What "always" would write, in words; "" where it writes nothing that can be shown."""
    if not call.always:
        return ""
    shown = " and ".join(
        rule if len(rule) <= _SHOWN else f"{rule[:_SHOWN]}…" for rule in call.always[:_RULES]
    )
    more = f" and {len(call.always) - _RULES} more" if len(call.always) > _RULES else ""
    return f"3 adds {visible(shown)}{more}.".replace("\n", "\\n")


def always_in_words(decision: Decision) -> str:
    """The name of the answer that writes a rule. One that leaves the sandbox says so: nothing but
    that word, chosen by the person, writes such a rule."""
    return "always outside" if decision.walls and decision.level is Level.OUTSIDE else "always"


class Approver(Protocol):
    """Asks a person."""

    async def ask(self, call: Call, decision: Decision) -> Answer:
        """Whether a call may run. Cancelling the question is a "no"."""
        ...

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        """Put the model's own questions, one after the other. `agent` is the sub-agent that asks,
        "" for the conversation. Cancelling takes them back."""
        ...

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        """Show a plan, in Markdown, to be approved. Cancelling approves nothing."""
        ...

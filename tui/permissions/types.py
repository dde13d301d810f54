"""The types of the permission system, and the port through which a person is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias, runtime_checkable

from tui.core.dataclass import dataclass, field
from tui.core.questions import (
    PlanReview,
    SecretAnswer,
    SecretQuestion,
    UserAnswers,
    UserQuestion,
)
from tui.core.text_cleaning import visible
from tui.permissions.sandbox.walls import Level

Risk: TypeAlias = Literal["safe", "standard", "high-risk", "blocked"]
Lasting: TypeAlias = Literal["session", "always"]
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
"""The abilities of a command at each level of the sandbox, for the person who decides about it."""

HEAD_OF_RULES: Final = "2 allows this until the session ends, 3 saves it for every session:"


@dataclass(frozen=True, slots=True)
class TypedInput:
    """Input for a program that runs in a terminal. `level` is that of the walls around it; `place`
    is its recording: a sub-agent's terminal may have the same name. `edited`: the line for a shell
    has other keys than those of characters, or parts that were typed before, which another program
    may have read; so only the shell knows it. `began` is the call that would start the terminal
    now, None if that isn't known."""

    terminal: str
    level: Level
    place: str = ""
    edited: bool = False
    began: Call | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as the policy sees it. Preview and scope are for the person who is asked."""

    id: str
    tool: str
    effect: Literal["none", "read", "fetch", "write", "run"]
    subject: str
    """The text that rules match: a command, a path or a URL."""
    command: str | None = None
    """None for every tool but the one that runs commands."""
    paths: tuple[str, ...] = ()
    """The paths as the model named them; for a command the folder it is run in, if it names one."""
    preview_kind: Literal["command", "diff", "text"] = "text"
    preview: str = ""
    scope: str = ""
    """The calls that a lasting yes would cover, in words."""
    always: tuple[str, ...] = ()
    """The rules that "always" would write into the person's configuration."""
    background: bool = False
    """True if a command is to continue while the conversation does."""
    agent: str = ""
    """The sub-agent that makes it with its subject, or the task in a run of several; "" for the
    conversation itself."""
    input: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    """The input as it would run, after hooks."""
    types: TypedInput | None = None
    """Where it types: input for a terminal that runs. `command` is then the line that a shell there
    gets, if that is known."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The policy's answer and its reason. `by` names the source: a rule's text, "elevated", …

    `level` is what a command may do once it is allowed; `walls`: there is a sandbox, so the level
    has a meaning.
    """

    answer: Literal["allow", "ask", "deny"]
    reason: str
    by: str
    risk: Risk | None = None
    level: Level = Level.OUTSIDE
    walls: bool = False
    marks: tuple[str, ...] = ()
    """The parts of a command that make it this risky, as written."""
    once: bool = False
    """True if a yes counts only for this very call: no lasting one would cover the next."""
    paths: tuple[Path, ...] = ()
    """The real paths that it concerns: what they lead to may be another file soon afterwards."""
    private: bool = False
    """True if a web address may lead into the person's own network."""

    @property
    def lasting(self) -> tuple[Lasting, ...]:
        """The lasting answers that are offered: nothing permanent for what is high-risk, and for
        the session only where walls hold it."""
        if self.once:
            return ()
        if self.risk == "high-risk":
            return ("session",) if self.walls and self.level is not Level.OUTSIDE else ()
        return "session", "always"


@dataclass(frozen=True, slots=True)
class Answer:
    """The person's answer. `reason` is passed to the model with a "no"; `changed` is the input that
    the call gets instead of its own, with a yes."""

    answer: Literal["once", "session", "always", "no"]
    reason: str = ""
    by: str = "person"
    changed: Mapping[str, Any] | None = None


def offered(call: Call, decision: Decision) -> tuple[Lasting, ...]:
    """Return the lasting answers to a call. "always" is none of them if it would write nothing."""
    return tuple(one for one in decision.lasting if one == "session" or call.always)


def always_in_words(call: Call, decision: Decision) -> str:
    """Name the answer that writes a rule. If the rule leaves the sandbox, the name says so: nothing
    but that word, chosen by the person, writes such a rule."""
    if decision.walls and decision.level is Level.OUTSIDE:
        return "always outside"
    return "always here" if call.effect == "write" else "always"


def rules_in_words(call: Call, decision: Decision, *, head: str = HEAD_OF_RULES) -> tuple[str, ...]:
    """Say what the lasting answers to a call allow, in lines: every rule after `head`, whole."""
    match offered(call, decision):
        case ():
            return ("Holdfast asks each time: a yes counts for this call only.",)
        case ("session",):
            return ("A yes for this session allows exactly this call again. Nothing is saved.",)
        case _:
            rules = (f"  {visible(rule)}".replace("\n", "\\n") for rule in call.always)
            return (head, *rules)


class Approver(Protocol):
    """Asks a person."""

    async def ask(self, call: Call, decision: Decision) -> Answer:
        """Ask if a call may run. Cancelling the question is a "no"."""
        ...

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        """Ask the model's own questions, one after the other. `agent` is the sub-agent that asks,
        "" for the conversation. Cancelling withdraws them."""
        ...

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        """Show a plan, in Markdown, for approval. Cancelling approves nothing."""
        ...


@runtime_checkable
class AsksSecrets(Protocol):
    """Asks a person for a line that a program in a terminal reads without showing it.

    An approver that can't is none: the terminal then waits, and the model is told so.
    `asks_secrets` is false where that is a matter of whom it passes questions to.
    """

    @property
    def asks_secrets(self) -> bool: ...

    async def ask_secret(self, question: SecretQuestion) -> SecretAnswer | None:
        """Ask; None if the person doesn't answer. Cancelling withdraws the question: it may have
        been answered at the terminal itself. The answer is shown, kept and sent nowhere."""
        ...


def secret_asker(approver: Approver) -> AsksSecrets | None:
    """Return who asks for secrets where an approver asks; None where nobody can be asked."""
    return approver if isinstance(approver, AsksSecrets) and approver.asks_secrets else None

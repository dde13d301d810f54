"""The interface between the conversation and its front end: the full screen, plain lines, or a
test.

A front end draws events, puts questions to the person and holds what is being typed. It decides
nothing about the conversation.
"""

from __future__ import annotations

from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from tui.agent.interrupted_work import InterruptedWork
from tui.app.dialog_data import Question, SetupQuestion, YesNoQuestion
from tui.app.reports import Level, Report
from tui.app.services import SessionChoice
from tui.core.dataclass import dataclass
from tui.core.facts import ErrorRaised, Fact
from tui.permissions.types import Approver

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.plans import ApprovedPlan


class AgentHolder(Protocol):
    """The owner of the agent, which is None while there is none."""

    @property
    def agent(self) -> Agent | None: ...


Kind: TypeAlias = Literal["turn", "side", "shell"]
"""The kind of work that runs: a turn, work between the turns such as a compaction, or the person's
own command."""


Submitted: TypeAlias = Literal["sent", "joined", "queued", "refused"]
"""The fate of a prompt: a turn began with it, it joined the one that runs, it waits for a turn of
its own, or it was refused with a message; then it stays with the person."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """The end of a turn; `error` is what it failed with, where an event reported it."""

    outcome: str
    error: ErrorRaised | None = None


@runtime_checkable
class SessionWatcher(Protocol):
    """A front end that can show a session while another process has it."""

    async def watch_session(self, session: str) -> None:
        """Show a session of this machine live, by its id, over the one that is open."""


class Frontend(Protocol):
    """Everything is called in the event loop's thread. Methods that wait for the person are
    called from a task of their own, never from a handler of keys."""

    stop_key: str
    """The key that stops what runs, for hints."""

    @property
    def approver(self) -> Approver:
        """Puts the agent's questions to the person."""
        ...

    @property
    def prompt_text(self) -> str:
        """The text that is typed and not sent."""
        ...

    def put_prompt(self, text: str, *, replace: bool = False) -> None:
        """Put a text before what is typed; with `replace` in its place, which goes to the
        history."""

    async def take_line(self, text: str) -> Submitted | None:
        """Do what was typed in another process that watches the session, see
        `tui.app.router.route_from_afar`."""
        ...

    # What is shown

    def say(self, text: str, level: Level = "info", *, hint: str = "") -> None:
        """Say something that need not stay. `hint` is what can be done."""

    def report(self, report: Report) -> None:
        """Show what stays in the conversation."""

    def show(self, event: Fact) -> None:
        """Show one event of the agent, or of the person's own command."""

    def show_unfinished(self, answer: str) -> None:
        """Show an answer that the end of an earlier run has cut off."""

    def refresh(self) -> None:
        """The queue, the title, the mode or the model has changed: show how they are now."""

    async def painted(self) -> None:
        """Until what was shown is in sight. A thread that works meanwhile would make that slower,
        and a key wait for both."""

    # What runs

    def began(self, kind: Kind, phase: str) -> None:
        """Something runs from now on; `phase` names it."""

    def ended(self, result: TurnResult | None = None) -> None:
        """Nothing runs any more; `result` is that of a turn."""

    def view(self, name: str, argument: str) -> Coroutine[Any, Any, None] | None:
        """This front end's own way to carry out a command; None where it has none."""
        ...

    async def run_command(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a command do its work, where it may wait for the person."""

    # Sessions

    async def opening(self, choice: SessionChoice) -> None:
        """A session is about to be opened."""

    async def show_session(self, agent: Agent, choice: SessionChoice) -> None:
        """Show a session in the place of the one before, as far as it is recorded."""

    async def pick_session(self) -> SessionChoice | None:
        """Let the person choose a session; None for none."""

    # Questions

    async def choose(self, question: Question) -> str | None:
        """Put a question with several answers; the name of the answer, None for none of them."""
        ...

    async def confirm(self, question: YesNoQuestion) -> bool:
        """Put a yes-or-no question."""
        ...

    async def ask_setup(self, question: SetupQuestion) -> str | None:
        """Ask how a model is reached, until the services take the answer; one that they don't take
        is shown why. Returns what was done; None where the person wants none, or no other."""
        ...

    async def show_file(self, path: Path) -> None:
        """Let the person read a text file, or edit it."""

    async def show_plan(self, plan: ApprovedPlan) -> None:
        """Let the person read a plan that they approved."""

    async def offer_interrupted_work(self, work: InterruptedWork) -> None:
        """Offer what can be done about work that an earlier run left open, without waiting for an
        answer; see `tui.app.interruption`."""

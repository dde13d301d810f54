"""A conversation without a person at a terminal: its front end, who answers for the person, and
how it is opened. `Conversation.at` is the way in for programs; subcommands use `opened`.

    async with Conversation.at("~/src/app", approve=lambda call, decision: True) as conversation:
        async for event in conversation.send("Fix the failing test."):
            print(event.to_json())
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tui.agent.events import Event, Notice
from tui.agent.interrupted_work import InterruptedWork
from tui.app.conversation import Conversation
from tui.app.dialog_data import (
    DamageQuestion,
    Question,
    Setup,
    SetupQuestion,
    YesNoQuestion,
)
from tui.app.frontend import Kind, Level, TurnResult
from tui.app.interruption import interruption_report, taken_over
from tui.app.launch_config import scratch_of
from tui.app.options.arguments import Options
from tui.app.program import CompositionRoot
from tui.app.services import AppServices, SessionChoice
from tui.core.errors import UsageError
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Approver, Call, Decision
from tui.tools.base import Tool
from tui.tools.function_tool import as_tool
from tui.tools.submit_result import result_tool

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.plans import ApprovedPlan

Approve: TypeAlias = Callable[[Call, Decision], Answer | bool | Awaitable[Answer | bool]]
"""Says whether a call may run, which the rules leave to the person."""


class CallbackApprover(RulesOnly):
    """Lets a function answer for the person; its True is for this call alone. The model's own
    questions stay with the model, and no plan is approved."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve

    async def ask(self, call: Call, decision: Decision) -> Answer:
        given = self._approve(call, decision)
        answer = await given if inspect.isawaitable(given) else given
        if isinstance(answer, Answer):
            return answer
        return Answer("once" if answer else "no", by="program")


def approver_of(given: Approve | Approver | None) -> Approver | None:
    """A function that answers for the person, as an approver."""
    return CallbackApprover(given) if callable(given) else given


class HeadlessFrontend:
    """Hands on events, and makes one of whatever else is shown. It chooses nothing: damage is
    repaired in what is sent, and whoever needs more asks for it with an `approver` of its own.

    `prompt_text` holds what could not be sent; it stays with the session as a draft.
    """

    stop_key = "Cancel"

    def __init__(self, services: AppServices, approver: Approver | None = None) -> None:
        self.approver: Approver = approver or RulesOnly()
        self.prompt_text = ""
        self.said = ""
        """What was said last."""
        self.interrupted: InterruptedWork | None = None
        """What an earlier run left open, until a prompt is sent."""
        self.conversation = Conversation(services, self)

    def put_prompt(self, text: str, *, replace: bool = False) -> None:
        before = "" if replace else self.prompt_text
        self.prompt_text = "\n".join(filter(None, (text, before)))

    def say(self, text: str, level: Level = "info", *, hint: str = "") -> None:  # noqa: ARG002 - as the port has it
        self.said = " ".join(filter(None, (text, hint)))
        self.show(Notice(self.said))

    def report(self, title: str, lines: Sequence[str], level: Level = "info") -> None:  # noqa: ARG002 - as the port has it
        self.show(Notice("\n".join((title, *lines))))

    def show(self, event: Event) -> None:
        self.conversation.publish(event)

    def show_unfinished(self, answer: str) -> None:
        """The record has it; nobody looks."""

    def refresh(self) -> None:
        """Nothing of it is on a screen."""

    async def painted(self) -> None:
        """Events are seen when they are published."""

    def began(self, kind: Kind, phase: str) -> None:
        """The events say it."""

    def ended(self, result: TurnResult | None = None) -> None:  # noqa: ARG002 - as the port has it
        self.conversation.may_rest()

    def view(self, name: str, argument: str) -> Coroutine[Any, Any, None] | None:  # noqa: ARG002 - as the port has it
        from tui.app.commands.registry import find  # noqa: PLC0415 - for a command only

        command = find(name)
        return self._no_view(name) if command is not None and not command.module else None

    async def _no_view(self, name: str) -> None:
        self.say(
            f"/{name} needs the screen.", "warning", hint="Open this session with holdfast -r."
        )

    async def run_command(self, work: Coroutine[Any, Any, None]) -> None:
        await work

    async def opening(self, choice: SessionChoice) -> None:
        """The events say it."""

    async def show_session(self, agent: Agent, choice: SessionChoice) -> None:
        """Its events come when it starts."""

    async def pick_session(self) -> SessionChoice | None:
        return None

    async def choose(self, question: Question) -> str | None:
        if isinstance(question, DamageQuestion):
            return "continue"
        self.say("Nobody can be asked here, so nothing was done.", "warning")
        return None

    async def confirm(self, question: YesNoQuestion) -> bool:
        self.say(f"{question.title} Nobody can be asked, so: {question.no}.", "warning")
        return False

    async def ask_setup(self, question: SetupQuestion) -> Setup | None:  # noqa: ARG002 - as the port has it
        return None

    async def show_file(self, path: Path) -> None:
        self.say(f"See {path}.")

    async def show_plan(self, plan: ApprovedPlan) -> None:
        self.report(plan.title, plan.text.splitlines())

    async def offer_interrupted_work(self, work: InterruptedWork) -> None:
        agent = self.conversation.agent
        if (
            agent is not None and work.supervised
        ):  # nobody waits: a prompt is sent once that is done
            for event in await agent.note(taken_over(work)):
                self.show(event)
            self.conversation.start_side_work(
                "taking over commands", agent.collect(work.supervised)
            )
            work = work.uncertain
            if not work:
                return
        self.interrupted = work
        title, *lines = interruption_report(work)
        self.report(title, lines, "warning")


@asynccontextmanager
async def opened(
    options: Options,
    approver: Approver | None = None,
    *,
    tools: Sequence[Tool[Any] | Callable[..., Any]] = (),
    see: Callable[[Event], None] | None = None,
    choice: SessionChoice | None = None,
    frontend: Callable[[AppServices, Approver | None], HeadlessFrontend] = HeadlessFrontend,
) -> AsyncGenerator[Conversation]:
    """A conversation with the session that the options name, else `choice`, until the block ends.

    `see` gets each event from the first one on; `frontend` makes one that can do more. Raises what
    opening a session raises: CredentialsError, SessionError, SessionInUseError, ConfigError,
    UsageError.
    """
    own = tuple(map(as_tool, tools))
    with scratch_of(options) as scratch:
        root = CompositionRoot(options, scratch, tools=own)
        conversation = frontend(root.services(), approver).conversation
        conversation.result = result_tool(own)
        if see is not None:
            conversation.watch(see)
        wanted = choice or root.choice()
        if wanted is None:
            raise UsageError("Name a session to resume.", hint="See holdfast sessions list.")
        try:
            await open_session(conversation, wanted)
            yield conversation
        finally:
            await conversation.close()


async def open_session(conversation: Conversation, choice: SessionChoice) -> None:
    """Open a session, where nobody can be asked: one that is damaged is repaired in what is sent,
    as always, and what an earlier run left open is said."""
    from tui.app.open_session import after_opening  # noqa: PLC0415 - it needs this module's layer

    async def accept(_: Agent) -> SessionChoice:
        return choice

    await conversation.open(choice, accept)
    await after_opening(conversation, choice)


def options_of(
    folder: str | Path,
    *,
    resume: str | Path | None = None,
    newest: bool = False,
    **more: Any,
) -> Options:
    """The options of a conversation in a folder; `more` are fields of `Options`."""
    if newest and resume is not None:
        raise UsageError("Give either newest or resume.")
    named = str(resume) if resume is not None else None
    return Options(cwd=Path(folder).expanduser(), resume=named, newest=newest, **more)

"""A conversation without a person at a terminal: its front end, who answers for the person, and
how it is opened. `Conversation.at` is the way in for programs; subcommands use `opened`.

    async with Conversation.at("~/src/app", approve=lambda call, decision: True) as conversation:
        async for event in conversation.send("Fix the failing test."):
            print(event.to_json())
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tui.agent.interrupted_work import InterruptedWork
from tui.agent.launch import OwnParts
from tui.app.commands import find
from tui.app.conversation import Conversation
from tui.app.dialog_data import (
    DamageQuestion,
    Question,
    SetupQuestion,
    YesNoQuestion,
)
from tui.app.frontend import Frontend, Kind, Level, Submitted, TurnResult
from tui.app.interruption import interruption_report, taken_over
from tui.app.launch_config import scratch_of
from tui.app.open_session import after_opening
from tui.app.options.arguments import Options
from tui.app.outcome import Outcome
from tui.app.program import Program
from tui.app.reports import Report
from tui.app.router import route_from_afar, route_own
from tui.app.services import AppServices, SessionChoice
from tui.core.errors import UsageError
from tui.core.facts import Fact, Notice
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Approver, Call, Decision
from tui.tools.base import Tool
from tui.tools.function_tool import as_tool
from tui.tools.submit_result import SubmitResult, result_tool

if TYPE_CHECKING:
    from tui.agent.agent import Agent
    from tui.agent.plans import ApprovedPlan
    from tui.app.door.lines import OwnerKind

Approve: TypeAlias = Callable[[Call, Decision], Answer | bool | Awaitable[Answer | bool]]
"""Says whether a call may run, which the rules leave to the person."""


class CallbackApprover(RulesOnly):
    """Lets a function answer for the person; its True is for this call alone. The model's own
    questions stay with the model, and no plan is approved."""

    def __init__(self, approve: Approve) -> None:
        self._approve = approve

    async def ask(self, call: Call, decision: Decision) -> Answer:
        approval = self._approve(call, decision)
        answer = await approval if inspect.isawaitable(approval) else approval
        if isinstance(answer, Answer):
            return answer
        return Answer("once" if answer else "no", by="program")


def approver_of(given: Approve | Approver | None) -> Approver | None:
    """A function that answers for the person, as an approver."""
    return CallbackApprover(given) if callable(given) else given


class HeadlessConversation(Conversation):
    """A conversation for a program, without a person at a terminal: `at` opens one.

    Programs import it as `tui.app.Conversation`.
    """

    def __init__(self, services: AppServices, frontend: Frontend) -> None:
        super().__init__(services, frontend)
        self.result: SubmitResult | None = None
        """Takes the result that fits a schema, where one is asked for."""
        self._watchers: list[Callable[[Fact], None]] = []

    @classmethod
    @asynccontextmanager
    async def at(
        cls,
        folder: str | Path = ".",
        *,
        resume: str | Path | None = None,
        newest: bool = False,
        keep: bool = True,
        model: str | None = None,
        effort: str | None = None,
        practice: bool = False,
        practice_script: Path | None = None,
        mode: Literal["ask", "edits", "plan"] = "ask",
        allow: Sequence[str] = (),
        deny: Sequence[str] = (),
        approve: Approve | Approver | None = None,
        trust: bool = False,
        tools: Sequence[Callable[..., Any] | Tool[Any]] = (),
        schema: Mapping[str, Any] | None = None,
        system_prompt: str | None = None,
        append_system_prompt: str | None = None,
        max_turns: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ) -> AsyncGenerator[HeadlessConversation]:
        """A conversation for a program, with a session that is open until the block ends.

        Args:
            folder: The workspace. Its settings, instructions and rules count as on the screen.
            resume: An id of a session, the start of one, or a file.
            newest: Continue the newest session of the folder, where there is one.
            keep: Whether the session is saved.
            mode: What runs without being asked: what only reads, edits too, or nothing else than
                reading.
            allow, deny: Permission rules, as `--allow` and `--deny`.
            approve: Answers for the person where the rules ask: a function of the call and what
                the rules say about it, or an `Approver`. Without it, what would be asked about is
                refused.
            trust: Whether the folder's own files count (see the manual on trust).
            tools: Functions that the model may call; see `tui.tools.function_tool`.
            schema: A JSON schema that the result of `ask` has to fit.
            max_turns, max_tokens, max_cost: Limits, as on the command line; cost in US dollars.

        Raises:
            HoldfastError: The settings are wrong, there is no key, or the session can't be opened.
        """
        options = options_of(
            folder,
            resume=resume,
            newest=newest,
            no_session=not keep,
            model=model,
            effort=effort,
            practice=practice or practice_script is not None,
            practice_script=practice_script,
            permission_mode=mode,
            allow=tuple(allow),
            deny=tuple(deny),
            trust=trust,
            system_prompt=system_prompt,
            append_system_prompt=append_system_prompt,
            max_turns=max_turns,
            max_tokens=max_tokens,
            max_cost=max_cost,
        )
        own = [*tools, *([SubmitResult(schema)] if schema is not None else [])]
        async with opened(options, approver_of(approve), tools=own) as open_one:
            yield open_one

    def watch(self, see: Callable[[Fact], None]) -> Callable[[], None]:
        """Let `see` have each event of a headless conversation from now on, until what this
        returns is called."""
        self._watchers.append(see)
        return lambda: self._watchers.remove(see)

    def publish(self, event: Fact) -> None:
        """Hand an event to those that watch."""
        for see in tuple(self._watchers):
            see(event)

    async def send(self, text: str, *, attached: str = "") -> AsyncGenerator[Fact]:
        """Send a prompt to a headless conversation, and yield what happens until nothing runs or
        waits any more. The person's own commands (`/review`) work, as do directives; `attached`
        goes after the prompt and switches nothing. While a turn runs, the prompt joins it.

        Closing the iterator stops what runs. Raises UsageError where the prompt is refused, as in
        a session that is read-only.
        """
        happened, quiet = asyncio.Queue[Fact | None](), None
        unwatch = self.watch(happened.put_nowait)
        try:
            if await route_own(self, text, attached) == "refused":
                raise UsageError(getattr(self.frontend, "said", "") or "The prompt was refused.")
            quiet = asyncio.create_task(self.quiet(), name="quiet")
            quiet.add_done_callback(lambda _: happened.put_nowait(None))
            while (event := await happened.get()) is not None:
                yield event
        finally:
            unwatch()
            if quiet is not None:
                quiet.cancel()
            if self.cancel():
                await self.at_rest()

    async def ask(self, text: str, *, attached: str = "") -> Outcome:
        """Send a prompt, and return what it came to. With a schema the model is reminded once to
        hand over its result; without one that fits, the outcome is "failed"."""
        outcome, agent = Outcome(), self.open_agent()
        if agent is not None:
            outcome.session_id, outcome.model = agent.session.id, agent.models.current
        for prompt in outcome.prompts(text, self.result):
            async with aclosing(self.send(prompt, attached=attached)) as turn:
                async for event in turn:
                    outcome.see(event)
            attached = ""
        return outcome


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
        """The last answer."""
        self.interrupted: InterruptedWork | None = None
        """The work that an earlier run left open, until a prompt is sent."""
        self.conversation = HeadlessConversation(services, self)

    def put_prompt(self, text: str, *, replace: bool = False) -> None:
        before = "" if replace else self.prompt_text
        self.prompt_text = "\n".join(filter(None, (text, before)))

    async def take_line(self, text: str) -> Submitted | None:
        return await route_from_afar(self.conversation, text)

    def say(self, text: str, level: Level = "info", *, hint: str = "") -> None:
        self.said = " ".join(filter(None, (text, hint)))
        self.conversation.door.say(text, level, hint)
        self.conversation.publish(Notice(self.said))

    def report(self, report: Report) -> None:
        self.show(Notice("\n".join((report.title, *report.lines))))

    def show(self, event: Fact) -> None:
        self.conversation.door.see(event)
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

    async def ask_setup(self, question: SetupQuestion) -> str | None:  # noqa: ARG002 - as the port has it
        return None

    async def show_file(self, path: Path) -> None:
        self.say(f"See {path}.")

    async def show_plan(self, plan: ApprovedPlan) -> None:
        self.report(Report(plan.title, plan.text.splitlines()))

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
        self.report(Report(title, lines, "warning"))


@asynccontextmanager
async def opened(
    options: Options,
    approver: Approver | None = None,
    *,
    tools: Sequence[Tool[Any] | Callable[..., Any]] = (),
    own: OwnParts | None = None,
    see: Callable[[Fact], None] | None = None,
    choice: SessionChoice | None = None,
    frontend: Callable[[AppServices, Approver | None], HeadlessFrontend] = HeadlessFrontend,
    kind: OwnerKind | None = None,
) -> AsyncGenerator[HeadlessConversation]:
    """A conversation with the session that the options name, else `choice`, until the block ends.

    `own` are parts of whoever opens it, with `tools` in their place where there are no others.
    `see` gets each event from the first one on; `frontend` makes one that can do more, `kind` is
    what others see of it. Raises what opening a session raises: CredentialsError, SessionError,
    SessionInUseError, ConfigError, UsageError.
    """
    parts = own or OwnParts(tools=tuple(map(as_tool, tools)))
    with scratch_of(options) as scratch:
        program = Program(options, scratch, own=parts)
        conversation = frontend(program, approver).conversation
        conversation.result = result_tool(parts.tools)
        conversation.door.kind = kind or conversation.door.kind
        if see is not None:
            conversation.watch(see)
        wanted = choice or program.choice()
        if wanted is None:
            raise UsageError("Name a session to resume.", hint="See holdfast sessions list.")
        try:
            await open_session(conversation, wanted)
            yield conversation
        finally:
            await conversation.close()


async def open_session(conversation: Conversation, choice: SessionChoice) -> None:
    """Open a session, where nobody can be asked: one that is damaged is repaired in what is sent,
    as always, and what an earlier run left open is reported."""

    async def accept(_: Agent) -> SessionChoice:
        return choice

    await conversation.open(choice, accept)
    conversation.expect_prompt()
    await after_opening(conversation, choice)


def options_of(
    folder: str | Path,
    *,
    resume: str | Path | None = None,
    newest: bool = False,
    **more: Any,
) -> Options:
    """The options of a conversation in a folder; `more` are values of `Options` by name."""
    if newest and resume is not None:
        raise UsageError("Give either newest or resume.")
    named = str(resume) if resume is not None else None
    return Options(cwd=Path(folder).expanduser()).having(resume=named, newest=newest, **more)

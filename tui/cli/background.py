"""The process that `holdfast --bg` starts: a conversation without a front end.

Where the person would be asked, it waits; whoever attaches is asked instead. It ends when its turn
has ended, when it is stopped, or when another process takes its session over.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, NoReturn

from tui.agent.agent import Agent
from tui.app import api, background
from tui.app.background import BackgroundSession
from tui.app.conversation import Conversation
from tui.app.door.live_state import DETAIL_CHARS, short
from tui.app.every import Repetition
from tui.app.options.arguments import Options
from tui.app.outcome import Outcome
from tui.app.repeat_wish import check_prompt, repeat_wish
from tui.app.router import route_own
from tui.app.services import SessionChoice
from tui.app.session_path import session_path
from tui.core import facts, log
from tui.core.clock import Clock, SystemClock, timestamp
from tui.core.errors import (
    HoldfastError,
    SessionInUseError,
    StorageError,
    UsageError,
)
from tui.core.fact_words import fact_lines
from tui.core.facts import Fact
from tui.core.formatting import money
from tui.core.messages import object_of, string_of
from tui.core.paths import Folders, folders
from tui.core.process_birth import born
from tui.core.questions import PlanReview, UserAnswers, UserQuestion
from tui.core.text_cleaning import clean, one_line
from tui.permissions.types import Answer, Call, Decision

NOTIFY_LIMIT_S: Final = 10.0
_LOG_BYTES: Final = 20_000_000


class WaitingApprover:
    """An approver without a person: each question waits until somebody attaches, and is asked
    there. `waits` is called with what it waits for in a few words, and with "" once it no longer
    waits."""

    def __init__(self, waits: Callable[[str], None]) -> None:
        self._waits = waits

    async def ask(self, call: Call, decision: Decision) -> Answer:  # noqa: ARG002 - as the port has it
        who = f"{call.agent}: " if call.agent else ""
        return await self._wait(f"{who}{call.tool}({call.subject})")

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        who = f"{agent}: " if agent else ""
        return await self._wait(f"{who}{' '.join(one.text for one in questions)}")

    async def review_plan(self, title: str, plan: str) -> PlanReview:  # noqa: ARG002 - as the port has it
        return await self._wait(f"a plan to approve: {title}")

    async def _wait(self, what: str) -> NoReturn:
        self._waits(what)
        try:
            await asyncio.Event().wait()
        finally:
            self._waits("")
        raise AssertionError


class BackgroundProcess:
    """The background process: it runs one conversation, keeps its entry up to date and writes its
    log."""

    def __init__(self, home: Folders, clock: Clock, report: Callable[[Mapping[str, Any]], None]):
        self._home, self._clock, self._report = home, clock, report
        self._outcome = Outcome()
        self._one: BackgroundSession | None = None
        self._conversation: Conversation | None = None
        self._agent: Agent | None = None
        """That of the conversation, which lets go of it at its end."""
        self._stopping = False
        self._let_go = False
        """True if a turn was paused for somebody who will continue it."""
        self._paused = False
        """The turn that runs was paused, and nobody stopped it."""
        self._notify = ""
        self._calls: set[asyncio.Task[None]] = set()
        self._waiting = ""
        self._early: list[str] = []
        """Lines from before there was a log."""

    async def run(
        self, options: Options, attached: str, *, go_on: bool, replaces_draft: bool = False
    ) -> None:
        """Open the session, work, and record how that ended. Raises what opening it raises."""
        if not go_on:
            check_prompt(options.prompt or "")
        choice = SessionChoice(session_path(options), go_on=go_on)
        approver, opened = WaitingApprover(self._waits), False
        loop, problem = asyncio.get_running_loop(), ""
        try:
            async with api.opened(
                options, approver, see=self._see, choice=choice, kind="background"
            ) as conversation:
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, self._stop)
                loop.add_signal_handler(signal.SIGUSR1, self._answer_request)
                self._begin(conversation, options)
                opened = True
                if replaces_draft:
                    conversation.frontend.put_prompt("", replace=True)
                await self._work(conversation, options.prompt or "", attached, go_on=go_on)
                await conversation.close(leave=not self._stopping)
            # The turn was paused, but nobody asks for the session any more.
            if self._let_go and not background.requested(self._home, self._id):
                problem = await self._continue_elsewhere()
                if not problem:
                    return
        except (StorageError, UsageError) as error:
            if not opened:
                raise
            problem = str(error)
        self._end(problem)
        if self._calls:
            await asyncio.wait(self._calls)

    async def _work(
        self, conversation: Conversation, prompt: str, attached: str, *, go_on: bool
    ) -> None:
        """Work until nothing is left to do, or somebody takes the session."""
        if not go_on and (wish := repeat_wish(prompt)) is not None:
            conversation.repetition = Repetition(conversation, wish, attached)
            await conversation.repetition.run(self._goes_on)
        elif not go_on and await route_own(conversation, prompt, attached) == "refused":
            raise UsageError(getattr(conversation.frontend, "said", "") or "It was refused.")
        while True:
            while conversation.busy:
                await conversation.at_rest()
            if self._stopping:
                return
            if background.requested(self._home, self._id):
                self._let_go = self._outcome.outcome == "interrupted"
                conversation.door.handed_over = True
                return
            # It was paused for somebody who has gone since; a watcher may have stopped it, too.
            paused, self._paused = self._paused, False
            if not paused or self._outcome.outcome != "interrupted":
                return
            if not conversation.continue_turn():
                return

    def _goes_on(self) -> bool:
        """True while nobody stops it or wants the session."""
        return not self._stopping and not background.requested(self._home, self._id)

    async def _continue_elsewhere(self) -> str:
        """Start another process that continues the turn, since whoever it was paused for is gone.
        Returns the problem, or ""."""
        assert self._one is not None
        self._say("The turn was paused for a program that is gone; continuing.")
        lasting = background.options_from_json(self._one.options)
        options = lasting.having(resume=self._one.path, profile=None)  # its own counts
        try:
            await asyncio.to_thread(background.start, self._home, options, go_on=True)
        except HoldfastError as error:
            return str(error)
        return ""

    @property
    def _id(self) -> str:
        return self._one.id if self._one else ""

    def _begin(self, conversation: Conversation, options: Options) -> None:
        """Report to the starting process that the session is open; from now on only the log is
        written. Raises StorageError if nothing can be recorded."""
        agent = conversation.agent
        assert agent is not None
        session, now = agent.session, timestamp(self._clock.now())
        if session.read_only or session.path is None:
            raise SessionInUseError(session.lost or "This session is read-only.")
        self._conversation, self._agent = conversation, agent
        one = BackgroundSession(
            id=session.id,
            path=os.path.realpath(session.path),
            cwd=str(conversation.services.workspace),
            pid=os.getpid(),
            born=born(os.getpid()),
            host=socket.gethostname(),
            state="working",
            started=now,
            since=now,
            title=session.title or one_line(options.prompt or "")[:DETAIL_CHARS],
            options=background.lasting_options(options)
            | {"cwd": str(conversation.services.workspace)},
        )
        background.withdraw(self._home, one.id)
        background.save(self._home, one)
        self._one = one
        self._notify = conversation.services.read_settings().config.background.notify
        self._report({"id": one.id, "notices": self._early})
        _write_to(background.log_of(self._home, one.id))
        self._say(f"Session {one.id}, {agent.models.current}, {one.cwd}", *self._early)
        if self._waiting:  # the turn that continues has asked already
            self._waits(self._waiting)
        conversation.door.follower = self
        self.status_changed()

    # What happens

    def _see(self, event: Fact) -> None:
        self._outcome.see(event)
        self._say(*log_lines(event))

    def _say(self, *lines: str) -> None:
        """Write to the log. An unwritable log must not end the turn."""
        if self._one is None:
            self._early += lines
            return
        text = "\n".join(filter(None, lines))
        with suppress(OSError):
            if text and os.fstat(1).st_size < _LOG_BYTES:  # the session's record has everything
                print(f"{self._clock.now().astimezone():%H:%M:%S} {clean(text)}", flush=True)  # noqa: T201

    def _waits(self, what: str) -> None:
        self._waiting = what
        if what:
            self._say(f"Waiting for you: {what}")
            self._call(f"waiting for you: {short(what)}")

    def status_changed(self) -> None:
        """Update the entry of this session. If it can't be written, work continues all the same."""
        if self._one is None or self._conversation is None:
            return
        status = self._conversation.door.status()
        changes: dict[str, Any] = {"title": status.title, "cost_usd": status.cost_usd}
        if status.state in background.RUNNING:
            changes |= {"state": status.state, "detail": status.detail, "since": status.since}
        elif status.detail:  # it works again by itself
            changes |= {"state": "parked", "detail": status.detail, "since": status.since}
        if (now := replace(self._one, **changes)) != self._one:
            self._save(now)

    def _cost(self) -> float | None:
        """The cost of the session so far, None where it is not known or nothing."""
        return (self._agent.spending().session.usd or None) if self._agent else None

    def _save(self, one: BackgroundSession) -> None:
        self._one = one
        try:
            background.save(self._home, one)
        except StorageError as error:
            self._say(str(error))

    def _answer_request(self) -> None:
        """Yield the session if somebody asks for it."""
        wanted = background.requested(self._home, self._id)
        if self._conversation is None or not wanted:
            return
        self._paused = True
        self._wake()
        if wanted == "now":
            self._conversation.cancel()
        else:
            self._conversation.pause()

    def _stop(self) -> None:
        self._stopping = True
        self._wake()
        if self._conversation is not None:
            self._conversation.cancel()

    def _wake(self) -> None:
        """Let a prompt that waits for its time look up."""
        if self._conversation is not None and self._conversation.repetition is not None:
            self._conversation.repetition.wake.set()

    def _end(self, problem: str) -> None:
        """Record how the session ended, or remove its entry if it was taken over."""
        one, outcome = self._one, self._outcome
        assert one is not None
        if not self._stopping and not problem and background.requested(self._home, one.id):
            background.forget(self._home, one.id)
            return
        state = {"done": "done", "interrupted": "stopped"}.get(outcome.outcome, "failed")
        if self._stopping and self._conversation and self._conversation.repetition:
            state = "stopped"
        detail = {"done": outcome.answer, "stopped": ""}.get(state, problem or outcome.error)
        state = "failed" if problem else state
        now = timestamp(self._clock.now())
        detail = short(problem or detail)
        self._save(replace(one, state=state, since=now, detail=detail, cost_usd=self._cost()))  # pyright: ignore[reportArgumentType] - one of the states
        self._call(f"{state}: {detail}")

    def _call(self, text: str) -> None:
        """Run the person's own command that notifies them."""
        if self._notify and self._one is not None:
            task = asyncio.create_task(_notify(self._notify, self._one, text), name="notify")
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)


def log_lines(event: Fact) -> Sequence[str]:
    """Return the lines that the log gets for a fact: those of `-p` on stderr, and the
    conversation."""
    match event:
        case facts.UserMessage(text):
            return [f"> {line}" for line in text.splitlines()]
        case facts.AssistantMessage(text=text):
            return text.splitlines()
        case facts.ToolStarted(name=name, label=label):
            return [f"{name} {label}".strip()]
        case facts.ToolFinished(name=name, is_error=True, summary=summary):
            return [f"{name} failed: {summary}"]
        case facts.PermissionAnswered(answer=("once" | "session" | "always") as answer):
            return [f"{event.name} was allowed: {answer}"]
        case facts.TurnFinished(outcome):
            cost = f", {money(event.cost_usd)}" if event.cost_usd else ""
            return [f"Turn {outcome}{cost}."]
        case _:
            return fact_lines(event)


async def _notify(command: str, one: BackgroundSession, text: str) -> None:
    """Run the person's own command; its output goes to the log."""
    variables = {"HOLDFAST_TEXT": text, "HOLDFAST_SESSION": one.id, "HOLDFAST_TITLE": one.title}

    def run() -> None:
        subprocess.run(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            cwd=one.cwd,
            env={**os.environ, **variables},
            timeout=NOTIFY_LIMIT_S,
            check=False,
        )

    with suppress(OSError, subprocess.SubprocessError):
        await asyncio.to_thread(run)


def _write_to(path: os.PathLike[str]) -> None:
    """Redirect standard output and error to a file; the process that started this one then sees
    them closed."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    except OSError:
        file = os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def main() -> int:
    """Run what `background.start` started: options on standard input, a report on standard
    output."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until it can be answered
    background.serve_as_parent()
    order = sys.stdin.buffer.read()
    if not order:
        return 1  # whoever asked for this process did not wait for it
    given = object_of(json.loads(order))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    def report(value: Mapping[str, Any]) -> None:
        with suppress(OSError):  # who started this may be gone by now, as when its terminal closes
            os.write(1, json.dumps(value).encode() + b"\n")

    home = folders()
    log.to_file(home.log)
    options = background.options_from_json(object_of(given.get("options")))
    options = options.having(headless=True, background=False)  # its limits, as those of -p
    process = BackgroundProcess(home, SystemClock(), report)
    work = process.run(
        options,
        string_of(given.get("attached")),
        go_on=bool(given.get("go_on")),
        replaces_draft=bool(given.get("replaces_draft")),
    )
    try:
        asyncio.run(work)
    except HoldfastError as error:
        report(background.report_of(error))
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""`holdfast -p --input-format stream-json`: a conversation by lines of JSON, both ways.

The input has prompts, answers to the agent's questions, and interrupts; the output is the same
events as with one prompt. A prompt that comes while a turn runs joins it. At the end of the input,
running and waiting work is finished; nobody can be asked any more then.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import reprlib
import sys
from collections.abc import Sequence
from concurrent.futures import CancelledError
from threading import Thread
from typing import Any, Final, TextIO, cast

from tui.agent.agent import Agent
from tui.app.api import opened
from tui.app.conversation import Conversation
from tui.app.launch_config import MODES
from tui.app.options.arguments import Options
from tui.app.outcome import Outcome
from tui.app.router import route_own
from tui.cli.event_output import EXIT_FAILED, exit_code, write_event
from tui.core import facts
from tui.core.errors import HoldfastError, UsageError
from tui.core.facts import Fact
from tui.core.messages import blocks_of, list_of, object_of, string_of
from tui.core.questions import PlanReview, UserAnswer, UserAnswers, UserQuestion
from tui.core.signals import heeded_signals
from tui.permissions.gate import RulesOnly
from tui.permissions.types import Answer, Call, Decision
from tui.tools.present_plan import PresentPlan

MAX_LINE: Final = 64_000_000
"""Bytes of a line: a prompt with all the images that a request takes."""

_AHEAD: Final = 256
"""Lines that are read ahead."""

_QUOTED_CHARS: Final = 100
"""Characters quoted from a line that isn't understood."""

_ANSWERS: Final = ("once", "session", "always", "no")
_VERDICTS: Final = ("ask", "accept_edits", "change", "none")


class LineApprover(RulesOnly):
    """Waits for the line that answers; once the input has ended, nobody can be asked."""

    def __init__(self) -> None:
        self.ended = False
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._wanted: dict[str, str] = {}
        """The type of the line that answers a call, by its id."""
        self._asked = asyncio.Queue[str]()
        """The calls whose questions have been written out and that nobody waits for yet."""

    def see(self, event: Fact) -> None:
        """Accept an answer from the moment its question has been written out."""
        if isinstance(event, facts.TurnFinished):
            self._asked = asyncio.Queue[str]()
        match event.event if isinstance(event, facts.SubAgentEvent) else event:
            case facts.PermissionAsked(id=id_):
                self._wanted[id_] = "permission_answer"
                self._expect(id_)
            case facts.QuestionAsked(id=id_, name=name):
                is_plan = name == PresentPlan.name
                self._wanted[id_] = "plan_answer" if is_plan else "question_answer"
                self._expect(id_)
                self._asked.put_nowait(id_)
            case facts.PermissionAnswered(id=id_) | facts.QuestionAnswered(id=id_):
                self._waiting.pop(id_, None)
            case _:
                pass

    def answer(self, given: dict[str, Any]) -> None:
        """Deliver an answer. Raises UsageError if nothing waits for it, or something else does."""
        id_ = string_of(given.get("id"))
        future, wanted = self._waiting.get(id_), self._wanted.get(id_)
        if future is None or future.done():
            raise UsageError(f"Nothing with the id {quoted(given.get('id'))} waits for an answer.")
        if wanted and given["type"] != wanted:
            raise UsageError(f"{id_} waits for a {wanted}, not a {given['type']}.")
        future.set_result(given)

    def end(self) -> None:
        """Answer all that waits as if nobody could be asked: the input has ended."""
        self.ended = True
        for future in self._waiting.values():
            if not future.done():
                future.set_result({})

    async def ask(self, call: Call, decision: Decision) -> Answer:
        given = await self._wait(call.id)
        if not given:
            return await super().ask(call, decision)
        return Answer(given["answer"], string_of(given.get("reason")))

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        given = {} if self.ended else await self._wait(await self._asked.get())
        if not given:
            return await super().ask_user(questions, agent)
        answers = [object_of(one) for one in list_of(given.get("answers"))]
        taken = [
            UserAnswer(tuple(map(str, list_of(one.get("chosen")))), string_of(one.get("text")))
            for one in answers
        ]
        taken += [UserAnswer()] * (len(questions) - len(taken))
        return UserAnswers(tuple(taken[: len(questions)]))

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        given = {} if self.ended else await self._wait(await self._asked.get())
        if not given:
            return await super().review_plan(title, plan)
        final = string_of(given.get("plan")) or plan
        return PlanReview(given["answer"], final, string_of(given.get("comment")))

    async def _wait(self, id_: str) -> dict[str, Any]:
        """Return the line that answers; {} if none comes."""
        if self.ended:
            return {}
        try:
            return await self._expect(id_)
        finally:
            self._waiting.pop(id_, None)

    def _expect(self, id_: str) -> asyncio.Future[dict[str, Any]]:
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        return self._waiting.setdefault(id_, future)


def quoted(value: object) -> str:
    """Return a value of a line for an error message; it may be of any size and depth."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = short.maxlong = _QUOTED_CHARS
    text = short.repr(value)
    return text if len(text) <= _QUOTED_CHARS else f"{text[:_QUOTED_CHARS]}…"


class LineConversation:
    """Carries out the lines of one input."""

    def __init__(self, conversation: Conversation, approver: LineApprover) -> None:
        self._conversation = conversation
        self._approver = approver

    async def take(self, line: bytes) -> None:
        """Do what a line says. Raises UsageError for one that isn't understood."""
        try:
            given = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"It isn't JSON: {error}.") from error
        if not isinstance(given, dict):
            raise UsageError("It isn't an object.")
        message = cast("dict[str, Any]", given)
        match message.get("type"):
            case "user":
                await self._prompt(message)
            case "permission_answer":
                self._one_of(message, _ANSWERS)
                self._approver.answer(message)
            case "plan_answer":
                self._one_of(message, _VERDICTS)
                self._approver.answer(message)
            case "question_answer":
                self._approver.answer(message)
            case "interrupt":
                self._conversation.cancel()
            case "set_mode":
                self._agent.permissions.mode = MODES[self._one_of(message, tuple(MODES), "mode")]
            case other:
                raise UsageError(f"The type {quoted(other)} isn't known.")

    @property
    def _agent(self) -> Agent:
        assert self._conversation.agent is not None
        return self._conversation.agent

    def _one_of(self, message: dict[str, Any], known: Sequence[str], field: str = "answer") -> str:
        value = message.get(field)
        if value not in known:
            raise UsageError(f"{field} is one of {', '.join(known)}, not {quoted(value)}.")
        return str(value)

    async def _prompt(self, message: dict[str, Any]) -> None:
        """Send a prompt: `text`, or a `message` of text and images as in the Messages API."""
        content = object_of(message.get("message")).get("content", message.get("text"))
        text = await prompt_text(self._conversation, content)
        if await route_own(self._conversation, text) == "refused":
            raise UsageError("The prompt was refused.")


async def prompt_text(conversation: Conversation, content: object) -> str:
    """Return the text of a prompt, with a word for each of its images, which are attached. Raises
    UsageError for one that is empty or has something else in it."""
    words: list[str] = []
    for block in blocks_of(content):
        if block.get("type") == "text":
            words.append(string_of(block.get("text")))
        elif block.get("type") == "image":
            words.append(await _image(conversation, object_of(block.get("source"))))
        else:
            raise UsageError(f"A prompt has text and images, not {quoted(block.get('type'))}.")
    text = "\n".join(words)
    if not text.strip():
        raise UsageError("The prompt is empty.")
    return text


async def _image(conversation: Conversation, source: dict[str, Any]) -> str:
    """Return the word that stands for an image in the prompt."""
    try:
        data = base64.b64decode(string_of(source.get("data")), validate=True)
    except ValueError as error:
        raise UsageError(f"An image isn't base64: {error}.") from error
    if word := await conversation.images.of_image(data, "sent"):
        return word
    raise UsageError("An image can't be used.")


async def answer_lines(options: Options, source: int, out: TextIO) -> int:
    """Hold a conversation by the lines of a file descriptor, until they end. Returns the exit code:
    that of the last turn, or a failure if lines came and none could be used. Such a line becomes an
    `error` event, and has no other effect.

    SIGINT, SIGTERM and SIGHUP stop what runs and end it. Raises what opening a session raises.
    """
    approver, outcome, stopped = LineApprover(), Outcome(outcome="done"), asyncio.Event()
    worked = False

    def see(event: Fact) -> None:
        nonlocal worked
        worked = worked or isinstance(event, facts.TurnFinished)
        approver.see(event)
        outcome.see(event)
        write_event(event, "stream-json", out, sys.stderr)

    def stop() -> None:
        stopped.set()
        conversation.cancel()

    async with opened(options, approver, see=see, kind="print") as conversation:
        lines = LineConversation(conversation, approver)
        with heeded_signals(stop):
            await _until_end(source, stopped, lines, see)
            approver.end()
            await conversation.quiet()
    return exit_code(outcome) if worked or not outcome.error else EXIT_FAILED


async def _until_end(
    source: int, stopped: asyncio.Event, lines: LineConversation, see: Any
) -> None:
    """Carry out each line, until the input ends or the conversation is stopped."""
    read, number = read_lines(source), 0
    end = asyncio.create_task(stopped.wait(), name="stopped")
    try:
        while True:
            line = asyncio.create_task(read.get(), name="line")
            await asyncio.wait({line, end}, return_when=asyncio.FIRST_COMPLETED)
            if not line.done() or not (text := line.result()):
                line.cancel()
                return
            number += 1
            try:
                if len(text) > MAX_LINE:
                    raise UsageError(f"It is longer than {MAX_LINE // 1_000_000} MB.")
                if text.strip():
                    await lines.take(text)
            except HoldfastError as error:
                message = f"Line {number} of the input: {error.message}"
                see(facts.ErrorRaised("invalid_request", message, True, error.hint))
    finally:
        end.cancel()


def read_lines(source: int) -> asyncio.Queue[bytes]:
    """Return a queue of the lines of an input, with b"" at its end; the rest of a line that is too
    long is left out.

    A thread reads, since not every standard input can be polled; from a file of its own, since the
    interpreter can't end while another thread holds the lock of `sys.stdin`.
    """
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[bytes](_AHEAD)
    file = os.fdopen(os.dup(source), "rb")

    def work() -> None:
        while True:
            try:
                line = tail = file.readline(MAX_LINE + 1)
                while len(tail) > MAX_LINE and not tail.endswith(b"\n"):
                    tail = file.readline(MAX_LINE + 1)
            except (OSError, ValueError):
                line = b""
            try:
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            except (RuntimeError, CancelledError):
                return  # the conversation is over
            if not line:
                return

    Thread(target=work, name="standard input", daemon=True).start()
    return lines

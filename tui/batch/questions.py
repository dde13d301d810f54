"""Tasks as questions without tools: each in a session of its own, which makes its request.

The session is written before anything is sent: it holds the prompt and what was asked, as any
session whose answer has not come. The request is rebuilt from its record, so that a run that was
killed sends the same. The answer is added to the record when it is there.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from hashlib import sha256
from json import dumps
from pathlib import Path
from typing import Final

from msgspec import structs

from tui.agent import answer_end, answer_reports
from tui.agent.agent import Agent
from tui.agent.composition import make_agent
from tui.agent.launch import Launch
from tui.agent.model_access import server_name
from tui.agent.pause import TurnPausedError
from tui.agent.prompts import parse
from tui.agent.turn import message_of
from tui.batch import prompts
from tui.batch.composition import SharedProvider
from tui.batch.state import TaskState
from tui.context.request_replay import RequestReplay
from tui.context.system_prompt import Source
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, ProviderError, SessionError
from tui.core.facts import ErrorRaised, TaskBegun
from tui.core.messages import string_of
from tui.permissions.gate import RulesOnly
from tui.provider.base import Completed, ModelInfo, Provider, Request, StreamPart
from tui.session import catalog
from tui.session.reader import read
from tui.session.records import Record
from tui.session.request_numbers import REQUEST
from tui.session.session import Session

_ID_CHARS: Final = 40
_DONE: Final = frozenset({"assistant", "error", "user"})
"""The records that may come after a request: where one did, it needs no answer any more."""


def custom_ids(tasks: Sequence[TaskState], nonce: str) -> list[str]:
    """The custom ids of tasks: by group and text, and, of equal ones, by their order. `nonce`
    tells a batch from others of the same tasks."""
    seen: Counter[tuple[str, str]] = Counter()
    ids: list[str] = []
    for task in tasks:
        what = (task.group, task.task)
        seen[what] += 1
        digest = sha256(dumps([*what, seen[what]]).encode()).hexdigest()
        ids.append(f"{digest[:_ID_CHARS]}-{nonce}")
    return ids


class _NoAnswer(SharedProvider):
    """A server that isn't asked: the turn stops once its request is recorded."""

    async def stream(self, request: Request) -> AsyncGenerator[StreamPart]:  # noqa: ARG002 - as the port has it
        raise TurnPausedError
        yield  # makes it a generator


@dataclass(frozen=True, slots=True)
class Questions:
    """Makes the questions of a run, and records their answers. `launch` is that of the run,
    `server` says what is known of models."""

    launch: Launch
    model: ModelInfo
    server: Provider
    clock: Clock

    async def session_of(self, task: TaskState) -> str:
        """The id of the session that asks a task: the one it has, if it waits for an answer of the
        same model; else a new one, whose request is recorded."""
        if task.session_id:
            request = await asyncio.to_thread(self.request_of, task.session_id)
            if request is not None and request.model == self.model.id and not request.tools:
                return task.session_id
        agent = await asyncio.to_thread(self._new_agent)
        try:
            agent.models.use(self.model)
            await agent.start()
            agent.session.record(TaskBegun(task.index, task.group, task.task))
            async with aclosing(agent.send(parse("", attached=task.task))) as events:
                async for _ in events:
                    pass
        finally:
            await agent.close()
        if not agent.session.requests:
            raise HoldfastError(
                f"Task {task.index + 1} can't be asked.", hint="The log file may say why."
            )
        return agent.session.id

    def request_of(self, session: str) -> Request | None:
        """The request that a session waits for an answer to, rebuilt from its record; None where
        there is none. Blocks."""
        try:
            records = read(catalog.resolve(session, self.launch.folders)).records
        except SessionError:
            return None
        if _open_request(records) is None:
            return None
        replay = RequestReplay(records)
        made = replay.at(max(replay.requests))
        return None if made.problem else made.request

    async def answered(self, session: str, answer: Completed | ProviderError, batch: str) -> None:
        """Add a result to the record of its session, unless it is there, or the conversation went
        on without it, or was deleted. Raises HoldfastError where it cannot be written."""
        try:
            path = await asyncio.to_thread(catalog.resolve, session, self.launch.folders)
        except SessionError:
            return
        opened = await asyncio.to_thread(Session.open, path, clock=self.clock)
        opened.redact = self.launch.config.redact == "record"
        try:
            # a killed run may have recorded the answer already
            request = _open_request(opened.records)
            if request is not None and isinstance(answer, Completed):
                bound = string_of(request.data.get("bound")) or string_of(
                    request.data.get("sha256")
                )
                message = message_of(answer, answer.content, bound, server_name(self.launch))
                opened.record(structs.replace(message, batch=batch))
            failure = failure_of(answer)
            if request is not None and failure is not None:
                opened.record(
                    ErrorRaised(
                        failure.error_class,
                        failure.message,
                        recoverable=True,
                        hint=failure.hint,
                        status=failure.status,
                        request_id=failure.request_id,
                    )
                )
        finally:
            await opened.close()

    def _new_agent(self) -> Agent:
        """An agent without tools, MCP servers and a sandbox that it would not use. Blocks."""
        launch = self.launch
        quiet = replace(
            launch,
            answers_only=True,
            confined=False,
            config=structs.replace(launch.config, mcp={}),
            texts=(Source("own", "Holdfast", prompts.QUESTION), *launch.texts),
        )
        folder: Path = launch.workspace.root
        home, profile = launch.folders, launch.config.profile
        session = Session.create(folder, folders=home, clock=self.clock, profile=profile)
        return make_agent(
            quiet, session, RulesOnly(), clock=self.clock, provider=_NoAnswer(self.server)
        )


def failure_of(answer: Completed | ProviderError) -> ProviderError | None:
    """Return the error that a result is to a task; None where it is an answer."""
    if isinstance(answer, ProviderError):
        return answer
    if answer.stop_reason == "refusal":
        return ProviderError(
            "refusal",
            answer_reports.refusal(answer.stop_details),
            hint="Rephrase the task, or ask another model with -m.",
        )
    if answer.stop_reason == "model_context_window_exceeded":
        return ProviderError(
            "context_overflow", "The answer filled the context window.", hint="Divide the task."
        )
    try:
        answer_end.check(answer)
    except ProviderError as error:
        return error
    return None


def _open_request(records: Sequence[Record]) -> Record | None:
    """The one request of a session, where nothing came after it."""
    requests = [record for record in records if record.type == REQUEST]
    last = next((r for r in reversed(records) if r.type == REQUEST or r.type in _DONE), None)
    return last if len(requests) == 1 and last is requests[0] else None

"""A machine whose sessions go on by the test's command, for the line to another machine.

`python -m tests.support.far_machine FOLDER [PAGES]` serves one on its stdin and stdout: a session
with a record and a question, and one whose record has so many pages. The answers that it got are in
the file `ended` there, once it has ended.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tui.app.door.lines import (
    AskedLine,
    FactLine,
    FromOwner,
    GiveAnswer,
    Hello,
    RecordEnd,
    RecordLines,
    RequestOutcome,
    SendPrompt,
    SessionStatus,
    Settled,
    StopTurn,
    ToOwner,
    Watch,
)
from tui.core.errors import HoldfastError
from tui.core.questions import UserQuestion
from tui.desk.far_host import FarHost
from tui.desk.host import Changed, DeskRow
from tui.desk.serve import serve_stdio
from tui.permissions.asked import AskedQuestions


def question(number: str) -> AskedLine:
    """A question with a number."""
    one = UserQuestion(header=number, text=f"Question {number}?", choices=())
    asked = AskedQuestions((one,), "")
    return AskedLine(number=number, asked=asked)


@dataclass
class ScriptedSession:
    """A session: its record, what is said since, its open questions, and what was asked of it."""

    id: str
    records: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])
    questions: dict[str, AskedLine] = field(default_factory=dict[str, AskedLine])
    answers: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    stops: int = 0
    outcomes: dict[str, RequestOutcome] = field(default_factory=dict[str, RequestOutcome])
    channels: list[ScriptedChannel] = field(default_factory=list["ScriptedChannel"])
    row: DeskRow = field(init=False)

    def __post_init__(self) -> None:
        self.row = DeskRow(id=self.id, state="working", title=f"Session {self.id}")

    @property
    def last(self) -> str:
        return f"{self.id}-{len(self.records)}" if self.records else ""

    def say(self, text: str) -> None:
        """Stream a piece of an answer."""
        self.said.append(text)
        self._tell(FactLine(fact={"type": "text_delta", "text": text}))

    def record(self, kind: str, text: str) -> None:
        """Write a record, which makes what was said a part of it."""
        id_ = f"{self.id}-{len(self.records) + 1}"
        self.records.append(json.dumps({"id": id_, "type": kind, "text": text}))
        self.said.clear()
        self._tell(FactLine(fact={"type": kind, "record": id_, "text": text}))

    def ask(self, number: str) -> None:
        """Ask the person something."""
        self.questions[number] = question(number)
        self._tell(self.questions[number])

    def _tell(self, message: FromOwner) -> None:
        for channel in self.channels:
            if channel.watches or not isinstance(message, FactLine):
                channel.put(message)

    def take(self, channel: ScriptedChannel, message: ToOwner) -> None:
        """Do as an owner does: each request once, however often it comes."""
        match message:
            case Watch(after=after):
                channel.watches = True
                number = int(after.rpartition("-")[2] or 0)
                for first in range(number, len(self.records), 50):
                    channel.put(RecordLines(lines=tuple(self.records[first : first + 50])))
                channel.put(RecordEnd(last=self.last))
                for text in self.said:
                    channel.put(FactLine(fact={"type": "text_delta", "text": text}))
            case SendPrompt(number=number) | GiveAnswer(number=number) | StopTurn(number=number):
                if number not in self.outcomes:
                    self.outcomes[number] = self._outcome(message)
                channel.put(self.outcomes[number])

    def _outcome(self, request: SendPrompt | GiveAnswer | StopTurn) -> RequestOutcome:
        match request:
            case SendPrompt(number=number, text=text):
                self.record("user", text)
                return RequestOutcome(number=number, outcome="sent")
            case GiveAnswer(number=number, to=to, answer=answer):
                if self.questions.pop(to, None) is None:
                    text = "It was answered elsewhere."
                    return RequestOutcome(number=number, outcome="refused", text=text)
                self.answers.append((to, answer))
                self._tell(Settled(number=to))
                return RequestOutcome(number=number, outcome="done")
            case StopTurn(number=number):
                self.stops += 1
                return RequestOutcome(number=number, outcome="done")


class ScriptedChannel:
    """A channel of a session: it falls behind as one does whose lines nobody receives."""

    def __init__(self, session: ScriptedSession) -> None:
        self._session = session
        self.watches = False
        self._lines: deque[FromOwner | None] = deque()
        self._came = asyncio.Event()
        self.put(Hello(session=session.id, kind="background"))
        self.put(SessionStatus(state="working"))
        for asked in session.questions.values():
            self.put(asked)
        session.channels.append(self)

    @property
    def backlog(self) -> int:
        """The messages that nobody has received."""
        return len(self._lines)

    def put(self, message: FromOwner | None) -> None:
        self._lines.append(message)
        self._came.set()

    async def receive(self) -> FromOwner | None:
        while not self._lines:
            self._came.clear()
            await self._came.wait()
        return self._lines.popleft()

    def send(self, message: ToOwner) -> None:
        self._session.take(self, message)

    async def close(self) -> None:
        if self in self._session.channels:
            self._session.channels.remove(self)


@dataclass
class ScriptedMachine:
    """The sessions of a machine, and what was asked of it. `host()` is one process's sight."""

    sessions: dict[str, ScriptedSession] = field(default_factory=dict[str, ScriptedSession])
    started: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    dismissed: list[str] = field(default_factory=list[str])
    dismissal: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str = ""
    followers: list[Changed] = field(default_factory=list[Changed])

    def session(self, id_: str) -> ScriptedSession:
        """The session with an id, made where there is none."""
        if id_ not in self.sessions:
            self.sessions[id_] = ScriptedSession(id_)
            self.changed()
        return self.sessions[id_]

    def changed(self) -> None:
        for follower in self.followers:
            follower()

    def host(self) -> ScriptedHost:
        return ScriptedHost(self)


class ScriptedHost:
    """A `DeskHost` of a scripted machine."""

    name = ""

    def __init__(self, machine: ScriptedMachine) -> None:
        self._machine = machine
        self._followed: list[Changed] = []
        self.closed = False

    @property
    def problem(self) -> str:
        return self._machine.problem

    @property
    def rows(self) -> Sequence[DeskRow]:
        return [one.row for one in self._machine.sessions.values()]

    def follow(self, changed: Changed) -> None:
        self._followed.append(changed)
        self._machine.followers.append(changed)
        changed()

    async def open(self, session: str) -> ScriptedChannel:
        await asyncio.sleep(0)
        if session not in self._machine.sessions:
            raise HoldfastError(f"There is no session {session}.", hint="Look at the list.")
        return ScriptedChannel(self._machine.sessions[session])

    async def start(self, cwd: str, prompt: str) -> str:
        if not prompt:
            raise HoldfastError("There is nothing to do.", hint="Type a prompt.")
        self._machine.started.append((cwd, prompt))
        return self._machine.session(f"new{len(self._machine.started)}").id

    async def dismiss(self, session: str) -> None:
        self._machine.dismissed.append(session)
        self._machine.dismissal.set()

    async def close(self) -> None:
        self.closed = True
        for changed in self._followed:
            self._machine.followers.remove(changed)


def main(folder: Path, pages: int) -> int:
    """Serve a machine, until its input ends."""
    machine = ScriptedMachine()
    for page in range(pages):
        machine.session("large").record("user", random.Random(page).randbytes(1500).hex())
    session = machine.session("abc123")
    session.record("user", "hello")
    session.ask("q1")
    print("a print that must not get between the lines", flush=True)
    code = serve_stdio(folder, 0, 1, machine.host())
    print("nor one at the end", flush=True)
    (folder / "ended").write_text(json.dumps(session.answers))
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int([*sys.argv, "0"][2])))


async def until(host: FarHost, true: Callable[[], object]) -> None:
    """Wait until something is true of a host, which says when it has changed."""
    came = asyncio.Event()
    host.follow(came.set)
    while not true():
        came.clear()
        await came.wait()

"""A conversation between two records: what runs now and isn't written yet, folded from its facts.

A pure fold. It holds what one turn has under way, each part bounded, and nothing of its history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from tui.core import facts
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.errors import words
from tui.core.fact_words import goal_brief
from tui.core.facts import Fact
from tui.core.formatting import local_time, shortened
from tui.core.text_cleaning import one_line
from tui.tools.registry import title, verb

OUTPUT_CHARS: Final = 200_000
"""Characters of what a running call printed that are told again, counted from the end."""
ANSWER_CHARS: Final = 2_000_000
"""Characters of a streaming answer, or summary, that are told again, from the end."""
SAID: Final = 20
"""Notices of the running turn that are told again though no record has them."""
DETAIL_CHARS: Final = 100

Delta: TypeAlias = facts.TextDelta | facts.ThinkingDelta | facts.ToolInputDelta
_LAST: Final = (
    *(facts.SessionStarted, facts.DirectivesChanged, facts.StorageChanged),
    *(facts.ContextMeasured, facts.TodosChanged, facts.QueueChanged),
)
"""Facts of which the last one counts, in the order in which they are told again."""
_SHELL: Final = "shell"


class Tail:
    """The end of a text that comes in pieces."""

    __slots__ = ("_most", "_pieces", "_size")

    def __init__(self, most: int) -> None:
        self._pieces, self._size, self._most = deque[str](), 0, most

    def add(self, piece: str) -> None:
        """Append a piece. The oldest ones go where the text is too long."""
        if len(piece) > self._most:
            self._pieces.clear()
            self._size, piece = 0, piece[-self._most :]
        self._pieces.append(piece)
        self._size += len(piece)
        while self._size > self._most:
            self._size -= len(self._pieces.popleft())

    def __str__(self) -> str:
        return "".join(self._pieces)


@dataclass(slots=True)
class _RunningCall:
    started: facts.ToolStarted
    at: float
    asked: Fact | None = None
    """The question that it waits with."""
    denied: bool = False
    output: Tail = field(default_factory=lambda: Tail(OUTPUT_CHARS))
    picture: str = ""
    printed: bool = False

    def facts(self, now: float) -> Iterator[Fact]:
        """The facts that show it to somebody who has its record."""
        if self.denied:
            return  # its record says so
        yield replace(self.started, seconds=self.started.seconds + max(0.0, now - self.at))
        if self.printed:
            yield facts.ToolOutputChunk(self.started.id, str(self.output), self.picture)
        if self.asked is not None:
            yield self.asked


class _Streaming:
    """The parts of an answer that is coming, in their order: deltas, and calls that the server
    makes itself."""

    __slots__ = ("_parts", "_size", "sent")

    def __init__(self) -> None:
        self.sent: facts.RequestSent | None = None
        self._parts = deque[Fact]()
        self._size = 0

    def begin(self, sent: facts.RequestSent | None) -> None:
        """Start over: what came before is void, or recorded."""
        self.sent, self._size = sent, 0
        self._parts.clear()

    def add(self, part: Fact) -> None:
        self._parts.append(part)
        self._size += len(getattr(part, "text", ""))
        while self._size > ANSWER_CHARS and len(self._parts) > 1:
            self._size -= len(getattr(self._parts.popleft(), "text", ""))

    def copy(self) -> _Streaming:
        other = _Streaming()
        other.sent, other._parts, other._size = self.sent, self._parts.copy(), self._size
        return other

    def facts(self) -> Iterator[Fact]:
        """The facts that show it, each run of deltas in one."""
        if self.sent is not None:
            yield self.sent
            yield from joined(self._parts)

    def calls(self) -> Iterator[facts.ToolStarted]:
        """The server's calls that have no end yet."""
        ended = {one.id for one in self._parts if isinstance(one, facts.ToolFinished)}
        for one in self._parts:
            if isinstance(one, facts.ToolStarted) and one.id not in ended:
                yield one


def joined(parts: Iterable[Fact]) -> Iterator[Fact]:
    """The same facts, with deltas of one kind that follow upon each other in one."""
    run: list[Any] = []
    for part in parts:
        if run and (key := _joint(part)) is not None and key == _joint(run[0]):
            run.append(part)
            continue
        if run:
            yield _in_one(run)
        run = [part]
    if run:
        yield _in_one(run)


def _in_one(run: list[Any]) -> Fact:
    """Facts of one kind as one; the last picture of what a command draws counts."""
    return replace(run[-1], text="".join([one.text for one in run])) if run[1:] else run[0]


def _joint(fact: Fact) -> tuple[object, ...] | None:
    """The key of the facts that may be joined with this one; None for those that stay alone."""
    match fact:
        case facts.TextDelta() | facts.ThinkingDelta():
            return (type(fact),)
        case facts.ToolInputDelta(id_, name):
            return type(fact), id_, name
        case facts.ToolOutputChunk(id_):
            return type(fact), id_
        case _:
            return None


class LiveState:
    """The state of one session's work, by its `clock`.

    `parked` is true while the turn waits for the time that the server named. `outcome` is that of
    the last turn, "" before one; `answer` the last complete answer, `error` what a turn failed
    with; `goal` says how far that is.
    """

    def __init__(self, clock: Clock) -> None:
        self.outcome = self.answer = self.error = self.goal = ""
        self.in_turn = False
        self._clock = clock
        self._last: dict[type[object], Fact] = {}
        self._answer = _Streaming()
        self._phase: Fact | None = None
        """The fact that says what happens now, where no call runs."""
        self._calls: dict[str, _RunningCall] = {}
        self._written: dict[str, str] = {}
        """Calls of a complete answer that have not begun, with their names."""
        self._summary: Tail | None = None
        self._said = deque[Fact](maxlen=SAID)
        self._own: deque[tuple[Fact, Fact]] = deque(maxlen=SAID)
        """The person's own commands that no record has yet: their begin and their end."""

    # Folding

    def see(self, fact: Fact) -> None:  # noqa: C901, PLR0912, PLR0915 - one case per fact
        """Take a fact into account."""
        match fact:
            case facts.TextDelta() | facts.ThinkingDelta() | facts.ToolInputDelta():
                self._answer.add(fact)
                self._phase = fact
            case facts.ToolOutputChunk(id_, text, picture):
                if call := self._calls.get(id_):
                    call.output.add(text)
                    call.picture, call.printed = picture, True
            case facts.Alive():
                pass
            case facts.ToolStarted():
                self._begin(fact)
            case facts.PermissionAsked(id_) | facts.QuestionAsked(id_):
                self._ask(id_, fact)
            case facts.PermissionAnswered() | facts.QuestionAnswered():
                self._decide(fact)
            case facts.SubAgentEvent(id_) if (waits := facts.awaits_person(fact)) is not None:
                self._ask(id_, fact if waits else None)
            case facts.ToolFinished():
                self._finish(fact)
            case facts.RequestSent():
                self.in_turn = True
                self._answer.begin(fact)
                self._phase, self._summary = fact, None
            case facts.AssistantMessage():
                self._complete(fact)
            case facts.UserMessage():
                self.in_turn, self._phase, self.error = True, None, ""
                self._said.clear()
                self._own.clear()
            case facts.TurnFinished(outcome):
                self.outcome = outcome
                self._end()
            case facts.RetryScheduled() | facts.Parked():
                self._answer.begin(None)
                self._phase = fact
            case facts.ModelSwitched() | facts.RecoveryStep():
                self._answer.begin(None)
                self._use_model(fact)
            case facts.ErrorRaised(message=message):
                self._answer.begin(None)
                self.error = message
            case facts.GoalChanged(state=state, why=why):
                self.goal = goal_brief(fact)
                self.error = self.error if fact.open or state == "met" else f"goal not met: {why}"
            case facts.CompactionStarted() | facts.ExamStarted():
                self._phase = fact
                self._summary = Tail(ANSWER_CHARS)
            case facts.OverflowCompactionStarted() | facts.ToolsAwaited():
                self._phase = fact
            case facts.CompactionDelta(text):
                self._summarize(text)
            case facts.CompactionFinished():
                self._phase = self._summary = None
            case facts.Notice() if type(fact) is facts.Notice:
                self._said.append(fact)
            case _ if isinstance(fact, _LAST):
                self._last[type(fact)] = fact
            case _ if isinstance(fact, facts.TurnInterrupted):
                self._answer.begin(None)
                self._phase = None
            case facts.HandOff() | facts.LoopStopped():
                self._answer.begin(None)
                self._said.append(fact)
            case facts.ToolsChanged() | facts.Pruned():
                self._said.append(fact)
            case _:
                pass

    def _begin(self, fact: facts.ToolStarted) -> None:
        if self._answer.sent is not None:  # of the server's own tools
            self._answer.add(fact)
            return
        self._written.pop(fact.id, None)
        self._calls[fact.id] = _RunningCall(fact, self._clock.monotonic())
        self._phase = None

    def _ask(self, id_: str, asked: Fact | None) -> None:
        if call := self._calls.get(id_):
            call.asked = asked

    def _decide(self, fact: facts.PermissionAnswered | facts.QuestionAnswered) -> None:
        if not (call := self._calls.get(fact.id)):
            return
        call.asked, call.at = None, self._clock.monotonic()
        if isinstance(fact, facts.PermissionAnswered):
            call.denied = fact.answer in {"no", "deny"}
            if label := label_as_run(call.started, fact.subject):
                call.started = replace(call.started, label=label)

    def _finish(self, fact: facts.ToolFinished) -> None:
        if self._answer.sent is not None and fact.id not in self._calls:
            self._answer.add(fact)
        elif (call := self._calls.pop(fact.id, None)) and fact.name == _SHELL:
            self._own.append((call.started, fact))

    def _complete(self, fact: facts.AssistantMessage) -> None:
        """The answer is in the record: what is left of it are its calls."""
        for call in self._answer.calls():
            self._calls[call.id] = _RunningCall(call, self._clock.monotonic())
        self._answer.begin(None)
        self.answer = fact.text or self.answer
        self._written = {
            str(block.get("id")): str(block.get("name"))
            for block in fact.content
            if block.get("type") == "tool_use"
        }

    def _summarize(self, text: str) -> None:
        if not text:
            self._summary = Tail(ANSWER_CHARS)
        elif self._summary is not None:
            self._summary.add(text)

    def _use_model(self, fact: facts.ModelSwitched | facts.RecoveryStep) -> None:
        begun = self._last.get(facts.SessionStarted)
        if isinstance(fact, facts.ModelSwitched) and isinstance(begun, facts.SessionStarted):
            self._last[facts.SessionStarted] = replace(begun, model=fact.new)

    def _end(self) -> None:
        self.in_turn, self._phase, self._summary = False, None, None
        self._answer.begin(None)
        self._calls.clear()
        self._written.clear()
        self._last.pop(facts.QueueChanged, None)
        todos = self._last.get(facts.TodosChanged)
        if isinstance(todos, facts.TodosChanged) and all(
            one.get("status") == "completed" for one in todos.todos
        ):
            del self._last[facts.TodosChanged]

    # Telling

    @property
    def parked(self) -> bool:
        return isinstance(self._phase, facts.Parked)

    def copy_with(self, pending: Iterable[Fact]) -> LiveState:
        """A state in which these facts have been seen, too. This one stays as it is, but must not
        be used before the copy is dropped: parts of both are the same."""
        other = LiveState(self._clock)
        for name, value in vars(self).items():
            setattr(other, name, _copied(value))
        other._answer = self._answer.copy()
        for fact in pending:
            other.see(fact)
        return other

    def facts(self) -> list[Fact]:
        """The fewest facts that tell somebody who has the record what isn't in it."""
        now = self._clock.monotonic()
        told = [self._last[kind] for kind in _LAST if kind in self._last]
        told += self._said
        for pair in self._own:
            told += pair
        told += self._answer.facts()
        if self._answer.sent is None and self._phase is not None:
            told.append(_again(self._phase))
        if self._summary is not None and str(self._summary):
            told.append(facts.CompactionDelta(str(self._summary)))
        told += [facts.ToolInputDelta(id_, name, "") for id_, name in self._written.items()]
        for call in self._calls.values():
            told += call.facts(now)
        return told

    @property
    def detail(self) -> str:
        """The work in a few words, "" while nothing runs."""
        return short(self._detail())

    def _detail(self) -> str:
        running = [one for one in self._calls.values() if not one.denied]
        if running:
            first = next((one for one in running if one.asked is not None), running[0]).started
            more = f" and {len(running) - 1} more" if running[1:] else ""
            return f"{title(first.name, first.label)}{more}"
        match self._phase:
            case facts.TextDelta():
                return "answering"
            case facts.ThinkingDelta():
                return "thinking"
            case facts.ToolInputDelta(name=name):
                return f"writing: {verb(name)}"
            case facts.RequestSent(model=model):
                return f"waiting for {model}"
            case facts.RetryScheduled(error_class=kind, attempt=attempt, max_attempts=most):
                return f"{words(kind)}, retry {attempt} of {most}"
            case facts.Parked(until, _, kind):
                return f"{words(kind)}, until {local_time(until)}"
            case facts.CompactionStarted() | facts.OverflowCompactionStarted():
                return "compacting"
            case facts.ExamStarted():
                return "checking the summary"
            case facts.ToolsAwaited(servers):
                return f"waiting for MCP servers: {', '.join(servers)}"
            case _:
                return "working" if self.in_turn else ""


def label_as_run(call: facts.ToolStarted, subject: str) -> str:
    """The label of a command as it runs, which a hook may have changed after the model wrote it; ""
    where it is the same."""
    written = call.input.get("command")
    if call.name == "run_command" and subject and written not in {None, subject}:
        return one_line(subject)
    return "" if call.label else subject


def short(text: str) -> str:
    """A text as a row has room for."""
    return shortened(one_line(text), DETAIL_CHARS)


def _again(phase: Fact) -> Fact:
    """The fact that says once more what happens now, and adds nothing."""
    match phase:
        case facts.TextDelta() | facts.ThinkingDelta() | facts.ToolInputDelta():
            return replace(phase, text="")
        case _:
            return phase


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return dict(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - of any kind
    if isinstance(value, deque):
        return value.copy()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - of any kind
    return value

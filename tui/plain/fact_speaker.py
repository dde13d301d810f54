"""Follows one session's events and says them: streamed text by finished lines, waits by their
marks.

It remembers what a line needs beside its event: which call, who spoke last, how full the context
was.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from datetime import timedelta
from functools import partial
from typing import Final

from tui.core import facts
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.facts import Fact
from tui.core.formatting import duration, moment_of
from tui.core.images import without_words, words_in
from tui.core.text_cleaning import current_lines
from tui.plain.fact_lines import image, labelled, lines, meter, of_a_wait, tool
from tui.plain.markdown_to_speech import Reader
from tui.plain.speech_text import shown

MARKS: Final = (43_200, 21_600, 7200, 3600, 1800, 600, 300, 60)
"""Seconds left of a wait at which it is mentioned again."""

AT_WORK: Final = (30, 60, 120, 300, 600)
"""Seconds of silence after which the speaker says that something continues; afterwards the
last interval repeats."""

SOON_S: Final = 1.0
"""A tool that finishes sooner is mentioned only when it has finished."""

KEPT_OUTPUTS: Final = 50
KEPT_CHARS: Final = 1_000_000


@dataclass(slots=True)
class Output:
    """The output of a tool, or its result for the model."""

    name: str
    text: str = ""


@dataclass(slots=True)
class FactSpeaker:
    """Says the events of a session. `say` prints lines. `typed` are texts that are on the terminal
    already, since a person has just typed them."""

    clock: Clock
    say: Callable[..., None]
    typed: list[str] = field(default_factory=list[str])
    measured: facts.ContextMeasured | None = None
    todos: tuple[dict[str, str], ...] = ()
    elevated: bool = False
    verbose: bool = False
    outputs: deque[Output] = field(default_factory=lambda: deque(maxlen=KEPT_OUTPUTS))
    _streamed: bool = False
    """True if parts of the streaming answer were taken in."""
    _reader: Reader = field(default_factory=partial(Reader, numbered=True))
    _speaking: bool = False
    _thinking: bool = False
    _labels: dict[str, str] = field(default_factory=dict[str, str])
    _open: dict[str, Output] = field(default_factory=dict[str, Output])
    _unsaid: dict[str, facts.ToolStarted] = field(default_factory=dict[str, facts.ToolStarted])
    """Calls that have begun but were not mentioned yet."""
    _shell: str = ""
    _begun: str = ""
    """The unfinished line of the output of the person's own command."""
    _over: bool = False
    _wait: asyncio.Task[None] | None = None

    def speak(self, event: Fact) -> None:  # noqa: C901, PLR0912 - one case per event
        """Say one event."""
        self._follow(event)
        match event:
            case facts.TextDelta(text):
                self._thinking = False
                self._streamed = True
                self._speak(self._reader.feed(text))
            case facts.ThinkingDelta():
                if not self._thinking:
                    self._end_speech()
                    self._thinking = True
                    self.say("Thinking.")
            case facts.AssistantMessage(text=text):
                streamed = self._streamed
                self._end_speech()
                self._reader.drop()
                self._streamed = False
                if text and not streamed:
                    self.say(*lines(event))
            case facts.RequestSent():
                self._void()
            case facts.UserMessage(text, attached):
                self._end_speech()
                typed = text.removesuffix(attached).rstrip() if attached else text
                # A prompt that was typed here is on the terminal already.
                if (plain := without_words(typed)) in self.typed:
                    self.typed.remove(plain)
                    self.say(*(image(word) for word in words_in(typed)))
                else:
                    self.say(*lines(event))
            case facts.ToolStarted():
                self._end_speech()
            case facts.ToolOutputChunk(id_, text):
                self._hear(id_, text)
            case facts.ContextMeasured():
                self._measure(event)
            case facts.TodosChanged(todos):
                self.todos = todos
                self.say(*lines(event))
            case facts.DirectivesChanged():
                self.elevated, self.verbose = event.elevated, event.verbose
            case facts.RetryScheduled() | facts.ModelSwitched() | facts.ErrorRaised():
                self._void()
                self.say(*lines(event))
            case facts.Parked():
                self._void()
                self.say(*of_a_wait(event, self.clock.now()))
            case _:
                if spoken_lines := lines(event, self._labels.get(getattr(event, "id", ""), "")):
                    self._end_speech()
                    self.say(*spoken_lines)

    def stop(self) -> None:
        """Stop speaking: nothing is happening any more."""
        self._end_speech()
        self._streamed = False
        if self._wait is not None:
            self._wait.cancel()
            self._wait = None

    def _follow(self, event: Fact) -> None:
        """Remember the call, and start or end speaking of a wait."""
        match event:
            case facts.ToolStarted():
                self._start(event)
            # While the person is asked, no wait is spoken of.
            case facts.PermissionAsked() | facts.QuestionAsked():
                self._begin(None)
            case facts.PermissionAnswered(id_, name) | facts.QuestionAnswered(id_, name):
                self._begin(self._at_work(tool(name, self._labels.get(id_, ""))))
            case facts.ToolFinished():
                if self._begun:
                    self.say(*shown(self._begun))
                self._shell = self._begun = ""
                self._unsaid.pop(event.id, None)
                output = self._open.pop(event.id, Output(event.name))
                output.text = output.text or event.text
                self.outputs.append(output)
                self._begin(None)
            case facts.RequestSent(model=model):
                self._begin(self._at_work(f"Waiting for {model}"))
            case facts.CompactionStarted():
                self._begin(self._at_work("Compacting"))
            case facts.RetryScheduled(delay_s=delay):
                self._begin(self._countdown(delay))
            case facts.Parked(until):
                at = moment_of(until)
                left = at - self.clock.now() if at else timedelta(0)
                self._begin(self._countdown(left.total_seconds()))
            case facts.TextDelta() | facts.AssistantMessage() | facts.TurnFinished():
                self._begin(None)
            case _:
                pass

    def _start(self, event: facts.ToolStarted) -> None:
        """Remember a call. The person's own command is said at once, unless it was just typed."""
        id_, name, label = event.id, event.name, event.label
        self._labels[id_] = label
        self._open[id_] = Output(f"{name} {label}".strip())
        if name != "shell":
            self._unsaid[id_] = event
        elif label in self.typed:
            self.typed.remove(label)
        else:
            self.say(*lines(event))
        self._shell = id_ if name == "shell" else self._shell
        self._begin(self._at_work(tool(name, label)))

    def _speak(self, speech: list[str]) -> None:
        if not self._speaking and (speech := labelled("Holdfast", speech)):
            self._speaking = True
        self.say(*speech)

    def _end_speech(self) -> None:
        self._speak(self._reader.end())
        self._speaking = self._thinking = False

    def _void(self) -> None:
        """Forget what was not spoken yet, since another attempt begins."""
        self._reader.drop()
        self._speaking = self._thinking = False
        self._streamed = False

    def _hear(self, id_: str, text: str) -> None:
        """Keep a tool's output; that of the person's own command is also said."""
        if (output := self._open.get(id_)) is not None:
            output.text = current_lines(output.text + text)[-KEPT_CHARS:]
        if id_ == self._shell:
            *whole, self._begun = current_lines(self._begun + text).split("\n")
            self.say(*(line for each in whole for line in shown(each)))

    def _measure(self, event: facts.ContextMeasured) -> None:
        """Say that the context is nearly full, once each time it becomes so."""
        self.measured = event
        over = bool(event.window) and event.tokens >= event.threshold * event.window
        if over and not self._over:
            self._end_speech()
            self.say(f"Context: {meter(event)}")
        self._over = over

    def _begin(self, wait: Coroutine[None, None, None] | None) -> None:
        if self._wait is not None:
            self._wait.cancel()
            self._wait = None
        if wait is not None:
            self._wait = asyncio.create_task(wait, name="speaking of a wait")

    async def _countdown(self, left: float) -> None:
        """Speak of a wait at its marks."""
        for mark in MARKS:
            if left > mark + 5:
                await self.clock.sleep(left - mark)
                left = mark
                self.say(f"Still waiting: {duration(left)} left; Ctrl+C stops.")

    async def _at_work(self, what: str) -> None:
        """Say soon what is happening, and now and then that it continues."""
        began, reports = self.clock.monotonic(), 0
        await self.clock.sleep(SOON_S)
        for event in self._unsaid.values():
            self.say(*lines(event))
        self._unsaid.clear()
        while True:
            due = (
                AT_WORK[reports]
                if reports < len(AT_WORK)
                else AT_WORK[-1] * (reports - len(AT_WORK) + 2)
            )
            await self.clock.sleep(max(0.0, began + due - self.clock.monotonic()))
            reports += 1
            self.say(f"{what}: still working after {duration(due)}; Ctrl+C stops.")

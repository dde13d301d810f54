"""One attempt at a task: a turn of an agent, its output written to a log as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Literal, TextIO, TypeAlias

from msgspec.structs import replace

from tui.agent.agent import Agent
from tui.agent.prompts import ParsedPrompt, parse
from tui.batch.state import PARTIAL_CHARS, TaskState
from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.errors import StorageError, os_error_as
from tui.core.facts import Fact
from tui.core.messages import Usage
from tui.core.text_cleaning import current_lines, without_colours

Outcome: TypeAlias = Literal["done", "interrupted", "failed", "limit"]


@dataclass(slots=True)
class TaskAttempt:
    """The outcome of an attempt. `context` is the size of its last request in tokens; `output`
    the last PARTIAL_CHARS characters of its output.

    `prompted`: the task is in the session's record, so that the attempt can be continued.
    `unreadable`: the server's answers make no sense.
    """

    outcome: Outcome = "failed"
    error_class: str | None = None
    message: str = ""
    answer: str = ""
    prompted: bool = False
    unreadable: bool = False
    context: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    output: str = ""
    _said: str = ""

    def see(self, event: Fact) -> str:
        """Take note of an event. Returns what it adds to the log."""
        match event:
            case facts.UserMessage():
                self.prompted = True
                return ""
            case facts.TextDelta(text):
                pass
            case facts.ToolStarted(name=name, label=label):
                text = f"\n» {name} {label}\n"
            case facts.ToolOutputChunk(text=text):
                text = without_colours(text)
            case facts.ToolFinished(is_error=True, summary=summary):
                text = f"\n» failed {summary}\n"
            case facts.AssistantMessage(answer, _, usage):
                self.answer, self.context, text = answer or self.answer, usage.context, "\n"
            case facts.RetryScheduled(attempt, most, delay_s, reason):
                text = f"\n» {reason} retry {attempt} of {most} in {delay_s:.0f} s\n"
            case facts.ErrorRaised(kind, message, _, hint, unreadable=unreadable):
                self.error_class, self.message = kind, message
                self.unreadable = unreadable is True
                text = f"\n» {kind}: {message} {hint}\n"
            case facts.Notice(text):
                self._said = text
                return ""
            case facts.TurnFinished(outcome, usage, cost):
                self.outcome, self.usage, self.cost_usd = outcome, usage, cost
                if outcome == "limit":
                    self.message = self.message or self._said
                return ""
            case _:
                return ""
        self.output = current_lines(self.output + text)[-PARTIAL_CHARS:]
        return text


async def attempt(
    agent: Agent,
    prompt: str,
    *,
    log: Path,
    publish: Callable[[Fact], None],
    stopping: Callable[[], bool],
    open_calls: Collection[str] = (),
    recorded: bool = False,
) -> TaskAttempt:
    """Send a task to an agent; "" continues where the last attempt of its session failed, after
    `open_calls` of it got their results. In a `recorded` prompt, names after `@` count.

    Directives in the text have no effect. `stopping` is asked before the turn begins: until then
    the agent has nothing that could be cancelled. Raises StorageError if the log cannot be
    opened; if it cannot be written later, only the rest of the log is lost.
    """
    made = TaskAttempt(prompted=not prompt)
    parsed = ParsedPrompt(prompt, prompt) if recorded else parse("", attached=prompt)
    turn = agent.send(parsed) if prompt else agent.go_on(open_calls)
    file = await asyncio.to_thread(_opened, log)
    try:
        if stopping():
            return TaskAttempt("interrupted")
        async with aclosing(turn) as events:
            async for event in events:
                _write(file, made.see(event))
                publish(event)
    finally:
        with suppress(OSError):  # what a full disk didn't take is tried once more
            file.close()
    return made


def _opened(log: Path) -> TextIO:
    hint = "Free up space or fix its permissions, then run again."
    with os_error_as(StorageError, f"Can't write the log {log}", hint=hint):
        log.parent.mkdir(parents=True, exist_ok=True)
        return log.open("a", encoding="utf-8", errors="replace")


def _write(file: TextIO, text: str) -> None:
    if not text:
        return
    try:
        file.write(text)
        file.flush()
    except OSError:
        pass  # the session's record has it all; only the copy for reading along ends here


def counted(task: TaskState, made: TaskAttempt, *, keep_class: bool) -> TaskState:
    """The task with the usage and cost of an attempt or an analysis added, and its error class."""
    known = task.cost_usd is not None and made.cost_usd is not None
    changes: dict[str, Any] = {
        "usage": (Usage.from_json(task.usage) + made.usage).to_json(),
        "cost_usd": (task.cost_usd or 0.0) + (made.cost_usd or 0.0) if known else None,
    }
    if not keep_class:
        changes["error_class"] = None if made.outcome == "done" else made.error_class or "unknown"
    return replace(task, **changes)

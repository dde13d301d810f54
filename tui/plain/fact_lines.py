"""Turns facts into lines that say who speaks: one `match`, no state. `tui.plain.fact_speaker`
handles what streams.

A fact that makes no difference to a listener has no line.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import floor

from tui.core import facts
from tui.core.errors import words as class_in_words
from tui.core.fact_words import Sentence, acknowledgement, fact_lines, side_note, words
from tui.core.facts import Fact
from tui.core.formatting import money, plural
from tui.plain.markdown_to_speech import read
from tui.plain.speech_text import counted, cut, percent, sentence, shown, spoken, took

_CHANGED = re.compile(r"\+(\d+) −(\d+)")
_PROBLEMS = re.compile(r"(?:^| · )\d+ new problems?$")
_PROBLEM_LINES = 10
"""Most problems spoken of those that an edit caused."""
_ERROR_LINES = 5
"""Most lines spoken of a failed tool's output: its last."""


def lines(event: Fact, label: str = "") -> list[str]:  # noqa: C901, PLR0912 - one case per event
    """Return the lines for an event. `label` is that of the tool call that it is about."""
    match event:
        case facts.SessionStarted():
            return _started(event)
        case facts.UserMessage(by="goal"):
            return []  # the line of its round says it
        case facts.UserMessage(text, attached):
            typed = text.removesuffix(attached).rstrip() if attached else text
            return labelled("You", shown(typed))
        case facts.DirectivesChanged(think, verbose, elevated):
            on = {"think": think, "verbose": verbose, "elevated": elevated}
            return [
                spoken(f"{acknowledgement({name: True})}.") for name, value in on.items() if value
            ]
        case facts.AssistantMessage(text=text):
            return labelled("Holdfast", read(text, numbered=True))
        case facts.SourcesCited(pages):
            names = (spoken(f"{page['title']}, {page['url']}") for page in pages)
            return ["Sources:", *(f"  {name}" for name in names)]
        case facts.ToolStarted(name=name):
            return [f"{tool(name, event.label)}: started."]
        case facts.PermissionAnswered():
            return _answered(event, label)
        case facts.ToolFinished():
            return _finished(event, label)
        case facts.SubAgentStarted() | facts.SubAgentEvent() | facts.SubAgentFinished():
            return _of_a_sub_agent(event)
        case facts.TodosChanged(todos):
            return todo_lines(todos)
        case facts.Debug(text):
            return labelled("Debug", [line for line in shown(text.strip("\n")) if line.strip()])
        case facts.ErrorRaised("unknown", message, _, hint):
            return [sentence(f"Error: {message}", hint)]
        case facts.ErrorRaised(error_class, message, _, hint):
            return [sentence(f"Error, {class_in_words(error_class)}: {message}", hint)]
        case (
            facts.RetryScheduled()
            | facts.Parked()
            | facts.CompactionStarted()
            | facts.OverflowCompactionStarted()
            | facts.ExamStarted()
        ):
            return of_a_wait(event, datetime.now(UTC))
        case facts.RepairApplied() | facts.ExamFinished():
            return _in_full(event)
        case facts.CacheWarmed(times) if times > 1:
            return []  # said at the first time; /usage has the sum
        case facts.SideQuestion():
            return _side_question(event)
        case facts.ContextFiles():
            return [sentence(line) for line in fact_lines(event)]
        case _:
            return sentence_lines(words(event, datetime.now(UTC)))


def sentence_lines(said: Sentence | None, *more: str) -> list[str]:
    """Return a fact in words, and `more` sentences."""
    if said is None:
        return []
    rows = said.detail.splitlines() if said.open else ()
    return [sentence(said.text, said.hint, *more), *(f"  {spoken(row)}" for row in rows)]


def of_a_wait(event: Fact, now: datetime) -> list[str]:
    """Say why nothing comes for a while."""
    return sentence_lines(words(event, now), "Ctrl+C stops")


def _side_question(event: facts.SideQuestion) -> list[str]:
    """Say what came of a side question, and the answer as the model's others are said."""
    wording = words(event)
    said = [sentence(wording.text)] if wording else []
    said += labelled("Holdfast, aside", read(event.answer, numbered=False))
    return [*said, sentence(note)] if (note := side_note(event)) else said


def _in_full(event: facts.RepairApplied | facts.ExamFinished) -> list[str]:
    """Return all details except those that are as they should be."""
    wording = words(event)
    rows = wording.detail.splitlines() if wording else []
    return [
        *sentence_lines(wording),
        *(f"  {spoken(row)}" for row in rows if not row.startswith("✓")),
    ]


def labelled(who: str, speech: list[str]) -> list[str]:
    """Return lines of which the first says who speaks."""
    while speech and not speech[0].strip():
        speech = speech[1:]
    return [f"{who}: {speech[0]}", *speech[1:]] if speech else []


def tool(name: str, label: str = "") -> str:
    """Return the name of a tool call, or of the person's own command."""
    return (
        f"Your command {spoken(label)}" if name == "shell" else f"Tool {spoken(f'{name} {label}')}"
    )


def image(word: str) -> str:
    """Name an image that goes along, from the word that stands for it: `[image 1: a.png 8×8 75
    B]`."""
    return sentence(f"With {word.strip('[]')}")


def todo_lines(todos: tuple[dict[str, str], ...]) -> list[str]:
    """Return the agent's list, each item with its state."""
    if not todos:
        return []
    done = sum(todo.get("status") == "completed" for todo in todos)
    states = {"completed": "done", "in_progress": "now"}
    head = f"To do: {done} of {len(todos)} done."
    return [
        head,
        *(
            f"  {states.get(str(todo.get('status')), 'open')}: {spoken(str(todo.get('text', '')))}"
            for todo in todos
        ),
    ]


def meter(event: facts.ContextMeasured) -> str:
    """Say in a sentence how full the context is."""
    full = percent(event.tokens, event.window)
    mark = f"compacts at {round(100 * event.threshold)} percent"
    source = ", window assumed" if event.window_source == "assumed" else ""
    figures = f"{event.tokens:,} of {counted(event.window)}"
    return f"{full} of the context, {figures}{source}, {mark}."


def spending(event: facts.ContextMeasured) -> str:
    """Say what came from the cache and what the session has cost, as far as it is known."""
    if event.cache_share is None:
        return ""
    cached = f"{floor(100 * event.cache_share)} percent of the last request from the cache"
    cost = f"Session cost: {money(event.cost_usd)}" if event.cost_usd else ""
    return sentence(cached, cost)


def _started(event: facts.SessionStarted) -> list[str]:
    how = "resumed" if event.resumed else "new"
    kept = "" if event.path else "It is kept in memory only"
    whose = f", profile {event.profile}" if event.profile else ""
    return [sentence(f"Session {event.session_id}, {how}, model {event.model}{whose}", kept)]


def _answered(event: facts.PermissionAnswered, label: str) -> list[str]:
    """Say who allowed a call without being asked, and every no."""
    if event.answer in {"no", "deny"}:
        reason = f": {event.reason}" if event.reason else ""
        return [sentence(f"{tool(event.name, label)}: not allowed{reason}")]
    if event.by == "elevated":
        return [f"{tool(event.name, label)}: elevated, no prompt."]
    return [f"{tool(event.name, label)}: runs {event.level}."] if event.level else []


def _finished(event: facts.ToolFinished, label: str) -> list[str]:
    name = "Your command" if event.name == "shell" else tool(event.name, label)
    seconds = took(event.seconds)
    if event.summary in {"interrupted", "stopped"}:
        return [sentence(f"{name}: interrupted after {seconds}", cut(event.receipt))]
    if event.summary == "denied":
        return []  # said when it was answered
    how = "failed after" if event.is_error else "finished in"
    images = plural(len(event.images), "image") if event.images else ""
    parts = [_summary(event.summary), images, cut(event.receipt)]
    line = ", ".join([f"{name}: {how} {seconds}", *filter(None, parts)])
    sentence_lines = [line if line.endswith(".") else f"{line}."]
    if event.is_error and event.name != "shell":
        end = [text for text in shown(event.text) if text.strip()][-_ERROR_LINES:]
        sentence_lines += [f"  {text}" for text in end if spoken(text) != spoken(event.summary)]
    return [*sentence_lines, *_problems(event)]


def _problems(event: facts.ToolFinished) -> list[str]:
    """Return the problems that an edit caused, which precede its difference."""
    if not _PROBLEMS.search(event.summary):
        return []
    rows = event.display.partition("\n\n")[0].splitlines()[1:]
    more = len(rows) - _PROBLEM_LINES
    omitted = [f"  and {more} more"] if more > 0 else []
    return [*(f"  {spoken(row)}" for row in rows[:_PROBLEM_LINES]), *omitted]


def _of_a_sub_agent(
    event: facts.SubAgentStarted | facts.SubAgentEvent | facts.SubAgentFinished,
) -> list[str]:
    """Say that a sub-agent works, how it ended, and what went wrong or was not allowed
    meanwhile."""
    name = f"Sub-agent {spoken(event.agent)}"
    match event:
        case facts.SubAgentStarted(description=about, model=model, resumed=resumed):
            begins = "continues" if resumed else "started"
            return [sentence(f"{name}: {begins}, {spoken(about)}, model {model}")]
        case facts.SubAgentFinished(outcome=outcome, calls=calls, usage=usage, cost_usd=usd):
            cost = money(usd) if usd else ""
            parts = [plural(calls, "call"), f"{usage.total:,} tokens", cost]
            return [sentence(f"{name}: {outcome}, {', '.join(filter(None, parts))}")]
        case facts.SubAgentEvent(event=inner):
            match inner:
                case (
                    facts.PermissionAnswered()
                    | facts.RetryScheduled()
                    | facts.ErrorRaised()
                    | facts.Notice()
                ):
                    return [f"{name}: {line}" for line in lines(inner)]
                case _:
                    return []


def _summary(summary: str) -> str:
    """Return a tool's own words; for a change, without its signs."""
    first, *others = summary.split(" · ")
    if counts := _CHANGED.fullmatch(first):
        changed = f"{plural(int(counts[1]), 'line')} added, {counts[2]} removed"
        return ", ".join([changed, *map(spoken, others)])
    return spoken(summary)

"""Events as lines that say who speaks: one `match`, no state. What streams is
`tui.plain.event_speaker`'s.

A fact that changes nothing for whoever listens has no line.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import floor
from typing import Any

from tui.agent.event_text import hook_report, moment_of
from tui.agent.prompts import acknowledgement
from tui.context import project_files
from tui.context.interrupted_calls import INTERRUPTION
from tui.core import facts
from tui.core.errors import words
from tui.core.facts import Fact
from tui.core.formatting import duration, moment, money, plural
from tui.plain.markdown_to_speech import read
from tui.plain.speech_text import counted, cut, percent, sentence, shown, spoken, took

_CHANGED = re.compile(r"\+(\d+) −(\d+)")
_PROBLEMS = re.compile(r"(?:^| · )\d+ new problems?$")
_PROBLEM_LINES = 10
"""How many of the problems that an edit brought along are spoken."""
_ENDED = {
    "interrupted": ["Stopped. What should it do instead?"],
    "limit": ["Stopped: the turn reached its limit."],
    "failed": ["The turn failed. Nothing is lost."],
}
_ERROR_LINES = 5
"""How many lines of a failed tool's output are spoken: its last."""


def lines(event: Fact, label: str = "") -> list[str]:  # noqa: C901, PLR0912 - one case per event
    """The lines that tell an event. `label` is of the tool call that it is about."""
    match event:
        case facts.SessionStarted():
            return _started(event)
        case facts.UserMessage(text, attached):
            typed = text.removesuffix(attached).rstrip() if attached else text
            return labelled("You", shown(typed))
        case facts.DirectivesChanged(think, verbose, elevated):
            on = {"think": think, "verbose": verbose, "elevated": elevated}
            return [
                spoken(f"{acknowledgement({name: True})}.") for name, value in on.items() if value
            ]
        case facts.AssistantMessage(text=text):
            return labelled("Holdfast", read(text))
        case facts.SourcesCited(pages):
            names = (spoken(f"{page['title']}, {page['url']}") for page in pages)
            return ["Sources:", *(f"  {name}" for name in names)]
        case facts.ToolStarted(name=name):
            return [f"{tool(name, event.label)}: started."]
        case facts.PermissionAnswered():
            return _answered(event, label)
        case facts.ToolFinished():
            return _finished(event, label)
        case facts.HookFinished():
            return [sentence(spoken(said))] if (said := hook_report(event)) else []
        case facts.JobStarted() | facts.JobFinished():
            return [sentence(spoken(event.summary))]
        case facts.SubAgentStarted() | facts.SubAgentEvent() | facts.SubAgentFinished():
            return _of_a_sub_agent(event)
        case facts.TodosChanged(todos):
            return todo_lines(todos)
        case facts.StorageChanged(saved, detail):
            return [sentence("Everything is saved again" if saved else f"Not saved: {detail}")]
        case (
            facts.Notice(text)
            | facts.ToolsChanged(text=text)
            | facts.FilesChanged(text=text)
            | facts.ContextBroken(text=text)
            | facts.ThinkingDropped(text=text)
        ):
            return [sentence(text)]
        case facts.Debug(text):
            return labelled("Debug", [line for line in shown(text.strip("\n")) if line.strip()])
        case facts.ErrorRaised("unknown", message, _, hint):
            return [sentence(f"Error: {message}", hint)]
        case facts.ErrorRaised(error_class, message, _, hint):
            return [sentence(f"Error, {words(error_class)}: {message}", hint)]
        case facts.TurnFinished(outcome):
            return _ENDED.get(outcome, [])
        case _:
            return _of_the_context(event) or of_a_request(event)


def labelled(who: str, speech: list[str]) -> list[str]:
    """Lines of which the first says who speaks."""
    while speech and not speech[0].strip():
        speech = speech[1:]
    return [f"{who}: {speech[0]}", *speech[1:]] if speech else []


def tool(name: str, label: str = "") -> str:
    """What a tool call is called, or the person's own command."""
    return (
        f"Your command {spoken(label)}" if name == "shell" else f"Tool {spoken(f'{name} {label}')}"
    )


def image(word: str) -> str:
    """An image that goes along, by the word that stands for it: `[image 1: a.png 8×8 75 B]`."""
    return sentence(f"With {word.strip('[]')}")


def todo_lines(todos: tuple[dict[str, str], ...]) -> list[str]:
    """The agent's list, each item with how it stands."""
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
    """How full the context is, in a sentence."""
    full = percent(event.tokens, event.window)
    mark = f"compacts at {round(100 * event.threshold)} percent"
    source = ", window assumed" if event.window_source == "assumed" else ""
    figures = f"{event.tokens:,} of {counted(event.window)}"
    return f"{full} of the context, {figures}{source}, {mark}."


def spending(event: facts.ContextMeasured) -> str:
    """What came from the cache and what the session has cost, as far as it is known."""
    if event.cache_share is None:
        return ""
    cached = f"{floor(100 * event.cache_share)} percent of the last request from the cache"
    cost = f"Session cost: {money(event.cost_usd)}" if event.cost_usd else ""
    return sentence(cached, cost)


def of_a_request(event: Fact, now: datetime | None = None) -> list[str]:
    """What became of a request that did not go well."""
    match event:
        case facts.RetryScheduled():
            void = "Discard what was read of this answer" if event.received else ""
            wait = "Retrying now" if event.delay_s < 1 else f"Waiting {_wait(event.delay_s)}"
            which = f"try {event.attempt} of {event.max_attempts}"
            return [sentence(event.reason, void, f"{wait}, {which}; Ctrl+C stops")]
        case facts.Parked(until, reason, error_class):
            at = moment_of(until)
            when = f" until {moment(at, now or datetime.now(UTC))}" if at else ""
            goes_on = "Continues by itself; Ctrl+C stops it"
            return [sentence(f"Parked{when}: {words(error_class)}", reason, goes_on)]
        case facts.ModelSwitched():
            return [_switched(event)]
        case facts.RecoveryStep():
            size = f"from {event.tokens_before:,} to {counted(event.tokens_after)}"
            return [
                sentence(f"The request was too large: {event.text}, {size}", "Sending it again")
            ]
        case facts.LoopStopped(name, _, times):
            stopped = f"Stopped: {name} was called {times} times in a row with the same result"
            return [sentence(stopped, "What should it do instead?")]
        case _:
            return []


def _of_the_context(event: Fact) -> list[str]:  # noqa: C901, PLR0912 - one case per event
    """What was done to the context."""
    match event:
        case facts.OverflowCompactionStarted(number, of, size):
            return [f"Compacting, part {number} of at most {of}, {counted(size)}."]
        case facts.CompactionStarted(_, size, messages):
            what = (
                f"{plural(messages, 'message')}, {counted(size)}" if messages else "older messages"
            )
            return [f"Compacting {what}. Ctrl+C stops it."]
        case facts.CompactionFinished(problem=problem) if problem:
            return [sentence(f"Not compacted: {problem}")]
        case facts.CompactionFinished(before, after, removed):
            size = f"from {before:,} to {counted(after)}"
            what = f"a summary replaces {plural(removed, 'message')}"
            return [f"Compacted {size}: {what}. /uncompact restores everything."]
        case facts.ExamStarted(_, model):
            return [f"Checking the summary with {model}. Ctrl+C stops it."]
        case facts.ExamFinished():
            lost = [f"  {line}" for line in event.detail.splitlines() if not line.startswith("✓")]
            return [event.text, *map(spoken, lost)]
        case facts.CompactionUndone(size):
            return [f"Sending the full conversation again: {counted(size)}."]
        case facts.Pruned(results, saved):
            return [f"{plural(results, 'old result')} pruned, saving {counted(saved)} per request."]
        case facts.MemorySaved(path, entries):
            if not entries:
                return []
            return [f"Saved {plural(entries, 'line')} to memory: {path}."]
        case facts.HandOff(asked, done, left):
            return [
                sentence(f"Stopped: the work was going in circles. Asked: {asked}"),
                *(spoken(f"  done: {each}") for each in done),
                *(spoken(f"  left: {each}") for each in left),
            ]
        case facts.ContextFiles(files):
            return [sentence(text) for text in project_files.context_file_cuts(files)]
        case facts.ToolsAwaited(servers):
            return [f"Waiting for MCP servers: {', '.join(servers)}."]
        case facts.RepairApplied(findings):
            return _repaired(findings)
        case facts.ContextChanged(changes):
            return [_context_change(change) for change in changes]
        case _:
            return []


def _started(event: facts.SessionStarted) -> list[str]:
    how = "resumed" if event.resumed else "new"
    kept = "" if event.path else "It is kept in memory only"
    return [sentence(f"Session {event.session_id}, {how}, model {event.model}", kept)]


def _answered(event: facts.PermissionAnswered, label: str) -> list[str]:
    """Who said yes without being asked, and every no."""
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
        return []  # as it was answered
    how = "failed after" if event.is_error else "finished in"
    images = plural(len(event.images), "image") if event.images else ""
    parts = [_summary(event.summary), images, cut(event.receipt)]
    line = ", ".join([f"{name}: {how} {seconds}", *filter(None, parts)])
    told = [line if line.endswith(".") else f"{line}."]
    if event.is_error and event.name != "shell":
        end = [text for text in shown(event.text) if text.strip()][-_ERROR_LINES:]
        told += [f"  {text}" for text in end if spoken(text) != spoken(event.summary)]
    return [*told, *_problems(event)]


def _problems(event: facts.ToolFinished) -> list[str]:
    """The problems that an edit brought along, which are above its difference."""
    if not _PROBLEMS.search(event.summary):
        return []
    rows = event.display.partition("\n\n")[0].splitlines()[1:]
    more = len(rows) - _PROBLEM_LINES
    rest = [f"  and {more} more"] if more > 0 else []
    return [*(f"  {spoken(row)}" for row in rows[:_PROBLEM_LINES]), *rest]


def _of_a_sub_agent(
    event: facts.SubAgentStarted | facts.SubAgentEvent | facts.SubAgentFinished,
) -> list[str]:
    """That it works, how it ended, and of what it does what went wrong or was not allowed."""
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
    """A tool's own words; those of a change without its signs."""
    first, *others = summary.split(" · ")
    if found := _CHANGED.fullmatch(first):
        changed = f"{plural(int(found[1]), 'line')} added, {found[2]} removed"
        return ", ".join([changed, *map(spoken, others)])
    return spoken(summary)


def _switched(event: facts.ModelSwitched) -> str:
    if event.error_class is None:
        return sentence(f"Back to the model {event.new}: {event.reason}")
    at = moment_of(event.back_at)
    when = f" from {moment(at, datetime.now(UTC))} on" if at else " by itself"
    back = f"Back to {event.old}{when}, or with /model {event.old}"
    return sentence(event.reason, f"Switched to {event.new}", back)


def _repaired(findings: tuple[dict[str, str], ...]) -> list[str]:
    """Damage, not mere interruptions: those are told with their calls."""
    damage = [one for one in findings if one.get("code") != INTERRUPTION]
    if not damage:
        return []
    places = "one place" if len(damage) == 1 else f"{len(damage):,} places"
    where = (f"  {one.get('where', '')}: {one.get('action', '')}" for one in damage)
    return [
        f"Repaired this session in {places}; its file is unchanged.",
        *(f"  {spoken(text)}" for text in where),
    ]


def _context_change(change: dict[str, Any]) -> str:
    if "pinned" in change:
        return "Pinned." if change["pinned"] else "Unpinned."
    view = change.get("view")
    states = {"full": "sent in full again", "masked": "masked", "pruned": "pruned"}
    return f"One item is {states.get(str(view), str(view))}, starting with the next request."


def _wait(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else duration(seconds)

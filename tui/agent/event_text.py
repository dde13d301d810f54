"""Events in words, for readers of lines: standard error of `-p`, a log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from tui.context import project_files
from tui.context.interrupted_calls import INTERRUPTION
from tui.core import facts
from tui.core.facts import Fact
from tui.core.formatting import local, plural
from tui.core.text_cleaning import one_line
from tui.tools.present_plan import PresentPlan

_HEADERS = 3
"""Questions nobody could answer that a line names; the others are counted."""
_HOOK_CHARS = 300
"""Of what a hook prints, in a line."""


def event_lines(event: Fact) -> Sequence[str]:
    """An event as lines; none for one that is shown in another way, or not at all."""
    match event:
        case facts.ErrorRaised():
            return (f"{event.error_class}: {event.message}", event.hint)
        case facts.Notice(text):
            return (text,)
        case facts.SourcesCited(pages):
            return ("Sources:", *(f"  {page['title']} {page['url']}" for page in pages))
        case facts.ContextFiles(files):
            return project_files.context_file_cuts(files)
        case facts.ToolsAwaited(servers, limit_s):
            return (f"Waiting up to {limit_s:.0f} s for the MCP servers: {', '.join(servers)}.",)
        case (
            facts.ToolsChanged(text=text)
            | facts.FilesChanged(text=text)
            | facts.ContextBroken(text=text)
            | facts.ThinkingDropped(text=text)
        ):
            return (text,)
        case facts.StorageChanged(saved=False):
            return (f"Not saved: {event.detail}",)
        case facts.RepairApplied(findings):
            # That a turn was interrupted is no damage; whoever opens the session says it.
            count = sum(finding.get("code") != INTERRUPTION for finding in findings)
            said = f"The session was damaged: {count} repair{'s' * (count != 1)} in memory."
            return (said,) if count else ()
        case facts.PermissionAnswered(answer="no" | "deny"):
            return (f"{event.name} was not allowed: {event.reason}",)
        case _:
            return _of_what_ran(event) or _of_a_request(event)


def _of_what_ran(event: Fact) -> Sequence[str]:
    """What ran beside the conversation, and what nobody answered."""
    match event:
        case facts.HookFinished():
            return tuple(filter(None, (hook_report(event),)))
        case facts.JobStarted() | facts.JobFinished():
            return (f"{event.summary}.",)
        case facts.SubAgentStarted() | facts.SubAgentEvent() | facts.SubAgentFinished():
            return _of_a_sub_agent(event)
        case facts.QuestionAnswered(by="default"):
            return (_unanswered(event),)
        case _:
            return ()


def hook_report(event: facts.HookFinished) -> str:
    """What went wrong with a hook, or what it printed for the person, as a sentence; "" where
    there is nothing to say or others say it."""
    what = f"The {event.event} hook {one_line(event.command)}"
    if event.outcome == "ok" and event.text:
        return f"{what} says: {_short(one_line(event.text))}"
    if event.outcome in {"ok", "blocked"}:
        return ""
    if event.outcome == "cancelled":
        return f"{what} was stopped"
    code = "" if event.exit_code is None else f" (exit {event.exit_code})"
    said = f": {one_line(event.text)}" if event.text else ""
    return f"{what} failed{code}{said}"


def _short(text: str) -> str:
    return text if len(text) <= _HOOK_CHARS else f"{text[: _HOOK_CHARS - 1]}…"


def _unanswered(event: facts.QuestionAnswered) -> str:
    """What becomes of a question that nobody could answer."""
    if event.name == PresentPlan.name:
        return "Nobody could approve the plan: it is the result of this run."
    headers = [str(one["header"]) for one in event.answers]
    about = ", ".join(headers[:_HEADERS])
    if (more := len(headers) - _HEADERS) > 0:
        about += f" and {more} more"
    if event.server:
        name = one_line(event.server)
        return f"Nobody could answer the MCP server {name} ({one_line(about)}): declined."
    return f"Nobody could answer ({about}): the model decides."


def _of_a_sub_agent(
    event: facts.SubAgentStarted | facts.SubAgentEvent | facts.SubAgentFinished,
) -> Sequence[str]:
    name = f"Sub-agent {event.agent}"
    match event:
        case facts.SubAgentStarted(description=about, model=model, resumed=resumed):
            return (f"{name}: {about} ({model}{', continued' if resumed else ''})",)
        case facts.SubAgentEvent(event=inner):
            return [f"{name}: {line}" for line in event_lines(cast("Fact", inner)) if line]
        case facts.SubAgentFinished(outcome=outcome, calls=calls, usage=usage):
            return (f"{name}: {outcome}, {plural(calls, 'call')}, {usage.total:,} tokens",)


def _of_a_request(event: Fact) -> Sequence[str]:
    """What became of a request that did not go well."""
    match event:
        case facts.RetryScheduled():
            which = f"Retry {event.attempt} of {event.max_attempts} in {event.delay_s:.0f} s"
            return (f"{event.reason} {which}{_about(event)}.",)
        case facts.Parked():
            return (
                f"{event.error_class}: {event.reason} The turn continues at {when(event.until)}.",
            )
        case facts.ModelSwitched():
            again = when(event.back_at) if event.back_at else ""
            back = f" Returns to {event.old} at {again}." if again else ""
            return (f"Model switched: {event.old} → {event.new} ({event.reason}).{back}",)
        case facts.RecoveryStep():
            size = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
            return (f"The request was too large: {event.text} ({size}).",)
        case facts.CompactionFinished(problem=""):
            size = f"{event.tokens_before:,} → {event.tokens_after:,} tokens"
            return (f"Compacted: {size}, a summary replaces {event.messages_removed:,} messages.",)
        case facts.ExamFinished():
            return (event.text,)
        case facts.CompactionFinished():
            return (f"Not compacted: {event.problem}",)
        case _:
            return ()


def moment_of(text: object) -> datetime | None:
    """A moment as events and records have it; None where it is none."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo else None


def when(time: str) -> str:
    """A time as events and records have it, in the person's time zone."""
    then = moment_of(time)
    return local(then) if then else time


def _about(event: facts.RetryScheduled) -> str:
    """What else is known of an attempt that failed."""
    known = [f"request {event.request_id}"] if event.request_id else []
    known += [f"{event.received:,} characters received were discarded"] if event.received else []
    return f" ({', '.join(known)})" if known else ""

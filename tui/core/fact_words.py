"""Every fact in words: the one place that words what happened.

`words` returns a sentence for each fact that a person reads as a sentence, and None for those that
are silent, or have a form of their own in each front end (an answer, a tool's card, the meter).
Screen, plain lines, standard error of `-p`, editors, exports and reports use it, live and for the
replay of a record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, assert_never, cast

from tui.core import facts
from tui.core.dataclass import dataclass
from tui.core.errors import words as class_in_words
from tui.core.facts import INTERRUPTION, Fact, Told
from tui.core.facts.work import END_UNKNOWN
from tui.core.formatting import (
    duration,
    local,
    moment,
    moment_of,
    money,
    plural,
    shortened,
    tokens,
    wait_time,
)
from tui.core.messages import string_of
from tui.core.paths import shorten
from tui.core.text_cleaning import one_line

Level: TypeAlias = Literal["info", "success", "warning", "error"]

_HEADERS: Final = 3
"""Unanswered questions that a sentence names; the others are counted."""
_ASKED_CHARS: Final = 160
"""Maximum characters of a side question in its first line."""
_HOOK_CHARS: Final = 300
"""Maximum characters that a sentence repeats of a hook's output."""
_HOOK_NAME: Final = 160
"""And of its command."""
_PLAN_TOOL: Final = "present_plan"
RELOAD_WAITS: Final = "The next /compact picks up the changes."

_CACHE_MISSES: Final = {
    "model_changed": "another model was used",
    "system_changed": "the system prompt changed",
    "tools_changed": "the tools changed",
    "messages_changed": "earlier messages changed",
    "previous_message_not_found": "the server no longer knows the last answer",
    "unavailable": "the server can't say what changed",
}
"""The server's reasons why the cache was missed, in words."""
_MISFITS: Final = {
    "prefix_binding_mismatch": "earlier messages have changed",
    "model_binding_mismatch": "this model can't read another model's thinking",
    "organization_binding_mismatch": "they belong to another organization's key",
    "end_user_binding_mismatch": "they belong to another user",
}
_STOPPED_BY: Final = {"person": "stopped by you", "model": "stopped by the model"}
_FEATURES: Final = {
    "turn_effort": "effort levels inside a conversation",
    "tool_additions": "tools that join a conversation",
    "system_messages": "system messages inside a conversation",
    "diagnostics": "reasons for cache misses",
    "binding_reports": "reports about earlier thinking",
    "cache_life": "a one-hour cache",
    "updates": "thinking shown as updates",
    "display": "a choice of how to show thinking",
    "thinking": "adaptive thinking",
    "cache_marks": "cache marks",
    "effort": "effort levels",
    "documents": "PDF documents",
    "web_search": "searching the web",
}
_SWITCHES: Final[Mapping[tuple[str, bool | str], str]] = {
    ("think", True): "think is on: the model is asked to reason before acting",
    ("think", False): "think is off",
    ("verbose", True): "verbose is on: every decision is shown",
    ("verbose", False): "verbose is off",
    ("elevated", True): "ELEVATED is on: no prompts; blocked commands stay blocked",
    ("elevated", False): "elevated is off: writes and commands ask again",
}
ITEM_STATES: Final = {
    "full": "",
    "masked": "hidden",
    "pruned": "left out",
    "summarised": "summarized",
}
"""Displayed states of an item of the context that differ from their names."""

_VIEWS: Final = {
    "full": "sent in full again",
    "masked": "hidden from the model",
    "pruned": "left out",
    "clamped": "cut further",
    "imageless": "sent without its images",
}

_REASONS: Final = {
    "mask": "item hidden",
    "unmask": "item shown again",
    "prune": "old results left out",
}
"""The reasons of breaks whose names in the record are not the screens' words."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A fact as a person reads it. `text` stands alone. `detail` are lines below it, folded on the
    screen and left out elsewhere unless they are `open`; `hint` tells what to do."""

    text: str
    level: Level = "info"
    detail: str = ""
    hint: str = ""
    open: bool = False

    @property
    def lines(self) -> tuple[str, ...]:
        """The sentence for places where nothing can be unfolded: its text, the open detail, the
        hint."""
        rows = self.detail.splitlines() if self.open else ()
        return (self.text, *(f"  {row}" for row in rows), *filter(None, (self.hint,)))


def words(fact: Told, now: datetime | None = None) -> Sentence | None:  # noqa: C901, PLR0912, PLR0915 - one case per fact
    """A fact in words, or None. `now` is when they are read; without it, they may be read later or
    elsewhere, and times say their day and zone."""
    match fact:
        case facts.ToolsAwaited(servers, limit_s):
            names = ", ".join(servers)
            return Sentence(f"Waiting up to {limit_s:.0f} s for the MCP servers: {names}.")
        case facts.ToolsChanged(text=text):
            return Sentence(text)
        case facts.PermissionAnswered(answer="no" | "deny"):
            why = f": {fact.reason}" if fact.reason else ""
            return Sentence(f"{fact.name} was not allowed{why}")
        case facts.QuestionAnswered(by="default"):
            return Sentence(_unanswered(fact))
        case facts.HookFinished() if sentence := _hook(fact):
            level = "info" if fact.outcome == "ok" else "warning"
            whole = f"{fact.command}\n{fact.text}".strip()
            short = len(one_line(fact.command)) <= _HOOK_NAME and len(fact.text) <= _HOOK_CHARS
            return Sentence(f"{sentence}.", level, "" if short else whole)
        case facts.JobStarted():
            how = "moved to the background" if fact.moved_by else "started in the background"
            about = f": {fact.command}" if fact.command else ""
            return Sentence(f"{fact.id or 'A command'} {how}{about}.")
        case facts.JobFinished():
            level: Level = "success" if fact.exit_code == 0 else "warning"
            level = "info" if fact.stopped_by else level
            path = f"all output: {shorten(Path(fact.path))}" if fact.path else ""
            detail = "\n".join(filter(None, (fact.text, path)))
            return Sentence(f"{one_line(job_end(fact))}.", level, detail)
        case facts.SubAgentStarted(description=about, model=model, resumed=resumed):
            again = ", continued" if resumed else ""
            return Sentence(f"Sub-agent {fact.agent}: {about} ({model}{again})")
        case facts.SubAgentFinished(outcome=outcome, calls=calls, usage=usage, cost_usd=usd):
            cost = [money(usd)] if usd else []
            parts = [outcome, plural(calls, "call"), f"{usage.total:,} tokens", *cost]
            return Sentence(f"Sub-agent {fact.agent}: {', '.join(parts)}")
        case facts.SubAgentEvent(event=inner):
            if (sentence := words(cast("Fact", inner), now)) is None:
                return None
            text = f"Sub-agent {fact.agent}: {sentence.text}"
            return Sentence(text, sentence.level, sentence.detail, sentence.hint, sentence.open)
        case facts.RetryScheduled():
            which = f"Retry {fact.attempt} of {fact.max_attempts} in {_wait(fact.delay_s)}"
            known = [f"request {fact.request_id}"] if fact.request_id else []
            if fact.received:
                known.append(f"{fact.received:,} characters received were discarded")
            about = f" ({', '.join(known)})" if known else ""
            return Sentence(f"{fact.reason} {which}{about}.", "warning")
        case facts.Parked(until, reason, error_class):
            at = moment_of(until)
            when = f" until {_moment(at, now)}" if at else ""
            why = f": {_ended(one_line(reason))}" if reason else "."
            parked = f"Parked{when} ({class_in_words(error_class)}){why}"
            return Sentence(f"{parked} It continues by itself.", "warning")
        case facts.ModelSwitched(error_class=None):
            return Sentence(
                f"Back to the model {fact.new}: {_ended(fact.reason)}{_sent_again(fact)}"
            )
        case facts.ModelSwitched():
            at = moment_of(fact.back_at)
            when = f"at {_moment(at, now)}" if at else "by itself"
            back = f"Back to {fact.old} {when}, or with /model {fact.old}."
            text = f"{_ended(fact.reason)} Switched to {fact.new}.{_sent_again(fact)} {back}"
            id_ = f"request {fact.request_id}" if fact.request_id else ""
            return Sentence(text, "warning", id_)
        case facts.RecoveryStep(_, text, before, after):
            size = f"{tokens(before)} → {tokens(after)} tokens" if before else ""
            what = ", ".join(filter(None, (text, size)))
            return Sentence(f"The request was too large: {what}. It is sent again.", "warning")
        case facts.ThinkingDropped():
            return Sentence(_misfits(fact))
        case facts.OverflowCompactionStarted(number, of, size):
            return Sentence(f"Compacting {number} of {of}, {tokens(size)} tokens.")
        case facts.CompactionStarted(_, size, messages):
            what = plural(messages, "message") if messages else "older messages"
            return Sentence(f"Compacting {what}, {tokens(size)} tokens.")
        case facts.CompactionFinished():
            return _compacted(fact)
        case facts.CompactionUndone(size):
            size_ = f": {tokens(size)} tokens" if size else ""
            text = f"Sending the full conversation again{size_}."
            return Sentence(f"{text} /compact summarizes it again.", "success")
        case facts.ExamStarted(_, model):
            return Sentence(f"Checking the summary with {model}.")
        case facts.ExamFinished():
            return _exam(fact)
        case facts.CacheWarmed(times, usd, until):
            at = moment_of(until)
            kept = f", until {_moment(at, now)}" if at else ""
            text = f"Cache kept warm {times}× in this pause: {money(usd)} so far{kept}."
            return Sentence(text)
        case facts.SideQuestion():
            return _side_question(fact)
        case facts.Rewound():
            return _rewound(fact)
        case facts.Pruned(results, saved):
            what = plural(results, "old result")
            less = f", saving {saved:,} tokens per request" if saved else ""
            return Sentence(f"{what} left out{less}.")
        case facts.MemorySaved(path, entries):
            text = f"Saved {plural(entries, 'line')} to memory: {shorten(Path(path))}."
            return Sentence(text if entries else "Nothing new to remember.")
        case facts.ContextFiles(files):
            return _loaded(files)
        case facts.FilesChanged(text=text):
            return Sentence(text)
        case facts.ContextBroken(reason, billed_usd=billed):
            if billed is not None:
                return Sentence(_billed(reason, fact.tokens, billed, fact.cost_usd))
            kind = f"The cache restarts{_because(reason)}"
            price = break_price(fact)
            return Sentence(f"{kind}: {price}." if price else f"{kind}.")
        case facts.ContextChanged(changes):
            return Sentence(" ".join(map(_context_change, changes)))
        case facts.RepairApplied(findings):
            return _repaired(findings)
        case facts.SourcesCited(pages):
            rows = (f"{page['title']} · {page['url']}".removeprefix(" · ") for page in pages)
            text = f"Cites {plural(len(pages), 'page')}"
            return Sentence(text, detail="\n".join(rows), open=True)
        case facts.DirectivesChanged(think, verbose, elevated, effort):
            switches = {"think": think, "verbose": verbose, "elevated": elevated}
            on: dict[str, bool | str] = {name: True for name, value in switches.items() if value}
            if effort:
                on["effort"] = effort
            return Sentence(f"{acknowledgement(on) or 'think, verbose and elevated are off'}.")
        case facts.ProfileUsed(name, before):
            return Sentence(f"Switched from profile {before} to {name}, which pays from here on.")
        case facts.LoopStopped(name, input_, times):
            text = f"Stopped: {name} was called {times} times in a row with the same result."
            given = "\n".join(f"{key}: {value}" for key, value in input_.items())
            return Sentence(f"{text} What should it do instead?", "warning", given)
        case facts.GoalChanged():
            return _goal(fact)
        case facts.HandOff(asked, done, left):
            rows = [*(f"done: {each}" for each in done), *(f"left: {each}" for each in left)]
            text = f"Stopped: the work was going in circles. Asked: {asked}"
            return Sentence(text, "warning", "\n".join(rows), open=True)
        case facts.StorageChanged(saved, detail):
            if saved:
                return Sentence("Everything is saved again.", "success")
            return Sentence(f"Not saved: {detail}", "error")
        case facts.Notice(text):
            return Sentence(text) if text else None
        case facts.ErrorRaised(message=message, hint=hint):
            return Sentence(_ended(message) if hint else message, "error", hint=hint)
        case facts.TurnFinished(outcome):
            ends = {
                "interrupted": "Stopped. What should it do instead?",
                "limit": "Stopped: a limit was reached.",
                "failed": "This failed. Nothing is lost.",
            }
            return Sentence(ends[outcome], "warning") if outcome in ends else None
        case (
            # Silent, or with a form of its own in each front end.
            facts.SessionStarted()
            | facts.UserMessage()
            | facts.RequestSent()
            | facts.TextDelta()
            | facts.ThinkingDelta()
            | facts.ToolInputDelta()
            | facts.AssistantMessage()
            | facts.RequestExtended()
            | facts.RequestPaid()
            | facts.Alive()
            | facts.ContextMeasured()
            | facts.CompactionDelta()
            | facts.TodosChanged()
            | facts.QueueChanged()
            | facts.TitleChanged()
            | facts.Debug()
            | facts.ToolStarted()
            | facts.ToolOutputChunk()
            | facts.ToolFinished()
            | facts.PermissionAsked()
            | facts.PermissionAnswered()
            | facts.QuestionAsked()
            | facts.QuestionAnswered()
            | facts.PlanProposed()
            | facts.PlanApproved()
            | facts.HookFinished()
            | facts.CheckpointTaken()
            | facts.CallBegan()
            | facts.TurnInterrupted()
        ):
            return None
        case _:
            assert_never(fact)


def fact_lines(fact: Told) -> tuple[str, ...]:
    """A fact as lines of standard error or a log, read as they come. None for what is
    said in another way: a notice what was switched, an error why a turn ended, the command that
    changes the context what it did."""
    match fact:
        case (
            facts.TurnFinished()
            | facts.DirectivesChanged()
            | facts.LoopStopped()
            | facts.ContextChanged()
        ):
            return ()
        case facts.ErrorRaised(error_class, message, _, hint):
            wording = f"{error_class}: {message}" if message else f"{error_class}."
            return (wording, *filter(None, (hint,)))
        case facts.SubAgentEvent(agent=agent, event=inner):
            return tuple(f"Sub-agent {agent}: {line}" for line in fact_lines(cast("Fact", inner)))
        case facts.ContextFiles(files):
            return tuple(
                f"Loaded {one['name']} ({_sent_size(one)})"
                for one in files
                if one["kept"] < one["raw"]
            )
        case _:
            wording = words(fact)
            return wording.lines if wording else ()


def _moment(then: datetime, now: datetime | None) -> str:
    return moment(then, now) if now else local(then)


def _hook(fact: facts.HookFinished) -> str:
    """Describe a hook's failure, or its output for the person; "" if there is nothing to report, or
    others report it."""
    name = shortened(one_line(fact.command), _HOOK_NAME)
    hook = " ".join(filter(None, ("The", fact.event, "hook", name)))
    printed = shortened(one_line(fact.text), _HOOK_CHARS)
    if fact.outcome == "ok" and printed:
        return f"{hook} says: {printed}"
    if fact.outcome in {"ok", "blocked"}:
        return ""
    if fact.outcome == "cancelled":
        return f"{hook} was stopped"
    code = "" if fact.exit_code is None else f" (exit {fact.exit_code})"
    return f"{hook} failed{code}{f': {printed}' if printed else ''}"


def _unanswered(fact: facts.QuestionAnswered) -> str:
    """Describe the end of a question that nobody could answer."""
    if fact.name == _PLAN_TOOL:
        return "Nobody could approve the plan: it is the result of this run."
    headers = [str(one["header"]) for one in fact.answers]
    about = ", ".join(headers[:_HEADERS])
    if (more := len(headers) - _HEADERS) > 0:
        about += f" and {more} more"
    if fact.server:
        name = one_line(fact.server)
        return f"Nobody could answer the MCP server {name} ({one_line(about)}): declined."
    return f"Nobody could answer ({about}): the model decides."


def job_end(fact: facts.JobFinished) -> str:
    """Describe the end of a background command, without a period."""
    took, about = duration(fact.seconds), f": {fact.command}" if fact.command else ""
    if fact.stopped_by:
        by = _STOPPED_BY.get(fact.stopped_by, "stopped with the session")
        return f"{fact.id} {by} after {took}{about}"
    if fact.state == END_UNKNOWN:
        return f"{fact.id}: its keeper was killed, end unknown{about}"
    verb = "finished" if fact.exit_code == 0 else "failed"
    return f"{fact.id} {verb}, {fact.state}, {took}{about}"


def _misfits(fact: facts.ThinkingDropped) -> str:
    """Return a sentence for each reason why the server did not use thinking, or used it with a
    remark."""
    kinds = (("dropped", fact.dropped), ("accepted, with a remark,", fact.allowed))
    return " ".join(
        f"The server {verb} {plural(count, 'thought')}: {_MISFITS.get(reason, reason)}."
        for verb, counts in kinds
        for reason, count in counts.items()
    )


_GOAL_ON: Final = "/goal continue resumes it, /goal stop ends it."


def goal_progress(fact: facts.GoalChanged) -> str:
    """Say how far a goal is: the round, the money and the time, each with its limit."""
    number = fact.round + (fact.state == "checked")
    parts = [f"round {number} of {fact.rounds}"]
    if fact.spent_usd is not None:
        parts.append(money(fact.spent_usd) + (f" of {money(fact.usd)}" if fact.usd else ""))
    return " · ".join([*parts, f"{duration(fact.spent_s)} of {wait_time(fact.seconds)}"])


def goal_brief(fact: facts.GoalChanged) -> str:
    """Say the same in a few words, as a row has room for; "" for a goal that is over."""
    if not fact.open:
        return ""
    number = min(fact.round + (fact.state == "checked"), fact.rounds)
    if fact.state == "paused":
        return f"goal paused, {number}/{fact.rounds}"
    parts = [f"goal {number}/{fact.rounds}"]
    if fact.spent_usd is not None:
        parts.append(money(fact.spent_usd) + (f" of {money(fact.usd)}" if fact.usd else ""))
    minutes = [f"{int(fact.spent_s // 60)} min"] if fact.spent_s >= 60 else []
    return " · ".join([*parts, *minutes])


def goal_check(fact: facts.GoalChanged) -> str:
    """Say by what a goal is checked."""
    return f"Checked by `{one_line(fact.command)}`" if fact.command else "Checked by a model"


def _goal(fact: facts.GoalChanged) -> Sentence:
    number = f"Round {fact.round} of {fact.rounds}"
    match fact.state:
        case "set":
            dollars = f", {money(fact.usd)}" if fact.usd is not None else ""
            limits = f"{plural(fact.rounds, 'round')}{dollars}, {wait_time(fact.seconds)}"
            check = f"{goal_check(fact)} after each round; up to {limits}."
            unpriced = "" if fact.spent_usd is not None else " No price is known for this model."
            return Sentence(f"Goal: {one_line(fact.goal)}", detail=check + unpriced, open=True)
        case "checked":
            return Sentence(f"{number}: the goal isn't met. {_ended(fact.why)}")
        case "continued":
            return Sentence(f"The goal continues: {goal_progress(fact)}.")
        case "paused":
            why = f": {fact.why}" if fact.why else ""
            return Sentence(f"The goal is paused{why}.", hint=_GOAL_ON)
        case "met":
            took = [] if fact.spent_usd is None else [money(fact.spent_usd)]
            took.append(duration(fact.spent_s))
            text = f"{number}: the goal is met. {_ended(fact.why)}"
            return Sentence(text, "success", ", ".join(took), open=True)
        case "stopped":
            return Sentence(f"The goal was ended in round {fact.round} of {fact.rounds}.")
        case _:
            text = f"The goal isn't met, and work on it ends: {_ended(fact.why)}"
            return Sentence(
                text, "warning", hint=f"Continue{_more(fact)}: /goal continue{_option(fact)}"
            )


def _more(fact: facts.GoalChanged) -> str:
    """Name what a goal that reached a limit needs more of."""
    option = _option(fact).strip().partition(" ")[0]
    return {"--usd": " with more money", "--for": " with more time", "": ""}.get(
        option, " with more rounds"
    )


def _option(fact: facts.GoalChanged) -> str:
    """The option that continues with more, where a limit was reached."""
    if fact.state != "limit":
        return ""
    if fact.usd is not None and fact.spent_usd is not None and fact.spent_usd >= fact.usd:
        return f" --usd {2 * fact.usd:g}"
    if fact.spent_s >= fact.seconds:
        return f" --for {round(2 * fact.seconds / 60)}m"
    return f" --rounds {2 * fact.rounds}"


def _side_question(fact: facts.SideQuestion) -> Sentence:
    """Say what was asked and what it cost; the answer is below."""
    asked = one_line(fact.question)
    short = shortened(asked, _ASKED_CHARS)
    head = {"stopped": "Side question, stopped", "failed": "Side question, not answered"}
    figures = side_figures(fact)
    text = f"{head.get(fact.outcome, 'Side question')}: {short}{f' · {figures}' if figures else ''}"
    whole = fact.question if short != fact.question.strip() else ""
    detail = "\n\n".join(filter(None, (whole, fact.answer.strip(), side_note(fact))))
    return Sentence(text, "warning" if fact.outcome == "failed" else "info", detail, open=True)


def side_figures(fact: facts.SideQuestion) -> str:
    """Return what a side question read, the share of it that came from the cache, and its cost; ""
    where nothing was sent."""
    usage = fact.usage
    if not usage.prompt_tokens:
        return ""
    share = 100 * usage.cache_read_input_tokens // usage.prompt_tokens
    about = "≈ " if fact.estimated else ""
    usd = [f"{about}{money(fact.cost_usd)}"] if fact.cost_usd is not None else []
    parts = [f"{about}{tokens(usage.prompt_tokens)} tokens", f"{share} % from the cache", *usd]
    return ", ".join(parts)


def side_note(fact: facts.SideQuestion) -> str:
    """Return what else there is to say of the answer to a side question; "" for nothing."""
    names = ", ".join(dict.fromkeys(fact.refused))
    refused = f"It called {names}, which didn't run: a side question has no tools." if names else ""
    return " ".join(filter(None, (_ended(fact.problem) if fact.problem else "", refused)))


def _rewound(fact: facts.Rewound) -> Sentence:
    """Say how far the conversation went back, what became of the files, and where the rest is."""
    if fact.target and not fact.prompts:  # of an older version, which didn't count them
        return Sentence("Rewound. Later messages are still in the session file.")
    count = plural(fact.prompts, "prompt")
    where = f"Rewound {count}" if fact.target else "Switched to another branch"
    files = ", with the files" if fact.restores else "; files stay as they are"
    hint = "/rewind undo takes you back; /tree shows all branches."
    return Sentence(f"{where}{files}.", hint=hint)


def _compacted(fact: facts.CompactionFinished) -> Sentence:
    if fact.problem:
        return Sentence(f"Not compacted: {_ended(fact.problem)}", "warning")
    before, after, removed = fact.tokens_before, fact.tokens_after, fact.messages_removed
    size = f" {tokens(before)} → {tokens(after)} tokens" if before else ""
    what = f"a summary replaces {plural(removed, 'message') if removed else 'what came before'}"
    back = "/uncompact restores everything."
    return Sentence(f"Compacted{size}: {what}. {back}", "success", fact.summary)


def _exam(fact: facts.ExamFinished) -> Sentence:
    """Count the facts that a summary holds of those it was asked for; list the missing ones
    first."""
    count, problem = len(fact.facts), fact.problem.rstrip(".")
    if not count:
        return Sentence(f"The summary wasn't checked: {problem}.", "warning")
    lost, usd = count - fact.held, money(fact.cost_usd) if fact.cost_usd else ""
    parts = [f"{fact.held} of {plural(count, 'fact')} kept"]
    parts += [f"{fact.verbatim} more sent in full"] if fact.verbatim else []
    parts += [f"{lost - fact.verbatim} lost for lack of room"] if lost > fact.verbatim else []
    text = f"Summary checked: {', '.join(parts)}{f' ({usd})' if usd else ''}."
    if problem:
        text = f"{text} Not all of it was checked: {problem}."
    rows: list[str] = []
    for held, mark in ((False, "✗"), (True, "✓")):
        for one in fact.facts:
            if one.get("held") is held:
                rows.append(f"{mark} {one.get('question')} — {one.get('answer')}")
                rows += [] if held else [f"  “{one.get('quote')}”"]
    level: Level = "success" if count == fact.held + fact.verbatim else "warning"
    return Sentence(text, level, "\n".join(rows))


def _loaded(files: Sequence[Mapping[str, Any]]) -> Sentence:
    """List the files in the system prompt, with the size of each and how much of it is sent."""
    characters, count = sum(int(one["kept"]) for one in files), len(files)
    what = f"{files[0]['name']}" if count == 1 else f"{count} files"
    text = f"Loaded {what} ({characters:,} characters)"
    cut = [str(one["name"]) for one in files if one["kept"] < one["raw"]]
    text += f" · cut: {', '.join(cut)}" if cut else ""
    width = max((len(str(one["name"])) for one in files), default=0)
    rows = "\n".join(f"{one['name']:<{width}}  {_sent_size(one)}" for one in files)
    return Sentence(text, "info", rows, open=bool(cut))


def _sent_size(file: Mapping[str, Any]) -> str:
    raw, kept = file["raw"], file["kept"]
    if kept >= raw:
        return f"{raw:,} chars"
    return (
        f"{raw:,} → {kept:,} chars, cut"
        if kept
        else f"{raw:,} chars → left out: the prompt is full"
    )


def break_reason(reason: str) -> str:
    """Return the reason of a break as the screens call it."""
    return _REASONS.get(reason, reason)


def _because(reason: str) -> str:
    return f" ({break_reason(reason)})" if reason else ""


def break_price(fact: facts.ContextBroken) -> str:
    """Return the price of a break, as part of a sentence."""
    usd = f" (≈ {money(fact.cost_usd)})" if fact.cost_usd is not None else ""
    again = f"{fact.tokens:,} tokens cached again once{usd}" if fact.tokens else ""
    lost = f"{plural(fact.thoughts, 'thought')} left out" if fact.thoughts else ""
    return ", ".join(filter(None, (again, lost)))


def price_before(broken: facts.ContextBroken | None) -> str:
    """Return the price of a break that a person may still choose, as part of a sentence."""
    return (break_price(broken) if broken else "") or "nothing is cached again"


def foreign_frame(broken: facts.ContextBroken) -> facts.Notice:
    """Return what is told before the first prompt of a session whose system prompt another
    installation made."""
    usd = f" (≈ {money(broken.cost_usd)})" if broken.cost_usd is not None else ""
    again = f"caches {broken.tokens:,} tokens again{usd}" if broken.tokens else ""
    lost = f"leaves out {plural(broken.thoughts, 'thought')}" if broken.thoughts else ""
    costs = " and ".join(filter(None, (again, lost)))
    made = "Another installation made this session's system prompt"
    return facts.Notice(f"{made}, so the next request {costs}.")


def bill_of_break(bill: facts.BreakBilled) -> facts.ContextBroken | facts.Notice:
    """Return what is told of the bill of a break: the break again, as it was billed; only the
    tokens, where no price is known."""
    usd = bill.billed_usd
    if usd is None:
        return facts.Notice(_billed(bill.reason, bill.tokens, None, None))
    figures = bill.tokens, bill.thoughts, bill.cost_usd, usd
    return facts.ContextBroken(bill.reason, bill.by, *figures)


def _billed(reason: str, tokens: int, billed: float | None, forecast: float | None) -> str:
    """Return the bill of a break, beside its forecast."""
    usd = f", {money(billed)}" if billed is not None else ""
    said = f" (forecast: {money(forecast)})" if usd and forecast is not None else ""
    bill = f"{tokens:,} tokens cached again{usd}{said}" if tokens else "nothing cached again"
    return f"Billed for the cache restart{_because(reason)}: {bill}."


def _context_change(change: Mapping[str, Any]) -> str:
    if "pinned" in change:
        return "Pinned." if change["pinned"] else "Unpinned."
    view = string_of(change.get("view"))
    how = _VIEWS.get(view, view) or "sent in another way"
    if change.get("images") and not change.get("blocks"):
        how = "sent with smaller images"
    return f"One item is {how}, starting with the next request."


def _repaired(findings: Iterable[Mapping[str, str]]) -> Sentence | None:
    """Describe a repair in one sentence, its places folded below; None for mere interruptions."""
    damage = [one for one in findings if one.get("code") != INTERRUPTION]
    if not damage:
        return None
    count = "one place" if len(damage) == 1 else f"{len(damage):,} places"
    rows = (": ".join(filter(None, (one.get("where"), one.get("action")))) for one in damage)
    text = f"Repaired this session in {count}; its file is unchanged."
    return Sentence(text, "warning", "\n".join(rows))


def acknowledgement(changes: Mapping[str, bool | str]) -> str:
    """Name the directives that were switched, without a period."""
    return " · ".join(
        _SWITCHES.get((name, value)) or f"{name} is {value}" for name, value in changes.items()
    )


def without_feature(feature: str, tokens: int = 0) -> str:
    """Report that a feature, which the server lacks, was left out of the request; with `tokens`,
    that its answers may have no more."""
    if tokens:
        return (
            "The server doesn't allow answers that long. From now on, Holdfast asks for at most"
            f" {tokens:,} tokens."
        )
    what = _FEATURES.get(feature, feature) or "all that was asked of it"
    return f"The server doesn't support {what}. Sending the request again without that."


def request_line(fact: facts.RequestExtended) -> str:
    """Describe on one line of the debug view how a request extends the last one."""
    parts = [f"#{fact.n}"]
    if fact.added is not None:
        parts[0] += f" {fact.added:+,} tokens"
    if fact.last is not None:
        mark = f"breaks with #{fact.last} ({fact.broken})" if fact.broken else ""
        parts.append(mark or f"extends #{fact.last} ✓")
    parts.append(f"cache {tokens(fact.cached)}/{tokens(fact.tokens)}")
    if fact.cache_miss:
        lost = f" ({tokens(fact.missed_tokens)} tokens)" if fact.missed_tokens else ""
        parts.append(f"{_CACHE_MISSES.get(fact.cache_miss, fact.cache_miss)}{lost}")
    if fact.thought:
        parts.append(f"thought {tokens(fact.thought)} of {tokens(fact.output)}")
    return " · ".join(parts)


def _wait(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 60 else duration(seconds)


def _sent_again(fact: facts.ModelSwitched) -> str:
    """Say what it costs that a server of another profile is asked: it has its own cache, and reads
    only its own thinking."""
    if not fact.again:
        return ""
    usd = f" (≈ {money(fact.usd)})" if fact.usd else ""
    lost = f"; leaves out {plural(fact.thoughts, 'thought')}" if fact.thoughts else ""
    return f" Sends {tokens(fact.again)} tokens again{usd}{lost}."


def _ended(text: str) -> str:
    """End a text with a full stop: a server's own words often have none."""
    return text if text[-1:] in ".!?:…" else f"{text}."

"""A session at a glance: headline figures, and all that went otherwise, each with its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tui.app.damage_report import damage_findings, where
from tui.app.reports.timeline import failed_attempts
from tui.app.session_page.markup import PageText, link
from tui.app.session_page.record import PageRecord
from tui.app.session_report import Turn, answers
from tui.context.timeline import SessionTimeline, TimelineStep
from tui.context.usage import bills_of
from tui.core import facts
from tui.core.dataclass import dataclass, field
from tui.core.facts import Told
from tui.core.formatting import duration, money, plural, tokens
from tui.core.messages import object_of, tool_calls
from tui.session.reader import LoadedSession
from tui.session.records import LEFT_OUT, SUB_AGENT, Finding, Record, is_prompt
from tui.session.request_numbers import REQUEST

_LINKS: Final = 6
_FAULTS: Final = 5
"""Most findings that are named one by one."""
REFUSED: Final = frozenset({"no", "deny"})
"""The answers that refuse a call."""
_ENDS: Final = (facts.TurnInterrupted, facts.ErrorRaised, facts.AssistantMessage)


class Concern(NamedTuple):
    """Something that a reader has to know: a sign, a sentence, and the steps that it is about."""

    sign: str
    words: str
    steps: Sequence[int] = ()


@dataclass(slots=True)
class SessionOutcome:
    """The outcome of a session, counted from its record."""

    asked: int = 0
    answered: int = 0
    refused: list[str] = field(default_factory=list[str])
    """The ids of the calls that were."""
    jobs: int = 0
    """Commands in the background whose end isn't recorded."""
    files: dict[str, None] = field(default_factory=dict[str, None])
    inner: int = 0
    """The requests of sub-agents."""
    used: int = 0
    """Tokens, in and out."""
    rewinds: set[str] = field(default_factory=set[str])
    """The ids of the records."""


def outcome_of(turns: Sequence[Turn], steps: Iterable[TimelineStep]) -> SessionOutcome:
    """Count what was asked, answered, refused and changed."""
    found = SessionOutcome()
    jobs: set[str] = set()
    for turn in turns:
        found.asked += is_prompt(turn[0][0])
        found.answered += answered(turn)
        for record, fact in turn:
            if isinstance(fact, facts.PermissionAnswered) and fact.answer in REFUSED:
                found.refused.append(fact.id)
            elif isinstance(fact, facts.Rewound):
                found.rewinds.add(record.id)
            elif record.type == "file_change" and isinstance(record.data.get("path"), str):
                found.files[record.data["path"]] = None
            elif record.type == SUB_AGENT:
                found.inner += sum(bill.requests for bill in bills_of(record))
            elif record.type in {"job", "job_moved"}:
                jobs.add(str(record.data.get("call_id")))
            elif record.type == "job_ended" or _ends_its_command(record):
                jobs.discard(str(record.data.get("call_id")))
    for step in steps:
        if step.files:
            found.files |= dict.fromkeys(step.files)
        if step.sent is not None:
            found.used += step.sent.tokens + step.sent.output
    found.jobs = len(jobs)
    return found


def _ends_its_command(record: Record) -> bool:
    """True for the result of a command that was over with its call, as most are."""
    details = object_of(record.data.get("details"))
    return record.type == "tool_result" and not details.get("job")


def answered(turn: Turn) -> bool:
    """True if a prompt was answered to the end."""
    said = [*answers(turn)]
    whole = bool(said) and not tool_calls(said[-1].content)
    return whole and is_prompt(turn[0][0]) and isinstance(last_of(turn)[1], facts.AssistantMessage)


def last_of(turn: Turn) -> tuple[Record | None, Told | None]:
    """The last that is known of a turn: a request, an answer, an error, an interruption."""
    for record, fact in reversed(turn):
        ends = isinstance(fact, _ENDS)
        if ends or record.type == REQUEST:
            return record, fact if ends else None
    return None, None


def tiles(
    outcome: SessionOutcome, timeline: SessionTimeline
) -> Iterator[tuple[str, str, str, str]]:
    """Yield the headline figures: name, figure, what else there is to say, and how it looks."""
    calls = [step for step in timeline.steps if step.kind == "call"]
    failed = sum(step.failed for step in calls)
    missing = outcome.asked - outcome.answered
    yield "Asked", plural(outcome.asked, "prompt"), "", ""
    left = f"{missing:,} without an answer to the end" if missing > 0 else "each to the end"
    yield "Answered", f"{outcome.answered:,}", left if outcome.asked else "", "bad" * (missing > 0)
    went = f"{failed:,} failed or stopped" if failed else "none failed" if calls else ""
    yield "Done", plural(len(calls), "call"), went, "bad" * bool(failed)
    yield "Files changed", f"{len(outcome.files):,}", "", ""
    yield _checks(timeline)
    requests = sum(step.kind == "request" for step in timeline.steps)
    inner = f"and {outcome.inner:,} of sub-agents" if outcome.inner else ""
    yield "Requests", f"{requests:,}", inner, ""
    yield _tokens(outcome, timeline)
    yield _cost(timeline)
    yield "Time at work", duration(timeline.worked), "", ""


def _tokens(outcome: SessionOutcome, timeline: SessionTimeline) -> tuple[str, str, str, str]:
    sent = [step.sent for step in timeline.steps if step.sent]
    if any(not one.counted for one in sent):
        return "Tokens", f"about {tokens(outcome.used)}", "estimated: some weren't counted", ""
    read, given = sum(one.cached for one in sent), sum(one.tokens for one in sent)
    share = f"{read / given:.0%} of the input from the cache" if given else ""
    return "Tokens", tokens(outcome.used), share.replace("%", " %"), ""


def _checks(timeline: SessionTimeline) -> tuple[str, str, str, str]:
    steps = [timeline.steps[place] for place in timeline.marks["check"].steps]
    if not steps:
        return "Checks", "none", "no test, linter or build was seen", ""
    red = timeline.red_checks()
    runs = f"{plural(len(steps), 'run')}, {sum(one.verdict == 'red' for one in steps):,} red"
    return "Checks", f"{len(red):,} red" if red else "green", runs, "bad" if red else "good"


def _cost(timeline: SessionTimeline) -> tuple[str, str, str, str]:
    if not timeline.unpriced:
        return "Cost", money(timeline.spent.total), "", ""
    known = timeline.spent.total
    words = f"{plural(timeline.unpriced, 'answer')} without a known price"
    return "Cost", f"{money(known)} + ?" if known else "unknown", words, "bad"


def concerns(
    loaded: LoadedSession, outcome: SessionOutcome, timeline: SessionTimeline
) -> Iterator[Concern]:
    """Yield what a reader has to know, the worst first."""
    steps = timeline.steps

    def places(wanted: Callable[[int], bool]) -> list[int]:
        return [place for place in range(len(steps)) if wanted(place)]

    yield from _red(timeline)
    found = places(lambda place: steps[place].kind == "call" and steps[place].failed)
    if found:
        yield Concern("✗", f"{plural(len(found), 'call')} failed or stopped.", found)
    if outcome.refused:
        refused = {*outcome.refused}
        found = places(lambda place: steps[place].call_id in refused)
        yield Concern("⊘", f"{plural(len(outcome.refused), 'call')} refused.", found)
    found = places(lambda place: steps[place].kind == "trouble")
    if found:
        yield Concern("!", f"Errors and interruptions: {len(found):,}.", found)
    found = places(lambda place: steps[place].record in outcome.rewinds)
    yield from _undone(loaded, outcome, found)
    yield from _open(outcome, timeline)
    found = places(lambda place: steps[place].kind == "request" and bool(steps[place].note))
    if found:
        yield Concern("!", f"{plural(len(found), 'answer')} ended early.", found)
    if words := failed_attempts(timeline):
        tried = places(lambda place: steps[place].kind == "wait" and bool(steps[place].label))
        yield Concern("!", f"Requests: {words}", tried)
    broken = places(lambda place: steps[place].kind == "break")
    if broken:
        usd = sum(steps[place].usd or 0.0 for place in broken)
        unknown = sum(steps[place].usd is None for place in broken)
        lost = sum(steps[place].tokens for place in broken)
        said = f", the price of {unknown:,} isn't known" if unknown else ""
        times = plural(len(broken), "time")
        words = f"The cache restarted {times}: {lost:,} tokens again, {money(usd)}{said}."
        yield Concern("▲", words, broken)
    if timeline.unpriced:
        models = dict.fromkeys(step.model for step in steps if step.usd is None and step.model)
        names = ", ".join([*models][:5])
        of = f"{plural(timeline.unpriced, 'answer')} of {names or 'an unnamed model'}"
        words = f"What {of} cost isn't known."
        yield Concern("?", words, places(lambda place: steps[place].usd is None))
    faults = damage_findings(loaded.findings)
    for finding in faults[:_FAULTS]:
        yield Concern("!", _fault(finding))
    if (more := len(faults) - _FAULTS) > 0:
        yield Concern("!", f"{plural(more, 'more place')} in the file repaired or left out.")


def _fault(finding: Finding) -> str:
    """Say in a sentence what a damaged file cost."""
    place = f"{where(finding)} of the file" if finding.where.startswith("line ") else finding.where
    for word in ("left out: ", "skipped: "):
        if finding.action.startswith(word):
            return f"Left out, {place}: {finding.action.removeprefix(word)}."
    return f"Repaired for this page, {place}: {finding.action}."


def other_records(loaded: LoadedSession) -> str:
    """Say what another program's file has besides the conversation; "" for nothing."""
    kinds = [finding for finding in loaded.findings if finding.code == LEFT_OUT]
    named = [finding.action.removeprefix("left out: ") for finding in kinds[:_FAULTS]]
    more = len(kinds) - len(named)
    named += [plural(more, "more kind")] if more > 0 else []
    return f"Left out, as no part of the conversation: {', '.join(named)}." if named else ""


def _red(timeline: SessionTimeline) -> Iterator[Concern]:
    """The checks that are red, and when any turned so."""
    red = {step.check: step for step in timeline.last_checks().values() if step.verdict == "red"}
    if red:
        last = {id(step) for step in red.values()}
        found = [n for n in timeline.marks["check"].steps if id(timeline.steps[n]) in last]
        yield Concern("✗", f"Red when last run: {', '.join(red)}.", found)
    if turns := timeline.totals.red_turns:
        yield Concern("✗", f"Checks turned red {plural(len(turns), 'time')}.", turns)


def _undone(
    loaded: LoadedSession, outcome: SessionOutcome, found: Sequence[int]
) -> Iterator[Concern]:
    """Say what doesn't count any more, or is on another branch."""
    elsewhere = len(loaded.records) - len(loaded.branch)
    if outcome.rewinds or elsewhere:
        times = f"{plural(len(outcome.rewinds), 'rewind')}: " if outcome.rewinds else ""
        words = f"{times}{plural(elsewhere, 'record')} on other branches aren't in this page."
        yield Concern("↶", f"Undone: {words}", found)


def _open(outcome: SessionOutcome, timeline: SessionTimeline) -> Iterator[Concern]:
    """Say what has no end in the record."""
    running = [*timeline.running()]
    if running:
        names = ", ".join(f"{step.kind} {step.label}" for step in running[:3])
        more = f" and {len(running) - 3:,} more" if len(running) > 3 else ""
        yield Concern("…", f"Open when the record ends: {names}{more}.")
    waiting = [n for n, step in enumerate(timeline.steps) if step.state == "waiting"]
    if waiting:
        yield Concern("…", f"{plural(len(waiting), 'wait')} when the record ends.", waiting)
    lost = {"no result", "no answer"}
    found = [n for n, step in enumerate(timeline.steps) if step.state in lost]
    if found:
        yield Concern("…", f"Requests and calls without a result: {len(found):,}.", found)
    if outcome.jobs:
        jobs = plural(outcome.jobs, "command")
        yield Concern("…", f"{jobs} in the background without a recorded end.")


def glance(
    figures: Iterator[tuple[str, str, str, str]],
    told: Sequence[Concern],
    text: PageText,
    record: PageRecord,
) -> str:
    """The figures and the concerns as markup."""
    cells = "".join(
        f'<div class="tile {look}"><dt>{name}</dt><dd>{text(figure)}</dd>'
        f'<dd class="more">{text(more)}</dd></div>'
        for name, figure, more, look in figures
    )
    if not told:
        calm = "Nothing was refused, undone, red, waiting or failed, and every price is known."
        calm = calm if record.turns else "Nothing has happened in this session yet."
        return f'<dl class="tiles">{cells}</dl><p class="calm">{calm}</p>'
    items = "".join(
        f'<li><span class="sign" aria-hidden="true">{one.sign}</span><span>'
        f"{text.label(one.words, 400)}{_links(one.steps, record)}</span></li>"
        for one in told
    )
    return (
        f'<dl class="tiles">{cells}</dl><h3>Know this first</h3><ul class="concerns">{items}</ul>'
    )


def _links(steps: Sequence[int], record: PageRecord) -> str:
    """Links to the last steps, by their time: what they left behind is what counts."""
    anchors = {record.anchor(place): record.name(place) for place in steps}
    shown = " ".join(link(one, name) for one, name in [*anchors.items()][-_LINKS:])
    earlier = len(anchors) - _LINKS
    more = f" and {earlier:,} more in the record" if earlier > 0 else ""
    return f' <span class="links">{shown}{more}</span>' if shown else ""

"""A timeline in words: each step, the moment at a step, and the whole session in a few lines."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tui.app.reports import Report
from tui.app.reports.usage_table import part_of
from tui.context.timeline import RequestInput, SessionTimeline, TimelineStep
from tui.core.formatting import duration, moment_of, money, plural, tokens, wait_time
from tui.core.text_cleaning import one_line

AROUND: Final[Mapping[int, str]] = {1: "From the beginning again.", -1: "From the end again."}
"""Words for a step over an end of the session, by its direction."""
_DEAREST: Final = 3
_LABEL_CHARS: Final = 24
_FRAME: Final = frozenset({"system", "tools"})
KINDS: Final[Mapping[str, str]] = {
    "prompt": "prompt",
    "request": "request",
    "call": "call",
    "question": "asked you",
    "wait": "wait",
    "agent": "sub-agent",
    "job": "in background",
    "compaction": "compaction",
    "break": "cache restart",
    "change": "context",
    "trouble": "trouble",
    "pause": "pause",
    "aside": "aside",
}


def timeline_report(timeline: SessionTimeline, title: str = "") -> Report:
    """The session in a few lines: where the time and the money went, why the context filled, what
    broke the cache, when checks turned red."""
    rows = [*_totals(timeline), *_fullest(timeline), *_breaks(timeline), *_checks(timeline)]
    return Report(title or "Timeline", rows, notes=tuple(_doubts(timeline)))


def overview(timeline: SessionTimeline) -> list[tuple[str, str]]:
    """The session in a few lines, each with its head, the four that are asked for most first: where
    the money went, why the context filled, what broke the cache, when checks turned red."""
    lines = [
        ("money", _money_words(timeline)),
        ("context", _fullest_words(timeline)),
        ("cache", _cache_words(timeline)),
        ("tests", _tests_words(timeline)),
        ("time", _time_words(timeline)),
        ("trouble", _trouble_words(timeline)),
    ]
    return [(head, text) for head, text in lines if text]


def _money_words(timeline: SessionTimeline) -> str:
    total = timeline.spent.total
    if timeline.unpriced:
        unknown = f"the price of {plural(timeline.unpriced, 'answer')} isn't known"
        said = f"{money(total)}, and {unknown}" if total else unknown
    elif not total:
        return "nothing was spent"
    else:
        said = money(total)
    if dearest := [f"{_quoted(step)} {money(usd)}" for step, usd in _dearest(timeline)]:
        said += f" · dearest prompt {', '.join(dearest)}"
    return said


def _dearest(timeline: SessionTimeline) -> list[tuple[TimelineStep, float]]:
    """The prompts that cost most, with what they cost."""
    prompts = timeline.marks["prompt"].steps
    if not prompts:
        return []
    pairs = timeline.totals.dearest(timeline.prompt_costs[-1], prompts[-1])
    return [(timeline.steps[step], usd) for usd, step in pairs if usd > 0]


def _quoted(step: TimelineStep) -> str:
    label = one_line(step.label)
    short = label if len(label) <= _LABEL_CHARS else f"{label[: _LABEL_CHARS - 1].rstrip()}…"
    return f"{step.number} “{short}”"


def _clock(timeline: SessionTimeline, step: TimelineStep) -> str:
    """The time of a step, with its day where the session has several."""
    when, last = moment_of(step.time), moment_of(timeline.steps[-1].time)
    if when is None:
        return "time unknown"
    here = when.astimezone()
    same = last is not None and last.astimezone().date() == here.date()
    return f"{here:%H:%M}" if same else f"{here:%d %b %H:%M}"


def _fullest_words(timeline: SessionTimeline) -> str:
    if (step := _fullest_step(timeline)) is None or step.sent is None:
        return "nothing was sent yet"
    compactions = timeline.totals.compactions
    said = (
        f"{tokens(step.sent.tokens)} when fullest, {_clock(timeline, step)}: {_shares(step.sent)}"
    )
    return f"{said} · {plural(compactions, 'compaction')}" if compactions else said


def _shares(sent: RequestInput) -> str:
    parts = sorted(sent.parts._asdict().items(), key=lambda part: -part[1])
    return ", ".join(
        f"{size / sent.tokens:.0%} {name}".replace("%", " %")
        for name, size in parts[:3]
        if size * 200 > sent.tokens
    )


def _cache_words(timeline: SessionTimeline) -> str:
    lost, most = timeline.totals.lost()
    if most is None:
        return "never restarted" if timeline.inputs else ""
    said = plural(sum(one.times for one in lost.values()), "restart")
    if usd := sum(one.usd for one in lost.values()):
        said += f", {money(usd)}"
    reasons = sorted(lost.items(), key=lambda pair: (-pair[1].usd, -pair[1].times, pair[0]))
    whys = [f"{one.times}× {why}{f' {money(one.usd)}' if one.usd else ''}" for why, one in reasons]
    return f"{said}: {', '.join(whys[:_DEAREST])} · dearest at {_clock(timeline, most)}"


def _tests_words(timeline: SessionTimeline) -> str:
    checks, turns = len(timeline.marks["check"]), timeline.totals.red_turns
    if not checks:
        return "no checks were run"
    if not turns:
        return f"{plural(checks, 'check')}, never red"
    times = "once" if len(turns) == 1 else f"{len(turns)} times"
    latest = [timeline.steps[place] for place in turns[: -_DEAREST - 1 : -1]]
    last = ", ".join(f"{_clock(timeline, step)} {step.check}" for step in latest)
    now = f"red now: {', '.join(red)}" if (red := timeline.red_checks()) else "green now"
    return f"{now} · turned red {times}, last {last}"


def _time_words(timeline: SessionTimeline) -> str:
    waited = timeline.totals.waited
    said = f"{duration(timeline.worked)} of work"
    facts = [f"{duration(waited)} waiting for you"] if waited >= 1 else []
    facts += filter(None, [clock_words(timeline), _untimed_words(timeline)])
    return " · ".join([said, *facts])


def clock_words(timeline: SessionTimeline) -> str:
    """Say how often the clock jumped back; "" for never."""
    back = timeline.axis.jumps
    return f"the clock jumped back {'once' if back == 1 else f'{back} times'}" if back else ""


def _untimed_words(timeline: SessionTimeline) -> str:
    """Say how many records have no time that can be read; "" for none."""
    untimed = timeline.axis.untimed
    return f"{plural(untimed, 'record')} without a readable time" if untimed else ""


def _trouble_words(timeline: SessionTimeline) -> str:
    steps, stops = timeline.marks["trouble"].steps, timeline.totals.stops
    if not steps:
        return ""
    facts = [f"stopped {stops}×"] if stops else []
    if others := len(steps) - stops:
        facts.append(f"{others} errors and waits" if others > 1 else "1 error or wait")
    last = timeline.steps[steps[-1]]
    return f"{', '.join(facts)} · last {_clock(timeline, last)} {one_line(last.label)}"


def prompt_steps(timeline: SessionTimeline, number: str) -> list[TimelineStep]:
    """The steps of a prompt, by its number; none where there is no such prompt."""
    prompts = timeline.marks["prompt"].steps
    wanted = int(number[:9]) if number.isdecimal() else 0
    if not 0 < wanted <= len(prompts):
        return []
    end = prompts[wanted] if wanted < len(prompts) else len(timeline.steps)
    return timeline.steps[prompts[wanted - 1] : end]


def step_line(step: TimelineStep) -> str:
    """A step in one line: its time, what it is, how long it took, what it cost."""
    when = moment_of(step.time)
    clock = f"{when.astimezone():%d %b %H:%M:%S}" if when else "time unknown"
    return f"{clock}  {KINDS[step.kind]}: {step_words(step)}"


def moment_lines(timeline: SessionTimeline, place: int) -> list[str]:
    """Describe the moment at a step: the step, its figures, and the prompt that led to
    it."""
    step = timeline.steps[place]
    lines = [step_words(step)]
    if step.sent is not None:
        lines += _input_lines(step.sent)
    if step.note:
        lines.append(step.note)
    if step.files:
        more = f" and {len(step.files) - 3} more" if len(step.files) > 3 else ""
        lines.append(f"Changed {', '.join(map(one_line, step.files[:3]))}{more}")
    prompts = timeline.marks["prompt"].steps
    led = bisect_right(prompts, place) - 1
    if led >= 0 and prompts[led] != place:
        prompt = timeline.steps[prompts[led]]
        lines.append(f"In prompt {prompt.number}: “{one_line(prompt.label)}”")
    return lines


def moment_title(timeline: SessionTimeline, place: int) -> str:
    """The time of a step and its place among the others."""
    step = timeline.steps[place]
    when = moment_of(step.time)
    clock = f"{when.astimezone():%H:%M:%S}" if when else "time unknown"
    return f"{clock} · {KINDS[step.kind]} · {place + 1:,} of {len(timeline.steps):,}"


def failed_attempts(timeline: SessionTimeline) -> str:
    """Say how many attempts of requests failed, and what is known of their price; "" for none."""
    refused, lost = timeline.refused, timeline.lost
    if not refused + lost:
        return ""
    words = f"{plural(refused + lost, 'attempt')} failed"
    if not lost:
        return f"{words}: refused by the server, so not billed."
    which = "it" if refused + lost == 1 else "they" if not refused else f"{lost:,} of them"
    return f"{words}, and {which} may have been billed: no record says what that cost."


def timeline_json(
    timeline: SessionTimeline, inner: Mapping[str, SessionTimeline] | None = None
) -> dict[str, Any]:
    """The timeline as data: its sums and every step. `inner` are the timelines of sub-agents, by
    the records that end them: their steps are in their parent's."""
    steps = [_step_json(step) for step in timeline.steps]
    for fields, step in zip(steps, timeline.steps, strict=True):
        if step.kind == "agent" and inner and (own := inner.get(step.record)) is not None:
            fields["steps"] = [_step_json(within) for within in own.steps]
    return {
        "seconds": round(timeline.now, 3),
        "cost_usd": timeline.usd,
        "known_cost_usd": round(timeline.spent.total, 6),
        "unpriced_answers": timeline.unpriced,
        "failed_attempts": timeline.refused + timeline.lost,
        "attempts_perhaps_billed": timeline.lost,
        "records_without_time": timeline.axis.untimed,
        "steps": steps,
    }


def _step_json(step: TimelineStep) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "kind": step.kind,
        "at": round(step.at, 3),
        "end": round(step.end, 3),
        "time": step.time,
        "seconds": round(step.seconds, 3),
        "label": step.label,
        "record": step.record,
        "state": step.state or "done",
    }
    if step.usd != 0.0:
        fields["cost_usd"] = step.usd
    others = {
        "note": step.note,
        "model": step.model if step.kind != "change" else "",
        "n": step.number,
        "call_id": step.call_id,
        "files": list(step.files),
        "check": step.check,
        "verdict": step.verdict,
        "turned": step.turned,
        "tokens": step.tokens,
    }
    fields |= {name: value for name, value in others.items() if value}
    if (sent := step.sent) is not None:
        fields["input"] = {
            "tokens": sent.tokens,
            "counted": sent.counted,
            "cached": sent.cached,
            "written": sent.written,
            "parts": sent.parts._asdict(),
        }
        fields["output_tokens"] = sent.output
        fields["thinking_tokens"] = sent.thought
    return fields


def step_words(step: TimelineStep) -> str:
    """The label of a step with its figures."""
    label = one_line(step.label)
    if step.kind == "request":
        label = f"{step.number} · {label}" if step.number else label
    if step.kind == "prompt":
        return f"{step.number} · {label}"
    facts: list[str] = []
    if step.state:
        facts.append(step.state)
    if step.seconds >= 0.1 and step.kind != "pause":
        facts.append(wait_time(step.seconds) if step.seconds >= 10 else f"{step.seconds:.1f} s")
    if step.sent is not None and step.sent.tokens:
        share = f", {step.sent.cached / step.sent.tokens:.0%} cached" if step.sent.counted else ""
        facts.append(f"{tokens(step.sent.tokens)} in{share}".replace("%", " %"))
        facts.append(f"{tokens(step.sent.output)} out")
    if step.verdict:
        facts.append(f"{'turned ' if step.turned else ''}{step.verdict}")
    if step.files:
        facts.append(f"{plural(len(step.files), 'file')} changed")
    if step.usd is None:
        facts.append("cost unknown")
    elif step.usd:
        facts.append(money(step.usd))
    return " · ".join([label.removesuffix(".") if facts else label, *facts])


def parts_lines(sent: RequestInput) -> list[str]:
    """List the parts of a request by kind, the largest first."""
    parts = [(name, size) for name, size in sent.parts._asdict().items() if size]
    return [
        f"{tokens(size):>7}  {f'{size / max(1, sent.tokens):.0%}'.replace('%', ' %'):>5}  {name}"
        for name, size in sorted(parts, key=lambda part: -part[1])
    ]


def parts_change(before: RequestInput | None, after: RequestInput | None) -> str:
    """Compare the kinds in a request with those in one before, the largest change first. Little
    more or less of what only a new frame changes comes from the estimate, and isn't said."""
    if before is None or after is None:
        return "as much"
    was = before.parts._asdict()
    changes = [(name, size - was[name]) for name, size in after.parts._asdict().items()]
    said = [
        f"{'+' if by > 0 else '−'}{tokens(abs(by))} {name}"
        for name, by in sorted(changes, key=lambda change: -abs(change[1]))
        if by and (name not in _FRAME or abs(by) * 20 >= was[name])
    ]
    return ", ".join(said) or "as much"


def _input_lines(sent: RequestInput) -> Iterator[str]:
    if not sent.counted:
        yield f"About {tokens(sent.tokens)} tokens in: the server reported no count."
    else:
        fresh = sent.new - sent.written
        yield (
            f"{sent.tokens:,} tokens in: {sent.cached:,} from the cache, {sent.written:,} written"
            f" to it, {fresh:,} neither"
        )
    yield "About " + ", ".join(
        f"{tokens(size)} {name}" for name, size in sent.parts._asdict().items() if size
    )


def _totals(timeline: SessionTimeline) -> Iterator[str]:
    counts = {
        kind: sum(1 for step in timeline.steps if step.kind == kind)
        for kind in ("prompt", "request", "call", "agent")
    }
    counted = [
        plural(counts["prompt"], "prompt"),
        plural(counts["request"], "request"),
        plural(counts["call"], "call"),
    ]
    if counts["agent"]:
        counted.append(plural(counts["agent"], "sub-agent"))
    yield ", ".join(counted) + "."
    drawn = f"{duration(timeline.worked)} of work"
    if timeline.unpriced:
        known = f", {money(timeline.spent.total)}" if timeline.spent.total else ""
        answers = plural(timeline.unpriced, "answer")
        yield f"{drawn}{known}; the price of {answers} isn't known."
        return
    yield f"{drawn}, {money(timeline.spent.total)}."
    for step, usd in _dearest(timeline):
        share = part_of(usd, timeline.spent.total)
        yield f"Dearest: prompt {_quoted(step)} · {money(usd)} · {share}"


def _fullest(timeline: SessionTimeline) -> Iterator[str]:
    step = _fullest_step(timeline)
    if step is not None and (sent := step.sent) is not None:
        yield f"Fullest at request {step.number}: {sent.tokens:,} tokens, {_shares(sent)}."


def _fullest_step(timeline: SessionTimeline) -> TimelineStep | None:
    if not timeline.inputs:
        return None
    return timeline.steps[timeline.requests.steps[timeline.inputs.peak]]


def _breaks(timeline: SessionTimeline) -> Iterator[str]:
    steps = timeline.context_changes()
    breaks = [step for step in steps if step.kind == "break"]
    if breaks:
        usd = sum(step.usd or 0.0 for step in breaks)
        unknown = sum(step.usd is None for step in breaks)
        lost = sum(step.tokens for step in breaks)
        said = "" if not unknown else f", the price of {unknown} isn't known"
        times = plural(len(breaks), "time")
        yield f"Cache restarted {times}: {lost:,} tokens again, {money(usd)}{said}."
        for step in heapq.nlargest(_DEAREST, breaks, key=lambda one: (one.usd or 0.0, one.tokens)):
            yield f"  {step_line(step)}"
    compactions = [step for step in steps if step.kind == "compaction"]
    if compactions:
        saved = sum(step.tokens for step in compactions)
        yield f"{plural(len(compactions), 'compaction')}, {tokens(saved)} tokens less."


def _checks(timeline: SessionTimeline) -> Iterator[str]:
    steps = [timeline.steps[n] for n in timeline.marks["check"].steps]
    if not steps:
        return
    turns = [step for step in steps if step.turned]
    red = timeline.red_checks()
    now = f"red when last run: {', '.join(red)}" if red else "all green when last run"
    yield f"{plural(len(steps), 'check')}, {now}."
    reds = [step for step in turns if step.verdict == "red"]
    for step in reds[-_DEAREST:]:
        yield f"  {step_line(step)}"


def _doubts(timeline: SessionTimeline) -> Iterator[str]:
    """Notes that the reader needs to judge the figures."""
    pauses = [timeline.steps[n] for n in timeline.marks["pause"].steps]
    cut = sum(step.seconds - (step.end - step.at) for step in pauses if step.seconds > 0)
    if cut >= 1:
        yield f"Not counted: {wait_time(cut)} in which nothing is known to have run."
    if said := clock_words(timeline):
        yield f"T{said[1:]}: steps stand in the order of the record."
    if words := failed_attempts(timeline):
        yield words
    sent = [timeline.steps[place].sent for place in timeline.requests.steps]
    if uncounted := sum(not one.counted for one in sent if one):
        yield (
            f"{plural(uncounted, 'answer')} without a count of tokens: the input is estimated from"
            " the messages, and what was cached isn't known."
        )
    if said := _untimed_words(timeline):
        yield f"{said}."

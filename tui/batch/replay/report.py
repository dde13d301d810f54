"""The results of a replay: a table for a person, JSON, and JUnit's XML. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import msgspec

from tui.batch.replay.checks import red
from tui.batch.replay.state import CaseState, Figures, ReplayState, Verdict
from tui.batch.report import one_line
from tui.core.formatting import duration, money, plural, tokens

_HEAD: Final = ("case", "result", "calls", "tokens", "cost", "time", "session")
_ORDER: Final[tuple[Verdict, ...]] = ("solved", "unsolved", "failed", "left out", "")
_TITLE: Final = 40
_REASON: Final = 400
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(state: ReplayState, reason: str = "") -> str:
    """The table, the totals, and why the rest is not solved; `reason` is why it ended early. Where
    a figure differs from then, both are told: then, and now."""
    rows = [_row(case) for case in state.cases]
    sizes = [max(len(row[n]) for row in (list(_HEAD), *rows)) for n in range(len(_HEAD))]
    table = [
        "  ".join(
            cell.ljust(size) if n in {0, 1, 6} else cell.rjust(size)
            for n, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ).rstrip()
        for row in (list(_HEAD), *rows)
    ]
    parts = ["\n".join(table), totals(state, reason)]
    if left := [
        f"  {case.name}: {one_line(case.reason, _REASON)}" for case in state.cases if case.reason
    ]:
        parts.append("\n".join(["Not solved:", *left]))
    return "\n\n".join(parts) + "\n"


def totals(state: ReplayState, reason: str = "") -> str:
    """One line: how many cases came out how, and what that took beside then."""
    counts = counts_of(state)
    named = (f"{count} {verdict or 'to do'}" for verdict, count in counts.items())
    done = [case for case in state.cases if case.session_id]
    then, now = (_sum([getattr(case, name) for case in done]) for name in ("then", "now"))
    parts = [
        f"{plural(len(state.cases), 'case')}: {', '.join(named)}",
        f"{tokens(now.tokens)} tokens, then {tokens(then.tokens)}",
        f"{money(now.cost_usd)}, then {money(then.cost_usd)}",
        *([f"stopped early: {reason}"] if reason else []),
    ]
    return " · ".join(parts)


def counts_of(state: ReplayState) -> dict[Verdict, int]:
    """The number of cases by their verdict; those to be done as "", last."""
    found = [case.verdict for case in state.cases]
    return {verdict: found.count(verdict) for verdict in _ORDER if verdict in found}


def as_json(state: ReplayState, reason: str = "") -> dict[str, Any]:
    """The state as one object, with the counts, and why it ended early."""
    counts = {verdict or "to do": count for verdict, count in counts_of(state).items()}
    return {**msgspec.to_builtins(state), "counts": counts, "reason": reason}


def junit(state: ReplayState) -> str:
    """The cases as JUnit's XML: unsolved ones are failures, failed ones errors, and those without a
    verdict are skipped."""
    counts, number = counts_of(state), len(state.cases)
    skipped = counts.get("left out", 0) + counts.get("", 0)
    seconds = sum(case.now.seconds or 0.0 for case in state.cases)
    figures = {
        "name": f"{state.suite} ({state.variation.words})",
        "tests": number,
        "failures": counts.get("unsolved", 0),
        "errors": counts.get("failed", 0),
        "skipped": skipped,
        "time": f"{seconds:.3f}",
        "timestamp": state.started_at[:19],
    }
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<testsuite{_attributes(figures)}>"]
    for case in state.cases:
        lines += _testcase(case, state.suite)
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def _testcase(case: CaseState, suite: str) -> Iterator[str]:
    named = {"classname": suite, "name": case.name, "time": f"{case.now.seconds or 0.0:.3f}"}
    said = "\n".join(f"$ {one.command}\n{one.output}" for one in red(case.checks))
    about = _attributes({"message": case.reason})
    yield f"  <testcase{_attributes(named)}>"
    match case.verdict:
        case "solved":
            pass
        case "unsolved":
            yield f"    <failure{about}>{_xml(said)}</failure>"
        case "failed":
            yield f"    <error{about}/>"
        case _:
            yield f"    <skipped{about}/>"
    told = [
        f"session: {case.session_id}" if case.session_id else "",
        f"then: {case.session}",
        f"calls: {case.now.calls}, then {case.then.calls}" if case.session_id else "",
        f"tokens: {case.now.tokens}, then {case.then.tokens}" if case.session_id else "",
        f"cost: {money(case.now.cost_usd)}, then {money(case.then.cost_usd)}"
        if case.session_id
        else "",
    ]
    yield f"    <system-out>{_xml(chr(10).join(filter(None, told)))}</system-out>"
    yield "  </testcase>"


def _attributes(values: dict[str, Any]) -> str:
    given = {name: _NOT_XML.sub("\ufffd", str(value)) for name, value in values.items()}
    return "".join(f" {name}={quoteattr(value)}" for name, value in given.items())


def _xml(value: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", value))


def _row(case: CaseState) -> list[str]:
    then, now = case.then, case.now
    if not case.session_id:
        return [one_line(case.name, _TITLE), case.verdict or "to do", *[""] * 5]
    return [
        one_line(case.name, _TITLE),
        case.verdict,
        _both(str(then.calls), str(now.calls)),
        _both(tokens(then.tokens), tokens(now.tokens)),
        _both(money(then.cost_usd), money(now.cost_usd)),
        _both(*(duration(one.seconds) if one.seconds is not None else "—" for one in (then, now))),
        case.session_id,
    ]


def _both(then: str, now: str) -> str:
    return now if then == now else f"{then} → {now}"


def _sum(figures: Sequence[Figures]) -> Figures:
    costs = [one.cost_usd for one in figures]
    return Figures(
        calls=sum(one.calls for one in figures),
        tokens=sum(one.tokens for one in figures),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )

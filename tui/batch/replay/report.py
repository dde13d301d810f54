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
from tui.core.formatting import duration, money, plural, shortened, tokens
from tui.core.redaction import mask, mask_values
from tui.core.standard_output import hanging

_HEAD: Final = ("case", "result", "calls", "tokens", "cost", "time", "session")
_ORDER: Final[tuple[Verdict, ...]] = ("solved", "unsolved", "failed", "left out", "")
_SPARE: Final = ("calls", "time", "tokens")
"""Columns that are left out where there is no room for them."""
_TITLE: Final = 40
_NAME_MIN: Final = 24
"""Characters of a case's name that are shown as long as another column can go instead."""
_NAME_LEAST: Final = 12
_REASON: Final = 400
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(state: ReplayState, reason: str = "", width: int | None = None) -> str:
    """The table, as wide as a terminal of `width` columns has room for, the totals, and why the
    rest is not solved; `reason` is why it ended early. Where a figure differs from then, both are
    told: then, and now. Where each case was run several times, a row tells how often it was solved,
    and the median and the ends of each figure; the runs follow."""
    rows = [list(_HEAD)]
    for runs in _by_case(state):
        rows += [_row(runs[0])] if state.runs == 1 else [_sum_row(runs), *map(_run_row, runs)]
    shown, left_out = _that_fit(rows, width)
    parts = ["\n".join(shown), "\n".join(hanging("", totals(state, reason), width, inner=2))]
    if left_out:
        named = " and ".join(filter(None, (", ".join(left_out[:-1]), left_out[-1])))
        said = f"No room for {named}: a wider terminal shows them, and so does --json."
        parts.insert(1, "\n".join(hanging("", said, width)))
    if left := [
        line
        for n, case in enumerate(state.cases)
        if case.reason
        for line in hanging(
            "  ", f"{state.label(n)}: {one_line(case.reason, _REASON)}", width, inner=2
        )
    ]:
        parts.append("\n".join(["Not solved:", *left]))
    return mask("\n\n".join(parts))[0] + "\n"


def _that_fit(rows: Sequence[Sequence[str]], width: int | None) -> tuple[list[str], list[str]]:
    """The rows of the table as lines, and the names of the columns that there is no room for. The
    first of _SPARE have it first, and what is left of it is the case's."""
    sizes = [max(len(row[n]) for row in rows) for n in range(len(_HEAD))]
    spare, out = [_HEAD.index(name) for name in _SPARE], list[str]()
    columns = [n for n in range(len(_HEAD)) if n not in spare]
    if width is None:
        columns += spare
    else:
        whole = sizes[0]
        sizes[0] = min(whole, _NAME_MIN)
        for n in spare:
            if _length(sizes, [*columns, n]) <= width:
                columns.append(n)
            else:
                out.append(_HEAD[n])
        room = width - _length(sizes, columns)
        sizes[0] = min(whole, max(_NAME_LEAST, sizes[0] + room))
    columns.sort()
    lines = [
        "  ".join(
            shortened(row[n], sizes[n]).ljust(sizes[n])
            if n in {0, 1, 6}
            else row[n].rjust(sizes[n])
            for n in columns
        ).rstrip()
        for row in rows
    ]
    return lines, out


def _length(sizes: Sequence[int], columns: Sequence[int]) -> int:
    return sum(sizes[n] for n in columns) + 2 * (len(columns) - 1)


def totals(state: ReplayState, reason: str = "") -> str:
    """One line: how many cases came out how, and what that took, as recorded → now."""
    counts = counts_of(state)
    named = (f"{count} {verdict or 'to do'}" for verdict, count in counts.items())
    done = [case for case in state.cases if case.session_id]
    then, now = (_sum([getattr(case, name) for case in done]) for name in ("then", "now"))
    count = plural(len(state.cases) // state.runs, "case")
    lost = [one for case in state.cases for one in case.cut_off.values()]
    parts = [
        f"{count if state.runs == 1 else f'{count}, {state.runs} runs each'}: {', '.join(named)}",
        f"tokens {_both(tokens(then.tokens), tokens(now.tokens))}",
        f"cost {_both(money(then.cost_usd), money(now.cost_usd))}",
    ]
    if done and now.cost_usd is None:
        parts[-1] += " (— is a price that isn't set)"
    if lost:
        more = _sum(lost)
        attempts = plural(len(lost), "attempt")
        parts.append(f"{money(more.cost_usd)} more for {attempts} that began again")
    return " · ".join([*parts, *([f"stopped early: {reason}"] if reason else [])])


def _by_case(state: ReplayState) -> list[list[CaseState]]:
    """The runs of each case, in the order of the suite."""
    count = len(state.cases) // state.runs
    return [list(state.cases[n::count]) for n in range(count)]


def counts_of(state: ReplayState) -> dict[Verdict, int]:
    """The number of cases by their verdict; those to be done as "", last."""
    found = [case.verdict for case in state.cases]
    return {verdict: found.count(verdict) for verdict in _ORDER if verdict in found}


def as_json(state: ReplayState, reason: str = "") -> dict[str, Any]:
    """The state as one object, with the counts, how often each case was solved, and why it ended
    early."""
    counts = {verdict or "to do": count for verdict, count in counts_of(state).items()}
    solved = {runs[0].name: _solved(runs) for runs in _by_case(state)}
    told = {**msgspec.to_builtins(state), "counts": counts, "solved": solved, "reason": reason}
    return mask_values(told)[0]


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
    for n, case in enumerate(state.cases):
        lines += _testcase(case, state.label(n), state.suite)
    return "\n".join([*lines, "</testsuite>"]) + "\n"


def _testcase(case: CaseState, name: str, suite: str) -> Iterator[str]:
    named = {"classname": suite, "name": name, "time": f"{case.now.seconds or 0.0:.3f}"}
    said = "\n".join(f"$ {one.command}\n{one.output}" for one in red(case.checks))
    about = _attributes({"message": case.reason})
    yield f"  <testcase{_attributes(named)}>"
    match case.verdict:
        case "solved":
            pass
        case "unsolved":
            yield f'    <failure type="check"{about}>{_xml(said)}</failure>'
        case "failed":
            yield f'    <error type="turn"{about}/>'
        case _:
            yield f"    <skipped{about}/>"
    told = [
        f"session: {case.session_id}" if case.session_id else "",
        f"recorded in: {case.session}",
        f"calls: {case.now.calls}, recorded: {case.then.calls}" if case.session_id else "",
        f"tokens: {case.now.tokens}, recorded: {case.then.tokens}" if case.session_id else "",
        f"cost: {money(case.now.cost_usd)}, recorded: {money(case.then.cost_usd)}"
        if case.session_id
        else "",
    ]
    yield f"    <system-out>{_xml(chr(10).join(filter(None, told)))}</system-out>"
    yield "  </testcase>"


def _attributes(values: dict[str, Any]) -> str:
    given = {name: _sound(str(value)) for name, value in values.items()}
    return "".join(f" {name}={quoteattr(value)}" for name, value in given.items())


def _xml(value: str) -> str:
    return escape(_sound(value))


def _sound(value: str) -> str:
    """A text as XML may have it, without secrets: a CI system keeps it."""
    return _NOT_XML.sub("\ufffd", mask(value)[0])


def _row(case: CaseState) -> list[str]:
    name = one_line(case.name, _TITLE)
    if not case.session_id:
        return [name, case.verdict or "to do", *[""] * 5]
    both = zip(_cells(case.then), _cells(case.now), strict=True)
    return [name, case.verdict, *(_both(*pair) for pair in both), case.session_id]


def _run_row(case: CaseState) -> list[str]:
    """The row of one run of several, below that of its case."""
    figures = _cells(case.now) if case.session_id else [""] * 4
    return [f"  run {case.run}", case.verdict or "to do", *figures, case.session_id]


def _sum_row(runs: Sequence[CaseState]) -> list[str]:
    """The row of a case that was run several times: the median of each figure, and its ends."""
    done = [case for case in runs if case.session_id]
    name, verdicts = one_line(runs[0].name, _TITLE), {case.verdict for case in runs}
    result = "left out" if verdicts == {"left out"} else f"{_solved(runs)}/{len(runs)} solved"
    if not done:
        return [name, result, *[""] * 5]
    cells: list[str] = []
    for column, then in enumerate(_cells(done[0].then)):
        ordered = sorted(done, key=lambda case: _values(case.now)[column])
        low, middle, high = (
            _cells(ordered[n].now)[column] for n in (0, (len(done) - 1) // 2, len(done) - 1)
        )
        spread = "" if low == high else f" ({low}–{high})"
        cells.append(f"{_both(then, middle)}{spread}")
    return [name, result, *cells, ""]


def _solved(runs: Sequence[CaseState]) -> int:
    return sum(case.verdict == "solved" for case in runs)


def _values(figures: Figures) -> tuple[float, ...]:
    """The figures of the table, for comparing."""
    return figures.calls, figures.tokens, figures.cost_usd or 0.0, figures.seconds or 0.0


def _cells(figures: Figures) -> list[str]:
    """The figures of the table, in words."""
    seconds = figures.seconds
    time = duration(seconds) if seconds is not None else "—"
    return [str(figures.calls), tokens(figures.tokens), money(figures.cost_usd), time]


def _both(then: str, now: str) -> str:
    return now if then == now else f"{then} → {now}"


def _sum(figures: Sequence[Figures]) -> Figures:
    costs = [one.cost_usd for one in figures]
    return Figures(
        calls=sum(one.calls for one in figures),
        tokens=sum(one.tokens for one in figures),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
    )

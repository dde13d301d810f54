"""The timeline in words and in characters, for every front end."""

from __future__ import annotations

import cProfile
import sys
from math import isclose
from types import FrameType
from typing import Any

from tests.context.worked_session import WorkedSession
from tests.support.spent_session import Told, said, usage
from tui.app.reports.timeline import (
    moment_lines,
    overview,
    parts_change,
    prompt_steps,
    step_line,
    timeline_json,
    timeline_report,
)
from tui.app.reports.timeline_picture import (
    Window,
    label_width,
    legend,
    picture,
    signs,
    unread,
    whole,
)
from tui.context.timeline import Parts, RequestInput, SessionTimeline, outline
from tui.core.dataclass import replace
from tui.core.text_cleaning import one_line


def worked(turns: int = 8, **options: str) -> SessionTimeline:
    made = SessionTimeline()
    made.extend(WorkedSession(**options).made(turns, 12))  # pyright: ignore[reportArgumentType]
    return made


def test_the_report_says_where_money_context_and_cache_went_and_what_is_red() -> None:
    made = worked()
    text = "\n".join(timeline_report(made).lines)
    assert "8 prompts, 99 requests" in text
    assert f"${made.spent.total:.2f}." in text
    assert "Dearest: prompt" in text
    assert "Fullest at request" in text
    assert "% thinking" in text or "% results" in text
    assert "Cache restarted" in text
    assert "2 compactions" in text
    assert "when last run" in text
    assert "turned red" in text


def test_an_unknown_price_is_said_and_never_drawn_as_nothing() -> None:
    made = worked(2, model="nobody-knows-1")
    text = "\n".join(timeline_report(made).lines)
    assert "7 min 08 s of work; the price of 25 answers isn't known." in text
    assert "$0.00" not in text
    assert "cost unknown" in step_line(next(one for one in made.steps if one.kind == "request"))
    assert "cost" not in {row.label for row in picture(made, whole(made), 80, 20)}
    assert timeline_json(made)["cost_usd"] is None


def test_checks_that_were_red_for_less_than_a_cell_show_that() -> None:
    """Red and green again in one cell: it is the red that is looked for."""
    session = WorkedSession()
    session.add("user", 0, content=said("Go"), text="Go")
    for n, (after, code) in enumerate(((1, 0), (20, 0), (1, 1), (1, 0), (20, 0))):
        given = {"command": "pytest -q"}
        call = {"type": "tool_use", "id": f"c{n}", "name": "run_command", "input": given}
        session.request(after, [call], 20)
        details = {"exit_code": code}
        session.add(
            "tool_result", 1, call_id=f"c{n}", name="run_command", details=details, seconds=1.0
        )
    made = SessionTimeline()
    made.extend(session.records)
    (row,) = [row for row in picture(made, whole(made), 20, 40) if row.label == "tests"]
    signs = "".join(cell[0] for cell in row.cells).strip()
    assert signs.replace("─", "") == "✓✗"
    assert signs.endswith("─")


def test_a_prompt_has_its_steps() -> None:
    made = worked(3)
    steps = prompt_steps(made, "2")
    assert (steps[0].kind, steps[0].number) == ("prompt", 2)
    assert all(step.kind != "prompt" for step in steps[1:])
    assert prompt_steps(made, "4") == prompt_steps(made, "0") == prompt_steps(made, "x") == []


def test_a_moment_names_its_figures_and_its_prompt() -> None:
    made = worked(2)
    place = next(n for n, one in enumerate(made.steps) if one.sent and n > 30)
    lines = moment_lines(made, place)
    assert "from the cache" in lines[1]
    assert lines[2].startswith("About ")
    assert lines[-1].startswith("In prompt 2: “Now the error")


def test_the_picture_fits_whatever_the_window_and_the_size() -> None:
    made = worked()
    for width, height in ((12, 1), (40, 5), (80, 15), (120, 30), (300, 50)):
        for window in (whole(made), Window(0, 0.5), Window(made.now / 2, made.now / 2 + 60)):
            rows = picture(made, window, width, height)
            assert len(rows) == height
            columns = max(1, width - label_width(width) - 1)
            assert {len(row.cells) for row in rows} == {columns}
            assert all(len(row.label) <= label_width(width) for row in rows)
            assert all(len(cell[0]) == 1 for row in rows for cell in row.cells)


def test_the_picture_of_nothing_is_blank() -> None:
    made = SessionTimeline()
    rows = picture(made, whole(made), 80, 10)
    assert {cell[0] for row in rows for cell in row.cells} == {" ", "─"}


def test_data_has_every_step_with_its_figures() -> None:
    made = worked(2)
    data = timeline_json(made)
    assert len(data["steps"]) == len(made.steps)
    request = next(one for one in data["steps"] if one["kind"] == "request" and one["n"] == 5)
    assert request["input"]["tokens"] == sum(request["input"]["parts"].values())
    assert request["cost_usd"] > 0


def test_a_picture_costs_so_many_calls_however_long_the_session() -> None:
    calls: list[int] = []
    for turns in (40, 160):
        made = worked(turns)
        profile = cProfile.Profile()
        profile.runcall(picture, made, whole(made), 120, 33)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert max(calls) < 28_000  # 8 ms; 45,000 were 23 ms
    assert calls[1] < calls[0] * 1.2


def test_the_whole_session_in_a_few_lines_answers_what_is_asked_first() -> None:
    made = worked()
    told = dict(overview(made))
    assert list(told)[:4] == ["money", "context", "cache", "tests"]
    dearest = max(zip(_costs(made), range(1, 9), strict=True))
    assert told["money"].startswith(f"${made.spent.total:.2f} · dearest prompt {dearest[1]} “")
    assert f"” ${dearest[0]:.2f}" in told["money"]
    assert "when fullest" in told["context"]
    assert "2 compactions" in told["context"]
    breaks = [one for one in made.context_changes() if one.kind == "break"]
    assert told["cache"].startswith(f"{len(breaks)} restart")
    assert "2× compaction" in told["cache"]
    reds = sum(one.turned and one.verdict == "red" for one in made.steps)
    assert f"turned red {reds} times" in told["tests"]
    assert ("red now" in told["tests"]) == bool(made.red_checks())


def test_the_whole_session_is_told_in_as_many_steps_however_long_it_is() -> None:
    counts = [_instructions(worked(turns)) for turns in (12, 120)]
    assert counts[1] < counts[0] * 1.1


def _instructions(made: SessionTimeline) -> int:
    """How many instructions it takes to tell a session."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        told = overview(made)
    finally:
        sys.settrace(before)
    assert len(told) == 6
    return count


def test_what_is_told_while_a_session_grows_is_what_its_steps_say() -> None:
    made = SessionTimeline()
    for record in WorkedSession(seed=2).made(6, 12):
        made.add(record)
        breaks = [one for one in made.context_changes() if one.kind == "break"]
        lost, worst = made.totals.lost()
        assert sum(one.times for one in lost.values()) == len(breaks)
        assert isclose(sum(one.usd for one in lost.values()), sum(one.usd or 0 for one in breaks))
        if worst:
            assert (worst.usd or 0) == max(one.usd or 0 for one in breaks)
        if len(made.prompt_costs):
            last = made.marks["prompt"].steps[-1]
            pairs = zip(made.prompt_costs, made.marks["prompt"].steps, strict=True)
            assert made.totals.dearest(made.prompt_costs[-1], last) == sorted(pairs)[:-4:-1]
        if sizes := made.inputs.values:
            assert made.inputs.peak == sizes.index(max(sizes))
        reds = [n for n, one in enumerate(made.steps) if one.turned and one.verdict == "red"]
        assert list(made.totals.red_turns) == reds


def _costs(made: SessionTimeline) -> list[float]:
    """What each prompt has cost, by its steps."""
    steps = (prompt_steps(made, str(n)) for n in range(1, len(made.marks["prompt"]) + 1))
    return [sum(one.usd or 0.0 for one in each if one.kind != "break") for each in steps]


def test_a_clock_that_jumps_back_moves_no_cost_to_another_prompt() -> None:
    told = Told()
    for seconds in (10, -3600, 31_536_000):
        told.step = seconds
        told.prompt("Look")
        told.step = 10
        told.answer(usage(10, 20, 50_000), *said("It is so."))
    made = SessionTimeline()
    made.extend(told.records)
    assert len(set(made.prompt_costs)) == 1
    assert sum(made.prompt_costs) == made.spent.total


def test_doubts_about_the_time_are_told() -> None:
    told = Told()
    for seconds in (10, -3600, 31_536_000):
        told.step = seconds
        told.prompt("Look")
    odd = replace(told.records[-1], id="odd", time="yesterday")
    made = SessionTimeline()
    made.extend([*told.records, odd])
    doubts = "the clock jumped back once · 1 record without a readable time"
    assert dict(overview(made))["time"].endswith(doubts)
    notes = timeline_report(made).notes
    assert "Not counted: 365 days in which nothing is known to have run." in notes
    assert "The clock jumped back once: steps stand in the order of the record." in notes


def test_a_name_that_is_too_long_for_its_bar_ends_with_an_ellipsis() -> None:
    made = worked(2)
    window, names = whole(made), set[str]()
    for width in range(60, 300, 10):
        for row in picture(made, window, width, 30):
            inside = "".join(cell[0] if cell[1] == "ink" else "\n" for cell in row.cells)
            names |= {name.strip() for name in inside.splitlines() if name.strip()}
    whole_names = {one_line(step.label) for step in made.steps}
    numbered = {f"{step.number} {step.label}" for step in made.steps}
    assert any(name.endswith("…") for name in names)
    assert all(name.endswith("…") or name in whole_names | numbered for name in names)


def test_the_whole_of_nothing_is_said_in_words() -> None:
    assert dict(overview(SessionTimeline())) == {
        "money": "nothing was spent",
        "context": "nothing was sent yet",
        "tests": "no checks were run",
        "time": "0 s of work",
    }
    unknown = dict(overview(worked(2, model="nobody-knows-1")))
    assert "isn't known" in unknown["money"]
    assert "$" not in unknown["money"]


def test_the_legend_and_the_signs_fit_and_are_whole_where_there_is_room() -> None:
    for pieces, most in ((legend, 78), (signs, 78)):
        texts = {width: "".join(piece for piece, _ in pieces(width)) for width in range(8, 120)}
        assert all(len(text.rstrip()) <= width for width, text in texts.items())
        assert texts[most] == texts[119]
    assert "██ system  pale: from the cache" in "".join(piece for piece, _ in legend(78))
    assert "".join(piece for piece, _ in signs(30)) == "! cache restart  ▼ compaction"


def test_no_label_is_cut_however_narrow_the_picture() -> None:
    made = worked()
    wide = {row.label for row in picture(made, whole(made), 80, 30)}
    narrow = {row.label for row in picture(made, whole(made), 40, 30)}
    assert {"context", "prompts", "cache", "tests"} <= narrow & wide


def test_the_share_of_the_dearest_prompt_is_never_said_to_be_nothing() -> None:
    text = "\n".join(timeline_report(worked(400)).lines)
    assert " · <1 %" in text
    assert " · 0 %" not in text


def test_what_a_request_has_more_names_no_tools_that_only_the_estimate_took_away() -> None:
    before = RequestInput(18_660, 0, 0, 0, 0, Parts(1_150, 5_900, 2_370, 4_050, 5_190))
    after = RequestInput(19_160, 0, 0, 0, 0, Parts(1_116, 5_723, 2_400, 4_274, 5_647))
    assert parts_change(before, after) == "+457 thinking, +224 results, +30 messages"
    more = RequestInput(20_160, 0, 0, 0, 0, Parts(1_116, 6_723, 2_400, 4_274, 5_647))
    assert parts_change(before, more).startswith("+823 tools, +457 thinking")


def test_what_is_not_folded_yet_is_drawn_in_outline_only() -> None:
    records = WorkedSession(words=5).made(40, 12)
    half = SessionTimeline({})
    half.extend(records[: len(records) // 2])
    left = unread(half, outline(records), len(records))
    for colors, sign in ((True, "░"), (False, "·")):
        rows = picture(half, left.whole, 110, 30, colors=colors, left=left)
        labels = [row.label for row in rows]
        chart = [row.cells for row in rows[: labels.index("cache")]]
        ended = left.whole.column(half.now, len(chart[0]))
        assert isclose(ended, len(chart[0]) / 2, rel_tol=0.1)
        lowest = [letter for letter, _, _ in chart[-1]]
        assert sign not in lowest[:ended]
        assert {*lowest[ended + 1 :]} == {sign}
        below = rows[len(chart) :]
        assert below
        assert all({*row.cells[ended + 1 :]} == {(" ", "text", "")} for row in below)


def test_an_outline_is_as_high_as_the_requests_to_come() -> None:
    told = Told()
    for number in range(1, 41):
        told.tell("user", content=said("go"), text="go")
        whole_input = usage(fresh=1_000 if number < 20 else 4_000)
        told.tell("assistant", content=said("done"), model="m", usage=whole_input)
    begun = SessionTimeline({})
    begun.extend(told.records[:20])
    left = unread(begun, outline(told.records), len(told.records))
    rows = picture(begun, left.whole, 110, 30, left=left)
    assert rows[0].label == "4.0k"
    heights = [sum(row.cells[column][0] == "░" for row in rows) for column in (35, 90)]
    assert isclose(heights[1], 4 * heights[0], abs_tol=3)


def test_an_outline_of_a_session_without_counts_is_empty() -> None:
    records = [one for one in WorkedSession(words=5).made(3, 4) if one.type != "assistant"]
    left = unread(SessionTimeline({}), outline(records), len(records))
    assert not left.tokens
    assert picture(SessionTimeline({}), left.whole, 80, 10, left=left)

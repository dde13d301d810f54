"""The timeline of a session, folded from its record: nothing of it may lie, whatever the record."""

from __future__ import annotations

import json
from itertools import pairwise
from math import isclose
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.context.worked_session import MODEL, WorkedSession
from tests.support.odd_records import VALUES, odd_session, whole_session
from tui.agent.limits import session_cost
from tui.context.timeline import SessionTimeline, TimelineStep
from tui.context.timeline.check_line import check_in
from tui.context.timeline.checks import verdict_of
from tui.session.records import Record


def folded(records: list[Record]) -> SessionTimeline:
    made = SessionTimeline()
    made.extend(records)
    return made


def of_kind(timeline: SessionTimeline, kind: str) -> list[TimelineStep]:
    return [step for step in timeline.steps if step.kind == kind]


def asked(session: WorkedSession, text: str = "Go on", after: float = 1) -> None:
    session.add("user", after, content=[{"type": "text", "text": text}], text=text)


def run(
    session: WorkedSession,
    command: str,
    code: int,
    output: str = "",
    n: int = 1,
    tool: str = "run_command",
) -> None:
    """A request that runs a command, with its result."""
    call = {"type": "tool_use", "id": f"c{n}", "name": tool, "input": {"command": command}}
    session.request(2, [call], 50)
    session.add(
        "tool_result",
        3,
        call_id=f"c{n}",
        name=tool,
        is_error=code != 0,
        content=[{"type": "text", "text": output}],
        seconds=3.0,
        details={"exit_code": code},
    )


# What it says


def test_the_cost_is_that_of_the_session() -> None:
    records = WorkedSession().made(8, 12)
    cost = session_cost(records, {}).session.usd
    assert cost
    assert folded(records).usd == pytest.approx(cost)  # pyright: ignore[reportUnknownMemberType]


def test_the_parts_of_a_request_add_up_to_what_the_server_counted() -> None:
    sent = [step.sent for step in of_kind(folded(WorkedSession().made(6, 12)), "request")]
    assert all(one is not None and sum(one.parts) == one.tokens for one in sent)
    last = sent[-1]
    assert last is not None
    assert last.parts.tools > last.parts.system > 0
    assert last.parts.results > 0


def test_folding_record_by_record_is_folding_all_at_once() -> None:
    records = WorkedSession().made(6, 10)
    grown = SessionTimeline()
    for end in range(0, len(records), 7):
        assert grown.follow(records[: end + 7])
    assert grown.steps == folded(records).steps
    assert grown.spent.total == folded(records).spent.total


def test_another_branch_is_not_followed() -> None:
    records = WorkedSession().made(2, 6)
    grown = folded(records)
    assert not grown.follow(records[:-5])


def test_steps_are_told_in_the_order_of_the_record_and_no_bar_overlaps_another() -> None:
    made = folded(WorkedSession().made(9, 12))
    assert all(one <= other for one, other in pairwise(made.anchors))
    lanes = [lane for group in made.lanes.values() for lane in group.rows]
    for lane in lanes:
        assert all(end <= start for end, start in zip(lane.ends, lane.starts[1:], strict=False))
    assert sum(len(lane.starts) for lane in lanes) > 100


def test_sub_agents_at_the_same_time_are_side_by_side() -> None:
    made = folded(WorkedSession().made(6, 12))
    assert len(of_kind(made, "agent")) == 3
    assert [len(lane.starts) for lane in made.lanes["agent"].rows] == [1, 1, 1]
    assert all(step.usd for step in of_kind(made, "agent"))


def test_a_retry_waits_and_its_request_goes_on() -> None:
    made = folded(WorkedSession().made(3, 12))
    assert [round(step.seconds) for step in of_kind(made, "wait")] == [5, 12]
    assert all(step.state != "running" for step in of_kind(made, "request"))


def test_a_compaction_makes_the_next_request_smaller_and_has_a_price() -> None:
    made = folded(WorkedSession().made(4, 12))
    (compaction,) = of_kind(made, "compaction")
    place = made.steps.index(compaction)
    before, after = (
        [s.sent for s in part if s.sent] for part in (made.steps[:place], made.steps[place:])
    )
    assert before[-1]
    assert after[0]
    assert before[-1].parts.messages + before[-1].parts.results > after[0].parts.results
    assert compaction.usd
    assert compaction.tokens > 0
    (broken,) = of_kind(made, "break")
    assert broken.usd == 0.019  # as it was billed
    assert broken.tokens == 5_000


def test_what_the_server_had_not_kept_is_said_with_its_price() -> None:
    session = WorkedSession()
    asked(session)
    run(session, "ls", 0, n=1)
    run(session, "ls", 0, n=2)
    assert of_kind(folded(session.records), "break") == []
    session.cached = 0
    asked(session, after=900)
    run(session, "ls", 0, n=3)
    (lost,) = of_kind(folded(session.records), "break")
    assert "after 16 min without a request" in lost.label
    session.cached, session.model = 0, "claude-opus-5-5"
    run(session, "ls", 0, n=4)
    assert "it was claude-sonnet-5-5's" in of_kind(folded(session.records), "break")[1].label
    assert lost.usd
    assert lost.tokens > 2_000


def test_what_was_cached_for_an_hour_costs_that_again() -> None:
    """Written for an hour, it costs twice the input price, less a read: $4 and $0.1 a million."""
    session = WorkedSession()
    asked(session)
    run(session, "ls", 0, n=1)
    session.cached = 0
    asked(session, after=5_000)
    run(session, "ls", 0, n=2)
    usage = session.records[-2].data["usage"]
    usage["ephemeral_1h_input_tokens"] = usage["cache_creation_input_tokens"]
    (lost,) = of_kind(folded(session.records), "break")
    assert lost.usd
    assert isclose(lost.usd, lost.tokens * 3.9e-6, rel_tol=0.01)


def test_checks_turn_red_and_green_by_their_exit_codes() -> None:
    session = WorkedSession()
    asked(session)
    for n, code in enumerate((1, 1, 0, 0, 1)):
        run(session, "cd app && python -m pytest -q", code, n=n)
    run(session, "cat pytest.ini", 1, n=9)
    checks = [step for step in folded(session.records).steps if step.verdict]
    assert [(step.verdict, step.turned) for step in checks] == [
        ("red", True),
        ("red", False),
        ("green", True),
        ("green", False),
        ("red", True),
    ]
    assert list(folded(session.records).reds) == [1, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("command", "check"),
    [
        ("pytest -q tests", "pytest"),
        ("cd x && .venv/bin/pytest -n 2", "pytest"),
        ("FOO=1 uv run pytest", "pytest"),
        ("timeout 60 cargo  test --all", "cargo test"),
        ("npm run test:unit -- --watch=false", "npm run test:unit"),
        ("./gradlew clean build", "gradlew clean build"),
        ("python -m unittest", "unittest"),
        ("make check", "make check"),
        ("mise run test:ci 2>&1", "mise run test:ci"),
        ("just fmt && just lint", "just lint"),
        ("npx tsgo --noEmit", "tsgo"),
        ("mise run fmt", ""),
        ("pip install pytest", ""),
        ("grep -r pytest .", ""),
        ("cat pytest.ini", ""),
        ("git commit -m 'npm test'", ""),
        ("go run main.go", ""),
        ("git commit -m 'Mend the parser; pytest passes'", ""),
        ('git commit -m "Mend it (pytest)" && npm test', "npm test"),
        ("cat > README.md <<'EOF'\nRun this:\npytest -q\nEOF", ""),
        ("cat > a.py <<EOF\nx = 1\nEOF\npytest -q", "pytest"),
        ("docker exec x sh -c 'cd /w && pytest -q'", "pytest"),
        ("# let's see\npytest -q  # that's all", "pytest"),
        ("echo it\\'s time; pytest -q", "pytest"),
        ("# to run; pytest -q", ""),
        ("pytest --version", ""),
        ("pytest -q --collect-only tests", ""),
    ],
)
def test_a_check_is_known_by_its_command(command: str, check: str) -> None:
    assert check_in(command) == check


@pytest.mark.parametrize(
    ("command", "code", "output", "verdict"),
    [
        ("pytest", 0, "", "green"),
        ("pytest", 1, "", "red"),
        ("pytest | tail -3", 0, "== 2 failed, 30 passed in 3.1s ==", "red"),
        ("pytest | tail -3", 0, "== 30 passed in 3.1s ==", "green"),
        ("npm run build 2>&1 | tail -3", 0, "dist/index.js", "green"),
        ("npm run build 2>&1 | tail -1", 0, "Waiting: error TS2307", "red"),
        ("npm run build | node judge.js", 0, "dist/index.js", ""),
        ("mise run test 2>&1 | head -2", 0, "ok  a\nok  b", ""),
        ("mise run test 2>&1 | head -9", 0, "ok  a\nok  b", "green"),
        ("mise run test 2>&1 | head -9", 0, "    --- FAIL: TestRewind (0.98s)", "red"),
        ("npm run check 2>&1 | grep -E 'error|warning'", 1, "(no output)", "green"),
        ("npm run check 2>&1 | grep -E 'error|warning'", 0, "Found 1 warning.", ""),
        ("npm run check 2>&1 | grep 'error TS'", 0, "a.ts(1,2): error TS2307: no", "red"),
        ("npm test | grep passed", 1, "", ""),
        ("set -o pipefail; pytest | tail", 0, "2 failed", "green"),
        ("pytest; echo done", 0, "1 failed\ndone", "red"),
        ("python -m unittest", 0, "Ran 2 tests in 0.1s\n\nOK", "green"),
        ("python -m unittest", 0, "Ran 0 tests in 0.0s\n\nOK", ""),
        ("python -m unittest | tail -3", 0, "Ran 0 tests in 0.0s\n\nOK", ""),
        ("pytest -q tests/no_test.py", 5, "no tests ran in 0.11s", ""),
        ("pytest -q tests/gone.py", 4, "no tests ran in 0.01s\nERROR: not found: gone.py", "red"),
        ("cd x; npm run build", 0, "", "green"),
        ("npm run build 2>&1", 0, "", "green"),
        ("npm run build \\\n  --quiet\n", 0, "", "green"),
        ("npm run build & echo begun", 0, "begun", ""),
        ("pytest -q\ntrue", 0, "1 failed", "red"),
        ("pytest -q\ntrue", 0, "", ""),
        ("pytest -q || true", 0, "1 failed", "red"),
        ("pytest -q > /dev/null || echo '5 passed'", 0, "5 passed", ""),
        pytest.param("pytest || true; seq 999", 0, "1 failed\n" + "ok\n" * 999, "", id="above"),
        ("pytest -q; true # pipefail", 0, "", ""),
        ("set -o pipefail; pytest -q | cat; true", 0, "", ""),
        ("set -euo pipefail; pytest -q | cat", 0, "", "green"),
        ("echo $(pytest -q)", 0, "", ""),
        ('pytest -q > log; echo "$N passed"', 0, "5 passed", ""),
        ("pytest -q > log; printf '%d passed' 5", 0, "5 passed", ""),
        ("pytest -q > log; echo -e '\\x35 passed'", 0, "5 passed", ""),
        ("pytest -q > log; echo 5 'pas'sed", 0, "5 passed", ""),
        ("pytest -q > log; echo $? passed", 0, "1 passed", ""),
        ("pytest -q > new.log; cat old.log", 0, "5 passed", ""),
        ("pytest -q >> log; cat log", 0, "5 passed", ""),
        ("pytest -q | tail -3 old.log", 0, "5 passed", ""),
        ("pytest -q | sed s/failed/passed/", 0, "5 passed", ""),
        ("pytest -q | awk '{print $1 \" passed\"}'", 0, "5 passed", ""),
        ("pytest -q > log; ruff check .", 0, "All checks passed!", ""),
        ("./all.sh; pytest -q | tail -1", 0, "5 passed", ""),
        ("test -d x || pytest -q", 0, "", ""),
        ("test -d x || pytest -q", 0, "5 passed", "green"),
        ("pytest -q > log 2>&1; tail -n 3 log", 0, "5 passed", "green"),
        ("pytest -q 2>&1 | tee a.log | tail -3; grep -c passed a.log", 0, "5 passed", "green"),
        ("echo '== tests'; pytest | tail -3; echo \"exit: $?\"", 0, "5 passed\nexit: 0", "green"),
        ("cd x; A=1 pytest | sed -n '1,9p' | tail; echo done", 0, "5 passed", "green"),
        ("cat > a.py <<'E'\nx\nE\npytest -q | tail -3", 0, "5 passed", "green"),
        ("bash -c 'cd x; pytest -q | tail -3'", 0, "5 passed", "green"),
    ],
)
def test_a_check_behind_a_pipe_is_judged_by_what_it_says(
    command: str, code: int, output: str, verdict: str
) -> None:
    result = {"details": {"exit_code": code}, "content": [{"type": "text", "text": output}]}
    assert verdict_of(command, result) == verdict


@pytest.mark.parametrize(
    "output",
    ["Command aborted", "<tool_use_error>Sibling tool call errored</tool_use_error>"],
)
def test_a_check_that_was_stopped_has_no_verdict(output: str) -> None:
    result = {"is_error": True, "content": [{"type": "text", "text": output}]}
    assert verdict_of("npm test", result) == ""
    assert verdict_of("npm test", {**result, "content": []}) == "red"


def test_a_check_is_green_again_with_that_of_the_project() -> None:
    session = WorkedSession()
    asked(session)
    run(session, "npx tsc --noEmit", 1, n=0)
    run(session, "npx vitest", 1, n=1)
    run(session, "npm run check", 0, n=2)
    run(session, "npm test", 0, n=3)
    assert list(folded(session.records).reds) == [1, 2, 1, 0]


@pytest.mark.parametrize(
    ("before", "after", "red"),
    [
        ("cd app && pytest", "pytest", True),
        ("pytest", "cd app && pytest", True),
        ("cd a && npm test", "cd b && npm test", True),
        ("cd a && npx tsc", "npm run check", True),
        ("cd a && npx tsc", "cd a && npm run check", False),
        ("cd app && pytest", "(cd app; pytest)", False),
        ("cd app && pytest", "cd /w/app/ && pytest -x", False),
        ("pytest", "cd /w && pytest", False),
        ("pytest", "cd app && make; cd - && pytest", False),
        ("pytest", "(cd app && make) && pytest", False),
        ("cd 'my app' && pytest", "cd my\\ app && pytest", False),
        ("pytest app/t.py", "cd app && pytest t.py", False),
        ("cd app && pytest t.py", "pytest app", False),
        ("cd app && pytest", "pytest app", False),
        ("pytest app", "pytest app -k parse", True),
        ("cd $A && pytest", "cd $B && pytest", True),
        ("bash -c 'cd app && pytest'", "pytest", True),
    ],
)
def test_a_check_in_another_folder_is_another(before: str, after: str, red: bool) -> None:
    session = WorkedSession()
    asked(session)
    run(session, before, 1, n=0)
    run(session, after, 0, n=1)
    made = SessionTimeline(cwd="/w")
    made.extend(session.records)
    assert bool(made.red_checks()) is red


def test_a_shell_that_outlives_its_commands_stays_where_it_went() -> None:
    session = WorkedSession()
    asked(session)
    run(session, "cd app && ls", 0, n=0, tool="Bash")
    run(session, "pytest", 1, n=1, tool="Bash")
    run(session, "cd .. && pytest", 0, n=2, tool="Bash")
    assert folded(session.records).red_checks() == ["pytest"]
    run(session, "cd app && pytest", 0, n=3, tool="Bash")
    assert folded(session.records).red_checks() == []


def test_a_check_that_was_refused_is_not_red() -> None:
    session = WorkedSession()
    asked(session)
    run(session, "pytest", 1, n=0)
    session.records[-1].data.update(summary="denied", details={})
    assert folded(session.records).red_checks() == []


def test_files_that_a_call_changed_are_named() -> None:
    made = folded(WorkedSession().made(2, 8))
    changed = [step for step in made.steps if step.files]
    assert changed
    assert all(one.startswith("/w/") for step in changed for one in step.files)
    assert made.changed.total == len(changed)


# Bad input


def test_a_clock_that_jumps_back_moves_nothing() -> None:
    session = WorkedSession()
    asked(session)
    run(session, "ls", 0)
    end = folded(session.records).now
    asked(session, after=-86_400)
    made = folded(session.records)
    assert made.now == end
    (jump,) = of_kind(made, "pause")
    assert jump.label == "The clock jumped back by 24 h"
    assert made.steps[-1].kind == "prompt"


def test_days_without_anything_are_cut_out_and_said() -> None:
    session = WorkedSession()
    asked(session)
    run(session, "ls", 0)
    before = folded(session.records).now
    asked(session, after=3 * 86_400)
    made = folded(session.records)
    assert made.now - before == 30
    (pause,) = of_kind(made, "pause")
    assert pause.label == "3 days passed"
    assert "aren't drawn" in pause.note


def test_an_unknown_price_is_unknown_and_not_nothing() -> None:
    session = WorkedSession(model="nobody-knows-1")
    asked(session)
    run(session, "ls", 0)
    made = folded(session.records)
    assert made.usd is None
    assert [step.usd for step in of_kind(made, "request")] == [None]


def test_a_request_without_an_answer_and_calls_without_a_result_end_with_the_next_prompt() -> None:
    session = WorkedSession()
    asked(session)
    call = {"type": "tool_use", "id": "c1", "name": "run_command", "input": {"command": "make"}}
    session.request(2, [call], 50)
    assert [step.label for step in folded(session.records).running()] == ["Run make"]
    session.add("request", 1, n=2, model=MODEL)
    assert [step.kind for step in folded(session.records).running()] == ["request"]
    asked(session)
    made = folded(session.records)
    assert made.running() == []
    assert [step.state for step in of_kind(made, "call")] == ["no result"]
    assert [step.state for step in of_kind(made, "request")] == ["", "no answer"]


def test_ten_thousand_calls_of_one_answer() -> None:
    session = WorkedSession()
    asked(session)
    calls = [
        {"type": "tool_use", "id": f"c{n}", "name": "read_file", "input": {"path": f"f{n}"}}
        for n in range(10_000)
    ]
    session.request(5, calls, 900)
    for call in calls:
        result: dict[str, Any] = {"call_id": call["id"], "name": "read_file", "content": []}
        session.add("tool_result", 0.01, **result, seconds=0.01)
    made = folded(session.records)
    assert len(of_kind(made, "call")) == 10_000
    assert made.running() == []


def test_an_empty_session_has_no_steps() -> None:
    assert folded([]).steps == []
    assert folded([]).usd == 0.0


_LINES = whole_session()
_TIMES = (
    "2026-11-21T09:00:00Z", "2026-11-21T09:00:05Z", "2026-11-20T09:00:00Z", "2031-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-11-21T09:00:00", "today", "",
)  # fmt: skip


def test_a_request_beside_the_conversation_never_ends_before_it_began() -> None:
    made = SessionTimeline()
    usage = {"input_tokens": 9, "output_tokens": 1}
    for n, seconds in enumerate((-1, 10**30, "a text")):
        data = {"model": "m", "usage": usage, "seconds": seconds}
        made.add(Record("side_question", f"{n:020x}", None, f"2026-11-21T09:00:0{n}Z", data))
    asides = [step for step in made.steps if step.kind == "aside"]
    assert len(asides) == 3
    assert all(0 <= step.at <= step.end for step in asides)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_records_in_any_order_are_folded_and_the_axis_only_grows(
    data: st.DataObject,
) -> None:
    made, now = SessionTimeline(), 0.0
    for n in range(data.draw(st.integers(1, 40))):
        line = dict(data.draw(st.sampled_from(_LINES)))
        type_ = str(line.pop("type"))
        for name in data.draw(st.sets(st.sampled_from([*line, "seconds"]), max_size=3)):
            line[name] = data.draw(st.sampled_from(VALUES))
        time = data.draw(st.sampled_from(_TIMES))
        made.add(Record(type_, f"{n:020x}", None, time, line))
        assert made.now >= now
        now = made.now
    assert len(made.steps) == len(made.anchors)
    assert all(one <= other for one, other in pairwise(made.anchors))
    ended = [step for step in made.steps if step.state != "running"]
    assert all(0 <= step.at <= step.end <= now for step in ended)
    json.dumps([step.label for step in made.steps])


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_one_odd_value_anywhere_is_folded(first: int) -> None:
    for seed in range(first, first + 250):
        lines, said = odd_session(seed)
        made = SessionTimeline()
        for n, line in enumerate(lines[1:]):
            time = line.pop("time", "")
            type_ = str(line.pop("type", ""))
            made.add(Record(type_, f"{n:020x}", None, time, line))
        assert made.steps, said


def test_a_compaction_of_another_program_counts_no_messages() -> None:
    session = WorkedSession()
    asked(session)
    session.add("compaction", 2, summary="All was done.")
    (step,) = [one for one in folded(session.records).steps if one.kind == "compaction"]
    assert step.label == "summarized"


def test_a_compaction_by_hand_did_not_run_since_the_turn_before() -> None:
    """Nobody knows when it began, so the hour in which nothing ran is none of its own."""
    session = WorkedSession()
    asked(session)
    run(session, "ls", 0)
    session.add("compaction", 3_600, summary="All was done.", reason="manual")
    made = folded(session.records)
    (step,) = of_kind(made, "compaction")
    assert step.seconds == 0
    assert made.worked < 10


def test_time_between_prompts_and_waits_for_the_person_are_no_work() -> None:
    session = WorkedSession()
    asked(session)
    run(session, "ls", 0)  # 5 seconds
    asked(session, after=25)
    call: dict[str, Any] = {"type": "tool_use", "id": "q", "name": "ask_user", "input": {}}
    session.request(2, [call], 50)
    session.add("tool_result", 7_200, call_id="q", name="ask_user", content=[], is_error=False)
    session.request(2, [], 50)
    made = folded(session.records)
    assert isclose(made.totals.waited, 7_200)
    assert isclose(made.worked, 9, abs_tol=0.5)
    assert made.now > 600

"""The results of a replay for a person, and for programs that read JUnit's XML."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tui.batch.replay.report import as_json, junit, text
from tui.batch.replay.state import CaseState, CheckResult, Figures, ReplayState, Variation


def state(*cases: CaseState) -> ReplayState:
    return ReplayState(
        suite="suite.toml",
        sha256="",
        started_at="2026-11-29T10:00:00Z",
        variation=Variation(model="claude-haiku-4-5", effort="low"),
        cases=cases,
    )


def test_the_table_tells_then_and_now() -> None:
    then = Figures(calls=5, requests=6, tokens=12_000, cost_usd=0.5, seconds=60)
    now = Figures(calls=7, requests=8, tokens=9_000, cost_usd=0.25, seconds=30)
    one = CaseState(
        name="one", session="s", prompt="p", verdict="solved", session_id="n1", then=then, now=now
    )
    two = CaseState(name="two", session="s", prompt="p", verdict="left out", reason="No checks.")
    three = CaseState(name="three", session="s", prompt="p")
    assert text(state(one, two, three), "reached the limit of $0.25") == (
        "case   result    calls        tokens           cost               time  session\n"
        "one    solved    5 → 7  12.0k → 9.0k  $0.50 → $0.25  1 min 00 s → 30 s  n1\n"
        "two    left out\n"
        "three  to do\n"
        "\n"
        "3 cases: 1 solved, 1 left out, 1 to do · tokens 12.0k → 9.0k · cost $0.50 → $0.25"
        " · stopped early: reached the limit of $0.25\n"
        "\n"
        "Not solved:\n"
        "  two: No checks.\n"
    )


def wide(*, runs: int = 1) -> ReplayState:
    """Cases whose rows are as long as they get."""
    then = Figures(calls=105, requests=106, tokens=1_200_000, cost_usd=10.5, seconds=3600)
    cases = [
        CaseState(
            name=f"{n}-put-the-answer-right-in-the-first-of-all-files", session="s", prompt="p",
            run=run, verdict="unsolved" if run == 1 else "solved", session_id="7ac05a91be02",
            reason="Red: pytest -q tests/test_parse.py tests/test_lex.py (exit 1)." * (run == 1),
            then=then,
            now=Figures(
                calls=90 + run, requests=9, tokens=900_000 * run, cost_usd=8.25 * run,
                seconds=300.0 * run,
            ),
        )
        for run in range(1, runs + 1)
        for n in (1, 2)
    ]  # fmt: skip
    return replace(state(*cases), runs=runs)


def test_the_table_leaves_out_columns_and_says_so_where_a_terminal_has_no_room() -> None:
    assert len(text(wide()).splitlines()[1]) > 120, "what is piped is whole"
    lines = text(wide(), width=80).splitlines()
    assert lines[:2] == [
        "case                            result       calls            cost  session",
        "1-put-the-answer-right-in-the…  unsolved  105 → 91  $10.50 → $8.25  7ac05a91be02",
    ]
    told = "No room for time and tokens: a wider terminal shows them, and so does --json."
    assert told in lines
    assert lines[-2:] == [
        "  2-put-the-answer-right-in-the-first-of-all-files: Red: pytest -q",
        "    tests/test_parse.py tests/test_lex.py (exit 1).",
    ]
    assert "No room" not in text(wide(), width=120)


@pytest.mark.parametrize("runs", [1, 3])
@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_line_of_the_results_is_too_long_for_the_terminal(runs: int, width: int) -> None:
    lines = text(wide(runs=runs), "reached the limit of $0.25", width).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].split()[:2] == ["case", "result"]
    assert "cost" in lines[0]
    assert lines[0].split()[-1] == "session"
    assert sum(line.rstrip().endswith("7ac05a91be02") for line in lines) == 2 * runs
    gone = [name for name in ("calls", "tokens", "time") if name not in lines[0].split()]
    said = [line for line in lines if line.startswith("No room for ")]
    assert bool(said) == bool(gone)
    assert all(name in said[0] for name in gone)
    assert " ".join(map(str.strip, lines)).count("(exit 1).") == 2


def test_no_key_is_in_results_that_are_pasted_or_uploaded() -> None:
    key = "sk-ant-api03-" + "B" * 40
    check = CheckResult(f"curl -H {key}", 1, 0.5, f"401 for {key}")
    case = CaseState(
        name=f"use {key}", session="s", prompt="p", verdict="unsolved", session_id="n",
        reason=f"Red: curl -H {key} (exit 1).", checks=(check,),
    )  # fmt: skip
    tried = replace(state(case), variation=Variation(model="m", append_system_prompt=key))
    for told in (text(tried, key), junit(tried), json.dumps(as_json(tried, key))):
        assert "[secret removed]" in told
        assert key not in told


@given(st.text(), st.text(), st.sampled_from(["", "solved", "unsolved", "failed", "left out"]))
def test_any_output_makes_sound_xml(name: str, output: str, verdict: str) -> None:
    check = CheckResult(output, 1, 0.5, output)
    case = CaseState(name=name, session="s", prompt="p", verdict=verdict, checks=(check,))  # pyright: ignore[reportArgumentType]
    suite = ElementTree.fromstring(junit(state(case)).encode("utf-8", "surrogatepass"))
    counts = [int(suite.get(one, "")) for one in ("tests", "failures", "errors", "skipped")]
    wanted = {"unsolved": [1, 1, 0, 0], "failed": [1, 0, 1, 0], "solved": [1, 0, 0, 0]}
    assert counts == wanted.get(verdict, [1, 0, 0, 1])

"""The results of a replay for a person, and for programs that read JUnit's XML."""

from __future__ import annotations

import json
from xml.etree import ElementTree

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
        "3 cases: 1 solved, 1 left out, 1 to do · 9.0k tokens, then 12.0k · $0.25, then $0.50"
        " · stopped early: reached the limit of $0.25\n"
        "\n"
        "Not solved:\n"
        "  two: No checks.\n"
    )


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

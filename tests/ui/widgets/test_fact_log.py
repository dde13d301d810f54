"""The debug view's memory: every event once, deltas together, nothing without bound."""

from __future__ import annotations

from tests.support.clock import FakeClock
from tui.core import facts
from tui.core.messages import Usage
from tui.ui.widgets.fact_log import ENTRIES_MAX, FactLog


def filled() -> FactLog:
    log = FactLog(FakeClock())
    log.add(facts.RequestSent(3, 1200, "m", 1))
    for text in ("Hel", "lo", "!"):
        log.add(facts.TextDelta(text))
    log.add(facts.ToolOutputChunk("a", "x"))
    log.add(facts.ToolOutputChunk("b", "yy"))
    log.add(facts.ToolOutputChunk("b", "z"))
    log.add(facts.TurnFinished("done", Usage(input_tokens=5), None))
    return log


def test_deltas_of_one_stream_are_one_entry():
    told = [(entry.kind, entry.line) for entry in filled().entries()]
    assert told[0] == ("request_sent", "messages=3  tokens=1200  model=m  attempt=1")
    assert told[1:4] == [
        ("text_delta", "3 pieces, 6 characters"),
        ("tool_output", "a 1 piece, 1 characters"),
        ("tool_output", "b 2 pieces, 3 characters"),
    ]
    assert told[4][0] == "turn_finished"
    assert "cost_usd=—" in told[4][1]


def test_entries_are_found_by_all_words():
    log = filled()
    assert [entry.kind for entry in log.entries("model=m SENT")] == ["request_sent"]
    assert log.entries("model=other") == []
    assert len(log.entries()) == 5


def test_the_oldest_make_room_and_long_values_are_cut():
    log = FactLog(FakeClock())
    for n in range(ENTRIES_MAX + 10):
        log.add(facts.Notice(f"notice {n} " + "x" * 10_000))
    entries = log.entries()
    assert len(entries) == ENTRIES_MAX
    assert f"notice {ENTRIES_MAX + 9} " in entries[-1].line
    assert len(entries[-1].whole) < 3000
    assert "characters)" in entries[-1].whole


def test_the_whole_event_is_json_with_its_secrets_masked():
    log = FactLog(FakeClock())
    log.add(facts.Notice("key sk-ant-api03-abcdefghijklmnopqrstuvwxyz\n\x1b[31m"))
    whole = log.entries()[0].whole
    assert '"type": "notice"' in whole
    assert '"time": "2026-11-21T09:00:00+00:00"' in whole
    assert "abcdefghijk" not in whole
    assert "[secret removed]" in whole

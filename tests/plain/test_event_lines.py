"""Events as lines: who speaks, what happened, in words and without a single escape sequence."""

from __future__ import annotations

from typing import get_args

import pytest

from tui.agent import events
from tui.agent.events import Event
from tui.core.messages import Usage
from tui.plain.event_lines import lines

RECEIPT = {
    "stages": ["spill"],
    "bytes_total": 493_568,
    "bytes_shown": 3174,
    "path": "/w/.holdfast/tool-results/1.txt",
}

SPOKEN: list[tuple[Event, list[str]]] = [
    (
        events.SessionStarted("0199", None, "practice", "/w", False),
        ["Session 0199, new, model practice. It is kept in memory only."],
    ),
    (events.UserMessage("one\ntwo"), ["You: one", "two"]),
    (events.UserMessage("typed\n\nmore", "more"), ["You: typed"]),
    (events.AssistantMessage("## Yes\n\n**bold**", "end_turn", Usage()),
     ["Holdfast: Heading: Yes", "bold"]),
    (events.ToolStarted("1", "run_command", {}, "pytest -q"),
     ["Tool run_command pytest -q: started."]),
    (
        events.ToolFinished("1", "run_command", False, 12.34, RECEIPT, "exit 0"),
        [
            ("Tool run_command pytest -q: finished in 12.3 s, exit 0, output cut from 482.0 KB to"
            " 3.1 KB, full copy in /w/.holdfast/tool-results/1.txt.")
        ],
    ),
    (
        events.ToolFinished("1", "run_command", True, 1.0, None, "exit 2", "a\nb\n"),
        ["Tool run_command pytest -q: failed after 1.0 s, exit 2.", "  a", "  b"],
    ),
    (
        events.ToolFinished(
            "1", "edit_file", False, 1.0, None, "+2 −1 · 2 new problems", "Edited a.py.",
            "2 new problems:\na.py:1:8 error no\na.py:3 warning hm\n\n--- a/a.py\n+++ b/a.py\n",
        ),
        ["Tool edit_file pytest -q: finished in 1.0 s, 2 lines added, 1 removed, 2 new problems.",
         "  a.py:1:8 error no", "  a.py:3 warning hm"],
    ),
    (events.ToolFinished("1", "run_command", True, 2.0, None, "interrupted"),
     ["Tool run_command pytest -q: interrupted after 2.0 s."]),
    (events.ToolFinished("1", "shell", True, 2.0, None, "stopped"),
     ["Your command: interrupted after 2.0 s."]),
    (events.ToolFinished("1", "run_command", True, 0.0, None, "denied"), []),
    (events.HookFinished("PreToolUse", "./check.sh", "failed", 1, 0.1, "no such file", "1"),
     ["The PreToolUse hook ./check.sh failed (exit 1): no such file."]),
    (events.HookFinished("PreToolUse", "./check.sh", "ok", 0, 0.1), []),
    (events.HookFinished("Stop", "./check.sh", "cancelled", None, 0.1),
     ["The Stop hook ./check.sh was stopped."]),
    (events.SubAgentStarted("1", "5ab", None, "explore", "find the loader", "small"),
     ["Sub-agent explore: started, find the loader, model small."]),
    (events.SubAgentEvent("1", "explore", events.ToolStarted("2", "list_dir", {}, ".")), []),
    (events.SubAgentEvent("1", "explore", events.Notice("The limit is near.")),
     ["Sub-agent explore: The limit is near."]),
    (events.SubAgentFinished("1", "5ab", "explore", "done", 3, 2, Usage(1000, 20), 0.25),
     ["Sub-agent explore: done, 3 calls, 1,020 tokens, $0.25."]),
    (events.PermissionAnswered("1", "run_command", "no", "person", "not now"),
     ["Tool run_command pytest -q: not allowed: not now."]),
    (events.PermissionAnswered("1", "run_command", "allow", "elevated"),
     ["Tool run_command pytest -q: elevated, no prompt."]),
    (events.PermissionAnswered("1", "run_command", "once", "person"), []),
    (
        events.RetryScheduled(2, 3, 4.0, "The server is overloaded.", 529, "overloaded", None, 20),
        [("The server is overloaded. Discard what was read of this answer. Waiting 4 s,"
         " try 2 of 3; Ctrl+C stops.")],
    ),
    (
        events.ModelSwitched("a", "b", "a does not answer", None, "timeout"),
        ["a does not answer. Switched to b. Back to a by itself, or with /model a."],
    ),
    (events.CompactionStarted("manual", 50_000, 12),
     ["Compacting 12 messages, 50,000 tokens. Ctrl+C stops it."]),
    (
        events.CompactionFinished(50_000, 8000, 12, "s", "manual"),
        [("Compacted from 50,000 to 8,000 tokens: a summary replaces 12 messages. /uncompact"
         " restores everything.")],
    ),
    (events.CompactionFinished(1, 1, 0, "", "manual", "stopped"), ["Not compacted: stopped."]),
    (events.Pruned(1, 900), ["1 old result pruned, saving 900 tokens per request."]),
    (events.StorageChanged(False, "the disk is full"), ["Not saved: the disk is full."]),
    (events.StorageChanged(True), ["Everything is saved again."]),
    (
        events.TodosChanged(({"text": "a", "status": "completed"}, {"text": "b", "status": "x"})),
        ["To do: 1 of 2 done.", "  done: a", "  open: b"],
    ),
    (events.ErrorRaised("auth", "The key was refused.", True, "Give another."),
     ["Error, key rejected: The key was refused. Give another."]),
    (
        events.RepairApplied(
            ({"code": "B41", "where": "line 3", "action": "left out"},
             {"code": "B01", "where": "x", "action": "y"})
        ),
        ["Repaired this session in one place; its file is unchanged.", "  line 3: left out"],
    ),
    (events.RepairApplied(({"code": "B01", "where": "x", "action": "y"},)), []),
    (events.TurnFinished("done"), []),
    (events.TurnFinished("interrupted"), ["Stopped. What should it do instead?"]),
    (events.ToolsAwaited(("time",), 10), ["Waiting for MCP servers: time."]),
    (events.ContextChanged(({"target": "1", "pinned": True},)), ["Pinned."]),
    (events.ContextChanged(({"target": "1", "view": "masked"},)),
     ["One item is masked, starting with the next request."]),
    (events.LoopStopped("grep_search", {}, 3),
     [("Stopped: grep_search was called 3 times in a row with the same result."
      " What should it do instead?")]),
    (events.Alive(), []),
    (events.RequestSent(1, 1, "m", 1), []),
]  # fmt: skip


@pytest.mark.parametrize(("event", "spoken"), SPOKEN, ids=lambda value: type(value).__name__)
def test_an_event_in_words(event: Event, spoken: list[str]) -> None:
    assert lines(event, "pytest -q") == spoken


def test_every_fact_that_matters_is_spoken() -> None:
    """What has no line streams, is said in another way, or changes nothing for the listener."""
    silent = {
        events.TextDelta, events.ThinkingDelta, events.ToolInputDelta, events.ToolOutputChunk,
        events.RequestSent, events.Alive, events.ContextMeasured, events.QueueChanged,
        events.CompactionDelta, events.PermissionAsked, events.RequestExtended, events.TitleChanged,
        events.QuestionAsked, events.QuestionAnswered, events.PlanProposed, events.PlanApproved,
        events.RequestPaid, events.CheckpointTaken,
    }  # fmt: skip
    others = {
        events.DirectivesChanged: events.DirectivesChanged(True, False, True),
        events.Notice: events.Notice("hear"),
        events.Debug: events.Debug("\n[DEBUG] x"),
        events.Parked: events.Parked("2026-11-21T10:00:00Z", "Later."),
        events.RecoveryStep: events.RecoveryStep("images", "without images", 2, 1),
        events.OverflowCompactionStarted: events.OverflowCompactionStarted(1, 3, 9),
        events.MemorySaved: events.MemorySaved("MEMORY.md", 2),
        events.CompactionUndone: events.CompactionUndone(5),
        events.ExamStarted: events.ExamStarted("small", "m"),
        events.ExamFinished: events.ExamFinished((), 0, 0, "m", "busy"),
        events.ContextBroken: events.ContextBroken("mask", "person", 41_000, 7, 0.1),
        events.ThinkingDropped: events.ThinkingDropped({"model_binding_mismatch": 2}, {}),
        events.HandOff: events.HandOff("a", ("b",), ("c",)),
        events.ContextFiles: events.ContextFiles(({"name": "A", "raw": 9, "kept": 1},)),
        events.ToolsChanged: events.ToolsChanged("t", (), (), "t left"),
        events.FilesChanged: events.FilesChanged((), "a.py changed."),
        events.JobStarted: events.JobStarted("job-1", "c1", "make", 7, "person"),
        events.JobFinished: events.JobFinished(
            "job-1", "c1", "make", 2, "exit code 2", "", 5.0, "/out.txt", 9, "failed"
        ),
        events.SourcesCited: events.SourcesCited(({"title": "A", "url": "https://a.org/"},)),
    }
    known = {type(event) for event, spoken in SPOKEN if spoken}
    for kind, event in others.items():
        assert lines(event), kind
    assert set(get_args(Event)) == silent | known | set(others)


@pytest.mark.parametrize(
    "event",
    [
        events.Notice("\x1b[31mred\x1b[0m · → …"),
        events.ErrorRaised("server", "a\x1b]0;title\x07b\r\nc", True),
        events.ToolStarted("1", "x\x1b[2J", {}, "y\x9b1A"),
        events.ToolFinished("1", "t", True, 1.0, None, "s\x1b[1m", "\x1b[5mout\x07\n"),
        events.UserMessage("a\x1b[Ab"),
        events.AssistantMessage("**a**\x1b[3A\n| x\x1b | y |", "end_turn", Usage()),
    ],
)
def test_nothing_that_is_said_moves_the_cursor(event: Event) -> None:
    spoken = "\n".join(lines(event, "l\x1b[1Al"))
    assert spoken
    assert not set(spoken) & {"\x1b", "\x07", "\x9b", "\r"}


def test_our_own_words_are_plain_ascii() -> None:
    for event, _ in SPOKEN:
        if not isinstance(event, events.AssistantMessage | events.UserMessage):
            assert "\n".join(lines(event)).isascii()

"""Events as lines: who speaks, what happened, in words and without a single escape sequence."""

from __future__ import annotations

import pytest

from tui.core import facts
from tui.core.facts import Fact
from tui.core.messages import Usage
from tui.plain.fact_lines import lines

RECEIPT = {
    "stages": ["spill"],
    "bytes_total": 493_568,
    "bytes_shown": 3174,
    "path": "/w/.holdfast/tool-results/1.txt",
}

SPOKEN: list[tuple[Fact, list[str]]] = [
    (
        facts.SessionStarted("0199", None, "practice", "/w", False),
        ["Session 0199, new, model practice. It is kept in memory only."],
    ),
    (facts.UserMessage("one\ntwo"), ["You: one", "two"]),
    (facts.UserMessage("typed\n\nmore", "more"), ["You: typed"]),
    (facts.AssistantMessage("## Yes\n\n**bold**", "end_turn", Usage()),
     ["Holdfast: Heading: Yes", "bold"]),
    (facts.ToolStarted("1", "run_command", {}, "pytest -q"),
     ["Tool run_command pytest -q: started."]),
    (
        facts.ToolFinished("1", "run_command", False, 12.34, RECEIPT, "exit 0"),
        [
            ("Tool run_command pytest -q: finished in 12.3 s, exit 0, output cut from 482.0 KB to"
            " 3.1 KB, full copy in /w/.holdfast/tool-results/1.txt.")
        ],
    ),
    (
        facts.ToolFinished("1", "run_command", True, 1.0, None, "exit 2", "a\nb\n"),
        ["Tool run_command pytest -q: failed after 1.0 s, exit 2.", "  a", "  b"],
    ),
    (
        facts.ToolFinished(
            "1", "edit_file", False, 1.0, None, "+2 −1 · 2 new problems", "Edited a.py.",
            "2 new problems:\na.py:1:8 error no\na.py:3 warning hm\n\n--- a/a.py\n+++ b/a.py\n",
        ),
        ["Tool edit_file pytest -q: finished in 1.0 s, 2 lines added, 1 removed, 2 new problems.",
         "  a.py:1:8 error no", "  a.py:3 warning hm"],
    ),
    (facts.ToolFinished("1", "run_command", True, 2.0, None, "interrupted"),
     ["Tool run_command pytest -q: interrupted after 2.0 s."]),
    (facts.ToolFinished("1", "shell", True, 2.0, None, "stopped"),
     ["Your command: interrupted after 2.0 s."]),
    (facts.ToolFinished("1", "run_command", True, 0.0, None, "denied"), []),
    (facts.HookFinished("PreToolUse", "./check.sh", "failed", 1, 0.1, "no such file", "1"),
     ["The PreToolUse hook ./check.sh failed (exit 1): no such file."]),
    (facts.HookFinished("PreToolUse", "./check.sh", "ok", 0, 0.1), []),
    (facts.HookFinished("Stop", "./check.sh", "cancelled", None, 0.1),
     ["The Stop hook ./check.sh was stopped."]),
    (facts.SubAgentStarted("1", "5ab", None, "explore", "find the loader", "small"),
     ["Sub-agent explore: started, find the loader, model small."]),
    (facts.SubAgentEvent("1", "explore", facts.ToolStarted("2", "list_dir", {}, ".")), []),
    (facts.SubAgentEvent("1", "explore", facts.Notice("The limit is near.")),
     ["Sub-agent explore: The limit is near."]),
    (facts.SubAgentFinished("1", "5ab", "explore", "done", 3, 2, Usage(1000, 20), 0.25),
     ["Sub-agent explore: done, 3 calls, 1,020 tokens, $0.25."]),
    (facts.PermissionAnswered("1", "run_command", "no", "person", "not now"),
     ["Tool run_command pytest -q: not allowed: not now."]),
    (facts.PermissionAnswered("1", "run_command", "allow", "elevated"),
     ["Tool run_command pytest -q: elevated, no prompt."]),
    (facts.PermissionAnswered("1", "run_command", "once", "person"), []),
    (
        facts.RetryScheduled(2, 3, 4.0, "The server is overloaded.", 529, "overloaded", None, 20),
        [("The server is overloaded. Retry 2 of 3 in 4 s (20 characters received were discarded)."
         " Ctrl+C stops.")],
    ),
    (
        facts.ModelSwitched("a", "b", "a does not answer", None, "timeout"),
        ["a does not answer. Switched to b. Back to a by itself, or with /model a."],
    ),
    (facts.CompactionStarted("manual", 50_000, 12),
     ["Compacting 12 messages, 50.0k tokens. Ctrl+C stops."]),
    (
        facts.CompactionFinished(50_000, 8000, 12, "s", "manual"),
        [("Compacted 50.0k to 8.0k tokens: a summary replaces 12 messages. /uncompact"
         " restores everything.")],
    ),
    (facts.CompactionFinished(1, 1, 0, "", "manual", "stopped"), ["Not compacted: stopped."]),
    (facts.Pruned(1, 900), ["1 old result left out, saving 900 tokens per request."]),
    (facts.StorageChanged(False, "the disk is full"), ["Not saved: the disk is full."]),
    (facts.StorageChanged(True), ["Everything is saved again."]),
    (
        facts.TodosChanged(({"text": "a", "status": "completed"}, {"text": "b", "status": "x"})),
        ["To do: 1 of 2 done.", "  done: a", "  open: b"],
    ),
    (facts.ErrorRaised("auth", "The key was refused.", True, "Give another."),
     ["Error, key rejected: The key was refused. Give another."]),
    (
        facts.RepairApplied(
            ({"code": "B41", "where": "line 3", "action": "left out"},
             {"code": "B01", "where": "x", "action": "y"})
        ),
        ["Repaired this session in one place; its file is unchanged.", "  line 3: left out"],
    ),
    (facts.RepairApplied(({"code": "B01", "where": "x", "action": "y"},)), []),
    (facts.TurnFinished("done"), []),
    (facts.TurnFinished("interrupted"), ["Stopped. What should it do instead?"]),
    (facts.ToolsAwaited(("time",), 10), ["Waiting up to 10 s for the MCP servers: time."]),
    (facts.ContextChanged(({"target": "1", "pinned": True},)), ["Pinned."]),
    (facts.ContextChanged(({"target": "1", "view": "masked"},)),
     ["One item is hidden from the model, starting with the next request."]),
    (facts.LoopStopped("grep_search", {}, 3),
     [("Stopped: grep_search was called 3 times in a row with the same result."
      " What should it do instead?")]),
    (facts.Alive(), []),
    (facts.RequestSent(1, 1, "m", 1), []),
]  # fmt: skip


@pytest.mark.parametrize(("event", "spoken"), SPOKEN, ids=lambda value: type(value).__name__)
def test_an_event_in_words(event: Fact, spoken: list[str]) -> None:
    assert lines(event, "pytest -q") == spoken


def test_what_was_done_is_spoken() -> None:
    others = {
        facts.DirectivesChanged: facts.DirectivesChanged(True, False, True),
        facts.Notice: facts.Notice("hear"),
        facts.Debug: facts.Debug("\n[DEBUG] x"),
        facts.Parked: facts.Parked("2026-11-21T10:00:00Z", "Later."),
        facts.RecoveryStep: facts.RecoveryStep("images", "without images", 2, 1),
        facts.OverflowCompactionStarted: facts.OverflowCompactionStarted(1, 3, 9),
        facts.MemorySaved: facts.MemorySaved("MEMORY.md", 2),
        facts.CompactionUndone: facts.CompactionUndone(5),
        facts.ExamStarted: facts.ExamStarted("small", "m"),
        facts.ExamFinished: facts.ExamFinished((), 0, 0, "m", "busy"),
        facts.ContextBroken: facts.ContextBroken("mask", "person", 41_000, 7, 0.1),
        facts.ThinkingDropped: facts.ThinkingDropped({"model_binding_mismatch": 2}, {}),
        facts.HandOff: facts.HandOff("a", ("b",), ("c",)),
        facts.ContextFiles: facts.ContextFiles(({"name": "A", "raw": 9, "kept": 1},)),
        facts.ToolsChanged: facts.ToolsChanged("t", (), (), "t left"),
        facts.FilesChanged: facts.FilesChanged((), "a.py changed."),
        facts.JobStarted: facts.JobStarted("job-1", "c1", "make", 7, "person"),
        facts.JobFinished: facts.JobFinished(
            "job-1", "c1", "make", 2, "exit code 2", "", 5.0, "/out.txt", 9, "failed"
        ),
        facts.SourcesCited: facts.SourcesCited(({"title": "A", "url": "https://a.org/"},)),
    }
    for kind, event in others.items():
        assert lines(event), kind


@pytest.mark.parametrize(
    "event",
    [
        facts.Notice("\x1b[31mred\x1b[0m · → …"),
        facts.ErrorRaised("server", "a\x1b]0;title\x07b\r\nc", True),
        facts.ToolStarted("1", "x\x1b[2J", {}, "y\x9b1A"),
        facts.ToolFinished("1", "t", True, 1.0, None, "s\x1b[1m", "\x1b[5mout\x07\n"),
        facts.UserMessage("a\x1b[Ab"),
        facts.AssistantMessage("**a**\x1b[3A\n| x\x1b | y |", "end_turn", Usage()),
    ],
)
def test_nothing_that_is_said_moves_the_cursor(event: Fact) -> None:
    spoken = "\n".join(lines(event, "l\x1b[1Al"))
    assert spoken
    assert not set(spoken) & {"\x1b", "\x07", "\x9b", "\r"}


def test_our_own_words_are_plain_ascii() -> None:
    for event, _ in SPOKEN:
        if not isinstance(event, facts.AssistantMessage | facts.UserMessage):
            assert "\n".join(lines(event)).isascii()

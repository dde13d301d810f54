"""What a run says: its lines, its table, its Markdown."""

from __future__ import annotations

from msgspec import to_builtins

from tui.batch.events import (
    BatchEvent,
    FromAgent,
    RetryDelayed,
    RunFinished,
    RunStarted,
    TaskFinished,
    TaskStarted,
)
from tui.batch.report import ROWS_MAX, RunSummary, lines_of
from tui.batch.state import RunState, Status, TaskState
from tui.core import facts
from tui.core.facts import Notice

HASH = "0123456789abcdef0123456789abcdef01234567"


def lines(*facts: BatchEvent) -> list[str]:
    return [line for fact in facts for line in lines_of(fact, total=3)]


def task(index: int, status: Status, text: str = "make it", **more: object) -> TaskState:
    return TaskState(index=index, group="g", task=text, status=status, **more)  # pyright: ignore[reportArgumentType]


def state(*tasks: TaskState) -> RunState:
    return RunState(task_file="/w/TASKS.md", sha256="", started_at="", tasks=tasks)


DONE = task(
    0, "completed", attempts=1, seconds=61.0, change=HASH, cost_usd=0.5,
    usage={"input_tokens": 900, "output_tokens": 100},
)  # fmt: skip
FAILED = task(
    1, "failed", "fix | it", attempts=2, seconds=5.0, error_class="timeout",
    message="no answer in time.", change="refs/holdfast/1/task-2",
    log=".holdfast/run/logs/002-2.log",
    usage={"input_tokens": 50}, cost_usd=0.25,
)  # fmt: skip
OPEN = task(2, "pending", "tag it")


def test_A9_A23_A27_A36_the_lines_are_as_required():
    assert lines(
        RunStarted("TASKS.md", 3, 1, ".holdfast/boot.md", "git"),
        TaskStarted(1, "g", "fix it", 1, "s"),
        Notice("  waiting 4s before retry..."),
        RetryDelayed(1, 4, "rate limited"),
        Notice("  failover: switching from a to b"),
        TaskStarted(1, "g", "fix it", 2, "s"),
        Notice("  compaction: context at 88%, starting fresh session with summary"),
    ) == [
        "holdfast run TASKS.md: 3 tasks, 1 done",
        "boot: .holdfast/boot.md",
        "isolation: git, one commit per task, without git hooks, unsigned",
        "[2/3] g: fix it",
        "  waiting 4s before retry...",
        "  failover: switching from a to b",
        "  attempt 2",
        "  compaction: context at 88%, starting fresh session with summary",
    ]


def test_what_agents_do_is_one_line_each():
    told: list[facts.Fact] = [
        facts.ToolStarted("1", "run_command", {}, "echo \x1b[31mred\nand more"),
        facts.ToolFinished("1", "run_command", True, 1.0, None, summary="exit 1"),
        facts.PermissionAnswered("1", "write_file", "deny", "rules", "no rule allows it"),
        facts.QuestionAnswered("2", "ask_user", ({"header": "Database"},), "default"),
        facts.RetryScheduled(1, 3, 2.0, "Overloaded.", 529, "overloaded"),
        facts.ErrorRaised("timeout", "No answer.", True),
        facts.TextDelta("not a line"),
    ]
    assert lines(*(FromAgent(0, fact) for fact in told)) == [
        "  » run_command echo [31mred and more",
        "  » run_command failed: exit 1",
        "  write_file was not allowed: no rule allows it",
        "  Nobody could answer (Database): the model decides.",
        "  Overloaded. Retry 1 of 3 in 2 s.",
        "  timeout: No answer.",
    ]


def test_how_a_task_ended_is_said():
    ended = [
        TaskFinished(0, "completed", HASH, 1, None, "", 61.0, DONE.usage, 0.5),
        TaskFinished(1, "failed", "refs/x", 2, "timeout", "No answer", 5.0, {}, None),
        TaskFinished(2, "interrupted", None, 1, None, "interrupted", 0.0, {}, None),
    ]
    assert lines(*ended) == [
        "  completed: 1 min 01 s, 1 attempt, 1.0k tokens, commit 0123456789",
        "  failed (timeout): 5 s, 2 attempts, 0 tokens",
        "  its attempt is kept: git show refs/x",
        "  interrupted: 0 s, 1 attempt, 0 tokens; runs again next time",
    ]


def test_the_table_fits_and_names_what_is_left():
    text = RunSummary(state(DONE, FAILED, OPEN), "2 tasks failed in a row").text(width=80)
    assert all(len(line) <= 80 for line in text.splitlines()[:4])
    assert "3 tasks: 1 completed, 1 failed, 1 pending · 1.1k tokens · $0.75" in text
    assert "$0.75 · 1 min 06 s of work" in text
    assert "stopped early: 2 tasks failed in a row" in text
    assert (
        "2. failed (timeout): no answer in time. Its attempt: git show refs/holdfast/1/task-2."
        in text
    )
    assert "Its log: .holdfast/run/logs/002-2.log." in text
    assert text.count("tag it") == 1  # the table says that it is pending


def test_elapsed_and_worked_time_are_told_apart():
    text = RunSummary(state(DONE, FAILED), seconds=40.0).totals()
    assert text.endswith("1 min 06 s of work · 40 s elapsed")


def test_a_task_that_changed_nothing_is_told_apart():
    nothing = task(3, "completed", "is it sound?", attempts=1, seconds=1.0, unchanged=True)
    summary = RunSummary(state(DONE, nothing))
    assert "2 tasks: 2 completed (1 without changes)" in summary.totals()
    assert "4  no changes  is it sound?" in summary.text()
    assert "| 4 | is it sound? | no changes | 1 |" in summary.markdown()
    ended = TaskFinished(3, "completed", None, 1, None, "", 1.0, {}, None, unchanged=True)
    assert lines(ended) == ["  no changes: 1 s, 1 attempt, 0 tokens"]
    assert ended.to_json()["status"] == "completed"


def test_a_long_table_leaves_out_what_is_completed():
    many = [task(n, "completed") for n in range(ROWS_MAX)]
    text = RunSummary(state(*many, task(ROWS_MAX, "failed", "the odd one"))).text()
    assert "the odd one" in text
    assert "Completed tasks of the" in text
    assert len(text.splitlines()) < 12


def test_the_markdown_is_a_table_that_nothing_in_it_breaks():
    shown = RunSummary(state(DONE, FAILED, OPEN)).markdown()
    assert "| 1 | make it | completed | 1 | 1.0k | $0.50 | 1 min 01 s | 0123456789 |" in shown
    assert "fix \\| it" in shown
    assert "### Not done\n\n- **2. fix \\| it** failed (timeout): no answer in time." in shown
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {9}


def test_json_has_the_index_of_the_task_and_the_whole_end():
    assert FromAgent(2, facts.TextDelta("x")).to_json() == {
        "type": "text_delta", "text": "x", "task": 2,
    }  # fmt: skip
    end = RunFinished({"completed": 1}, 2.0, "", {}, None, (DONE,)).to_json()
    assert end["type"] == "run_finished"
    assert end["tasks"] == (to_builtins(DONE),)

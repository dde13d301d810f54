"""Lines that workers of this machine print, told again by the driver as events of the run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import get_args

import pytest

from tests.support.clock import ManualClock
from tui.batch.cluster.engines.local import LocalEngine
from tui.batch.cluster.relay import LONGEST_WAIT_S, WorkerEvents, event_of
from tui.batch.events import (
    BatchEvent,
    FromAgent,
    RetryDelayed,
    RunFinished,
    RunStarted,
    TaskFinished,
    TaskStarted,
)
from tui.core import facts
from tui.core.facts import Fact, Notice, SubAgentEvent, WireFact
from tui.core.messages import Usage

KEY = "00003"
TASKS = {KEY: (2,)}
STARTED = TaskStarted(2, "g", "three", 1, "s1")


@pytest.mark.parametrize(
    "event",
    [
        STARTED,
        RetryDelayed(2, 5, "why"),
        TaskFinished(2, "completed", "abc", 1, None, "", 1.5, {"output_tokens": 3}, 0.5),
        Notice("words"),
        FromAgent(2, facts.TextDelta("a\r\nb")),
        FromAgent(2, facts.AssistantMessage("done", "end_turn", Usage(1, 2, 3, 4), "r")),
        FromAgent(2, facts.ToolFinished("id", "run_command", False, 1.0, None, text="x")),
        FromAgent(2, facts.ErrorRaised("network", "gone", True, "try")),
        FromAgent(2, facts.RequestPaid(0.5, None)),
        FromAgent(2, SubAgentEvent("id", "scout", facts.TextDelta("inner"))),
        FromAgent(2, SubAgentEvent("id", "scout", SubAgentEvent("id", "x", Notice("deep")))),
        FromAgent(2, facts.TurnFinished("done", Usage(1, 2), 0.25)),
    ],
)
def test_an_event_is_told_as_it_was_printed(event: BatchEvent) -> None:
    told = event_of(json.loads(json.dumps(event.to_json())))
    assert told.to_json() == event.to_json()
    assert type(told) is type(event)


def test_every_kind_of_fact_has_a_name_of_its_own() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(Fact)]
    assert len(set(tags)) == len(tags)


class Worker:
    """Workers that print what they are told to, and end."""

    def __init__(self, folder: Path, *, answered: bool = False) -> None:
        self.said = folder / "said"
        self.clock = ManualClock()
        self.engine = LocalEngine(4, folder / "workers")
        self.events = WorkerEvents(self.engine, folder, self.clock, answered=answered)

    def prints(self, *lines: WireFact | FromAgent | str) -> list[BatchEvent]:
        """Let one print lines; returns the events that are told then."""
        texts = [one if isinstance(one, str) else json.dumps(one.to_json()) for one in lines]
        self.said.write_text("".join(f"{text}\n" for text in texts))
        wait(self.engine.put({KEY: ["work"]})[KEY])
        return self.events.read(TASKS)[0]


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    made = Worker(tmp_path)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ncat {made.said}\n")
    program.chmod(0o755)
    monkeypatch.setattr("tui.batch.cluster.engines.local.sys.executable", str(program))
    return made


RUN = RunStarted("TASKS.md", 3, 0, "", "git")
OVER = RunFinished({}, 1.0)


def test_what_a_worker_says_of_its_own_run_is_not_told(worker: Worker) -> None:
    told = worker.prints(
        "Task 00003 begins.",
        Notice("Copied .env."),
        RUN,
        Notice("Line 2 was not taken as a task."),
        STARTED,
        Notice("  waiting 2s"),
        FromAgent(2, facts.Alive()),
        OVER,
    )
    assert told == [
        Notice("[3] Copied .env."),
        STARTED,
        Notice("[3] waiting 2s"),
        FromAgent(2, facts.Alive()),
    ]


def test_the_next_worker_of_a_task_is_told_as_the_first(worker: Worker) -> None:
    worker.prints(RUN, STARTED)  # it was killed
    assert worker.prints("Traceback", '{"type": "text_del', RUN, Notice("x"), STARTED) == [STARTED]


@pytest.mark.parametrize(
    "line",
    [
        "5",
        "null",
        "[1]",
        '"a"',
        '{"type": []}',
        "[" * 100_000,
        json.dumps(FromAgent(0, facts.TextDelta("of another task")).to_json()),
        json.dumps(TaskFinished(999, "completed", "a", 1, None, "", 1, {}, 0.5).to_json()),
        '{"type": "text_delta", "task": [2], "text": "a"}',
        '{"type": "subagent_event", "task": 2, "id": [], "name": "", "event": 5}',
    ],
)
def test_a_line_that_a_task_has_forged_tells_nothing(worker: Worker, line: str) -> None:
    assert worker.prints(RUN, STARTED, line, Notice("x")) == [STARTED, Notice("[3] x")]


def test_a_line_is_told_once_it_is_whole(worker: Worker) -> None:
    log = worker.engine.logs / f"worker-{KEY}.log"
    log.parent.mkdir()
    log.write_text(json.dumps(STARTED.to_json()) + "\n")  # of an earlier run
    assert worker.prints(RUN) == []
    text = json.dumps(STARTED.to_json())
    with log.open("a") as out:
        out.write(text[:9])
    assert worker.events.read(TASKS)[0] == []
    with log.open("a") as out:
        out.write(f"{text[9:]}\n")
    assert worker.events.read(TASKS)[0] == [STARTED]
    worker.engine.drop(KEY)
    assert not log.parent.exists()


def test_one_worker_goes_ahead_until_its_answer_begins(worker: Worker) -> None:
    assert worker.events.slots() == 1
    worker.prints(RUN, STARTED, FromAgent(2, facts.RequestSent(1, 1, "m", 1)))
    assert worker.events.slots() == 1
    worker.prints(FromAgent(2, facts.ThinkingDelta("hm")))
    assert worker.events.slots() == 4


def test_others_do_not_wait_long_for_the_first_answer(worker: Worker) -> None:
    assert worker.events.slots() == 1
    worker.clock.advance(LONGEST_WAIT_S)
    assert worker.events.slots() == 4


def test_a_look_is_due_when_a_worker_has_ended(worker: Worker) -> None:
    worker.said.write_text("")
    fifo = worker.said
    fifo.unlink()
    os.mkfifo(fifo)
    handle = worker.engine.put({KEY: ["work"]})[KEY]
    assert worker.events.read(TASKS)[1] is False
    fifo.write_text("")
    wait(handle)
    assert worker.events.read(TASKS)[1] is True
    assert worker.events.read(TASKS)[1] is False


def wait(handle: str) -> None:
    """Wait until the process of a worker has ended, and leave its end for the engine to see."""
    os.waitid(os.P_PID, int(handle.rpartition(":")[2]), os.WEXITED | os.WNOWAIT)

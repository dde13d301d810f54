"""The runner on real agents with scripted answers: A13 to A17, A20, A24 to A46."""

from __future__ import annotations

import asyncio
import errno
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.batch.test_git import files, log, make_repo, status
from tests.support.agents import Yes, make_agent
from tests.support.clock import PATIENCE_S, FakeClock, ManualClock
from tests.support.provider import Answer, Hang, ScriptedProvider, call, last_user_text, say
from tui.agent.agent import Agent
from tui.agent.limits import Limits
from tui.batch import state as state_module
from tui.batch.attempt import TaskAttempt
from tui.batch.events import (
    BatchEvent,
    FromAgent,
    RetryDelayed,
    RunFinished,
    RunStarted,
    TaskFinished,
    TaskStarted,
)
from tui.batch.git import GitIsolation
from tui.batch.isolation import Isolation
from tui.batch.report import lines_of
from tui.batch.resumption import first_record_of
from tui.batch.run_context import RunSetup
from tui.batch.run_policy import ModelPair, RunLimits
from tui.batch.runner import Runner
from tui.batch.state import RunFolder, RunState
from tui.batch.task_worktrees import TaskWorktrees
from tui.core import facts
from tui.core.config import Batch, Compaction, Config, Price
from tui.core.errors import ErrorClass, ProviderError, StorageError
from tui.core.messages import Usage
from tui.provider.base import ModelInfo


def fail(kind: ErrorClass, message: str = "it failed") -> ProviderError:
    return ProviderError(kind, message)


@dataclass
class World:
    """A run of one task file; `sessions` are its providers, one for each fresh session."""

    root: Path
    tasks: str
    sessions: list[ScriptedProvider]
    models: ModelPair = field(default_factory=lambda: ModelPair("first"))
    answers: list[str | Exception] = field(default_factory=list[str | Exception])
    stops: RunLimits = field(default_factory=RunLimits)
    batch: Batch = field(default_factory=lambda: Batch(compaction_basis="context"))
    isolation: Isolation = field(default_factory=Isolation)
    clock: FakeClock = field(default_factory=FakeClock)
    threshold: float = 0.8
    limits: Limits | None = None
    prices: dict[str, Price] = field(default_factory=dict[str, Price])
    window: int = 1000
    asked: list[str] = field(default_factory=list[str])
    events: list[BatchEvent] = field(default_factory=list[BatchEvent])
    agents: list[Agent] = field(default_factory=list[Agent])
    on_event: Callable[[BatchEvent], None] = lambda _: None
    task_file: Path = Path()

    def __post_init__(self) -> None:
        self.task_file = self.root / "TASKS.md"
        self.task_file.write_text(self.tasks)
        self.runner = self.new_runner()

    def new_runner(self) -> Runner:
        return Runner(
            RunSetup(
                task_file=self.task_file,
                target=self.root,
                isolation=self.isolation,
                worktrees=TaskWorktrees(self.root, self.task_file),
                agents=self,
                models=self.models,
                clock=self.clock,
                publish=self.publish,
                batch=self.batch,
                stops=self.stops,
                threshold=self.threshold,
                rng=random.Random(1),
            )
        )

    async def open_agent(self, model: str, folder: Path, session: Path | None) -> Agent:
        assert session is None, "these sessions are in memory"
        provider = self.sessions[len(self.agents)]
        provider.window = self.window
        agent = make_agent(
            folder,
            provider,
            approver=Yes(),
            model=self.model_info(model),
            limits=self.limits,
            config=Config(prices=self.prices, compaction=Compaction(keep_tokens=10_000)),
        )
        self.agents.append(agent)
        return agent

    async def ask(self, question: str) -> TaskAttempt:
        self.asked.append(question)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return TaskAttempt("done", answer=answer, usage=Usage(input_tokens=7), cost_usd=None)

    def model_info(self, name: str) -> ModelInfo:
        return ModelInfo(name, self.window, self.window, "config")

    def publish(self, event: BatchEvent) -> None:
        self.events.append(event)
        self.on_event(event)

    async def run(self) -> RunState:
        return await self.runner.run()

    @property
    def said(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, facts.Notice)]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def reason(self) -> str:
        last = self.events[-1]
        assert isinstance(last, RunFinished)
        return last.reason

    @property
    def prompts(self) -> list[str]:
        return [last_user_text(request) for each in self.sessions for request in each.requests]

    def marks(self) -> str:
        return self.task_file.read_text()


def world(tmp_path: Path, tasks: str, *sessions: Sequence[Answer | Hang], **more: Any) -> World:
    providers = [ScriptedProvider(*answers) for answers in sessions]
    return World(tmp_path, tasks, providers, **more)


def statuses(state: RunState) -> list[str]:
    return [task.status for task in state.tasks]


async def test_tasks_are_done_in_order_and_marked(tmp_path: Path):
    w = world(tmp_path, "## g\n- [ ] one\n- two\n- [x] three\n- [ ] four\n", [say("a")] * 3)
    state = await w.run()
    assert statuses(state) == ["completed"] * 4
    assert w.prompts == ["one", "two", "four"]
    assert w.marks() == "## g\n- [x] one\n- two\n- [x] three\n- [x] four\n"
    assert [event.task for event in w.of(TaskStarted)] == [0, 1, 3]
    assert RunFolder(tmp_path).load() == state
    assert state.tasks[0].usage["input_tokens"] == 100
    assert (tmp_path / str(state.tasks[1].log)).read_text() == "a\n"


async def test_A32_the_tasks_of_a_group_share_a_session_with_marks(tmp_path: Path):
    w = world(tmp_path, "## g\n- one\n- two\n## h\n- three\n", [say("a"), say("b")], [say("c")])
    state = await w.run()
    ids = [task.session_id for task in state.tasks]
    assert ids[0] == ids[1] != ids[2]
    assert [task.session_tokens for task in state.tasks] == [110, 220, 110]
    marks = [
        (record.data["index"], record.data["text"])
        for record in w.agents[0].session.records
        if record.type == "task"
    ]
    assert marks == [(0, "one"), (1, "two")]


async def test_A32_two_groups_of_a_name_do_not_share_a_session(tmp_path: Path):
    w = world(tmp_path, "## g\n- one\n## g\n- two\n", [say("a")], [say("b")])
    state = await w.run()
    assert state.tasks[0].session_id != state.tasks[1].session_id
    assert [task.section for task in state.tasks] == [0, 1]


async def test_A32_the_session_says_where_each_task_begins(tmp_path: Path):
    w = world(tmp_path, "## g\n- one\n- two\n", [say("a"), fail("network"), say("b")])
    await w.run()
    records = w.agents[0].session.records
    found = [next(r for r in records if r.id == first_record_of(records, n)) for n in (0, 1)]
    assert found[0].type == "user"
    assert found[0].data["text"] == "one"
    assert records.index(found[1]) > records.index(found[0])
    assert first_record_of(records, 2) == ""


async def test_a_crash_and_what_it_left_are_told_after_the_banner(tmp_path: Path):
    w = world(tmp_path, "- one\n", [Hang("half")])
    running = asyncio.create_task(w.run())
    await w.sessions[0].waiting.wait()
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    w.sessions.append(ScriptedProvider(say("done")))
    w.runner, w.events = w.new_runner(), []
    await w.run()
    assert [type(event) for event in w.events[:2]] == [RunStarted, facts.Notice]


async def test_what_a_model_says_cannot_reach_the_terminal_raw(tmp_path: Path):
    answer = '{"retry": false, "reason": "no\\u001b[2J\\nway"}'
    w = world(tmp_path, "- one\n", [fail("refusal")], answers=[answer])
    await w.run()
    lines = [line for event in w.events for line in lines_of(event)]
    assert "  no retry: no [2J way" in lines


async def test_K33_a_task_never_sets_a_directive(tmp_path: Path):
    w = world(tmp_path, "- /elevated delete it\n", [say("no")])
    await w.run()
    assert w.prompts == ["/elevated delete it"]
    assert not w.agents[0].directives.elevated


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "network", "server", "stream_broken"])
async def test_A12_A16_passing_trouble_is_waited_out_in_the_same_session(
    tmp_path: Path, kind: ErrorClass
):
    w = world(tmp_path, "- one\n", [fail(kind), fail(kind), say("done")])
    state = await w.run()
    assert statuses(state) == ["completed"]
    assert state.tasks[0].attempts == 3
    assert len(w.agents) == 1
    assert not w.asked
    assert w.prompts == ["one"] * 3  # nothing is added to the record
    waits = [event.seconds for event in w.of(RetryDelayed)]
    assert waits == w.clock.slept
    doubled = kind in {"rate_limit", "overloaded"}
    assert 2 + 2 * doubled <= waits[0] <= 5 + 2 * doubled
    assert f"  waiting {waits[0]}s before retry..." in w.said


async def test_an_answer_that_cannot_be_read_is_asked_for_by_one_attempt_only(tmp_path: Path):
    broken = ProviderError("stream_broken", "no JSON", retryable=True, unreadable=True)
    w = world(tmp_path, "- one\n- two\n", [broken], [say("done")])
    state = await w.run()
    assert statuses(state) == ["failed", "completed"]
    assert [task.attempts for task in state.tasks] == [1, 1]
    assert state.tasks[0].error_class == "stream_broken"
    assert not w.clock.slept


async def test_A13_an_overflow_begins_a_fresh_session_once(tmp_path: Path):
    w = world(
        tmp_path,
        "- one\n",
        [fail("context_overflow"), say("did half of it")],
        [fail("context_overflow")],
    )
    state = await w.run()
    assert statuses(state) == ["failed"]
    assert state.tasks[0].error_class == "context_overflow"
    assert len(w.agents) == 2
    began = w.prompts[2]
    assert began.startswith("CONTEXT FROM PREVIOUS SESSION:\ndid half of it\n\nNOTE: ")
    assert began.endswith("\n\nNEXT TASK: one")


async def test_A14_a_refused_key_stops_the_run_at_once(tmp_path: Path):
    w = world(tmp_path, "- [ ] one\n- [ ] two\n", [fail("auth", "no such key")])
    state = await w.run()
    assert statuses(state) == ["failed", "pending"]
    assert state.tasks[0].attempts == 1
    assert w.of(TaskFinished)[0].message == "no such key"
    assert w.reason == "auth: every other task would fail too"
    assert w.marks() == "- [!] one\n- [ ] two\n"


async def test_A15_a_timeout_is_retried_once(tmp_path: Path):
    w = world(tmp_path, "- one\n", [fail("timeout"), fail("timeout"), say("never")])
    state = await w.run()
    assert statuses(state) == ["failed"]
    assert state.tasks[0].attempts == 2


async def test_A17_only_what_is_unknown_is_analysed(tmp_path: Path):
    answer = 'Sure: {"retry": true, "reason": "bad path", "hint": "use src/"}'
    w = world(
        tmp_path, "- one\n", [fail("invalid_request", "odd")], [say("done")], answers=[answer]
    )
    assert statuses(await w.run()) == ["completed"]
    assert len(w.asked) == 1
    assert "Task: one\n\nError: odd" in w.asked[0]
    assert w.prompts[1] == (
        "A PREVIOUS ATTEMPT FAILED: bad path\nITS CHANGES WERE UNDONE. HINT: use src/\n\none"
    )


@pytest.mark.parametrize(
    "answer",
    ["no idea", '{"retry": "yes"}', '{"retry": false}', "{}", "[1]", fail("server"), "{" * 30_000],
    ids=["prose", "no bool", "no", "empty", "list", "error", "deep"],
)
async def test_A20_a_failed_analysis_means_no_retry(tmp_path: Path, answer: str | Exception):
    w = world(tmp_path, "- one\n- two\n", [fail("unknown")], [say("done")], answers=[answer])
    assert statuses(await w.run()) == ["failed", "completed"]


async def test_a_task_has_at_most_five_attempts(tmp_path: Path):
    w = world(tmp_path, "- one\n", [fail("network")] * 9)
    state = await w.run()
    assert state.tasks[0].attempts == 5
    assert len(w.of(RetryDelayed)) == 4


async def test_A24_waiting_ends_when_the_run_is_stopped(tmp_path: Path):
    clock = ManualClock()
    w = world(tmp_path, "- one\n- two\n", [fail("network"), say("never")], clock=clock)
    w.on_event = lambda event: w.runner.stop() if isinstance(event, RetryDelayed) else None
    state = await asyncio.wait_for(w.run(), PATIENCE_S)
    assert statuses(state) == ["interrupted", "pending"]
    assert clock.elapsed == 0


async def test_A39_a_stop_while_an_attempt_begins_is_not_lost(tmp_path: Path):
    w = world(tmp_path, "- one\n- two\n", [Hang("never asked for")])

    def stop_soon(event: object) -> None:  # its log is being opened then; no turn runs yet
        if isinstance(event, TaskStarted):
            asyncio.get_running_loop().call_soon(w.runner.stop)

    w.on_event = stop_soon
    state = await asyncio.wait_for(w.run(), PATIENCE_S)
    assert statuses(state) == ["interrupted", "pending"]
    assert w.prompts == []


async def test_A25_A26_A27_A28_the_models_are_swapped(tmp_path: Path):
    answers = [fail("rate_limit"), fail("timeout"), fail("network"), say("done"), say("two")]
    w = world(tmp_path, "- one\n- two\n", answers, models=ModelPair("first", "second"))
    state = await w.run()
    assert statuses(state) == ["completed", "completed"]
    asked = [request.model for request in w.sessions[0].requests]
    assert asked == ["first", "second", "first", "first", "first"]
    assert [line for line in w.said if "failover" in line] == [
        "  failover: switching from first to second",
        "  failover: switching from second to first",
    ]


async def test_A29_the_original_model_begins_every_task(tmp_path: Path):
    answers = [fail("rate_limit"), say("done"), say("two")]
    w = world(tmp_path, "- one\n- two\n", answers, models=ModelPair("first", "second"))
    await w.run()
    assert [request.model for request in w.sessions[0].requests] == ["first", "second", "first"]


async def test_A32_A33_A34_A35_A36_over_80_percent_the_next_task_begins_with_a_summary(
    tmp_path: Path,
):
    # every request costs 110 tokens; the window is 1,000
    batch = Batch(compaction_basis="cumulative")
    first: list[Answer | Hang] = [say(f"{n}") for n in range(8)]
    w = world(
        tmp_path,
        "## g\n" + "".join(f"- task {n}\n" for n in range(9)),
        [*first, say("all was well")],
        [say("last")],
        batch=batch,
    )
    assert set(statuses(await w.run())) == {"completed"}
    assert "  compaction: context at 88%, starting fresh session with summary" in w.said
    assert w.prompts[8].startswith("Summarize the work completed so far — files created/modified")
    assert w.prompts[9] == ("CONTEXT FROM PREVIOUS SESSION:\nall was well\n\nNEXT TASK: task 8")
    assert len(w.agents) == 2


@pytest.mark.parametrize(("window", "compacts"), [(137, True), (138, False)])
async def test_A33_exactly_80_percent_does_not_compact(tmp_path: Path, window: int, compacts: bool):
    """A request costs 110 tokens: 80.3 % of 137, 79.7 % of 138; and 80.0 % of 137.5."""
    w = world(tmp_path, "## g\n- one\n- two\n", [say("a"), say("sum"), say("b")], [say("b")])
    w.window = window
    await w.run()
    assert (len(w.agents) == 2) is compacts


async def test_A33_80_0_percent_is_not_over(tmp_path: Path):
    w = world(tmp_path, "## g\n- one\n- two\n", [say("a"), say("b")], threshold=0.11)
    await w.run()  # 110 of 1,000 tokens
    assert len(w.agents) == 1


async def test_A37_A38_a_failed_summary_still_begins_afresh(tmp_path: Path):
    batch = Batch(compaction_basis="context")
    w = world(
        tmp_path, "## g\n- one\n- two\n", [say("a"), fail("network")], [say("b")], batch=batch
    )
    w.window = 120
    assert statuses(await w.run()) == ["completed", "completed"]
    assert w.prompts[2] == (
        "CONTEXT FROM PREVIOUS SESSION:\n(compaction summary unavailable)\n\nNEXT TASK: two"
    )


async def test_A37_a_summary_is_not_carried_into_another_group(tmp_path: Path):
    w = world(tmp_path, "## g\n- one\n## h\n- two\n", [say("a")], [say("b")])
    w.window = 120
    await w.run()
    assert w.prompts == ["one", "two"]


async def test_A39_A40_A41_A44_an_interrupted_task_runs_again_with_what_was_there(tmp_path: Path):
    w = world(tmp_path, "- [ ] one\n- [ ] two\n", [Hang("half an answer")])
    running = asyncio.create_task(w.run())
    await w.sessions[0].waiting.wait()
    await asyncio.sleep(0)
    w.runner.stop()
    w.runner.stop()  # A44: again it changes nothing
    state = await running
    assert statuses(state) == ["interrupted", "pending"]
    assert state.tasks[0].partial_context == "half an answer"
    assert state.tasks[0].interrupted_at == "2026-11-21T09:00:00.000Z"
    assert w.marks() == "- [~] one\n- [ ] two\n"
    w.sessions.append(ScriptedProvider(say("done"), say("done too")))
    w.runner = w.new_runner()
    state = await w.run()
    assert statuses(state) == ["completed", "completed"]
    assert state.tasks[0].attempts == 1
    assert w.sessions[1].requests
    assert last_user_text(w.sessions[1].requests[0]) == (
        "CONTEXT FROM INTERRUPTED ATTEMPT: half an answer\n\none"
    )


async def test_A42_the_log_has_what_tools_printed(tmp_path: Path):
    turn: list[Answer | Hang] = [[call("run_command", command="echo out-of-tool")], say("fine")]
    w = world(tmp_path, "- one\n", turn)
    state = await w.run()
    logged = (tmp_path / str(state.tasks[0].log)).read_text()
    assert "» run_command echo out-of-tool" in logged
    assert "out-of-tool\n" in logged.split("» run_command")[1]
    assert logged.endswith("fine\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
async def test_A42_a_disk_that_takes_no_log_ends_no_task(tmp_path: Path):
    full = tmp_path / ".holdfast" / "run" / "logs" / "001-1.log"
    full.parent.mkdir(parents=True)
    full.symlink_to("/dev/full")
    state = await world(tmp_path, "- one\n", [say("fine")]).run()
    assert statuses(state) == ["completed"]


async def test_A43_a_task_found_running_is_taken_up_again(tmp_path: Path):
    w = world(tmp_path, "- one\n", [say("done")])
    await w.run()
    folder = RunFolder(tmp_path)
    state = folder.load()
    assert state
    task = state.tasks[0]
    folder.save(
        state.with_task(
            type(task)(index=0, group=task.group, task="one", status="running", log=task.log)
        )
    )
    w.sessions.append(ScriptedProvider(say("again")))
    w.runner = w.new_runner()
    assert statuses(await w.run()) == ["completed"]
    assert w.said[1] == "Task 1 was running when the last run died."
    assert last_user_text(w.sessions[1].requests[0]).startswith(
        "CONTEXT FROM INTERRUPTED ATTEMPT: done"
    )


async def test_with_git_every_task_is_a_commit_and_a_failed_one_leaves_no_trace(tmp_path: Path):
    repo = make_repo(tmp_path / "repo")
    isolation = GitIsolation.find(repo, repo / "TASKS.md")
    assert isolation

    def writes(name: str) -> list[dict[str, Any]]:
        return [call("write_file", path=name, content=name, id_=f"toolu_{name}")]

    w = World(
        repo,
        "## g\n- [ ] make one\n- [ ] make two\n- [ ] make three\n",
        [
            ScriptedProvider(writes("one"), say("ok"), writes("two"), fail("invalid_request")),
            ScriptedProvider(writes("three"), say("ok")),
        ],
        answers=["no"],
        isolation=isolation,
    )
    state = await w.run()
    assert statuses(state) == ["completed", "failed", "completed"]
    assert log(repo) == ["make three", "make one", "first"]
    assert {"one", "three"} <= files(repo).keys()
    assert "two" not in files(repo)
    assert state.tasks[1].change
    assert state.tasks[1].change.startswith("refs/holdfast/20261121")
    assert status(repo).splitlines()[0] == " M TASKS.md"
    assert w.marks() == "## g\n- [x] make one\n- [!] make two\n- [x] make three\n"


@pytest.mark.parametrize(
    ("stops", "expected", "reason"),
    [
        (
            RunLimits(failures_in_a_row=2),
            ["failed", "failed", "pending"],
            "2 tasks failed in a row",
        ),
        (RunLimits(seconds=0), ["pending"] * 3, "reached the limit of 0 seconds"),
        (RunLimits(cost_usd=0.0), ["pending"] * 3, "reached the limit of $0.00"),
    ],
)
async def test_stop_rules(tmp_path: Path, stops: RunLimits, expected: list[str], reason: str):
    sessions: list[list[Answer | Hang]] = [[fail("refusal")] for _ in range(3)]
    w = world(tmp_path, "- a\n- b\n- c\n", *sessions, answers=["no"] * 3, stops=stops)
    assert statuses(await w.run()) == expected
    assert w.reason == reason


async def test_pause_skip_redo_and_edit(tmp_path: Path):
    w = world(tmp_path, "- a\n- b\n- c\n", [say("a"), say("d")], answers=[])

    def on(event: BatchEvent) -> None:
        if isinstance(event, TaskStarted) and event.task == 0:
            w.runner.skip(1)
            edits.append(asyncio.ensure_future(w.runner.edit(b"- a\n- b\n- d\n- e\n")))
        if isinstance(event, TaskStarted) and event.task == 2:
            w.runner.pause()

    edits: list[asyncio.Future[None]] = []
    w.on_event = on
    state = await w.run()
    assert [(task.task, task.status) for task in state.tasks] == [
        ("a", "completed"),
        ("b", "pending"),
        ("d", "completed"),
        ("e", "pending"),
    ]
    assert w.reason == "paused"
    assert w.marks() == "- a\n- b\n- d\n- e\n"
    await asyncio.gather(*edits)


async def test_events_of_agents_carry_the_index_of_their_task(tmp_path: Path):
    w = world(tmp_path, "- a\n- b\n", [say("x"), say("y")])
    await w.run()
    texts = [
        (event.task, event.event.text)
        for event in w.of(FromAgent)
        if event.event.type == "text_delta"
    ]
    assert texts == [(0, "x"), (1, "y")]


async def test_A19_the_text_of_an_error_without_a_class_decides(tmp_path: Path):
    w = world(tmp_path, "- one\n", [fail("unknown", "HTTP 429 Too Many Requests"), say("done")])
    assert statuses(await w.run()) == ["completed"]
    assert not w.asked


async def test_A18_A19_what_the_model_says_is_never_matched(tmp_path: Path):
    w = world(
        tmp_path, "- one\n", [say("Error 401: rate limit, timed out")], [say("never")], answers=[]
    )
    assert statuses(await w.run()) == ["completed"]


async def test_A17_a_run_stopped_while_it_asks_is_interrupted(tmp_path: Path):
    w = world(tmp_path, "- one\n- two\n", [fail("refusal")], answers=[])
    asked = asyncio.Event()

    async def ask(question: str) -> TaskAttempt:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    w.ask = ask
    w.runner = w.new_runner()
    running = asyncio.create_task(w.run())
    await asked.wait()
    w.runner.stop()
    assert statuses(await asyncio.wait_for(running, PATIENCE_S)) == ["interrupted", "pending"]


async def test_the_question_about_a_failure_is_counted(tmp_path: Path):
    w = world(tmp_path, "- one\n", [fail("refusal")], answers=['{"retry": false, "reason": "no"}'])
    state = await w.run()
    assert state.tasks[0].usage["input_tokens"] == 7
    assert state.tasks[0].error_class == "refusal"
    assert "  no retry: no" in w.said


async def test_a_limit_of_cost_interrupts_the_task_and_ends_the_run(tmp_path: Path):
    w = world(
        tmp_path,
        "- one\n- two\n",
        [[call("run_command", command="echo x")], say("never")],
        stops=RunLimits(cost_usd=1.0),
        limits=Limits(max_cost=1.0),
        prices={"first": Price(input=10_000.0)},  # a request costs a dollar
    )
    state = await w.run()
    assert statuses(state) == ["interrupted", "pending"]
    assert w.reason == "reached the limit of $1.00"


async def test_another_limit_is_a_failure_of_the_task(tmp_path: Path):
    calls: list[Answer | Hang] = [[call("run_command", command="echo x")]]
    w = world(tmp_path, "- one\n", calls, limits=Limits(max_turns=1), answers=["no"])
    state = await w.run()
    assert statuses(state) == ["failed"]
    assert "limit of 1 request." in (state.tasks[0].message or "")


async def test_A2_A3_every_transition_is_one_saved_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    saved: list[list[str]] = []
    save = RunFolder.save

    def counted(self: RunFolder, state: RunState) -> None:
        save(self, state)
        saved.append(statuses(state))

    monkeypatch.setattr(RunFolder, "save", counted)
    w = world(tmp_path, "- one\n- two\n", [say("a"), say("b")])
    await w.run()
    assert saved == [
        ["pending", "pending"],
        ["running", "pending"],
        ["completed", "pending"],
        ["completed", "running"],
        ["completed", "completed"],
    ]


@pytest.mark.parametrize("which", [1, 2, 3])
async def test_a_full_disk_ends_the_run_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int
):
    calls = 0
    real = state_module.replace_file

    def full(path: Path, data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == which:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(path, data)

    monkeypatch.setattr(state_module, "replace_file", full)
    w = world(tmp_path, "- one\n- two\n", [say("a"), say("b")], [say("a"), say("b")])
    with pytest.raises(StorageError, match="No space left"):
        await w.run()
    w.runner = w.new_runner()
    w.sessions = w.sessions[len(w.agents) :]
    w.agents = []
    assert statuses(await w.run()) == ["completed", "completed"]


async def test_A45_without_any_feature_a_task_is_just_run(tmp_path: Path):
    w = world(tmp_path, "- one\n", [fail("network"), fail("network"), say("done")])
    state = await w.run()
    assert statuses(state) == ["completed"]
    assert [line for line in w.said if "failover" in line or "compaction" in line] == []
    assert w.prompts[0] == "one"


@pytest.mark.slow
async def test_A1_A3_a_thousand_tasks_are_run_in_seconds(tmp_path: Path):
    count = 1000
    text = "".join(f"## part {n // 50}\n" * (n % 50 == 0) + f"- [ ] t{n}\n" for n in range(count))
    w = world(tmp_path, text, *[[say("ok")] * 50 for _ in range(count // 50)])
    w.window = 1_000_000
    began = time.process_time()
    state = await w.run()
    assert set(statuses(state)) == {"completed"}
    assert w.marks().count("[x]") == count
    assert time.process_time() - began < 60


async def test_A30_no_model_is_swapped_after_the_last_attempt(tmp_path: Path):
    w = world(
        tmp_path, "- one\n", [fail("rate_limit")] * 2, models=ModelPair("a", "b"),
        batch=Batch(attempts=2),
    )  # fmt: skip
    await w.run()
    assert len([line for line in w.said if "failover" in line]) == 1


async def test_a_failed_task_is_taken_up_again_when_asked_for(tmp_path: Path):
    w = world(tmp_path, "- [ ] one\n", [fail("refusal")], [say("done")], answers=["no"])
    assert statuses(await w.run()) == ["failed"]
    w.runner = w.new_runner()
    assert statuses(await w.run()) == ["failed"]
    w.runner = w.new_runner()
    w.runner.take_up_failed()
    assert statuses(await w.run()) == ["completed"]
    assert w.marks() == "- [x] one\n"


def test_A31_the_count_of_a_run_is_that_of_its_last_request():
    made = TaskAttempt()
    for usage in (Usage(5, 5, 5, 5), Usage(100, 10, 1000, 10_000)):
        made.see(facts.AssistantMessage("x", "end_turn", usage))
    assert made.context == 11_110

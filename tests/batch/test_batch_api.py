"""`run --batch-api` over real HTTP: the questions, the waiting, the results, what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.batch.test_git import log, make_repo
from tests.session.test_lock import another
from tests.support.clock import FakeClock
from tests.support.server import LoopbackServer
from tests.support.server_batches import Batch
from tests.support.server_script import Json
from tui.agent.limits import session_cost
from tui.app.options.parser import parse
from tui.batch import batch_api, taskfile
from tui.batch.batch_api import BatchApiRun
from tui.batch.events import BatchEvent, FromAgent, RunFinished, TaskFinished, TaskStarted
from tui.batch.plan import plan
from tui.batch.runner import Runner
from tui.batch.state import RunFolder, RunState, TaskBatch, begin
from tui.core.clock import SystemClock
from tui.core.errors import LimitReachedError, UsageError
from tui.core.facts import Notice
from tui.core.messages import text_of
from tui.core.paths import folders
from tui.provider.anthropic.batches import AnthropicBatches
from tui.provider.base import Request
from tui.session import catalog
from tui.session.reader import LoadedSession, read

MODEL = "claude-sonnet-5-5"
TASKS = "## sky\n- [ ] why is it blue?\n- [ ] how high is it?\n## trees\n- [ ] name one\n"
ANSWER = {"text": "Because of the air.", "usage": {"input_tokens": 1000, "output_tokens": 100}}
BAD = {"status": 400, "type": "invalid_request_error", "message": "no such thing"}
OUTCOMES = [ANSWER, {"result": "expired", "faults": [BAD]}]
"""What becomes of the three: an answer, an error of the request, too late."""


@dataclass
class World:
    """A folder with a task file, and a server. Time is that of `clock`."""

    work: Path
    server: LoopbackServer
    clock: FakeClock = field(default_factory=FakeClock)
    events: list[BatchEvent] = field(default_factory=list[BatchEvent])

    def new_run(self, *words: str) -> BatchApiRun:
        words = ("run", "TASKS.md", "--batch-api", *words)
        options = parse([*words, "-C", str(self.work)])
        batches = AnthropicBatches(api_key="k", clock=SystemClock(), base_url=self.server.url)
        self.events = []
        cancel, show = options.batch.cancel, self.events.append
        run = BatchApiRun(plan(options), show, clock=self.clock, cancel=cancel, server=batches)
        if options.batch.retry_failed:
            run.take_up_failed()
        return run

    async def run(self, *words: str) -> RunState:
        run = self.new_run(*words)
        try:
            return await run.run()
        finally:
            await run.close()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def said(self) -> list[str]:
        return [event.text for event in self.of(Notice)]

    @property
    def batches(self) -> list[Batch]:
        return self.server.api.batches.made

    @property
    def bodies(self) -> list[Json]:
        """The batches that were posted, taken or not."""
        return [seen.body for seen in self.server.requests if seen.method == "POST"]

    @property
    def gets(self) -> list[str]:
        """What else was asked about batches."""
        start = "/v1/messages/batches"
        seen = [one for one in self.server.requests if one.method == "GET"]
        return [one.path.removeprefix(start) for one in seen if one.path.startswith(start)]

    def session(self, state: RunState, index: int) -> LoadedSession:
        return read(catalog.resolve(state.tasks[index].session_id or "", folders()))

    @property
    def file(self) -> str:
        return (self.work / "TASKS.md").read_text()

    @property
    def saved(self) -> RunState:
        state = RunFolder(self.work).load()
        assert state is not None
        return state


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "TASKS.md").write_text(TASKS)
    monkeypatch.chdir(work)
    return work


@asynccontextmanager
async def world(
    work: Path, monkeypatch: pytest.MonkeyPatch, *turns: Json, **script: Any
) -> AsyncGenerator[World]:
    async with LoopbackServer({"turns": list(turns), "catalogue": True, **script}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        w = World(work, server)
        server.api.batches.now = w.clock.now
        yield w


def statuses(state: RunState) -> list[str]:
    return [task.status for task in state.tasks]


async def test_one_is_answered_one_refused_one_expired(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *OUTCOMES) as w:
        w.server.api.batches.polls = 3
        state = await w.run()
        assert statuses(state) == ["completed", "failed", "interrupted"]
        assert w.file == TASKS.replace("[ ] why", "[x] why").replace("[ ] how", "[!] how").replace(
            "[ ] name", "[~] name"
        )
        (body,) = w.bodies
        assert [one["params"]["messages"][0]["content"][0]["text"] for one in body["requests"]] == [
            "why is it blue?",
            "how high is it?",
            "name one",
        ]
        for one in body["requests"]:
            assert one["params"]["model"] == MODEL
            assert not {"tools", "stream"} & one["params"].keys()
            system = text_of(one["params"]["system"])
            assert "You have no tools" in system
            assert "run_command" not in system
        assert w.clock.slept == [5.0, 7.5]
        assert "batch of 3: 0 done, 3 waiting · up to 24 h" in w.said
        assert "batch of 3: 1 done, 2 failed" in w.said
        first, second, third = state.tasks
        assert first.usage["output_tokens"] == 100
        assert (work / (first.log or "")).read_text() == "Because of the air."
        assert second.error_class == "invalid_request"
        assert "no such thing" in (second.message or "")
        assert third.error_class == "timeout"
        assert round(sum(task.seconds for task in state.tasks), 2) == 12.5
        assert "24 hours" in (third.message or "")
        assert state.batch is None
        assert w.saved == state
        assert [event.task for event in w.of(TaskStarted)] == [0, 1, 2]
        assert [event.task for event in w.of(TaskFinished)] == [2, 1, 0]  # as the results came
        (end,) = w.of(RunFinished)
        assert end.counts == {"completed": 1, "failed": 1, "interrupted": 1}
        kinds = [e.event.type for e in w.of(FromAgent) if e.task == 0]
        assert kinds == ["assistant_message", "cost", "turn_finished"]


async def test_what_expired_is_asked_again_and_only_that(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *OUTCOMES, {"text": "An oak."}, {"text": "Far."}) as w:
        before = await w.run()
        state = await w.run()
        assert statuses(state) == ["completed", "failed", "completed"]
        assert len(w.bodies[1]["requests"]) == 1
        assert state.tasks[2].session_id != before.tasks[2].session_id
        assert statuses(await w.run("--retry-failed")) == ["completed"] * 3
        assert len(w.bodies) == 3
        await w.run()
        assert len(w.bodies) == 3  # nothing is left


async def test_the_price_is_halved_in_the_report_and_in_the_session(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, ANSWER, ANSWER, ANSWER) as w:
        state = await w.run()
        half = (1000 * 2 + 100 * 10) / 1_000_000 / 2
        assert all(isclose(task.cost_usd or 0, half) for task in state.tasks)
        cost = session_cost(w.session(state, 0).records, {}).session
        assert isclose(cost.usd or 0, half)
        (end,) = w.of(RunFinished)
        assert isclose(end.cost_usd, 3 * half)


async def test_the_session_says_what_was_sent_and_answered(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "config.toml").write_text("")
    config = folders().config_file
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('api_features = "all"\neffort = "low"\n')
    turn = {"thinking": "Light scatters.", **ANSWER}
    async with world(work, monkeypatch, turn, ANSWER, ANSWER) as w:
        state = await w.run()
        records = w.session(state, 0).records
        kinds = [one.type for one in records]
        assert kinds == ["task", "user", "frame", "request", "assistant"]
        answer = records[-1].data
        assert answer["batch"] == "msgbatch_0001"
        assert answer["request_id"].startswith("req_")
        assert [block["type"] for block in answer["content"]] == ["thinking", "text"]
        assert answer["bound_to"] == records[3].data["sha256"]
        assert w.bodies[0]["requests"][0]["params"]["output_config"] == {"effort": "low"}
        assert records[3].data["effort"] == "low"


async def test_a_custom_id_is_of_the_task_whatever_its_place(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *[ANSWER] * 7) as w:
        (work / "TASKS.md").write_text("## g\n- one\n- two\n- two\n")
        await w.run()
        RunFolder(work).reset()
        (work / "TASKS.md").write_text("## g\n- two\n- one\n- three\n- two\n")
        await w.run()
        first, second = (
            {one["custom_id"]: text_of(one["params"]["messages"][0]["content"]) for one in b}
            for b in (body["requests"] for body in w.bodies)
        )
        assert not first.keys() & second.keys()  # a batch is told from another by them

        def stable(ids: dict[str, str]) -> set[tuple[str, str]]:
            return {(id_.partition("-")[0], text) for id_, text in ids.items()}

        assert stable(first) < stable(second)
        assert len(stable(first)) == 3


async def test_results_of_nobody_and_missing_ones(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, ANSWER, ANSWER, ANSWER) as w:
        w.server.api.batches.strangers = ("somebody-else",)
        w.server.api.batches.lost = 1
        state = await w.run()
        assert any("'somebody-else'" in line for line in w.said)
        assert sorted(statuses(state)) == ["completed", "completed", "interrupted"]
        assert state.batch is None


async def test_results_that_are_cut_off_are_read_again_and_taken_once(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = [{}, {}, {"cut_after": 2}]  # of the POST, the description, the results
    async with world(work, monkeypatch, ANSWER, ANSWER, ANSWER, batch_faults=faults) as w:
        state = await w.run()
        assert statuses(state) == ["completed"] * 3
        assert w.gets.count("/msgbatch_0001/results") == 2
        assert [event.task for event in w.of(TaskFinished)] == [2, 1, 0]
        assert [r.type for r in w.session(state, 2).records].count("assistant") == 1


async def test_stopping_leaves_the_batch_and_the_next_run_takes_its_results(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, ANSWER, ANSWER, ANSWER) as w:
        w.server.api.batches.polls = 100
        run = w.new_run()
        w.clock.slept = _Stop(run, after=3)  # pyright: ignore[reportAttributeAccessIssue]
        state = await run.run()
        await run.close()
        assert run.reason == "interrupted"
        assert statuses(state) == ["pending"] * 3
        assert state.batch is not None
        assert "--batch-api" in w.said[-1]
        assert "msgbatch_0001 continues" in w.said[-1]

        options = parse(["run", "TASKS.md", "-C", str(work)])
        with pytest.raises(UsageError, match="isn't done yet"):
            await _ordinary(w, options)

        w.clock = FakeClock()
        w.batches[0].polls = 1
        state = await w.run()
        assert statuses(state) == ["completed"] * 3
        assert len(w.bodies) == 1


class _Stop(list[float]):
    """Stops a run when it has slept so often."""

    def __init__(self, run: BatchApiRun, after: int) -> None:
        super().__init__()
        self._run, self._after = run, after

    def append(self, seconds: float, /) -> None:
        super().append(seconds)
        if len(self) == self._after:
            self._run.stop()


async def _ordinary(w: World, options: Any) -> None:
    from tui.batch.composition import RunComposition  # noqa: PLC0415
    from tui.permissions.gate import RulesOnly  # noqa: PLC0415

    shop = RunComposition(plan(options), w.events.append, approver=RulesOnly(), clock=w.clock)
    try:
        assert isinstance(shop.runner, Runner)
        await shop.runner.run()
    finally:
        await shop.close()


async def test_a_batch_is_canceled_and_what_it_has_is_taken(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *[ANSWER] * 5) as w:
        with pytest.raises(UsageError, match="no message batch to cancel"):
            await w.run("--cancel")
        w.server.api.batches.polls = 100
        run = w.new_run()
        w.clock.slept = _Stop(run, after=1)  # pyright: ignore[reportAttributeAccessIssue]
        await run.run()
        await run.close()
        w.clock = FakeClock()
        state = await w.run("--cancel")
        assert statuses(state) == ["completed", "interrupted", "interrupted"]
        assert state.batch is None
        assert "canceled" in (state.tasks[1].message or "")
        assert [seen.path for seen in w.server.requests if seen.method == "POST"] == [
            "/v1/messages/batches",
            "/v1/messages/batches/msgbatch_0001/cancel",
        ]


async def test_a_batch_that_ended_before_it_was_canceled_is_taken_whole(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *[ANSWER] * 5) as w:
        w.server.api.batches.polls = 100
        run = w.new_run()
        w.clock.slept = _Stop(run, after=1)  # pyright: ignore[reportAttributeAccessIssue]
        await run.run()
        await run.close()
        w.clock, w.batches[0].polls = FakeClock(), 0
        assert statuses(await w.run("--cancel")) == ["completed"] * 3


async def test_stopping_while_the_batch_is_being_sent(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *[ANSWER] * 3) as w:
        run, real = w.new_run(), AnthropicBatches.create

        async def arrived(self: AnthropicBatches, requests: dict[str, Request]) -> None:
            await real(self, requests)
            run.stop()
            await asyncio.Event().wait()  # the answer never comes

        with monkeypatch.context() as patch:
            patch.setattr(AnthropicBatches, "create", arrived)
            state = await run.run()
        await run.close()
        assert run.reason == "interrupted"
        assert state.batch is not None
        assert not state.batch.id
        assert "may have been sent" in w.said[-1]
        assert statuses(await w.run()) == ["completed"] * 3
        assert len(w.bodies) == 1


async def test_the_waits_grow_to_a_minute(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(work, monkeypatch, ANSWER, ANSWER, ANSWER) as w:
        w.server.api.batches.polls = 10
        await w.run()
        assert w.clock.slept[:3] == [5.0, 7.5, 11.25]
        assert max(w.clock.slept) == 60.0
        assert sum("waiting" in line for line in w.said) == 1  # only what changes is said


@pytest.mark.parametrize("fault", [{"status": 503}, {"lost": True}])
async def test_a_post_that_fails_is_looked_for_before_it_is_sent_again(
    work: Path, monkeypatch: pytest.MonkeyPatch, fault: Json
) -> None:
    async with world(
        work, monkeypatch, ANSWER, ANSWER, ANSWER, {"text": "x"}, batch_faults=[fault]
    ) as w:
        state = await w.run()
        assert statuses(state) == ["completed"] * 3
        assert len(w.batches) == 1
        assert len(w.bodies) == (1 if "lost" in fault else 2)
        assert w.gets[0] == ""  # the list of batches
        assert any("Retry 1 of 3 in" in line for line in w.said)


async def test_a_noted_batch_is_found_among_others_while_it_is_in_progress(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = [ANSWER] * 12
    async with world(work, monkeypatch, *turns) as w:
        w.server.api.batches.polls = 4
        run = w.new_run()
        w.clock.slept = _Stop(run, after=1)  # pyright: ignore[reportAttributeAccessIssue]
        state = await run.run()
        await run.close()
        ours = state.batch
        assert ours is not None
        forget = TaskBatch(noted_at=ours.noted_at, sessions=ours.sessions)
        unsaid = RunState(
            task_file=state.task_file,
            sha256=state.sha256,
            started_at=state.started_at,
            tasks=state.tasks,
            batch=forget,
        )
        RunFolder(work).save(unsaid)
        w.clock = FakeClock()
        for size in (2, 3):  # made by others meanwhile
            items = [
                one | {"custom_id": f"other-{n}"}
                for n, one in enumerate(w.bodies[0]["requests"][:size])
            ]
            raw = json.dumps({"requests": items}).encode()
            w.server.api.batches.create(raw, {})
        state = await w.run()
        assert statuses(state) == ["completed"] * 3
        assert [len(one.results) for one in w.batches] == [3, 2, 3]
        assert len(w.bodies) == 1
        assert "msgbatch_0003 may be it: waiting for its results to find out." in w.said
        assert not any(place.startswith("/msgbatch_0002") for place in w.gets)


async def test_a_noted_batch_that_was_never_sent_is_sent_as_it_was_noted(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(
        work, monkeypatch, ANSWER, ANSWER, ANSWER, batch_faults=[BAD | {"status": 503}] * 9
    ) as w:
        state = await w.run()
        noted = state.batch
        assert noted is not None
        assert not noted.id
        assert "may have been sent" in w.said[-1]
        w.server.api.script.batch_faults.clear()
        (work / "AGENTS.md").write_text("Answer in Latin.")
        state = await w.run()
        assert statuses(state) == ["completed"] * 3
        assert w.bodies[-1] == w.bodies[0]
        assert [one["custom_id"] for one in w.bodies[0]["requests"]] == [*noted.sessions]


async def test_a_server_without_batches(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(work, monkeypatch, *[ANSWER] * 3, batches=False) as w:
        state = await w.run()
        assert statuses(state) == ["pending"] * 3
        assert state.batch is None
        assert any("doesn't offer message batches (404)" in line for line in w.said)
        w.server.api.script.batches = True
        before = [task.session_id for task in state.tasks]
        state = await w.run()
        assert statuses(state) == ["completed"] * 3
        assert [task.session_id for task in state.tasks] == before  # the sessions are used


async def test_a_model_that_cannot_be_asked_in_batches(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"max_input_tokens": 200_000, "capabilities": {"batch": {"supported": False}}}
    async with world(work, monkeypatch, ANSWER, catalogue=False, models={MODEL: known}) as w:
        with pytest.raises(UsageError, match="doesn't support message batches"):
            await w.run()
        assert not w.bodies
        assert not w.saved.batch


async def test_the_limit_of_cost_is_held_against_an_estimate(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, ANSWER, ANSWER, ANSWER) as w:
        with pytest.raises(LimitReachedError, match=r"more than the limit of \$0\.01"):
            await w.run("--max-cost", "0.01")
        assert not w.bodies
        state = await w.run("--max-cost", "1")
        assert statuses(state) == ["completed"] * 3


async def test_a_task_that_names_a_file_is_refused(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "TASKS.md").write_text("- explain it\n- explain @TASKS.md, not @nobody\n")
    async with world(work, monkeypatch, ANSWER) as w:
        with pytest.raises(UsageError, match=r"Task 2 names a file \(@TASKS\.md,?\)"):
            await w.run()
        assert not w.bodies


async def test_a_key_that_is_rejected_ends_the_run(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, ANSWER, keys=["other"]) as w:
        run = w.new_run()
        state = await run.run()
        await run.close()
        assert run.fatal_class == "auth"
        assert state.batch is None
        assert statuses(state) == ["pending"] * 3


async def test_a_task_added_while_a_batch_is_out_is_asked_in_the_next(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *[ANSWER] * 4) as w:
        w.server.api.batches.polls = 2
        run = w.new_run()
        w.clock.slept = _Stop(run, after=1)  # pyright: ignore[reportAttributeAccessIssue]
        await run.run()
        await run.close()
        w.clock = FakeClock()
        (work / "TASKS.md").write_text("- first of all\n" + w.file)
        state = await w.run()
        assert statuses(state) == ["completed"] * 4
        assert [len(body["requests"]) for body in w.bodies] == [3, 1]


async def test_a_session_that_is_open_elsewhere_gets_its_answer_in_the_next_run(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world(work, monkeypatch, *[ANSWER] * 3) as w:
        w.server.api.batches.polls = 100
        run = w.new_run()
        w.clock.slept = _Stop(run, after=1)  # pyright: ignore[reportAttributeAccessIssue]
        state = await run.run()
        await run.close()
        w.clock, w.batches[0].polls = FakeClock(), 0
        path = catalog.resolve(state.tasks[1].session_id or "", folders())
        with another(path) as program:
            run = w.new_run()
            state = await run.run()
            await run.close()
            assert statuses(state) == ["completed", "pending", "completed"]
            assert f"process {program.pid}" in run.reason
        assert statuses(await w.run()) == ["completed"] * 3
        assert len(w.bodies) == 1


async def test_a_repository_may_be_dirty_and_gets_no_commit(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = make_repo(work / "repo")
    (repo / "TASKS.md").write_text(TASKS)
    (repo / "half-done.txt").write_text("half")
    before = log(repo)
    async with world(repo, monkeypatch, ANSWER, ANSWER, ANSWER) as w:
        assert statuses(await w.run()) == ["completed"] * 3
    assert log(repo) == before


async def test_what_a_killed_run_left_in_the_files_comes_first(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = begin(work / "TASKS.md", taskfile.parse(TASKS.encode()), now="2026-11-21T09:00:00Z")
    RunFolder(work).save(state.with_task(replace(state.tasks[1], status="running")))
    async with world(work, monkeypatch, ANSWER) as w:
        with pytest.raises(UsageError, match="Task 2 was running when the last run died"):
            await w.run()
        assert not w.bodies


async def test_an_answer_that_was_declined_fails_its_task(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (work / "TASKS.md").write_text("- one\n")
    turn = {"text": "", "stop_reason": "refusal", "stop_details": {"category": "cyber"}}
    async with world(work, monkeypatch, turn) as w:
        state = await w.run()
        assert (state.tasks[0].status, state.tasks[0].error_class) == ("failed", "refusal")


def test_constants_are_those_that_the_manual_names() -> None:
    manual = (Path(batch_api.__file__).parents[1] / "manual" / "tasks.md").read_text()
    assert f"{batch_api.ANSWER_TOKENS:,} tokens" in manual

"""Questions of tasks, from a worker's approver by way of a real store to the driver's, and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from tests.batch.cluster.test_task_store import far
from tests.support.clock import PATIENCE_S, FakeClock
from tui.batch.cluster.answering import TaskQuestions
from tui.batch.cluster.asking import StoreApprover
from tui.batch.cluster.entry import TaskEntry
from tui.batch.cluster.lease import Lease, LeasePace, change, read_task, ref_of
from tui.batch.cluster.question import (
    TaskAnswer,
    TaskQuestion,
    WithdrawnQuestion,
    answer_to,
    message_of,
    question_ref,
    read_question,
)
from tui.batch.cluster.task_store import StoreError, TaskStore
from tui.batch.events import BatchEvent, FromAgent
from tui.batch.state import PlacedRun
from tui.core import facts
from tui.core.questions import (
    AnswerChoice,
    PlanReview,
    UserAnswer,
    UserAnswers,
    UserQuestion,
)
from tui.permissions.gate import RulesOnly
from tui.permissions.sandbox.walls import Level
from tui.permissions.types import Answer, Approver, Call, Decision

RUN, KEY = "run", "00001"
REF = question_ref(RUN, KEY)
CALL = Call(
    "call-1",
    "run_command",
    "run",
    "make \udcff",  # no valid text
    command="make \udcff",
    preview_kind="command",
    preview="make",
    input={"command": "make \udcff", "timeout": 2.5},
)
DECISION = Decision(
    "ask", "It isn't on the list.", "default", "standard", Level.NETWORK, walls=True,
    marks=("make",), paths=(Path("/somewhere/else"),),
)  # fmt: skip


@dataclass
class Worker:
    """A worker of a task, as the approver sees it."""

    lease: Lease
    task: int = 0
    said: list[str] = field(default_factory=list[str])

    def lose(self) -> None:
        self.said.append("lost")

    def poll(self) -> None: ...


@dataclass
class Person(RulesOnly):
    """Gives an answer once it may, and keeps what it was asked."""

    answer: Answer = field(default_factory=lambda: Answer("session"))
    may: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[tuple[Call, Decision]] = field(default_factory=list[tuple[Call, Decision]])
    withdrawn: int = 0

    async def ask(self, call: Call, decision: Decision) -> Answer:
        self.asked.append((call, decision))
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        return self.answer

    async def ask_user(self, questions: Sequence[UserQuestion], agent: str) -> UserAnswers:
        return UserAnswers((UserAnswer((questions[0].choices[1].label,), agent),))

    async def review_plan(self, title: str, plan: str) -> PlanReview:
        return PlanReview("accept_edits", plan, title)


@dataclass
class Run:
    """One run with a task that a worker has, and its driver: each reads the store from elsewhere,
    `store` is the driver's."""

    store: TaskStore
    workers_store: TaskStore
    worker: Worker
    clock: FakeClock
    events: list[BatchEvent] = field(default_factory=list[BatchEvent])

    def show(self, event: BatchEvent) -> None:
        self.events.append(event)

    def approver(self, *, redact: bool = False) -> StoreApprover:
        return StoreApprover(self.workers_store, RUN, self.worker, self.clock, redact=redact)

    def driver(self, approver: Approver, *, told: bool = False) -> TaskQuestions:
        return TaskQuestions(self.store, approver, self, FakeClock(), told=told)

    @property
    def commit(self) -> str:
        commit = self.store.refs(REF).get(REF, "")
        self.store.fetch({REF: commit} if commit else {})
        return commit

    @property
    def question(self) -> TaskQuestion:
        state = read_question(self.store.message(self.commit))
        assert isinstance(state, TaskQuestion)
        return state

    async def asked(self) -> str:
        """Wait until a question is open, and return its commit."""
        while not (commit := await asyncio.to_thread(lambda: self.commit)):
            pass
        return commit

    async def asked_after(self, before: str) -> str:
        while (commit := await self.asked()) == before:
            pass
        return commit

    async def look(self, driver: TaskQuestions) -> None:
        """One look of the driver's."""
        refs = await asyncio.to_thread(self.store.refs, REF)
        await asyncio.to_thread(driver.read, {REF: refs[REF]} if refs else {})
        found = await asyncio.to_thread(read_task, self.store, ref_of(RUN, KEY))
        driver.review(placed(self.store), {KEY: found})

    async def until(self, driver: TaskQuestions, done: Callable[[], bool]) -> None:
        while not done():
            await self.look(driver)

    def put(self, message: str, *, upon: str) -> str:
        """Move the ref as anybody may who can write the store."""
        before = self.commit
        made = self.store.commit(message, upon=upon)
        assert self.store.move({REF: (before, made)})
        return made


def placed(store: TaskStore) -> PlacedRun:
    return PlacedRun(run=RUN, store=store.address, on="local", keys={KEY: (2, 3)})


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    near = TaskStore.at(str(tmp_path / "store.git"), tmp_path)
    near.make()
    store, workers_store = (far(near, tmp_path / name) for name in ("driver", "worker"))
    entry = TaskEntry(key=KEY, tasks=(2, 3))
    assert store.move({ref_of(RUN, KEY): ("", store.commit(entry.to_message()))})
    clock = FakeClock()
    worker = Worker.__new__(Worker)
    lease = Lease(workers_store, ref_of(RUN, KEY), LeasePace(1e9), clock, worker)
    Worker.__init__(worker, lease, task=3)
    assert lease.take("/place")
    async with asyncio.timeout(PATIENCE_S):
        yield Run(store, workers_store, worker, clock)
    if lease.is_held:
        lease.finish(state="done")


async def got(asking: Awaitable[Answer], run: Run, person: Approver) -> Answer:
    """The answer to a question that a driver puts to a person."""
    driver, task = run.driver(person), asyncio.ensure_future(asking)
    await run.until(driver, task.done)
    await driver.close()
    return task.result()


async def test_the_person_is_asked_and_the_answer_reaches_the_worker(run: Run):
    person = Person(Answer("session", "go", changed={"command": "make -n"}))
    person.may.set()
    assert await got(run.approver().ask(CALL, DECISION), run, person) == person.answer
    ((call, decision),) = person.asked
    assert (replace(call, agent=""), call.input, decision) == (CALL, CALL.input, DECISION)
    assert call.agent == "task 4"
    shown = [event.event for event in run.events if isinstance(event, FromAgent)]
    assert [facts.awaits_person(fact) for fact in shown] == [True, False]
    assert {event.task for event in run.events if isinstance(event, FromAgent)} == {3}


async def test_what_a_worker_tells_itself_is_told_once_and_what_is_void_by_the_driver(run: Run):
    person = Person(Answer("once"))
    person.may.set()
    driver = run.driver(person, told=True)
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    await run.until(driver, asking.done)
    assert asking.result().answer == "once"
    await run.look(driver)
    assert run.events == []
    person.may.clear()
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    await run.until(driver, lambda: len(person.asked) == 2)
    run.worker.lease.finish(state="waiting", holder="")  # its worker is gone
    await run.look(driver)
    shown = [event.event for event in run.events if isinstance(event, FromAgent)]
    assert [facts.awaits_person(fact) for fact in shown] == [False]
    await driver.close()
    asking.cancel()


async def test_questions_of_the_model_and_plans_reach_the_person_too(run: Run):
    choices = (AnswerChoice("red", notice="n"), AnswerChoice("blue", "b"))
    question, person = UserQuestion("Color", "Which?", choices, call="c"), Person()
    driver, approver = run.driver(person), run.approver()
    asking = asyncio.ensure_future(approver.ask_user([question], "explorer"))
    await run.until(driver, asking.done)
    assert asking.result() == UserAnswers((UserAnswer(("blue",), "task 4, explorer"),))
    review = asyncio.ensure_future(approver.review_plan("A plan", "1. do it"))
    await run.until(driver, review.done)
    assert review.result() == PlanReview("accept_edits", "1. do it", "A plan (task 4)")


async def test_where_nobody_can_be_asked_a_waiting_worker_gets_the_usual_no(run: Run):
    usual = await RulesOnly().ask(CALL, DECISION)
    assert await got(run.approver().ask(CALL, DECISION), run, RulesOnly()) == usual
    assert usual.by == "default"


async def test_a_question_waits_and_is_shown_once(run: Run):
    person = Person()
    driver = run.driver(person)
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    await run.until(driver, lambda: bool(person.asked))
    for _ in range(3):
        await run.look(driver)
    assert driver.waiting == {3: "run_command(make \\udcff)"}
    # a look that is under way while the answer is put
    await asyncio.to_thread(driver.read, {REF: run.commit})
    found = await asyncio.to_thread(read_task, run.store, ref_of(RUN, KEY))
    person.may.set()
    await asking
    driver.review(placed(run.store), {KEY: found})
    await run.look(driver)
    assert driver.waiting == {}
    assert len(person.asked) == 1


async def test_only_an_answer_to_this_very_question_counts(run: Run):
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    first = await run.asked()
    yes = message_of(answer_to(Answer("always")))
    number = run.question.number
    # one to a question of another task, with the same call
    other = run.store.commit(message_of(msgspec.structs.replace(run.question, key="2")))
    forged = run.put(yes, upon=other)
    second = await run.asked_after(forged)
    assert run.question.number != number
    # one to the question before
    late = run.put(yes, upon=first)
    third = await run.asked_after(late)
    # one that is none
    odd = run.put(message_of(TaskAnswer({"answer": "perhaps"})), upon=third)
    await run.asked_after(odd)
    assert not asking.done()
    assert len({second, third, run.commit}) == 3
    run.put(message_of(answer_to(Answer("no", "because"))), upon=run.commit)
    assert await asking == Answer("no", "because")


async def test_a_second_answer_changes_nothing(run: Run):
    one, two = Person(Answer("once")), Person(Answer("no"))
    drivers = run.driver(one), run.driver(two)
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    for driver, person in zip(drivers, (one, two), strict=True):
        await run.until(driver, lambda person=person: bool(person.asked))
    one.may.set()
    assert await asking == Answer("once")
    answered = run.commit
    two.may.set()
    while drivers[1].waiting:
        await asyncio.to_thread(lambda: None)
    assert run.commit == answered
    last = run.events[-1]
    assert isinstance(last, FromAgent)
    assert isinstance(last.event, facts.PermissionAnswered)
    assert last.event.by == "default"


async def test_a_cancelled_question_is_withdrawn_and_leaves_the_screen(run: Run):
    person = Person()
    driver = run.driver(person)
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    await run.until(driver, lambda: bool(person.asked))
    asking.cancel()
    await run.until(driver, lambda: bool(person.withdrawn))
    assert driver.waiting == {}
    assert isinstance(read_question(run.store.message(run.commit)), WithdrawnQuestion)


async def test_a_question_cancelled_while_it_is_put_is_withdrawn_after_that(run: Run):
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    await asyncio.sleep(0)  # it has begun, and nothing is in the store
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    while not isinstance(read_question(run.store.message(await run.asked())), WithdrawnQuestion):
        await asyncio.to_thread(lambda: None)


async def test_the_question_of_a_worker_that_lost_its_task_is_void(run: Run):
    person = Person()
    driver = run.driver(person)
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    await run.until(driver, lambda: bool(person.asked))
    ref = ref_of(RUN, KEY)
    assert change(run.store, ref, read_task(run.store, ref), holder="another", attempt=2)
    await run.until(driver, lambda: bool(person.withdrawn))
    fresh = Person()
    await run.look(run.driver(fresh))
    await asyncio.sleep(0)
    assert fresh.asked == []
    # it is told yes all the same, after a sleep: it must not go on
    run.clock.elapsed += 1e9
    run.put(message_of(answer_to(Answer("once"))), upon=run.commit)
    while not run.worker.said:
        await asyncio.to_thread(lambda: None)
    assert run.worker.said == ["lost"]
    assert not asking.done()
    asking.cancel()


async def test_a_worker_that_lost_its_task_asks_nothing(run: Run):
    ref = ref_of(RUN, KEY)
    assert change(run.store, ref, read_task(run.store, ref), cancelled=True)
    run.clock.elapsed += 1e9
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    while not run.worker.said:
        await asyncio.to_thread(lambda: None)
    assert run.commit == ""
    assert not asking.done()
    asking.cancel()


async def test_an_answer_that_the_store_did_not_take_is_put_again(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    person, failures = Person(Answer("once")), 2
    driver = run.driver(person)
    asking = asyncio.ensure_future(run.approver().ask(CALL, DECISION))
    await run.until(driver, lambda: bool(person.asked))
    real = TaskStore.move

    def broken(self: TaskStore, *given: object) -> bool:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise StoreError("Nobody answers.")
        return real(self, *given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(TaskStore, "move", broken)
    person.may.set()
    await run.until(driver, asking.done)
    assert asking.result() == Answer("once")
    assert len(person.asked) == 1


async def test_a_question_is_drawn_safely_and_keeps_secrets_where_the_record_does(run: Run):
    secret = "sk-ant-" + "a1" * 20
    text = f"echo \x1b[2J\u202e{secret}"
    plan = asyncio.ensure_future(run.approver(redact=True).review_plan(text, text))
    await run.asked()
    assert secret not in run.store.message(run.commit)
    summary = run.question.summary
    assert summary.isprintable()
    assert "\\x1b[2J\\u202e" in summary
    await run.until(run.driver(Person()), plan.done)
    assert plan.result().plan == text

"""A placed run as a person sees it: what is known of its tasks, their workers and the money."""

from __future__ import annotations

from collections.abc import Mapping

from tui.batch.cluster.answering import TaskQuestions
from tui.batch.cluster.budget import Budget
from tui.batch.cluster.engines.port import RestingHosts, WorkerEngine
from tui.batch.cluster.observed_tasks import ObservedTasks
from tui.batch.cluster.placed_workers import PlacedWorkers, RunInCharge
from tui.batch.cluster.relay import WorkerEvents
from tui.batch.cluster.sight import DriverSight, PlacedStates
from tui.batch.cluster.taken_results import TakenResults
from tui.batch.placement import RunPlacement
from tui.batch.state import PlacedRun, RunState


class PlacedView:
    """The state of a run with what the store says of the `tasks` that aren't taken yet; `running`
    are those that are being worked on, and `placement` says where each is. All as of the last
    `note`."""

    def __init__(
        self,
        engine: WorkerEngine,
        tasks: ObservedTasks,
        workers: PlacedWorkers,
        results: TakenResults,
        run: RunInCharge,
        *,
        questions: TaskQuestions,
        printed: WorkerEvents | None,
        lease_s: float,
    ) -> None:
        self._engine, self._tasks, self._workers = engine, tasks, workers
        self._results, self._questions, self._run = results, questions, run
        self._printed, self._lease_s = printed, lease_s
        self.running: tuple[int, ...] = ()
        self.placement = RunPlacement(
            engine=engine.name, outlives=engine.outlives, slots=engine.slots
        )
        self._sight: DriverSight | None = None
        self._states = PlacedStates()
        self._shown: tuple[RunState, RunState] | None = None
        """A state of the book, and that state as a person is to see it."""

    def state(self, state: RunState) -> RunState:
        """Return the state of the book as a person is to see it."""
        if self._shown is None or self._shown[0] is not state:
            sight = self._sight  # threads change what it was made of
            self._shown = state, self._states.over(state, sight) if sight else state
        return self._shown[1]

    def note(self, state: RunState, *, is_over: bool = False) -> None:
        """Note what is known now, if anything is placed; `is_over`: the driver has ended."""
        placed = state.placed
        if placed is None:
            return
        sight = self._seen(placed, is_over=is_over)
        entries = [*sight.entries.values()]
        limit = self._results.limit_usd(state)
        budget = Budget(limit, self._engine.slots, entries)
        engine: object = self._engine
        resting: Mapping[str, str] = engine.resting() if isinstance(engine, RestingHosts) else {}
        refused = {one.host: one.reason for entry in entries for one in entry.refusals}
        problem, since = self._tasks.problem or ("", None)
        self.running, before = sight.running(), self.placement.tasks
        self._sight, self._shown = sight, None
        self.placement = RunPlacement(
            engine=sight.engine,
            outlives=self._engine.outlives,
            slots=sight.slots,
            tasks={
                index: before[index] if before.get(index) == one else one
                for index, one in sight.tasks()
            },
            hosts=sight.hosts(),
            refusing={**refused, **resting},
            server_waits=self._tasks.waits.remaining_s(),
            spent_usd=None
            if any(one.spent_usd is None for one in entries)
            else self._results.spent_before_usd(state) + sum(one.spent_usd or 0 for one in entries),
            reserved_usd=budget.reserved_usd,
            limit_usd=self._results.whole_limit_usd,
            store_problem=problem,
            unreachable_since=since,
        )

    def _seen(self, placed: PlacedRun, *, is_over: bool) -> DriverSight:
        """The facts that are known of the tasks in the store."""
        workers, run = self._workers, self._run
        tasks = self._tasks.among(placed.keys)
        begun = self._printed.begun if self._printed else dict[str, int]()
        return DriverSight(
            engine=self._engine.name,
            slots=self._engine.slots,
            lease_s=self._lease_s,
            keys=placed.keys,
            entries={key: stored.entry for key, stored in tasks.items()},
            still_s={key: self._tasks.still_s(key) for key in tasks},
            lives={key: workers.life_of(key) or "unknown" for key in workers.handles},
            delays={key: delay for key in tasks if (delay := workers.delay_s(key))},
            ended=frozenset(
                key
                for key, stored in tasks.items()
                if workers.ended.get(key) == stored.entry.attempt
            ),
            skipped=run.skipped,
            asking=dict(self._questions.waiting),
            at={key: task for key, task in begun.items() if key in workers.handles},
            is_over=is_over,
            pausing=run.pausing,
            out_of_money=workers.out_of_money,
            engine_problem=workers.engine_problem,
        )

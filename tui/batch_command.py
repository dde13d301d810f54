"""`holdfast run`: a task file worked through without a screen, and what stands around it.

`plan` and `setup` are shared with the full screen.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from tui import launch as launching
from tui.agent.agent import Agent
from tui.agent.assemble import Launch, known_model, make_agent, make_provider
from tui.agent.limits import Limits
from tui.arguments import Options
from tui.batch import asking, boot
from tui.batch.attempt import Attempt
from tui.batch.backoff import Models
from tui.batch.book import read_tasks
from tui.batch.events import BatchEvent, RunFinished, RunStarted, to_json
from tui.batch.isolation import Isolation
from tui.batch.isolations import find_isolation
from tui.batch.report import Summary, lines_of, one_line
from tui.batch.runner import Runner, Setup
from tui.batch.state import RunFolder, RunState, begin
from tui.batch.stops import Stops
from tui.batch.taskfile import TaskFile
from tui.clock import Clock, SystemClock
from tui.errors import CredentialsError, StorageError, UsageError
from tui.files import replace_file
from tui.paths import shorten
from tui.permissions.base import Approver
from tui.permissions.gate import RulesOnly
from tui.provider.base import ModelInfo, Provider
from tui.session.session import Session

EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 3, 130
FALLBACK_AFTER_S = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A run before it begins. `task_file` and `target` are real paths."""

    launch: Launch
    task_file: Path
    target: Path
    file: TaskFile
    boot: boot.Boot
    isolation: Isolation
    models: Models
    stops: Stops
    summary: Path | None = None


def run(options: Options) -> int:
    """Carry out `holdfast run` without a screen. Returns the exit code; raises HoldfastError."""
    if options.reset:
        return _reset(options)
    if options.status:
        return _status(options)
    planned = plan(options)
    if options.dry_run:
        return _dry_run(planned)
    return asyncio.run(_headless(planned, options))


def plan(options: Options) -> Plan:
    """Read everything that decides how to run. Blocks; raises UsageError, CredentialsError."""
    assert options.tasks is not None
    # The swap of models is the run's own, and so is its limit of cost.
    plain = replace(options, fallback_models=(), max_cost=None, headless=True)
    launch = launching.prepare(plain)
    config = launch.config
    fallbacks = options.fallback_models or config.fallback_models
    changed = msgspec.structs.replace(
        config, fallback_models=(), prune=msgspec.structs.replace(config.prune, unit="requests")
    )
    target = launch.workspace.root
    task_file = _task_file(options.tasks)
    file = read_tasks(task_file)
    found = boot.find(file.boot, task_file, target)
    models = Models(launch.model, next((name for name in fallbacks if name != launch.model), ""))
    batch = config.batch
    stops = Stops(
        cost_usd=options.max_cost or batch.max_cost or None,
        failures_in_a_row=options.max_failures or batch.max_failures or None,
        seconds=options.max_time or batch.max_time_s or None,
    )
    if stops.cost_usd is not None:
        _check_prices(launch, models)
    if not options.dry_run:
        launch = _with_key(launch)
    # A server's long limits are waited for, unless another model can be asked meanwhile.
    patience = FALLBACK_AFTER_S if models.fallback else None
    return Plan(
        launch=replace(launch, config=changed, boot=found.named, max_wait_s=patience),
        task_file=task_file,
        target=target,
        file=file,
        boot=found,
        isolation=find_isolation(target, task_file),
        models=models,
        stops=stops,
        summary=options.summary,
    )


class Workshop:
    """Makes what a run needs of the rest: its runner, the agents, the one model side of all.

    `approver` answers what the rules leave open. Close it at the end.
    """

    def __init__(
        self,
        planned: Plan,
        publish: Callable[[BatchEvent], None],
        *,
        approver: Approver,
        clock: Clock,
    ) -> None:
        self._plan, self._approver, self._clock = planned, approver, clock
        self._provider: Provider = make_provider(planned.launch, clock)
        self.runner = Runner(
            Setup(
                task_file=planned.task_file,
                target=planned.target,
                isolation=planned.isolation,
                open_agent=self._open_agent,
                ask=self._ask,
                model_info=self._model_info,
                models=planned.models,
                clock=clock,
                publish=publish,
                batch=planned.launch.config.batch,
                threshold=planned.launch.config.compaction.threshold,
                stops=planned.stops,
                boot=planned.boot.shown,
            )
        )

    async def close(self) -> None:
        await self._provider.aclose()

    async def _open_agent(self, model: str) -> Agent:
        agent = await asyncio.to_thread(self._new_agent)
        if agent.model != model:
            agent.use_model(self._model_info(model))
        return agent

    def _new_agent(self) -> Agent:
        launch = self._plan.launch
        most = self._plan.stops.cost_usd
        if most is not None:
            launch = replace(launch, limits=Limits(max_cost=max(0.0, most - self.runner.spent_usd)))
        session = Session.create(self._plan.target, folders=launch.folders, clock=self._clock)
        agent = make_agent(
            launch,
            session,
            self._approver,
            clock=self._clock,
            provider=asking.Shared(self._provider),
        )
        self._plan = replace(self._plan, launch=replace(self._plan.launch, notices=()))
        return agent

    async def _ask(self, question: str) -> Attempt:
        launch = self._plan.launch
        model = launch.model if launch.practice else launch.config.small_model
        return await asking.ask(self._provider, model, question, launch.config.prices.get(model))

    def _model_info(self, name: str) -> ModelInfo:
        return replace(known_model(self._plan.launch, name), id=name)


async def _headless(planned: Plan, options: Options) -> int:
    printer = _Printer(json_=options.json, total=len(planned.file.tasks))
    shop = Workshop(planned, printer.show, approver=RulesOnly(), clock=SystemClock())
    runner = shop.runner
    printer.on_lost = runner.stop
    if options.retry_failed:
        runner.take_up_failed()
    with _signals(lambda: _stop(runner)):
        try:
            state = await runner.run()
            summary = Summary(state, runner.reason, printer.seconds)
            written = write_summary(summary, planned)
        finally:
            await shop.close()
    if not options.json:
        printer.line("")
        printer.line(summary.text(width=_width()).rstrip("\n"))
        printer.line(f"Summary: {', '.join(shorten(path) for path in written)}")
    return EXIT_FAILED if printer.lost else exit_code(runner, state)


def exit_code(runner: Runner, state: RunState) -> int:
    """INTERFACE's exit code of a run that ended."""
    if runner.reason in {"interrupted", "paused"}:
        return EXIT_INTERRUPTED
    if runner.fatal_class == "auth":
        return EXIT_REFUSED
    done = all(task.status == "completed" for task in state.tasks)
    return EXIT_DONE if done else EXIT_FAILED


def write_summary(summary: Summary, planned: Plan) -> list[Path]:
    """Write the summary where it goes. Returns where it went; what fails is said."""
    own = RunFolder(planned.target).summary_file
    wanted = [own] if planned.summary is None else [own, planned.summary]
    done: list[Path] = []
    for path in wanted:
        try:
            replace_file(path, summary.markdown().encode())
            done.append(path)
        except OSError as error:
            _told(f"The summary could not be written to {path}: {error.strerror or error}.")
    return done


class _Printer:
    """The only writer to stdout. When nobody can read it any more, the run is stopped."""

    def __init__(self, *, json_: bool, total: int) -> None:
        self._json, self._total = json_, total
        self.on_lost: Callable[[], None] = lambda: None
        self.lost = False
        self.seconds: float | None = None

    def show(self, event: BatchEvent) -> None:
        match event:
            case RunStarted(tasks=tasks):
                self._total = tasks
            case RunFinished(seconds=seconds):
                self.seconds = seconds
            case _:
                pass
        if self._json:
            self.line(json.dumps(to_json(event), ensure_ascii=True, separators=(",", ":")))
        else:
            for text in lines_of(event, total=self._total):
                self.line(text)

    def line(self, text: str) -> None:
        if self.lost:
            return
        try:
            sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
            sys.stdout.flush()
        except OSError:
            self.lost = True
            self.on_lost()


def _stop(runner: Runner) -> None:
    _told("Stopping: saving how far it is." if not runner.stopping else "Still saving.")
    runner.stop()


@contextmanager
def _signals(stop: Callable[[], None]) -> Generator[None]:
    """The first signal stops the run, another one changes nothing: the state is being saved."""
    loop = asyncio.get_running_loop()
    every = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    heeded = [number for number in every if signal.getsignal(number) != signal.SIG_IGN]
    for number in heeded:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in heeded:
            loop.remove_signal_handler(number)


def _reset(options: Options) -> int:
    folder = RunFolder(launching.workspace_of(options))
    if not folder.path.is_dir():
        _told("There is no run here.")
        return EXIT_DONE
    with folder.locked():
        folder.reset()
    _told(f"Forgotten: state and logs in {shorten(folder.path)}. The next run begins anew.")
    return EXIT_DONE


def _status(options: Options) -> int:
    folder = RunFolder(launching.workspace_of(options))
    state = folder.load()
    if state is None:
        if options.tasks is None:
            raise UsageError(
                f"There is no run in {shorten(folder.target)}.",
                hint="holdfast run TASKS.md begins one.",
            )
        path = _task_file(options.tasks)
        state = begin(path, read_tasks(path), now="")
    elif options.tasks is not None and str(_task_file(options.tasks)) != state.task_file:
        raise UsageError(f"The run here is of {state.task_file}.", hint="Name that file, or none.")
    if options.json:
        _print(json.dumps(msgspec.to_builtins(state), ensure_ascii=True))
    else:
        _print(f"{state.task_file}" + (f", begun {state.started_at}" if state.started_at else ""))
        _print("\n" + Summary(state).text(width=_width()).rstrip("\n"))
    return EXIT_DONE


def _dry_run(planned: Plan) -> int:
    """What a run would do. Nothing is written, not even the folder of the state."""
    folder = RunFolder(planned.target)
    state = folder.load_for(planned.task_file, planned.file)
    if state is None:
        planned.isolation.check()
        state = begin(planned.task_file, planned.file, now="")
    done = state.counts().get("completed", 0)
    started = RunStarted(
        str(planned.task_file),
        len(state.tasks),
        done,
        planned.boot.shown,
        planned.isolation.name,
    )
    for line in lines_of(started):
        _print(line)
    swap = f", {planned.models.fallback} after a rate limit or timeout"
    _print(f"model: {planned.models.first}{swap if planned.models.fallback else ''}")
    group = None
    for task in state.tasks:
        if task.group != group:
            group = task.group
            _print(f"\n{one_line(group, 200)}")
        todo = "run" if task.status in {"pending", "interrupted", "running"} else task.status
        _print(f"  {task.index + 1:>4}  {todo:<9}  {one_line(task.task, 200)}")
    return EXIT_DONE


def _task_file(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _with_key(launch: Launch) -> Launch:
    key = launching.find_key(launch)
    if launching.needs_key(launch, key):
        raise CredentialsError(
            "There is no API key.",
            hint="Set ANTHROPIC_API_KEY, run `holdfast` to store one, or try --practice.",
        )
    return launch.with_key(key)


def _check_prices(launch: Launch, models: Models) -> None:
    for name in filter(None, (models.first, models.fallback)):
        if name not in launch.config.prices:
            raise UsageError(
                f"A limit of cost needs a price for {name}, and none is configured.",
                hint=f'Put one under [prices."{name}"] in {shorten(launch.folders.config_file)}.',
            )


def _width() -> int:
    with suppress(OSError):
        return os.get_terminal_size(sys.stdout.fileno()).columns
    return 100


def _print(text: str) -> None:
    try:
        sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"Standard output cannot be written: {error}.") from error


def _told(text: str) -> None:
    with suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

"""`holdfast run` without a screen: working through a task file, showing or resetting a run.

Stdout gets plain lines or events; `exit_code` and `write_summary` serve the full screen too.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tui.agent.model_access import refreshed_models
from tui.app.options.arguments import Options
from tui.app.session_path import workspace_of
from tui.batch.events import BatchEvent, RunFinished, RunStarted
from tui.batch.placement import RUN_ON
from tui.batch.plan import RunPlan, plan, real_task_file
from tui.batch.report import RunSummary, lines_of, one_line
from tui.batch.run_control import ControlledRunner, open_run
from tui.batch.run_store import not_taken, read_tasks
from tui.batch.state import RunFolder, RunState, begin, is_over
from tui.batch.task_worktrees import TaskWorktrees
from tui.core.clock import SystemClock
from tui.core.errors import StorageError, UsageError
from tui.core.files import replace_file
from tui.core.formatting import local_time, plural
from tui.core.paths import shorten
from tui.core.signals import heeded_signals
from tui.core.standard_output import note, print_text

if TYPE_CHECKING:
    from tui.batch.batch_api import BatchApiRun

    AnyRunner: TypeAlias = ControlledRunner | BatchApiRun

LOCAL = "local"
"""The engine that is this machine."""
_TO_DO = {"pending": "run", "interrupted": "run", "running": "run", "unmerged": "merge"}
EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 3, 130


def run(options: Options) -> int:
    """Carry out `holdfast run` without a screen. Returns the exit code; raises HoldfastError."""
    if options.batch.reset:
        return reset(options)
    if options.batch.status:
        return status(options)
    options = placed(options)
    planned = plan(options)
    return dry_run(planned) if options.dry_run else asyncio.run(_work(planned, options))


def placed(options: Options) -> Options:
    """The options with the engine that places the tasks, none where this process works on them:
    several at a time are processes of this machine, and so is the rest of a run that was. Blocks;
    raises UsageError where the state of the run can't be read."""
    batch = options.batch
    if batch.on == LOCAL and batch.parallel == 1:
        return options.having(parallel=os.cpu_count() or 1)
    if batch.on or batch.batch_api:
        return options
    state = RunFolder(workspace_of(options)).load()
    begun = state is not None and state.placed is not None and state.placed.on == LOCAL
    return options.having(on=LOCAL) if batch.parallel > 1 or begun else options


def width() -> int:
    """The width of the terminal on stdout; 100 where there is none."""
    with suppress(OSError):
        return os.get_terminal_size(sys.stdout.fileno()).columns
    return 100


def print_line(text: str) -> None:
    """A line on stdout. Raises StorageError, or BrokenPipeError when nobody reads."""
    try:
        print_text(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"Can't write to standard output: {error}.") from error


def print_notice(text: str) -> None:
    """A line for the person."""
    with suppress(OSError):
        note(text)
        sys.stderr.flush()


def exit_code(runner: AnyRunner, state: RunState) -> int:
    """The exit code of a run that ended."""
    if runner.reason in {"interrupted", "paused", RUN_ON}:
        return EXIT_INTERRUPTED
    if runner.fatal_class == "auth":
        return EXIT_REFUSED
    done = all(task.status == "completed" for task in state.tasks)
    return EXIT_DONE if done else EXIT_FAILED


def write_summary(summary: RunSummary, planned: RunPlan) -> list[Path]:
    """Write the summary where it goes. Returns where it went; reports what fails."""
    own = RunFolder(planned.target).summary_file
    wanted = [own] if planned.summary is None else [own, planned.summary]
    done: list[Path] = []
    for path in wanted:
        try:
            replace_file(path, summary.markdown().encode())
            done.append(path)
        except OSError as error:
            print_notice(f"Can't write the summary to {path}: {error.strerror or error}.")
    return done


def reset(options: Options) -> int:
    """Remove state and logs."""
    folder = RunFolder(workspace_of(options))
    if not folder.path.is_dir():
        print_notice("There is no run here.")
        return EXIT_DONE
    with folder.locked():
        try:
            state = folder.load()
        except UsageError:
            state = None  # it cannot be read: that is why it is reset
        folder.reset()
        lines = _remaining_worktrees(state, folder.target) if state else []
        if state and state.batch:
            what = state.batch.id or "A message batch that may have been sent"
            lines.append(f"{what} continues at the server, and is billed.")
        if state and state.placed:
            from tui.batch.cluster.command import cancel  # noqa: PLC0415 - seldom needed

            lines.append(cancel(state.placed, options))
    print_notice(f"Cleared run state in {shorten(folder.path)}.")
    for line in lines:
        print_notice(line)
    done = state.counts().get("completed", 0) if state else 0
    if state and done:
        of = f"{done} of {plural(len(state.tasks), 'task')}"
        what = f"{of} was done. Its commit stays" if done == 1 else f"{of} were done. Commits stay"
        print_notice(f"{what}; tasks without [x] in {shorten(state.task_file)} would run again.")
    return EXIT_DONE


def _remaining_worktrees(state: RunState, target: Path) -> list[str]:
    """Remove the worktrees of a run, as far as nothing is lost with them. What stays, in lines."""
    places = TaskWorktrees(target, Path(state.task_file))
    names = dict.fromkeys(task.worktree for task in state.tasks if task.worktree)
    return [line for name in names if (line := places.leave(name))]


def status(options: Options) -> int:
    """Show how far the run of a folder is."""
    folder = RunFolder(workspace_of(options))
    state = folder.load()
    if state is None:
        if options.batch.tasks is None:
            raise UsageError(
                f"No run in {shorten(folder.target)}.",
                hint="Start one with: holdfast run TASKS.md",
            )
        path = real_task_file(options.batch.tasks)
        state = begin(path, read_tasks(path), now="")
    elif (
        options.batch.tasks is not None
        and str(real_task_file(options.batch.tasks)) != state.task_file
    ):
        if is_over(state):
            path = real_task_file(options.batch.tasks)
            return _show_status(begin(path, read_tasks(path), now=""), folder, options)
        raise UsageError(f"The run here uses {state.task_file}.", hint="Name that file, or none.")
    return _show_status(state, folder, options)


def _show_status(state: RunState, folder: RunFolder, options: Options) -> int:
    if options.json:
        print_line(json.dumps(msgspec.to_builtins(state), ensure_ascii=True))
    else:
        print_line(f"{shorten(state.task_file)}: {_how(state, folder)}")
        print_line("\n" + RunSummary(state).text(width=width()).rstrip("\n"))
    return EXIT_DONE


def _how(state: RunState, folder: RunFolder) -> str:
    """Say if the run has begun, and if somebody works on it."""
    if not state.started_at:
        return "not started"
    begun = f"started {local_time(state.started_at)}"
    if folder.worked_on():
        return f"{begun}, running now"
    if state.placed:
        taken, every = len(state.placed.taken), len(state.placed.keys)
        return f"{begun}, placed by {state.placed.on}; results here: {taken} of {every}"
    if state.batch:
        return f"{begun}, waiting for message batch {state.batch.id}".rstrip()
    if running := state.counts().get("running", 0):
        resumed = "the interrupted task" if running == 1 else f"{running} interrupted tasks"
        return f"{begun}, killed; the next run resumes {resumed}"
    return begun


def dry_run(planned: RunPlan) -> int:
    """Show what a run would do. Nothing is written, not even the folder of the state."""
    folder = RunFolder(planned.target)
    state = folder.load_for(planned.task_file, planned.file)
    begun = state is not None and any(task.status == "running" for task in state.tasks)
    if state is None:
        state = begin(planned.task_file, planned.file, now="")
    for line in lines_of(planned.started(state, planned.at_once)):
        print_line(line)
    swap = f", {planned.models.fallback} after a rate limit or timeout"
    print_line(f"model: {planned.models.first}{swap if planned.models.fallback else ''}")
    section = None
    for task in state.tasks:
        if task.section != section:
            section = task.section
            print_line(f"\n{one_line(task.group, 200)}")
        todo = _TO_DO.get(task.status, task.status)
        print_line(f"  {task.index + 1:>4}  {todo:<9}  {one_line(task.task, 200)}")
    for line in not_taken(planned.file):
        print_notice(line)
    # a task that was running left changes that the next run puts back first
    if not begun:
        planned.isolation.check()
    return EXIT_DONE


async def _work(planned: RunPlan, options: Options) -> int:
    numbered = planned.at_once > 1 or options.batch.batch_api or options.batch.on is not None
    printer = _Printer(json_=options.json, total=len(planned.file.tasks), numbered=numbered)
    clock = SystemClock()
    leave: Callable[[], None] | None = None
    if options.batch.batch_api:
        from tui.batch.batch_api import BatchApiRun  # noqa: PLC0415 - seldom needed

        shop = runner = BatchApiRun(planned, printer.show, clock=clock, cancel=options.batch.cancel)
    else:
        shop = await open_run(planned, options, printer, None, clock)
        runner = shop.runner
        leave = runner.leave
    # a terminal that was closed leaves the tasks to the next run; a closed pipe stops them
    printer.on_lost = leave if leave and sys.stdout.isatty() else runner.stop
    if options.batch.retry_failed:
        runner.take_up_failed()
    with heeded_signals(lambda: _stop(runner), leave):
        try:
            async with refreshed_models(planned.launch, clock):
                state = await runner.run()
            summary = RunSummary(state, runner.reason, printer.seconds)
            written = write_summary(summary, planned)
        finally:
            await shop.close()
    if not options.json:
        printer.line("")
        printer.line(summary.text(width=width()).rstrip("\n"))
        printer.line(f"Summary: {', '.join(shorten(path) for path in written)}")
    return EXIT_FAILED if printer.lost else exit_code(runner, state)


class _Printer:
    """The only writer to stdout. When nobody can read it any more, the run is stopped."""

    def __init__(self, *, json_: bool, total: int, numbered: bool) -> None:
        self._json, self._total, self._numbered = json_, total, numbered
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
            for line in event.to_lines():
                self.line(json.dumps(line, ensure_ascii=True, separators=(",", ":")))
        else:
            for text in lines_of(event, total=self._total, numbered=self._numbered):
                self.line(text)

    def line(self, text: str) -> None:
        if self.lost:
            return
        try:
            print_text(text)
            sys.stdout.flush()
        except OSError:
            self.lost = True
            self.on_lost()


def _stop(runner: AnyRunner) -> None:
    print_notice("Stopping and saving progress." if not runner.stopping else "Still saving.")
    runner.stop()

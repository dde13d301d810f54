"""`run --status`, `--dry-run` and `--reset`: nothing is worked on."""

from __future__ import annotations

import json

import msgspec

from tui.agent.event_text import when
from tui.app import launch_config as launching
from tui.app.options.arguments import Options
from tui.batch.command.output import EXIT_DONE, print_line, print_notice, width
from tui.batch.command.plan import RunPlan, real_task_file
from tui.batch.events import RunStarted
from tui.batch.report import RunSummary, lines_of, one_line
from tui.batch.run_store import read_tasks
from tui.batch.state import RunFolder, RunState, begin
from tui.core.errors import UsageError
from tui.core.paths import shorten


def reset(options: Options) -> int:
    """Remove state and logs."""
    folder = RunFolder(launching.workspace_of(options))
    if not folder.path.is_dir():
        print_notice("There is no run here.")
        return EXIT_DONE
    with folder.locked():
        folder.reset()
    print_notice(f"Forgotten: state and logs in {shorten(folder.path)}. The next run begins anew.")
    return EXIT_DONE


def status(options: Options) -> int:
    """Show how far the run of a folder is."""
    folder = RunFolder(launching.workspace_of(options))
    state = folder.load()
    if state is None:
        if options.tasks is None:
            raise UsageError(
                f"There is no run in {shorten(folder.target)}.",
                hint="holdfast run TASKS.md begins one.",
            )
        path = real_task_file(options.tasks)
        state = begin(path, read_tasks(path), now="")
    elif options.tasks is not None and str(real_task_file(options.tasks)) != state.task_file:
        raise UsageError(f"The run here is of {state.task_file}.", hint="Name that file, or none.")
    if options.json:
        print_line(json.dumps(msgspec.to_builtins(state), ensure_ascii=True))
    else:
        print_line(f"{shorten(state.task_file)}: {_how(state, folder)}")
        print_line("\n" + RunSummary(state).text(width=width()).rstrip("\n"))
    return EXIT_DONE


def _how(state: RunState, folder: RunFolder) -> str:
    """Whether the run has begun, and whether somebody works on it."""
    if not state.started_at:
        return "not begun"
    begun = f"begun {when(state.started_at)}"
    if folder.worked_on():
        return f"{begun}, at work now"
    if any(task.status == "running" for task in state.tasks):
        return f"{begun}, killed; the next run takes up the task that was running"
    return begun


def dry_run(planned: RunPlan) -> int:
    """Show what a run would do. Nothing is written, not even the folder of the state."""
    folder = RunFolder(planned.target)
    state = folder.load_for(planned.task_file, planned.file)
    if state is None or not any(task.status == "running" for task in state.tasks):
        planned.isolation.check()
    if state is None:
        state = begin(planned.task_file, planned.file, now="")
    done = state.counts().get("completed", 0)
    started = RunStarted(
        str(planned.task_file), len(state.tasks), done, planned.boot.shown, planned.isolation.name
    )
    for line in lines_of(started):
        print_line(line)
    swap = f", {planned.models.fallback} after a rate limit or timeout"
    print_line(f"model: {planned.models.first}{swap if planned.models.fallback else ''}")
    section = None
    for task in state.tasks:
        if task.section != section:
            section = task.section
            print_line(f"\n{one_line(task.group, 200)}")
        todo = "run" if task.status in {"pending", "interrupted", "running"} else task.status
        print_line(f"  {task.index + 1:>4}  {todo:<9}  {one_line(task.task, 200)}")
    return EXIT_DONE

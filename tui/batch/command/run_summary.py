"""How a run ends: its exit code, and its summary where it goes."""

from __future__ import annotations

from pathlib import Path

from tui.batch.command.output import told
from tui.batch.command.plan import Plan
from tui.batch.report import Summary
from tui.batch.runner import Runner
from tui.batch.state import RunFolder, RunState
from tui.core.storage.atomic_files import replace_file

EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 3, 130


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
            told(f"The summary could not be written to {path}: {error.strerror or error}.")
    return done

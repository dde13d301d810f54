"""What `run` prints and returns: its lines, its summary files and its exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from tui.batch.command.plan import RunPlan
from tui.batch.report import RunSummary
from tui.batch.runner import Runner
from tui.batch.state import RunFolder, RunState
from tui.core.errors import StorageError
from tui.core.files import replace_file


def width() -> int:
    """The width of the terminal on stdout; 100 where there is none."""
    with suppress(OSError):
        return os.get_terminal_size(sys.stdout.fileno()).columns
    return 100


def print_line(text: str) -> None:
    """A line of data. Raises StorageError, or BrokenPipeError when nobody reads."""
    try:
        sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(f"Standard output cannot be written: {error}.") from error


def print_notice(text: str) -> None:
    """A line for the person."""
    with suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


EXIT_DONE, EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 0, 1, 3, 130


def exit_code(runner: Runner, state: RunState) -> int:
    """INTERFACE's exit code of a run that ended."""
    if runner.reason in {"interrupted", "paused"}:
        return EXIT_INTERRUPTED
    if runner.fatal_class == "auth":
        return EXIT_REFUSED
    done = all(task.status == "completed" for task in state.tasks)
    return EXIT_DONE if done else EXIT_FAILED


def write_summary(summary: RunSummary, planned: RunPlan) -> list[Path]:
    """Write the summary where it goes. Returns where it went; what fails is said."""
    own = RunFolder(planned.target).summary_file
    wanted = [own] if planned.summary is None else [own, planned.summary]
    done: list[Path] = []
    for path in wanted:
        try:
            replace_file(path, summary.markdown().encode())
            done.append(path)
        except OSError as error:
            print_notice(f"The summary could not be written to {path}: {error.strerror or error}.")
    return done

"""The output of `-p`: facts as data or for the person, and the exit code.

Data goes to standard output; errors, notices, retries and debug go to standard error.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Literal, TextIO, TypeAlias

from tui.app.outcome import Outcome
from tui.core import facts
from tui.core.errors import StorageError
from tui.core.fact_words import fact_lines
from tui.core.facts import Fact
from tui.core.text_cleaning import clean

Format: TypeAlias = Literal["text", "json", "stream-json", "claude-stream-json"]

EXIT_DONE, EXIT_FAILED, EXIT_CREDENTIALS, EXIT_INTERRUPTED = 0, 1, 3, 130


def exit_code(outcome: Outcome) -> int:
    """Return the exit code for the outcome of a run."""
    if outcome.outcome == "done":
        return EXIT_DONE
    if outcome.outcome == "interrupted":
        return EXIT_INTERRUPTED
    return EXIT_CREDENTIALS if outcome.error_class == "auth" else EXIT_FAILED


def write_event(event: Fact, format_: Format, out: TextIO, err: TextIO) -> None:
    """Write one fact: as data if that is asked for, and whatever the person should know."""
    if format_ == "stream-json" and not isinstance(event, facts.Alive):
        for line in event.to_lines():
            write_line(out, json_line(line))
    to_stderr(err, *fact_lines(event))
    if isinstance(event, facts.Debug) and format_ == "text":
        to_stderr(err, event.text)


def json_line(value: object) -> str:
    """Return one line of JSON, in ASCII so that any terminal and any reader can take it."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def write_line(out: TextIO, text: str) -> None:
    """Write data. Raises BrokenPipeError if the reader has gone, otherwise StorageError."""
    try:
        out.write(f"{text}\n")
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise StorageError(
            f"Can't write to standard output: {error.strerror or error}.",
            hint="The session is saved: see `holdfast sessions list`.",
        ) from error


def to_stderr(err: TextIO, *lines: str) -> None:
    """Write for the person. An unreadable stderr must not end the turn."""
    with suppress(OSError):
        err.write("".join(f"{clean(line)}\n" for line in lines if line))
        err.flush()

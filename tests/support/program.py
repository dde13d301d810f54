"""The program as a process without a terminal: what it writes, where, and its exit code."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Any

from tests.support import preloaded
from tests.support.clock import PATIENCE_S
from tests.support.json_schema import check_event
from tests.support.preloaded import Process
from tests.support.terminal import HOLDFAST


@dataclass(frozen=True)
class Done:
    """A process that ended. What it wrote is UTF-8, or reading it fails the test."""

    code: int
    out: bytes
    err: bytes

    @property
    def stdout(self) -> str:
        return self.out.decode()

    @property
    def stderr(self) -> str:
        return self.err.decode()

    @property
    def object(self) -> dict[str, Any]:
        """What `--output-format json` gave: one object on one line, nothing else."""
        (line,) = self.stdout.splitlines()
        return json.loads(line)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What `--output-format stream-json` gave: each as its schema says."""
        events = [json.loads(line) for line in self.stdout.splitlines()]
        for event in events:
            check_event(event)
        return events


@dataclass(frozen=True)
class Program:
    """Starts `holdfast` in a folder with an environment."""

    work: Path
    env: Mapping[str, str]

    def __call__(
        self,
        *argv: str,
        stdin: str | bytes = b"",
        code: int = 0,
        env: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> Done:
        """Run it to its end. Fails on another exit code, and on a traceback anywhere.

        `env` is added to the environment. A `fresh` one is a process that has imported nothing.
        """
        with self._begun(argv, env or {}, fresh=fresh) as process:
            given = stdin.encode() if isinstance(stdin, str) else stdin
            try:
                out, err = process.communicate(given, PATIENCE_S)
            finally:
                process.kill()
        ended = process.returncode
        assert ended == code, (ended, out, err)
        assert b"Traceback" not in out + err, err
        return Done(code, out, err)

    def _begun(self, argv: Sequence[str], env: Mapping[str, str], *, fresh: bool) -> Process:
        words, pipe = [*HOLDFAST, *argv], subprocess.PIPE
        env = {**self.env, **env}
        if fresh:
            return subprocess.Popen(
                words, cwd=self.work, env=env, stdin=pipe, stdout=pipe, stderr=pipe
            )
        return preloaded.start(words, cwd=self.work, env=env, stdin=pipe, stdout=pipe, stderr=pipe)

    def lines(self, *argv: str, code: int = 0) -> list[dict[str, Any]]:
        """The events of a run."""
        return self(*argv, "--output-format", "stream-json", code=code).events

    @contextmanager
    def started(self, *argv: str) -> Generator[Process]:
        """Start it, to read its stdout line by line. Killed at the end, or after `PATIENCE_S`."""
        with preloaded.start(
            [*HOLDFAST, *argv], cwd=self.work, env=self.env, stdout=subprocess.PIPE, text=True
        ) as process:
            watchdog = Timer(PATIENCE_S, process.kill)
            watchdog.start()
            try:
                yield process
            finally:
                watchdog.cancel()
                process.kill()


def until(process: Process, kind: str, text: str = "") -> dict[str, Any]:
    """The next event of a type on a started program's stdout whose text holds `text`."""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["type"] == kind and text in event.get("text", ""):
            return event
    raise AssertionError(f"it ended without {kind} {text!r}")


def of_type(events: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """The events of one type, in order."""
    return [event for event in events if event["type"] == kind]

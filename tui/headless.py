"""`holdfast -p`: one prompt, its answer on stdout. The only writer to stdout besides the CLI.

The same events as the full screen, as plain text, one JSON object, or one JSON line an event.
What is not data (errors, notices, retries, debug) goes to stderr.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO, TypeAlias

from tui.agent import events
from tui.agent.agent import Agent
from tui.agent.events import Event, to_json
from tui.clock import Clock

Format: TypeAlias = Literal["text", "json", "stream-json"]

EXIT_DONE, EXIT_FAILED, EXIT_CREDENTIALS, EXIT_INTERRUPTED = 0, 1, 3, 130


@dataclass(slots=True)
class Outcome:
    """What a headless run came to, gathered from its events."""

    session_id: str | None = None
    model: str = ""
    result: str = ""
    error_class: str | None = None
    outcome: str = "failed"
    usage: dict[str, int] = field(default_factory=dict[str, int])
    cost_usd: float | None = None
    cuts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def see(self, event: Event) -> None:
        match event:
            case events.SessionStarted():
                self.session_id, self.model = event.session_id, event.model
            case events.RequestSent():
                self.model = event.model
            case events.AssistantMessage():
                self.result = event.text or self.result
            case events.ToolFinished(receipt=receipt) if receipt:
                self.cuts.append(receipt)
            case events.ErrorRaised():
                self.error_class = event.error_class
            case events.TurnFinished():
                self.outcome = event.outcome
                self.usage = event.usage.to_json()
                self.cost_usd = event.cost_usd
            case _:
                pass

    @property
    def exit_code(self) -> int:
        """INTERFACE's exit codes."""
        if self.outcome == "done":
            return EXIT_DONE
        if self.outcome == "interrupted":
            return EXIT_INTERRUPTED
        return EXIT_CREDENTIALS if self.error_class == "auth" else EXIT_FAILED

    def to_json(self, *, turns: int, duration_ms: int) -> dict[str, Any]:
        return {
            "session_id": self.session_id,
            "result": self.result,
            "is_error": self.outcome != "done",
            "error_class": self.error_class,
            "turns": turns,
            "usage": self.usage,
            "cost_usd": self.cost_usd,
            "duration_ms": duration_ms,
            "model": self.model,
            "cuts": self.cuts,
        }


async def run(
    agent: Agent,
    prompt: str,
    *,
    attached: str = "",
    format_: Format,
    clock: Clock,
) -> int:
    """Send one prompt, with `attached` (standard input) behind it, and write what comes of it.

    Returns the exit code; closes the agent. SIGINT, SIGTERM and SIGHUP interrupt the turn, which
    is then recorded as interrupted.
    """
    out, err = sys.stdout, sys.stderr
    outcome, started = Outcome(), clock.monotonic()
    try:
        with _interrupted_by_signals(agent):
            for event in await agent.start():
                outcome.see(event)
                _write(event, format_, out, err)
            async for event in agent.send(prompt, attached=attached):
                outcome.see(event)
                _write(event, format_, out, err)
    finally:
        await agent.close()
    if format_ == "text" and outcome.result and outcome.outcome == "done":
        _line(out, outcome.result)
    elif format_ == "json":
        elapsed = round((clock.monotonic() - started) * 1000)
        _line(out, _dump(outcome.to_json(turns=agent.requests, duration_ms=elapsed)))
    return outcome.exit_code


def _write(event: Event, format_: Format, out: TextIO, err: TextIO) -> None:
    if format_ == "stream-json":
        _line(out, _dump(to_json(event)))
    match event:
        case events.ErrorRaised():
            _line(err, f"{event.error_class}: {event.message} {event.hint}".rstrip())
        case events.RetryScheduled():
            _line(
                err,
                f"{event.reason} Retry {event.attempt} of {event.max_attempts} "
                f"in {event.delay_s:.0f} s.",
            )
        case events.Notice():
            _line(err, event.text)
        case events.StorageChanged(saved=False):
            _line(err, f"Not saved: {event.detail}")
        case events.RepairApplied():
            _line(err, f"The session was damaged: {len(event.findings)} repairs in memory.")
        case events.PermissionAnswered(answer="no" | "deny"):
            _line(err, f"{event.name} was not allowed: {event.reason}")
        case events.Debug() if format_ == "text":
            _line(err, event.text)
        case _:
            pass


def _dump(value: dict[str, Any]) -> str:
    """One line of JSON that any terminal and any reader can take."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _line(stream: TextIO, text: str) -> None:
    stream.write(text.encode("utf-8", "replace").decode() + "\n")
    stream.flush()


@contextmanager
def _interrupted_by_signals(agent: Agent) -> Generator[None]:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        loop.add_signal_handler(number, agent.cancel)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)

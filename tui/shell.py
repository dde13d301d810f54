"""The person's own commands (`!pytest`): shown like a tool's, and unknown to the model."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable
from pathlib import Path

from tui.agent import events
from tui.agent.events import Event
from tui.clock import Clock
from tui.errors import HoldfastError

TICK_S = 0.1
KEPT_CHARS = 8000
"""The end of the output that is shown with the result."""

_numbers = itertools.count(1)


async def run(command: str, cwd: Path, clock: Clock, show: Callable[[Event], None]) -> None:
    """Run a command in a folder and show what it prints. Cancelling stops it; nothing raises."""
    from tui.tools.process import Process, outcome  # noqa: PLC0415 - not for the first frame

    id_, started = f"shell-{next(_numbers)}", clock.monotonic()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    heard: list[bytes] = []
    text = ""

    def hear(*, final: bool = False) -> str:
        new = decoder.decode(b"".join(heard), final=final)
        heard.clear()
        if new:
            show(events.ToolOutputChunk(id_, new))
        return (text + new)[-KEPT_CHARS:]

    show(events.ToolStarted(id_, "shell", {"command": command}, command))
    code, words = 1, "stopped"
    try:
        process = await Process.start(command, cwd=cwd, sink=heard.append)
        try:
            while not await process.wait(TICK_S):
                text = hear()
            await process.drain()
        finally:
            process.close()
        code, words = outcome(process.returncode or 0)
    except HoldfastError as error:
        text = str(error)
    finally:
        text = hear(final=True)
        seconds = clock.monotonic() - started
        summary = f"{words} · not shown to the model"
        show(events.ToolFinished(id_, "shell", code != 0, seconds, None, summary, text))

"""The person's own commands (`!pytest`): shown like a tool's, and unknown to the model."""

from __future__ import annotations

import asyncio
import codecs
import itertools
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tui.agent import events
from tui.agent.events import Event
from tui.clock import Clock
from tui.context.untrusted import wrap
from tui.errors import HoldfastError

if TYPE_CHECKING:
    from tui.tools.process import Process

KEPT_CHARS = 8000
"""The end of the output that is shown with the result."""
SLICE = 256 * 1024
"""So many bytes are read ahead of what is shown: they are shown in some 3 ms."""
PAUSE_S = 0.005
"""Between two slices, for keys and frames."""

_numbers = itertools.count(1)


async def run(
    command: str, cwd: Path, clock: Clock, show: Callable[[Event], None], *, told: bool = False
) -> str:
    """Run a command in a folder and show what it prints. Cancelling stops it; nothing raises.

    Returns the end of its output and how it ended. `told` is whether the model will see that. A
    command that prints faster than can be shown waits.
    """
    from tui.tools.process import Process, outcome  # noqa: PLC0415 - not for the first frame

    id_, started = f"shell-{next(_numbers)}", clock.monotonic()
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    end, length = "", 0

    def hear(data: bytes, *, final: bool = False) -> None:
        nonlocal end, length
        if text := decoder.decode(data, final=final):
            show(events.ToolOutputChunk(id_, text))
            end = (end + text[-KEPT_CHARS:])[-KEPT_CHARS:]
            length += len(text)

    show(events.ToolStarted(id_, "shell", {"command": command}, command))
    code, words, slices = 1, "stopped", Slices()
    try:
        process = await Process.start(command, cwd=cwd, sink=slices.put)
        ending = asyncio.create_task(_end(process, slices))
        try:
            while data := await slices.take():
                hear(data)
                await asyncio.sleep(PAUSE_S)
        finally:
            ending.cancel()
            slices.end()
            process.close()
        code, words = outcome(process.returncode or 0)
    except HoldfastError as error:
        end = str(error)
    finally:
        hear(slices.rest(), final=True)
        seconds = clock.monotonic() - started
        seen = "goes along with your next prompt" if told else "not shown to the model"
        summary = f"{words} · {seen}"
        show(events.ToolFinished(id_, "shell", code != 0, seconds, None, summary, end))
    left = length - len(end)
    cut = f"… {left:,} characters before this are left out …\n" if left > 0 else ""
    return f"{cut}{end.rstrip()}\n({words})"


def attachment(command: str, heard: str) -> str:
    """What the model is told of a command that the person ran: marked as data (R25)."""
    return f"I ran `{command}` myself. Its output:\n{wrap(heard, f'shell: {command}')}"


async def _end(process: Process, slices: Slices) -> None:
    await process.wait(None)
    await process.drain()
    slices.end()  # or the thread might wait for room, and closing for the thread
    process.close()


class Slices:
    """Bytes from a thread for the event loop: a slice at a time, and the thread waits for it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._come = asyncio.Event()
        self._taken = threading.Condition()
        self._held: list[bytes] = []
        self._size = 0
        self._ended = False

    def put(self, data: bytes) -> None:
        """In the thread: hand over, once there is room (or nobody waits for more)."""
        with self._taken:
            self._taken.wait_for(lambda: self._size < SLICE or self._ended)
            self._held.append(data)
            self._size += len(data)
        self._wake()

    async def take(self) -> bytes:
        """What has come since; b"" at the end."""
        while not self._size and not self._ended:
            await self._come.wait()
            self._come.clear()
        return self.rest()

    def rest(self) -> bytes:
        """What is there now."""
        with self._taken:
            data = b"".join(self._held)
            self._held.clear()
            self._size = 0
            self._taken.notify()
        return data

    def end(self) -> None:
        """No more is waited for, on either side; to be called from either."""
        with self._taken:
            self._ended = True
            self._taken.notify()
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._come.set)

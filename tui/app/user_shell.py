"""The person's own commands (`!pytest`): shown like a tool's, and unknown to the model."""

from __future__ import annotations

import asyncio
import codecs
import itertools
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui.agent import events
from tui.agent.events import Event
from tui.context.untrusted import wrap
from tui.core.clock import Clock
from tui.core.errors import HoldfastError

if TYPE_CHECKING:
    from tui.agent.tool_results import ShellOutput
    from tui.tools.output_capture import Capture, Spill
    from tui.tools.process import Process

KEPT_CHARS = 8000
"""The end of the output that is shown with the result."""
SLICE = 256 * 1024
"""How many bytes are read ahead of what is shown, and one read more: they take some 3 ms each."""
STOPPED = "stopped"
"""The summary of a command that was cancelled: the model is not told of it."""
PAUSE_S = 0.005
"""Between two slices, for keys and frames."""

_numbers = itertools.count(1)


async def run(
    command: str,
    cwd: Path,
    clock: Clock,
    show: Callable[[Event], None],
    *,
    shared: bool = False,
    keeping: ShellOutput | None = None,
) -> str:
    """Run a command in a folder and show what it prints. Cancelling stops it; nothing raises.

    Returns its output and how it ended. `shared` is whether the model will see that: it is then cut
    like a tool's, and `keeping` has the full copy. Without one only the end of it is returned. A
    command that prints faster than can be shown waits. One that is moved to the background is over
    here.
    """
    from tui.agent.tool_results import drop  # noqa: PLC0415 - not for the first frame
    from tui.tools.process import outcome  # noqa: PLC0415 - as above

    id_, started = f"shell-{next(_numbers)}", clock.monotonic()
    capture = keeping.capture(id_) if keeping and shared else None
    show(events.ToolStarted(id_, "shell", {"command": command}, command))
    printed, slices = _CommandOutput(id_, show), ByteSlices()
    code, words, heard, receipt = 1, "not started", "", None
    try:
        front = _Front(command, id_, started, clock, keeping, hidden=not shared)
        ended = await _run(front, cwd, slices, printed, capture)
        code, words = ended if isinstance(ended, tuple) else outcome(ended)
        if keeping and capture:
            heard, receipt = await keeping.cut(capture, id_, words, code)
    except HoldfastError as error:
        printed.end = str(error)
    except asyncio.CancelledError:
        words = STOPPED
        if capture:
            drop(capture)
        raise
    finally:
        printed.add(slices.rest(), final=True)
        seconds = clock.monotonic() - started
        seen = "goes with your next prompt" if shared else "hidden from the model"
        summary = words if words == STOPPED else f"{words} · {seen}"
        show(events.ToolFinished(id_, "shell", code != 0, seconds, receipt, summary, printed.end))
    return heard or f"{printed.omitted}{printed.end.rstrip()}\n({words})"


@dataclass(frozen=True, slots=True)
class _Front:
    """A command that runs in front, and what is known of it where it is moved."""

    command: str
    id: str
    started: float
    clock: Clock
    keeping: ShellOutput | None
    hidden: bool

    def in_front(self) -> AbstractContextManager[asyncio.Event]:
        return self.keeping.in_front() if self.keeping else nullcontext(asyncio.Event())

    async def move(self, process: Process, copy_to: Callable[[Spill], None]) -> tuple[int, str]:
        """Keep it in the background; in the place of an end, what became of it."""
        from tui.tools.jobs import Origin  # noqa: PLC0415 - not for the first frame

        assert self.keeping is not None
        seconds = self.clock.monotonic() - self.started
        origin = Origin(self.id, "person", self.hidden, seconds)
        job = await self.keeping.move(self.command, process, copy_to, origin)
        assert job is not None
        return 0, f"moved to the background, still running as {job.id}"


async def _run(
    front: _Front,
    cwd: Path,
    slices: ByteSlices,
    printed: _CommandOutput,
    capture: Capture | None,
) -> int | tuple[int, str]:
    """Returns the return code; whatever ends it, the command and its reader are gone then. Where it
    was moved, what became of it instead."""
    from tui.tools.process import Process  # noqa: PLC0415 - as above

    def take(data: bytes) -> None:
        if capture:
            capture.feed(data)
        slices.put(data)

    process = await Process.start(front.command, cwd=cwd, sink=take)
    moved = False
    with front.in_front() as wanted:
        ending = asyncio.create_task(_end(process, slices))
        moving = asyncio.create_task(_until(wanted, slices))
        try:
            while data := await slices.take():
                printed.add(data)
                await asyncio.sleep(PAUSE_S)
            if wanted.is_set() and not ending.done():
                moved = True
                ending.cancel()
                copy_to = capture.copy_to if capture else partial(_copy_shown, printed, slices)
                return await front.move(process, copy_to)
        finally:
            ending.cancel()
            moving.cancel()
            slices.end()
            if not moved:
                process.close()
            if capture:
                capture.close()
    return process.returncode or 0


def _copy_shown(printed: _CommandOutput, slices: ByteSlices, other: Spill) -> None:
    """Of what is kept nowhere, write what is still at hand into a file. Blocks."""
    other.write(f"{printed.omitted}{printed.end}".encode())
    other.write(slices.peek())


async def _until(wanted: asyncio.Event, slices: ByteSlices) -> None:
    """Show no more once the command is to be moved."""
    await wanted.wait()
    slices.end()


class _CommandOutput:
    """What a command printed, shown as it comes. `end` is the last of it."""

    def __init__(self, id_: str, show: Callable[[Event], None]) -> None:
        self.end = ""
        self._length = 0
        self._id, self._show = id_, show
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, data: bytes, *, final: bool = False) -> None:
        if text := self._decoder.decode(data, final=final):
            self._show(events.ToolOutputChunk(self._id, text))
            self.end = (self.end + text[-KEPT_CHARS:])[-KEPT_CHARS:]
            self._length += len(text)

    @property
    def omitted(self) -> str:
        left = self._length - len(self.end)
        if left <= 0:
            return ""
        return f"… {left:,} earlier characters are left out and not kept …\n"


def attachment(command: str, heard: str) -> str:
    """What the model is told about a command that the person ran: marked as data."""
    return f"I ran `{command}` myself. Its output:\n{wrap(heard, f'shell: {command}')}"


async def _end(process: Process, slices: ByteSlices) -> None:
    await process.wait(None)
    await process.drain()
    slices.end()  # or the thread might wait for room, and closing for the thread
    process.close()


class ByteSlices:
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

    def peek(self) -> bytes:
        """What is there now, which stays."""
        with self._taken:
            return b"".join(self._held)

    def end(self) -> None:
        """No more is waited for, on either side; to be called from either."""
        with self._taken:
            self._ended = True
            self._taken.notify()
        self._wake()

    def _wake(self) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._come.set)

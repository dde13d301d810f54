"""The person's own commands (`!pytest`): shown like a tool's, and unknown to the model."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from secrets import token_hex
from tempfile import gettempdir
from typing import TYPE_CHECKING

from tui.context.untrusted import wrap
from tui.core import facts
from tui.core.clock import Clock
from tui.core.dataclass import dataclass
from tui.core.errors import HoldfastError
from tui.core.facts import Fact
from tui.core.text_cleaning import current_lines

if TYPE_CHECKING:
    from tui.agent.shell_output import ShellOutput
    from tui.keeper.command import SupervisedCommand
    from tui.tools.output_capture import Capture

KEPT_CHARS = 8000
"""The end of the output that is shown with the result."""
SLICE = 256 * 1024
"""Number of bytes that are shown at once: they take some 3 ms."""
STOPPED = "stopped"
"""The summary of a command that was cancelled: the model does not hear of it."""
PAUSE_S = 0.005
"""Between two slices, for keys and frames."""
FLOOD = 64 * 1024**2
"""Bytes that an output may be behind; of one that is further behind, a part is passed over."""
_TICK_S = 0.05
_GONE_S = 5.0

_numbers = itertools.count(1)


async def run(
    command: str,
    cwd: Path,
    clock: Clock,
    show: Callable[[Fact], None],
    *,
    shared: bool = False,
    keeping: ShellOutput | None = None,
) -> str:
    """Run a command in a folder and show what it prints. Cancelling stops it; nothing raises.

    Returns its output and how it ended. `shared` is whether the model will see that: it is then cut
    like a tool's, and `keeping` has the full copy. Without one only the end of it is returned. One
    that is moved to the background is over here.
    """
    from tui.agent.shell_output import drop  # noqa: PLC0415 - not for the first frame
    from tui.core.config import Guard  # noqa: PLC0415 - as above
    from tui.tools.output_capture import Capture  # noqa: PLC0415 - as above
    from tui.tools.process import outcome  # noqa: PLC0415 - as above

    id_, started = f"shell-{next(_numbers)}", clock.monotonic()
    capture = Capture(keeping.limits.config if keeping else Guard())
    show(facts.ToolStarted(id_, "shell", {"command": command}, command))
    printed = _CommandOutput(id_, show)
    code, words, heard, receipt = 1, "not started", "", None
    try:
        front = _Front(command, id_, started, clock, keeping, hidden=not shared)
        ended = await front.run(cwd, printed, capture)
        code, words = ended if isinstance(ended, tuple) else outcome(ended)
        if keeping and shared:
            heard, receipt = await keeping.cut(capture, id_, words, code)
    except HoldfastError as error:
        printed.end = str(error)
    except asyncio.CancelledError:
        words = STOPPED
        drop(capture)
        raise
    finally:
        # however it ended, its card ends
        seconds = clock.monotonic() - started
        seen = "goes with your next prompt" if shared else "hidden from the model"
        summary = words if words == STOPPED else f"{words} · {seen}"
        show(facts.ToolFinished(id_, "shell", code != 0, seconds, receipt, summary, printed.end))
    return heard or f"{printed.omitted}{printed.end.rstrip()}\n({words})"


@dataclass(frozen=True, slots=True)
class _Front:
    """A command that runs in front, and what is known of it where it is moved."""

    line: str
    id: str
    started: float
    clock: Clock
    keeping: ShellOutput | None
    hidden: bool

    async def run(
        self, cwd: Path, printed: _CommandOutput, capture: Capture
    ) -> int | tuple[int, str]:
        """Returns the return code; whatever ends it, nothing of the command runs then. Where it was
        moved, what became of it instead."""
        from tui.core.cancellation import to_the_end  # noqa: PLC0415 - not for the first frame
        from tui.core.config import Guard  # noqa: PLC0415 - as above
        from tui.keeper.command import PlainStarter  # noqa: PLC0415 - as above
        from tui.tools.process import start_command  # noqa: PLC0415 - as above

        keeping, own = self.keeping, None if self.keeping else PlainStarter()
        place = Path(gettempdir()) / f"holdfast-{token_hex(8)}"
        # In front already now: a start may take its time, and the person may want it moved.
        with keeping.in_front() if keeping else nullcontext(asyncio.Event()) as wanted:
            command = await start_command(
                self.line,
                cwd=cwd,
                folder=place / self.id,
                call={"call_id": self.id, "at": self.clock.now().isoformat()},
                limits=keeping.limits.config if keeping else Guard(),
                env=keeping.environment if keeping else None,
                starter=keeping.starter if keeping else own or PlainStarter(),
                timeout=0.0,  # no call waits for it: it ends with the program, unless it is moved
            )
            moved = False
            try:
                while await self._shown(command, printed, capture):
                    if moved := wanted.is_set() and command.end is None:
                        return await self._move(command)
            finally:
                if not moved:
                    printed.add(await to_the_end(_gone(command, capture, self._place)))
                if own is not None:
                    await asyncio.to_thread(own.close)
        return command.end.returncode if command.end else 0

    async def _shown(
        self, command: SupervisedCommand, printed: _CommandOutput, capture: Capture
    ) -> bool:
        """Show what is new, a slice at a time. Returns True if more may come."""
        over = command.end is not None
        behind = command.size - command.read_up_to - FLOOD
        if behind > 0:
            command.read_up_to += behind
            printed.skip(behind)
            capture.skip(behind)
        if data := await asyncio.to_thread(command.read, SLICE):
            printed.add(await asyncio.to_thread(capture.feed, data), capture.picture)
            await asyncio.sleep(PAUSE_S)
            return True
        if not over:
            await command.wait(_TICK_S)
        return not over

    async def _move(self, command: SupervisedCommand) -> tuple[int, str]:
        """Keep it in the background; in the place of an end, what became of it."""
        from tui.tools.jobs import Origin  # noqa: PLC0415 - not for the first frame

        assert self.keeping is not None
        seconds = self.clock.monotonic() - self.started
        origin = Origin(self.id, "person", self.hidden, seconds)
        job = await self.keeping.move(command, origin)
        return 0, f"moved to the background, still running as {job.id}"

    @property
    def _place(self) -> Path | None:
        return self.keeping.place(self.id) if self.keeping and not self.hidden else None


async def _gone(command: SupervisedCommand, capture: Capture, place: Path | None) -> str:
    """End what still runs, keep what is to be kept, and remove the rest. Returns the last text."""
    command.kill()
    await command.wait(_GONE_S)

    def tidy() -> str:
        last = capture.close(command.end, command.output, place)
        command.discard()
        with suppress(OSError):
            command.folder.parent.rmdir()
        return last

    return await asyncio.to_thread(tidy)


class _CommandOutput:
    """The output of a command, shown as it comes. `end` is the last of it."""

    def __init__(self, id_: str, show: Callable[[Fact], None]) -> None:
        self.end = ""
        self._length = 0
        self._id, self._show = id_, show

    def add(self, text: str, picture: str = "") -> None:
        if text or picture:
            self._show(facts.ToolOutputChunk(self._id, text, picture))
            self._length += len(text)
            self.end = current_lines(self.end + text)[-KEPT_CHARS:]

    def skip(self, count: int) -> None:
        """Pass over bytes that come too fast to be shown."""
        self._show(facts.ToolOutputChunk(self._id, "\n[… output too fast to show …]\n"))
        self._length += count

    @property
    def omitted(self) -> str:
        left = self._length - len(self.end)
        if left <= 0:
            return ""
        return f"… {left:,} earlier characters are left out and not kept …\n"


def attachment(command: str, heard: str) -> str:
    """Make the text for the model about a command that the person ran: marked as data."""
    return f"I ran `{command}` myself. Its output:\n{wrap(heard, f'shell: {command}')}"

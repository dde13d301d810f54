"""A command under its keeper, as the program sees it: started by this run of the program, or left
running by an earlier one and taken over."""

from __future__ import annotations

import asyncio
import base64
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from secrets import token_hex
from time import monotonic, sleep
from typing import Any, Final, Literal, TypeAlias, cast

from tui.core.cancellation import to_the_end
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.keeper import folder as names
from tui.keeper.monitor import GRACE_S
from tui.keeper.parent import MonitorReport, UnreportedError, WarmParent

READ_BYTES: Final = 1 << 18
_POLL_S: Final = 0.05
_STEP_S: Final = 0.005
_END_S: Final = 5.0
"""Seconds to wait for the keeper's report once everything was killed."""
TERM: Final = "xterm-256color"
"""What a terminal is to the programs in it."""
_EMULATION: Final = ("pyte", "wcwidth")
"""The packages that emulate one."""
_GONE: Final = ".gone-"
"""The prefix of the name of a folder that is being removed."""


Kept: TypeAlias = Literal["", "unstarted", "running", "finished", "lost"]
"""The state of a folder's command: there is none, it was not started, it runs, it has ended and its
end is recorded, or it was started and its keeper is gone (or it is unknown if it was started,
because the machine was restarted since)."""


class StartedBeforeError(Exception):
    """A command is not started because its folder exists: one call starts one command."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The end of a command, with the figures of its output.

    `returncode` is negative if a signal ended it. `rest`: something that it had left running was
    stopped. `written` of all `bytes` are in the file; `stopped` says why no more ("limit" for the
    limit), and `tail` is then the end of the output. `timed_out`: the keeper ended it, because its
    time was over and no program was there. `lost`: its keeper was killed, so most is unknown.
    """

    returncode: int = -9
    rest: bool = False
    seconds: float = 0.0
    bytes: int = 0
    lines: int = 0
    written: int = 0
    sha256: str = ""
    stopped: str = ""
    tail: bytes = b""
    timed_out: bool = False
    lost: bool = False


@dataclass(frozen=True, slots=True)
class TerminalSize:
    """The cells of a command's terminal."""

    rows: int
    cols: int


@dataclass(frozen=True, slots=True)
class Keep:
    """The place where a command is kept (`folder`, which exists), the file that gets its output
    (open for reading and writing), and its limits. With a `terminal` it has one of that size, and
    the file gets a recording of it."""

    folder: Path
    output: int
    limit: int
    min_free: int
    timeout: float | None
    terminal: TerminalSize | None = None

    def to_json(self) -> dict[str, Any]:
        return {
            "folder": str(self.folder),
            "limit": self.limit,
            "min_free": self.min_free,
            "timeout": self.timeout,
            "terminal": _terminal_json(self.terminal) if self.terminal else None,
        }


def _terminal_json(size: TerminalSize) -> dict[str, Any]:
    """The settings that the keeper of a terminal gets. Blocks for a moment."""
    from importlib.util import find_spec  # noqa: PLC0415 - few commands have one

    from tui.keeper.mark import is_marked  # noqa: PLC0415 - as above

    found = (find_spec(name) for name in _EMULATION)
    places = {Path(spec.origin).parents[1] for spec in found if spec and spec.origin}
    marked = False
    with suppress(OSError):
        marked = is_marked("self")
    paths = sorted(map(str, places))
    return {"rows": size.rows, "cols": size.cols, "paths": paths, "marked": marked, "term": TERM}


Starter: TypeAlias = Callable[
    [Sequence[str], Path, Mapping[str, str], Keep], Awaitable["tuple[int, MonitorReport]"]
]
"""Starts a command: its words, its folder, its environment, and where it is kept. Returns its
process, and its keeper's report. Raises OSError or HoldfastError."""


class SupervisedCommand:
    """A command that runs, or has ended. Its keeper does not depend on this object.

    `end` is None as long as anything of it runs. The output can be read with `read` at any time.
    """

    def __init__(self, pid: int, folder: Path, output: int, call: Mapping[str, Any]) -> None:
        self.pid = pid
        self.folder = folder
        self.call = call
        """The program's note of what was run (`call` in the folder)."""
        self.end: CommandEnd | None = None
        self.read_up_to = 0
        self._output = output
        self._over = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        folder: Path,
        starter: Starter,
        call: Mapping[str, Any],
        limit: int,
        min_free: int,
        timeout: float | None = None,
        elsewhere: bool = True,
        terminal: TerminalSize | None = None,
    ) -> SupervisedCommand:
        """Run a program by its full path, kept in `folder`, which is made for it; with `elsewhere`
        in a temporary one if that can't be made.

        Raises StartedBeforeError if the folder exists; OSError, and whatever `starter` raises.
        """

        def run(made: _Made) -> Awaitable[tuple[int, MonitorReport]]:
            keep = Keep(made.folder, made.output, limit, min_free, timeout, terminal)
            return starter(argv, cwd, env, keep)

        starting = asyncio.ensure_future(
            _start(partial(_make, folder, call, elsewhere=elsewhere), run)
        )
        try:
            # A cancelled start must still end, or a command would run that nobody knows of.
            made, pid, report = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await to_the_end(_undo(starting))
            raise
        command = cls(pid, made.folder, made.output, call)
        command._watch = asyncio.create_task(command._until_report(report), name="command")
        return command

    @classmethod
    def take_over(cls, folder: Path) -> SupervisedCommand | None:
        """Take over a command of an earlier run; None if the folder has none. Blocks. Call it in
        the event loop's thread."""
        call, alive = note(folder, names.CALL), lives(folder)
        state = note(folder, names.STATE)  # read after the lock, so that it is final
        try:
            output = os.open(folder / names.OUTPUT, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return None
        pid = state.get("pid")
        command = cls(pid if isinstance(pid, int) else 0, folder, output, call)
        command._ended_by(state, alive=alive)
        if command.end is None:
            command._watch = asyncio.create_task(command._until_state(), name="command")
        return command

    @property
    def output(self) -> Path:
        """The file with its output."""
        return self.folder / names.OUTPUT

    @property
    def size(self) -> int:
        """Bytes of its output that are in the file by now."""
        return os.fstat(self._output).st_size

    def seconds(self, now: datetime) -> float:
        """Seconds that it has run or ran, from its noted start."""
        if self.end is not None and not self.end.lost:
            return self.end.seconds
        with suppress(ValueError, TypeError, KeyError):
            return max(0.0, (now - datetime.fromisoformat(str(self.call["at"]))).total_seconds())
        return 0.0

    def read(self, most: int = READ_BYTES) -> bytes:
        """Read the output since the last call; b"" for none. Blocks."""
        data = os.pread(self._output, most, self.read_up_to)
        self.read_up_to += len(data)
        return data

    def note(self, **changes: Any) -> None:
        """Change the note about it for a later run of the program. Blocks."""
        self.call = {**self.call, **changes}
        with suppress(OSError):
            _write_call(self.folder, self.call)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait at most `seconds` (None: as long as it takes); True if it has ended."""
        if seconds is None:
            await self._over.wait()
        else:
            with suppress(TimeoutError):  # not wait_for: before 3.12 it loses a cancellation
                async with asyncio.timeout(seconds):
                    await self._over.wait()
        return self._over.is_set()

    async def stop(self, clock: Clock) -> None:
        """Send SIGTERM to its group, and after two seconds SIGKILL to all of it. If cancelled, it
        kills at once. Returns when it has ended."""
        try:
            names.send(self.folder, names.END)
            until = clock.monotonic() + GRACE_S
            while clock.monotonic() < until and not await self.wait(_STEP_S):
                await clock.sleep(_POLL_S)
        finally:
            self.kill()
        await self.wait(_END_S)

    def kill(self) -> None:
        """Kill it without waiting."""
        if self.end is None:
            names.send(self.folder, names.KILL)

    def without_limit(self) -> None:
        """Lift its time limit from now on, also while no program is there."""
        names.send(self.folder, names.NO_LIMIT)

    def close(self) -> None:
        """Release it: if it runs, it continues. May be called again."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._output >= 0:
            os.close(self._output)
            self._output = -1

    def discard(self) -> None:
        """Release it and remove its folder: all of it is recorded elsewhere. Blocks."""
        self.close()
        remove(self.folder)

    async def _until_report(self, report: MonitorReport) -> None:
        try:
            if message := await report.next():
                self._ended_by(message, alive=True)
        finally:
            report.close()
        await self._until_state()

    async def _until_state(self) -> None:
        """Poll the state until it has the end, or the keeper is gone."""
        while self.end is None:
            alive = await asyncio.to_thread(lives, self.folder)
            state = await asyncio.to_thread(note, self.folder, names.STATE)
            self._ended_by(state, alive=alive)
            if self.end is None:
                await asyncio.sleep(_POLL_S)

    def _ended_by(self, state: Mapping[str, Any], *, alive: bool) -> None:
        status = state.get("status")
        if isinstance(status, int):
            self.end = _end_of(status, state)
        elif not alive or "error" in state:
            size = self.size if self._output >= 0 else 0
            self.end = CommandEnd(bytes=size, written=size, lost=True)
        else:
            return
        self._over.set()


def note(folder: Path, name: str) -> dict[str, Any]:
    """Read one of the JSON files of a folder; empty if it can't be read. Blocks."""
    with suppress(OSError, ValueError, RecursionError), (folder / name).open("rb") as file:
        content: object = json.loads(file.read(1 << 20))
        if isinstance(content, dict):
            return cast("dict[str, Any]", content)
    return {}


def lives(folder: Path) -> bool:
    """True if the keeper of a folder lives. Blocks."""
    try:
        file = os.open(folder / names.LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def state_of(folder: Path) -> Kept:
    """Determine the state of a folder's command, without changing anything. Blocks."""
    if not folder.is_dir():
        return ""
    if lives(folder):
        return "running"
    state = note(folder, names.STATE)  # read after the lock, so that it is final
    if isinstance(state.get("status"), int):
        return "finished"
    if "error" in state:
        return "lost" if state.get("pid") else "unstarted"
    boot = note(folder, names.CALL).get("boot")
    undecided = bool(boot) and boot == _boot() and not (folder / names.STATE).exists()
    return "unstarted" if undecided else "lost"


def forbid_start(folder: Path) -> bool:
    """True if the command of a folder was not started; it then never will be, even if a zygote
    still has the request. Blocks."""
    if state_of(folder) != "unstarted":
        return False
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        names.begin(place, error="not started")
    except FileExistsError:
        return state_of(folder) == "unstarted"
    except OSError:
        return False
    finally:
        os.close(place)
    return True


def remove(folder: Path) -> None:
    """Remove a folder whose keeper may still be writing the end. Blocks."""
    with suppress(OSError):
        gone = folder.with_name(f"{_GONE}{token_hex(8)}")
        folder.rename(gone)
        folder = gone
    until = monotonic() + _END_S
    while lives(folder) and monotonic() < until:
        sleep(_STEP_S)
    shutil.rmtree(folder, ignore_errors=True)


def command_folders(place: Path) -> list[Path]:
    """The folders of commands in a place, oldest first. Blocks."""
    with suppress(OSError):
        folders = [path for path in place.iterdir() if (path / names.CALL).is_file()]
        folders = [path for path in folders if not path.name.startswith(_GONE)]
        return sorted(folders, key=lambda path: (path.stat().st_mtime, path.name))
    return []


@dataclass(slots=True)
class PlainStarter:
    """Starts commands without walls, by a zygote of its own or a shared one."""

    parent: WarmParent = field(default_factory=WarmParent)

    async def __call__(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], keep: Keep
    ) -> tuple[int, MonitorReport]:
        spec = {"engine": "plain", "argv": list(argv), "cwd": str(cwd), "env": dict(env)}
        return await start_supervised(self.parent, lambda: spec, keep)

    def close(self) -> None:
        """End the zygote; kept commands continue. Blocks."""
        self.parent.close()


async def start_supervised(
    parent: WarmParent, make: Callable[[], dict[str, Any]], keep: Keep
) -> tuple[int, MonitorReport]:
    """Let a zygote start what `make` returns, kept. The process is 0 if its keeper was killed
    before it could report. Raises OSError with the monitor's reason."""
    report = MonitorReport()
    try:
        with report.theirs as theirs:
            await asyncio.to_thread(
                parent.request,
                lambda: make() | {"keep": keep.to_json()},
                keep.output,
                theirs.fileno(),
            )
        pid = await report.process()
    except UnreportedError:
        if not (keep.folder / names.STATE).exists():
            report.close()
            raise
        return 0, report  # its keeper was killed: it may have begun
    except BaseException:
        report.close()
        raise
    return pid, report


def _end_of(status: int, state: Mapping[str, Any]) -> CommandEnd:
    def number(name: str) -> int:
        value = state.get(name)
        return value if isinstance(value, int) else 0

    seconds, tail = state.get("seconds"), state.get("tail")
    try:
        code, end = os.waitstatus_to_exitcode(status), base64.b64decode(str(tail or ""))
    except ValueError:
        code, end = -9, b""
    return CommandEnd(
        returncode=code,
        rest=bool(state.get("rest")),
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        bytes=number("bytes"),
        lines=number("lines"),
        written=number("written"),
        sha256=str(state.get("sha256") or ""),
        stopped=str(state.get("stopped") or ""),
        tail=end,
        timed_out=bool(state.get("timed_out")),
    )


@dataclass(frozen=True, slots=True)
class _Made:
    folder: Path
    output: int


def _make(folder: Path, call: Mapping[str, Any], *, elsewhere: bool) -> _Made:
    """Make the folder with its first files. Raises OSError."""
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        if not elsewhere:
            raise
        return _made_elsewhere(call)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError as error:
        raise StartedBeforeError from error
    except OSError:
        if not elsewhere:
            raise
        return _made_elsewhere(call)
    try:
        return _Made(folder, _fill(folder, call))
    except OSError:
        shutil.rmtree(folder)  # its remains would say that nothing was started
        if not elsewhere:
            raise
        return _made_elsewhere(call)


def _made_elsewhere(call: Mapping[str, Any]) -> _Made:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-"))
    return _Made(folder, _fill(folder, call))


async def _start(
    make: Callable[[], _Made], run: Callable[[_Made], Awaitable[tuple[int, MonitorReport]]]
) -> tuple[_Made, int, MonitorReport]:
    """Make the folder, and start a command in it; the folder stays only if that succeeded."""
    made = await asyncio.to_thread(make)
    try:
        pid, report = await run(made)
    except BaseException:
        os.close(made.output)
        await to_the_end(asyncio.to_thread(remove, made.folder))
        raise
    return made, pid, report


async def _undo(starting: asyncio.Future[tuple[_Made, int, MonitorReport]]) -> None:
    """Kill a command that was just started and is not wanted any more: nobody would notice that it
    runs."""
    await asyncio.wait({starting})
    if starting.cancelled() or starting.exception() is not None:
        return
    made, _, report = starting.result()
    names.send(made.folder, names.KILL)
    report.close()
    os.close(made.output)
    await asyncio.to_thread(remove, made.folder)


def _fill(folder: Path, call: Mapping[str, Any]) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_APPEND
    output = os.open(folder / names.OUTPUT, flags, 0o600)
    try:
        _write_call(folder, call)
    except BaseException:
        os.close(output)
        raise
    return output


def _write_call(folder: Path, call: Mapping[str, Any]) -> None:
    new = folder / f"{names.CALL}.new"
    data = json.dumps({"version": names.VERSION, "boot": _boot(), **call}).encode()
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)
    new.replace(folder / names.CALL)


@cache
def _boot() -> str:
    """The id of the machine's current start; "" if not known."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""

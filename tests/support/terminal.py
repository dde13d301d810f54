"""A real program in a real pseudo-terminal: type, wait for words on its screen, kill it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from tests.support import preloaded
from tests.support.clock import PATIENCE_S
from tests.support.preloaded import Process
from tests.support.shown import Shown

XTERM = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


MARK = b"\x1b_end\x1b\\"


class Terminal:
    """One process in a pty of `columns` × `rows`. Killed, with its group, on exit."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        columns: int = 110,
        rows: int = 32,
        kind: Mapping[str, str] = XTERM,
        preload: Sequence[str] = (),
    ) -> None:
        """`kind` is what the terminal says of itself, in the place of what `env` says.

        With modules to `preload`, the program that `argv` names is forked from one that has them.
        """
        self.master, slave = pty.openpty()
        self.slave = slave
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        own = {name: value for name, value in env.items() if name not in XTERM}
        begin = partial(preloaded.start, preload=preload) if preload else subprocess.Popen
        self.process: Process = begin(
            argv,
            cwd=cwd,
            env={**own, **kind},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        self._raw, self._text, self.shown = b"", "", Shown()

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.slave)
        self.hang_up()

    def hang_up(self) -> None:
        """The terminal goes away, as when its window is closed; the program goes on."""
        if self.master >= 0:
            os.close(self.master)
            self.master = -1

    def resize(self, columns: int, rows: int) -> None:
        """Give the terminal another size, and tell the program where it runs."""
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        if hasattr(self, "process"):
            os.killpg(self.process.pid, signal.SIGWINCH)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def read(self, seconds: float) -> bool:
        """Take what the program writes within `seconds`. False when there was nothing."""
        chunk = self._receive(seconds)
        self._take(chunk)
        return bool(chunk)

    def listen(self, seconds: float) -> None:
        """Take what the program writes, for all of `seconds`."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.read(left)

    def _receive(self, seconds: float) -> bytes:
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return b""
        try:
            return os.read(self.master, 65536)
        except OSError:
            return b""

    def _take(self, chunk: bytes) -> None:
        self._raw += chunk
        printed = re.sub(r"\s+", " ", self.shown.feed(chunk))
        self._text += printed[1:] if self._text.endswith(" ") and printed[:1] == " " else printed

    def echo(self, key: str) -> float:
        """Type a character that the screen does not show; seconds until it comes back."""
        typed, echo, came = time.perf_counter(), key.encode(), b""
        os.write(self.master, echo)
        while echo not in came and time.perf_counter() - typed < PATIENCE_S:
            came += self._receive(0.05)
        took = time.perf_counter() - typed
        self._take(came)
        return took

    @property
    def raw(self) -> bytes:
        """Everything written since the last `forget`, as the program wrote it."""
        return self._raw

    @property
    def text(self) -> str:
        """Everything printed since the last `forget`, and each row of the screen as often as it
        changed, without runs of blanks."""
        return self._text

    @property
    def now(self) -> str:
        """What stands on the screen, row by row."""
        rows = sorted(self.shown.by_row.items())
        return "\n".join("".join(char for char, _ in row) for _, row in rows)

    def forget(self) -> None:
        self._raw, self._text = b"", ""

    def wait_for(self, *words: str) -> None:
        """Wait until each of `words` has been written since the last `forget`."""
        until = time.monotonic() + PATIENCE_S
        while not all(word in self.text for word in words):
            left = until - time.monotonic()
            if left <= 0 or (self.process.poll() is not None and not self.read(0)):
                missing = [word for word in words if word not in self.text]
                raise AssertionError(f"never saw {missing} in: …{self.text[-3000:]}")
            self.read(min(left, 0.1))

    def wait_until(self, done: Callable[[], object]) -> None:
        """Wait for something that the screen does not show."""
        until = time.monotonic() + PATIENCE_S
        while not done():
            assert time.monotonic() < until, f"it never came to that: …{self.text[-2000:]}"
            self.read(0.05)

    def press(self, key: str, done: Callable[[], bool]) -> None:
        """Press a key until it counts: a question takes none within half a second of another. What
        came too often, on a slow machine, is no draft."""
        until, presses = time.monotonic() + PATIENCE_S, 0
        while not done():
            assert time.monotonic() < until, f"{key!r} did nothing: …{self.text[-2000:]}"
            quiet = time.monotonic() + 0.8
            while time.monotonic() < quiet and not done():
                self.read(0.1)
            if not done():
                self.type(key)
                presses += 1
        if presses > 1:
            self.type("\x15")

    def kill(self) -> None:
        """kill -9 of the program alone, as a crash would."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def exit_code(self) -> int:
        until = time.monotonic() + PATIENCE_S
        while self.process.poll() is None and time.monotonic() < until:
            self.read(0.05)
        code = self.process.poll()
        assert code is not None, f"still running: …{self.text[-2000:]}"
        self._take_last()
        return code

    def _take_last(self) -> None:
        """Take what a program that has ended wrote last: all that comes before a mark of ours. The
        kernel hands it on in its own time."""
        while self.read(0):  # room for the mark
            pass
        os.write(self.slave, MARK)
        until, came = time.monotonic() + PATIENCE_S, b""
        while MARK not in came and time.monotonic() < until:
            came += self._receive(0.05)
        self._take(came.replace(MARK, b""))


HOLDFAST = (sys.executable, "-m", "tui")

"""The command that a person types, in a terminal of its own which can be closed."""

from __future__ import annotations

import asyncio
import os
import pty
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Driver:
    """Starts the command `words` in a folder, again and again; all that it prints is in `log`."""

    words: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    log: Path
    starts: int = 0
    _process: subprocess.Popen[bytes] | None = None
    _terminal: int = -1
    _awaited: bool = False
    """Its end is somebody's wish."""

    @property
    def pid(self) -> int:
        """The process, 0 where there is none."""
        return self._process.pid if self._process is not None else 0

    def start(self) -> None:
        """Start it in a new terminal, which ends it by SIGHUP once it is closed."""
        assert self._process is None
        self._terminal, inner = pty.openpty()
        self._process = subprocess.Popen(
            ["setsid", "--ctty", *self.words],
            cwd=self.cwd,
            env=self.env,
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
        os.close(inner)
        self.starts += 1
        asyncio.get_running_loop().add_reader(self._terminal, self._drain)

    def _drain(self) -> bool:
        """Take what was printed since; False at its end."""
        try:
            data = os.read(self._terminal, 65_536)
        except OSError:
            data = b""
        if data:
            with self.log.open("ab") as log:
                log.write(data)
        else:
            asyncio.get_running_loop().remove_reader(self._terminal)
        return bool(data)

    @property
    def text(self) -> str:
        """All that was printed so far, by all of them."""
        with suppress(OSError):
            return self.log.read_text("utf-8", "replace").replace("\r", "")
        return ""

    def ended(self) -> int | None:
        """The exit code of one that has ended by itself, else None."""
        if self._process is None or self._awaited:
            return None
        code = self._process.poll()
        if code is not None:
            self._forget()
        return code

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        """The process. Raises TimeoutError where it is over."""
        if self._process is None:
            raise TimeoutError("the run is over")
        return self._process

    def signal(self, number: signal.Signals) -> None:
        self._running.send_signal(number)

    async def kill(self) -> None:
        """End it with SIGKILL, and its terminal."""
        process = self._running
        process.kill()
        process.wait()
        self._forget()

    async def hang_up(self) -> int | None:
        """Close its terminal; returns its exit code, None where it had to be killed."""
        assert self._running
        asyncio.get_running_loop().remove_reader(self._terminal)
        os.close(self._terminal)
        self._terminal = -1
        return await self._wait(60)

    async def stop(self) -> int | None:
        """Ctrl+C; returns its exit code, None where it had to be killed."""
        assert self._running
        os.write(self._terminal, b"\x03")
        return await self._wait(90)

    async def _wait(self, seconds: float) -> int | None:
        process, self._awaited = self._running, True
        for _ in range(int(seconds * 5)):
            if (code := process.poll()) is not None:
                self._forget()
                return code
            await asyncio.sleep(0.2)
        await self.kill()
        return None

    def _forget(self) -> None:
        if self._terminal >= 0:
            while self._drain():
                pass
            asyncio.get_running_loop().remove_reader(self._terminal)
            os.close(self._terminal)
        self._terminal, self._process, self._awaited = -1, None, False

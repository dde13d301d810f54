"""The program's end of the zygote: starts it with the first command, and passes requests on."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_ROOT = str(Path(__file__).parents[2])
_START = (
    "import os, sys; sys.path.insert(0, sys.argv[1])\n"
    "from {module} import main; main(int(sys.argv[2])); os._exit(0)"
)
"""The program waits for its end, which takes four times as long if the interpreter tidies up."""
_REPORT_BYTES: Final = 1 << 16


class WarmParent:
    """Starts the zygote on demand, again if it was ended. `close` ends it, and each command that
    isn't kept."""

    def __init__(self, module: str = "tui.keeper.zygote") -> None:
        """`module` has the `main` that serves."""
        self._module = module
        self._control: socket.socket | None = None
        self._zygote: subprocess.Popen[bytes] | None = None
        self._starting = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The zygote's process, once the first command has started it."""
        return self._zygote.pid if self._zygote else None

    @property
    def started(self) -> bool:
        return self._control is not None

    def request(
        self,
        make: Callable[[], dict[str, Any]],
        output: int,
        report: int,
        errors: int | None = None,
    ) -> None:
        """Start a command; `output` gets its output, `errors` its errors if they are to be
        separate, `report` is the monitor's end of a socket. Blocks. Raises OSError, and whatever
        `make` raises."""
        spec = make()
        null = os.open(os.devnull, os.O_RDONLY)
        files = [report, null, output, output if errors is None else errors]
        try:
            try:
                self.send(spec, files)
            except OSError:  # the zygote was ended by somebody
                self.close()
                self.send(spec, files)
        finally:
            os.close(null)

    def send(self, request: dict[str, Any], files: list[int]) -> None:
        """Send a request with its files. Blocks. Raises OSError."""
        payload = _memory_file()
        try:
            with os.fdopen(os.dup(payload), "wb") as file:
                file.write(json.dumps(request).encode())
            socket.send_fds(self._connection(), [b"x"], [payload, *files])
        finally:
            os.close(payload)

    def close(self) -> None:
        if self._control:
            self._control.close()
            self._control = None
        if self._zygote:
            self._zygote.wait()
            self._zygote = None

    def _connection(self) -> socket.socket:
        with self._starting:
            if self._control is None:
                ours, theirs = socket.socketpair()
                with theirs:
                    start = _START.format(module=self._module)
                    self._zygote = subprocess.Popen(
                        [sys.executable, "-I", "-S", "-c", start, _ROOT, str(theirs.fileno())],
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        env={},
                        cwd="/",
                        start_new_session=True,
                    )
                self._control = ours
            return self._control


class UnreportedError(OSError):
    """The process that was to start a command ended without a report."""

    def __str__(self) -> str:
        return "it ended before the command ran"


class MonitorReport:
    """A monitor's reports about its command: JSON objects, a line each."""

    def __init__(self) -> None:
        self._end, self.theirs = socket.socketpair()
        """`theirs` is the monitor's end; whoever passes it on closes it."""
        self._end.setblocking(False)
        self._read = b""

    async def next(self) -> dict[str, Any]:
        """The next message; empty if the monitor has gone."""
        loop = asyncio.get_running_loop()
        with suppress(OSError, ValueError):
            while b"\n" not in self._read:
                data = await loop.sock_recv(self._end, _REPORT_BYTES)
                if not data:
                    return {}
                self._read += data
            line, _, self._read = self._read.partition(b"\n")
            return json.loads(line)
        return {}

    async def process(self) -> int:
        """Return the process of the command, once it runs. Raises OSError with the reason if it
        does not."""
        message = await self.next()
        if "pid" not in message:
            raise OSError(reason) if (reason := message.get("error")) else UnreportedError
        return message["pid"]

    def close(self) -> None:
        self._end.close()


def _memory_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create("request")
    import tempfile  # noqa: PLC0415 - where memory files are missing

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())

"""A machine behind a real sshd on the loopback, and a line to it that a trial delays and cuts."""

from __future__ import annotations

import asyncio
import os
import random
import shlex
import shutil
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_BLOCK: Final = 16_384
LOST_S: Final = 0.2
_DAEMON: Final = """\
ListenAddress 127.0.0.1
HostKey {place}/{key}
AuthorizedKeysFile {place}/{authorized}
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication {password}
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
SetEnv {variables}
"""
_CLIENT: Final = """\
Host box
  HostName 127.0.0.1
  Port {port}
  HostKeyAlias box
  IdentityFile {place}/key
  IdentitiesOnly yes
  UserKnownHostsFile {place}/known_hosts
  GlobalKnownHostsFile none
"""


class Line:
    """Carries connections to a port, `delay_s` late, at most `rate` bytes a second each way. Of the
    blocks `loss` are lost, and come again `LOST_S` later with all behind them, as TCP has it."""

    def __init__(self, to: int) -> None:
        self.to = to
        self.port = 0
        self.delay_s = 0.0
        self.rate = float("inf")
        self.loss = 0.0
        self.cuts = 0
        self._chance = random.Random(54)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def cut(self) -> None:
        """Reset all connections, with what is on its way."""
        self.cuts += 1
        for writer in [*self._writers]:
            writer.transport.abort()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, out = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, out}
        try:
            with suppress(asyncio.CancelledError):
                await asyncio.gather(self._copy(reader, out), self._copy(there, writer))
        finally:
            for one in (writer, out):
                one.transport.abort()
                self._writers.discard(one)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy one way. What waits for its time is in a queue, which is short on a slow line."""
        loop = asyncio.get_running_loop()
        coming: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(4 if self.rate < 1e9 else 4096)

        async def deliver() -> None:
            with suppress(OSError):
                while True:
                    due, block = await coming.get()
                    await asyncio.sleep(max(due - loop.time(), 0))
                    if not block:
                        return
                    writer.write(block)
                    await writer.drain()
                    await asyncio.sleep(len(block) / self.rate)

        task = asyncio.create_task(deliver())
        try:
            with suppress(OSError):
                while block := await reader.read(_BLOCK):
                    again = LOST_S if self._chance.random() < self.loss else 0.0
                    await coming.put((loop.time() + self.delay_s + again, block))
            await coming.put((loop.time() + self.delay_s, b""))
            await task
        finally:
            task.cancel()
            writer.transport.abort()


class Machine:
    """The machine `box`: its folder `there`, its sshd, and the ssh configuration that leads to it
    by `line`."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.folder = folder
        self.place = folder / "ssh"
        self.there = folder / "there"
        self.work = folder / "work"
        self.bin = folder / "bin"
        self.tree = tree
        for one in (self.place, self.there, self.work, self.bin):
            one.mkdir(parents=True)
        self.port = _free_port()
        self.line = Line(self.port)
        self.sshd: subprocess.Popen[bytes] | None = None
        self.variables: dict[str, str] = {
            "HOLDFAST_HOME": str(self.there),
            "PATH": f"{self.bin}:/usr/bin:/bin",
            "HOME": str(folder),
        }

    async def begin(self) -> None:
        """Make keys, and start the daemon and the line."""
        Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "other", "key"):
            make = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.place / name))
            await asyncio.to_thread(subprocess.run, make, check=True)
        (self.place / "none").touch()
        self.know("host")
        self.program(f'PYTHONPATH={self.tree} exec {sys.executable} -P -m tui "$@"')
        await self.line.open()
        self.start()
        self.write_client(self.line.port)
        os.environ["GIT_SSH_COMMAND"] = f"ssh -F {self.place}/config"

    def write_client(self, port: int) -> None:
        """Have `box` mean the daemon at a port."""
        text = _CLIENT.format(port=port, place=self.place)
        (self.place / "config").write_text(text)

    def know(self, key: str) -> None:
        """Have the desk know a key of the machine; "" for none."""
        public = f"box {(self.place / f'{key}.pub').read_text()}" if key else ""
        (self.place / "known_hosts").write_text(public)

    def program(self, text: str) -> None:
        """Have `holdfast` there be a script."""
        program = self.bin / "holdfast"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    def start(
        self, *, key: str = "host", authorized: str = "key.pub", password: str = "no"
    ) -> None:
        """Start the daemon."""
        variables = " ".join(f'"{name}={value}"' for name, value in self.variables.items())
        text = _DAEMON.format(
            place=self.place, key=key, authorized=authorized, password=password,
            variables=variables,
        )  # fmt: skip
        (self.place / "sshd.conf").write_text(text)
        sshd = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")
        assert sshd is not None
        words = [sshd, "-D", "-e", "-p", str(self.port), "-f", str(self.place / "sshd.conf")]
        with (self.folder / "sshd.log").open("ab") as log:
            self.sshd = subprocess.Popen(words, stdout=log, stderr=log)
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return

    def stop(self) -> None:
        """Kill the daemon and the processes of its connections."""
        assert self.sshd is not None
        children = Path(f"/proc/{self.sshd.pid}/task/{self.sshd.pid}/children").read_text()
        self.sshd.kill()
        self.sshd.wait()
        for child in children.split():
            with suppress(OSError):
                os.kill(int(child), 9)

    async def close(self) -> None:
        self.stop()
        await self.line.close()

    def run(self, *words: str) -> str:
        """Run holdfast on the machine, as somebody does who has signed in. Returns what it
        prints."""
        line = f"cd {shlex.quote(str(self.work))} && exec holdfast {shlex.join(words)}"
        ssh = ("ssh", "-F", str(self.place / "config"), "-p", str(self.port), "box", line)
        done = subprocess.run(ssh, check=False, capture_output=True, text=True)
        assert done.returncode == 0, f"{shlex.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port

"""Dask over TLS: a scheduler, workers with a nanny, and one without."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.batch.cluster.real import processes
from tests.batch.cluster.real.processes import Process
from tests.batch.cluster.real.scene import MACHINES_KEY, Scene

_SETTINGS = """\
distributed:
  comm:
    require-encryption: true
    timeouts: {{tcp: 300s}}
    tls:
      ca-file: {folder}/dask/ca.pem
      scheduler: {{cert: {folder}/dask/cert.pem, key: {folder}/dask/key.pem}}
      worker: {{cert: {folder}/dask/cert.pem, key: {folder}/dask/key.pem}}
      client: {{cert: {folder}/dask/cert.pem, key: {folder}/dask/key.pem}}
"""
_CERTIFICATES = (
    "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-ca -keyout ca.key -out ca.pem",
    "req -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -keyout key.pem -out req.pem",
    "x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -extfile names",
)
_CANCEL = """\
import sys
from distributed import Client, Future
with Client(sys.argv[1], timeout=20) as client:
    client.cancel([Future(sys.argv[2], client=client)], force=True)
"""


class RealDask:
    """The key of the workers is in the environment of Dask's own."""

    makes_store = True
    outlives = True
    extras: Mapping[str, int] = {"nanny": 2, "bare": 2}

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._place = scene.folder / "dask"
        self._place.mkdir()
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self._port = one.getsockname()[1]
        self._address = f"tls://127.0.0.1:{self._port}"
        self.words: Sequence[str] = ["--on", self._address]
        self.store, self.repository = str(scene.store), scene.store
        self.driver_env: Mapping[str, str] = {"DASK_CONFIG": str(self._place)}
        self._env = {
            **scene.env,
            **self.driver_env,
            "DASK_TEMPORARY_DIRECTORY": str(self._place),
            "ANTHROPIC_API_KEY": MACHINES_KEY,
        }
        self.worker_env: Mapping[str, str] = self._env
        self.secret: Sequence[Path] = [self._place]
        count = scene.given.parallel
        self._names = [*(f"nanny-{one}" for one in range(1, count)), "bare"]
        self._shut = False

    def start(self) -> None:
        (self._place / "names").write_text("subjectAltName=IP:127.0.0.1")
        for line in _CERTIFICATES:
            subprocess.run(
                ["openssl", *line.split()], cwd=self._place, check=True, capture_output=True
            )
        settings = _SETTINGS.format(folder=self._scene.folder)
        (self._place / "dask.yaml").write_text(settings)
        self._scheduler()
        self.tend()
        log = self._scene.daemons.folder / "bare.log"
        serves = processes.until(lambda: "Registered to" in log.read_text(), 120)
        assert serves, "no Dask worker comes up"

    def _scheduler(self) -> None:
        words = ["scheduler", "--protocol", "tls", "--port", str(self._port), "--no-dashboard"]
        self._dask("scheduler", *words, "--host", "127.0.0.1")

    def _dask(self, name: str, *words: str) -> None:
        start = [self._scene.python, "-m", "dask", *words]
        self._scene.daemons.start(name, start, self._env)

    def tend(self) -> None:
        running = self._scene.daemons.running
        for name in self._names:
            if name in running and running[name].poll() is None:
                continue
            words = ["worker", self._address, "--protocol", "tls", "--host", "127.0.0.1"]
            words += ["--nthreads", "1", "--no-dashboard", "--name", name]
            words += ["--local-directory", str(self._place)]
            self._dask(name, *words, "--no-nanny" if name == "bare" else "--nanny")

    def make_store(self) -> None:
        """The run makes it."""

    def kinds(self) -> Mapping[int, str]:
        return {
            one.pid: "scheduler" if name == "scheduler" else "dask worker"
            for name, one in self._scene.daemons.running.items()
        }

    async def restart(self) -> str:
        self._scene.daemons.end("scheduler", signal.SIGKILL)
        await asyncio.sleep(10)
        self._scheduler()
        return "the scheduler killed, started again after 10 s"

    async def hurt(self, fault: str) -> str:
        """Kill a Dask worker that has a Holdfast worker, with its nanny alive or without one."""
        for _ in range(300):
            found = processes.every()
            for one in processes.workers(found):
                daemon = self._daemon_of(one, found)
                if daemon is not None and (fault == "bare") == (daemon[0] == "bare"):
                    return await self._kill(one, *daemon)
            await asyncio.sleep(0.2)
        raise TimeoutError(f"no worker under {fault}")

    def _daemon_of(self, one: Process, found: Mapping[int, Process]) -> tuple[str, int] | None:
        """The Dask worker that a worker belongs to: the name of its daemon, and its process."""
        parent = found.get(one.parent)
        for name, daemon in self._scene.daemons.running.items():
            if parent is not None and daemon.pid in {parent.pid, parent.parent}:
                return name, parent.pid
        return None

    async def _kill(self, one: Process, name: str, pid: int) -> str:
        processes.signalled(pid, signal.SIGKILL)
        for waited in range(300):
            now = processes.every().get(one.pid)
            if now is None or now.birth != one.birth or now.state == "Z":
                return f"Dask worker {name} killed; {one.task} ended in {waited * 0.2:.0f} s"
            await asyncio.sleep(0.2)
        raise TimeoutError(f"the worker of {one.task} outlives its Dask worker {name}")

    def cancel(self, worker: Process, handle: str) -> str:
        words = [self._scene.python, "-c", _CANCEL, self._address, f"holdfast/{handle}"]
        done = subprocess.run(words, env=self._env, capture_output=True, text=True, check=False)
        return (
            "its key cancelled" if done.returncode == 0 else f"not cancelled: {done.stderr[-200:]}"
        )

    def jobs(self) -> Sequence[str]:
        return ()

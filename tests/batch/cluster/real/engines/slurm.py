"""Slurm: munged, slurmctld and slurmd with one node, which is this machine."""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.batch.cluster.real import processes
from tests.batch.cluster.real.processes import Process
from tests.batch.cluster.real.scene import MACHINES_KEY, Scene

_CONF = """\
ClusterName=scratch
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/logs/slurmctld.own.log
SlurmdLogFile={folder}/logs/slurmd.own.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={slots} State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


_ADMIN = """\
while sleep 10; do
  [ -n "$(sinfo -h -t drain)" ] || continue
  echo "$(date +%T) $(sinfo -h -R)"
  scontrol update nodename="$(hostname)" state=resume
  for job in $(squeue -h -r -t PD -o "%i %r" | sed -n "s/ .*requeued held//p"); do
    scontrol release "$job"
  done
done
"""
"""The person who looks after a cluster: a slurmctld that was killed gives numbers of jobs again,
and takes the node that has such a job out of service."""


class RealSlurm:
    """The key of the workers is in the login profile of the node."""

    makes_store = True
    outlives = True
    extras: Mapping[str, int] = {"requeue": 1}

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        folder = scene.folder
        self.words: Sequence[str] = ["--on", "slurm"]
        self.store, self.repository = str(scene.store), scene.store
        self.driver_env: Mapping[str, str] = {"SLURM_CONF": str(folder / "slurm.conf")}
        self._env = {**scene.env, **self.driver_env}
        self.worker_env: Mapping[str, str] = {**self._env, "ANTHROPIC_API_KEY": MACHINES_KEY}
        self.secret: Sequence[Path] = [folder / "state", folder / "spool"]
        for name in ("munge", "state", "spool"):
            (folder / name).mkdir(mode=0o700)
        profile = f"export ANTHROPIC_API_KEY={MACHINES_KEY}\n"
        (folder / "user" / ".bash_profile").write_text(profile)
        (folder / "slurm.conf").write_text(
            _CONF.format(
                host=socket.gethostname(),
                user=getpass.getuser(),
                folder=folder,
                slots=scene.given.parallel,
            )
        )

    def start(self) -> None:
        folder = self._scene.folder
        key = folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        names = {"key-file": "key", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
        words = [f"--{option}={folder}/munge/{name}" for option, name in names.items()]
        words = ["munged", "-F", "-f", f"--socket={folder}/munge.socket", *words]
        self._scene.daemons.start("munged", words, self._env)
        processes.until((folder / "munge.socket").exists, 30)
        self._daemon("slurmctld")
        self._daemon("slurmd")
        serves = processes.until(lambda: "idle" in self._slurm("sinfo", "-h", "-t", "idle"), 60)
        assert serves, "no node of Slurm's comes up"
        self._scene.daemons.start("admin", ["bash", "-c", _ADMIN], self._env)

    def _daemon(self, name: str) -> None:
        self._scene.daemons.start(name, [name, "-D"], self._env)

    def _slurm(self, *words: str) -> str:
        done = subprocess.run(
            words, env=self._env, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout

    def make_store(self) -> None:
        """The run makes it."""

    def kinds(self) -> Mapping[int, str]:
        return {one.pid: name for name, one in self._scene.daemons.running.items()}

    async def restart(self) -> str:
        self._scene.daemons.end("slurmctld", signal.SIGKILL)
        await asyncio.sleep(10)
        self._daemon("slurmctld")
        return "slurmctld killed, started again after 10 s"

    async def hurt(self, fault: str) -> str:
        job = (self._slurm("squeue", "-h", "-r", "-t", "R", "-o", "%i").split() or [""])[0]
        self._slurm("scontrol", "requeue", job)
        return f"job {job} requeued"

    def cancel(self, worker: Process, handle: str) -> str:
        run, _, key = handle.partition("/")
        block, index = divmod(int(key), 1000)
        for line in self._slurm("squeue", "-h", "-r", "-o", "%i|%j").splitlines():
            number, _, name = line.partition("|")
            if name == f"holdfast-{run}.{block}" and number.endswith(f"_{index}"):
                self._slurm("scancel", number)
                return f"job {number} cancelled"
        return "its job was gone already"

    def tend(self) -> None:
        """slurmd and slurmctld are started again by `restart` alone."""

    def jobs(self) -> Sequence[str]:
        return self._slurm("squeue", "-h", "-r").splitlines()

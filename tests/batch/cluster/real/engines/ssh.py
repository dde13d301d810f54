"""Hosts by ssh: daemons on the loopback for two hosts, one of another version, and the store's."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.batch.cluster.real import processes
from tests.batch.cluster.real.processes import Process
from tests.batch.cluster.real.scene import MACHINES_KEY, Scene

_PORTS = {"a": 2201, "b": 2202, "c": 2203, "store": 2204}
_HOSTS = """\
Host *
  HostName 127.0.0.1
  IdentityFile {folder}/ssh/key
  IdentitiesOnly yes
  UserKnownHostsFile {folder}/ssh/known_hosts
"""
_DAEMON = """\
ListenAddress 127.0.0.1
HostKey {folder}/ssh/host
AuthorizedKeysFile {folder}/ssh/key.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
MaxStartups 100
SetEnv {variables}
"""


class RealSsh:
    """The hosts a and b, and c with another version. The program there, and the store, are at
    places with an odd name; the key of the workers is in the environment of the hosts."""

    makes_store = False
    outlives = False
    extras: Mapping[str, int] = {}
    secret: Sequence[Path] = ()

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._place = scene.folder / "ssh"
        odd = scene.folder / "it's $(here)"
        odd.mkdir()
        self._place.mkdir(mode=0o755)
        program = odd / "hold fast"
        python = shlex.quote(scene.python)
        program.write_text(f'#!/bin/sh\nPYTHONPATH=$OTHER_VERSION exec {python} -P -m tui "$@"\n')
        program.chmod(0o755)
        half = scene.given.parallel // 2
        hosts = f"ssh:a,b={half},c=1"
        self.words: Sequence[str] = ["--on", hosts, "--remote", shlex.quote(str(program))]
        self.repository = odd / "runs.git"
        self.store = f"store:{self.repository}"
        self.driver_env: Mapping[str, str] = {"GIT_SSH_COMMAND": f"ssh -F {self._place}/config"}
        there = {
            "HOLDFAST_HOME": str(scene.folder / "there"),
            "ANTHROPIC_API_KEY": MACHINES_KEY,
            **self.driver_env,
        }
        self.worker_env: Mapping[str, str] = {**scene.env, **there}
        self._variables = there

    def start(self) -> None:
        folder, place = self._scene.folder, self._place
        Path("/run/sshd").mkdir(exist_ok=True)
        for name in ("host", "key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place / name)]
            subprocess.run(words, check=True)
        public = (place / "host.pub").read_text()
        known = "".join(f"[127.0.0.1]:{port} {public}" for port in _PORTS.values())
        (place / "known_hosts").write_text(known)
        hosts = "".join(f"Host {name}\n  Port {port}\n" for name, port in _PORTS.items())
        (place / "config").write_text(hosts + _HOSTS.format(folder=folder))
        for name in _PORTS:
            other = {"OTHER_VERSION": str(self._scene.other_version())} if name == "c" else {}
            variables = {**self._variables, **other}
            line = " ".join(f'"{key}={value}"' for key, value in variables.items())
            text = _DAEMON.format(folder=folder, variables=line)
            (place / f"{name}.conf").write_text(text)
            self._daemon(name)
        serves = processes.until(lambda: self._ssh("store", "true").returncode == 0, 60)
        assert serves, "no sshd comes up"

    def make_store(self) -> None:
        """Make the store on its host, as the manual says."""
        path = shlex.quote(str(self.repository))
        allow = "uploadpack.allowAnySHA1InWant true"
        made = self._ssh("store", f"git init -q --bare {path} && git -C {path} config {allow}")
        assert made.returncode == 0, made.stderr

    def _ssh(self, host: str, command: str) -> subprocess.CompletedProcess[bytes]:
        words = ["ssh", "-F", str(self._place / "config"), "-o", "BatchMode=yes", host, command]
        return subprocess.run(words, capture_output=True, check=False)

    def _daemon(self, name: str) -> None:
        sshd = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")
        assert sshd is not None
        words = [sshd, "-D", "-e", "-p", str(_PORTS[name]), "-f", str(self._place / f"{name}.conf")]
        self._scene.daemons.start(f"sshd-{name}", words, self._scene.env)

    def kinds(self) -> Mapping[int, str]:
        return {one.pid: "sshd" for one in self._scene.daemons.running.values()}

    async def restart(self) -> str:
        """End the daemons of both hosts, and all their connections."""
        for name in ("a", "b"):
            daemon = self._scene.daemons.running[f"sshd-{name}"].pid
            for one in processes.every().values():
                if one.parent == daemon:
                    processes.signalled(one.pid, signal.SIGKILL)
            self._scene.daemons.end(f"sshd-{name}")
        await asyncio.sleep(3)
        for name in ("a", "b"):
            self._daemon(name)
        return "sshd of both hosts killed with all connections, started again after 3 s"

    async def hurt(self, fault: str) -> str:
        raise KeyError(fault)

    def cancel(self, worker: Process, handle: str) -> str:
        for one in processes.every().values():
            if one.words[0] == "ssh" and any(f" {handle} " in word for word in one.words):
                processes.signalled(one.pid, signal.SIGKILL)
                return f"its ssh {one.pid} killed"
        return "its ssh was gone already"

    def tend(self) -> None:
        """The daemons are started again by `restart` alone."""

    def jobs(self) -> Sequence[str]:
        return ()

"""Plain hosts as an engine: each worker is a command of the system's ssh, and ends with it.

Here a worker is its ssh. There it is the ordinary program, which gets SIGTERM once its connection
is closed: because it is cancelled, because this process is gone, killed or not, or because the
host's sshd has given the connection up. It then gives its task back. Where the network is silent,
both sides wait; this one for two and a half minutes.
"""

from __future__ import annotations

import shlex
import subprocess
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.batch.cluster.engines.port import EngineError, Life
from tui.batch.cluster.hard_end import EXIT_STOPPED
from tui.batch.cluster.worker import EXIT_DONE, EXIT_LOST, EXIT_REFUSED, EXIT_UNREACHABLE
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, field
from tui.core.errors import UsageError, os_error_as
from tui.core.redaction import child_environment
from tui.core.ssh_command import ssh_command

_AT_ONCE: Final = 8
"""Connections that a host is asked for in one go: sshd drops some of more than ten (MaxStartups)
that have not signed in yet."""
_ALIVE_S: Final = 15
_TIMES: Final = 10
"""After a network has been gone for a minute, TCP sends again up to a minute later."""
_OPTIONS: Final = ("-T", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none")
_END_S: Final = 25.0
"""Seconds that workers have for ending their commands and giving their tasks back."""
_WORKED: Final = frozenset({EXIT_DONE, EXIT_LOST, EXIT_STOPPED})
_SAID: Final = frozenset({EXIT_REFUSED, EXIT_UNREACHABLE})
_NO_CONNECTION: Final = 255
_NO_PROGRAM: Final = frozenset({126, 127})
_REST_S: Final = 5.0
_REST_MAX_S: Final = 300.0
_SHOWN: Final = 4000
_THERE: Final = (
    "exec 3<&0; (cat <&3 >/dev/null; kill -TERM $$) >/dev/null 2>&1 & "
    'PATH="$PATH:$HOME/.local/bin"; export PATH; exec "$@" </dev/null 3<&-'
)
"""For the host's sh: become the worker, which ends once nobody is at the other end of its stdin.
On one line, for login shells that want that."""


@dataclass(slots=True)
class _Host:
    """A host as ssh knows it. `why` it takes no workers before `rests_until`, after `failures` one
    after another."""

    name: str
    slots: int
    why: str = ""
    failures: int = 0
    rests_until: float = 0.0


@dataclass(slots=True)
class _Worker:
    """A worker: its `ssh`, and the files of what it prints, and of the errors of its ssh."""

    host: _Host
    ssh: subprocess.Popen[bytes]
    log: Path
    errors: Path
    life: Life = "lives"


@dataclass(slots=True)
class SshEngine:
    """Starts workers on `hosts`, each with the slots it has, by `program`, the words of the
    command there. `logs` takes what they print."""

    name: str
    hosts: Mapping[str, int]
    program: Sequence[str]
    logs: Path
    clock: Clock
    outlives: bool = False
    look_s: float = 2.0
    slots: int = field(init=False)
    _hosts: list[_Host] = field(init=False)
    _workers: dict[str, _Worker] = field(default_factory=dict[str, _Worker])

    def __post_init__(self) -> None:
        self.slots = sum(self.hosts.values())
        self._hosts = [_Host(name, slots) for name, slots in self.hosts.items()]

    def put(self, commands: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
        free = self._free()
        if not free:
            raise EngineError("; ".join(one.why for one in self._hosts if one.why))
        handles: dict[str, str] = {}
        with os_error_as(EngineError, "Can't start ssh"):
            self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            for key, words in commands.items():
                name = max(free, key=lambda one: free[one])
                if not free[name]:
                    break
                free[name] -= 1
                host = next(one for one in self._hosts if one.name == name)
                worker = self._started(host, key, words)
                handles[key] = f"{key} on {name}, ssh {worker.ssh.pid}"
                self._workers[handles[key]] = worker
        return handles

    def resting(self) -> Mapping[str, str]:
        now = self.clock.monotonic()
        return {one.name: one.why for one in self._hosts if now < one.rests_until}

    def _free(self) -> Counter[str]:
        """The workers that each host takes now; none where it rests."""
        self.watch([*self._workers])
        now = self.clock.monotonic()
        lives = Counter(one.host.name for one in self._workers.values() if one.life == "lives")
        return Counter(
            {
                one.name: min(one.slots - lives[one.name], _AT_ONCE)
                for one in self._hosts
                if now >= one.rests_until
            }
        )

    def _started(self, host: _Host, key: str, words: Sequence[str]) -> _Worker:
        log, errors = self.logs / f"worker-{key}.log", self.logs / f"worker-{key}.ssh"
        errors.unlink(missing_ok=True)  # an ssh of a run that was killed may still write there
        line = f"exec {shlex.join(['sh', '-c', _THERE, 'sh', *self.program, *words])}"
        ssh = [*ssh_command(alive_s=_ALIVE_S, times=_TIMES), *_OPTIONS, "-E", str(errors)]
        with log.open("ab") as out:
            started = subprocess.Popen(
                [*ssh, "--", host.name, line],
                stdin=subprocess.PIPE,  # closed with this process, however it ends
                stdout=out,
                stderr=out,
                env=child_environment(),
                start_new_session=True,
            )
        return _Worker(host, started, log, errors)

    def watch(self, handles: Collection[str]) -> Mapping[str, Life]:
        for handle in handles:
            worker = self._workers.get(handle)
            if worker is not None and worker.life == "lives" and worker.ssh.poll() is not None:
                self._take_end(worker, worker.ssh.returncode)
        return {
            handle: worker.life if (worker := self._workers.get(handle)) else "unknown"
            for handle in handles
        }

    def _take_end(self, worker: _Worker, code: int) -> None:
        """Note how an ssh ended, and what that says about its host."""
        host, error = worker.host, _last_line(worker.errors)
        _close_stdin(worker)
        worker.life = "unknown" if code == _NO_CONNECTION or code < 0 else "ended"
        if code in _WORKED:
            host.failures, host.why = 0, ""
            return
        if worker.life == "unknown" and not error:  # which says nothing about its host
            _add(worker.errors, f"{host.name}: the worker was killed, or its ssh ({code}).")
            return
        if code == _NO_CONNECTION:
            host.why = f"{host.name}: {error.rstrip('.')}. Try: ssh {shlex.quote(host.name)} true"
        elif code in _NO_PROGRAM:
            host.why = (
                f"{host.name} has no program {shlex.join(self.program)}. Install Holdfast there, "
                "or say where it is: --remote COMMAND"
            )
        else:
            failed = "" if code in _SAID else f"a worker failed ({code}): "
            host.why = f"{host.name}: {failed}{_last_line(worker.log)}"
        _add(worker.errors, host.why)
        now = self.clock.monotonic()
        if now >= host.rests_until:
            host.rests_until = now + min(_REST_S * 2**host.failures, _REST_MAX_S)
            host.failures += 1

    def fetch(self, handle: str) -> str:
        worker = self._workers.get(handle)
        if worker is None:
            return ""
        printed, errors = _end_of(worker.log), _end_of(worker.errors)
        between = "\n" if printed and not printed.endswith("\n") else ""
        return f"{printed}{between}{errors}"[-_SHOWN:]

    def cancel(self, handles: Collection[str]) -> None:
        ending = [one for handle in handles if (one := self._workers.get(handle))]
        for one in ending:
            _close_stdin(one)
        until = self.clock.monotonic() + _END_S
        for one in ending:
            try:
                one.ssh.wait(max(until - self.clock.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                one.ssh.kill()
                one.ssh.wait()

    def close(self) -> None:
        self.cancel([*self._workers])


def hosts_of(named: str, parallel: int) -> dict[str, int]:
    """The hosts of `A,B=4` with their workers at a time: those without a number share what
    `parallel` leaves evenly, and have one at least. Raises UsageError."""
    hosts: dict[str, int | None] = {}
    for one in named.split(","):
        name, equals, number = one.strip().rpartition("=")
        name, slots = (name, int(number)) if equals and number.isdigit() else (one.strip(), None)
        if not name or name.startswith("-") or name in hosts or slots == 0:
            raise UsageError(
                f"These hosts can't be used: {named}",
                hint="Name each once, as ssh takes it, with its workers or not: --on ssh:a,b=4",
            )
        hosts[name] = slots
    open_hosts = [name for name, slots in hosts.items() if slots is None]
    rest = parallel - sum(slots or 0 for slots in hosts.values())
    shares = {
        name: max(rest // len(open_hosts) + (place < rest % len(open_hosts)), 1)
        for place, name in enumerate(open_hosts)
    }
    return {name: slots or shares[name] for name, slots in hosts.items()}


def _close_stdin(worker: _Worker) -> None:
    if worker.ssh.stdin is not None:
        with suppress(OSError):
            worker.ssh.stdin.close()


def _end_of(file: Path) -> str:
    """The end of a text file, "" where it can't be read."""
    with suppress(OSError), file.open("rb") as opened:
        opened.seek(max(file.stat().st_size - _SHOWN, 0))
        return opened.read().decode("utf-8", "replace")
    return ""


def _last_line(file: Path) -> str:
    return (_end_of(file).strip().splitlines() or [""])[-1].strip()


def _add(file: Path, line: str) -> None:
    with suppress(OSError), file.open("a", encoding="utf-8") as opened:
        opened.write(f"{line}\n")

"""The processes of the namespace that the harness is the first process of, looked at in /proc.

As the first process it inherits every orphan: it reaps them, and so has the processor time of all.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


@dataclass(frozen=True)
class Process:
    """A process as it was a moment ago. `own_s` is its processor time, `children_s` that of the
    children that it has waited for."""

    pid: int
    birth: int
    parent: int
    group: int
    state: str
    own_s: float
    children_s: float
    rss_kb: int
    words: Sequence[str]

    @property
    def id(self) -> str:
        return f"{self.pid}:{self.birth}"

    @property
    def task(self) -> str:
        """The RUN/TASK that it works on, "" for none."""
        words = () if self.words[0] == "faketime" else self.words  # the parent of one
        for place in range(len(words) - 2):
            if words[place] == "tui" and words[place + 1] == "work":
                return words[place + 2]
        return ""


def every() -> dict[int, Process]:
    """All processes by their ids, zombies included."""
    found: dict[int, Process] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                one = _read(int(name))
                found[one.pid] = one
    return found


def _read(pid: int) -> Process:
    stat = Path(f"/proc/{pid}/stat").read_text()
    fields = stat.rpartition(")")[2].split()
    own, children = (
        sum(int(one) for one in fields[begin : begin + 2]) * _TICK_S for begin in (11, 13)
    )
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    return Process(
        pid=pid,
        birth=int(fields[19]),
        parent=int(fields[1]),
        group=int(fields[2]),
        state=fields[0],
        own_s=own,
        children_s=children,
        rss_kb=int(fields[21]) * _PAGE_KB,
        words=words,
    )


def workers(found: Mapping[int, Process]) -> list[Process]:
    """The processes that work on tasks, without what they have forked."""
    every_one = [one for one in found.values() if one.task and one.state not in "ZX"]
    pids = {one.pid for one in every_one}
    return [one for one in every_one if one.parent not in pids]


def environment(pid: int) -> bytes:
    """The environment that a process began with; empty where it's gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def at_port(port: int) -> str:
    """The id of the process at the other end of a connection of the loopback, "" if it's gone."""
    end = f":{port:04X}"
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    inodes = [fields[9] for line in lines if (fields := line.split())[1].endswith(end)]
    wanted = {f"socket:[{inode}]" for inode in inodes if inode != "0"}
    for one in workers(every()):
        with suppress(OSError):
            for name in os.listdir(f"/proc/{one.pid}/fd"):
                with suppress(OSError):
                    if os.readlink(f"/proc/{one.pid}/fd/{name}") in wanted:
                        return one.id
    return ""


def signalled(pid: int, number: signal.Signals, *, group: bool = False) -> bool:
    """Send a signal to a process, or to its group. False where it's gone."""
    try:
        if group:
            wanted = os.getpgid(pid)
            assert wanted != os.getpgrp()
            os.killpg(wanted, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def kill_group(process: str) -> None:
    """Kill the group of a process by its id, if that is known."""
    if pid := int(process.partition(":")[0] or 0):
        signalled(pid, signal.SIGKILL, group=True)


def until(is_so: Callable[[], object], seconds: float) -> bool:
    """Wait until it is so; False where it never is. Blocks."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.3)
    return True


@dataclass
class Daemons:
    """The processes that an engine consists of, each with a log in the `folder`."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, "subprocess.Popen[bytes]"]
    )

    def start(self, name: str, words: Sequence[str], env: Mapping[str, str]) -> int:
        log: IO[bytes]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                words,
                env=env,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self.running[name].pid

    def end(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End one, wait for it, and forget it."""
        daemon = self.running.pop(name)
        daemon.send_signal(number)
        try:
            daemon.wait(30)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()

    def end_all(self) -> None:
        for name in reversed([*self.running]):
            self.end(name, signal.SIGTERM)


@dataclass
class Usage:
    """Processor time and memory of what runs here, by kind, from samples. What a process uses
    after its last sample is missing: `reaped_s` has it."""

    own_s: dict[str, tuple[str, float]] = field(default_factory=dict[str, "tuple[str, float]"])
    """The kind and the time of each process, by its id."""
    children_s: dict[str, tuple[str, float]] = field(default_factory=dict[str, "tuple[str, float]"])
    peak_kb: Counter[str] = field(default_factory=Counter[str])
    _orphans: dict[int, float] = field(default_factory=dict[int, float])

    def take(self, found: Mapping[int, Process], kinds: Mapping[int, str]) -> None:
        """Take in a sample. `kinds` names processes; workers are known by themselves."""
        at_work = {one.pid for one in workers(found)}
        for one in found.values():
            kind = "worker" if one.pid in at_work else kinds.get(one.pid, "")
            if kind and one.state not in "ZX":
                self.own_s[one.id] = kind, one.own_s
                self.children_s[one.id] = kind, one.children_s
                self.peak_kb[kind] = max(self.peak_kb[kind], one.rss_kb)

    def reap(self, found: Mapping[int, Process], mine: Iterable[int]) -> None:
        """Reap the orphans that have ended: those that nobody here has waited for in a while."""
        now, mine = time.monotonic(), {*mine}
        for one in found.values():
            is_orphan = one.state == "Z" and one.parent == os.getpid() and one.pid not in mine
            if is_orphan and now - self._orphans.setdefault(one.pid, now) > 2:
                del self._orphans[one.pid]
                with suppress(ChildProcessError):
                    os.waitpid(one.pid, os.WNOHANG)

    def of(self, kind: str) -> tuple[float, float]:
        """The processor time of a kind, and that of the children it has waited for."""
        own, children = (
            sum(seconds for one, seconds in times.values() if one == kind)
            for times in (self.own_s, self.children_s)
        )
        return own, children


def reaped_s() -> float:
    """The processor time of all that has ended here."""
    times = os.times()
    return times.children_user + times.children_system

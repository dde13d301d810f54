"""Walls that are built while nothing is asked for, for a command like the last one.

Most commands of a session have the same walls as one before. So once one has started, its walls
are built again, with nothing in them but what waits for a command: a fork of the zygote that will
be its keeper, and the first process behind the walls; two of them wait once there was a second
command. A command is handed over only if

- its request is the same in all but its words and its environment, and its plan was made for it
  just now: whatever appeared or went since, as far as a plan sees it, makes it another one;
- every mount is where it was, and shows what it did: the kernel names both by their present paths,
  and leaves out a mount whose place was removed.

Otherwise its walls are built for it, as for any first command, and what waited ends. So it does
once it has waited long, and with the zygote.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import time

from tui.keeper import zygote
from tui.keeper.monitor import Keeper, Monitor, end_descendants, output_pipe
from tui.permissions.sandbox.mounted import Mounted, mounts_of, parsed, shows

AFTER_S = 0.5
"""Seconds from a command's start until walls are built for the next: they are not to slow it. After
a second one within that time there may be more: walls for these are built at once."""
READY = 2
"""Walls that wait for commands of the same kind, once there was more than one: a model may ask for
several at once."""
KEPT_S = 120.0
"""Seconds after which walls that nobody needed are given up."""
_NEARLY_S = 0.1
"""The most that a command waits for walls which are being built."""
MOST = 2
"""Commands that read and those that write take turns, and have different walls."""
_SCRIPT_BYTES = 64 * 1024
"""The most that is handed over as a script: the system limits the words of a program."""
_OWN_PARTS = frozenset({"argv", "env", "keep"})
"""The parts of a request that differ from command to command."""
_NO_MOUNTS, _BINDS = frozenset({"dir", "remount-ro"}), frozenset({"bind", "ro-bind"})
_ENV = "/usr/bin/env"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, Protocol, TypeAlias

    HandOver: TypeAlias = Callable[[int, bytes], tuple[dict[str, Any], Monitor]]
    """Waits behind finished walls for a command, by the first process behind them and its mounts.
    Returns the request and the monitor for it."""

    class Builder(Protocol):
        """Builds walls for which there is no command yet."""

        def can_wait(self, engine: str) -> bool:
            """True if the walls of an engine can be built before there is a command."""
            ...

        def wait(
            self, spec: dict[str, Any], monitor: Monitor, hand_over: HandOver
        ) -> tuple[int, bool]:
            """Build the walls of a request, wait for a command, and run it to its end."""
            ...


def script_of(spec: dict[str, Any]) -> bytes:
    """Return a shell script that becomes the command of a request."""
    import shlex  # noqa: PLC0415 - the first command does without

    words = [_ENV, "-i", *(f"{name}={value}" for name, value in spec["env"].items())]
    folder = shlex.quote(spec["cwd"])  # of this name now
    return os.fsencode(f"cd {folder} && exec {shlex.join([*words, *spec['argv']])} </dev/null\n")


class _Waiting:
    """Walls that wait: `link` leads to their monitor, which says when they are built."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.since = time.monotonic()

    def hand_over(self, files: list[int], until: float) -> bool:
        """Give a request to the monitor, if all is built by then, and as it was."""
        try:
            self.link.settimeout(max(0.0, until - time.monotonic()))
            built = json.loads(self.link.recv(500) or b"{}")
            if _digest(mounts_of(built["inner"])) != built["mounts"]:
                return False
            socket.send_fds(self.link, [b"x"], files)
        except (OSError, ValueError, KeyError):  # not built in time, or gone
            return False
        return True


class WallsAhead:
    """The walls that wait in a zygote."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._waiting: dict[str, list[_Waiting]] = {}
        self._wanted: dict[str, tuple[dict[str, Any], int]] = {}
        self._due, self._asked = 0.0, -AFTER_S

    def patience(self) -> float:
        if not self._wanted:
            return KEPT_S
        return max(0.0, self._due - time.monotonic())

    def prepare(self, requests: socket.socket) -> None:
        now = time.monotonic()
        if self._wanted and now >= self._due:
            wanted, self._wanted = list(self._wanted.items())[-MOST:], {}
            for key, (spec, most) in wanted:
                while len(self._waiting.setdefault(key, [])) < most:
                    self._build(key, spec, requests)
        kept = [*self._waiting][-MOST:]
        for key, waiting in self._waiting.items():
            while waiting and (key not in kept or now - waiting[0].since > KEPT_S):
                waiting.pop(0).link.close()
        self._waiting = {key: waiting for key, waiting in self._waiting.items() if waiting}

    def let_go(self) -> None:
        for waiting in self._waiting.values():
            for one in waiting:
                one.link.close()

    def take(self, spec: dict[str, Any], files: list[int]) -> bool:
        if not (spec.get("keep") and self._builder.can_wait(spec["engine"]) and _can_wait(spec)):
            return False
        key, now = _key(spec), time.monotonic()
        waiting = self._waiting.pop(key, [])
        self._due = now if now - self._asked < AFTER_S else now + AFTER_S
        again = bool(waiting) or key in self._wanted
        self._asked, self._wanted[key] = now, (spec, READY if again else 1)
        if not waiting:
            return False
        self._waiting[key] = waiting  # again the last that was needed
        fits = len(script_of(spec)) <= _SCRIPT_BYTES
        while fits and waiting:
            first = waiting.pop(0)
            with first.link:
                if first.hand_over(files, now + _NEARLY_S):
                    return True
        return False

    def _build(self, key: str, spec: dict[str, Any], requests: socket.socket) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            if not os.fork():
                requests.close()
                ours.close()
                self.let_go()
                _be_monitor(spec, theirs, self._builder)
        self._waiting[key].append(_Waiting(ours))


def _can_wait(spec: dict[str, Any]) -> bool:
    """True if the walls are not those of one command only, its words suit a script, and it needs no
    terminal."""
    env: dict[str, str] = spec["env"]
    copies = spec["copies"][1]
    return (
        not spec["keep"].get("terminal")
        and not any(
            kind == "link" or target.startswith(f"{copies}/") for kind, _, target in spec["mounts"]
        )
        and not any(not name or name.startswith("-") for name in env)
    )


def _key(spec: dict[str, Any]) -> str:
    return json.dumps({name: part for name, part in spec.items() if name not in _OWN_PARTS})


def _digest(mounts: bytes) -> str:
    return hashlib.sha256(mounts).hexdigest()


def _be_monitor(spec: dict[str, Any], link: socket.socket, builder: Builder) -> NoReturn:
    """Build walls, and be the keeper of the command that is handed over, if one is."""
    monitor: Monitor | None = None

    def hand_over(inner: int, mounts: bytes) -> tuple[dict[str, Any], Monitor]:
        nonlocal monitor
        if not _complete(spec, parsed(mounts), parsed(mounts_of("self"))):
            raise OSError("something was moved")
        link.send(json.dumps({"inner": inner, "mounts": _digest(mounts)}).encode())
        message, files, _, _ = socket.recv_fds(link, 1, 5, socket.MSG_CMSG_CLOEXEC)
        if not message:
            raise OSError("nothing needs it any more")
        answer = socket.socket(fileno=os.dup(files[1]))
        monitor = Monitor(answer, 0, [])
        request = zygote.request_in(files)
        monitor = Keeper(answer, files[2:4], request["keep"], pipe)
        for file in (link.detach(), *files):
            os.close(file)
        return request, monitor

    try:
        zygote.begin_fork()
        pipe, theirs = output_pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        idle = Monitor(link, 0, [null, theirs, theirs])
        os.close(theirs)
        os.close(null)
        status, rest = builder.wait(spec, idle, hand_over)
        if monitor:
            monitor.ended(status, rest=rest)
    except BaseException as error:  # noqa: BLE001 - the fork must end here, whatever happens
        end_descendants()
        if monitor:
            monitor.failed(error)
    finally:
        os._exit(0)


def _complete(spec: dict[str, Any], inside: list[Mounted], here: list[Mounted]) -> bool:
    """True if every mount of the plan is there, and shows what it was to show."""
    places: dict[str, list[Mounted]] = {}
    for one in inside:
        places.setdefault(one[2], []).append(one)
    return all(
        any(kind not in _BINDS or shows(one, source, here) for one in places.get(target, ()))
        for kind, source, target in spec["mounts"]
        if kind not in _NO_MOUNTS
    )

"""The keeper of a command with a terminal: it owns the terminal, shows it, and types for others.

It reads what the command writes only as fast as it can emulate it, so a flood waits as it does for
any terminal. It records all of it, as asciicast (version 2), up to the limit of its file. Through
a socket in the folder the program asks for the screen and hands over input: a line of JSON each,
`{"do": …, "id": …}`, with `bytes` of input behind it where it has some; each gets a line as its
answer, with a line for each of its `rows` behind it, and `{"changed": …}` comes in between to
whoever follows.

Nobody but a program of this user's that no agent started may use the socket (`tui.keeper.mark`).
"""

from __future__ import annotations

import codecs
import fcntl
import hashlib
import json
import os
import select
import signal
import socket
import struct
import sys
import termios
import time
from contextlib import suppress

from tui.keeper import folder as names
from tui.keeper.emulator import Emulator
from tui.keeper.mark import is_marked
from tui.keeper.monitor import GRACE_S, Keeper
from tui.keeper.peer import handle_of, peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ROWS_MAX, COLS_MAX = 200, 500
"""The largest size of a terminal."""
_READ = 4096
_GATHER = 64 * 1024
"""The most bytes of output that are shown in one step."""
_STEP_WORK_S = 0.02
"""Seconds that such a step may take: fewer bytes are taken where more takes longer."""
_INPUT_BYTES = 64 * 1024
"""Input that waits until the command reads; more is refused."""
_LINE_BYTES = 64 * 1024
_PUSH_S = 0.04
"""Seconds between two words about changes."""
_LOOK_S = 0.1
"""Seconds after which it is checked if the command reads a secret, while somebody follows."""
_SECRET = termios.ECHO | termios.ICANON
_INTERRUPT, _BREAKS = b"\x03", "break"
"""The model's key that ends a question, and who types it."""
_PROGRAMS = 200
"""The most processes of a terminal whose words are read."""
_OWN_TTY = os.makedev(5, 0)
"""The device that is each process's own terminal, `/dev/tty`."""
_LAST_BYTES = 128 * 1024
"""Room in the file for the last screen."""
_SCREEN_BYTES = 1 << 20
_SCREEN_LINES = 200
"""Lines above the last screen that are kept with it."""


class _Client:
    """One connection of a program. `follows`: it wants to hear of changes."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.received = bytearray()
        self.waiting = bytearray()
        self.follows = False


class TerminalKeeper(Keeper):
    """Keeps a command, its terminal, and the recording of what it shows."""

    def __init__(self, answer: socket.socket, streams: list[int], keep: dict[str, Any]) -> None:
        """As the keeper of any command. `keep` has a `terminal` with its `rows` and `cols`, the
        `paths` of what is needed to emulate it, and `marked` if the program bears the mark
        itself."""
        wanted = keep["terminal"]
        self._rows, self._cols = wanted["rows"], wanted["cols"]
        self._marked: bool = wanted["marked"]
        master, slave = os.openpty()
        _set_size(master, self._rows, self._cols)
        os.set_blocking(master, False)
        self._device = os.fstat(slave).st_rdev
        minor = os.minor(self._device)
        self._tty = (minor & 0xFF) | os.major(self._device) << 8 | (minor & ~0xFF) << 12
        self._emulator = Emulator(self._rows, self._cols)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._clients: dict[int, _Client] = {}
        self._input = bytearray()
        self._input_by = ""
        self._input_for: str | None = None
        """The mark of the programs that the waiting input was judged for: it reaches no others."""
        self._waits_for_them = False
        """True while others have the terminal than those."""
        self._dropped = 0
        """Bytes of the model's input that nothing has got."""
        self._check_at = 0.0
        self._pushed: tuple[int, bool, str] = (-1, False, "")
        self._push_at = 0.0
        self._left_out = 0
        self._gather = _GATHER
        super().__init__(answer, streams, keep, master)
        for number in (0, 1, 2):
            os.dup2(slave, number)
        os.close(slave)
        self._limit = max(self._limit - _LAST_BYTES, 0)
        self._listener = self._listening()
        self._poll.register(self._listener, select.POLLIN)
        header = {
            "version": 2,
            "width": self._cols,
            "height": self._rows,
            "timestamp": int(self._started),
            "title": wanted.get("title", ""),
            "env": {"TERM": wanted.get("term", "")},
        }
        self._write(json.dumps(header).encode() + b"\n")

    # Called by engines

    def end(self) -> None:
        """Hang up, as when a terminal's window is closed; kill after two seconds."""
        if self._kill_at is None:
            self._kill_at = time.monotonic() + GRACE_S
            for process in self._members():
                for number in (signal.SIGHUP, signal.SIGCONT, signal.SIGTERM):
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(process, number)
        super().end()

    def _kill(self) -> None:
        for process in self._members():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        super()._kill()

    def end_group(self) -> bool:
        until = time.monotonic() + 1
        while not self._eof and self._members() and time.monotonic() < until:
            before = self.bytes
            self._step(0.05, until=time.monotonic() + 0.05)
            if self.bytes == before:
                break
        if not self._members():
            return False
        self.end()
        until = time.monotonic() + GRACE_S
        while self._members() and time.monotonic() < until:
            self._step(0.01)
        self._kill()
        return True

    def ended(self, status: int, *, rest: bool) -> None:
        while not self._eof and self._take_some():
            pass
        self._show(self._decoder.decode(b"", final=True))
        self._close_recording()
        self._keep_screen()
        super().ended(status, rest=rest)

    # Inside

    def _listening(self) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        here = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.fchdir(self._folder)  # the system takes short paths only
        try:
            listener.bind(names.TERMINAL)
            os.chmod(names.TERMINAL, 0o600)  # noqa: PTH101
            listener.listen(8)
        finally:
            os.fchdir(here)
            os.close(here)
        listener.setblocking(False)
        return listener

    def _members(self) -> list[int]:
        """The processes whose terminal this is, or was until the leader of their session ended."""
        return [one.number for one in _all_processes() if self._is_ours(one)]

    def _is_ours(self, process: _Process) -> bool:
        return process.tty == self._tty or process.session == self._pid

    def _readers(self) -> list[_Process]:
        """The same, and those that have left their session and may read it all the same: what these
        started, and what has it open as its input."""
        every = _all_processes()
        parents = {one.number: one.parent for one in every}
        known = {os.getpid(): True, 0: False}

        def descends(number: int) -> bool:
            line: list[int] = []
            while number not in known and len(line) <= len(every):
                line.append(number)
                number = parents.get(number, 0)
            known.update(dict.fromkeys(line, known.get(number, False)))
            return known[number]

        here = os.getpid()
        return [
            one
            for one in every
            if self._is_ours(one)
            or (one.number != here and (descends(one.number) or self._is_input_of(one)))
        ]

    def _is_input_of(self, process: _Process) -> bool:
        try:
            device = os.stat(f"/proc/{process.number}/fd/0").st_rdev  # noqa: PTH116 - pathlib is slow to load
        except OSError:
            return False
        return device == self._device or (device == _OWN_TTY and not process.tty)

    @property
    def _is_secret(self) -> bool:
        """True if the command reads a line without showing it."""
        try:
            return termios.tcgetattr(self._pipe)[3] & _SECRET == termios.ICANON
        except (OSError, termios.error):
            return False

    def _interrupts(self, data: bytearray) -> bool:
        """True if input is nothing but the key that interrupts: it ends a question."""
        try:
            return bytes(data) == _INTERRUPT and bool(
                termios.tcgetattr(self._pipe)[3] & termios.ISIG
            )
        except (OSError, termios.error):
            return False

    def _foreground(self) -> str:
        """The name of the program that has the terminal, and of the one that it has started last
        and waits for, such as `psql > less`; "" where it isn't known."""
        try:
            group = process = os.tcgetpgrp(self._pipe)
            name = _name_of(process)
            while child := _last_child(process, group):
                process = child
            return name if process == group else f"{name} > {_name_of(process)}"
        except OSError:
            return ""

    def _programs(self) -> tuple[list[list[str]], str]:
        """The programs that may read this terminal: the name of each, then its first words; none
        where there are too many to tell. Then a mark of those that have it now: another group of
        processes, and another program in the same one, has another mark."""
        try:
            group = os.tcgetpgrp(self._pipe)
        except OSError:
            group = 0
        found: list[list[str]] = []
        front: list[list[str]] = []
        leader = 0
        readers = self._readers()
        for process in readers[:_PROGRAMS]:
            leader = process.birth if process.number == group else leader
            name, words = f"/proc/{process.number}/comm", f"/proc/{process.number}/cmdline"
            with suppress(OSError), open(name, "rb") as comm, open(words, "rb") as line:  # noqa: PTH123 - as above
                each = (comm.read().strip(), *line.read(1000).split(b"\0"))
                found.append([word.decode("utf-8", "replace") for word in each])
                if process.group == group:
                    front.append(found[-1])
        mark = hashlib.sha256(json.dumps([group, leader, sorted(front)]).encode())
        return found if len(readers) <= _PROGRAMS else [], mark.hexdigest()

    def _patience(self) -> float | None:
        patience = super()._patience()
        if self._waits_for_them:
            if time.monotonic() >= self._check_at:
                self._check_input()
            patience = _LOOK_S if patience is None else min(_LOOK_S, patience)
        if any(client.follows for client in self._clients.values()):
            now = time.monotonic()
            if self._changed() and now >= self._push_at:
                self._push(now)
            wait = max(self._push_at - now, 0.001) if self._changed() else _LOOK_S
            return wait if patience is None else min(wait, patience)
        return patience

    def _changed(self) -> bool:
        return self._pushed != (self._emulator.version, self._is_secret, self._foreground())

    def _push(self, now: float) -> None:
        version, secret, program = self._emulator.version, self._is_secret, self._foreground()
        self._pushed, self._push_at = (version, secret, program), now + _PUSH_S
        line = json.dumps({"changed": version, "secret": secret, "program": program}).encode()
        for client in list(self._clients.values()):
            if client.follows and not client.waiting:
                self._send(client, line + b"\n")

    def _serve(self, file: int, what: int) -> None:
        if file == self._listener.fileno():
            self._accept()
            return
        client = self._clients.get(file)
        if client is None:
            return
        if what & select.POLLOUT:
            self._send(client, b"")
        if what & ~select.POLLOUT:
            self._receive(client)

    def _accept(self) -> None:
        with suppress(OSError):
            connection = self._listener.accept()[0]
            if not self._may_use(connection):
                connection.close()
                return
            connection.setblocking(False)
            self._clients[connection.fileno()] = _Client(connection)
            self._poll.register(connection, select.POLLIN)

    def _may_use(self, connection: socket.socket) -> bool:
        if sys.platform != "linux":
            return True  # the folder is the user's own
        try:
            with handle_of(connection) as runs:
                pid, user = peer(connection)
                return user == os.geteuid() and (self._marked or not is_marked(pid)) and runs()
        except (OSError, ValueError, IndexError):
            return False

    def _let_go(self, client: _Client) -> None:
        file = client.connection.fileno()
        self._poll.unregister(file)
        self._clients.pop(file, None)
        client.connection.close()

    def _receive(self, client: _Client) -> None:
        data = bytearray(_LINE_BYTES)
        try:
            count = client.connection.recv_into(data)
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self._let_go(client)
            return
        client.received += memoryview(data)[:count]
        data[:] = bytes(len(data))
        while client.connection.fileno() >= 0 and self._obey_one(client):
            pass

    def _obey_one(self, client: _Client) -> bool:
        """Do what one whole message says. False if there is none."""
        end = client.received.find(b"\n")
        if end < 0 and len(client.received) <= _LINE_BYTES:
            return False
        try:
            asked: dict[str, Any] = json.loads(client.received[: max(end, 0)])
            size = int(asked.get("bytes", 0))
            if not 0 <= size <= _INPUT_BYTES:
                raise ValueError  # noqa: TRY301 - as what is no message
        except (ValueError, TypeError, AttributeError, RecursionError):
            self._let_go(client)
            return False
        if len(client.received) < end + 1 + size:
            return False
        given = client.received[end + 1 : end + 1 + size]
        client.received[end + 1 : end + 1 + size] = bytes(size)
        del client.received[: end + 1 + size]
        try:
            answer: dict[str, Any] = self._do(client, asked, given)
        except (OSError, ValueError, TypeError, KeyError, struct.error) as error:
            answer = {"error": str(error)}
        given[:] = bytes(len(given))
        rows: list[object] = answer["screen"].pop("lines") if "screen" in answer else []
        head: object = {"id": asked.get("id"), **answer, "rows": len(rows)}
        self._send(client, b"".join(json.dumps(one).encode() + b"\n" for one in [head, *rows]))
        return True

    def _do(self, client: _Client, asked: dict[str, Any], given: bytearray) -> dict[str, Any]:
        match asked.get("do"):
            case "look":
                return self._seen(asked.get("since"))
            case "follow":
                client.follows = bool(asked.get("on", True))
                self._pushed = (-1, False, "")
                return {}
            case "type":
                return {"refused": self._type(given, str(asked.get("by")), asked.get("for"))}
            case "resize":
                rows, cols = int(asked["rows"]), int(asked["cols"])
                if not (2 <= rows <= ROWS_MAX and 2 <= cols <= COLS_MAX):
                    return {"error": "no such size"}
                self._rows, self._cols = rows, cols
                _set_size(self._pipe, rows, cols)
                self._emulator.resize(rows, cols)
                self._record("r", f"{cols}x{rows}")
            case "programs":
                programs, mark = self._programs()
                return {"programs": programs, "mark": mark}
            case "mark":
                self._record("m", str(asked.get("text", ""))[:200])
            case _:
                return {"error": "unknown"}
        return {}

    def _seen(self, since: int | None) -> dict[str, Any]:
        more = {
            "secret": self._is_secret,
            "program": self._foreground(),
            "dropped": self._dropped,
        }
        return {"screen": self._emulator.data(since) | more}

    def _type(self, data: bytearray, by: str, mark: str | None) -> str:
        """Write input, for the programs of that mark if there is one; return why it was refused.
        Here is the one place where the terminal's state is known at that moment."""
        if refused := self._refusal(data, by, mark):
            return refused
        if by == "model" and self._interrupts(data):
            by = _BREAKS
        if by == _BREAKS or self._waits_for_them:
            self._drop_input()
        if len(self._input) + len(data) > _INPUT_BYTES:
            return "full"
        if not self._input:
            self._input_by, self._input_for = by, mark
        elif (self._input_by, self._input_for) != (by, mark):
            return "full"
        if by in {"model", _BREAKS}:
            self._record("i", data.decode("utf-8", "replace"))
        self._input += data
        self._write_input()
        return ""

    def _refusal(self, data: bytearray, by: str, mark: str | None) -> str:
        if self._eof:
            return "ended"
        if by == "secret" and not self._is_secret:
            return "over"
        if by != "model":
            return ""
        if mark is not None and mark != self._programs()[1]:
            return "changed"
        if self._interrupts(data):
            return ""
        if self._waits_for_them:  # a part of a line may be with what ran before
            self._drop_input()
            return "changed"
        return "secret" if self._is_secret else ""

    def _drop_input(self) -> None:
        self._dropped += len(self._input) * (self._input_by == "model")
        self._input[:] = bytes(len(self._input))
        self._input.clear()
        self._waits_for_them = False

    def _check_input(self) -> None:
        """Write what waits, once the programs that it was judged for have the terminal."""
        if self._input_by == "model" and self._is_secret:
            self._drop_input()  # it was meant for what ran before
        others = self._input_for is not None and self._input_for != self._programs()[1]
        self._waits_for_them, self._check_at = others, time.monotonic() + _LOOK_S
        if others:
            self._poll.modify(self._pipe, select.POLLIN)
        else:
            self._write_input()

    def _write_input(self) -> None:
        while self._input:
            try:
                count = os.write(self._pipe, memoryview(self._input)[:_READ])
            except BlockingIOError:
                break
            except OSError:
                self._drop_input()
                break
            self._input[:count] = bytes(count)
            del self._input[:count]
        if not self._eof:
            self._poll.modify(self._pipe, select.POLLIN | (select.POLLOUT if self._input else 0))

    def _send(self, client: _Client, data: bytes) -> None:
        client.waiting += data
        try:
            while client.waiting:
                count = client.connection.send(client.waiting)
                del client.waiting[:count]
        except BlockingIOError:
            pass
        except OSError:
            self._let_go(client)
            return
        self._poll.modify(
            client.connection, select.POLLIN | (select.POLLOUT if client.waiting else 0)
        )

    def _take(self) -> None:
        if self._input and not self._waits_for_them and select.select([], [self._pipe], [], 0)[1]:
            self._check_input()
        self._take_some()

    def _take_some(self) -> bool:
        """Show what the command has written. False if that is nothing."""
        data = bytearray()
        while len(data) < self._gather:
            try:
                part = os.read(self._pipe, _READ)
            except BlockingIOError:
                break
            except OSError:  # nobody has the other end
                part = b""
            if not part:
                if not data:
                    self._eof = True
                    self._poll.unregister(self._pipe)
                    return False
                break
            data += part
        if not data:
            return False
        self.bytes += len(data)
        self._lines += data.count(b"\n")
        self._open_end = not data.endswith(b"\n")
        self._digest.update(data)
        began = time.monotonic()
        self._show(self._decoder.decode(bytes(data)))
        slow = time.monotonic() - began > _STEP_WORK_S
        self._gather = max(self._gather // 2, _READ) if slow else min(self._gather * 2, _GATHER)
        return True

    def _show(self, text: str) -> None:
        if not text:
            return
        if answer := self._emulator.feed(text):
            with suppress(OSError):  # a full terminal doesn't answer
                os.write(self._pipe, answer.encode())
        self._record("o", text)

    def _record(self, kind: str, text: str) -> None:
        line = json.dumps([round(time.monotonic() - self._began, 6), kind, text]).encode() + b"\n"
        if not self._stopped and self._written + len(line) > self._limit:
            self._stopped = names.LIMIT
        if self._stopped or self._write(line):
            self._left_out += len(text)

    def _fields(self, **end: Any) -> dict[str, Any]:
        """The figures are those of the recording."""
        figures = {"bytes": self._written + self._left_out, "sha256": "", "tail": ""}
        return super()._fields(**end) | figures

    def _close_recording(self) -> None:
        """Say in the recording what is left out of it, and let it end with the last screen."""
        if self._stopped != names.LIMIT:
            return
        at = round(time.monotonic() - self._began, 6)
        note = f"{self._left_out} characters are left out here: the recording is full"
        for kind, text in (("m", note), ("o", self._emulator.repainted())):
            with suppress(OSError):
                self._written += os.write(
                    self._output, json.dumps([at, kind, text]).encode() + b"\n"
                )

    def _keep_screen(self) -> None:
        screen = self._seen(self._emulator.screen.gone - _SCREEN_LINES)["screen"]
        data = json.dumps(screen | {"secret": False}).encode()
        if len(data) > _SCREEN_BYTES:  # without its colors
            lines = [[[self._emulator.screen.text(row)]] for row in range(self._rows)]
            data = json.dumps(screen | {"secret": False, "lines": lines}).encode()
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
            file = os.open(names.SCREEN, flags, 0o600, dir_fd=self._folder)
            with os.fdopen(file, "wb") as out:
                out.write(data)


class _Process:
    """A process of this machine; its `birth` is in ticks of the system's clock."""

    __slots__ = ("birth", "group", "number", "parent", "session", "tty")

    def __init__(self, number: int, stat: list[bytes]) -> None:
        self.number = number
        self.parent, self.group, self.session, self.tty = map(int, stat[:4])
        self.birth = int(stat[18])


def _all_processes() -> list[_Process]:
    """Return the processes that still run."""
    found: list[_Process] = []
    with suppress(OSError):
        for entry in os.listdir("/proc"):  # noqa: PTH208
            if not entry.isdigit():
                continue
            with (
                suppress(OSError, ValueError, IndexError),
                open(f"/proc/{entry}/stat", "rb") as stat,  # noqa: PTH123 - pathlib is slow to load
            ):
                text = stat.read()
                state, *numbers = text[text.rindex(b")") + 1 :].split()[:20]
                if state not in b"ZX":
                    found.append(_Process(int(entry), numbers))
    return found


def _name_of(process: int) -> str:
    with open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as comm:  # noqa: PTH123 - pathlib is slow to load
        return comm.read().strip()


def _last_child(process: int, group: int) -> int:
    """The newest child of a process that is in that group; 0 if there is none."""
    with suppress(OSError):
        with open(f"/proc/{process}/task/{process}/children", "rb") as file:  # noqa: PTH123 - as above
            children = [*map(int, file.read().split())]
        for child in reversed(children):
            with suppress(OSError), open(f"/proc/{child}/stat", "rb") as stat:  # noqa: PTH123 - as above
                state, _, its_group = stat.read().rpartition(b")")[2].split()[:3]
                if int(its_group) == group and state not in b"ZX":
                    return child
    return 0


def _set_size(terminal: int, rows: int, cols: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

"""The parent of background sessions: a process that has loaded the program and forks one for each
session. They share the memory of what is the same in all of them, about half of it.

It is started with the first session, listens on a socket in the folder of background sessions, and
ends by itself. Its name says which installation it has loaded, and where it is: the namespaces,
rights and limits that a process can't leave. Nothing in it is of the one who started it but the
variables that count while a program is loaded. Each fork gets the rest from who asks: environment,
working folder, umask, ignored signals, standard streams. One that has become that says so, and only
then gets its order: where no answer comes, it has done nothing, and whoever asked starts a process
of the usual kind.

On Linux only: elsewhere system libraries may not be used in a fork that starts no other program,
and nothing says whether two processes have the same rights.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from hashlib import sha256
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

PROGRAM: Final = (sys.executable, "-P", "-m", "tui.cli.background")
"""A background process, or a parent, as what it finds as its standard input."""
PARENT: Sequence[str] = PROGRAM
LINGER_S: Final = 15.0
"""Seconds without a request after which a parent ends that is of no use."""
_PATIENCE_S: Final = 15.0
"""Seconds for an answer: it may have to load the program first."""
_LOOK_S: Final = 0.01
_WAITING: Final = 128
"""Requests that may wait while it loads."""

LOADED: Final = (
    *("tui.cli.background", "tui.agent.agent", "tui.agent.answer_end", "tui.agent.calls.confine"),
    *("tui.agent.calls.stations",),
    *("tui.app.door.door", "tui.app.door.questions"),
    *("tui.core.apart", "tui.core.in_place", "tui.permissions.blocklist", "tui.permissions.risk"),
    *(
        "tui.permissions.plain_command",
        "tui.permissions.shell",
        "tui.permissions.sandbox.git_copies",
    ),
    *("tui.permissions.sandbox.git_settings", "tui.permissions.sandbox.git_walls"),
    *("tui.permissions.sandbox.steady", "tui.permissions.unseen_programs"),
    *("tui.tools.apply_patch", "tui.tools.command_status", "tui.tools.edit_file"),
    *("tui.tools.find_by_name", "tui.tools.grep_search", "tui.tools.list_dir"),
    *("tui.tools.notebook", "tui.tools.read_file", "tui.tools.todo_write"),
    *("tui.tools.web_fetch", "tui.tools.write_file", "tui.session.checkpoints.store"),
    *("tui.permissions.sandbox.engine", "tui.permissions.sandbox.own_process"),
    *("tui.permissions.sandbox.system_calls", "tui.permissions.sandbox.run_later"),
    *("tui.provider.practice.provider", "tui.provider.anthropic.client_factory:import_sdk"),
    *("anyio._backends._asyncio", "httpcore2", "httpcore2._backends.anyio", "h11", "truststore"),
    *("tree_sitter", "tree_sitter_bash", "encodings.utf_8_sig", "encodings.ascii"),
    *("concurrent.futures.thread",),
)
"""The modules that a session loads by its first command; `module:function` is called, too."""

_AT_START: Final = (
    *("HOME", "PYTHON", "_PYTHON", "LC_", "LANG", "TZ", "LD_", "MALLOC_", "GLIBC_", "OPENSSL_"),
    *("OTEL_PYTHON_", "PYDANTIC_", "DEFER_PYDANTIC_"),
)
"""The beginnings of names of variables that are read while the program is loaded, or before."""

_RIGHTS: Final = ("Uid", "Gid", "Cap", "NoNewPrivs", "Seccomp")
_PLACED: Final = ("Groups", "Cpus_", "Mems_")
"""The beginnings of lines in /proc/PID/status that say what a process may do, and where."""
_PLACES: Final = ("cgroup", "limits", "loginuid", "sessionid", "oom_score_adj", "attr/current")
_IGNORED: Final = frozenset(
    {signal.SIGPIPE, getattr(signal, "SIGXFSZ", signal.SIGPIPE), signal.SIGHUP, signal.SIGUSR1}
)
"""Signals that Python, or a background process from its start on, ignores."""


# Asking


def fork(folder: Path, streams: Sequence[int]) -> bool:
    """Ask the parent for a process with the environment, the working folder, the umask and the
    ignored signals of this one, and `streams` as standard input, output and error. Blocks.

    False if there can be none: then either nothing was started, or what was ends at the end of its
    standard input without having done anything.
    """
    if sys.platform != "linux":
        return False
    from tui.keeper.peer import peer  # noqa: PLC0415 - who only asks for one waits for no more

    with suppress(OSError), ExitStack() as stack:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        stack.callback(os.close, place)
        found = os.fstat(place)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return False
        connection = stack.enter_context(_connected(place))
        if peer(connection)[1] != os.geteuid():
            return False
        request = stack.enter_context(os.fdopen(os.memfd_create("request"), "wb"))
        request.write(json.dumps(_own_request()).encode())
        request.flush()
        here = os.open(".", os.O_PATH | os.O_DIRECTORY)
        stack.callback(os.close, here)
        socket.send_fds(connection, [b"?"], [request.fileno(), here, *streams])
        return connection.recv(1) == b"!"
    return False


def _own_request() -> dict[str, object]:
    status = _lines_of("self", ("Umask",))
    default = (signal.SIGPIPE, getattr(signal, "SIGXFSZ", signal.SIGPIPE))  # Python ignores them
    ignored = [n for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN]
    return {
        "env": {**os.environ},
        "umask": int(status[0].split()[1], 8),
        "ignored": [int(number) for number in ignored if number not in default],
    }


def _connected(place: int) -> socket.socket:
    """A connection to the parent that listens in an open folder; one is started if there is none.
    Raises OSError."""
    name = _name("self")
    address = (
        f"/proc/self/fd/{place}/{name}"  # the folder that was looked at, however long its path
    )
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(_PATIENCE_S)
    try:
        _lock(place)  # for a moment: others find the socket, or make it
        try:
            connection.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            _sweep(place)
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(address)
                os.chmod(address, 0o600)  # noqa: PTH101 - a path for the system alone
                listener.listen(_WAITING)
                _start(listener, place)
            connection.connect(address)
    except OSError:
        connection.close()
        raise
    finally:
        fcntl.flock(place, fcntl.LOCK_UN)
    return connection


def _lock(place: int) -> None:
    """Lock an open folder. Raises OSError where another process keeps it locked: it was stopped."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
        time.sleep(_LOOK_S)


def _sweep(place: int) -> None:
    """Remove the sockets in an open folder on which nothing listens any more."""
    from tui.app.door.sockets import remove_dead  # noqa: PLC0415 - where a parent is started

    for name in os.listdir(place):
        if name.endswith(".sock"):
            with suppress(OSError):  # it may be busy
                remove_dead(place, name)


def _start(listener: socket.socket, place: int) -> None:
    """Start a parent; it has nothing of this process but the socket, and what loading it needs."""
    subprocess.Popen(
        PARENT,
        stdin=listener.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=f"/proc/self/fd/{place}",
        env=_at_start(),
        start_new_session=True,
    )


# Which one


def _at_start() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(_AT_START)}


def _name(process: str) -> str:
    """The name of the socket of the parent that a process needs."""
    needs = [place_of(process), _installation(), sorted(_at_start().items())]
    return f"{sha256(json.dumps(needs).encode()).hexdigest()[:24]}.sock"


def place_of(process: str) -> list[str]:
    """The rights, limits and namespaces that a process can't leave. Raises OSError."""
    known = [*rights_of(process), *_lines_of(process, _PLACED)]
    for name in _PLACES:
        with suppress(OSError):  # not every kernel has it
            known.append(Path("/proc", process, name).read_text())
    number = 0 if process == "self" else int(process)
    return [*known, str(os.getpriority(os.PRIO_PROCESS, number))]


def rights_of(process: str) -> list[str]:
    """The rights and namespaces of a process: the same in all terminals of one person. Raises
    OSError."""
    about = Path("/proc", process)
    known = [*_lines_of(process, _RIGHTS), os.readlink(about / "root")]  # noqa: PTH115 - as text
    return known + [os.readlink(name) for name in sorted((about / "ns").iterdir())]  # noqa: PTH115


def _lines_of(process: str, names: tuple[str, ...]) -> list[str]:
    lines = Path("/proc", process, "status").read_text().splitlines()
    return [line for line in lines if line.startswith(names)]


def _installation() -> list[str]:
    """The files of the program, and where its libraries are; both with the time of their last
    change."""
    own = Path(__file__).parents[1]
    library = PathFinder.find_spec("msgspec")  # any of them
    assert library is not None
    assert library.origin is not None
    libraries = Path(library.origin).parents[1]
    stamps = [f"{libraries} {libraries.stat().st_mtime_ns}"]
    for folder, inner, names in os.walk(own):
        inner[:] = [name for name in inner if name != "__pycache__"]
        for name in names:
            found = os.stat(f"{folder}/{name}")  # noqa: PTH116 - hundreds of files
            stamps.append(f"{folder}/{name} {found.st_mtime_ns} {found.st_size}")
    return [sys.executable, sys.version, *sorted(stamps)]


# The parent


def serve(needed: Callable[[], bool]) -> None:
    """Fork a process for each request. Returns in each of these, and never in the parent.

    The parent ends when nothing was asked for a while, if it has no children or is not `needed`.
    Standard input is its socket, the working folder that of the socket.
    """
    listener = socket.socket(fileno=os.dup(0))
    name = Path(listener.getsockname()).name
    _heed_signals()
    for module in LOADED:
        _load(module)
    gc.collect()
    gc.freeze()  # a fork shares what no collection touches
    if name != _name("self"):
        os._exit(1)  # another version was installed meanwhile: what is loaded may be of both
    wake, woken = socket.socketpair()
    for end in (wake, woken):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    place, children = place_of("self"), set[int]()
    while True:
        ready, _, _ = select.select([listener, woken], [], [], LINGER_S)
        if woken in ready:
            woken.recv(4096)
        children = {pid for pid in children if not os.waitpid(pid, os.WNOHANG)[0]}
        if listener in ready:
            with suppress(OSError), listener.accept()[0] as connection:
                if not _is_at(connection, place):
                    continue
                if pid := os.fork():
                    children.add(pid)
                    continue
                for end in (listener, wake, woken):
                    end.close()
                _become(connection)
                return
        elif not ready and not (children and needed()):
            Path(name).unlink(missing_ok=True)
            os._exit(0)


def _heed_signals() -> None:
    """Ignore and block no signal only because whoever started this did: a script that goes on in
    the background ignores SIGINT, for example."""
    for number in signal.valid_signals():
        if number not in _IGNORED and signal.getsignal(number) is signal.SIG_IGN:
            interrupts = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupts else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _load(place: str) -> None:
    name, _, function = place.partition(":")
    module = import_module(name)
    if function:
        getattr(module, function)()


def _is_at(connection: socket.socket, place: list[str]) -> bool:
    """True if the process at the other end is of the same user, and where the parent is: one behind
    walls gets none that is not. Raises OSError."""
    from tui.keeper.peer import handle_of, peer  # noqa: PLC0415 - as above

    with handle_of(connection) as runs:
        pid, user = peer(connection)
        return user == os.geteuid() and place_of(str(pid)) == place and runs()


def _become(connection: socket.socket) -> None:
    """Make this fork what who asks would have started. A failure ends it."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        connection.settimeout(_PATIENCE_S)
        _, files, _, _ = socket.recv_fds(connection, 1, 5)
        request, here, *streams = files
        with os.fdopen(request, "rb") as file:
            file.seek(0)
            asked = json.loads(file.read())
        os.environ.clear()
        os.environ.update(asked["env"])
        os.umask(asked["umask"])
        for number in asked["ignored"]:
            signal.signal(number, signal.SIG_IGN)
        os.fchdir(here)
        os.close(here)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        connection.send(b"!")
    except BaseException:  # noqa: BLE001 - the fork must end here, whatever happens
        os._exit(1)

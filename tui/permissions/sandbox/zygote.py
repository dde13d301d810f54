"""Starts confined commands for the program: the commands behind walls of `tui.keeper`'s zygote.

It keeps the session's network: a namespace with its own loopback lives as long as this process, or
a command that it started, has it open.

It also answers questions about that network, through a child that joins it: `{"ask": "ports"}` with
the ports that are listened on, and `{"ask": "connect", "port": …}` with a connection to one, as a
file.

`run` does the same for a single command that somebody else starts, such as an MCP server.

The monitor of a command starts bubblewrap, or is the first process of our own launcher.
"""

from __future__ import annotations

import binascii
import json
import os
import select
import signal
import socket
import stat
import sys
from contextlib import suppress
from functools import partial

from tui.keeper import zygote
from tui.keeper.mark import mark
from tui.keeper.monitor import Monitor, end_and_exit, end_descendants, words
from tui.permissions.sandbox import system_calls as system
from tui.permissions.sandbox.mounted import Mounted, is_below, mounts_of, parsed, shows
from tui.permissions.sandbox.walls_ahead import WallsAhead, script_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from tui.permissions.sandbox.walls_ahead import HandOver

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LISTENS = "0A"
"""The state of a listening socket in /proc/net/tcp."""
_POLL_S = 0.0002
_TAKES_TERMINAL = """
import fcntl, os, signal, sys, termios
if os.getsid(0) != os.getpid():
    os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
for name in ("SIGPIPE", "SIGXFSZ"):  # which Python ignores
    signal.signal(getattr(signal, name), signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""
_SCRIPT_AS_INPUT = ["/bin/sh", "-c", "echo; exec >&2; . /proc/self/fd/0"]
"""Says that the walls are finished, waits for a script behind them, and becomes what it says."""
_MOVED = "something was moved while the walls were built"
_PRIVATE_NETWORK_FAILED = "no network of its own could be made"


class _Network:
    """The session's network, made for the first command that needs it."""

    def __init__(self) -> None:
        self.files: tuple[int, int] | None = None

    def open(self) -> tuple[int, int]:
        """The user and the network namespace, as file descriptors."""
        if self.files is None:
            ready, theirs = socket.socketpair()
            child = os.fork()
            if not child:
                _make_network(theirs)
            theirs.close()
            with ready:
                message, files, _, _ = socket.recv_fds(ready, 2000, 2, socket.MSG_CMSG_CLOEXEC)
            os.waitpid(child, 0)
            if len(files) != 2:
                raise OSError(f"{_PRIVATE_NETWORK_FAILED}: {message.decode()}")
            self.files = (files[0], files[1])
        return self.files


def _make_network(answer: socket.socket) -> NoReturn:
    try:
        uid, gid = os.geteuid(), os.getegid()
        system.unshare(system.NEWUSER | system.NEWNET)
        system.map_user(uid, gid)
        system.raise_loopback()
        files = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("user", "net")]
        socket.send_fds(answer, [b"ready"], files)
    except OSError as error:
        answer.send(words(error).encode())
    os._exit(0)


def main(control: int) -> None:
    """Serve the program's requests until it has ended."""
    network = _Network()
    ahead = WallsAhead(_Ahead(network))
    zygote.main(control, partial(_begin, network), partial(_ask, network), ahead)


class _Ahead:
    """Builds walls for which there is no command yet."""

    def __init__(self, network: _Network) -> None:
        self._network = network

    def can_wait(self, engine: str) -> bool:
        return engine in _WAITING

    def wait(self, spec: dict[str, Any], monitor: Monitor, hand_over: HandOver) -> tuple[int, bool]:
        system.adopt_orphans()
        joined = None if spec["network"] else self._network.open()
        ended = _WAITING[spec["engine"]](spec, joined, monitor, hand_over)
        end_descendants()
        return ended


def run(path: str) -> NoReturn:
    """Start one command as this process, with its streams, and end as it does.

    For programs that start their commands themselves. The request is in a file, which is removed.
    """
    mark()
    terminal = os.dup(2)
    code = 127
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            spec: dict[str, Any] = json.loads(file.read())
        os.unlink(path)  # noqa: PTH108
        answer, theirs = socket.socketpair()
        answer.setblocking(False)
        outside = spec["network"] or spec["engine"] == "landlock"
        joined = None if outside else _Network().open()
        system.adopt_orphans()
        monitor = Monitor(theirs, os.getppid(), [])
        status, _ = _ENGINES[spec["engine"]](spec, joined, monitor)
        code = os.waitstatus_to_exitcode(status) & 255
        # What the command left running ends before its exit code is passed on.
        end_descendants()
        with suppress(OSError):
            for line in answer.recv(65_536).splitlines():
                if reason := json.loads(line).get("error"):
                    os.write(terminal, f"{reason}\n".encode())
    except (OSError, ValueError) as error:
        os.write(terminal, f"{words(error)}\n".encode())
    finally:
        os._exit(code)


def _begin(network: _Network, spec: dict[str, Any]) -> zygote.Run:
    """Return what runs a command behind its walls, or a plain one."""
    if spec["engine"] == "plain":
        return zygote.plain(spec)
    outside = spec["network"] or spec["engine"] == "landlock"
    joined = None if outside else network.open()

    def run(monitor: Monitor) -> tuple[int, bool]:
        system.adopt_orphans()
        ended = _ENGINES[spec["engine"]](spec, joined, monitor)
        end_descendants()
        return ended

    return run


def _ask(network: _Network, spec: dict[str, Any], answer: socket.socket) -> None:
    """Answer about the session's network, from inside it. If there is none, nothing listens."""
    report = Monitor(answer, 0, []).report
    if network.files is None or os.fork():
        if network.files is None:
            report(ports=[])
        return
    try:
        _join(network.files)
        if spec["ask"] == "ports":
            report(ports=sorted(_listening()))
        else:
            with socket.create_connection(("localhost", spec["port"]), timeout=5) as connected:
                connected.settimeout(None)
                socket.send_fds(answer, [b"{}"], [connected.fileno()])
    except OSError as error:
        report(error=words(error))
    finally:
        os._exit(0)


def _listening() -> set[int]:
    """The TCP ports of this network that something listens on."""
    ports: set[int] = set()
    for name in ("tcp", "tcp6"):
        with suppress(OSError), open(f"/proc/self/net/{name}") as lines:  # noqa: PTH123
            rows = [line.split() for line in lines][1:]
            ports |= {int(row[1].rsplit(":")[-1], 16) for row in rows if row[3] == _LISTENS}
    return ports


def _join(joined: tuple[int, int] | None) -> None:
    if joined:
        system.setns(joined[0], system.NEWUSER)
        system.setns(joined[1], system.NEWNET)


def _end_below_first_child(joined: tuple[int, int] | None) -> tuple[int, int] | None:
    """Let the kernel end everything below the next child together with it, by a namespace whose
    first process it is. Returns the network that the child still has to join."""
    with suppress(PermissionError):  # root keeps its rights over the files of others here
        system.unshare(system.NEWPID)
        return joined
    if joined:
        _join(joined)
        system.unshare(system.NEWPID)
    else:
        uid, gid = os.geteuid(), os.getegid()
        system.unshare(system.NEWUSER | system.NEWPID)
        system.map_user(uid, gid)
    return None


def _hold_mounts(process: int) -> None:
    """Let the mounts of a process go with this one, not with the last one behind them: that one's
    end is waited for, and taking down some forty mounts takes the kernel longer than the rest."""
    with suppress(OSError):
        os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)


def _outlived() -> bool:
    """True if something still runs below us. Processes that only have to end get a moment for
    it."""
    for attempt in range(110):
        try:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                select.select([], [], [], 0.0001 if attempt < 10 else 0.001)
        except ChildProcessError:
            return False
    return True


def _run_bubblewrap(
    spec: dict[str, Any],
    joined: tuple[int, int] | None,
    monitor: Monitor,
    hand_over: HandOver | None = None,
) -> tuple[int, bool]:
    # Below a movable folder the mounts are checked before the command may start.
    built = [mount for mount in spec["mounts"] if mount[0] != "link"]
    checked = [mount for mount in built if is_below(mount[2], spec["movable"])]
    waits, blocked = os.pipe() if checked and not hand_over else (-1, -1)
    program, env, script, said = spec["argv"], spec["env"], -1, -1
    if hand_over:
        program, env, (its_input, script), (said, its_output) = (
            _SCRIPT_AS_INPUT, {}, os.pipe(), os.pipe(),
        )  # fmt: skip
        for number, file in enumerate((its_input, its_output)):
            os.dup2(file, number)
            os.close(file)
    child, info = _start_bubblewrap({**spec, "argv": program, "env": env}, joined, monitor, waits)
    zygote.close_streams()
    here = parsed(mounts_of("self")) if checked else []
    with os.fdopen(info, "rb") as file:
        inner = _inner_process(child) if file.read() else None
    if inner is not None:
        _hold_mounts(inner)
        if os.read(said, 1) if hand_over else blocked >= 0 and _has_built(inner, child):
            try:
                mounts = mounts_of(inner)
                _check_mounts(parsed(mounts), here, checked, spec["movable"])
                _mount_links(inner, spec)
            except OSError:
                os.kill(inner, signal.SIGKILL)  # first: closing the pipe lets it continue
                end_descendants()
                raise
            if blocked >= 0:
                os.write(blocked, b"x")
            if hand_over:
                spec, monitor = hand_over(inner, mounts)
                with os.fdopen(script, "wb") as file:
                    file.write(script_of(spec))
        monitor.running(inner)
    return monitor.wait(child), _outlived()


def _start_bubblewrap(
    spec: dict[str, Any],
    joined: tuple[int, int] | None,
    monitor: Monitor,
    waits: int,
) -> tuple[int, int]:
    """Start bubblewrap. Before it starts the command it reads from `waits`, if that is given.
    Returns its process, and a pipe with what it tells of the inner one."""
    arguments = os.memfd_create("arguments")
    program_filter = os.memfd_create("filter")
    os.write(program_filter, binascii.a2b_base64(spec["filter"]))
    info, theirs = os.pipe()
    extra = ["--info-fd", str(theirs)]
    if waits >= 0:
        extra += ["--block-fd", str(waits)]
    if spec["filter"]:
        os.lseek(program_filter, 0, os.SEEK_SET)
        extra += ["--seccomp", str(program_filter)]
    for file in (arguments, program_filter, theirs, *([waits] if waits >= 0 else [])):
        os.set_inheritable(file, True)
    os.write(arguments, b"".join(os.fsencode(part) + b"\0" for part in spec["bubblewrap"] + extra))
    os.lseek(arguments, 0, os.SEEK_SET)
    # In version 0.8 the inner process ends with the outer one only from some point on: before, it
    # waits forever for an outer process that is gone, or runs its command without one.
    joined = _end_below_first_child(joined)
    if monitor.parent:
        system.die_with_parent(monitor.parent)
    child = os.fork()
    if not child:
        try:
            os.close(info)
            _join(joined)
            system.die_with_reader(theirs)
            _apply_landlock(spec)
            argv = [spec["bubblewrap_path"], "--args", str(arguments), "--", *_program(spec)]
            os.execve(argv[0], argv, spec["env"])  # noqa: S606
        except OSError as error:
            monitor.failed(error)
        finally:
            os._exit(127)
    os.close(theirs)
    return child, info


def _program(spec: dict[str, Any]) -> list[str]:
    """The words of a command; one with a terminal takes it first, as the leader of a session."""
    if not zygote.has_terminal(spec):
        return spec["argv"]
    return [sys.executable, "-I", "-S", "-c", _TAKES_TERMINAL, *spec["argv"]]


def _inner_process(child: int) -> int:
    """The number of bubblewrap's inner process out here. It is the outer one's if that has ended
    and only has to be waited for."""
    with open(f"/proc/{child}/task/{child}/children", "rb") as children:  # noqa: PTH123
        return int((children.read().split() or [child])[0])


def _has_built(process: int, child: int) -> bool:
    """Wait until bubblewrap has mounted everything, when it drops its capabilities. False if it
    ended before."""
    while not os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        with suppress(OSError), open(f"/proc/{process}/status", "rb") as status:  # noqa: PTH123
            if b"\nCapPrm:\t0000000000000000\n" in status.read():
                return True
        select.select([], [], [], _POLL_S)
    return False


def _check_mounts(
    inside: list[Mounted], here: list[Mounted], planned: list[list[str]], movable: list[str]
) -> None:
    """Raise OSError unless everything below a movable folder is what was planned; `here` are the
    mounts outside.

    Bubblewrap finds both ends of a mount by their paths: a command that already runs can put a link
    there meanwhile, and so open something outside.
    """
    wanted = {target: source for _, source, target in planned}
    missing = set(wanted)
    for one in inside:
        place = one[2]
        if not is_below(place, movable):
            continue
        if one not in here:
            source = wanted.get(place)
            if source is None or not shows(one, source, here):
                raise OSError(f"{_MOVED} ({place})")
        missing.discard(place)
    if missing:
        raise OSError(f"{_MOVED} ({min(missing)})")


def _mount_links(process: int, spec: dict[str, Any]) -> None:
    """Mount the plan's links behind walls that bubblewrap has built. Raises OSError."""
    links = [mount for mount in spec["mounts"] if mount[0] == "link"]
    if not links:
        return
    copies, copies_inside = spec["copies"]
    failure, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            inside = os.open(f"/proc/{process}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
            system.setns(system.owner_of(inside), system.NEWUSER)
            system.setns(inside, system.NEWNS)
            for kind, source, target in links:
                place = copies_inside + source.removeprefix(copies)
                _mount_in_place(kind, target, system.clone_link(place))
        except OSError as error:
            os.write(theirs, words(error).encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(failure, "rb") as file:
        reason = file.read()
    os.waitpid(child, 0)
    if reason:
        raise OSError(reason.decode())


def _run_launcher(
    spec: dict[str, Any],
    joined: tuple[int, int] | None,
    monitor: Monitor,
    hand_over: HandOver | None = None,
) -> tuple[int, bool]:
    uid, gid = os.geteuid(), os.getegid()
    _join(joined)
    system.unshare(system.NEWUSER | system.NEWPID | system.NEWIPC | system.NEWUTS)
    system.map_user(uid, gid)
    if monitor.parent:
        system.die_with_parent(monitor.parent)
    outcome, theirs = os.pipe()
    command, ours = os.pipe()
    child = os.fork()
    if not child:
        os.close(outcome)
        os.close(ours)
        os.setsid()
        system.die_with_reader(theirs)
        _be_init(spec, command, theirs)
    os.close(theirs)
    os.close(command)
    zygote.close_streams()
    with os.fdopen(outcome, "rb") as file:
        ended: dict[str, Any] = json.loads(file.readline() or "{}")
        if not ended:
            _hold_mounts(child)
            if hand_over:
                try:
                    spec, monitor = hand_over(child, mounts_of(child))
                except BaseException:
                    os.kill(child, signal.SIGKILL)
                    raise
            with os.fdopen(ours, "wb") as words_of_command:
                words_of_command.write(
                    json.dumps([spec["cwd"], spec["argv"], spec["env"]]).encode()
                )
            ended = json.loads(file.readline() or "{}")
        if not ended:
            monitor.running(child)
        status = monitor.wait(child)
        ended = json.loads(file.readline() or "{}") or ended
    if "error" in ended:
        raise OSError(ended["error"])
    return ended.get("status", status), ended.get("rest", False)


def _be_init(spec: dict[str, Any], command_file: int, outcome: int) -> NoReturn:
    """Run as the first process of the namespaces: build the walls, start the command that comes
    then, reap. Each step is reported."""
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    try:
        system.unshare(system.NEWNS | system.NEWCGROUP)  # the monitor keeps the files outside
        # Inside, nobody can make further namespaces to get around the walls.
        with open("/proc/sys/user/max_user_namespaces", "w") as file:  # noqa: PTH123
            file.write("0")
        _build(spec["mounts"], spec["movable"])
        os.chdir(spec["cwd"])
        _apply_landlock(spec)
        if spec["filter"]:
            system.install_filter(binascii.a2b_base64(spec["filter"]))
        system.drop_capabilities()
        system.hide_memory()
        error, theirs = os.pipe()
        command = os.fork()
        if not command:
            if zygote.has_terminal(spec):
                os.setsid()
                zygote.take_terminal(spec)
            with os.fdopen(command_file, "rb") as file:
                cwd, argv, env = json.loads(file.read())
            try:
                os.chdir(cwd)  # the folder of this name now
            except OSError as failure:
                os.write(theirs, words(failure).encode())
                os._exit(127)
            zygote.execute({"argv": argv, "env": env}, theirs)
        os.close(theirs)
        os.close(command_file)
        os.write(outcome, b"{}\n")
        with os.fdopen(error, "rb") as file:
            if reason := file.read():
                raise OSError(reason.decode())  # noqa: TRY301 - reported below
        os.write(outcome, b"{}\n")
        zygote.close_streams()
        # As the first process it also reaps orphans; only the command's own end counts.
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == command:
                break
        try:
            rest = os.waitpid(-1, os.WNOHANG)[0] == 0
        except ChildProcessError:
            rest = False
        os.write(outcome, json.dumps({"status": status, "rest": rest}).encode())
    except BaseException as failure:  # noqa: BLE001 - the fork must end here, whatever happens
        os.write(outcome, json.dumps({"error": words(failure)}).encode() + b"\n")
    finally:
        os._exit(0)


_LIMITS = {
    "ro-bind": system.RDONLY | system.NOSUID | system.NODEV,
    "bind": system.NOSUID | system.NODEV,
}


def _build(mounts: list[tuple[str, str, str]], movable: list[str]) -> None:
    """Assemble the plan's mounts. Every source is opened before the old root is detached, except
    for those below a movable folder, which are bound onto themselves."""
    system.make_private()
    trees = [_source(*mount, movable) for mount in mounts]
    devices = {name: system.clone_mount(f"/dev/{name}", 0) for name in _DEVICES}
    for (kind, source, target), tree in zip(mounts, trees, strict=True):
        if target == "/":
            system.enter_root(tree, "/tmp")  # noqa: S108 - any folder that exists everywhere
        elif is_below(target, movable):
            _mount_in_place(kind, target, tree)
        elif tree >= 0:
            _make_place(target, folder=stat.S_ISDIR(os.fstat(tree).st_mode))
            system.attach_mount(tree, target)
        elif kind == "tmpfs":
            _make_place(target, folder=True)
            system.mount("tmpfs", target, system.NOSUID | system.NODEV, f"mode={source}")
        elif kind == "dir":
            _make_place(target, folder=True)
        elif kind == "proc":
            system.mount("proc", target, system.NOSUID | system.NODEV | system.NOEXEC)
        elif kind == "dev":
            _make_devices(target, devices)
        elif kind == "remount-ro":
            system.remount_read_only(target)


def _source(kind: str, source: str, target: str, movable: list[str]) -> int:
    """Open what a mount shows; -1 if it is nothing, or bound onto itself."""
    if kind == "link":
        return system.clone_link(source)
    if kind in _LIMITS and not (source == target and is_below(target, movable)):
        return system.clone_mount(source, _LIMITS[kind])
    return -1


def _mount_in_place(kind: str, target: str, tree: int) -> None:
    """Mount where another command may rename things meanwhile: the opened place, reached without a
    link, is both mounted and mounted on."""
    try:
        place = system.open_place(target)
    except OSError as error:
        raise OSError(f"{_MOVED} ({target})") from error
    try:
        mounted_tree = tree if tree >= 0 else system.clone_mount(place, _LIMITS[kind])
        system.attach_mount(mounted_tree, place)
    finally:
        os.close(place)


def _make_place(path: str, *, folder: bool) -> None:
    if os.path.exists(path):  # noqa: PTH110
        return
    os.makedirs(path if folder else os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    if not folder:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _make_devices(place: str, devices: dict[str, int]) -> None:
    system.mount("tmpfs", place, system.NOSUID, "mode=755")
    for name, tree in devices.items():
        _make_place(f"{place}/{name}", folder=False)
        system.attach_mount(tree, f"{place}/{name}")
    for name, target in (
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
        ("ptmx", "pts/ptmx"),
    ):
        os.symlink(target, f"{place}/{name}")  # noqa: PTH211
    for name, kind, data in (
        ("pts", "devpts", "newinstance,ptmxmode=0666,mode=620"),
        ("shm", "tmpfs", "mode=1777"),
    ):
        os.mkdir(f"{place}/{name}")  # noqa: PTH102
        system.mount(kind, f"{place}/{name}", system.NOSUID | system.NOEXEC, data)


def _apply_landlock(spec: dict[str, Any]) -> None:
    if spec["landlock"]:
        system.landlock(*spec["landlock"])


def _run_landlock(
    spec: dict[str, Any], joined: tuple[int, int] | None, monitor: Monitor
) -> tuple[int, bool]:
    del joined
    me = os.getpid()
    if monitor.parent:
        # No namespace ends with it, so the monitor ends what it started before it ends itself.
        signal.signal(signal.SIGTERM, end_and_exit)
        system.die_with_parent(monitor.parent, signal.SIGTERM)
    system.hide_memory()
    error, theirs = os.pipe()
    child = os.fork()
    if not child:
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            zygote.take_terminal(spec)
            system.die_with_parent(me)
            os.chdir(spec["cwd"])
            _apply_landlock(spec)
            system.install_filter(binascii.a2b_base64(spec["filter"]))
            system.drop_capabilities()
        except OSError as failure:
            os.write(theirs, words(failure).encode())
            os._exit(127)
        zygote.execute(spec, theirs)
    os.close(theirs)
    with os.fdopen(error, "rb") as file:
        if reason := file.read():
            raise OSError(reason.decode())
    monitor.running(child)
    zygote.close_streams()
    return monitor.wait(child), _outlived()


_ENGINES = {
    "bubblewrap": _run_bubblewrap,
    "launcher": _run_launcher,
    "landlock": _run_landlock,
}

_WAITING = {"bubblewrap": _run_bubblewrap, "launcher": _run_launcher}
"""The engines whose walls can be built before there is a command for them."""

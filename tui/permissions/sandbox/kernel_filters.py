"""Filters for system calls (seccomp) and rules of Landlock, as data for the kernel.

Behind namespaces, only the calls that reach past them are refused. Landlock alone leaves much open
(modes, owners, times, sockets, other processes), which the filter then closes.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from tui.permissions.sandbox.walls import Plan

# fmt: off
_NUMBERS: dict[str, tuple[int, dict[str, int]]] = {
    "x86_64": (0xC000003E, {
        "socket": 41, "ioctl": 16, "ptrace": 101, "add_key": 248, "request_key": 249,
        "keyctl": 250, "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425, "chmod": 90,
        "fchmod": 91, "fchmodat": 268, "fchmodat2": 452, "chown": 92, "fchown": 93, "lchown": 94,
        "fchownat": 260, "utime": 132, "utimes": 235, "futimesat": 261, "utimensat": 280,
        "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190, "setxattrat": 463,
        "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "kill": 62, "tkill": 200,
        "tgkill": 234, "rt_sigqueueinfo": 129, "pidfd_send_signal": 424, "pidfd_getfd": 438,
        "process_vm_writev": 311, "unshare": 272, "setns": 308, "mount": 165, "shmget": 29,
        "msgget": 68, "semget": 64, "mq_open": 240, "file_setattr": 469, "setpriority": 141,
        "prlimit64": 302, "sched_setaffinity": 203, "sched_setparam": 142,
        "sched_setscheduler": 144, "sched_setattr": 314, "ioprio_set": 251, "migrate_pages": 256,
        "move_pages": 279, "shmat": 30, "shmctl": 31, "semop": 65, "semctl": 66, "semtimedop": 220,
        "msgsnd": 69, "msgrcv": 70, "msgctl": 71, "mq_unlink": 241,
    }),
    "aarch64": (0xC00000B7, {
        "socket": 198, "ioctl": 29, "ptrace": 117, "add_key": 217, "request_key": 218,
        "keyctl": 219, "bpf": 280, "perf_event_open": 241, "io_uring_setup": 425, "fchmod": 52,
        "fchmodat": 53, "fchmodat2": 452, "fchown": 55, "fchownat": 54, "utimensat": 88,
        "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "setxattrat": 463, "removexattr": 14,
        "lremovexattr": 15, "fremovexattr": 16, "kill": 129, "tkill": 130, "tgkill": 131,
        "rt_sigqueueinfo": 138, "pidfd_send_signal": 424, "pidfd_getfd": 438,
        "process_vm_writev": 271, "unshare": 97, "setns": 268, "mount": 40, "shmget": 194,
        "msgget": 186, "semget": 190, "mq_open": 180, "file_setattr": 469, "setpriority": 140,
        "prlimit64": 261, "sched_setaffinity": 122, "sched_setparam": 118,
        "sched_setscheduler": 119, "sched_setattr": 274, "ioprio_set": 30, "migrate_pages": 238,
        "move_pages": 239, "shmat": 196, "shmctl": 195, "semop": 193, "semctl": 191,
        "semtimedop": 192, "msgsnd": 189, "msgrcv": 188, "msgctl": 187, "mq_unlink": 181,
    }),
}
_KERNEL_WIDE = ("add_key", "request_key", "keyctl", "bpf", "perf_event_open")
_CHANGES = (
    "ptrace", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
    "utime", "utimes", "futimesat", "utimensat", "setxattr", "lsetxattr", "fsetxattr",
    "setxattrat", "removexattr", "lremovexattr", "fremovexattr", "pidfd_getfd", "file_setattr",
    "process_vm_writev", "unshare", "setns", "mount", "shmget", "msgget", "semget", "mq_open",
    "shmat", "shmctl", "semop", "semctl", "semtimedop", "msgsnd", "msgrcv", "msgctl", "mq_unlink",
)
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "pidfd_send_signal")
_TERMINAL_REQUESTS = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX type into somebody else's terminal."""
_ABOUT_ITSELF: Mapping[str, tuple[tuple[int, int], ...]] = {
    "prlimit64": ((0, 0),), "sched_setaffinity": ((0, 0),), "sched_setparam": ((0, 0),),
    "sched_setscheduler": ((0, 0),), "sched_setattr": ((0, 0),), "migrate_pages": ((0, 0),),
    "move_pages": ((0, 0),), "setpriority": ((0, 0), (1, 0)), "ioprio_set": ((0, 1), (1, 0)),
}
"""Calls that may name another process, with the arguments by which they mean their own. One of the
limits ends a process as a signal does."""
_FILE_REQUESTS = (0x80086601, 0x801C581F, 0x40049409, 0x4020940D, 0xC020660B)
"""The allowed requests about a file: its flags and its extents, and a copy of them into another
file. Others change a file that was opened for reading, and Landlock does not see them."""
_TERMINAL_GROUP = 0x5400
_AF_VSOCK, _AF_ALG = 40, 38
# fmt: on

_LOAD, _EQUAL, _AT_LEAST, _RETURN, _AND = 0x20, 0x15, 0x35, 0x06, 0x54
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

_ACCESS = 0xFFFF
"""All that version 5 can deny about files: execute, read, write, make, remove, refer, truncate,
device requests."""
_READ, _READ_FILE = 0x1 | 0x4 | 0x8, 0x1 | 0x4
_LIST = 0x8
_WRITE_FILE = 0x2 | 0x4 | 0x4000
_SCOPE_SOCKETS, _SCOPE_SIGNALS = 1, 2
_OLDEST = 3
"""Older versions cannot prevent that a file is truncated."""


def refusal(machine: str, version: int) -> str:
    """Explain why Landlock alone is not enough here; "" if it is."""
    if machine not in _NUMBERS:
        return f"system calls cannot be filtered on {machine}"
    if not version:
        return "the kernel has no Landlock, or it is off"
    if version < _OLDEST:
        return f"Landlock is too old here (version {version}, needed {_OLDEST})"
    return ""


def _instruction(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("=HBBI", code, yes, no, value)


def _refused(number: int, error: int) -> bytes:
    return _instruction(_EQUAL, number, 0, 1) + _instruction(_RETURN, _ERRNO | error)


def _allowed(number: int) -> bytes:
    return _instruction(_EQUAL, number, 0, 1) + _instruction(_RETURN, _ALLOW)


def _argument(number: int) -> bytes:
    """Load the lower half of an argument."""
    return _instruction(_LOAD, 16 + 8 * number)


def _only_with(arguments: Iterable[tuple[int, int]]) -> list[bytes]:
    """Refuse a call unless these arguments have these values."""
    body: list[bytes] = []
    for number, value in arguments:
        body += [_argument(number), _instruction(_EQUAL, value, 1, 0)]
        body.append(_instruction(_RETURN, _ERRNO | errno.EPERM))
    return body


@cache
def call_filter(machine: str, *, alone: bool, signals_scoped: bool = True) -> bytes:
    """Build the program for seccomp; b"" on a machine whose numbers are not known.

    `alone`: without namespaces. Then every socket is refused except for pairs, since a socket by
    path cannot be told from another; signals, too, if Landlock does not confine them.
    """
    if machine not in _NUMBERS:
        return b""
    audit, numbers = _NUMBERS[machine]
    # io_uring makes calls that no filter sees.
    refused = dict.fromkeys(_KERNEL_WIDE, errno.EPERM) | {"io_uring_setup": errno.ENOSYS}
    if alone:
        refused |= dict.fromkeys(_CHANGES, errno.EPERM) | {"socket": errno.ENETUNREACH}
        if not signals_scoped:
            refused |= dict.fromkeys(_SIGNALS, errno.EPERM)
    program = [
        _instruction(_LOAD, 4),
        _instruction(_EQUAL, audit, 1, 0),
        _instruction(_RETURN, _KILL),
        _instruction(_LOAD, 0),
    ]
    if machine == "x86_64":  # the x32 calls have numbers of their own
        program += [_instruction(_AT_LEAST, 0x40000000, 0, 1), _instruction(_RETURN, _KILL)]
    program += [
        _refused(numbers[name], error) for name, error in refused.items() if name in numbers
    ]
    inner = {"ioctl": [_argument(1), *(_refused(n, errno.EPERM) for n in _TERMINAL_REQUESTS)]}
    if alone:
        inner["ioctl"] += [_allowed(one) for one in _FILE_REQUESTS]
        inner["ioctl"] += [_instruction(_AND, 0xFF00), _allowed(_TERMINAL_GROUP)]
        inner["ioctl"].append(_instruction(_RETURN, _ERRNO | errno.ENOTTY))
        inner |= {name: _only_with(wanted) for name, wanted in _ABOUT_ITSELF.items()}
    else:
        families = (_AF_VSOCK, _AF_ALG)
        inner["socket"] = [_argument(0), *(_refused(n, errno.EAFNOSUPPORT) for n in families)]
    # The arguments of these calls decide; the number of instructions is the jump past them.
    for name, body in inner.items():
        checks = b"".join((*body, _instruction(_RETURN, _ALLOW)))
        program += [_instruction(_EQUAL, numbers[name], 0, len(checks) // 8), checks]
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)


def scope(version: int) -> tuple[int, int, list[tuple[str, int]]] | None:
    """Landlock's rules for a command with the host's network: no abstract socket from before it."""
    return (0, _SCOPE_SOCKETS, []) if version >= 6 else None


def read_only(plan: Plan, version: int) -> tuple[int, int, list[tuple[str, int]]]:
    """Encode the plan's read-only level as rules of Landlock, which can only add permissions.

    So a folder with something hidden in it is opened child by child.
    """
    handled = _ACCESS if version >= 5 else _ACCESS >> 1
    scoped = _SCOPE_SOCKETS | _SCOPE_SIGNALS if version >= 6 else 0
    covers = {"/dev/null", plan.empty, *plan.closed}
    hidden = {path for kind, source, path in plan.mounts if kind == "tmpfs" or source in covers}
    opened = {
        source
        for kind, source, target in plan.mounts
        if kind == "ro-bind" and source == target and source != "/"
    }
    rules: dict[str, int] = {}

    def allow(path: str, *, chosen: bool) -> None:
        if path in hidden and not (chosen and path in opened):
            below = [inner for inner in opened if inner.startswith(path + "/")]
            for inner in below:
                allow(inner, chosen=True)
            return
        if os.path.islink(path):  # noqa: PTH114 - its target has a rule of its own
            return
        # Landlock cannot withdraw a permission further down, so the folder is opened child by
        # child.
        if any(other.startswith(path.rstrip("/") + "/") for other in hidden):
            for name in sorted(os.listdir(path)):  # noqa: PTH208
                allow(os.path.join(path, name), chosen=False)  # noqa: PTH118
        else:
            rules[path] = _READ if os.path.isdir(path) else _READ_FILE  # noqa: PTH112

    for name in sorted(os.listdir("/")):  # noqa: PTH208
        if name not in {"dev", "tmp"}:
            allow(f"/{name}", chosen=False)
    for inner in opened:
        if inner.startswith(("/tmp/", "/dev/")):  # noqa: S108
            allow(inner, chosen=True)
    rules |= dict.fromkeys(("/dev/null", "/dev/tty", "/dev/full"), _WRITE_FILE)
    rules |= dict.fromkeys(("/dev/zero", "/dev/urandom", "/dev/random"), _READ_FILE)
    rules["/dev"] = _LIST
    rules[plan.temporary] = handled
    return handled, scoped, [(path, rules[path]) for path in rules if Path(path).exists()]

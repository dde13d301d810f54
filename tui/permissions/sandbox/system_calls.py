"""The system calls of Linux that Python has no names for; each raises OSError when it fails."""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import struct

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
"""Attributes of a mount, the same for mount and mount_setattr."""

_MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, 0x80000
_MOVE_MOUNT_F_EMPTY_PATH, _MOVE_MOUNT_T_EMPTY_PATH = 4, 0x40
_NO_MAGIC_LINKS, _NO_SYMLINKS = 2, 4
_MNT_DETACH = 2
_PDEATHSIG, _DUMPABLE, _SECCOMP, _CAPBSET_DROP = 1, 4, 22, 24
_SUBREAPER, _NO_NEW_PRIVS, _CAP_AMBIENT, _CLEAR_ALL = 36, 38, 47, 4
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_NS_GET_USERNS = 0xB701

_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_OPEN_TREE, _MOVE_MOUNT, _OPENAT2, _MOUNT_SETATTR = 428, 429, 437, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

MACHINE = os.uname().machine
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _call(name: str, number: int, *arguments: int | bytes | None) -> int:
    longs = [ctypes.c_long(part) if isinstance(part, int) else part for part in arguments]
    return _checked(_libc.syscall(ctypes.c_long(number), *longs), name)


def _prctl(what: str, option: int, *arguments: int) -> None:
    longs = [ctypes.c_ulong(part) for part in (*arguments, *(0,) * (4 - len(arguments)))]
    _checked(_libc.prctl(option, *longs), what)


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "new namespaces")


def setns(file: int, kind: int) -> None:
    _checked(_libc.setns(file, kind), "joining the session's network")


def map_user(uid: int, gid: int) -> None:
    """Keep the user's identity in a user namespace that was just made."""
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        try:
            file = os.open(f"/proc/self/{name}", os.O_WRONLY)
            try:
                os.write(file, text.encode())
            finally:
                os.close(file)
        except OSError as error:
            raise OSError(error.errno, f"setting up {name}: {error.strerror}") from error


def mount(kind: str, target: str, flags: int = 0, data: str = "") -> None:
    done = _libc.mount(
        kind.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _checked(done, f"mounting {kind} on {target}")


def make_private() -> None:
    """Keep mounts made from now on inside."""
    done = _libc.mount(None, b"/", None, ctypes.c_ulong(_MS_REC | _MS_PRIVATE), None)
    _checked(done, "making mounts private")


def remount_read_only(target: str) -> None:
    flags = _MS_REMOUNT | _MS_BIND | RDONLY | NOSUID | NODEV
    done = _libc.mount(None, os.fsencode(target), None, ctypes.c_ulong(flags), None)
    _checked(done, f"making {target} read-only")


def open_place(path: str) -> int:
    """Open what is at a path, if no part of it is a link."""
    how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _NO_MAGIC_LINKS | _NO_SYMLINKS)
    return _call(f"opening {path}", _OPENAT2, _AT_FDCWD, os.fsencode(path), how, len(how))


def clone_mount(place: str | int, attributes: int) -> int:
    """Copy the tree at a path or a descriptor with everything mounted in it; return a
    descriptor."""
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE | _AT_EMPTY_PATH
    tree = _call(f"binding {place}", _OPEN_TREE, *_at(place), flags)
    if attributes:
        wanted = struct.pack("=QQQQ", attributes, 0, 0, 0)
        flags = _AT_EMPTY_PATH | _AT_RECURSIVE
        _call(f"limiting {place}", _MOUNT_SETATTR, tree, b"", flags, wanted, len(wanted))
    return tree


def clone_link(path: str) -> int:
    """Make a mount of a symbolic link itself, read-only; return a descriptor."""
    link = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return clone_mount(link, RDONLY | NOSUID | NODEV)
    finally:
        os.close(link)


def owner_of(namespace: int) -> int:
    """Open the user namespace that owns another namespace."""
    return fcntl.ioctl(namespace, _NS_GET_USERNS)


def attach_mount(tree: int, place: str | int) -> None:
    """Attach a tree of `clone_mount` at a path or a descriptor."""
    flags = _MOVE_MOUNT_F_EMPTY_PATH | _MOVE_MOUNT_T_EMPTY_PATH
    _call(f"mounting on {place}", _MOVE_MOUNT, tree, b"", *_at(place), flags)
    os.close(tree)


def _at(place: str | int) -> tuple[int, bytes]:
    return (place, b"") if isinstance(place, int) else (_AT_FDCWD, os.fsencode(place))


def enter_root(tree: int, place: str) -> None:
    """Make a tree the root, and detach the old one. `place` is any folder."""
    attach_mount(tree, place)
    os.chdir(place)
    _call("entering the new root", _PIVOT_ROOT[MACHINE], b".", b".")
    _checked(_libc.umount2(b".", _MNT_DETACH), "leaving the old root")
    os.chdir("/")


def drop_capabilities() -> None:
    """Give up all privileges for good, whatever is executed later."""
    _prctl("no new privileges", _NO_NEW_PRIVS, 1)
    _libc.prctl(_CAP_AMBIENT, *[ctypes.c_ulong(part) for part in (_CLEAR_ALL, 0, 0, 0)])
    number = 0
    while not _libc.prctl(_CAPBSET_DROP, *[ctypes.c_ulong(part) for part in (number, 0, 0, 0)]):
        number += 1
    header, none = struct.pack("=II", 0x20080522, 0), struct.pack("=6I", *(0,) * 6)
    _call("dropping capabilities", _CAPSET[MACHINE], header, none)


def hide_memory() -> None:
    """Prevent processes of the same user from tracing this one or reading its memory."""
    _prctl("not dumpable", _DUMPABLE, 0)


def die_with_parent(parent: int, number: int = signal.SIGKILL) -> None:
    """Get a signal as soon as the parent ends. Must follow every change of credentials."""
    _prctl("dying with the parent", _PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def die_with_reader(pipe: int) -> None:
    """End as soon as the parent ends, the only reader of a pipe: the first process of a namespace
    does not see its parent's number. Must follow every change of credentials."""
    _prctl("dying with the parent", _PDEATHSIG, signal.SIGKILL)
    reader = select.poll()
    reader.register(pipe, 0)
    if reader.poll(0):  # the end of the reader is always reported
        os._exit(1)


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants."""
    _prctl("adopting orphans", _SUBREAPER, 1)


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("=16sH14x", b"lo", _IFF_UP))


def install_filter(program: bytes) -> None:
    """Filter system calls (seccomp) from now on, in everything that is started, too."""
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("@HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    address = ctypes.cast(ctypes.c_char_p(head), ctypes.c_void_p).value or 0
    _prctl("no new privileges", _NO_NEW_PRIVS, 1)
    _prctl("filtering system calls", _SECCOMP, 2, address)


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 without it."""
    try:
        return _call("landlock", _LANDLOCK_CREATE, None, 0, 1)
    except OSError:
        return 0


def landlock(handled: int, scoped: int, rules: list[tuple[str, int]]) -> None:
    """Deny `handled` below every path except for those in the rules, and connections outside by
    `scoped`."""
    wanted = struct.pack("=QQQ", handled, 0, scoped)
    ruleset = _call("landlock", _LANDLOCK_CREATE, wanted, 24 if scoped else 8, 0)
    for path, allowed in rules:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        rule = struct.pack("=Qi", allowed & handled, place)
        _call(f"allowing {path}", _LANDLOCK_ADD, ruleset, 1, rule, 0)
        os.close(place)
    _prctl("no new privileges", _NO_NEW_PRIVS, 1)
    _call("landlock", _LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)

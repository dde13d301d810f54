"""Knows a process again: its number may be of another one meanwhile, number and birth never."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def born(pid: int) -> str:
    """Return the birth of a process, as a text that no other process with the same number has.

    "" if it is gone, a zombie, or if this is not known. Blocks.
    """
    if pid <= 0:  # a group, or none: macOS has a process 0
        return ""
    with suppress(OSError, ValueError, IndexError):
        state, *fields = _stat_of(pid)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return "" if state in "ZX" else f"{boot}/{fields[18]}"
    if Path("/proc/self/stat").exists():
        return ""
    import subprocess  # noqa: PLC0415 - macOS alone needs it

    with suppress(OSError, subprocess.SubprocessError):
        command = ["ps", "-o", "lstart=", "-p", str(pid)]
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=2
        ).stdout.strip()
    return ""


def is_stopped(pid: int) -> bool:
    """True if a process is stopped, by Ctrl+Z or SIGSTOP; False where this is not known."""
    with suppress(OSError, ValueError, IndexError):
        return _stat_of(pid)[0] in "Tt"
    return False


def _stat_of(pid: int | str) -> list[str]:
    """Return the fields of /proc about a process after its name: state, parent, group and so on."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return stat[stat.rindex(")") + 1 :].split()

"""Spilling: the whole output goes to a file, a preview and the path stay (L1–L12).

The only part of the guards that touches the disk; everything here runs in a thread.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.core.errors import StorageError
from tui.core.storage.private_files import private_file
from tui.tools.limits.text import head_bytes, tail_bytes

TAIL_BYTES = 1024


@dataclass(frozen=True, slots=True)
class Disk:
    """How much a full copy may take, and what must stay free on the disk (L29)."""

    most: int = 4 * 1024**3
    min_free: int = 1024**3


@dataclass(frozen=True, slots=True)
class Copy:
    """The full copy of an output: its file, and how much is in it. `error`: why not all is."""

    path: Path | None = None
    sha256: str | None = None
    bytes: int = 0
    lines: int = 0
    error: str = ""


def joined(texts: Sequence[str]) -> str:
    """The text blocks as they stand in one file."""
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"--- block {n} ---\n{text}" for n, text in enumerate(texts, 1))


def write_copy(data: bytes, path: Path, disk: Disk) -> Copy:
    """Write the raw output to `path` (0600), or beside it where another result has that name.

    Never raises: a copy that could not be written, or not as a whole, says why (L12, L29).
    """
    error = ""
    whole, data = len(data), data[: disk.most]
    lines = data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
    try:
        with private_file(path) as file:
            path = Path(str(file.name))
            try:
                if free_bytes(file.fileno()) - len(data) < disk.min_free:
                    raise OSError(errno.ENOSPC, "the disk is nearly full")  # noqa: TRY301
                file.write(data)
                file.flush()
                os.fdatasync(file.fileno())
            except OSError:
                path.unlink(missing_ok=True)  # a part of it would be taken for the whole
                raise
    except (OSError, StorageError) as failed:
        return Copy(error=(isinstance(failed, OSError) and failed.strerror) or str(failed))
    if whole > len(data):
        most = human_size(disk.most)
        error = f"only the first {human_size(len(data))} are in {path}: the limit is {most}"
    return Copy(path, hashlib.sha256(data).hexdigest(), len(data), lines, error)


def free_bytes(file: int) -> int:
    """What the disk of an open file has left for us."""
    disk = os.fstatvfs(file)
    return disk.f_bavail * disk.f_frsize


def measure_copy(path: Path) -> Copy:
    """A copy that the tool has already written: its size, lines and hash, in bounded memory."""
    digest, size, lines, last = hashlib.sha256(), 0, 0, b"\n"
    try:
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                size += len(chunk)
                lines += chunk.count(b"\n")
                last = chunk[-1:]
    except OSError as error:
        return Copy(error=error.strerror or str(error))
    return Copy(path, digest.hexdigest(), size, lines + (last != b"\n"))


def notice(
    copy: Copy,
    total: int,
    head: str,
    tail: str,
    *,
    preview_bytes: int,
    exit_code: int | None,
    ends: bool,
) -> str:
    """L8's literal text for an output of `total` bytes; L12's where it is not all kept."""
    if not copy.error:
        text = (
            f"Output too large ({human_size(total)}). Full output saved to: {copy.path}\n\n"
            "Use read_file to view specific sections with offset and limit parameters.\n\n"
        )
    else:
        text = (
            f"Output too large ({human_size(total)}). Failed to save full output: {copy.error}\n\n"
        )
    if ends:
        end = tail_bytes(tail, TAIL_BYTES).rstrip("\n")
        indented = "\n".join(" " + line for line in end.split("\n"))
        code = "none" if exit_code is None else exit_code
        text += f"Exit code: {code}. Last {TAIL_BYTES} bytes:\n{indented}\n\n"
    preview = head_bytes(head, preview_bytes)
    return f"{text}Preview (first {preview_bytes} bytes):\n{preview}\n..."


def overwritten(copy: Copy, size: int) -> str:
    """The line that says that `size` bytes of progress are left out, and where they are."""
    if copy.error:
        kept = f"Failed to save full output: {copy.error}"
    else:
        kept = f"Full output saved to: {copy.path}"
    return f"[{human_size(size)} that were overwritten with \\r are not shown. {kept}]"


def human_size(size: int) -> str:
    """L9: KB with one decimal, MB from 1024 KB."""
    kilobytes = size / 1024
    return f"{kilobytes:.1f} KB" if kilobytes < 1024 else f"{kilobytes / 1024:.1f} MB"

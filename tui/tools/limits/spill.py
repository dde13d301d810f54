"""Spilling: the whole output goes to a file, and a preview with its path replaces it.

The only part of the limits that touches the disk; everything here runs in a thread.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from tui.core.config import Guard
from tui.core.dataclass import dataclass
from tui.core.errors import StorageError
from tui.core.files import free_bytes
from tui.core.messages import RawOutput
from tui.core.private_files import private_copy
from tui.core.workspace import text_of_path
from tui.tools.limits.clamp import head_bytes, tail_bytes

TAIL_BYTES = 1024


@dataclass(frozen=True, slots=True)
class FullCopy:
    """The full copy of an output: its file, and its size. `error` is the reason why it is not
    complete."""

    path: Path | None = None
    sha256: str | None = None
    bytes: int = 0
    lines: int = 0
    error: str = ""


def joined(texts: Sequence[str]) -> str:
    """Return the text blocks as one text, for the file."""
    if len(texts) == 1:
        return texts[0]
    return "\n".join(f"--- block {n} ---\n{text}" for n, text in enumerate(texts, 1))


def write_copy(data: bytes, path: Path, limits: Guard) -> FullCopy:
    """Write the raw output to `path` (0600), or to a numbered name if that is taken.

    Never raises: `error` tells why a copy could not be written, or not as a whole.
    """
    error = ""
    whole, data = len(data), data[: limits.spill_max_bytes]
    lines = data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
    try:
        with private_copy(path) as file:
            path = Path(str(file.name))
            if free_bytes(file.fileno()) - len(data) < limits.spill_min_free_bytes:
                raise OSError(errno.ENOSPC, "the disk is nearly full")  # noqa: TRY301
            file.write(data)
    except (OSError, StorageError) as failed:
        return FullCopy(error=(isinstance(failed, OSError) and failed.strerror) or str(failed))
    if whole > len(data):
        most = human_size(limits.spill_max_bytes)
        some = f"only the first {human_size(len(data))} are in {text_of_path(path)}"
        error = f"{some}: the limit is {most}"
    return FullCopy(path, hashlib.sha256(data).hexdigest(), len(data), lines, error)


def copy_on_disk(path: Path, raw: RawOutput | None) -> FullCopy:
    """Return a copy that the tool has already written: synced, with its size, lines and hash.

    They are those of `raw` if the tool has hashed what it wrote, otherwise they are read from the
    file, in bounded memory.
    """
    digest, size, lines, last = hashlib.sha256(), 0, 0, b"\n"
    try:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            if raw and raw.sha256 and raw.bytes == os.fstat(file.fileno()).st_size:
                return FullCopy(path, raw.sha256, raw.bytes, raw.lines)
            while chunk := file.read(1 << 20):
                digest.update(chunk)
                size += len(chunk)
                lines += chunk.count(b"\n")
                last = chunk[-1:]
    except OSError as error:
        return FullCopy(error=error.strerror or str(error))
    return FullCopy(path, digest.hexdigest(), size, lines + (last != b"\n"))


def notice(
    copy: FullCopy,
    total: int,
    head: str,
    tail: str,
    *,
    preview_bytes: int,
    exit_code: int | None,
    ends: bool,
) -> str:
    """Return the text that replaces an output of `total` bytes: the path of the copy and a preview.

    With `ends`, it has the exit code and the last bytes, too.
    """
    text = f"Output too large ({human_size(total)}). {where(copy)}\n\n"
    if not copy.error:
        text += "Use read_file to view specific sections with offset and limit parameters.\n\n"
    if ends:
        end = tail_bytes(tail, TAIL_BYTES).rstrip("\n")
        indented = "\n".join(" " + line for line in end.split("\n"))
        code = "none" if exit_code is None else exit_code
        text += f"Exit code: {code}. Last {TAIL_BYTES} bytes:\n{indented}\n\n"
    preview = head_bytes(head, preview_bytes)
    return f"{text}Preview (first {preview_bytes} bytes):\n{preview}\n..."


def overwritten_notice(copy: FullCopy, size: int) -> str:
    """Return a line saying that `size` bytes of overwritten output are left out, and where they
    are."""
    amount = human_size(size) if size >= 1024 else f"{size} bytes"
    return f"[{amount} that were written over are not shown. {where(copy)}]"


def where(copy: FullCopy) -> str:
    """Return a sentence with the path of the whole output, or the reason why there is none."""
    if copy.error or copy.path is None:
        return f"Failed to save full output: {copy.error}"
    return f"Full output saved to: {text_of_path(copy.path)}"


def human_size(size: int) -> str:
    """Return a size in KB with one decimal, in MB from 1024 KB."""
    kilobytes = size / 1024
    return f"{kilobytes:.1f} KB" if kilobytes < 1024 else f"{kilobytes / 1024:.1f} MB"

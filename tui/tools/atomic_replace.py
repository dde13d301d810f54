"""Replaces a file in one step, after copying its old bytes, so that nothing is ever lost."""

from __future__ import annotations

import os
import shutil
from functools import partial
from hashlib import file_digest, sha256
from pathlib import Path
from threading import Event
from typing import Any

from tui.core.errors import StorageError, ToolError
from tui.core.files import atomic_write, private_copy, safe_name
from tui.core.formatting import size
from tui.tools.base import ToolContext
from tui.tools.file_access import Snapshot, changed, in_thread, open_regular, os_failure
from tui.tools.text_decoding import printable


def _check_still_wanted(path: Path, shown: str, found: Snapshot | None, stop: Event) -> None:
    """Raises ToolError if the file is another one by now, InterruptedError if `stop` is set."""
    if stop.is_set():
        raise InterruptedError("cancelled before the file was replaced")
    try:
        now = path.lstat()
    except FileNotFoundError:
        now = None
    if (now and _stamp(now)) != (found and _stamp(found.stat)):
        raise changed(shown)


def _stamp(stat: os.stat_result) -> tuple[int, int, int, int]:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


async def replace_file(
    ctx: ToolContext, path: Path, data: bytes, found: Snapshot | None
) -> dict[str, Any]:
    """Replace the content of `path` by `data`, after copying the old bytes. Raises ToolError.

    Returns the fields for the record: path, before (the path of the copy, or None),
    before_sha256, after_sha256. The ledger knows the new content afterwards.
    """
    details, stat = await in_thread(partial(_replace, ctx, path, data, found), finish=True)
    ctx.files.note_seen(path, stat, str(details["after_sha256"]))
    return details


def _replace(
    ctx: ToolContext, path: Path, data: bytes, found: Snapshot | None, stop: Event
) -> tuple[dict[str, Any], os.stat_result]:
    shown = printable(ctx.workspace.show(path))
    before, before_sha256 = _keep_before(ctx, found, shown) if found else (None, None)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        check = partial(_check_still_wanted, path, shown, found, stop)
        stat = atomic_write(path, data, like=found and found.stat, mode=0o666, check=check)
    except (OSError, ToolError) as error:
        if before is not None:
            before.unlink(missing_ok=True)
        if isinstance(error, ToolError):
            raise
        raise os_failure("write", shown, error) from error
    return {
        "path": str(path),
        "before": str(before) if before else None,
        "before_sha256": before_sha256,
        "after_sha256": sha256(data).hexdigest(),
    }, stat


def _keep_before(ctx: ToolContext, found: Snapshot, shown: str) -> tuple[Path, str]:
    """Copy the old bytes into the spill store and return the copy and its SHA-256."""
    try:
        with private_copy(ctx.spill_path.with_name(f"{safe_name(ctx.call_id)}.before")) as file:
            kept = Path(file.name)
            if found.data is not None:
                file.write(found.data)
            else:
                with open_regular(found.path, shown) as source:
                    shutil.copyfileobj(source, file, 1 << 20)
    except (StorageError, OSError) as error:
        raise ToolError(
            f"The old content of {shown} ({size(found.stat.st_size)}) could not be kept, "
            f"so nothing was written: {error}",
            hint="Tell the person; the folder .holdfast must be writable.",
        ) from error
    digest = found.sha256
    if digest is None:
        with kept.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
    return kept, digest

"""list_dir: the content of one folder."""

from __future__ import annotations

import heapq
import os
import stat as stats
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Event
from typing import Annotated, ClassVar

from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import ToolOutput
from tui.tools.base import Effect, Params, Tool, ToolContext, about
from tui.tools.file_access import in_thread, missing, opened_folder, os_failure, resolve
from tui.tools.search import hidden_paths
from tui.tools.text_decoding import printable

MAX_ENTRIES = 1000


class ListDirParams(Params, frozen=True, kw_only=True):
    path: Annotated[str, about("The folder, relative to the workspace or absolute.")] = "."


class ListDir(Tool[ListDirParams]):
    name: ClassVar[str] = "list_dir"
    effect: ClassVar[Effect] = "read"
    params: ClassVar[type[Params]] = ListDirParams

    async def run(self, params: ListDirParams, ctx: ToolContext) -> ToolOutput:
        path = await resolve(ctx, params.path)
        count, lines, hidden = await in_thread(partial(_list, ctx, path))
        if count > len(lines):
            lines.append(
                f"[{len(lines)} of {count} entries; use find_by_name with a pattern for the others]"
            )
        lines += hidden_paths(hidden)
        return ToolOutput.text(
            "\n".join(lines) or "[the folder is empty]",
            summary=f"{count} {'entry' if count == 1 else 'entries'}",
        )


def _list(ctx: ToolContext, path: Path, stop: Event) -> tuple[int, list[str], int]:
    """Return the number of entries, the first of them as lines, folders first, and the number of
    those that may not be read."""
    shown = printable(ctx.workspace.show(path))
    count = hidden = 0

    def counted(entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        nonlocal count, hidden
        for entry in entries:
            if stop.is_set():
                raise InterruptedError("cancelled")
            if ctx.host.reading(path / entry.name) == "deny":
                hidden += 1
                continue
            count += 1
            yield entry

    try:
        with opened_folder(path) as folder, os.scandir(folder) as entries:
            # Only the first entries are kept in memory, whatever the size of the folder.
            first = heapq.nsmallest(MAX_ENTRIES, counted(entries), key=_order)
            lines = [_line(entry, folder) for entry in first]
    except FileNotFoundError as error:
        raise missing(ctx.workspace, path) from error
    except NotADirectoryError as error:
        raise ToolError(f"{shown} isn't a folder.", hint="Use read_file for files.") from error
    except OSError as error:
        raise os_failure("list", shown, error) from error
    return count, lines, hidden


def _order(entry: os.DirEntry[str]) -> tuple[bool, str]:
    try:
        return not entry.is_dir(follow_symlinks=False), entry.name
    except OSError:
        return True, entry.name


def _line(entry: os.DirEntry[str], folder: int) -> str:
    name = printable(entry.name)
    try:
        stat = entry.stat(follow_symlinks=False)
        if stats.S_ISLNK(stat.st_mode):
            return f"{name} -> {printable(os.readlink(entry.name, dir_fd=folder))}"
    except OSError as error:
        return f"{name}  ({error.strerror})"
    if stats.S_ISDIR(stat.st_mode):
        return f"{name}/"
    if stats.S_ISREG(stat.st_mode):
        return f"{name}  {size(stat.st_size)}"
    kinds = {stats.S_IFIFO: "FIFO", stats.S_IFSOCK: "socket"}
    return f"{name}  ({kinds.get(stats.S_IFMT(stat.st_mode), 'device')})"

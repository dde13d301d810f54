"""Files that are not as the model last saw them: reported before each request, shown on demand.

The files that it sees in the window are looked at before each request, off the event loop. A change
is reported once, by a notice at the end of the request.
"""

from __future__ import annotations

import asyncio
import os
import stat as stats
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, TypeAlias

from tui.context import seen_files
from tui.context.seen_files import (
    GONE,
    LINK,
    OTHER,
    UNREADABLE,
    Belief,
    Excerpt,
    FileNews,
    FileState,
    SeenFiles,
)
from tui.core.dataclass import dataclass, replace
from tui.core.errors import HoldfastError, ToolError
from tui.core.facts import FilesChanged
from tui.core.formatting import size
from tui.session.checkpoints.entries import RACY_NS, CheckpointError
from tui.tools.file_access import WHOLE_FILE_LIMIT, in_thread, open_regular
from tui.tools.file_ledger import Snapshot
from tui.tools.stale_text import bounded
from tui.tools.text_decoding import decode, printable

if TYPE_CHECKING:
    from tui.agent.agent_context import AgentContext

_CHUNK = 1 << 20
_Stamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of content and inode."""
_READ_AGAIN = "Ask the model to read it again."


@dataclass(frozen=True, slots=True)
class _Shown:
    """A difference that the next request shows: the fields of its notice, and the file as it then
    is, None where it is gone."""

    data: dict[str, Any]
    found: Snapshot | None


class StaleFiles:
    """Knows of one agent's files what the model believes and what is so."""

    def __init__(self, ctx: AgentContext) -> None:
        self._ctx = ctx
        self._seen = SeenFiles(lambda name: str(ctx.workspace.root / name))
        self._states = FileStates()
        self._comparing = asyncio.Lock()
        self._to_show: dict[str, _Shown] = {}

    def show(self, path: str) -> str:
        """A path as the model and the person read it."""
        return printable(self._ctx.workspace.show(Path(path)))

    async def news(self, is_sent: Callable[[str], bool]) -> list[FileNews]:
        """The files that are not as the model knows them; `is_sent` says whether it has been sent
        a notice."""
        beliefs, now = await self._compare(is_sent)
        return seen_files.news(beliefs.values(), now)

    def event(self, found: Sequence[FileNews]) -> FilesChanged:
        """Make the event that shows changed files to the person."""
        files = tuple(
            {"path": self.show(one.path), "state": one.word, "why": one.why, "calls": one.calls}
            for one in found
        )
        return FilesChanged(files, seen_files.sentences(found, self.show, "the model"))

    async def outdated(self, is_sent: Callable[[str], bool]) -> set[str]:
        """The records in the window that show files as they are no longer."""
        beliefs, now = await self._compare(is_sent)
        changed = seen_files.outdated(beliefs.values(), now)
        return {one.record for each in changed for one in each.belief.excerpts}

    def take_differences(self) -> list[dict[str, Any]]:
        """The fields of the notices that show what changed: the model knows these files then."""
        shown, self._to_show = self._to_show, {}
        for path, one in shown.items():
            if one.found is None:
                self._ctx.toolbox.files.forget(Path(path))
            else:
                snapshot = one.found
                self._ctx.toolbox.files.note_seen(
                    snapshot.path, snapshot.stat, snapshot.sha256, snapshot.data
                )
        return [one.data for one in shown.values()]

    async def show_difference(self, record: str, is_sent: Callable[[str], bool]) -> str:
        """Show the model with the next request how the file has changed that a record shows.
        Returns the file's name. Raises HoldfastError where that can't be."""
        beliefs = self._beliefs(is_sent).values()
        belief = next(
            (one for one in beliefs if any(e.record == record for e in one.excerpts)), None
        )
        if belief is None:
            raise HoldfastError("This item shows no file as the model last saw it.")
        path, shown = belief.last.path, self.show(belief.last.path)
        await in_thread(lambda _stop: self._check_readable(path, shown))
        snapshot = await in_thread(lambda _stop: _read_now(path, shown))
        state = snapshot.sha256 if snapshot else GONE
        if state == belief.last.state:
            raise HoldfastError(f"{shown} is as the model last saw it.")
        text = await in_thread(lambda _stop: _difference(self._before(belief), snapshot, shown))
        if not text:
            raise HoldfastError(f"{shown} changed too much to show.", hint=_READ_AGAIN)
        data = seen_files.difference_of(path, state or "", shown, text)
        self._to_show[path] = _Shown(data, snapshot)
        return shown

    def _check_readable(self, path: str, shown: str) -> None:
        """Raises ToolError for a file that no tool may read now: a record may name any. Blocks."""
        ctx = self._ctx
        workspace, elevated = ctx.workspace.widen(ctx.state.elevated), ctx.state.elevated
        real = workspace.resolve(path)
        if str(real) != path:
            raise ToolError(f"{shown} is reached through a link now, so it wasn't opened.")
        if ctx.rules.gate.policy.reading(workspace, elevated=elevated).answer(real) != "allow":
            raise ToolError(f"A rule forbids reading {shown}, so it wasn't opened.")

    def _before(self, belief: Belief) -> bytes:
        """Return the content of a file when the model last saw it: from the ledger, else from a
        checkpoint.

        Blocks. Raises HoldfastError where that isn't kept.
        """
        excerpt = belief.last
        seen = self._ctx.toolbox.files.seen(Path(excerpt.path))
        if seen is not None and seen.sha256 == excerpt.state and seen.data is not None:
            return seen.data
        with suppress(CheckpointError, ValueError):
            if self._ctx.checkpoints is not None:
                return self._ctx.checkpoints.store().content(bytes.fromhex(excerpt.state))
        what = f"What {self.show(excerpt.path)} held when the model saw it isn't kept."
        raise HoldfastError(what, hint=_READ_AGAIN)

    async def _compare(
        self, is_sent: Callable[[str], bool]
    ) -> tuple[dict[str, Belief], dict[str, FileState]]:
        async with self._comparing:
            beliefs = self._beliefs(is_sent)
            if not beliefs:
                return beliefs, {}
            now, later = await in_thread(lambda stop: self._examined(beliefs, stop))
        for path in later:  # somebody changed it once more: nobody is named
            beliefs[path] = replace(beliefs[path], by="")
        wrote = self._ctx.toolbox.by_sub_agents
        for path in wrote.keys() & beliefs.keys():
            if now.get(path) == (wrote[path] or GONE):
                beliefs[path] = replace(beliefs[path], by="a sub-agent")
        return beliefs, now

    def _examined(
        self, beliefs: Mapping[str, Belief], stop: Event
    ) -> tuple[dict[str, FileState], list[str]]:
        """Return the present states of files, and the paths of those that changed after the command
        that is known. Blocks."""
        now = self._states.of([one.last for one in beliefs.values()], stop)
        changed = [path for path, one in beliefs.items() if one.by and now.get(path) != one.known]
        return now, [path for path in changed if _changed_after(path, beliefs[path].by_time)]

    def _beliefs(self, is_sent: Callable[[str], bool]) -> dict[str, Belief]:
        """Return what the model knows of each file in its window. Holdfast's own copies of outputs
        are left out: they grow while a command runs."""
        self._seen.follow(self._ctx.records)
        beliefs = self._seen.beliefs(self._ctx.ledger.state_of, is_sent)
        own = f"{self._ctx.workspace.tool_results}/"
        return {path: one for path, one in beliefs.items() if not path.startswith(own)}


def _changed_after(path: str, moment: str) -> bool:
    """True if a file, or what is known of it, was changed after a moment of the record."""
    with suppress(OSError, ValueError):
        return os.lstat(path).st_ctime > datetime.fromisoformat(moment).timestamp()
    return False


def _read_now(path: str, shown: str) -> Snapshot | None:
    """A file as it is; None for none. Blocks. Raises ToolError."""
    if not os.path.lexists(path):
        return None
    with open_regular(Path(path), shown) as file:
        data = file.read(WHOLE_FILE_LIMIT + 1)
        stat = os.fstat(file.fileno())
    if len(data) > WHOLE_FILE_LIMIT:
        raise ToolError(f"{shown} is too large to compare: {size(stat.st_size)}.")
    return Snapshot(Path(path), stat, data, sha256(data).hexdigest())


def _difference(before: bytes, found: Snapshot | None, shown: str) -> str:
    """Show how a text has changed; "" where that is too long. Raises ToolError."""
    now = decode(found.data or b"", shown).text if found else None
    return bounded(decode(before, shown).text, now, shown)


class FileStates:
    """Remembers the hashes of files, at the cost of a `stat` where nothing happened. Blocks.

    A file whose size, times and inode are as before is as before; else its content is hashed.
    Nothing is opened but a regular file at the very path: no link is followed, no pipe waited for.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[_Stamp, str]] = {}

    def of(self, excerpts: Iterable[Excerpt], stop: Event) -> dict[str, FileState]:
        """Return the present states of the files of excerpts, by path, each in the form of its
        excerpt. Forgets all others. Leaves out those that were not looked at when `stop` was
        set."""
        states: dict[str, FileState] = {}
        for one in excerpts:
            if stop.is_set():
                return states
            states[one.path] = self._state(one, stop)
        self._known = {path: known for path, known in self._known.items() if path in states}
        return states

    def _state(self, excerpt: Excerpt, stop: Event) -> FileState:
        path = excerpt.path
        try:
            if excerpt.link and os.path.realpath(excerpt.link) != path:
                return LINK if os.path.lexists(excerpt.link) else GONE
            now = os.lstat(path)
            if stats.S_ISLNK(now.st_mode):
                return LINK
            if not stats.S_ISREG(now.st_mode):
                return OTHER
            if not excerpt.hashed or now.st_size > WHOLE_FILE_LIMIT:
                return f"{now.st_size} {now.st_mtime_ns}"
            return self._hash(path, now, stop)
        except (FileNotFoundError, NotADirectoryError):
            return GONE
        except (OSError, ToolError, ValueError):
            return UNREADABLE

    def _hash(self, path: str, now: os.stat_result, stop: Event) -> str:
        stamp, known = _stamp(now), self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        began = time.time_ns()
        with open_regular(Path(path), path) as file:
            stamp = _stamp(os.fstat(file.fileno()))
            digest = sha256()
            while not stop.is_set() and (chunk := file.read(_CHUNK)):
                digest.update(chunk)
            same = _stamp(os.fstat(file.fileno())) == stamp
        if same and max(stamp[3:]) < began - RACY_NS and not stop.is_set():
            self._known[path] = stamp, digest.hexdigest()
        else:  # it may change once more and keep its times
            self._known.pop(path, None)
        return digest.hexdigest()


def _stamp(stat: os.stat_result) -> _Stamp:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns

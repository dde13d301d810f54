"""The one index of all that is not in the window: this conversation, the outputs that it cut, the
sessions of its sub-agents, and earlier sessions of the folder.

Only files of this workspace are read: full outputs in its folder of tool results, and sessions
among its own. All of it blocks, but for `recalled`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Final

from tui.context.overrides import RecordState
from tui.context.recall import Passage, PassageHit, passages, search
from tui.core.dataclass import dataclass
from tui.core.errors import SessionError, ToolError
from tui.core.files import read_small
from tui.core.formatting import plural
from tui.core.output_store import OutsideError, open_full_copy
from tui.core.paths import Folders
from tui.session import catalog
from tui.session.reader import read
from tui.session.records import Record
from tui.tools.file_access import in_thread
from tui.tools.paging import PageLimits
from tui.tools.recall import MessageAddress, RecallParams

_COPY_BYTES: Final = 64 << 20
"""Bytes that are read of one full output."""
_FOOTER_BYTES: Final = 120
_QUERY_CHARS: Final = 400
_SEARCHED_BYTES: Final = 8 << 20
"""Bytes that are searched of one full output."""
_SESSIONS: Final = 5
"""In so many other sessions a search names messages."""


@dataclass(frozen=True, slots=True)
class RecallSources:
    """The sources for what a session has not in its window. `states` are those of its `records` in
    the view; `outputs` the folder of full outputs. `path` is its own file, and `folders` and
    `workspace` lead to the others; None where it is not saved."""

    records: Sequence[Record]
    states: Mapping[str, RecordState]
    outputs: Path
    path: Path | None = None
    folders: Folders | None = None
    workspace: Path | None = None


async def recalled(
    sources: RecallSources, asked: RecallParams, limits: PageLimits, *, for_person: bool = False
) -> tuple[str, str]:
    """The text that answers a question, and what it is in a few words. Raises ToolError where there
    is no such message or session."""

    def work(stop: Event) -> tuple[str, str]:
        if asked.query.strip():
            return _searched(sources, asked, stop, for_person=for_person)
        return _paged(sources, asked, limits, for_person=for_person)

    return await in_thread(work)


def _searched(
    sources: RecallSources, asked: RecallParams, stop: Event, *, for_person: bool
) -> tuple[str, str]:
    query = " ".join(asked.query[:_QUERY_CHARS].split())
    known_passages = passages(sources.records, sources.states, for_person=for_person)
    excerpts, all_words = search(
        known_passages, query, _with_copy(sources.outputs, _SEARCHED_BYTES)
    )
    elsewhere = _elsewhere(sources, query, stop, for_person=for_person)
    if elsewhere and not all_words:  # which hold all words
        excerpts, all_words = [], True
    hits = [*(("", one) for one in excerpts), *elsewhere]
    count = plural(len(hits), "message")
    if not hits:
        return f"Nothing outside the window holds “{query}”.", "nothing found"
    head = f"{count} outside the window with “{query}”, the newest first."
    if not all_words:
        head = f"No message holds all of “{query}”. These hold the most of it, the best first."
    head += " Give its address to read one whole."
    shown = [f"{_head(one.passage, where)}\n{one.text}" for where, one in hits]
    return "\n".join([head, *shown]), count


def _head(passage: Passage, session: str = "") -> str:
    why = f" · {passage.absence}" if passage.absence else ""
    return f"--- message {session}{passage.number}{why} ---"


def _elsewhere(
    sources: RecallSources, query: str, stop: Event, *, for_person: bool
) -> list[tuple[str, PassageHit]]:
    """Search sub-agents and earlier sessions of the folder; each hit comes with the beginning of
    its address."""
    from tui.session import search as texts  # noqa: PLC0415 - it needs sqlite

    def still_wanted(_done: int, _of: int) -> None:
        if stop.is_set():
            raise ToolError("Stopped.")

    if sources.folders is None or sources.workspace is None:
        return []
    files = [
        state
        for scan in (catalog.scan, catalog.scan_children)
        for state in scan(sources.folders, sources.workspace)
        if sources.path is None or Path(state[1]) != sources.path
    ]
    # the index finds sessions; their passages are then searched as the window's are
    by_session: dict[str, set[str]] = {}
    found = texts.search(
        sources.folders.cache, texts.ours(files), texts.Query.of(query), progress=still_wanted
    )
    for hit in found.hits:
        if hit.path in by_session or len(by_session) < _SESSIONS:
            by_session.setdefault(hit.path, set()).add(hit.message)
    hits: list[tuple[str, PassageHit]] = []
    for path, records in by_session.items():
        with suppress(SessionError):
            branch = read(Path(path)).branch
            chosen = [p for p in passages(branch, for_person=for_person) if p.record in records]
            excerpts, _ = search(chosen, query, _with_copy(sources.outputs, _SEARCHED_BYTES))
            hits += [(f"{catalog.id_of(Path(path))}:", one) for one in excerpts]
    return hits


def _paged(
    sources: RecallSources,
    asked: RecallParams,
    limits: PageLimits,
    *,
    for_person: bool,
) -> tuple[str, str]:
    address = MessageAddress.of(asked.message)
    records, states = sources.records, sources.states
    if address.session:
        records, states = _branch(sources, address.session), None
    whole = _with_copy(sources.outputs, _COPY_BYTES)
    every = passages(records, for_person=for_person)
    wanted = [p for p in every if address.first <= p.number <= address.last]
    if not wanted:
        count = every[-1].number if every else 0
        raise ToolError(
            f"There is nothing to read in message {asked.message}.",
            hint=f"There are {plural(count, 'message')}; some are empty or masked.",
        )
    absent = {one.number: one for one in passages(records, states, for_person=for_person)}
    text = "\n".join(f"{_head(absent.get(one.number, one))}\n{whole(one)}" for one in wanted)
    return _page(text, asked.offset, limits)


def _page(text: str, start: int, limits: PageLimits) -> tuple[str, str]:
    """The part of a text from a character on that fits a page, and what it is in a few words; the
    last line says how to continue."""
    lines = text[start : start + limits.bytes].splitlines(keepends=True)[: limits.lines - 1]
    room, taken = limits.bytes - _FOOTER_BYTES, list[str]()
    for line in lines:
        room -= len(line.encode("utf-8", "replace"))
        if room < 0 and taken:
            break
        taken.append(line)
    part = "".join(taken)
    if room < 0:  # one line that is larger than a page
        part = part.encode("utf-8", "replace")[: limits.bytes - _FOOTER_BYTES].decode(
            errors="ignore"
        )
    end = start + len(part)
    shown = plural(len(part.splitlines()), "line")
    if end >= len(text):
        return part, shown
    footer = f"[up to character {end:,} of {len(text):,}; continue with offset={end}]"
    return f"{part.rstrip()}\n{footer}", f"{shown}, more follows"


def _branch(sources: RecallSources, session: str) -> list[Record]:
    """The records of another session of this folder. Raises ToolError where there is none."""
    if sources.folders is None or sources.workspace is None:
        raise ToolError("No other session can be read here.", hint="Leave its id out.")
    place = sources.folders.sessions_of(sources.workspace).resolve()
    try:
        path = catalog.resolve(Path(session).name, sources.folders).resolve()
        if place in path.parents:
            return read(path).branch
    except SessionError:
        pass
    raise ToolError(
        f"There is no session {session} in this folder.", hint="Search with query: it names them."
    )


def _with_copy(outputs: Path, most: int) -> Callable[[Passage], str]:
    """Gives the text of a passage, with the full output where there is a copy of it."""

    def whole(passage: Passage) -> str:
        path = Path(passage.copy) if passage.copy else None
        if path is None:
            return passage.text
        try:
            opened = open_full_copy(path, outputs)
            data, _ = read_small(path, limit=most, whole=False, opened=opened)
        except OutsideError:
            return passage.text
        except OSError:
            return f"{passage.text}\n[The full output is not there any more: {path.name}.]"
        return f"Result: {data.decode(errors='replace')}"

    return whole

"""The sessions for the browser: ours and those of other agents. Everything blocks."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

from tui.app import background
from tui.app.dialog_data import SessionRow
from tui.app.services import AppServices
from tui.context.history import history
from tui.context.repair import repair
from tui.core.clock import Clock
from tui.core.dataclass import dataclass, replace
from tui.core.facts import TitleChanged
from tui.core.paths import Folders
from tui.session import catalog, copies
from tui.session.passages import Kind
from tui.session.reader import LoadedSession, read, read_ends
from tui.session.records import LEFT_OUT, Finding, Record

Format: TypeAlias = Literal["md", "html", "jsonl"]
Progress: TypeAlias = Callable[[int, int], None]

PREVIEW = 60
"""Number of records of a long session that are previewed: its last ones."""

_AROUND = 20
_DOCUMENT = re.compile(r"session-[0-9a-f]{12}(-\d+)?\.(md|html|jsonl)")
_AGENTS = {"claude_code": "Claude Code", "pi": "pi", "codex": "Codex", "opencode": "opencode"}


@dataclass(frozen=True, slots=True)
class SearchHit:
    """The place where a text was found: the session, the id of the record, what is around it, and
    which kind of text it is in."""

    row: SessionRow
    message: str
    snippet: str
    kind: Kind = "prompt"


@dataclass(frozen=True, slots=True)
class SessionPreview:
    """The records to show of a session, and which of them to show first ("" for the last)."""

    records: Sequence[Record]
    message: str = ""


@dataclass(frozen=True, slots=True)
class SessionRepository:
    """The sessions as the browser sees and changes them. Raises HoldfastError.

    `home` is the person's home folder, below which other agents keep their sessions.
    """

    folders: Folders
    workspace: Path
    clock: Clock
    home: Path

    @classmethod
    def of(cls, services: AppServices) -> SessionRepository:
        """The sessions there are."""
        return cls(services.folders, services.workspace, services.clock, Path.home())

    def ours(
        self, *, everywhere: bool, sub_agents: bool = False, progress: Progress | None = None
    ) -> list[SessionRow]:
        """The sessions of this folder, or all; the one used last first. With `sub_agents` those of
        sub-agents after them."""
        from tui.session import index  # noqa: PLC0415 - it needs sqlite

        where = None if everywhere else self.workspace
        files = catalog.scan(self.folders, where)
        entries = index.entries(self.folders.cache, files, progress)
        rows = [row_of(entry, one) for entry, one in zip(entries, files, strict=True)]
        if sub_agents:
            files = catalog.scan_children(self.folders, where)
            entries = index.entries(self.folders.cache, files, progress)
            rows += [
                replace(row_of(entry, one), parent=str(catalog.parent_of(Path(entry.path))))
                for entry, one in zip(entries, files, strict=True)
            ]
        every = background.sessions(self.folders, self.clock.now())
        states = {one.path: one.state for one in every if one.running}
        if not states:
            return rows
        return [replace(row, background=states.get(os.path.realpath(row.path), "")) for row in rows]

    def others(self) -> list[SessionRow]:
        """The sessions of other agents in their usual folders."""
        from tui.session import importers  # noqa: PLC0415 - only where they are asked for

        roots = importers.usual_folders(self.home, os.environ)
        return [
            SessionRow(
                id=one.path.stem,
                path=one.path,
                title=one.title,
                updated=datetime.fromtimestamp(one.changed / 1e9, UTC),
                messages=0,
                size=one.size,
                cwd=one.cwd,
                agent=agent_name(one.format),
            )
            for one in importers.find(roots)
        ]

    def search(
        self, text: str, rows: Sequence[SessionRow], *, progress: Progress | None = None
    ) -> tuple[list[SearchHit], str]:
        """Find the words of a text in these sessions, those of their sub-agents, and their full
        outputs; the newest session first. Returns the hits, and what the person should know of how
        they were found."""
        from tui.session import index, search  # noqa: PLC0415 - they need sqlite

        by_path = {str(row.path): row for row in rows}
        there = [*catalog.scan(self.folders), *catalog.scan_children(self.folders)]
        files = {
            one[1]: one
            for one in there
            if one[1] in by_path or str(catalog.parent_of(Path(one[1]))) in by_path
        }
        sources = search.ours([*files.values()])
        if any(row.agent for row in rows):
            sources += [one for one in search.others(self.home, os.environ) if one.path in by_path]
        query = search.Query.of(text)
        found = search.search(self.folders.cache, sources, query, progress=progress)
        paths = dict.fromkeys(hit.path for hit in found.hits if hit.path not in by_path)
        children = [files[path] for path in paths]
        for entry, one in zip(index.entries(self.folders.cache, children), children, strict=True):
            parent = str(catalog.parent_of(Path(entry.path)))
            by_path[entry.path] = replace(row_of(entry, one), parent=parent)
        hits = [
            SearchHit(by_path[hit.path], hit.message, hit.snippet, hit.kind) for hit in found.hits
        ]
        more = f"Showing the first {search.LIMIT} hits. Add words to narrow them down."
        return hits, found.remark or (more if len(hits) == search.LIMIT else "")

    def restore_index(self, progress: Progress) -> None:
        """Make what deletions took from the index of texts again, when a search has been shown."""
        from tui.session import search  # noqa: PLC0415 - it needs sqlite

        search.restore(self.folders.cache, progress)

    def preview(self, row: SessionRow, message: str = "") -> SessionPreview:
        """The end of a session, or what is around one of its records."""
        if row.agent:
            from tui.session import importers  # noqa: PLC0415 - only where they are asked for

            loaded = importers.load(row.path)
        elif message:
            loaded = read(row.path)
        else:
            loaded = read_ends(row.path)
        if not message:
            return SessionPreview(loaded.branch[-PREVIEW:])
        branch = loaded.branch
        at = next((n for n, record in enumerate(branch) if record.id == message), None)
        if at is None:  # on a side branch
            return SessionPreview([r for r in loaded.records if r.id == message], message)
        return SessionPreview(branch[max(0, at - _AROUND) : at + _AROUND], message)

    def rename(self, row: SessionRow, title: str) -> SessionRow:
        """Give a session a title. Raises SessionInUseError."""
        add_title(row.path, title, self.clock)
        return replace(row, title=title)

    def fork(self, row: SessionRow, at: str = "") -> Path:
        """A copy of a session, whole or up to a message. Returns its file."""
        return copies.fork(
            read(row.path), folders=self.folders, clock=self.clock, at=at, cwd=self.workspace
        )

    def export(self, row: SessionRow, format_: Format) -> tuple[Path, int]:
        """Write a session as a document into the workspace. Returns where, and secrets removed."""
        return write_document(self._read(row), self.workspace, row.id, format_, row.title)

    def delete(self, row: SessionRow) -> Path:
        """Move a session to the trash. Returns where it is now."""
        return copies.delete(row.path, folders=self.folders, clock=self.clock)

    def damage(self, loaded: LoadedSession) -> tuple[Finding, ...]:
        """Return what is wrong with a session, in its file and as a conversation."""
        _, findings = repair(history(loaded.branch).messages, tail="open")
        return (*loaded.findings, *findings)

    def take_over(self, path: Path) -> Path:
        """Copy another agent's session into one of ours, its findings noted. Returns the file."""
        from tui.session import importers  # noqa: PLC0415 - only where they are asked for

        loaded = importers.load(path)
        copies.check_speaks(loaded)
        header = copies.header_of(loaded, clock=self.clock, cwd=self.workspace)
        made = copies.place_of(header, folders=self.folders, clock=self.clock)
        records = loaded.branch
        if findings := [one for one in self.damage(loaded) if one.code != LEFT_OUT]:
            last = records[-1] if records else None
            id_, time = (f"{last.id}-found", last.time) if last else ("found", header.created)
            data = {"findings": [finding.to_json() for finding in findings]}
            records.append(Record("repair", id_, last.id if last else None, time, data))
        copies.write_family(made, header, records, loaded.children, clock=self.clock)
        return made

    def _read(self, row: SessionRow) -> LoadedSession:
        if row.agent:
            from tui.session import importers  # noqa: PLC0415 - only where they are asked for

            return importers.load(row.path)
        return read(row.path)


def agent_name(agent: str) -> str:
    """The name of another agent by that of its format."""
    return _AGENTS.get(agent, agent)


def add_title(path: Path, title: str, clock: Clock) -> str:
    """Give a session a title, by a record. Returns its id. Raises SessionInUseError."""
    from tui.session.session import Session  # noqa: PLC0415 - only where it is asked for

    session = Session.open(path, clock=clock)

    async def add() -> None:
        session.record(TitleChanged(title))
        await session.close()

    asyncio.run(add())
    return session.id


def write_document(
    loaded: LoadedSession, folder: Path, id_: str, format_: Format, title: str
) -> tuple[Path, int]:
    """Write a session as a document into a folder, under a name that is free. Returns the file,
    and how many secrets were removed."""
    from tui.session.export import export  # noqa: PLC0415 - only where it is asked for

    path, number = folder / f"session-{id_}.{format_}", 1
    while path.exists():
        number += 1
        path = path.with_name(f"session-{id_}-{number}.{format_}")
    document = export(loaded, format_, title=title)
    copies.write_new(path, document.text.encode("utf-8", "replace"))
    return path, document.secrets


def is_document(path: Path) -> bool:
    """True for the name of a session's document that was written for a person."""
    return bool(_DOCUMENT.fullmatch(path.name))


def row_of(entry: catalog.SessionSummary, found: catalog.SessionFileState) -> SessionRow:
    """One session's line in the browser."""
    changed, path, size = found
    try:
        updated = datetime.fromisoformat(entry.updated)
        if updated.tzinfo is None:
            updated = updated.replace(tzinfo=UTC)
    except ValueError:
        updated = datetime.fromtimestamp(changed / 1e9, UTC)
    return SessionRow(
        entry.id, Path(path), entry.title, updated, entry.messages, size, entry.state, entry.cwd,
        problems=entry.problems, profile=entry.profile,
    )  # fmt: skip

"""One session: its header, the records of its active branch, and its file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tui
from tui.clock import Clock, timestamp
from tui.messages import Usage, blocks_of, text_of
from tui.paths import Folders
from tui.session.reader import Loaded, read
from tui.session.records import Finding, Header, Record, new_id, new_session_id
from tui.session.store import SessionFile

TITLE_CHARS = 80
DIRECTIVES = ("think", "verbose", "elevated")


class Session:
    """The record of one conversation, in memory and on disk. Used from one event loop.

    `records` is the active branch and only grows. `metadata["directives"]` holds the directives
    last recorded, as they stand in the file (K26). The file of a new session appears with its
    first prompt: a session in which nothing was asked leaves no trace.
    """

    def __init__(
        self,
        header: Header,
        file: SessionFile | None,
        clock: Clock,
        *,
        records: Iterable[Record] = (),
        findings: Iterable[Finding] = (),
        resumed: bool = False,
    ) -> None:
        self.header = header
        self.records: list[Record] = []
        self.findings = tuple(findings)
        self.resumed = resumed
        self.metadata: dict[str, Any] = {}
        self.title = ""
        self.model = ""
        self.usage = Usage()
        self._file = file
        self._clock = clock
        self._waiting: list[bytes] | None = None if resumed else []
        for record in records:
            self._note(record)

    @classmethod
    def create(cls, workspace: Path, *, folders: Folders, clock: Clock) -> Session:
        """A new session of a workspace."""
        header = _new_header(workspace, clock)
        name = f"{clock.now():%Y%m%dT%H%M%SZ}-{header.id}.jsonl"
        path = folders.sessions_of(workspace) / name
        return cls(header, SessionFile(path, header=header.to_line()), clock)

    @classmethod
    def in_memory(cls, workspace: Path, *, clock: Clock) -> Session:
        """A new session that leaves nothing on disk (`--no-session`)."""
        return cls(_new_header(workspace, clock), None, clock)

    @classmethod
    def open(cls, path: Path, *, clock: Clock) -> Session:
        """Go on with a session. Blocks while it is read; damage is in `findings`, and stays.

        Raises SessionError where the file cannot be read at all.
        """
        real = Path(os.path.realpath(path))
        return cls.of(read(real), clock=clock)

    @classmethod
    def of(cls, loaded: Loaded, *, clock: Clock) -> Session:
        """Go on with a session that has been read."""
        return cls(
            loaded.header,
            SessionFile(loaded.path),
            clock,
            records=loaded.branch,
            findings=loaded.findings,
            resumed=True,
        )

    @property
    def id(self) -> str:
        return self.header.id

    @property
    def path(self) -> Path | None:
        """The file, which may not exist yet; None for a session kept in memory."""
        return self._file.path if self._file else None

    @property
    def directives(self) -> Any:
        """What the record says of the directives, unchecked (K44)."""
        return self.metadata.get("directives")

    @property
    def saved(self) -> bool:
        """Whether everything meant for the disk got there, as far as is known."""
        return self._file is None or self._file.saved

    @property
    def problem(self) -> str:
        """Why something is not saved; "" where everything is."""
        return self._file.problem if self._file else ""

    def append(self, type_: str, **data: Any) -> Record:
        """Add a record to the branch and write it, without waiting for the disk.

        Never raises for the disk: what cannot be written is kept and tried again, see `saved`.
        """
        now = self._clock.now()
        last = self.records[-1].id if self.records else None
        record = Record(type_, new_id(now, after=last or ""), last, timestamp(now), data)
        line = record.to_line()
        self._note(record)
        if self._file is not None:
            self._write(self._file, line, starts=type_ == "user")
        return record

    async def commit(self, type_: str, **data: Any) -> Record:
        """Add a record and wait until it is on the disk. Raises StorageError if it is not."""
        record = self.append(type_, **data)
        await self.sync()
        return record

    async def sync(self) -> None:
        """Wait until everything written so far is on the disk. Raises StorageError if not."""
        if self._file is not None:
            await self._file.sync()

    async def close(self) -> None:
        """Sync and let go of the file. Raises StorageError if something could not be saved."""
        if self._file is not None:
            await self._file.close()

    def _write(self, file: SessionFile, line: bytes, *, starts: bool) -> None:
        if self._waiting is not None:
            self._waiting.append(line)
            if not starts:
                return
            lines, self._waiting = self._waiting, None
        else:
            lines = [line]
        for each in lines:
            file.append(each)

    def _note(self, record: Record) -> None:
        """Keep a record and what it says about the session."""
        self.records.append(record)
        data = record.data
        match record.type:
            case "user" if not self.title:
                self.title = title_of(data)
            case "title" if isinstance(data.get("title"), str):
                self.title = data["title"]
            case "assistant":
                self.usage += Usage.from_json(data.get("usage"))
                if isinstance(data.get("model"), str):
                    self.model = data["model"]
            case "directive":
                self.metadata["directives"] = {k: data[k] for k in DIRECTIVES if k in data}
            case _:
                pass


def title_of(prompt: dict[str, Any]) -> str:
    """The first words of a prompt's record, on one line."""
    text = prompt.get("text")
    if not isinstance(text, str):
        text = text_of(blocks_of(prompt.get("content")))
    line = " ".join(text[: TITLE_CHARS * 8].split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def _new_header(workspace: Path, clock: Clock) -> Header:
    app = f"holdfast {tui.__version__}"
    return Header(new_session_id(), timestamp(clock.now()), str(workspace), app)

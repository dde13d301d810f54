"""The contents of files, by their hashes, wherever sessions keep them.

A content is in a checkpoint, in the copy that a write kept of what it wrote over, or still in the
file; or the call that wrote it gives it again. Reading blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from tui.core.dataclass import dataclass, field
from tui.core.errors import SessionError
from tui.core.files import read_small
from tui.core.messages import blocks_of, object_of, string_of, tool_calls
from tui.session.checkpoints.entries import CheckpointError
from tui.session.checkpoints.store import CheckpointStore
from tui.session.reader import read
from tui.session.records import Record

ToolCall: TypeAlias = tuple[str, Mapping[str, Any]]
"""The name of a tool, and the arguments of a call of it."""


class WritingCall(NamedTuple):
    """A call of a file tool that wrote to a path. `source` has the session's calls: they, or its
    file, which is read with the first need. `before` is the hash of what was there, "" for no
    file. If it was `formatted` afterwards, the hash of what it wrote isn't known."""

    source: Path | Mapping[str, ToolCall]
    id: str
    path: str
    before: str
    formatted: bool = False


@dataclass(slots=True)
class ContentSearch:
    """Finds contents by their SHA-256 in hexadecimal. `limit` is the size up to which files are
    read. What is found proves itself by its hash, so a place that is named wrongly does no harm;
    only what a formatter made of a call's content, which isn't kept, is given as the call wrote it.
    """

    limit: int
    stores: list[CheckpointStore] = field(default_factory=list[CheckpointStore])
    _made: dict[str, bytes] = field(default_factory=dict[str, bytes])
    _files: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    _calls: dict[str, WritingCall] = field(default_factory=dict[str, WritingCall])
    _asked: set[str] = field(default_factory=set[str])
    _sessions: dict[Path, Mapping[str, ToolCall]] = field(
        default_factory=dict[Path, Mapping[str, ToolCall]]
    )

    def add(self, data: bytes) -> str:
        """Take a content in; its hash."""
        digest = sha256(data).hexdigest()
        self._made[digest] = data
        return digest

    def may_be_in(self, digest: str, file: str) -> None:
        """Remember a file that may have a content."""
        files = self._files.get(digest, ())
        if file not in files:
            self._files[digest] = (*files, file)

    def written_by(self, digest: str, call: WritingCall) -> None:
        """Remember a call that wrote a content; the first one counts."""
        self._calls.setdefault(digest, call)

    def find(self, digest: str) -> bytes | None:
        """The content with a hash; None where it is kept nowhere, and no call gives it."""
        calls: list[tuple[str, WritingCall]] = []
        wanted = digest
        while (data := self._stored(wanted)) is None:
            call = self._calls.get(wanted)
            if call is None or wanted in self._asked:  # once: calls may lead in a circle
                return None
            self._asked.add(wanted)
            calls.append((wanted, call))
            wanted = call.before
        for made, call in reversed(calls):
            data = self._done_on(call, data)
            if data is None or not (call.formatted or sha256(data).hexdigest() == made):
                return None
            self._made[made] = data
        return data

    def unformatted(self, digest: str) -> bytes | None:
        """The content that a call wrote before a formatter made this one of it."""
        call = self._calls.get(digest)
        old = self.find(call.before) if call is not None and call.formatted else None
        return None if call is None or old is None else self._done_on(call, old)

    def _done_on(self, call: WritingCall, data: bytes) -> bytes | None:
        """The content that a call makes of another; None where that can't be told."""
        from tui.context.written_again import written  # noqa: PLC0415 - seldom needed

        source = call.source
        made = (self._calls_in(source) if isinstance(source, Path) else source).get(call.id)
        return None if made is None else written(*made, data, Path(call.path))

    def arguments(self, session: Path, call: str) -> str:
        """The strings among the arguments of a session's call; "" where there are none."""
        _, given = self._calls_in(session).get(call, ("", {}))
        return "\n".join(filter(None, map(string_of, given.values())))

    def _calls_in(self, session: Path) -> Mapping[str, ToolCall]:
        if session not in self._sessions:
            self._sessions[session] = _calls_of(session)
        return self._sessions[session]

    def _stored(self, digest: str) -> bytes | None:
        """The content with a hash where it is kept somewhere; "" is no file."""
        if not digest:
            return b""
        if digest in self._made:
            return self._made[digest]
        for store in self.stores:
            with suppress(CheckpointError, ValueError):
                return store.content(bytes.fromhex(digest))
        for file in self._files.get(digest, ()):
            with suppress(OSError):
                data, _ = read_small(Path(file), limit=self.limit, follow=False, real=True)
                if sha256(data).hexdigest() == digest:
                    return data
        return None


def calls_in(records: Sequence[Record]) -> dict[str, ToolCall]:
    """The calls of tools in records, by their ids."""
    return {
        string_of(block.get("id")): (string_of(block.get("name")), object_of(block.get("input")))
        for record in records
        if record.type == "assistant"
        for block in tool_calls(blocks_of(record.data.get("content")))
    }


def _calls_of(session: Path) -> Mapping[str, ToolCall]:
    try:
        return calls_in(read(session).records)
    except (SessionError, OSError):
        return {}

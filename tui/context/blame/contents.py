"""The contents that a file may have had, by their hashes, their lines, and the maps between them.

Everything blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tui.context.blame.line_map import LineMap, Reformatted, composed, line_map
from tui.context.blame.steps import ForeignEdit, RecordedStep, SessionSteps
from tui.context.blame.trace import lines_of
from tui.context.content_search import ContentSearch, WritingCall

FILE_BYTES_MAX: Final = 20_000_000
"""A larger file isn't followed line by line."""
_TEXTS_MAX: Final = 32
"""Contents whose lines are held at once."""


class FileContents:
    """The contents that are known, by their hashes, and their lines."""

    def __init__(self) -> None:
        self._kept = ContentSearch(FILE_BYTES_MAX)
        self.stores, self.add = self._kept.stores, self._kept.add
        self._texts: dict[str, list[str] | None] = {}
        self.copies: set[str] = set()
        self._sessions: dict[str, Path] = {}

    def known(self, file: Path, steps: SessionSteps) -> None:
        """Note where a session keeps the files from before its writes, and its calls."""
        self._sessions[steps.id] = file
        for write in steps.writes:
            if write.after:
                id_ = steps.steps[write.step].call
                call = WritingCall(file, id_, write.path, write.before, write.hook >= 0)
                self._kept.written_by(write.after, call)
            if write.copy:
                self.copies.add(write.copy)
            if write.copy and write.before:
                self._kept.may_be_in(write.before, write.copy)

    def lines(self, digest: str) -> list[str] | None:
        """The lines of a content; None where it isn't kept, or is no text."""
        if not digest:
            return []
        if digest not in self._texts:
            data = self._kept.find(digest)
            if len(self._texts) >= _TEXTS_MAX:
                self._texts.pop(next(iter(self._texts)))
            self._texts[digest] = None if data is None else lines_of(data)
        return self._texts[digest]

    def words(self, step: RecordedStep) -> str:
        """All text in the arguments of a step's call; "" where they aren't known."""
        file = self._sessions.get(step.session)
        return self._kept.arguments(file, step.call) if file and step.call else ""

    def data(self, digest: str) -> bytes | None:
        """The bytes of a content; None where it isn't kept."""
        return self._kept.find(digest)

    def unformatted(self, digest: str) -> list[str] | None:
        """The lines of a content before a formatter, which ran after the call that wrote it."""
        data = self._kept.unformatted(digest)
        return None if data is None else lines_of(data)

    def rewritten(self, now: str | None, edit: ForeignEdit) -> str | None:
        """The hash of a file after another agent's edit, if that fits."""
        if edit.content is not None:
            return self.add(edit.content.encode("utf-8", "surrogateescape"))
        data = self._kept.find(now) if now else None
        if data is None:
            return None
        text = data.decode("utf-8", "surrogateescape")
        for old, new in edit.passages:
            if not old or text.count(old) != 1:
                return None
            text = text.replace(old, new)
        return self.add(text.encode("utf-8", "surrogateescape"))


class PrunedContentError(Exception):
    """A content that a kept map leads to is gone: it was pruned since."""


class LineMaps:
    """The maps between contents, each made once; those of an earlier answer are taken over."""

    def __init__(self, contents: FileContents, kept: bytes) -> None:
        self._contents = contents
        self._kept: dict[str, LineMap] = {}
        self._used: dict[str, LineMap] = {}
        with suppress(msgspec.MsgspecError):
            self._kept = msgspec.json.decode(kept or b"{}", type=dict[str, LineMap])

    def between(self, old: str, new: str, reformatted: Reformatted) -> LineMap | None:
        """See `trace.BlameSources`. Raises PrunedContentError where the old content isn't kept."""

        def made(before: Sequence[str], after: Sequence[str]) -> LineMap:
            return line_map(before, after, reformatted)

        return self._known(old, new, reformatted, made)

    def of_edit(self, old: str, new: str) -> LineMap | None:
        """See `trace.BlameSources`: by way of what the edit wrote, where that can be told."""

        def made(before: Sequence[str], after: Sequence[str]) -> LineMap:
            between = self._contents.unformatted(new)
            if between is None:
                return line_map(before, after, "lines")
            first = line_map(before, between, "nothing")
            return composed(first, line_map(between, after, "all"))

        return self._known(old, new, "edit", made)

    def _known(
        self, old: str, new: str, how: str, made: Callable[[Sequence[str], Sequence[str]], LineMap]
    ) -> LineMap | None:
        key = f"{old} {new} {how}"
        found = self._used.get(key) or self._kept.get(key)
        if found is None:
            after = self._contents.lines(new)
            if after is None:
                return None
            before = self._contents.lines(old)
            if before is None:
                raise PrunedContentError
            found = made(before, after)
        self._used[key] = found
        return found

    def encoded(self) -> bytes:
        """The maps that were used, to be kept."""
        return msgspec.json.encode(self._used)

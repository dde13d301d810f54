"""Earlier prompts, kept per workspace, bounded in number and size."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, cast

from tui.core.messages import list_of

LIMIT = 500
"""Entries that are kept."""

ENTRY_LIMIT = 10_000
"""Characters of an entry that goes to disk; longer ones live until the program ends."""

Span: TypeAlias = tuple[int, int]
"""The beginning and the end of a part of a text."""

_log = logging.getLogger(__name__)


class PromptHistory:
    """A list to walk with Up and Down. `path` is a JSONL file, None keeps nothing on disk. A draft
    that another one replaces, or that was not sent, is an entry of this run.

    The file is read by `load`, or else when the first entry is asked for. Nothing here raises: a
    history that cannot be read or written is a history of this run only.

    A line of the file is an entry as a string, or `{"text": …, "pasted": [[start, end], …]}`.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._entries: list[str] | None = None if path else []
        self._pasted: dict[str, Sequence[Span]] = {}
        self._at: int | None = None
        self._draft = ""

    async def load(self) -> None:
        """Read the file now, off the event loop, so that no key waits for the disk."""
        if self._path is None or self._entries is not None:
            return
        import aiofiles  # noqa: PLC0415 - not for the first frame

        try:
            async with aiofiles.open(self._path, encoding="utf-8", errors="replace") as file:
                text = await file.read()
        except OSError:
            text = ""
        if self._entries is None:  # a key may have asked meanwhile
            self._entries = self._parse(self._path, text)

    @property
    def entries(self) -> list[str]:
        """All entries, oldest first."""
        if self._entries is None:
            self._entries = self._read()
        return self._entries

    def add(self, text: str, pasted: Sequence[Span] = ()) -> None:
        """Remember what was sent, and which parts of it were shown as pastes. A repetition of the
        last entry is not kept twice."""
        self._at = None
        self._keep_draft(text)
        if not text.strip() or (self.entries and self.entries[-1] == text):
            return
        self.entries.append(text)
        if pasted:
            self._pasted[text] = pasted
        del self.entries[:-LIMIT]
        if self._path and len(text) <= ENTRY_LIMIT:
            self._append(self._path, text)

    def pasted_in(self, text: str) -> Sequence[Span]:
        """Return the parts of an entry that were shown as pastes."""
        return self._pasted.get(text, ())

    def back(self, current: str) -> str | None:
        """The entry before; None at the oldest. `current` is what is in the prompt now."""
        if not self.entries:
            return None
        if self._at is None or current != self.entries[self._at]:
            self._keep_draft(current)
            self._draft, self._at = current, len(self.entries)
        if self._at == 0:
            return None
        self._at -= 1
        return self.entries[self._at]

    def forward(self, current: str) -> str | None:
        """The entry after, then the draft; None when `current` was typed, not recalled."""
        if self._at is None or current != self.entries[self._at]:
            return None
        self._at += 1
        if self._at < len(self.entries):
            return self.entries[self._at]
        self._at = None
        draft, self._draft = self._draft, ""
        return draft

    def keep(self, text: str) -> None:
        """Remember for this run what was typed elsewhere and not sent."""
        self._at = None
        if text.strip() and self.entries[-1:] != [text]:
            self.entries.append(text)

    def _keep_draft(self, text: str) -> None:
        """Keep the draft as an entry, unless it is `text`."""
        draft, self._draft = self._draft, ""
        if draft != text:
            self.keep(draft)

    def _read(self) -> list[str]:
        assert self._path
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return self._parse(self._path, text)

    def _parse(self, path: Path, text: str) -> list[str]:
        entries: list[str] = []
        for line in text.splitlines():
            try:
                value = cast("object", json.loads(line))
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict):
                fields = cast("dict[str, object]", value)
                value = fields.get("text")
                if isinstance(value, str):
                    self._pasted[value] = _spans(fields.get("pasted"), len(value))
            if isinstance(value, str):
                entries.append(value)
        if len(entries) > 2 * LIMIT:
            self._rewrite(path, entries[-LIMIT:])
        return entries[-LIMIT:]

    def _append(self, path: Path, text: str) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, self._line_of(text).encode())
            finally:
                os.close(file)
        except OSError as error:
            _log.warning("couldn't write the prompt history: %s", error)

    def _line_of(self, text: str) -> str:
        pasted = self._pasted.get(text)
        return json.dumps({"text": text, "pasted": pasted} if pasted else text) + "\n"

    def _rewrite(self, path: Path, entries: list[str]) -> None:
        shorter = path.with_suffix(".new")
        try:
            shorter.write_text("".join(map(self._line_of, entries)), encoding="utf-8")
            shorter.chmod(0o600)
            shorter.replace(path)
        except OSError as error:
            _log.warning("couldn't shorten the prompt history: %s", error)


def _spans(value: object, length: int) -> list[Span]:
    """Return the parts that a line of the file names, as far as they are in order."""
    spans, before = list[Span](), 0
    for one in list_of(value):
        match one:
            case [int(start), int(end)] if before <= start < end <= length:
                spans.append((start, end))
                before = end
            case _:
                pass
    return spans

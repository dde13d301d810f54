"""A file as a commit has it, and the commits that its lines came with. Blocks, asks git.

Git names the commit that gave a line its form and its place. Where that only wrote it in another
way, or put it somewhere else, the line came with a commit before it. Of a commit that was made in
this checkout, and of a file that was seen here as a commit has it, the states tell more than git.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from tui.context.blame.line_map import line_map
from tui.context.blame.steps import RecordedStep
from tui.context.blame.trace import LineSource, lines_of
from tui.core.clock import timestamp
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.history import CommittedLine, committed_lines, committed_text

_BACK_MAX: Final = 16
"""Commits that one line is followed through."""
_COMPARED_MAX: Final = 100
"""Commits that are compared with the ones before them."""


class FileInCommit:
    """See `trace.CommittedFile`. `made` are the commits that were made here."""

    def __init__(
        self, checkout: Checkout, commit: str, name: str, digest: str, made: frozenset[str]
    ) -> None:
        self.digest = digest
        self._checkout = checkout
        self._at = (commit, name)
        self._made = made
        self._digests: dict[tuple[str, str], str] = {}
        self._before: dict[tuple[str, str], dict[int, tuple[CommittedLine, int]]] = {}

    def sources(self, places: Iterable[int]) -> list[LineSource | None]:
        """See `trace.CommittedFile`."""
        with suppress(GitError):
            lines = committed_lines(self._checkout, *self._at)
            return [self._source(*lines[n]) if n < len(lines) else None for n in places]
        return [None for _ in places]

    def _source(self, line: CommittedLine, place: int) -> LineSource:
        for _ in range(_BACK_MAX):
            before = self._lines_before(line).get(place)
            if before is None:
                break
            line, place = before
        step = None if line.commit in self._made else commit_step(line)
        return LineSource(step, self._digest(line.commit, line.name), place)

    def _digest(self, commit: str, name: str) -> str:
        """The hash of a file in a commit."""
        key = (commit, name)
        if key not in self._digests:
            self._digests[key] = sha256(self._data(key)).hexdigest()
        return self._digests[key]

    def _data(self, at: tuple[str, str]) -> bytes:
        text = committed_text(self._checkout, *at) or ""
        return text.encode("utf-8", "surrogateescape")

    def _lines_before(self, line: CommittedLine) -> dict[int, tuple[CommittedLine, int]]:
        """The lines of a commit that the one before has in another form or place, by their places
        in both."""
        key = (line.commit, line.name)
        if key not in self._before:
            self._before[key] = {}
            commit, _, name = line.previous.partition(" ")
            odd = name.startswith('"')  # a name with odd bytes, as git quotes it
            if commit and not odd and len(self._before) <= _COMPARED_MAX:
                self._before[key] = self._compared((commit, name), key)
        return self._before[key]

    def _compared(
        self, old: tuple[str, str], new: tuple[str, str]
    ) -> dict[int, tuple[CommittedLine, int]]:
        before, after = lines_of(self._data(old)), lines_of(self._data(new))
        known = committed_lines(self._checkout, *old)
        return {
            run.new + k: known[run.old + k]
            for run in line_map(before, after, "lines").runs
            for k in range(run.size)
            if run.old + k < len(known)
        }


def commit_step(line: CommittedLine) -> RecordedStep:
    """A commit as a step that made lines."""
    time = timestamp(datetime.fromtimestamp(line.time, UTC))
    return RecordedStep("commit", time, said=line.summary, commit=line.commit, author=line.author)

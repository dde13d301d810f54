"""A file as a commit has it, and the commits that its lines came with. Blocks, asks git.

Git names the commit that gave a line its form and its place. Where that only wrote it in another
way, or put it somewhere else, the line came with a commit before it. Of a commit that was made in
this checkout, and of a file that was seen here as a commit has it, the states tell more than git.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from tui.context.blame.line_map import line_map, most_alike
from tui.context.blame.steps import RecordedStep
from tui.context.blame.timeline import LOST, UNRECORDED
from tui.context.blame.trace import LineSource, StepOrigin, lines_of
from tui.core.clock import timestamp
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.history import (
    CommittedLine,
    committed_lines,
    committed_text,
    files_gone_with,
    parents,
    reverted_commit,
)

_BACK_MAX: Final = 16
"""Commits that one line is followed through."""
_COMPARED_MAX: Final = 100
"""Commits that are compared with the ones before them."""


_GONE_MAX: Final = 100
"""Files that are compared with one that came in their place."""


class FileInCommit:
    """See `trace.CommittedFile`. `made` are the commits that were made here, `unrecorded` those
    that were made in another work tree of the repository, of which no record is left."""

    def __init__(
        self,
        checkout: Checkout,
        commit: str,
        name: str,
        digest: str,
        *,
        made: Collection[str],
        unrecorded: Collection[str],
    ) -> None:
        self.digest = digest
        self._checkout = checkout
        self._at = (commit, name)
        self._made, self._unrecorded = made, unrecorded
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
        return LineSource(self._origin(line), self._digest(line.commit, line.name), place)

    def _origin(self, line: CommittedLine) -> StepOrigin | None:
        if line.commit in self._made:
            return None
        step = commit_step(line)
        doubted = line.commit in self._unrecorded
        return StepOrigin((LOST, step), UNRECORDED) if doubted else StepOrigin((step,))

    def _digest(self, commit: str, name: str) -> str:
        """The hash of a file in a commit."""
        key = (commit, name)
        if key not in self._digests:
            self._digests[key] = sha256(_data(self._checkout, *key)).hexdigest()
        return self._digests[key]

    def _lines_before(self, line: CommittedLine) -> dict[int, tuple[CommittedLine, int]]:
        """The lines of a commit that the one before has in another form or place, by their places
        in both."""
        key = (line.commit, line.name)
        if key not in self._before:
            self._before[key] = {}
            name = line.previous.partition(" ")[2] or name_before(self._checkout, *key)
            if name and len(self._before) <= _COMPARED_MAX:
                before = parents(self._checkout, line.commit)
                if line.summary.startswith("Revert ") and (
                    reverted := reverted_commit(self._checkout, line.commit)
                ):
                    before.append(f"{reverted}^")  # what it brings back was there
                for commit in before[::-1]:
                    self._before[key] |= self._compared((commit, name), key)
        return self._before[key]

    def _compared(
        self, old: tuple[str, str], new: tuple[str, str]
    ) -> dict[int, tuple[CommittedLine, int]]:
        before, after = (_lines(self._checkout, *one) for one in (old, new))
        known = committed_lines(self._checkout, *old) if before else []
        return {
            run.new + k: known[run.old + k]
            for run in line_map(before, after, "lines").runs
            for k in range(run.size)
            if run.old + k < len(known)
        }


def name_before(checkout: Checkout, commit: str, name: str) -> str:
    """The name of the file that a commit made another of, which git may not see where that was
    formatted as well; "" for none. Raises GitError."""
    gone = [one for one in files_gone_with(checkout, commit)[:_GONE_MAX] if one]
    if not gone:
        return ""
    return most_alike(
        _lines(checkout, commit, name), ((old, _lines(checkout, f"{commit}^", old)) for old in gone)
    )


def _lines(checkout: Checkout, commit: str, name: str) -> list[str]:
    return lines_of(_data(checkout, commit, name))


def _data(checkout: Checkout, commit: str, name: str) -> bytes:
    text = committed_text(checkout, commit, name) or ""
    return text.encode("utf-8", "surrogateescape")


def commit_step(line: CommittedLine) -> RecordedStep:
    """A commit as a step that made lines."""
    time = timestamp(datetime.fromtimestamp(line.time, UTC))
    return RecordedStep("commit", time, said=line.summary, commit=line.commit, author=line.author)

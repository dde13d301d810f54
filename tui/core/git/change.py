"""A change as git tells it: the files between a base and the work tree as it is, with their diffs.

What is committed since the base left its branch, what isn't committed yet, and files that git
doesn't track. Everything blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, TypeAlias

from tui.core.dataclass import dataclass
from tui.core.errors import UsageError
from tui.core.files import read_small
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.late_pattern import late_pattern
from tui.core.text_cleaning import one_line

Kind: TypeAlias = Literal["added", "changed", "deleted", "renamed", "untracked"]

_KINDS: Final[dict[str, Kind]] = {"A": "added", "D": "deleted", "R": "renamed", "C": "added"}
_DIFF: Final = (
    "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short", "-M",
    "--no-relative",
)  # fmt: skip
_AS_TEXT: Final = ("-U3", "--inter-hunk-context=0", "--src-prefix=a/", "--dst-prefix=b/")
_HUNK = late_pattern(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_BINARY = late_pattern(r"^(Binary files .* differ|GIT binary patch)$", re.MULTILINE)
_SUBMODULE = "160000"
_UNTRACKED_MAX: Final = 1_000_000
"""Bytes of a file that git doesn't track whose text is shown."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One file of a change. `text` is its diff; `lines` are the lines of the file as it is now that
    the diff shows, of a deleted one those that it had; `why` says why there is no text."""

    path: str
    kind: Kind
    text: str = ""
    lines: tuple[range, ...] = ()
    before: str = ""
    """Its name before, if it was renamed."""
    why: str = ""

    def shows(self, line: int) -> bool:
        return any(line in some for some in self.lines)


@dataclass(frozen=True, slots=True)
class GitChange:
    """`base` is what the change is from, in words; `commit` the commit or tree that the files are
    compared with."""

    top: Path
    base: str
    commit: str
    files: tuple[ChangedFile, ...]


def change_since(folder: Path, base: str = "") -> GitChange:
    """The change in the repository of a folder since it left `base`, a branch or a commit; without
    one since it left the default branch, and on that since the last commit. Raises GitError, and
    UsageError for a base that isn't there."""
    checkout = Checkout.of(folder)
    words, commit = _base_of(checkout, base)
    files = [*_tracked(checkout, commit), *_untracked(checkout)]
    return GitChange(checkout.top, words, commit, tuple(files))


def _base_of(checkout: Checkout, named: str) -> tuple[str, str]:
    head = checkout.commit("HEAD^{commit}")
    if named:
        found = next(
            (
                (name, commit)
                for name in (named, f"origin/{named}")
                if not name.startswith("-") and (commit := checkout.commit(f"{name}^{{commit}}"))
            ),
            None,
        )
        if found is None:
            raise UsageError(
                f"There is no branch or commit {one_line(named)} here.",
                hint="In CI, fetch it first: git fetch origin BRANCH, without --depth.",
            )
        name, commit = found
        return name, checkout.answer("merge-base", commit, "HEAD") or commit
    if not head:
        return "nothing", checkout.git("hash-object", "-t", "tree", "--stdin").strip()
    for name in _default_branches(checkout):
        if commit := checkout.commit(f"{name}^{{commit}}"):
            left = checkout.answer("merge-base", commit, "HEAD")
            return ("HEAD", head) if left in {"", head} else (name, left)
    return "HEAD", head


def _default_branches(checkout: Checkout) -> Iterator[str]:
    """Yield the names that the default branch may have, the likeliest first."""
    remote = checkout.answer("symbolic-ref", "-q", "refs/remotes/origin/HEAD")
    if remote:
        yield remote.removeprefix("refs/remotes/")
    yield from ("origin/main", "origin/master", "main", "master")


def _tracked(checkout: Checkout, commit: str) -> Iterator[ChangedFile]:
    """Yield the files that git tracks and that differ."""
    entries = [*_entries(checkout.names(*_DIFF, "--raw", "-z", "--abbrev=40", commit, "--"))]
    text = checkout.git(*_DIFF, *_AS_TEXT, commit, "--")
    starts = [found.start() for found in re.finditer(r"^diff --git ", text, re.MULTILINE)]
    if len(starts) != len(entries):
        raise GitError("git lists other files than its diff shows.", hint="Commit, and try again.")
    ends = [*starts, len(text)][1:]
    for (modes, kind, path, before), start, end in zip(entries, starts, ends, strict=True):
        part = text[start:end]
        one = ChangedFile(path, kind, part, _lines_of(part, deleted=kind == "deleted"), before)
        if _SUBMODULE in modes:
            one = replace(one, why="a submodule: only its commit is shown", lines=())
        elif _BINARY.search(part.partition("\n@@ ")[0]):
            one = replace(one, text="", why="a binary file")
        yield one


def _entries(words: Sequence[str]) -> Iterator[tuple[str, Kind, str, str]]:
    """Yield modes, kind, name and former name of the files in `git diff --raw -z`."""
    every = iter(words)
    for head in every:
        status = head.rpartition(" ")[2][:1]
        path, before = next(every), ""
        if status in {"R", "C"}:
            path, before = next(every), path
        if status != "U":  # one in conflict is listed as changed, too
            yield head, _KINDS.get(status, "changed"), path, before


def _lines_of(text: str, *, deleted: bool) -> tuple[range, ...]:
    """The lines that the hunks of a diff show."""
    first, count = (1, 2) if deleted else (3, 4)
    found = (
        (int(hunk[first]), 1 if hunk[count] is None else int(hunk[count]))
        for hunk in _HUNK.finditer(text)
    )
    return tuple(range(start, start + many) for start, many in found)


def _untracked(checkout: Checkout) -> Iterator[ChangedFile]:
    """Yield the files that git neither tracks nor ignores, as if they were added."""
    for path in checkout.names("ls-files", "--others", "--exclude-standard", "-z"):
        if path.endswith("/"):
            yield ChangedFile(path, "untracked", why="a repository of its own")
            continue
        try:
            data, _ = read_small(checkout.top / path, limit=_UNTRACKED_MAX, follow=False)
        except OSError as error:
            yield ChangedFile(path, "untracked", why=error.strerror or str(error))
            continue
        if b"\0" in data:
            yield ChangedFile(path, "untracked", why="a binary file")
            continue
        lines = data.decode("utf-8", "replace").split("\n")
        lines = lines[:-1] if lines[-1] == "" else lines
        added = "".join(f"+{line}\n" for line in lines)
        head = f"diff --git a/{path} b/{path}\nnew file, not tracked yet\n--- /dev/null\n+++ b/"
        text = f"{head}{path}\n@@ -0,0 +1,{len(lines)} @@\n{added}"
        yield ChangedFile(path, "untracked", text, (range(1, len(lines) + 1),))

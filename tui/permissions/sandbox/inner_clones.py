"""Clones inside a workspace: their whole `.git` is kept from commands, so that a deletion that is
stopped leaves a clone.

A mount cannot be deleted, but what is in it can, where it may be written: so it may be written only
by commands of git that work in that clone, and is left out of the walls only where a person allows
to delete it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui.permissions.parsed_command import SimpleCommand

_BESIDE_GIT = frozenset({
    "", "cd", "git", "echo", "printf", "true", "false", ":", "pwd", "ls", "cat", "head", "tail",
    "grep", "wc", "sort", "test", "[",
})  # fmt: skip
"""Programs that delete nothing, as they stand in a line with git's."""
_HEAD = re.compile(rb"(ref:\s*)?refs/|[0-9a-f]{40}", re.IGNORECASE)
_MOST_HEAD = 4096
_MOST_WORDS = 1000
_MOST_READ = 50_000
_BUSY = re.compile(r"resource busy|EBUSY|errno 16|os error 16", re.IGNORECASE)
_STOPPED = re.compile(
    rf"read-only file system|EROFS|errno 30|os error 30|{_BUSY.pattern}", re.IGNORECASE
)
_HERE = re.compile(r"(?<![\w./-])(\./)?\.git\b")
"""A path that begins in the folder where the command ran."""
_NAME = re.compile(r"""(?<=['"])[^'"\n]+(?=['"])""")
_WRITES = re.compile(
    r"\.lock\b|FETCH_HEAD|unable to (create|write)|insufficient permission|[Cc]annot (open|update)"
    r"|[Cc]ould not (lock|write)",
    re.IGNORECASE,
)
"""What git says where it cannot write its own files."""
_REMOVES = re.compile(
    r"^\S*\b(?:rm|rmdir|mv|find|unlink): |\b(?:remove|delete|move|rename|rmdir)\b"
    r"|(?<!unable to )\bunlink\b",
    re.IGNORECASE,
)
"""What programs say where they cannot delete or move a file, whatever that is called."""


@dataclass(frozen=True, slots=True)
class StoppedClones:
    """The clones that a command met as walls: what it wanted to do to them, as far as is known."""

    clones: tuple[Path, ...]
    deletes: bool

    def words(self, root: Path) -> str:
        """What a person is asked to allow."""
        names = [str(path.relative_to(root)) for path in self.clones if path.is_relative_to(root)]
        names = names or [str(path) for path in self.clones]
        one = len(names) == 1
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        if self.deletes:
            return f"deletes or moves the {'clone' if one else 'clones'} {shown} whole"
        return f"writes in the {'clone' if one else 'clones'} {shown}"


def is_repository(git_dir: Path) -> bool:
    """Whether git would take a folder for a repository: if not, it goes on to the folders above."""
    try:
        head = git_dir / "HEAD"
        said = os.fsencode(head.readlink()) if head.is_symlink() else head.read_bytes()[:_MOST_HEAD]
    except OSError:
        return False
    shared = (git_dir / "commondir").is_file()  # then the rest lies elsewhere
    rest = shared or all((git_dir / name).is_dir() for name in ("objects", "refs"))
    return rest and _HEAD.match(said) is not None


def worked_in(command: str, cwd: Path, clones: Iterable[Path]) -> frozenset[Path]:
    """The clones in which a line of the shell runs git, where it runs nothing that could delete
    them. Only read: what it may not do, the walls keep it from."""
    known = {path: len(path.parts) for path in clones}
    commands = _read(command, cwd) if known else ()
    if any(one.program not in _BESIDE_GIT for one in commands):
        return frozenset()
    found: set[Path] = set()
    for one in commands:
        folder = _folder_of_git([word.text for word in one.words], one.cwd)
        within = [path for path in known if folder is not None and folder.is_relative_to(path)]
        if within:
            found.add(max(within, key=known.__getitem__))
    return frozenset(found)


def stopped_at(
    command: str, cwd: Path, output: str, clones: Iterable[Path], *, failed: bool = True
) -> StoppedClones | None:
    """The clones that have walls at which a command was stopped, as far as that can be told.

    What it printed only says which of them it met: it prints the path of a file that it could not
    delete, and where it could not move a folder, it was called with its name. A line that did not
    fail as a whole must name what it says that it couldn't delete.
    """
    if not _STOPPED.search(output):
        return None
    said = "\n".join(line for line in output[-_MOST_READ:].splitlines() if ".git" in line)
    commands = _read(command, cwd)
    here = {cwd, *(one.cwd for one in commands)} if _HERE.search(said) else set[Path | None]()
    moved = _named(commands, moves=bool(_BUSY.search(output)))
    met = [
        clone
        for clone in clones
        if f"{clone.name}/.git" in said
        or clone in here
        or not moved.isdisjoint((clone, *clone.parents))
    ]
    lines = [line for line in output[-_MOST_READ:].splitlines() if _STOPPED.search(line)]
    removes = any(map(_REMOVES.search, lines))
    if not failed:
        words = _named(commands, moves=removes)
        met = [clone for clone in met if not words.isdisjoint((clone, *clone.parents))]
    deletes = removes or not _WRITES.search(output)
    return StoppedClones(tuple(sorted(met)), deletes) if met else None


def _read(command: str, cwd: Path) -> Sequence[SimpleCommand]:
    """The simple commands of a line; none where it cannot be read."""
    from tui.permissions.parsed_command import TooMuchError  # noqa: PLC0415 - on demand
    from tui.permissions.shell import read  # noqa: PLC0415 - on demand

    try:
        line = read(command, cwd=cwd, known={"HOME": str(Path.home())}, most=_MOST_WORDS)
    except TooMuchError:
        return ()
    return () if line.problem else line.commands


def _folder_of_git(words: Sequence[str], cwd: Path | None) -> Path | None:
    """Where a command of git works; None for every other command."""
    if not words or words[0].rpartition("/")[2] != "git" or cwd is None:
        return None
    folder, options = cwd, iter(words[1:])
    for word in options:
        if word in {"-C", "--git-dir", "--work-tree"}:
            folder /= next(options, "")
        elif word.startswith(("--git-dir=", "--work-tree=")):
            folder /= word.partition("=")[2]
        elif word == "-c":
            next(options, "")
        elif not word.startswith("-"):
            break
    return None if "\0" in str(folder) else Path(os.path.realpath(folder))


def _named(commands: Iterable[SimpleCommand], *, moves: bool) -> frozenset[Path]:
    """The paths that commands name, but for the folders that they go to: in code for an
    interpreter, and where something could not be moved, as words."""
    return frozenset(
        Path(os.path.realpath(one.cwd / name))
        for one in commands
        for word in one.words[1:]
        if one.cwd is not None and one.program != "cd" and word.known
        for name in (_NAME.findall(word.text) if "(" in word.text else [word.text] * moves)
    )

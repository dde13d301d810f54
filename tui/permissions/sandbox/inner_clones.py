"""Clones inside a workspace: commands cannot write their `.git`, so that a deletion that is stopped
leaves a clone.

A mount cannot be deleted, but its content can if it is writable. So only git commands that work in
that clone may write it, and it gets no walls only if a person allows to delete it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core.dataclass import dataclass
from tui.core.late_pattern import late_pattern

if TYPE_CHECKING:
    from tui.permissions.parsed_command import SimpleCommand

_BESIDE_GIT = frozenset({
    "", "cd", "git", "echo", "printf", "true", "false", ":", "pwd", "ls", "cat", "head", "tail",
    "grep", "wc", "sort", "test", "[",
})  # fmt: skip
"""Programs that delete nothing, in the form in which they accompany git in a line."""
_TAKE_FILES = frozenset({
    "cp", "mv", "tar", "rsync", "zip", "cpio", "install", "ln", "scp", "7z", "rm", "find",
})  # fmt: skip
"""Programs that copy, move or delete links as such."""
_HANDLES = (
    ("worktree", "remove"), ("worktree", "move"), ("worktree", "prune"), ("worktree", "repair"),
    ("submodule", "deinit"), ("rm",), ("mv",),
)  # fmt: skip
"""Commands of git that take away or move worktrees or submodules; git refuses if work would be
lost."""
_HEAD = late_pattern(rb"(ref:\s*)?refs/|[0-9a-f]{40}", re.IGNORECASE)
_MOST_HEAD = 4096
_MOST_WORDS = 1000
_MOST_READ = 50_000
_BUSY_WORDS = r"resource busy|EBUSY|errno 16|os error 16"
_BUSY = late_pattern(_BUSY_WORDS, re.IGNORECASE)
_STOPPED = late_pattern(
    rf"read-only file system|EROFS|errno 30|os error 30|{_BUSY_WORDS}", re.IGNORECASE
)
_HERE = late_pattern(r"(?<![\w./-])(\./)?\.git\b")
"""A path relative to the folder where the command ran."""
_NAME = late_pattern(r"""(?<=['"])[^'"\n]+(?=['"])""")
_WRITES = late_pattern(
    r"\.lock\b|FETCH_HEAD|unable to (create|write)|insufficient permission|[Cc]annot (open|update)"
    r"|[Cc]ould not (lock|write)",
    re.IGNORECASE,
)
"""Git's messages when it cannot write its own files."""
_REMOVES = late_pattern(
    r"^\S*\b(?:rm|rmdir|mv|find|unlink): |\b(?:remove|delete|move|rename|rmdir)\b"
    r"|(?<!unable to )\bunlink\b",
    re.IGNORECASE,
)
"""Programs' messages when they cannot delete or move a file, whatever its name."""


@dataclass(frozen=True, slots=True)
class StoppedClones:
    """The clones whose walls a command met, and what it wanted to do to them, as far as is
    known."""

    clones: tuple[Path, ...]
    deletes: bool

    def words(self, root: Path) -> str:
        """Describe for a person what they are asked to allow."""
        names = [str(path.relative_to(root)) for path in self.clones if path.is_relative_to(root)]
        names = names or [str(path) for path in self.clones]
        one = len(names) == 1
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        if self.deletes:
            return f"deletes or moves the {'clone' if one else 'clones'} {shown} whole"
        return f"writes in the {'clone' if one else 'clones'} {shown}"


@dataclass(frozen=True, slots=True)
class GitHandles:
    """The clones that a command of git takes away or moves, and true if it changes the list of
    worktrees."""

    clones: frozenset[Path] = frozenset()
    worktrees: bool = False


def is_repository(git_dir: Path) -> bool:
    """True if git would treat a folder as a repository: if not, it continues with the folders
    above."""
    try:
        head = git_dir / "HEAD"
        head_text = (
            os.fsencode(head.readlink()) if head.is_symlink() else head.read_bytes()[:_MOST_HEAD]
        )
    except OSError:
        return False
    shared = (git_dir / "commondir").is_file()  # then the rest is elsewhere
    rest = shared or all((git_dir / name).is_dir() for name in ("objects", "refs"))
    return rest and _HEAD.match(head_text) is not None


def worked_in(command: str, cwd: Path, clones: Iterable[Path]) -> frozenset[Path]:
    """The clones in which a line of the shell runs git, if it runs nothing that could delete them.
    The line is only read: what it may not do, the walls prevent."""
    known = {path: len(path.parts) for path in clones}
    commands = _read(command, cwd) if known else ()
    if any(one.program not in _BESIDE_GIT for one in commands):
        return frozenset()
    worked_clones: set[Path] = set()
    for one in commands:
        folder = _folder_of_git([word.text for word in one.words], one.cwd)
        within = [path for path in known if folder is not None and folder.is_relative_to(path)]
        if within:
            worked_clones.add(max(within, key=known.__getitem__))
    return frozenset(worked_clones)


def handled_by_git(command: str, cwd: Path, clones: Iterable[Path]) -> GitHandles:
    """Find the worktrees and submodules that a single command of git takes away or moves by itself:
    it would be left half done by their walls."""
    from tui.permissions.plain_command import parse  # noqa: PLC0415 - on demand

    parts = [part.words for part in parse(command) or ()]
    words = parts[0] if len(parts) == 1 and parts[0][0] == "git" else ()
    kind = next((kind for kind in _HANDLES if tuple(words[1 : 1 + len(kind)]) == kind), None)
    if kind is None:
        return GitHandles()
    named = {os.path.realpath(cwd / word) for word in words[1 + len(kind) :] if "\0" not in word}
    every = kind == ("submodule", "deinit") and "--all" in words
    met = frozenset(one for one in clones if every or os.path.realpath(one) in named)
    return GitHandles(met, worktrees=kind[0] == "worktree")


def runs_git(command: str, cwd: Path) -> bool:
    """True if a line of the shell runs git, and no program that takes files as they are."""
    programs = {one.program.rpartition("/")[2] for one in _read(command, cwd)}
    return "git" in programs and programs.isdisjoint(_TAKE_FILES)


def stopped_at(
    command: str, cwd: Path, output: str, clones: Iterable[Path], *, failed: bool = True
) -> StoppedClones | None:
    """Find the clones whose walls stopped a command, as far as that can be told.

    Its output only shows which ones it met: it prints the path of a file that it could not delete,
    and if it could not move a folder, its words have the folder's name. A line that did not fail as
    a whole must name what it says that it couldn't delete.
    """
    if not _STOPPED.search(output):
        return None
    git_lines = "\n".join(line for line in output[-_MOST_READ:].splitlines() if ".git" in line)
    commands = _read(command, cwd)
    here = {cwd, *(one.cwd for one in commands)} if _HERE.search(git_lines) else set[Path | None]()
    moved = _named(commands, moves=bool(_BUSY.search(output)))
    met = [
        clone
        for clone in clones
        if f"{clone.name}/.git" in git_lines
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
    """The simple commands of a line; none if it cannot be read."""
    from tui.permissions.parsed_command import TooMuchError  # noqa: PLC0415 - on demand
    from tui.permissions.shell import read  # noqa: PLC0415 - on demand

    try:
        line = read(command, cwd=cwd, known={"HOME": str(Path.home())}, most=_MOST_WORDS)
    except TooMuchError:
        return ()
    return () if line.problem else [it for one in line.commands for it in one.in_each_folder()]


def _folder_of_git(words: Sequence[str], cwd: Path | None) -> Path | None:
    """The folder in which a git command works; None for every other command."""
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
    """The paths that commands name, except for the folders that they change to: in code for an
    interpreter, and, if something could not be moved, as words."""
    return frozenset(
        Path(os.path.realpath(one.cwd / name))
        for one in commands
        for word in one.words[1:]
        if one.cwd is not None and one.program != "cd" and word.known
        for name in (_NAME.findall(word.text) if "(" in word.text else [word.text] * moves)
    )

"""The repository of a folder, and its worktrees: made, entered, found. Everything here blocks.

They lie in `.holdfast/worktrees/` of the main checkout, which git ignores. No hook of the
repository runs, and no program that its own settings name. Nothing is checked out in a new one
before git says that it stands there.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from tui.core.dataclass import dataclass, replace
from tui.core.errors import StorageError, os_error_as
from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError, listed
from tui.core.git.in_place import IN_PLACE, MADE
from tui.core.git.placing import copy_real, fill
from tui.core.git.worktree import (
    EnteredWorktree,
    Worktree,
    branch_for,
    check_name,
    noted,
    some,
    write_note,
)
from tui.core.git.worktree_state import changed_files, file_hash
from tui.core.paths import shorten
from tui.core.private_files import EVERYTHING, leave_ignored_folder, private_folder
from tui.core.workspace import PRIVATE_DIR, WORKTREES, checkout_of, worktree_of

INCLUDE: Final = ".worktreeinclude"
"""Patterns of ignored files that a new worktree gets, too; Claude Code reads the same file."""
# fmt: off
_FIRST: Final = (
    "amber", "brave", "bright", "calm", "clear", "early", "gentle", "green", "keen", "kind",
    "light", "lucky", "mild", "neat", "plain", "quick", "quiet", "ready", "silver", "steady",
    "sunny", "swift", "warm", "wise",
)
_SECOND: Final = (
    "acorn", "badger", "birch", "brook", "cedar", "comet", "crane", "ember", "falcon", "fern",
    "finch", "harbor", "heron", "lark", "maple", "meadow", "otter", "pebble", "pine", "raven",
    "reef", "robin", "willow", "wren",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository of a folder. `here` is the checkout that the folder lies in, `main` the one
    that holds the worktrees. `beside` are files, by their path from the top, whose changes are
    nobody's work: no merge waits for them."""

    here: Checkout
    main: Checkout
    beside: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Repository:
        """Raises GitError, with what to do, where no worktree can be made for a folder."""
        _refuse_jj(folder)
        here = Checkout.of(folder)
        first = next(_listed_worktrees(here), dict[str, str]())
        path = Path(os.path.realpath(first.get("worktree", "")))
        usable = "bare" not in first and (path / ".git").exists()
        main = Checkout.of(path if usable else checkout_of(here.top))
        if main.common != here.common:
            raise GitError(
                f"{shorten(main.top)} isn't in the repository of {shorten(here.top)}, though git "
                "names it as its main checkout.",
                hint="Repair it there: git worktree repair",
            )
        return cls(here, main)

    @property
    def top(self) -> Path:
        """The folder of the checkout."""
        return self.here.top

    @property
    def place(self) -> Path:
        """The folder of the worktrees."""
        return self.main.top.joinpath(*WORKTREES)

    # Making one

    def enter(self, name: str, folder: Path) -> EnteredWorktree:
        """The worktree of a name, made where there is none, for work in `folder` of the checkout.
        Raises GitError."""
        name = name or self._free_name()
        check_name(name)
        self._make_place()
        path, notes = self.place / name, list[str]()
        registered = path in self._registered()
        if os.path.lexists(path):
            if not registered:
                raise GitError(
                    f"{shorten(path)} is there, and isn't a worktree of this repository.",
                    hint="Choose another name, or move that folder away.",
                )
            tree, new = self._of(path), False
        else:
            if registered:  # its folder was deleted by hand
                self.remove_files(path)
                notes.append(f"The folder of the worktree {name} was gone, so it was made again.")
            tree, new = self._make(name, path, folder, notes), True
        inside = path / folder.relative_to(self.top) if folder.is_relative_to(self.top) else path
        if not _is_inside(Path(os.path.realpath(inside)), path):
            raise GitError(f"{shorten(inside)} leads out of the worktree.")
        inside.mkdir(parents=True, exist_ok=True)
        return EnteredWorktree(tree, inside, new, tuple(notes))

    def _make(self, name: str, path: Path, folder: Path, notes: list[str]) -> Worktree:
        start = self.here.commit()
        if not start:
            raise GitError(
                f"{shorten(self.top)} has no commit yet, so a worktree would be empty.",
                hint="Commit something first.",
            )
        branch = branch_for(name)
        known = self.main.commit(f"refs/heads/{branch}")
        add = ("worktree", "add", "-q", "--no-checkout")
        if known:
            notes.append(f"The branch {branch} was there already: the worktree continues it.")
            self.main.git(*add, str(path), branch)
        else:
            self.main.git(*add, "--no-track", "-b", branch, str(path), start)
        try:
            checkout = self._made(path)
            fill(checkout)
        except GitError:
            self.remove_files(path)
            self.remove_place()
            if not known:
                self.main.git("branch", "-q", "-D", branch)
            raise
        tree = Worktree(name, checkout, self.top, self.here.branch, start)
        tree = replace(tree, copies=dict(self._copy_ignored(path, folder)))
        write_note(tree)
        MADE.add(path)
        notes += [*self._notes_on_changes(), *self._notes_on(tree)]
        return tree

    def furnish(self, path: Path, folder: Path) -> tuple[Worktree, tuple[str, ...]]:
        """Copy into another checkout at a path what a new worktree gets for work in a folder.
        Returns it as a worktree, and notes on what it has and has not. Raises GitError."""
        tree = Worktree(path.name, Checkout.of(path), self.top)
        tree = replace(tree, copies=dict(self._copy_ignored(path, folder)))
        return tree, tuple(self._notes_on(tree))

    def _made(self, path: Path) -> Checkout:
        """The checkout in a new folder. Raises GitError where git stands elsewhere in it, and a
        command there would write over other files: git takes a `core.worktree` that all worktrees
        share for the folder of each, once `extensions.worktreeConfig` is set."""
        try:
            made = Checkout.of(path)
        except GitError as error:
            raise GitError(
                f"No worktree was made: {error.message}",
                hint="If its shared settings hold core.worktree beside extensions.worktreeConfig, "
                "move that to the main checkout's own: git help worktree, CONFIGURATION FILE.",
            ) from error
        if made.top != path or made.common != self.main.common:
            raise GitError(f"{shorten(path)} isn't where git has put the worktree.")
        return made

    def _notes_on_changes(self) -> Iterator[str]:
        """Yield a note on what isn't committed: a new worktree lacks it."""
        if changed := [
            name for name in changed_files(self.here, "normal") if name not in self.beside
        ]:
            yield (
                f"{plural(len(changed), 'uncommitted file')} in {shorten(self.top)} "
                f"{'is' if len(changed) == 1 else 'are'} not in the worktree: {some(changed)}."
            )

    def _notes_on(self, tree: Worktree) -> Iterator[str]:
        """Yield notes on what a new worktree has and has not of the committed and ignored."""
        if tree.copies:
            yield f"Copied, as git ignores {_them(tree.copies)}: {some(tuple(tree.copies))}."
        if (tree.path / ".gitmodules").is_file():
            yield "Submodules are empty in it. To fill them: git submodule update --init"
        if filters := tree.checkout.own_filters():
            yield (
                f"The repository's own filters ({some(filters)}) didn't run: files that need "
                "them are as git stores them."
            )

    def _free_name(self) -> str:
        """A name that no worktree and no branch has."""
        while True:
            name = f"{secrets.choice(_FIRST)}-{secrets.choice(_SECOND)}"
            name += f"-{secrets.token_hex(2)}" if secrets.randbelow(8) == 0 else ""
            taken = self.main.commit(f"refs/heads/{branch_for(name)}")
            if not taken and not os.path.lexists(self.place / name):
                return name

    def _make_place(self) -> None:
        """Make the folder of the worktrees, which git ignores from then on."""
        for folder in (self.place.parent, self.place):
            if folder.is_symlink():
                raise GitError(
                    f"{shorten(folder)} is a symbolic link; worktrees aren't made through links.",
                    hint="Remove the link.",
                )
        try:
            private_folder(self.place.parent)
        except StorageError as error:
            raise GitError(error.message, hint=error.hint) from error
        with os_error_as(GitError, f"Can't make {shorten(self.place)}"):
            self.place.mkdir(exist_ok=True)
            if not self.main.answer("check-ignore", f"{'/'.join(WORKTREES)}/x"):
                (self.place / ".gitignore").write_bytes(EVERYTHING)

    def _copy_ignored(self, path: Path, folder: Path) -> Iterator[tuple[str, str]]:
        """Copy what the checkout's `.worktreeinclude` names and git ignores, and the memory."""
        memory = os.path.relpath(folder / PRIVATE_DIR / "MEMORY.md", self.top)
        names = [memory] if (self.top / memory).is_file() else []
        if (self.top / INCLUDE).is_file() and not (self.top / INCLUDE).is_symlink():
            wanted = ("ls-files", "-z", "--others", "--ignored", f"--exclude-from={INCLUDE}")
            names += self.here.names(*wanted)
        names = [name for name in names if not name.endswith("/")]
        if not names:
            return
        names = self._ignored_of(dict.fromkeys(names))
        for name in names:
            source, copy = self.top / name, path / name
            if source.is_symlink() or not source.is_file() or os.path.lexists(copy):
                continue
            with os_error_as(GitError, f"Can't copy {name} into the worktree"):
                if name == memory:
                    private_folder(copy.parent)
                copied = copy_real(source, copy)
            if copied:
                yield name, file_hash(copy)

    def _ignored_of(self, names: Iterable[str]) -> list[str]:
        with suppress(GitError):  # none of them is ignored
            return self.here.names("check-ignore", "-z", "--stdin", stdin=listed(names))
        return []

    # Looking at them

    def names(self) -> list[str]:
        """The names of the worktrees of ours whose folder is there."""
        here = (path for path in self._registered() if path.parent == self.place)
        return sorted(path.name for path in here if path.is_dir())

    def get(self, name: str) -> Worktree | None:
        """The worktree of a name, if it is there. Raises GitError where git stands elsewhere in
        it."""
        return self._of(self.place / name) if name in self.names() else None

    def find(self, name: str) -> Worktree:
        """The worktree of a name. Raises GitError."""
        if tree := self.get(name):
            return tree
        names = some(self.names()) or "none yet"
        raise GitError(f"There is no worktree {name}.", hint=f"There are: {names}.")

    def at(self, folder: Path) -> Worktree | None:
        """The worktree of ours that a folder lies in."""
        top = worktree_of(folder)
        return self._of(top) if top and top == self.top else None

    def remove_files(self, path: Path) -> None:
        """Remove a worktree with all that is in its folder. Raises GitError."""
        with IN_PLACE.alone():
            self.main.git("worktree", "remove", "--force", str(path))

    def remove_place(self) -> None:
        """Remove the folder of the worktrees, if there are none."""
        for folder in (self.place, self.place.parent):
            leave_ignored_folder(folder)

    def _registered(self) -> list[Path]:
        paths = (one.get("worktree", "") for one in _listed_worktrees(self.main))
        return [Path(os.path.realpath(path)) for path in paths]

    def _of(self, path: Path) -> Worktree:
        """A worktree as its own note says, as far as that can be believed."""
        checkout = Checkout.of(path)
        tree = noted(checkout)
        if tree is None:
            return Worktree(path.name, checkout, self.main.top, self.main.branch)
        known = Path(os.path.realpath(tree.origin)) in self._registered()
        return tree if known else replace(tree, origin=self.main.top)


def _them(names: Mapping[str, str]) -> str:
    return "it" if len(names) == 1 else "them"


def _refuse_jj(folder: Path) -> None:
    """Raise GitError in a jj repository: its checkouts are its own."""
    for place in (folder, *folder.parents):
        if (place / ".jj").is_dir():
            raise GitError(
                f"{shorten(place)} is a jj repository; worktrees are made with git.",
                hint="Use a jj workspace: jj workspace add ../NAME, then holdfast -C ../NAME",
            )
        if os.path.lexists(place / ".git"):
            return


def _listed_worktrees(where: Checkout) -> Iterator[dict[str, str]]:
    """Yield the worktrees that git lists, the main one first."""
    try:
        entries, end = where.git("worktree", "list", "--porcelain", "-z"), "\0"
    except GitError:  # before git 2.36
        entries, end = where.git("worktree", "list", "--porcelain"), "\n"
    for entry in entries.split(end * 2):
        pairs = (line.partition(" ") for line in entry.split(end) if line)
        if fields := {name: value for name, _, value in pairs}:
            yield fields


def _is_inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents

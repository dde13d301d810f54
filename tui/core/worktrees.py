"""Git worktrees of a repository: made, looked at, merged, removed. Everything here blocks.

Each lies in `.holdfast/worktrees/NAME` of the main checkout, which git is made to ignore, on a
branch `worktree-NAME`. Where it came from is noted in its own git folder, and ends with it. No hook
of the repository runs, and no filter that its own settings name.
"""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import re
import secrets
import shutil
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, cast

from tui.core.errors import os_error_as
from tui.core.files import private_folder, read_small, replace_file
from tui.core.formatting import plural
from tui.core.git import GitError, git, identity, listed
from tui.core.messages import object_of, string_of
from tui.core.paths import shorten
from tui.core.shared_lock import SharedLock
from tui.core.workspace import PRIVATE_DIR, WORKTREES, checkout_of, worktree_of

IN_PLACE: Final = SharedLock()
"""Had alone while a worktree is removed, shared while a command starts in the sandbox: its walls
stand around what git keeps of every worktree, and can't be built where that goes meanwhile."""
MADE: Final[set[Path]] = set()
"""The worktrees that this process has made: nobody else put them there."""
INCLUDE: Final = ".worktreeinclude"
"""Patterns of ignored files that a new worktree gets, too; Claude Code reads the same file."""
_PROGRAM_FILES: Final = re.compile(r"(^|/)\.holdfast/(\.gitignore)?$")
"""Made by the program: no change of anybody's."""
_PREFIX: Final = "worktree-"
_NOTE: Final = "holdfast.json"
_LOCK: Final = "holdfast.lock"
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?")
_NAMED: Final = 5
"""Files that a sentence names."""
_LIMIT: Final = 10_000_000
_STAMPED: Final = 10_000
"""Files in an ignored folder whose changes are noticed."""
_CACHES: Final = frozenset(
    {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules"}
)
"""Ignored folders that tools fill again."""
_BUSY: Final = {
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "BISECT_LOG": "bisect",
}
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


class MergeConflictError(GitError):
    """Both sides changed the same files."""


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree of ours. `origin` is the checkout that it was made from, `base` the branch there,
    "" for none, and `start` the commit. `copies` are the ignored files that it got, with the hash
    of each; `agreed` is the state in which the person let it go."""

    name: str
    path: Path
    git_dir: Path
    origin: Path
    base: str = ""
    start: str = ""
    copies: Mapping[str, str] = field(default_factory=dict[str, str])
    agreed: str = ""

    @property
    def own_branch(self) -> str:
        """The branch that was made with it."""
        return _PREFIX + self.name

    @property
    def target(self) -> str:
        """What its commits are counted from, in words."""
        return self.base or self.start[:8]


@dataclass(frozen=True, slots=True)
class WorktreeState:
    """What is in a worktree: its branch ("" where detached) and commit, the changed files, the
    commits that the base lacks and that it has more, ignored files that nothing makes again,
    `loose` commits that no branch has, what git is in the middle of, and `inner` repositories,
    which no commit of this one can hold."""

    branch: str
    head: str
    changed: tuple[str, ...]
    ahead: int
    behind: int
    ignored: tuple[str, ...]
    loose: int
    busy: str
    inner: tuple[str, ...]
    fingerprint: str

    @property
    def is_empty(self) -> bool:
        """Whether nothing is lost with it."""
        lost = self.changed or self.ahead or self.ignored or self.loose or self.busy or self.inner
        return not lost

    def words(self, base: str) -> str:
        """What is in it, in words: "2 changed files (a, b), 1 commit that main lacks"."""
        parts = [
            f"{plural(len(self.changed), 'changed file')} ({some(self.changed)})"
            if self.changed
            else "",
            f"{plural(self.ahead, 'commit')} that {base} lacks" if self.ahead else "",
            f"{plural(self.loose, 'commit')} on no branch" if self.loose else "",
            f"{plural(len(self.ignored), 'ignored file')} ({some(self.ignored)})"
            if self.ignored
            else "",
            f"a {self.busy} in progress" if self.busy else "",
            f"inner repositories ({some(self.inner)})" if self.inner else "",
        ]
        return ", ".join(filter(None, parts)) or "nothing changed"


@dataclass(frozen=True, slots=True)
class EnteredWorktree:
    """A worktree to work in: `folder` is the one in it that matches the workspace, `notes` what
    the person should know, a sentence each."""

    tree: Worktree
    folder: Path
    new: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RemovedWorktree:
    """What became of a worktree that was removed: the branch that stayed, "" for none, and the ref
    of a commit that holds what was not committed, "" for nothing."""

    branch: str
    ref: str

    @property
    def words(self) -> str:
        """What is still there, in sentences; "" for nothing."""
        parts = [
            f"Its branch {self.branch} is still there." if self.branch else "",
            f"What wasn't committed is saved: git show {self.ref}" if self.ref else "",
        ]
        return " ".join(filter(None, parts))


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository of a folder. `top` is the checkout that the folder lies in, `home` the one
    that holds the worktrees. `_programs` are those that its own settings name, by the checkout:
    settings may differ from one to the other. `beside` are files, by their path from the top, whose
    changes are nobody's work: no merge waits for them."""

    top: Path
    home: Path
    beside: tuple[str, ...] = ()
    _programs: dict[Path, _Programs] = field(default_factory=dict["Path", "_Programs"])

    @classmethod
    def of(cls, folder: Path) -> Repository:
        """Raises GitError, with what to do, where no worktree can be made for a folder."""
        _refuse_jj(folder)
        try:
            inside = git(folder, "rev-parse", "--is-inside-work-tree").strip() == "true"
        except GitError as error:
            if "safe.bareRepository" in error.message:
                inside = False
            elif "not a git repository" in error.message:
                raise GitError(
                    f"{shorten(folder)} isn't in a git repository, so it can't have worktrees.",
                    hint="Make one with: git init, then commit something.",
                ) from error
            else:
                raise
        if not inside:
            raise GitError(
                f"{shorten(folder)} has no checked-out files: it's a bare repository or .git.",
                hint="Start in a checkout, such as one made with: git worktree add ../main",
            )
        top = Path(git(folder, "rev-parse", "--show-toplevel").rstrip("\n"))
        first = next(_listed_worktrees(top), dict[str, str]())
        main = Path(first.get("worktree", ""))
        usable = "bare" not in first and (main / ".git").exists()
        home = Path(os.path.realpath(main)) if usable else checkout_of(top)
        return cls(top, home)

    @property
    def place(self) -> Path:
        """The folder of the worktrees."""
        return self.home.joinpath(*WORKTREES)

    # Making one

    def enter(self, name: str, folder: Path) -> EnteredWorktree:
        """The worktree of a name, made where there is none, for work in `folder` of the checkout.
        Raises GitError."""
        name = name or self._free_name()
        check_name(name)
        self._make_place()
        path, notes = self.place / name, list[str]()
        registered = str(path) in self._registered()
        if os.path.lexists(path):
            if not registered:
                raise GitError(
                    f"{shorten(path)} is there, and isn't a worktree of this repository.",
                    hint="Choose another name, or move that folder away.",
                )
            tree, new = self._of(path), False
        else:
            if registered:  # its folder was deleted by hand
                self._remove_files(path)
                notes.append(f"The folder of the worktree {name} was gone, so it was made again.")
            tree, new = self._make(name, path, folder, notes), True
        inside = path / folder.relative_to(self.top) if folder.is_relative_to(self.top) else path
        inside.mkdir(parents=True, exist_ok=True)
        if not _is_inside(Path(os.path.realpath(inside)), path):
            raise GitError(f"{shorten(inside)} leads out of the worktree.")
        return EnteredWorktree(tree, inside, new, tuple(notes))

    def _make(self, name: str, path: Path, folder: Path, notes: list[str]) -> Worktree:
        start = self._answer(self.top, "rev-parse", "--verify", "-q", "HEAD^{commit}")
        if not start:
            raise GitError(
                f"{shorten(self.top)} has no commit yet, so a worktree would be empty.",
                hint="Commit something first.",
            )
        branch = _PREFIX + name
        add = ("worktree", "add", "-q", "--no-checkout")  # its own settings are not known yet
        known = self._answer(self.home, "rev-parse", "--verify", "-q", f"refs/heads/{branch}")
        if known:
            notes.append(f"The branch {branch} was there already: the worktree continues it.")
            self._git(self.home, *add, str(path), branch)
        else:
            self._git(self.home, *add, "--no-track", "-b", branch, str(path), start)
        try:
            self._git(path, "reset", "-q", "--hard")
        except GitError:
            self._remove_files(path)
            if not known:
                self._git(self.home, "branch", "-q", "-D", branch)
            raise
        git_dir = Path(self._git(path, "rev-parse", "--absolute-git-dir").rstrip("\n"))
        base = self._answer(self.top, "symbolic-ref", "-q", "--short", "HEAD")
        tree = Worktree(name, path, git_dir, self.top, base, start)
        tree = replace(tree, copies=dict(self._copy_ignored(path, folder)))
        _write_note(tree)
        MADE.add(path)
        notes += self._notes_on(tree)
        return tree

    def _notes_on(self, tree: Worktree) -> Iterator[str]:
        """What a new worktree has and has not."""
        if changed := self._unsaved(self.top, "normal"):
            yield (
                f"{plural(len(changed), 'uncommitted file')} in {shorten(self.top)} "
                f"{'is' if len(changed) == 1 else 'are'} not in the worktree: {some(changed)}."
            )
        if tree.copies:
            yield f"Copied, as git ignores {_them(tree.copies)}: {some(tuple(tree.copies))}."
        if self._submodules(tree.path):
            yield "Submodules are empty in it. To fill them: git submodule update --init"
        if filters := self._programs_of(tree.path).filters:
            yield (
                f"The repository's own filters ({some(filters)}) didn't run: files that need "
                "them are as git stores them."
            )

    def _free_name(self) -> str:
        """A name that no worktree and no branch has."""
        while True:
            name = f"{secrets.choice(_FIRST)}-{secrets.choice(_SECOND)}"
            name += f"-{secrets.token_hex(2)}" if secrets.randbelow(8) == 0 else ""
            ref = f"refs/heads/{_PREFIX}{name}"
            taken = self._answer(self.home, "rev-parse", "--verify", "-q", ref)
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
        with os_error_as(GitError, f"Can't make {shorten(self.place)}"):
            self.place.mkdir(parents=True, exist_ok=True)
        inside = f"{'/'.join(WORKTREES)}/x"
        if not self._answer(self.home, "check-ignore", inside):
            file = Path(self._git(self.home, "rev-parse", "--git-path", "info/exclude").rstrip())
            file = self.home / file
            with os_error_as(GitError, f"Can't write {shorten(file)}"):
                file.parent.mkdir(exist_ok=True)
                before = file.read_bytes() if file.exists() else b""
                line = b"" if not before or before.endswith(b"\n") else b"\n"
                with file.open("ab") as out:
                    out.write(line + f"/{'/'.join(WORKTREES)}/\n".encode())

    def _copy_ignored(self, path: Path, folder: Path) -> Iterator[tuple[str, str]]:
        """Copy what the checkout's `.worktreeinclude` names and git ignores, and the memory."""
        memory = os.path.relpath(folder / PRIVATE_DIR / "MEMORY.md", self.top)
        names = [memory] if (self.top / memory).is_file() else []
        if (self.top / INCLUDE).is_file() and not (self.top / INCLUDE).is_symlink():
            wanted = ("ls-files", "-z", "--others", "--ignored", f"--exclude-from={INCLUDE}")
            names += self._git(self.top, *wanted).split("\0")
        names = [name for name in names if name and not name.endswith("/")]
        if not names:
            return
        names = self._ignored_of(dict.fromkeys(names))
        for name in names:
            source, copy = self.top / name, path / name
            if source.is_symlink() or not source.is_file() or os.path.lexists(copy):
                continue
            if not _is_inside(Path(os.path.realpath(copy.parent)), path):
                continue  # a link of the repository's leads elsewhere
            with os_error_as(GitError, f"Can't copy {name} into the worktree"):
                if name == memory:
                    private_folder(copy.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy, follow_symlinks=False)
                yield name, _hash(copy)

    def _ignored_of(self, names: Iterable[str]) -> list[str]:
        with suppress(GitError):  # none of them is ignored
            said = self._git(self.top, "check-ignore", "-z", "--stdin", stdin=listed(names))
            return [name for name in said.split("\0") if name]
        return []

    # Looking at them

    def trees(self) -> list[Worktree]:
        """The worktrees of ours whose folder is there, by name."""
        here = [Path(one) for one in self._registered() if Path(one).parent == self.place]
        return [self._of(path) for path in sorted(here) if path.is_dir()]

    def find(self, name: str) -> Worktree:
        """The worktree of a name. Raises GitError."""
        every = self.trees()
        for tree in every:
            if tree.name == name:
                return tree
        names = some(tuple(tree.name for tree in every)) or "none yet"
        raise GitError(f"There is no worktree {name}.", hint=f"There are: {names}.")

    def at(self, folder: Path) -> Worktree | None:
        """The worktree of ours that a folder lies in."""
        top = worktree_of(folder)
        return self._of(top) if top and top == self.top else None

    def state(self, tree: Worktree) -> WorktreeState:
        """What is in a worktree now. Raises GitError where it is gone."""
        path = tree.path
        head = self._git(path, "rev-parse", "HEAD").strip()
        branch = self._answer(path, "symbolic-ref", "-q", "--short", "HEAD")
        changed = (*self._changed(path, "all"), *self._unseen(tree))
        base = self._base_of(tree)
        ahead, behind = self._count(path, f"{base}..HEAD"), self._count(path, f"HEAD..{base}")
        elsewhere = ("--not", "--branches", "--tags", "--remotes")
        loose = 0 if branch else self._count(path, "HEAD", *elsewhere)
        busy = next((what for name, what in _BUSY.items() if (tree.git_dir / name).exists()), "")
        ignored, inner = tuple(self._ignored(tree)), tuple(self._inner(path, changed))
        facts = [head, branch, busy, *inner, *_stamps(path, (*changed, *ignored))]
        mark = sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()
        return WorktreeState(
            branch, head, changed, ahead, behind, ignored, loose, busy, inner, mark
        )

    def diffstat(self, tree: Worktree) -> str:
        """How much a worktree differs from where it came from, in git's words."""
        base = self._answer(tree.path, "merge-base", self._base_of(tree), "HEAD") or tree.start
        show = ("diff", "--shortstat", "--no-ext-diff", "--no-textconv", base)
        return self._git(tree.path, *show).strip()

    def _base_of(self, tree: Worktree) -> str:
        """The commit of the branch that a worktree came from; of where it began, without one."""
        ref = f"refs/heads/{tree.base}"
        now = tree.base and self._answer(self.home, "rev-parse", "--verify", "-q", ref)
        return now or tree.start or "HEAD"

    def _changed(self, checkout: Path, untracked: str) -> tuple[str, ...]:
        """The files of a checkout that differ from its commit, without what is the program's."""
        options = ("--porcelain=v1", "-z", "--no-renames", f"--untracked-files={untracked}")
        apart = "--ignore-submodules=dirty"  # git would run what their own settings name
        entries = self._git(checkout, "status", *options, apart).split("\0")
        names = (entry[3:] for entry in entries)
        return tuple(name for name in names if name and not _PROGRAM_FILES.search(name))

    def _unseen(self, tree: Worktree) -> Iterator[str]:
        """The changed files that git is set to take no notice of (skip-worktree and the like)."""
        entries = self._git(tree.path, "ls-files", "-v", "-z").split("\0")
        quiet = {one[2:] for one in entries if one[:1].islower() or one.startswith("S")}
        quiet = {name for name in quiet if os.path.lexists(tree.path / name)}
        if not quiet:
            return
        with self._fresh_index(tree, "HEAD") as env:
            shown = ("diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=dirty")
            names = self._git(tree.path, *shown, env=env).split("\0")
        yield from (name for name in names if name in quiet)

    def _inner(self, path: Path, changed: Iterable[str]) -> Iterator[str]:
        """The repositories in a worktree that have their commits in themselves."""
        entries = self._git(path, "ls-files", "--stage", "-z").split("\0")
        links = [one.partition("\t")[2] for one in entries if one.startswith("160000 ")]
        new = [name.rstrip("/") for name in changed if name.endswith("/")]
        for name in dict.fromkeys((*links, *new)):
            if (path / name / ".git").is_dir():
                yield name

    @contextmanager
    def _fresh_index(self, tree: Worktree, commit: str) -> Generator[dict[str, str]]:
        """Variables that let git use an index of its own, which holds a commit."""
        index = tree.git_dir / f"holdfast-index-{os.getpid()}"
        env = {"GIT_INDEX_FILE": str(index)}
        try:
            self._git(tree.path, "read-tree", commit, env=env)
            yield env
        finally:
            index.unlink(missing_ok=True)

    def _unsaved(self, checkout: Path, untracked: str) -> tuple[str, ...]:
        """The changed files of a checkout, without those that don't count."""
        changed = self._changed(checkout, untracked)
        return tuple(name for name in changed if name not in self.beside)

    def _ignored(self, tree: Worktree) -> Iterator[str]:
        """The ignored files and folders that no tool makes again and that aren't mere copies."""
        wanted = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        for name in self._git(tree.path, *wanted).split("\0"):
            parts = Path(name).parts
            if name and not _CACHES.intersection(parts) and not _is_copied(tree, name):
                yield name
        if (tree.git_dir / "modules").is_dir():
            yield "submodules"

    def _submodules(self, path: Path) -> bool:
        return (path / ".gitmodules").is_file()

    def _registered(self) -> list[str]:
        return [os.path.realpath(one.get("worktree", "")) for one in _listed_worktrees(self.home)]

    def _of(self, path: Path) -> Worktree:
        """A worktree as its own note says, as far as that can be believed."""
        git_dir = Path(self._git(path, "rev-parse", "--absolute-git-dir").rstrip("\n"))
        note = _read_note(git_dir)
        origin = Path(string_of(note.get("origin")) or self.home)
        if not self._is_checkout(origin):
            origin = self.home
        copies = {name: string_of(one) for name, one in object_of(note.get("copies")).items()}
        base, start, agreed = (string_of(note.get(one)) for one in ("base", "start", "agreed"))
        if not note:
            base = self._answer(self.home, "symbolic-ref", "-q", "--short", "HEAD")
        base = "" if base.startswith("-") else base
        start = start if re.fullmatch(r"[0-9a-f]{40,64}", start) else ""
        return Worktree(path.name, path, git_dir, origin, base, start, copies, agreed)

    def _is_checkout(self, path: Path) -> bool:
        return os.path.realpath(path) in self._registered()

    # Merging

    def merges_by_program(self, checkout: Path) -> bool:
        """Whether the repository's own settings name a program that merges files: no worktree is
        merged into that checkout then."""
        return self._programs_of(checkout).merges

    def merge(self, tree: Worktree, commit: str = "", *, message: str = "") -> str:
        """Merge a worktree's commits, up to `commit` where one is given, into the branch that it
        came from, where that is checked out. What was done, in a sentence. Raises GitError, and
        then nothing has changed; MergeConflictError where both sides changed the same."""
        state, target = self.state(tree), tree.origin
        by_hand = f"Merge it yourself: git merge {state.branch or state.head[:8]}"
        if not tree.base:
            raise GitError(f"{tree.name} was made from a commit, not from a branch.", hint=by_hand)
        now = self._answer(target, "symbolic-ref", "-q", "--short", "HEAD")
        if now != tree.base:
            raise GitError(
                f"{shorten(target)} is on {now or 'no branch'}, not on {tree.base}.",
                hint=f"Switch to it there first: git switch {tree.base}",
            )
        if self.merges_by_program(target):
            raise GitError(
                "This repository's own settings name a program that merges files.", hint=by_hand
            )
        self._check_clean(target)
        wanted = commit or state.head
        self._git(target, "rev-parse", "--verify", "-q", f"{wanted}^{{commit}}")
        if not (ahead := self._count(target, f"HEAD..{wanted}")):
            raise GitError(
                f"Nothing to merge: {tree.base} has every commit of {tree.name}.",
                hint="Commit the changes first." if state.changed else "",
            )
        message = message or f"Merge worktree {tree.name}"
        quietly = ("--no-edit", "--no-stat", "--no-autostash", "-m", message)
        settings = ("-c", "commit.gpgSign=false", "-c", "merge.verifySignatures=false")
        before = self._git(target, "rev-parse", "HEAD").strip()
        try:
            env = identity(target)
            self._git(target, *settings, "merge", *quietly, wanted, env=env)
        except GitError as error:
            raise self._undone(tree, before, error) from error
        count = plural(ahead, "commit")
        return f"Merged {count} of {tree.name} into {tree.base} in {shorten(target)}."

    def _check_clean(self, target: Path) -> None:
        folder = Path(self._git(target, "rev-parse", "--absolute-git-dir").rstrip("\n"))
        if busy := next((what for name, what in _BUSY.items() if (folder / name).exists()), ""):
            raise GitError(
                f"A {busy} is in progress in {shorten(target)}.", hint="Finish or abort it first."
            )
        if changed := self._unsaved(target, "no"):
            raise GitError(
                f"{shorten(target)} has uncommitted changes: {some(changed)}.",
                hint="Commit or stash them first, so that a merge can be undone.",
            )

    def _undone(self, tree: Worktree, before: str, error: GitError) -> GitError:
        """A merge that failed is taken back. The error to raise."""
        target = tree.origin
        printed = self._answer(target, "diff", "--name-only", "-z", "--diff-filter=U")
        conflicts = tuple(name for name in printed.split("\0") if name)
        if self._answer(target, "rev-parse", "--verify", "-q", "MERGE_HEAD"):
            self._git(target, "merge", "--abort")
        if self._git(target, "rev-parse", "HEAD").strip() != before:
            return GitError(
                f"The merge failed, and {shorten(target)} is no longer at {before[:8]}.",
                hint=f"Look at it there: git log {before[:8]}..",
            )
        if not conflicts:
            return error
        return MergeConflictError(
            f"Both sides changed {some(conflicts)}. The merge was undone; nothing is lost.",
            hint=f"Bring {tree.base} into the worktree, solve it there, then merge again: "
            f"git merge {tree.base}",
        )

    # Ending one

    def agree(self, tree: Worktree, state: WorktreeState) -> None:
        """The person lets a worktree go as it is now. Raises GitError."""
        _write_note(replace(tree, agreed=state.fingerprint))

    def remove(self, tree: Worktree, state: WorktreeState) -> RemovedWorktree:
        """Remove a worktree that is still in a state that was looked at. Its branch stays unless
        others have its commits; what was not committed stays as a commit under
        `refs/holdfast/worktrees/`. Raises GitError."""
        lock = in_use(tree)
        if not lock.acquire():
            raise GitError(
                f"Another session works in the worktree {tree.name}.", hint="Leave that one first."
            )
        try:
            return self._remove(tree, state)
        finally:
            lock.release()

    def _remove(self, tree: Worktree, state: WorktreeState) -> RemovedWorktree:
        """Remove a worktree that nobody else can enter meanwhile."""
        if self.state(tree).fingerprint != state.fingerprint:
            raise GitError(
                f"The worktree {tree.name} has just changed, so it wasn't removed.",
                hint="Look at it again: /worktree list",
            )
        check_removable(tree, state)
        ref = ""
        if state.changed or state.loose or state.busy:
            commit = self._saved(tree, state)
            ref = f"refs/holdfast/worktrees/{tree.name}-{commit[:8]}"
            self._git(self.home, "update-ref", ref, commit)
        self._remove_files(tree.path)
        for folder in (self.place, self.place.parent):
            with suppress(OSError):
                folder.rmdir()
        branch = tree.own_branch
        tip = self._answer(self.home, "rev-parse", "--verify", "-q", f"refs/heads/{branch}")
        others = ("--not", f"--exclude={branch}", "--branches", "--tags", "--remotes")
        with suppress(GitError):
            if tip and not self._count(self.home, tip, *others):
                self._git(self.home, "branch", "-q", "-D", branch)
                return RemovedWorktree("", ref)
        return RemovedWorktree(branch if tip else "", ref)

    def _remove_files(self, path: Path) -> None:
        with IN_PLACE.alone():
            self._git(self.home, "worktree", "remove", "--force", str(path))

    def _saved(self, tree: Worktree, state: WorktreeState) -> str:
        """A commit of the files as they are, on top of the worktree's. Where the index holds
        something else, that is its second parent, as in a stash."""
        said, parents = f"Uncommitted in {tree.name}", ["-p", state.head]
        who = identity(tree.path)
        staged = self._answer(tree.path, "write-tree")  # none in the middle of a merge
        with self._fresh_index(tree, state.head) as env:
            before = self._git(tree.path, "write-tree", env=env).strip()
            self._git(tree.path, "add", "-A", "--", ".", env=env)
            content = self._git(tree.path, "write-tree", env=env).strip()
        if staged not in {"", before, content}:
            words = ("commit-tree", staged, *parents, "-m", f"Staged in {tree.name}")
            parents += ["-p", self._git(tree.path, *words, env=who).strip()]
        return self._git(tree.path, "commit-tree", content, *parents, "-m", said, env=who).strip()

    # Git

    def _count(self, where: Path, *what: str) -> int:
        """Raises GitError: where commits can't be counted, none of them may be given up."""
        return int(self._git(where, "rev-list", "--count", *what))

    def _answer(self, where: Path, *args: str) -> str:
        """What git prints; "" where it refuses."""
        with suppress(GitError):
            return self._git(where, *args).rstrip("\n")
        return ""

    def _git(
        self, where: Path, *args: str, stdin: str = "", env: Mapping[str, str] | None = None
    ) -> str:
        if not where.is_dir():
            raise GitError(f"{shorten(where)} is gone.", hint="It was removed or moved.")
        off = self._programs_of(where).env
        return git(where, *args, stdin=stdin, env={**off, **(env or {})})

    def _programs_of(self, where: Path) -> _Programs:
        if where not in self._programs:
            self._programs[where] = _programs_at(where)
        return self._programs[where]


class UseLock:
    """Says to other processes that a worktree is worked in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def share(self) -> None:
        """Hold it, as others may. Raises GitError where the worktree is being removed, or is gone.
        A folder that allows no locks is worked in without one."""
        with suppress(OSError):
            if not self._lock(fcntl.LOCK_SH):
                said = "The worktree is being removed by another session."
                raise GitError(said, hint="Try again.")

    def acquire(self) -> bool:
        """Hold it alone. False where others hold it."""
        with suppress(OSError):
            return self._lock(fcntl.LOCK_EX)
        return False

    def release(self) -> None:
        """Let go of it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _lock(self, kind: int) -> bool:
        """False where others hold it, or the worktree is gone. Raises OSError."""
        self.release()
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._file = os.open(self._path, flags, 0o600)
            fcntl.flock(self._file, kind | fcntl.LOCK_NB)
            there = os.fstat(self._file).st_nlink > 0
        except (BlockingIOError, FileNotFoundError):
            there = False
        except OSError:
            self.release()
            raise
        if not there:
            self.release()
        return there


def in_use(tree: Worktree) -> UseLock:
    """The lock that each session in a worktree holds."""
    return UseLock(tree.git_dir / _LOCK)


def check_name(name: str) -> None:
    """Raises GitError for a name that no worktree can have, with one that it could."""
    if _NAME.fullmatch(name) and ".." not in name and not name.endswith(".lock"):
        return
    near = re.sub(r"\.lock$|\.{2,}", "", re.sub(r"[^A-Za-z0-9._-]+", "-", name)).strip("._-")
    words = "A prompt goes behind the name, or in front of --worktree." if " " in name else ""
    near = f"Try --worktree {near[:64].lower()}. " if near else ""
    raise GitError(
        f"{name!r} can't name a worktree: use up to 64 letters, digits, dots, _ and -.",
        hint=f"{near}{words}".strip(),
    )


def check_removable(tree: Worktree, state: WorktreeState) -> None:
    """Raises GitError for a worktree that holds what can't be saved."""
    if state.inner:
        raise GitError(
            f"The worktree {tree.name} holds {some(state.inner)}, with a repository of its own. "
            "Its commits would be lost.",
            hint="Move it out of the worktree, or delete it, first.",
        )


def some(names: Sequence[str]) -> str:
    """A few names, and how many more there are."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(name.encode("utf-8", "replace").decode() for name in names[:_NAMED]) + more


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


def _listed_worktrees(where: Path) -> Iterator[dict[str, str]]:
    """What git lists, the main one first."""
    try:
        entries, end = git(where, "worktree", "list", "--porcelain", "-z"), "\0"
    except GitError:  # before git 2.36
        entries, end = git(where, "worktree", "list", "--porcelain"), "\n"
    for entry in entries.split(end * 2):
        pairs = (line.partition(" ") for line in entry.split(end) if line)
        if found := {name: value for name, _, value in pairs}:
            yield found


_PROGRAM = re.compile(r"filter\.(.*)\.(smudge|clean|process|required)|merge\..*\.driver", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Programs:
    """What a repository's own settings would run in a checkout: the names of filters, and whether
    programs that merge. `env` switches the filters off."""

    env: Mapping[str, str]
    filters: tuple[str, ...]
    merges: bool


def _programs_at(where: Path) -> _Programs:
    entries = git(where, "config", "--list", "--includes", "--show-scope", "--name-only", "-z")
    words = entries.split("\0")
    own = [key for scope, key in zip(words[::2], words[1::2], strict=False) if scope in _FROM_REPO]
    named = dict.fromkeys(key for key in own if _PROGRAM.fullmatch(key))
    off = [key for key in named if key.startswith("filter.")]
    env = {"GIT_CONFIG_COUNT": str(len(off))} if off else {}
    for number, key in enumerate(off):
        value = "false" if key.endswith(".required") else ""
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    filters = dict.fromkeys(key.split(".", 1)[1].rpartition(".")[0] for key in off)
    return _Programs(env, tuple(filters), any(key.startswith("merge.") for key in named))


_FROM_REPO: Final = frozenset({"local", "worktree"})


def _write_note(tree: Worktree) -> None:
    note = {
        "origin": str(tree.origin),
        "base": tree.base,
        "start": tree.start,
        "copies": dict(tree.copies),
        "agreed": tree.agreed,
    }
    with os_error_as(GitError, f"Can't note where the worktree {tree.name} came from"):
        replace_file(tree.git_dir / _NOTE, json.dumps(note).encode())


def _read_note(git_dir: Path) -> dict[str, Any]:
    try:
        data, _ = read_small(git_dir / _NOTE, limit=_LIMIT, follow=False)
        note: object = json.loads(data)
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", note) if isinstance(note, dict) else {}


def _is_copied(tree: Worktree, name: str) -> bool:
    """Whether an ignored file, or all in a folder, is as it was copied."""
    path = tree.path / name
    if not name.endswith("/"):
        return name in tree.copies and _hash(path) == tree.copies[name]
    inner = (Path(place, one) for place, _, names in os.walk(path) for one in names)
    shown = ((str(one.relative_to(tree.path)), one) for one in inner)
    return all(one in tree.copies and _hash(file) == tree.copies[one] for one, file in shown)


def _hash(path: Path) -> str:
    try:
        with path.open("rb") as file:
            digest = sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()


def _stamps(top: Path, names: Iterable[str]) -> Iterator[str]:
    """When files changed last, and how large they are; of folders, the first many in them."""
    for name in names:
        inner = (Path(p, one) for p, _, files in os.walk(top / name) for one in (*files, "."))
        for path in (top / name, *itertools.islice(inner, _STAMPED)):
            with suppress(OSError):
                now = path.lstat()
                yield f"{name} {path} {now.st_mtime_ns} {now.st_size}"


def _is_inside(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents

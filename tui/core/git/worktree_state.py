"""The contents of a worktree: changes, commits, and what would be lost with it. Blocks."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from tui.core.apart import folder_apart
from tui.core.dataclass import dataclass
from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.worktree import Worktree, some
from tui.core.real_folders import RealFolders

_PROGRAM_FILES: Final = re.compile(r"(^|/)\.holdfast/(\.gitignore)?$")
"""Made by the program: no change of anybody's."""
_OWN_IGNORE: Final = re.compile(r"(^|/)\.holdfast/\.gitignore$")
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


@dataclass(frozen=True, slots=True)
class WorktreeState:
    """The contents of a worktree: its branch ("" where detached) and commit, the changed files, the
    commits that the base lacks and that it has more, ignored files that nothing makes again,
    `loose` commits that no branch has, the operation that git is in the middle of, and `inner`
    repositories, which no commit of this one can hold."""

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
        """True if nothing is lost with it."""
        lost = self.changed or self.ahead or self.ignored or self.loose or self.busy or self.inner
        return not lost

    def words(self, base: str) -> str:
        """Describe the contents: "2 changed files (a, b), 1 commit that main lacks"."""
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


def busy_with(git_dir: Path) -> str:
    """Name the operation that git is in the middle of in a checkout, by its git folder; "" for
    nothing."""
    return next((what for name, what in _BUSY.items() if (git_dir / name).exists()), "")


def state_of(tree: Worktree) -> WorktreeState:
    """Read the present state of a worktree. Raises GitError where it is gone."""
    here = tree.checkout
    head = here.git("rev-parse", "HEAD").strip()
    branch = here.branch
    changed = (*changed_files(here, "all"), *_unseen(tree))
    base = tree.base_commit()
    ahead, behind = count(here, f"{base}..HEAD"), count(here, f"HEAD..{base}")
    elsewhere = ("--not", "--branches", "--tags", "--remotes")
    loose = 0 if branch else count(here, "HEAD", *elsewhere)
    busy = busy_with(tree.git_dir)
    ignored, inner = tuple(ignored_files(tree)), tuple(_inner(here, changed))
    facts = [head, branch, busy, *inner, *_stamps(tree.path, (*changed, *ignored))]
    mark = sha256("\0".join(facts).encode("utf-8", "surrogateescape")).hexdigest()
    return WorktreeState(branch, head, changed, ahead, behind, ignored, loose, busy, inner, mark)


def diffstat(tree: Worktree) -> str:
    """Return how much a worktree differs from where it came from, in git's words."""
    base = tree.checkout.answer("merge-base", tree.base_commit(), "HEAD") or tree.start
    show = ("diff", "--shortstat", "--no-ext-diff", "--no-textconv", base)
    return tree.checkout.git(*show).strip()


def count(checkout: Checkout, *what: str) -> int:
    """Count commits. Raises GitError: where they can't be counted, none of them may be given up."""
    return int(checkout.git("rev-list", "--count", *what))


def changed_files(checkout: Checkout, untracked: str) -> tuple[str, ...]:
    """The files of a checkout that differ from its commit, without what is the program's. A new
    one counts where it lies in the checkout: git may have walked through a link that a command put
    in the place of a folder."""
    options = ("--porcelain=v1", "-z", "--no-renames", f"--untracked-files={untracked}")
    apart = "--ignore-submodules=dirty"  # git would run what their own settings name
    entries = checkout.names("status", *options, apart)
    with RealFolders(checkout.top) as folders:
        return tuple(
            entry[3:]
            for entry in entries
            if not _PROGRAM_FILES.search(entry[3:])
            if entry[:2] != "??" or folders.holds(os.fsencode(entry[3:].rstrip("/")))
        )


def _unseen(tree: Worktree) -> Iterator[str]:
    """The changed files that git is set to take no notice of (skip-worktree and the like)."""
    entries = tree.checkout.names("ls-files", "-v", "-z")
    quiet = {one[2:] for one in entries if one[:1].islower() or one.startswith("S")}
    quiet = {name for name in quiet if os.path.lexists(tree.path / name)}
    if not quiet:
        return
    with fresh_index(tree, "HEAD") as env:
        shown = ("diff", "--name-only", "-z", "--no-ext-diff", "--ignore-submodules=dirty")
        names = tree.checkout.names(*shown, env=env)
    yield from (name for name in names if name in quiet)


def _inner(checkout: Checkout, changed: Iterable[str]) -> Iterator[str]:
    """The repositories in a worktree that have their commits in themselves."""
    links = checkout.submodules()
    new = [name.rstrip("/") for name in changed if name.endswith("/")]
    for name in dict.fromkeys((*links, *new)):
        if (checkout.top / name / ".git").is_dir():
            yield name


@contextmanager
def index_apart() -> Generator[dict[str, str]]:
    """Variables that let git use an index of its own. It lies where no command of the workspace
    could have put a link for git to follow. Raises GitError."""
    with folder_apart(GitError) as folder:
        yield {"GIT_INDEX_FILE": str(folder / "index")}


@contextmanager
def fresh_index(tree: Worktree, commit: str) -> Generator[dict[str, str]]:
    """Variables that let git use an index of its own, which holds a commit."""
    with index_apart() as env:
        tree.checkout.git("read-tree", commit, env=env)
        yield env


def ignored_files(tree: Worktree) -> Iterator[str]:
    """The ignored files and folders that no tool makes again and that aren't mere copies."""
    wanted = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    names = sorted(tree.checkout.names(*wanted))
    lasting = [one for one in names if not _is_replaceable(tree, one)]
    for name, following in itertools.pairwise((*lasting, "")):
        if not (name.endswith("/") and following.startswith(name)):  # git names its parts, too
            yield name
    if (tree.git_dir / "modules").is_dir():
        yield "submodules"


def _is_replaceable(tree: Worktree, name: str) -> bool:
    """True if an ignored file, or all in a folder, is a tool's or the program's, or as it was
    copied."""
    path = tree.path / name
    if _CACHES.intersection(Path(name).parts) or _OWN_IGNORE.search(name):
        return True
    if not name.endswith("/"):
        return name in tree.copies and file_hash(path) == tree.copies[name]
    inner = (Path(place, one) for place, _, names in os.walk(path) for one in names)
    return all(_is_replaceable(tree, str(one.relative_to(tree.path))) for one in inner)


def file_hash(path: Path) -> str:
    """A file's SHA-256, "" for one that can't be read."""
    try:
        with path.open("rb") as file:
            digest = sha256()
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    except OSError:
        return ""
    return digest.hexdigest()


def _stamps(top: Path, names: Iterable[str]) -> Iterator[str]:
    """Yield the times of the last changes and the sizes of files; of folders, of the first many in
    them."""
    for name in names:
        inner = (Path(p, one) for p, _, files in os.walk(top / name) for one in (*files, "."))
        for path in (top / name, *itertools.islice(inner, _STAMPED)):
            with suppress(OSError):
                now = path.lstat()
                yield f"{name} {path} {now.st_mtime_ns} {now.st_size}"

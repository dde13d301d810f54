"""Files and settings for a task's folder, from the checkout that the run began in where that is on
the same machine: all that a worktree of it would have. Blocks.

The folder has a git folder of its own, so that it can be lost and made again; what a repository
has for all its worktrees is brought there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tui.core.errors import os_error_as
from tui.core.formatting import plural
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError, git
from tui.core.git.repository import Repository
from tui.core.git.worktree import Worktree, branch_for, some
from tui.core.git.worktree_state import ignored_files
from tui.core.late_pattern import late_pattern
from tui.core.paths import shorten

_ITS_OWN: Final = late_pattern(
    r"core\.(?:bare|worktree|repositoryformatversion|hookspath|sparsecheckout\w*)|index\.sparse"
    r"|(?:extensions|include|includeif|submodule)\..*"
)
"""Settings that say how one git folder is laid out, or lead elsewhere from it."""
_INFO: Final = ("info/exclude", "info/attributes")


def share(origin: Path, top: Path, branch: str, *, hooks: bool) -> None:
    """Give a new repository at `top` the objects, refs and settings of the one at `origin`, but for
    the `branch` that the task works on, and its git `hooks` where they are to run. Raises
    GitError."""
    here = Checkout.of(origin)
    there = top / ".git"
    with os_error_as(GitError, f"Can't bring git's settings from {origin}"):
        with (there / "config").open("ab") as config:
            config.write(os.fsencode("".join(_settings(here))))
        for name in _INFO:
            place = here.common / name
            if place.is_file() and not place.is_symlink():  # commands may not read what it leads to
                (there / name).parent.mkdir(exist_ok=True)
                shutil.copyfile(place, there / name)
        if hooks:
            _copy_hooks(here, there)
    git(top, "update-ref", "--stdin", stdin="".join(_refs(here, branch)))


def bring(origin: Path, folder: Path, top: Path) -> tuple[Worktree, tuple[str, ...]]:
    """Copy the ignored files that a worktree of `origin` gets for work in `folder` of it. Returns
    the place as a worktree, and what the person should know. Raises GitError."""
    return Repository.of(origin).furnish(top, folder)


def keep_ignored(tree: Worktree, private: str, place: Path) -> str:
    """Move the ignored files that a task has made, and that no tool makes again, to a place, but
    for the program's `private` ones. Returns a sentence about them, "" for none. Raises
    GitError."""
    memory = f"{private}/MEMORY.md"
    names = [
        name
        for name in ignored_files(tree)
        if (name == memory or not name.startswith(f"{private}/"))
        and os.path.lexists(tree.path / name)
    ]
    while place.exists():  # of an attempt that lost the task afterwards
        place = place.with_name(f"{place.name}b")
    with os_error_as(GitError, f"Can't keep ignored files in {place}"):
        for name in names:
            copy = place / name.rstrip("/")
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (tree.path / name).rename(copy)
    many = f"{plural(len(names), 'ignored file')} ({some(names)})"
    return f"{many} of the task: moved to {shorten(place)}." if names else ""


def objects_of(origin: Path) -> Path:
    """The folder of a checkout's objects. Raises GitError."""
    return Checkout.of(origin).common / "objects"


def _settings(here: Checkout) -> Iterator[str]:
    """Yield the settings of a repository as lines of a file."""
    listed = here.git("config", "--local", "--includes", "--list", "-z").split("\0")
    for key, has_value, value in (one.partition("\n") for one in listed if one):
        if not _ITS_OWN.fullmatch(key):
            section, _, rest = key.partition(".")
            part, _, name = rest.rpartition(".")
            head = f'{section} "{_escaped(part)}"' if part else section
            yield f"[{head}]\n\t{name}{f' = {_quoted(value)}' if has_value else ''}\n"
    path = here.answer("config", "--local", "core.hooksPath")
    if path:
        yield f"[core]\n\thooksPath = {_quoted(path)}\n"
    if (here.common / "lfs").is_dir():
        yield f"[lfs]\n\tstorage = {_quoted(str(here.common / 'lfs'))}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _quoted(value: str) -> str:
    return '"' + _escaped(value).replace("\n", "\\n").replace("\t", "\\t") + '"'


def _copy_hooks(here: Checkout, there: Path) -> None:
    """Copy the hooks of a repository, which commands of the task can't reach where they are."""
    hooks = here.common / "hooks"
    if hooks.is_dir():
        shutil.rmtree(there / "hooks", ignore_errors=True)
        shutil.copytree(hooks, there / "hooks")


def _refs(here: Checkout, branch: str) -> Iterator[str]:
    """Yield a command of update-ref for each branch and tag."""
    form = "--format=%(objectname) %(refname) %(symref)"
    rooms = ("refs/heads", "refs/tags", "refs/remotes")
    for line in here.git("for-each-ref", form, *rooms).splitlines():
        commit, ref, leads_to = line.split(" ")
        own = ref == f"refs/heads/{branch}" or ref.startswith(f"refs/heads/{branch_for('')}")
        if not (own or leads_to):
            yield f"create {ref} {commit}\n"

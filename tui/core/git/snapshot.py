"""The differences of a checkout, and commits that hold them while the index and the branch stay as
they are. Submodules and repositories inside are left alone. Blocks; all of it raises GitError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tui.core.git.checkout import Checkout
from tui.core.git.door import listed
from tui.core.git.placing import clear, place
from tui.core.git.storing import store
from tui.core.git.worktree_state import index_apart

_ALONE: Final = ("--no-renames", "--ignore-submodules=all")


def changed_paths(checkout: Checkout) -> set[str]:
    """The files that differ from what is checked out."""
    options = ("--porcelain=v1", "-z", "--untracked-files=all")
    entries = (entry[3:] for entry in checkout.names("status", *options, *_ALONE))
    return {path for path in entries if not path.endswith("/")}


def paths_between(checkout: Checkout, before: str, after: str) -> list[str]:
    """The files that differ between two commits; `before` may be "", for no files."""
    options = ("-r", "-z", "--name-only")
    return checkout.names("diff-tree", *options, *_ALONE, before or _empty_tree(checkout), after)


def filtered(checkout: Checkout, paths: Iterable[str]) -> tuple[str, str] | None:
    """The first of the paths that only a filter of the repository's own settings would store as it
    should be, and the filter: it isn't run."""
    own = checkout.own_filters()
    if not own:
        return None
    output = checkout.git("check-attr", "-z", "--stdin", "filter", stdin=listed(paths))
    words = output.split("\0")
    named = zip(words[::3], words[2::3], strict=False)
    return next(((path, name) for path, name in named if name in own), None)


def tree_of(
    checkout: Checkout,
    base: str,
    paths: Sequence[str],
    env: Mapping[str, str] | None = None,
) -> str:
    """The id of a tree of `base`, "" for no files, with the paths as they are now. `env` may name
    another place for new objects."""
    with index_apart() as apart:
        env = {**(env or {}), **apart}
        checkout.git("read-tree", base or "--empty", env=env)
        store(checkout, paths, env)
        return checkout.git("write-tree", env=env).strip()


def commit_tree(
    checkout: Checkout,
    tree: str,
    parents: Iterable[str],
    message: str,
    *,
    sign: bool = False,
    env: Mapping[str, str] | None = None,
) -> str:
    """Make a commit, as the person whom `env`, else git, knows, or as nobody; signed by what the
    person's own settings name. Returns its id."""
    options = [word for one in parents if one for word in ("-p", one)]
    options += ["-S"] if sign else []
    words = ("commit-tree", tree, *options, "-F", "-")
    return checkout.git(*words, stdin=message, env=env or checkout.identity()).strip()


def put_back(checkout: Checkout, base: str, paths: Sequence[str]) -> None:
    """Make the paths as they are in `base`, "" for no files: in the work tree and in the index."""
    put_files(checkout, *put_in_index(checkout, base, paths))


def put_in_index(
    checkout: Checkout, base: str, paths: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Make the paths in the index as they are in `base`, "" for no files. Returns those that it
    has, and those that it doesn't."""
    entries = checkout.names("ls-tree", "-r", "-z", base or _empty_tree(checkout))
    known = {entry.partition("\t")[2]: entry for entry in entries}
    old = [path for path in paths if path in known]
    new = [path for path in paths if path not in known]
    if new:
        checkout.git("update-index", "--force-remove", "-z", "--stdin", stdin=listed(new))
    if old:
        entries = [known[path] for path in old]
        checkout.git("update-index", "-z", "--index-info", stdin=listed(entries))
    return old, new


def put_files(checkout: Checkout, old: Sequence[str], new: Sequence[str]) -> None:
    """Make files as the index has them: the `old` ones are there, the `new` ones aren't."""
    clear(checkout.top, new)
    place(checkout, old)


def _empty_tree(checkout: Checkout) -> str:
    """The id of the tree of nothing, which is another one with each kind of hash."""
    return checkout.git("hash-object", "-t", "tree", "--stdin").strip()

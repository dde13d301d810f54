"""A work tree with the git folder that belongs to it: where git may write. Blocks.

Git goes where a `.git` file, a link or a setting leads, and where none is left, to the repository
of a folder further up. So it is asked where it stands, and what it says counts only if folder and
git folder name each other. From then on git gets both, and looks for no other.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NoReturn

from tui.core.dataclass import dataclass
from tui.core.git.branch import folder_named
from tui.core.git.door import ONLY_LOOK, GitError, git, settings_of
from tui.core.git.programs import merges, own_filters
from tui.core.paths import shorten
from tui.core.workspace import checkout_of, worktree_of

_NOBODY: Final = {"NAME": "holdfast", "EMAIL": "holdfast@localhost"}
_WRITTEN: Final = (
    "HEAD", "index", "packed-refs", "info", "info/exclude", "worktrees",
    "COMMIT_EDITMSG", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "SQUASH_MSG",
)  # fmt: skip
"""Paths that git writes in its folder beside objects, refs and their logs."""


class NoCheckoutError(GitError):
    """A folder isn't in the work tree of a git repository."""


class InsideGitError(NoCheckoutError):
    """A folder is one of git's own."""


_NO_FILES: Final = {
    "must be run in a work tree": InsideGitError,
    "safe.bareRepository": NoCheckoutError,
}


@dataclass(frozen=True, slots=True)
class Checkout:
    """A work tree and its git folder; `common` holds what all work trees of the repository share.
    All are real paths. Use `of`, which makes sure that they belong together."""

    top: Path
    git_dir: Path
    common: Path

    @classmethod
    def of(cls, folder: Path) -> Checkout:
        """The checkout that a folder lies in. Raises NoCheckoutError where it is in none, and
        GitError where git would act on something else than that folder's own repository."""
        here = cls(*_located(folder))
        here._check_above(folder)
        here._check_links()
        if not here._belongs():
            _refuse(here.top, f"leads to {shorten(here.git_dir)}, which belongs elsewhere")
        if worktree_of(here.top) == here.top and not here._is_one_of(checkout_of(here.top)):
            _refuse(here.top, "doesn't lead to the repository that the worktree was made from")
        return here

    def git(
        self,
        *args: str,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> str:
        """Run git and return its output, see `door.git`, in a folder of the work tree or at its
        top; nothing leads it to another place. Raises GitError."""
        if args[0] not in ONLY_LOOK:
            self._check_links()
        places = {**self._places, **(env or {})}
        return git(folder or self.top, *args, stdin=stdin, env=places)

    def answer(self, *args: str) -> str:
        """Return git's output without the last line break; "" where it refuses."""
        with suppress(GitError):
            return self.git(*args).rstrip("\n")
        return ""

    def names(self, *args: str, stdin: str = "", env: Mapping[str, str] | None = None) -> list[str]:
        """Return git's output with -z, such as names of files. Raises GitError."""
        return [name for name in self.git(*args, stdin=stdin, env=env).split("\0") if name]

    def commit(self, name: str = "HEAD") -> str:
        """The id of the commit that a name stands for; "" where there is none."""
        return self.answer("rev-parse", "--verify", "-q", name)

    def has(self, commit: str) -> bool:
        """True if what is checked out was made from a commit, or is it."""
        with suppress(GitError):
            self.git("merge-base", "--is-ancestor", commit, "HEAD")
            return True
        return False

    @property
    def branch(self) -> str:
        """The branch that is checked out; "" while the head is detached."""
        return self.ref.removeprefix("refs/heads/")

    @property
    def ref(self) -> str:
        """The full name of that branch."""
        return self.answer("symbolic-ref", "-q", "HEAD")

    def submodules(self, env: Mapping[str, str] | None = None) -> list[str]:
        """The paths of the submodules in the index, or in that of `env`. Raises GitError."""
        entries = self.names("ls-files", "--stage", "-z", env=env)
        return [one.partition("\t")[2] for one in entries if one.startswith("160000 ")]

    def identity(self) -> dict[str, str]:
        """Return git's identity for commits, as variables: the person whom it knows (nothing), or
        nobody."""
        with suppress(GitError):
            self.git("var", "GIT_AUTHOR_IDENT")
            self.git("var", "GIT_COMMITTER_IDENT")
            return {}
        return {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in _NOBODY.items()
        }

    def named_identity(self) -> dict[str, str]:
        """Return the same as variables in any case, for a git that can't read the settings."""
        found = self.identity()
        for who in ("AUTHOR", "COMMITTER") if not found else ():
            name, _, rest = self.git("var", f"GIT_{who}_IDENT").partition(" <")
            found |= {f"GIT_{who}_NAME": name, f"GIT_{who}_EMAIL": rest.partition(">")[0]}
        return found

    def own_settings(self) -> list[str]:
        """The keys that the repository's own settings set."""
        return settings_of(self.top, self._places)

    def own_filters(self) -> tuple[str, ...]:
        """The filters that the repository's own settings name: they don't run."""
        return own_filters(self.own_settings())

    def merges_by_program(self) -> bool:
        """True if the repository's own settings name a program that merges files."""
        return merges(self.own_settings())

    @property
    def _places(self) -> dict[str, str]:
        places = {"DIR": self.git_dir, "WORK_TREE": self.top, "COMMON_DIR": self.common}
        return {f"GIT_{name}": str(path) for name, path in places.items()}

    def _check_above(self, folder: Path) -> None:
        """Refuse a work tree that the folder isn't in, or that git found only because what is
        nearer is damaged."""
        place = real = Path(os.path.realpath(folder))
        for place in (real, *real.parents):
            if _is_same(place, self.top):
                return
            if os.path.lexists(place / ".git") or worktree_of(place) == place:
                break
        _refuse(place, f"isn't what git uses: it would act on {shorten(self.top)}")

    def _check_links(self) -> None:
        """Refuse links by which git would write in another repository, or another file."""
        for path in self._links():
            real = Path(os.path.realpath(path))
            if not any(real.is_relative_to(place) for place in (self.common, self.git_dir)):
                raise GitError(
                    f"{shorten(path)} is a link that leads out of the repository: git would write "
                    f"{shorten(real)}.",
                    hint="Replace the link by what it leads to.",
                )

    def _links(self) -> Iterator[Path]:
        for folder in dict.fromkeys((self.common, self.git_dir)):
            yield from (folder / name for name in _WRITTEN if (folder / name).is_symlink())
            for name in ("refs", "logs"):
                yield from _links_in(folder / name)

    def _is_one_of(self, checkout: Path) -> bool:
        with suppress(GitError):
            return Checkout.of(checkout).common == self.common
        return False

    def _belongs(self) -> bool:
        """True if the git folder lies in the work tree or names it itself: a `.git` file alone
        could lead anywhere."""
        link = self.top / ".git"
        if self.git_dir.parent == self.common / "worktrees":
            return _named_in(self.git_dir / "gitdir") == link
        if self.git_dir != self.common or self.git_dir == link:
            return self.git_dir == self.common
        with suppress(GitError):
            leads = git(self.top, "rev-parse", "--resolve-git-dir", str(link)).rstrip("\n")
            named = git(self.top, "config", "--get", "core.worktree")
            return bool(named) and Path(os.path.realpath(leads)) == self.git_dir
        return False


def _links_in(place: Path, followed: set[Path] | None = None) -> Iterator[Path]:
    """Yield the links below a folder, which may be one itself, then those below what they lead to:
    git follows them to a ref, and to its log."""
    followed = set() if followed is None else followed
    if place.is_symlink():
        yield place
        real = Path(os.path.realpath(place))
        if real in followed:
            return
        followed.add(real)
    with suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            if entry.is_symlink() or entry.is_dir():
                yield from _links_in(Path(entry.path), followed)


def _located(folder: Path) -> Iterator[Path]:
    """The work tree, its git folder and the common one, as git says. Raises GitError."""
    mark = f"--{secrets.token_hex(8)}"  # git prints an option that it doesn't know
    words = ("--show-toplevel", mark, "--absolute-git-dir", mark)
    try:
        output = git(folder, "rev-parse", *words, "--git-common-dir")
    except GitError as error:
        if "not a git repository" in error.message:
            if damaged := next(_with_git(folder), None):
                _refuse(damaged, "isn't a git repository, and leads to none")
            raise NoCheckoutError(
                f"{shorten(folder)} isn't in a git repository.",
                hint="Make one with: git init, then commit something.",
            ) from error
        if kind := next(
            (kind for words, kind in _NO_FILES.items() if words in error.message), None
        ):
            raise kind(
                f"{shorten(folder)} has no checked-out files: it's a bare repository or .git.",
                hint="Start in a checkout, such as one made with: git worktree add ../main",
            ) from error
        if "dubious ownership" in error.message:
            hint = f"If you trust it: git config --global --add safe.directory {folder}"
            raise GitError(
                f"{shorten(folder)} belongs to another user, so git doesn't use it.", hint=hint
            ) from error
        raise
    lines = output.removesuffix("\n").split(f"\n{mark}\n")
    return (Path(os.path.realpath(folder / line)) for line in lines)


def _with_git(folder: Path) -> Iterator[Path]:
    """The folders with a `.git` of any kind that a folder lies in, the nearest first."""
    real = Path(os.path.realpath(folder))
    return (place for place in (real, *real.parents) if os.path.lexists(place / ".git"))


def _named_in(file: Path) -> Path:
    """The `.git` that a linked work tree's folder names."""
    try:
        named = file.parent / folder_named(file)
    except OSError:
        return file
    return Path(os.path.realpath(named.parent)) / named.name


def _is_same(place: Path, other: Path) -> bool:
    """True if two paths are one folder, however it is spelled on a disk that ignores case."""
    with suppress(OSError):
        return place == other or place.samefile(other)
    return False


def _refuse(top: Path, why: str) -> NoReturn:
    raise GitError(
        f"{shorten(top / '.git')} {why}.",
        hint="Git isn't used there. If you know what it should be, repair it: "
        "git worktree repair, or for a git folder elsewhere: git config core.worktree FOLDER",
    )

"""The store of a run on many machines: a bare git repository, and nothing else. Blocks.

Each run has one commit with what every worker needs, made upon the commit that the tasks begin
from, and each task one ref. A ref is moved only from the commit that the mover has seen, so of two
who move it, one fails. Every state of a task is a child of the one before: nothing is lost in it.

    refs/holdfast/runs/RUN          the run: its message says for whom, its tree has the files
    refs/holdfast/tasks/RUN/KEY     a task (see `entry`)
    refs/holdfast/waits/KEY         what a server has asked all holders of one API key to wait

What a machine has read of a store lies in a bare repository of its own, the mirror.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tui.batch.cluster.entry import TaskEntry, entry_of
from tui.batch.cluster.ssh_command import ssh_command
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, os_error_as
from tui.core.files import locked, replace_file
from tui.core.git.door import GitError, git
from tui.session.checkpoints.scratch import remove_tree

RUNS: Final = "refs/holdfast/runs/"
TASKS: Final = "refs/holdfast/tasks/"
WAITS: Final = "refs/holdfast/waits/"
_MADE: Final = "refs/holdfast/made/"
_NONE: Final = "0" * 40
_NOBODY: Final = "holdfast <holdfast@localhost>"
_GIVES_ALL: Final = "uploadpack.allowAnySHA1InWant"
_TAKES_SHALLOW: Final = "receive.shallowUpdate"
_NOT_GIVEN: Final = "request for unadvertised object"
"""Over ssh git speaks its older protocol where sshd doesn't take GIT_PROTOCOL: then a commit that a
ref has left meanwhile is given only where the repository says so."""
_ABSENT: Final = ("to be a git repository", "not a git repository")


class StoreError(HoldfastError):
    """The store can't be reached, or isn't one."""


@dataclass(frozen=True, slots=True)
class CommitDraft:
    """A commit that is to be made: with the files of the one that it is made `upon`, and these in
    their place, None for none; `works` are its other parents."""

    message: str
    upon: str = ""
    works: tuple[str, ...] = ()
    files: Mapping[str, bytes | None] = field(default_factory=dict[str, "bytes | None"])

    def parts(self, ref: str) -> Iterator[bytes]:
        """The draft as fast-import takes it, on a ref that is moved by it."""
        text = self.message.encode()
        yield f"reset {ref}\nfrom {_NONE}\n\n".encode()
        yield f"commit {ref}\nmark :1\ncommitter {_NOBODY} now\n".encode()
        yield b"data %d\n%s\n" % (len(text), text)
        for number, parent in enumerate(filter(None, (self.upon, *self.works))):
            yield f"{'merge' if number else 'from'} {parent}\n".encode()
        if not self.upon:
            yield b"deleteall\n"
        for path, data in self.files.items():
            if data is None:
                yield b"D %s\n" % _quoted(path)
            else:
                yield b"M 100644 inline %s\n" % _quoted(path)
                yield b"data %d\n%s\n" % (len(data), data)
        yield b"\nget-mark :1\n"


@dataclass(frozen=True, slots=True)
class TaskStore:
    """The store at `address`, a path or what git takes over ssh, and its `mirror` on this machine.
    Use `at` to make one."""

    address: str
    mirror: Path

    @classmethod
    def at(cls, address: str, folder: Path) -> TaskStore:
        """The store at a whole address, with its mirror in a folder. Raises StoreError."""
        store = cls(address, folder / "mirror.git")
        if not (store.mirror / "HEAD").is_file():
            with os_error_as(StoreError, f"Can't make {store.mirror}"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with locked(folder):
                    _make_bare(store.mirror)
        return store

    def make(self) -> None:
        """Make the store where its path is empty. Raises StoreError."""
        place = Path(self.address)
        if place.is_absolute() and not (place / "HEAD").exists():
            with os_error_as(StoreError, f"Can't make the store {place}"):
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                if any(place.iterdir()):
                    raise StoreError(
                        f"{place} isn't empty.", hint="Name a new folder, or a bare git repository."
                    )
                _make_bare(place)
        self.refs()

    def end_history(self, shallow: bytes, base: str, objects: Path) -> None:
        """Let the histories in the store end where they do in a shallow clone, by the content of
        its file `shallow`, and put its commit there. Raises StoreError."""
        place = Path(self.address)
        if not place.is_absolute():
            raise StoreError(
                "This repository is a shallow clone, and the store isn't on this machine.",
                hint="Fetch the rest of it: git fetch --unshallow",
            )
        with os_error_as(StoreError, f"Can't write {place}"):
            for folder in (place, self.mirror):
                replace_file(folder / "shallow", shallow)
        # git 2.39 forgets objects of further refs in a push that has the end of a history
        ref = f"{_MADE}{base}"
        self.move({ref: (self.refs(ref).get(ref, ""), base)}, objects)

    def remove(self) -> None:
        """Remove a store at a path, and all that this machine has of it. Raises StoreError."""
        for place in (Path(self.address), self.mirror.parent):
            with os_error_as(StoreError, f"Can't remove {place}"):
                remove_tree(place)

    # Refs

    def refs(self, prefix: str = "refs/holdfast/") -> dict[str, str]:
        """The refs of the store below a prefix, and the commit of each. Raises StoreError."""
        lines = self._reach("ls-remote", self.address, f"{prefix}*").splitlines()
        return {ref: commit for commit, _, ref in (line.partition("\t") for line in lines)}

    def move(self, moves: Mapping[str, tuple[str, str]], objects: Path | None = None) -> bool:
        """Move refs from the commit that each has, "" for none, to another; all of them, or none.
        False where one has another commit by now. `objects` is the folder of a repository that has
        objects of the new commits, too. Raises StoreError; what happened is then not known."""
        leases = [f"--force-with-lease={ref}:{old or ''}" for ref, (old, _) in moves.items()]
        pairs = [f"{new}:{ref}" for ref, (_, new) in moves.items()]
        words = ("push", "-q", "--no-verify", "--atomic", *leases, self.address, *pairs)
        try:
            self._reach(*words, objects=objects)
        except StoreError:
            # A lost connection may have come after the move.
            now = self.refs()
            if all(now.get(ref) == new for ref, (_, new) in moves.items()):
                return True
            if all(now.get(ref, "") == old for ref, (old, _) in moves.items()):
                raise
            return False
        return True

    def fetch(self, commits: Iterable[str], *, into: Path | None = None) -> None:
        """Bring commits, with all that belongs to them, into the mirror, or into another
        repository. Raises StoreError."""
        wanted = list(dict.fromkeys(commits))
        words = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-gc")
        words = (*words, "--update-shallow")
        for begin in range(0, len(wanted), 200):
            self._reach(*words, self.address, *wanted[begin : begin + 200], folder=into)

    def base(self, commit: str, place: Path) -> Path:
        """Make the bare repository at a place, with a commit and all before it and nothing else.
        Returns the place. Raises StoreError."""
        with os_error_as(StoreError, f"Can't make {place}"):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(place.parent):
                _make_bare(place)
                if commit not in self._git("for-each-ref", "--format=%(objectname)", folder=place):
                    self.fetch([commit], into=place)
                    self._git("update-ref", "refs/heads/base", commit, folder=place)
        return place

    # Commits

    def commit(
        self,
        message: str,
        *,
        upon: str = "",
        works: Sequence[str] = (),
        files: Mapping[str, bytes | None] | None = None,
        objects: Path | None = None,
    ) -> str:
        """Make a commit in the mirror and return its id; see `CommitDraft`."""
        return self.commits([CommitDraft(message, upon, tuple(works), files or {})], objects)[0]

    def commits(self, drafts: Iterable[CommitDraft], objects: Path | None = None) -> list[str]:
        """Make commits in the mirror, at once, and return their ids. `objects` is the folder of a
        repository that has objects of them. Raises StoreError."""
        ref = f"{_MADE}{secrets.token_hex(8)}"
        parts = [b"".join(draft.parts(ref)) for draft in drafts]
        end = f"reset {ref}\nfrom {_NONE}\n\n".encode()
        words = ("fast-import", "--quiet", "--date-format=now")
        said = self._git(*words, stdin=os.fsdecode(b"".join([*parts, end])), objects=objects)
        return said.split()

    def entry(self, commit: str) -> TaskEntry:
        """The state of a task in a commit that is in the mirror. Raises EntryError, StoreError."""
        return entry_of(self.message(commit))

    def message(self, commit: str) -> str:
        """The message of a commit in the mirror. Raises StoreError."""
        return self._git("cat-file", "commit", commit).partition("\n\n")[2]

    def entries(self, commits: Iterable[str]) -> dict[str, TaskEntry]:
        """The states of tasks in commits of the mirror, in one look. Raises EntryError,
        StoreError."""
        wanted = list(commits)
        if not wanted:
            return {}
        words = ("log", "--no-walk=unsorted", "--format=%H%n%B%x00")
        said = self._git(*words, "--stdin", stdin="\n".join(wanted) + "\n")
        parts = (part.strip("\n").partition("\n") for part in said.split("\0"))
        return {commit: entry_of(message) for commit, _, message in parts if commit}

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit in the mirror, which need not be there. Raises StoreError."""
        lines = self._git("cat-file", "commit", commit).partition("\n\n")[0].splitlines()
        return [line.removeprefix("parent ") for line in lines if line.startswith("parent ")]

    def files(self, commit: str, below: str = "") -> list[str]:
        """The paths of the files in a commit of the mirror, below a folder. Raises StoreError."""
        words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        return [one for one in self._git(*words, *([below] if below else [])).split("\0") if one]

    def read(self, commit: str, path: str) -> bytes:
        """The content of a file in a commit of the mirror. Raises StoreError."""
        return os.fsencode(self._git("cat-file", "blob", f"{commit}:{path}"))

    # Git

    def _reach(self, *words: str, objects: Path | None = None, folder: Path | None = None) -> str:
        try:
            return self._git(*words, env=_reaching(), objects=objects, folder=folder)
        except StoreError as error:
            path = shlex.quote(self._path)
            if any(one in error.message for one in _ABSENT):
                raise StoreError(
                    f"There is no git repository at {self.address}.",
                    hint=f"Make it where it is to be: git init --bare {path} && "
                    f"git -C {path} config {_GIVES_ALL} true",
                ) from error
            if _NOT_GIVEN in error.message:
                raise StoreError(
                    f"The store {self.address} gives away the newest states only.",
                    hint=f"Where it is: git -C {path} config {_GIVES_ALL} true",
                ) from error
            raise

    @property
    def _path(self) -> str:
        _, ssh, rest = self.address.partition("ssh://")
        return f"/{rest.partition('/')[2]}" if ssh else self.address.rpartition(":")[2]

    def _git(
        self,
        *words: str,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        objects: Path | None = None,
        folder: Path | None = None,
    ) -> str:
        where = folder or self.mirror
        places = {"GIT_DIR": str(where)} if where.suffix == ".git" else {}
        beside = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)} if objects else {}
        try:
            return git(where, *words, stdin=stdin, env={**places, **beside, **(env or {})})
        except GitError as error:
            raise StoreError(error.message, hint=error.hint) from error


def _reaching() -> dict[str, str]:
    """The variables with which git goes to a store."""
    ssh = shlex.join(ssh_command(alive_s=10, times=3))
    return {"GIT_ALLOW_PROTOCOL": "file:ssh", "GIT_SSH_COMMAND": ssh}


def whole_address(address: str) -> str:
    """The address of a store as every machine takes it. Raises StoreError for what is none."""
    if "://" not in address and ":" not in address.partition("/")[0]:
        return str(Path(address).expanduser().absolute())
    if "://" in address and not address.startswith("ssh://"):
        raise StoreError(
            f"The store {address} can't be used.", hint="Give a path, HOST:PATH or ssh://HOST/…"
        )
    return address


def _make_bare(place: Path) -> None:
    """Make a bare repository whose objects are kept though no branch has them."""
    if (place / "HEAD").exists():
        return
    try:
        git(place.parent, "init", "-q", "--bare", str(place))
        for key, value in (("gc.auto", "0"), (_GIVES_ALL, "true"), (_TAKES_SHALLOW, "true")):
            git(place, "config", key, value, env={"GIT_DIR": str(place)})
    except GitError as error:
        raise StoreError(error.message, hint=error.hint) from error


def _quoted(path: str) -> bytes:
    """A path as fast-import takes it."""
    plain = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return os.fsencode(f'"{plain}"')

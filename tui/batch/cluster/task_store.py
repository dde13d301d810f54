"""The store of a run on many machines: a bare git repository, and nothing else. Blocks.

Each run has one commit with what every worker needs, made upon the commit that the tasks begin
from, and each task one ref. A ref is moved only from the commit that the mover has seen, so of two
who move it, one fails. Every state of a task is a child of the one before: nothing is lost in it.

    refs/holdfast/runs/RUN          the run: its message says for whom, its tree has the files
    refs/holdfast/tasks/RUN/KEY     a task (see `entry`)
    refs/holdfast/questions/RUN/KEY what a task asks the person (see `question`)
    refs/holdfast/waits/KEY         what a server has asked all holders of one API key to wait
    refs/holdfast/made/RUN/KEY      what a worker sends ahead of a large state, until that is there

What a machine has read of a store elsewhere lies in a bare repository of its own, the mirror. A
store by its path is its own mirror: git's plumbing works on it, and nothing is sent.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tui.batch.cluster.entry import TaskEntry, entry_of
from tui.batch.cluster.stale_locks import remove_stale
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError, os_error_as
from tui.core.files import locked
from tui.core.git.door import GitError, LockedError, git
from tui.core.late_pattern import late_pattern
from tui.core.ssh_command import ssh_command
from tui.session.checkpoints.scratch import remove_tree

RUNS: Final = "refs/holdfast/runs/"
TASKS: Final = "refs/holdfast/tasks/"
QUESTIONS: Final = "refs/holdfast/questions/"
WAITS: Final = "refs/holdfast/waits/"
MADE: Final = "refs/holdfast/made/"
_NONE: Final = "0" * 40
_NAME: Final = "holdfast"
_EMAIL: Final = "holdfast@localhost"
_FETCH: Final = (
    "fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-gc", "--update-shallow", "--",
)  # fmt: skip
_PARENTS: Final = late_pattern(r"tree [0-9a-f]{40}\n((?:parent [0-9a-f]{40}\n)*)")
"""The parents of a commit as git itself reads them: a line further down may say anything."""
_MOVED: Final = "lock ref '"
_ABSENT: Final = ("to be a git repository", "not a git repository")


class StoreError(HoldfastError):
    """The store can't be reached, or isn't one."""


class NoStoreError(StoreError):
    """There is no repository at the store's address."""


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
        yield f"commit {ref}\nmark :1\ncommitter {_NAME} <{_EMAIL}> now\n".encode()
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
    """The store at `address`, a path or what git takes over ssh, and its `mirror` on this machine,
    which is the store itself where that is a path. Use `at` to make one."""

    address: str
    mirror: Path
    notes: list[str] = field(default_factory=list[str], compare=False)
    """Sentences on what was done about the store that nobody has said yet."""

    @classmethod
    def at(cls, address: str, folder: Path) -> TaskStore:
        """The store at a whole address, with its mirror in a folder. Raises StoreError."""
        if Path(address).is_absolute():
            with os_error_as(StoreError, f"Can't make {folder}"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return cls(address, Path(address))
        store = cls(address, folder / "mirror.git")
        if not (store.mirror / "HEAD").is_file():
            with os_error_as(StoreError, f"Can't make {store.mirror}"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with locked(folder):
                    _make_bare(store.mirror)
        return store

    @staticmethod
    def is_known(folder: Path) -> bool:
        """True if a folder is that of a store which was used from here."""
        return folder.is_dir()

    @property
    def is_here(self) -> bool:
        """True if the store is its own mirror."""
        return self.address == str(self.mirror)

    def make(self) -> None:
        """Make the store where its path is empty. Raises StoreError."""
        place = self.mirror
        if self.is_here and not (place / "HEAD").exists():
            with os_error_as(StoreError, f"Can't make the store {place}"):
                place.mkdir(mode=0o700, parents=True, exist_ok=True)
                if any(place.iterdir()):
                    raise StoreError(
                        f"{place} isn't empty.", hint="Name a new folder, or a bare git repository."
                    )
                _make_bare(place)
        self.refs()

    def remove(self) -> None:
        """Remove a store at a path. Raises StoreError."""
        with os_error_as(StoreError, f"Can't remove {self.address}"):
            remove_tree(Path(self.address))

    # Refs

    def refs(self, *prefixes: str) -> dict[str, str]:
        """The refs of the store below some prefixes, or those of these names, all of ours by
        default, and the commit of each. Raises StoreError."""
        wanted = prefixes or ("refs/holdfast/",)
        if self.is_here:
            said = self._reach("for-each-ref", "--format=%(objectname)%09%(refname)", *wanted)
        else:
            said = self._reach("ls-remote", self.address, *(f"{one}*" for one in wanted))
        return {ref: commit for commit, _, ref in map(_parted, said.splitlines())}

    def move(self, moves: Mapping[str, tuple[str, str]]) -> bool:
        """Move refs from the commit that each has, "" for none, to another; all of them, or none.
        False where one has another commit by now. Raises StoreError; what happened is then not
        known."""
        leases = [f"--force-with-lease={ref}:{old or ''}" for ref, (old, _) in moves.items()]
        pairs = [f"{new}:{ref}" for ref, (_, new) in moves.items()]
        words = ("push", "-q", "--no-verify", "--atomic", *leases, self.address, *pairs)
        try:
            if self.is_here:
                self._check_links(moves)
                lines = (
                    f"update {ref} {new} {old or _NONE}\n" for ref, (old, new) in moves.items()
                )
                self._reach("update-ref", "--stdin", stdin="".join(lines))
            else:
                self._reach(*words)
        except StoreError:
            # A lost connection may have come after the move.
            now = self.refs()
            if all(now.get(ref) == new for ref, (_, new) in moves.items()):
                return True
            if all(now.get(ref, "") == old for ref, (old, _) in moves.items()):
                raise
            return False
        return True

    def size(self, commits: Iterable[str], known: Sequence[str]) -> int:
        """The bytes of commits of the mirror, with all that belongs to them, that aren't among what
        runs begin from and `known` ones. Raises StoreError."""
        words = ("rev-list", "--ignore-missing", "--objects", "--disk-usage")
        trees = (f"{one}^{{tree}}" for one in known)
        return int(self._git(*words, *commits, "--not", f"--glob={RUNS}*", *known, *trees))

    def send(self, ref: str, draft: CommitDraft) -> None:
        """Send a commit ahead, to a ref of the sender's own: what is pushed next is small where it
        has the same files and parents, until the ref is dropped. Raises StoreError."""
        (commit,) = self.commits([draft])
        self._reach("push", "-q", "--no-verify", self.address, f"+{commit}:{ref}")

    def drop(self, ref: str) -> None:
        """Remove a ref of the sender's own. Raises StoreError."""
        self._reach("push", "-q", "--no-verify", self.address, f":{ref}")

    def fetch(self, refs: Mapping[str, str]) -> None:
        """Bring refs into the mirror, each with the commit that it had as it was seen: one that has
        moved since has that in its past. What is there already isn't sent. Raises StoreError."""
        pairs = [] if self.is_here else [f"+{ref}:{ref}" for ref in refs]
        for begin in range(0, len(pairs), 200):
            words = (*_FETCH, self.address, *pairs[begin : begin + 200])
            try:
                self._reach(*words)
            except StoreError as error:
                if _MOVED not in error.message:
                    raise
                self._reach(*words)  # another process fetched it at the same time

    def bring(self, commits: Iterable[str], repository: Path) -> None:
        """Bring commits, with all that belongs to them, from a repository on this machine into the
        mirror. Raises StoreError."""
        if wanted := list(dict.fromkeys(commits)):
            self._git(*_FETCH, str(repository), *wanted, env=_reaching())

    def copy(self, commits: Iterable[str], into: Path) -> None:
        """Bring commits of the mirror, with all that belongs to them, into another repository on
        this machine. Raises StoreError."""
        self._git(*_FETCH, str(self.mirror), *commits, env=_reaching(), folder=into)

    def keep(self, ref: str, commit: str) -> None:
        """Note in the mirror that it has a commit: what is fetched later comes without what belongs
        to that. Raises StoreError."""
        if not self.is_here:
            self._git("update-ref", ref, commit)

    def base(self, commit: str, place: Path) -> Path:
        """Make the bare repository at a place, with a commit of the mirror and all before it and
        nothing else. Returns the place. Raises StoreError."""
        with os_error_as(StoreError, f"Can't make {place}"):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with locked(place.parent):
                _make_bare(place)
                if commit not in self._git("for-each-ref", "--format=%(objectname)", folder=place):
                    self.copy([commit], place)
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
    ) -> str:
        """Make a commit in the mirror and return its id; see `CommitDraft`."""
        return self.commits([CommitDraft(message, upon, tuple(works), files or {})])[0]

    def commits(self, drafts: Iterable[CommitDraft]) -> list[str]:
        """Make commits in the mirror, at once, and return their ids. Raises StoreError."""
        ref = f"{MADE}{secrets.token_hex(8)}"
        parts = [b"".join(draft.parts(ref)) for draft in drafts]
        end = f"reset {ref}\nfrom {_NONE}\n\n".encode()
        words = ("fast-import", "--quiet", "--date-format=now")
        said = self._git(*words, stdin=os.fsdecode(b"".join([*parts, end])))
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
        return {commit: entry_of(message) for commit, message in self.messages(commits).items()}

    def messages(self, commits: Iterable[str]) -> dict[str, str]:
        """The messages of commits in the mirror, in one look. Raises StoreError."""
        return {
            commit: os.fsdecode(data.partition(b"\n\n")[2])
            for commit, data in self._objects(commits).items()
        }

    def parents(self, commit: str) -> list[str]:
        """The parents of a commit in the mirror, which need not be there. Raises StoreError."""
        begin = _PARENTS.match(self._git("cat-file", "commit", commit))
        return begin[1].split()[1::2] if begin else []

    def files(self, commit: str, *below: str) -> dict[str, str]:
        """The ids of the files in a commit of the mirror, below some paths, by their paths; those
        that lead out of a folder are passed over. Raises StoreError."""
        said = self._git("ls-tree", "-r", "-z", "--full-tree", commit, *below)
        entries = (entry.partition("\t") for entry in said.split("\0") if entry)
        return {path: head.rpartition(" ")[2] for head, _, path in entries if stays_below(path)}

    def changes(self, old: str, new: str, below: str) -> dict[str, tuple[str, str]]:
        """The files below a folder that differ between two commits of the mirror: git's letter for
        what happened to each, and its id. Raises StoreError."""
        words = ("diff-tree", "-r", "-z", "--no-renames", "--raw", old, new, "--", below)
        parts = self._git(*words).split("\0")
        heads = (head.split(" ") for head in parts[::2] if head)
        return {
            path: (letter, id_) for (*_, id_, letter), path in zip(heads, parts[1::2], strict=False)
        }

    def read(self, commit: str, path: str) -> bytes:
        """The content of a file in a commit of the mirror. Raises StoreError."""
        return os.fsencode(self._git("cat-file", "blob", f"{commit}:{path}"))

    def read_all(self, files: Mapping[str, str]) -> dict[str, bytes]:
        """The content of files of the mirror, given with their ids, in one look. Raises
        StoreError."""
        contents = self._objects(files.values())
        return {path: contents[id_] for path, id_ in files.items()}

    def _objects(self, ids: Iterable[str]) -> dict[str, bytes]:
        """The content of objects of the mirror by their ids. Raises StoreError."""
        wanted = list(dict.fromkeys(ids))
        if not wanted:
            return {}
        said = os.fsencode(
            self._git("cat-file", "--batch", stdin="".join(f"{i}\n" for i in wanted))
        )
        objects, at = dict[str, bytes](), 0
        for one in wanted:
            end = said.index(b"\n", at)
            size = said[at:end].rpartition(b" ")[2]
            if not size.isdigit():
                raise StoreError(f"The store has no object {one}.")
            at = end + 1 + int(size) + 1
            objects[one] = said[end + 1 : at - 1]
        return objects

    # Git

    def _reach(self, *words: str, stdin: str = "") -> str:
        env = _nobody() if self.is_here else _reaching()
        try:
            return self._git(*words, stdin=stdin, env=env)
        except StoreError as error:
            path = shlex.quote(self._path)
            if isinstance(error.__cause__, LockedError):
                self._unlock(error.__cause__.file)
                return self._git(*words, stdin=stdin, env=env)
            absent = self.is_here and not (self.mirror / "HEAD").exists()
            if absent or any(one in error.message for one in _ABSENT):
                raise NoStoreError(
                    f"There is no git repository at {self.address}.",
                    hint=f"Make it where it is to be: git init --bare {path}",
                ) from error
            raise

    def _unlock(self, lock: str) -> None:
        """Remove the lock that a killed git left in the store or the mirror. Raises StoreError
        where it isn't known to be one, or is out of reach."""
        here = [self.mirror, *([Path(self.address)] if Path(self.address).is_absolute() else [])]
        file = Path(os.path.normpath(lock))
        if any(remove_stale(Path(os.path.realpath(place)), file) for place in here):
            self.notes.append(f"A git that was killed had left {file}; it is removed.")
            return
        raise StoreError(
            f"The store is locked: {lock} exists.",
            hint="If that stays so, a git was killed there: remove that file where the store is.",
        )

    def _check_links(self, refs: Iterable[str]) -> None:
        """Refuse links by which git would write a ref, or the log that it has of it, elsewhere: who
        may write the store may do no more than that. Raises StoreError."""
        top = Path(os.path.realpath(self.mirror))
        for path in (top / room / ref for ref in refs for room in ("", "logs")):
            if Path(os.path.realpath(path)) != path:
                raise StoreError(
                    f"There is a link in the path {path}, which git would follow.",
                    hint="A store has no links. If nobody knows of it, see who may write there.",
                )

    @property
    def _path(self) -> str:
        _, ssh, rest = self.address.partition("ssh://")
        return f"/{rest.partition('/')[2]}" if ssh else self.address.rpartition(":")[2]

    def _git(
        self,
        *words: str,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> str:
        where = folder or self.mirror
        places = {} if (where / ".git").exists() else {"GIT_DIR": str(where)}
        try:
            return git(where, *words, stdin=stdin, env={**places, **(env or {})})
        except GitError as error:
            raise StoreError(error.message, hint=error.hint) from error


def _nobody() -> dict[str, str]:
    """The variables by which a store's settings name nobody in its logs."""
    return {"GIT_COMMITTER_NAME": _NAME, "GIT_COMMITTER_EMAIL": _EMAIL}


def _reaching() -> dict[str, str]:
    """The variables with which git goes to a store: no git that stays in one has them, so that it
    fetches nothing that is missing there."""
    ssh = shlex.join(ssh_command(alive_s=10, times=3))
    return {"GIT_ALLOW_PROTOCOL": "file:ssh", "GIT_SSH_COMMAND": ssh, **_nobody()}


def whole_address(address: str) -> str:
    """The address of a store as every machine takes it. Raises StoreError for what is none."""
    if address.startswith("-"):
        raise StoreError(f"{address} is no address of a store.")
    if "://" not in address and ":" not in address.partition("/")[0]:
        return str(Path(address).expanduser().absolute())
    if "://" in address and not address.startswith("ssh://"):
        raise StoreError(
            f"The store {address} can't be used.", hint="Give a path, HOST:PATH or ssh://HOST/…"
        )
    return address


def stays_below(path: str) -> bool:
    """True if a path that somebody else has written stays below the folder that it is joined to."""
    return {"", ".", ".."}.isdisjoint(path.split("/"))


def _make_bare(place: Path) -> None:
    """Make a bare repository whose objects are kept though no branch has them, and given to other
    repositories on this machine."""
    if (place / "HEAD").exists():
        return
    try:
        git(place.parent, "init", "-q", "--bare", str(place))
        for key, value in (("gc.auto", "0"), ("uploadpack.allowAnySHA1InWant", "true")):
            git(place, "config", key, value, env={"GIT_DIR": str(place)})
    except GitError as error:
        raise StoreError(error.message, hint=error.hint) from error


def _quoted(path: str) -> bytes:
    """A path as fast-import takes it."""
    plain = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return os.fsencode(f'"{plain}"')


def _parted(line: str) -> tuple[str, str, str]:
    return line.partition("\t")

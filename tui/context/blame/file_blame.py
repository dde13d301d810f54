"""The origin of each line of a file: the one question, asked of sessions, checkpoints and git.

Nothing is written but the cache, which any of it can be made again from. Everything blocks.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from tui.context.blame import index
from tui.context.blame.commits import FileInCommit, name_before
from tui.context.blame.contents import FILE_BYTES_MAX, FileContents, LineMaps, PrunedContentError
from tui.context.blame.line_map import LineMap, Reformatted, most_alike
from tui.context.blame.line_match import matching_blocks
from tui.context.blame.orphaned_copies import OrphanedCopy, edited_meanwhile, orphaned_copies
from tui.context.blame.steps import RecordedStep, SessionSteps, seconds_of
from tui.context.blame.timeline import (
    COPY_LEFT,
    LOST,
    PERSON,
    UNRECORDED,
    StateChange,
    StoreView,
    commands_running,
    last_unrecorded,
    present,
    timeline,
)
from tui.context.blame.trace import CommittedFile, StepOrigin, Tracer, lines_of
from tui.core.dataclass import dataclass, field, replace
from tui.core.errors import HoldfastError
from tui.core.files import read_small
from tui.core.formatting import plural, size
from tui.core.git.checkout import Checkout
from tui.core.git.door import GitError
from tui.core.git.history import (
    CommittedLine,
    HeadMove,
    adding_commit,
    changed_in,
    commits_made,
    committed_lines,
    committed_text,
    former_name,
    head_moves,
    uncommitted_former_name,
    worktree_tops,
)
from tui.core.paths import Folders, shorten, workspace_slug
from tui.core.workspace import WORKTREES, checkout_of, worktree_of
from tui.session import catalog
from tui.session.catalog import unreadable_folders
from tui.session.checkpoints.entries import CheckpointError, PathEntry
from tui.session.checkpoints.store import CheckpointStore, store_of

_RENAMES_MAX: Final = 20
_COMMITS_MAX: Final = 50
"""Commits that are looked at of worktrees whose sessions are gone."""
_MISSING_MAX: Final = 200
"""Files that are missing which are compared with one that may be one of them, moved."""
_GROWN: Final = 3
"""A file that was moved is at most so many times as large as before, or as small."""
_HEAD_S: Final = 1.0
"""Git's times are whole seconds."""


class LineOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The origin of lines. `makers` are the steps that may have written them, by their numbers in
    `FileBlame.steps`: exactly one where it is certain; `why` says what is missing otherwise.
    `formatters` only wrote them in another way."""

    makers: tuple[int, ...]
    why: str = ""
    formatters: tuple[int, ...] = ()


class FileBlame(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file, line by line. `of` has for each line the number of its origin in `origins`, and
    `committed` that of its commit in `commits`, -1 for none: not committed yet, or outside git.

    `name` is its path in the work tree; `names` are the ones that it had before, absolute, the
    newest first; `notes` say what couldn't be read.
    """

    path: str
    name: str
    of: tuple[int, ...]
    origins: tuple[LineOrigin, ...]
    steps: tuple[RecordedStep, ...]
    committed: tuple[int, ...] = ()
    commits: tuple[CommittedLine, ...] = ()
    names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def makers(self, line: int) -> list[RecordedStep]:
        """The steps that may have written a line, counted from 0."""
        return [self.steps[n] for n in self.origins[self.of[line]].makers]

    def certain(self, line: int) -> bool:
        makers = self.makers(line)
        return len(makers) == 1 and makers[0].kind != "lost"

    def commit(self, line: int) -> CommittedLine | None:
        """The commit that git has the line from."""
        number = self.committed[line] if self.committed else -1
        return self.commits[number] if number >= 0 else None

    def commit_of(self, lines: Iterable[int]) -> CommittedLine | None:
        """The commit that git has all these lines from; None where they differ."""
        commits = {self.committed[line] if self.committed else -1 for line in lines}
        number = commits.pop() if len(commits) == 1 else -1
        return self.commits[number] if number >= 0 else None


def blame_file(
    path: Path, folders: Folders, progress: catalog.ReadProgress = lambda _done, _of: None
) -> tuple[FileBlame, list[str]]:
    """Tell where each line of a file comes from; with it, the lines. Raises HoldfastError where the
    file can't be read, is too large, or is no text."""
    path = Path(os.path.realpath(path))
    data, changed = _read(path)
    lines = lines_of(data)
    asking = _Asking(path, folders, progress)
    asked = asking.key(data)
    kept = index.known_answer(folders.cache, str(path))
    with suppress(msgspec.MsgspecError):
        if kept is not None and kept.asked == asked:
            return msgspec.json.decode(kept.blame, type=FileBlame), lines
    found, maps = asking.answer(data, lines, changed, kept.maps if kept else b"")
    with suppress(UnicodeEncodeError):  # a name, or git's words, with odd bytes
        answer = index.CachedAnswer(asked, msgspec.json.encode(found), maps)
        index.keep_answer(folders.cache, str(path), answer)
    return found, lines


def _read(path: Path) -> tuple[bytes, float]:
    try:
        state = path.stat()
        if state.st_size > FILE_BYTES_MAX:
            raise HoldfastError(
                f"{path.name} is too large to follow line by line: {size(state.st_size)}.",
                hint=f"The limit is {size(FILE_BYTES_MAX)}.",
            )
        data, _ = read_small(path, limit=FILE_BYTES_MAX)
    except FileNotFoundError:
        raise HoldfastError(f"There is no file {path}.", hint="Check the path.") from None
    except OSError as error:
        raise HoldfastError(f"Can't read {path}: {error.strerror or error}.") from error
    if b"\0" in data[:8000]:
        raise HoldfastError(f"{path.name} is a binary file: it has no lines to ask about.")
    return data, state.st_mtime


@dataclass(slots=True)
class _Place:
    """The file in one work tree: its path there, and the checkpoints that hold it."""

    path: Path
    checkout: Checkout | None
    views: list[tuple[StoreView, CheckpointStore]] = field(
        default_factory=list[tuple[StoreView, CheckpointStore]]
    )
    moves: list[HeadMove] = field(default_factory=list[HeadMove])
    """Where HEAD went in this work tree, but for what was only committed."""
    made: frozenset[str] = frozenset()
    """The commits that were made in this work tree."""
    commit: FileInCommit | None = None
    """The file in a commit, where this is all that is left of the work tree."""


class _Asking:
    """One question about a file, with its sources."""

    def __init__(self, path: Path, folders: Folders, progress: catalog.ReadProgress) -> None:
        self._path = path
        self._folders = folders
        self._progress = progress
        self._notes: list[str] = []
        self._checkout = _checkout(path.parent)
        self._files = self._session_files(path)
        self._slugs = {file.stem for file in folders.checkpoints.glob("*.sqlite3")}
        self._stores: dict[str, CheckpointStore] = {}
        self._contents = FileContents()
        self._maps = LineMaps(self._contents, b"")
        self._sessions: list[SessionSteps] = []
        self._names: list[str] = []
        self._places: dict[str, _Place] = {}
        self._orphaned: list[OrphanedCopy] = []
        self._unrecorded: Mapping[str, int] = {}
        self._unseen_move: Path | None = None
        """The file before a move that neither git nor a checkpoint has seen yet."""

    def key(self, data: bytes) -> bytes:
        """A hash of all that the answer is made of, as far as it is seen from outside."""
        parts: list[object] = [sha256(data).hexdigest(), self._files, self._notes]
        if self._checkout is not None:
            place = self._checkout.git_dir
            parts += [self._checkout.commit(), _state(place / "HEAD"), _state(place / "logs/HEAD")]
        parts += [
            _state(path)
            for path in sorted(self._folders.checkpoints.glob("*.sqlite3*"))
            if not path.name.endswith("-shm")
        ]
        return sha256(repr(parts).encode("utf-8", "surrogatepass")).digest()

    def answer(
        self, data: bytes, lines: Sequence[str], changed: float, maps: bytes
    ) -> tuple[FileBlame, bytes]:
        """The answer, and the maps that it was made with; `maps` are those of an earlier one."""
        try:
            found = self._answer(data, lines, changed, maps)
            return found, self._maps.encoded()
        finally:
            for store in self._stores.values():
                store.close()

    def _answer(self, data: bytes, lines: Sequence[str], changed: float, maps: bytes) -> FileBlame:
        self._read_sessions()
        digest = self._contents.add(data)
        here = _Place(self._path, self._checkout)
        self._find_checkpoints(here)
        running = [
            one
            for root in {"", *(view.root for view, _ in here.views)}
            for one in commands_running(here.path, self._sessions, root)
        ]
        if not any(view.history.states for view, _ in here.views):
            self._unseen_move = self._moved_since(here, data, lines)
        gone = last_unrecorded((view for view, _ in here.views), self._sessions)
        found, seen = self._states(here), self._seen(here)
        now = present(found, digest, changed, seen=seen, gone=gone, running=running)
        roots = [self._path.parent, *(Path(one.root) for one in self._sessions)]
        self._orphaned = orphaned_copies(roots, self._contents.copies)
        changes = {str(self._path): self._doubted(self._chain(here, now))}
        places = [here]
        for path in self._elsewhere():
            place = _Place(path, _checkout(path.parent))
            self._find_checkpoints(place)
            places.append(place)
            changes[str(path)] = self._doubted(self._chain(place, self._states(place)))
        self._places = {str(place.path): place for place in places}
        self._unrecorded = self._unrecorded_commits(changes)
        for place, change in list(self._committed_elsewhere(changes)):
            self._places[str(place.path)] = place
            changes[str(place.path)] = [change]
        self._maps = LineMaps(self._contents, maps)
        try:
            tracer = Tracer(self)
            tracer.run(changes)
        except PrunedContentError:
            self._maps = LineMaps(self._contents, b"")
            tracer = Tracer(self)
            tracer.run(changes)
        state = tracer.now[str(self._path)]
        return self._blame(state.origins, lines)

    def _seen(self, place: _Place) -> float:
        """The time of the last checkpoint that would hold the file: git has it, at least."""
        if not self._committed_name and self._unseen_move is None:
            return 0.0
        return max((view.history.last for view, _ in place.views), default=0.0)

    def lines(self, digest: str) -> Sequence[str] | None:
        """See `trace.BlameSources`."""
        return self._contents.lines(digest)

    def line_map(self, old: str, new: str, reformatted: Reformatted) -> LineMap | None:
        """See `trace.BlameSources`."""
        return self._maps.between(old, new, reformatted)

    def edit_map(self, old: str, new: str) -> LineMap | None:
        """See `trace.BlameSources`."""
        return self._maps.of_edit(old, new)

    def words(self, step: RecordedStep) -> str:
        """See `trace.BlameSources`."""
        return self._contents.words(step)

    def merged(self, place: str, since: float, until: float) -> CommittedFile | None:
        """See `trace.BlameSources`."""
        return self._merged(self._places[place], since, until)

    def _session_files(self, path: Path) -> list[catalog.SessionFileState]:
        """The files of all sessions of the folders around the file, and of their sub-agents."""
        tops = [path]
        if self._checkout is not None:
            tops += [
                Path(os.path.realpath(top)) / path.relative_to(self._checkout.top)
                for top in _tops(self._checkout)
                if path.is_relative_to(self._checkout.top)
            ]
        above = {folder for top in tops for folder in top.parents}
        closed = {one for folder in above for one in unreadable_folders(self._folders, folder)}
        self._notes += [
            f"{shorten(one)} can't be read: what its sessions wrote counts as others'."
            for one in sorted(closed)
        ]
        if self._folders.sessions in closed:
            return []
        around = {self._folders.sessions_of(folder) for folder in above} - closed
        places = {folder.name for folder in around if folder.is_dir()}
        found: list[catalog.SessionFileState] = []
        for top in tops:
            for folder in top.parents:
                name = self._folders.sessions_of(folder).name
                if name in places:
                    places.discard(name)
                    found += catalog.scan(self._folders, folder)
                    found += catalog.scan_children(self._folders, folder)
        return sorted(found)

    def _read_sessions(self) -> None:
        lost = 0
        for file, steps in index.steps_in(self._folders.cache, self._files, self._progress):
            if steps is None:
                lost += 1
                continue
            self._sessions.append(
                msgspec.structs.replace(steps, root=os.path.realpath(steps.root or "/"))
            )
            self._contents.known(file, steps)
        self._sessions = list(_with_sub_agents(self._sessions))
        damaged = [steps.id for steps in self._sessions if steps.lost]
        if lost:
            self._notes.append(f"{plural(lost, 'session')} can't be read.")
        if damaged:
            some = ", ".join(damaged[:5]) + (", …" if len(damaged) > 5 else "")
            self._notes.append(f"Damaged sessions, which may lack steps: {some}.")

    def _elsewhere(self) -> list[Path]:
        """The file in the other work trees, the gone ones too, under each of its names."""
        own = worktree_of(self._path)
        tops = [
            *(map(Path, _tops(self._checkout)) if self._checkout else ()),
            *filter(None, (worktree_of(Path(one.root)) for one in self._sessions)),
            *self._gone_worktrees(),
        ]
        main = own.parents[2] if own else None
        ours = (top.parents[2] for top in tops if worktree_of(top))
        top = own or (self._checkout.top if self._checkout else next(ours, None))
        if top is None:
            return []
        below = [
            path.relative_to(top)
            for path in (self._path, *map(Path, self._names))
            if path.is_relative_to(top)
        ]
        every = dict.fromkeys(
            Path(os.path.realpath(one)) / name
            for one in (*tops, *filter(None, [main]))
            for name in below
            if Path(os.path.realpath(one)) != top
        )
        return list(every)

    def _gone_worktrees(self) -> list[Path]:
        """The worktrees of which at least the checkpoints are left, by the names of their stores:
        the sessions may be gone."""
        top = worktree_of(self._path) or (self._checkout and self._checkout.top)
        if not top:
            return []
        main = checkout_of(Path(os.path.realpath(top)))
        named = ((slug, main.joinpath(*WORKTREES, slug.rpartition("-")[0])) for slug in self._slugs)
        return sorted(top for slug, top in named if workspace_slug(top) == slug)

    def _unrecorded_commits(self, changes: Mapping[str, Sequence[StateChange]]) -> dict[str, int]:
        """The commits that were made in this repository, in worktrees of which no state is known,
        and when: their sessions are gone."""
        if self._checkout is None:
            return {}
        recorded = frozenset[str]().union(
            *(
                place.made
                for path, place in self._places.items()
                if changes[path] or not worktree_of(place.path)
            )
        )
        with suppress(GitError):
            made = commits_made(self._checkout)
            return {commit: time for commit, time in made.items() if commit not in recorded}
        return {}

    def _in_commit(self, place: _Place, commit: str, name: str) -> FileInCommit | None:
        """A file of a commit, for one of its work trees. Raises GitError."""
        checkout = place.checkout or self._checkout
        text = checkout and committed_text(checkout, commit, name)
        if checkout is None or text is None:
            return None
        digest = self._contents.add(text.encode("utf-8", "surrogateescape"))
        return FileInCommit(
            checkout, commit, name, digest, made=place.made, unrecorded=self._unrecorded
        )

    def _committed_elsewhere(
        self, changes: Mapping[str, Sequence[StateChange]]
    ) -> Iterator[tuple[_Place, StateChange]]:
        """The file as such commits have it, each as a work tree of its own: what is squashed leaves
        no other trace."""
        checkout, top = self._checkout, worktree_of(self._path)
        if checkout is None or not self._unrecorded:
            return
        top = top or checkout.top
        names = [
            str(path.relative_to(top))
            for path in (self._path, *map(Path, self._names))
            if path.is_relative_to(top)
        ]
        known = {change.digest for found in changes.values() for change in found}
        with suppress(GitError):
            for commit, name in changed_in(checkout, self._unrecorded, names)[-_COMMITS_MAX:]:
                place = _Place(checkout_of(top).joinpath(*WORKTREES, commit, name), None)
                place.commit = self._in_commit(place, commit, name)
                if place.commit and place.commit.digest not in known:
                    time = float(self._unrecorded[commit])
                    digest, makers = place.commit.digest, (LOST, PERSON)
                    yield place, StateChange(digest, makers, time, why=UNRECORDED, first=True)

    def _find_checkpoints(self, place: _Place) -> None:
        """Find the checkpoints that hold the file, of sessions that are gone as well, and where
        HEAD went in its work tree."""
        for root in map(str, place.path.parents):
            if workspace_slug(Path(root)) not in self._slugs:
                continue
            store = self._store(root)
            with suppress(CheckpointError):
                history = store.history(str(place.path.relative_to(root)))
                place.views.append((StoreView(root, history), store))
        if place.checkout is not None:
            with suppress(GitError):
                moves = head_moves(place.checkout)
                place.moves = [move for move in moves if not move.is_commit]
                place.made = frozenset(move.commit for move in moves if move.made_here)

    def _store(self, root: str) -> CheckpointStore:
        if root not in self._stores:
            self._stores[root] = store_of(self._folders, Path(root))
            self._contents.stores.append(self._stores[root])
        return self._stores[root]

    def _chain(self, place: _Place, found: list[StateChange]) -> list[StateChange]:
        """The states of the file in one work tree, also under the names that it had before."""
        path, chain, until = place.path, list[StateChange](), float("inf")
        for _ in range(_RENAMES_MAX):
            renamed = self._renamed(path, found)
            if renamed is None:
                break
            at, old = renamed
            if found:
                chain = [replace(found[at], first=False), *found[at + 1 :], *chain]
                until = found[at].time - 1e-6
            if place.path == self._path:
                self._names.append(str(old))
            path = old
            inner = _Place(old, place.checkout)
            self._find_checkpoints(inner)
            found = self._states(inner, until)
            while found and not found[-1].digest:
                found.pop()
        return [*found, *chain]

    def _doubted(self, found: Sequence[StateChange]) -> list[StateChange]:
        """The states of the file; those of the person that a session which is gone may have made
        are in doubt."""
        made: list[StateChange] = []
        for before, change in zip([None, *found], found, strict=False):
            doubted = change
            if before is not None and change.makers == (PERSON,) and self._orphaned:
                texts = [self._contents.lines(one.digest) or () for one in (before, change)]
                if edited_meanwhile(self._orphaned, change.since, change.time, texts):
                    doubted = replace(change, makers=(LOST, PERSON), why=COPY_LEFT)
            made.append(doubted)
        return made

    def _states(self, place: _Place, until: float = float("inf")) -> list[StateChange]:
        views = [view for view, _ in place.views]
        return timeline(place.path, self._sessions, views, self._contents.rewritten, until)

    def _renamed(self, path: Path, found: Sequence[StateChange]) -> tuple[int, Path] | None:
        """The last state that begins with a rename, and the path from before; None without one.
        A name that no state is known under may have been on the way to another."""
        if not found:
            old = self._former(path)
            return None if old is None else (0, old)
        for at in range(len(found) - 1, -1, -1):
            change = found[at]
            if not change.digest or (at and found[at - 1].digest):
                continue
            if change.moved_from:
                return at, Path(change.moved_from)
            if change.makers[0].kind == "before" and len(change.makers) == 1:
                return None
            old = self._gone_with(path, change) or self._former(path)
            if old is not None:
                return at, old
        return None

    def _former(self, path: Path) -> Path | None:
        """The file before git's history gave it another name."""
        checkout = self._checkout
        if checkout is not None and path.is_relative_to(checkout.top):
            with suppress(GitError):
                name = str(path.relative_to(checkout.top))
                moved = name == self._name() != self._committed_name
                old = self._committed_name if moved else former_name(checkout, name)
                if not old and (commit := adding_commit(checkout, name)):
                    old = name_before(checkout, commit, name)
                if old:
                    return checkout.top / old
        return self._unseen_move if path == self._path else None

    def _moved_since(self, here: _Place, data: bytes, lines: Sequence[str]) -> Path | None:
        """The file that the newest checkpoint has, that is missing now, and that this one was made
        of: one with the same content, the same name first, else the one that is most alike."""
        for view, store in here.views:
            gone: list[tuple[Path, PathEntry]] = []
            with suppress(CheckpointError):
                gone = [
                    (path, entry)
                    for name, entry in store.newest_files()
                    if entry.digest is not None
                    and entry.size <= len(data) * _GROWN
                    and len(data) <= entry.size * _GROWN
                    and not os.path.lexists(path := Path(view.root) / name)
                ]
            gone.sort(key=lambda one: (one[0].name != here.path.name, one[0]))
            digests = {str(path): entry.digest.hex() for path, entry in gone if entry.digest}
            digest = sha256(data).hexdigest()
            same = (path for path, one in digests.items() if one == digest)
            texts = (
                (path, self._contents.lines(one) or ())
                for path, one in list(digests.items())[:_MISSING_MAX]
            )
            if old := next(same, "") or most_alike(lines, texts):
                return Path(old)
        return None

    def _gone_with(self, path: Path, change: StateChange) -> Path | None:
        """The file that was taken away with the same checkpoint, and that this one was made of."""
        lines = self._contents.lines(change.digest)
        if not lines:
            return None
        for root, store in self._stores.items():
            if not path.is_relative_to(root):
                continue
            with suppress(CheckpointError):
                history = store.history(str(path.relative_to(root)))
                numbers = [
                    n
                    for n, entry in history.states.items()
                    if entry is not None
                    and entry.digest is not None
                    and abs(history.times.get(n, 0.0) - change.time) < 1e-3
                ]
                gone = {
                    name: entry.digest.hex()
                    for n in numbers
                    for name, entry in store.gone_with(n)
                    if entry.digest is not None
                }
                same = (name for name, digest in gone.items() if digest == change.digest)
                old = next(same, "") or most_alike(
                    lines,
                    ((name, self._contents.lines(digest) or ()) for name, digest in gone.items()),
                )
                if old:
                    return Path(root) / old
        return None

    def _merged(self, place: _Place, since: float, until: float) -> CommittedFile | None:
        """The file as git left it, if HEAD went elsewhere between two moments."""
        if place.checkout is None or not since:
            return place.commit
        moves = place.moves
        at = bisect_left(moves, since - _HEAD_S, key=lambda move: move.time)
        after = [move for move in moves[at:] if move.time <= until + _HEAD_S]
        if not after:
            return None
        names = [place.path, *map(Path, self._names)]
        for path in names:
            if path.is_relative_to(place.checkout.top):
                name = str(path.relative_to(place.checkout.top))
                with suppress(GitError):
                    if file := self._in_commit(place, after[-1].commit, name):
                        return file
        return None

    def _blame(self, origins: Sequence[StepOrigin], lines: Sequence[str]) -> FileBlame:
        steps: dict[RecordedStep, int] = {}
        numbers: dict[StepOrigin, int] = {}
        of = tuple(numbers.setdefault(origin, len(numbers)) for origin in origins)

        def number(step: RecordedStep) -> int:
            return steps.setdefault(step, len(steps))

        made = tuple(
            LineOrigin(
                tuple(map(number, origin.makers)), origin.why, tuple(map(number, origin.formatters))
            )
            for origin in numbers
        )
        commits: dict[CommittedLine, int] = {}
        committed = tuple(
            -1 if one is None else commits.setdefault(one, len(commits))
            for one in self._commits(lines)
        )
        told = tuple(commits)
        names, notes = tuple(self._names), tuple(self._notes)
        return FileBlame(
            str(self._path), self._name(), of, made, tuple(steps), committed, told, names, notes
        )

    def _name(self) -> str:
        top = self._checkout.top if self._checkout else self._path.parent
        return str(self._path.relative_to(top)) if self._path.is_relative_to(top) else ""

    @cached_property
    def _committed_name(self) -> str:
        """The file's path in HEAD, which it may have left by a rename since; "" for none."""
        checkout, name = self._checkout, self._name()
        if checkout is None or not name:
            return ""
        with suppress(GitError):
            if committed_text(checkout, "HEAD", name) is not None:
                return name
            return uncommitted_former_name(checkout, name)
        return ""

    def _commits(self, lines: Sequence[str]) -> list[CommittedLine | None]:
        """The commit of each line that HEAD has, by git."""
        found: list[CommittedLine | None] = [None] * len(lines)
        checkout, name = self._checkout, self._committed_name
        if checkout is None or not name:
            return found
        try:
            text = committed_text(checkout, "HEAD", name)
            if text is None:
                return found
            committed = lines_of(text.encode("utf-8", "surrogateescape"))
            by_git = committed_lines(checkout, "HEAD", name)
        except GitError as error:
            self._notes.append(f"Git can't tell the commits: {error.message}")
            return found
        for i, j, count in matching_blocks(committed, lines):
            for k in range(count):
                if i + k < len(by_git):
                    found[j + k] = by_git[i + k][0]
        return found


def _with_sub_agents(sessions: Sequence[SessionSteps]) -> Iterator[SessionSteps]:
    """Sessions with the calls of their sub-agents as these have recorded them: a parent's
    checkpoints and file changes know no more than their ids, which may be those of others, too."""
    parents = {one.id: one.parent for one in sessions}
    known: dict[tuple[str, str], list[RecordedStep]] = {}
    for one in sessions:
        above = [one.id]
        while (parent := parents.get(above[-1])) and parent not in above:
            above.append(parent)
        for step in one.steps:
            if step.call and step.tool:
                for id_ in above:
                    known.setdefault((id_, step.call), []).append(step)

    def recorded(step: RecordedStep, session: SessionSteps, until: float) -> RecordedStep:
        ways = [
            *known.get((step.session, step.call), ()),
            *known.get((session.origin, step.call), ()),
        ]
        before = [one for one in ways if seconds_of(one.time) <= until]
        return max(before, key=lambda one: one.time, default=step)

    for one in sessions:
        ends = {taken.step: taken.time for taken in one.checkpoints if taken.by == "call"}
        ends |= {write.step: write.time for write in one.writes}
        steps = [
            step if step.tool or not step.call else recorded(step, one, ends.get(n, float("inf")))
            for n, step in enumerate(one.steps)
        ]
        yield msgspec.structs.replace(one, steps=tuple(steps))


def _checkout(folder: Path) -> Checkout | None:
    with suppress(HoldfastError):
        return Checkout.of(folder) if folder.is_dir() else None
    return None


def _tops(checkout: Checkout) -> list[str]:
    with suppress(GitError):
        return worktree_tops(checkout)
    return []


def _state(path: Path) -> tuple[int, int]:
    try:
        state = path.stat()
    except OSError:
        return 0, 0
    return state.st_mtime_ns, state.st_size

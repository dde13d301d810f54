"""The traces of commands in a workspace: files that tools run later, and what is in git's folders.

Their state is known before the first command that may write. Afterwards what git would run is
undone, and what else changed is reported.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui.core.dataclass import dataclass, field, replace
from tui.core.workspace import WORKTREES, Workspace
from tui.permissions.sandbox.walls import Walls

if TYPE_CHECKING:
    from tui.permissions.sandbox.folder_lists import FolderLists
    from tui.permissions.sandbox.git_copies import GitCopies, PendingSettings
    from tui.permissions.sandbox.git_quarantine import GitBefore
    from tui.permissions.sandbox.git_walls import (
        CloneAccess,
        GitAnswers,
        GitPlaces,
        IndexAnswer,
    )
    from tui.permissions.sandbox.inner_clones import StoppedClones

log = logging.getLogger(__name__)

_OWN_FILES = ("config.toml", "hooks.json", "plans", "run")
"""Files in `.holdfast/` that decide about later calls."""
_STATE = "before"
"""The file in a kept command's folder with the earlier state of what its walls do not protect."""


class Around(Protocol):
    """The surroundings of the sandbox, as they are now."""

    workspace: Workspace
    environment: Mapping[str, str]
    cache: Path
    folder: Path


@dataclass(slots=True)
class CommandTraces:
    """The traces of one session's commands. What is moved away is kept beside the cache."""

    _of: Around
    _ran_later: Mapping[Path, tuple[int, int]] | None = None
    _before: GitBefore | None = None
    """The state of git's folders before the commands that may write."""
    _since_ns: int = 0
    """The time at which the first of them began."""
    _lists: FolderLists | None = None
    _new_clones: set[Path] = field(default_factory=set[Path])
    """Clones that commands made since they were last reported, and that are in the index."""
    _done: list[str] = field(default_factory=list[str])
    """Lines about what was done before a command, to be reported after it."""
    _unsaid: list[str] = field(default_factory=list[str])
    _writers: list[Path] = field(default_factory=list[Path])
    """The folders of commands that may write, and may still run."""
    _outside: dict[Path, frozenset[Path]] = field(default_factory=dict[Path, "frozenset[Path]"])
    """Folders outside a root that git had when the session began: no command can add to them."""
    _copies: list[GitCopies] = field(default_factory=list["GitCopies"])
    _pending: list[PendingSettings] = field(default_factory=list["PendingSettings"])
    """Settings of git that commands have made and that need a yes of the person."""
    _places: dict[Path, GitPlaces] = field(default_factory=dict[Path, "GitPlaces"])
    _git_answers: dict[Path, GitAnswers] = field(default_factory=dict[Path, "GitAnswers"])
    _index_answers: dict[Path, IndexAnswer] = field(default_factory=dict[Path, "IndexAnswer"])

    @property
    def _roots(self) -> tuple[Path, ...]:
        return self._of.workspace.roots

    async def begin(self) -> None:
        """Record the state before the first command that may write: what it changes can only be
        told by comparison."""
        if self._ran_later is None:
            self._since_ns = time.time_ns()
            await asyncio.to_thread(self._note_before)

    def add(self, folder: Path) -> None:
        """Note that a command may write, by the folder in which it is kept."""
        self._writers.append(folder)

    def take_over(self, folder: Path) -> None:
        """Adopt a command that an earlier run of the program left: the state from before it counts,
        and it may still write. Blocks."""
        from tui.permissions.sandbox.git_quarantine import GitBefore  # noqa: PLC0415 - on demand

        with suppress(OSError, LookupError, ValueError, TypeError, AttributeError):
            state = json.loads((folder / _STATE).read_bytes())
            before = GitBefore.from_json(state["git"])
            self._before = before | self._before if self._before else before
            self._since_ns = min(self._since_ns or state["since"], state["since"])
            later = {Path(path): (times[0], times[1]) for path, times in state["later"].items()}
            self._ran_later = {**(self._ran_later or self._file_states()), **later}
            self._writers.append(folder)

    def save(self, folder: Path) -> None:
        """Save what `tidy` and `changed_files` need for the next run of the program, in a kept
        command's folder. Blocks."""
        from tui.permissions.sandbox.git_quarantine import GitBefore  # noqa: PLC0415 - on demand

        git = (self._before or GitBefore()).to_json()
        later = {str(path): times for path, times in (self._ran_later or {}).items()}
        with suppress(OSError):
            state = json.dumps({"git": git, "later": later, "since": self._since_ns})
            (folder / _STATE).write_bytes(state.encode())

    async def changed_files(self) -> list[Path]:
        """Return the files that commands changed since the last call, of those that tools run
        later."""
        before, self._ran_later = self._ran_later, None
        if before is None:
            return []
        from tui.permissions.sandbox import run_later  # noqa: PLC0415 - only after commands

        after, filled = await asyncio.to_thread(self._changed)
        self._new_clones.clear()
        if self.writing():
            self._ran_later = after
        paths = {*run_later.changed(before, after), *filled}
        return sorted(path for path in paths if not self._is_own_worktree(path, before))

    def _is_own_worktree(self, link: Path, before: Collection[Path]) -> bool:
        """True if the `.git` belongs to a worktree of ours, new and not made by a command: once the
        folder for worktrees exists, no command can put one into it."""
        from tui.core.git.in_place import MADE  # noqa: PLC0415 - on demand

        place = link.parent.parent
        if link in before or place.parts[-2:] != WORKTREES:
            return False
        walled = any(path.parent.parent == place for path in before)
        return link.name == ".git" and (walled or link.parent in MADE)

    def _changed(self) -> tuple[dict[Path, tuple[int, int]], list[Path]]:
        from tui.permissions.sandbox import run_later  # noqa: PLC0415 - on demand

        after = self._file_states()
        return after, run_later.changed_in_filled(self._roots, self._since_ns, self._listing())

    def _note_before(self) -> None:
        """Record the files that tools run later, before the first command that may change them.
        Remains of a clone left by earlier commands are moved away: git there would act on the
        repository around it."""
        from tui.permissions.sandbox.git_quarantine import old_remains, remains  # noqa: PLC0415

        self._ran_later = self._file_states()
        links = [path for path in self._ran_later if path.name == ".git"]
        old = old_remains((path for path in links if path.parent not in self._roots), self._roots)
        self._done += [f"{one}" for one in remains(old, self._quarantine)]

    def _file_states(self) -> dict[Path, tuple[int, int]]:
        from tui.permissions.sandbox import run_later  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.git_walls import (  # noqa: PLC0415 - on demand
            IndexAnswer,
            inner_repositories,
        )

        env = self._of.environment
        inner = [
            one
            for root in self._roots
            for one in inner_repositories(
                root, env, self._index_answers.setdefault(root, IndexAnswer())
            )
        ]
        return run_later.file_states(self._roots, inner, self._listing())

    def _listing(self) -> FolderLists:
        from tui.permissions.sandbox.run_later import folder_lists  # noqa: PLC0415 - on demand

        self._lists = self._lists or folder_lists()
        return self._lists

    @property
    def _quarantine(self) -> Path:
        return self._of.cache.parent / "quarantine"

    def writing(self) -> bool:
        """True if a command that may write still runs."""
        from tui.keeper.command import lives  # noqa: PLC0415 - on demand

        self._writers = [folder for folder in self._writers if lives(folder)]
        return bool(self._writers)

    async def tidy(self) -> list[str]:
        """Undo what commands put where git would run it; return what was done, in lines.

        As long as one of them runs, the state from before it counts.
        """
        before = self._before
        if not self.writing():
            self._before = None
        lines, self._done = self._done, []
        if before:
            moved = await asyncio.to_thread(before.settle, self._quarantine, self._listing())
            lines += [str(one) for one in moved]
            self._before = self._before and self._before.without(moved)
            if before.changed_indexes:
                lines += await asyncio.to_thread(self._settle_new_clones)
        self._unsaid += lines
        return lines + (await asyncio.to_thread(self._settle_copies) if self._copies else [])

    def _settle_copies(self) -> list[str]:
        """Put in place what commands have set in copies of git's settings. Blocks."""
        lines: list[str] = []
        for copies in self._copies:
            done, pending = copies.settle()
            lines += done
            self._pending += pending
            if not self._writers:
                copies.remove()
        if not self._writers:
            self._copies = []
        return lines

    async def close(self) -> None:
        """Tidy for the last time, also behind commands that continue."""
        self._writers = []
        for line in await self.tidy():
            log.warning("%s", line)

    def take_unsaid(self) -> list[str]:
        """Return what `tidy` moved away since the last call, and the settings that nobody was asked
        about: the person is told once a turn."""
        lines, self._unsaid = self._unsaid, []
        return [*lines, *(f"not applied: {one}" for one in self.take_pending())]

    def take_pending(self) -> list[PendingSettings]:
        """Return the settings of git that need a yes of the person, once."""
        pending, self._pending = self._pending, []
        return pending

    def _settle_new_clones(self) -> list[str]:
        """Move the settings of clones away that commands made, if git runs them when it reads the
        repository around: that applies to those in its index. Blocks."""
        from tui.permissions.sandbox.git_quarantine import move_away  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.git_settings import programs_of_new  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.git_walls import (  # noqa: PLC0415 - on demand
            inner_repositories,
            settings_by_file,
        )

        roots, known = self._roots, {path.parent for path in self._ran_later or ()}
        inner = [one for root in roots for one in inner_repositories(root, self._of.environment)]
        lines: list[str] = []
        for place in inner:
            if place in known or not os.path.lexists(place / ".git"):
                continue
            self._new_clones.add(place)
            for file, settings in settings_by_file(place, self._of.environment, roots).items():
                if programs := programs_of_new(settings):
                    why = f"git status would run {', '.join(programs)}"
                    lines += map(str, move_away(file, roots, self._quarantine, why))
        return lines

    def stopped_clones(
        self, command: str, cwd: Path, output: str, *, failed: bool = True
    ) -> StoppedClones | None:
        """The clones at whose walls a command was stopped. Blocks."""
        from tui.permissions.sandbox.inner_clones import stopped_at  # noqa: PLC0415 - on demand

        clones = [path for places in self._places.values() for path in places.clones]
        return stopped_at(command, cwd, output, clones, failed=failed) if clones else None

    def _of_session(self, root: Path, places: GitPlaces) -> GitPlaces:
        """Remove the folders elsewhere that git names only since the session began."""
        folders = (*places.folders, *places.objects)
        outside = frozenset(path for path in folders if not path.is_relative_to(root))
        known = self._outside.setdefault(root, outside)
        if outside <= known:
            return places
        new = outside - known
        return replace(
            places,
            folders=tuple(path for path in places.folders if path not in new),
            objects=tuple(path for path in places.objects if path not in new),
            roots=tuple(path for path in places.roots if path not in new),
            written=tuple(path for path in places.written if path not in new),
        )

    def _clones(self) -> list[Path]:
        """The folders with a `.git` of their own, as far as they are known."""
        folders = [path.parent for path in self._ran_later or () if path.name == ".git"]
        return [*folders, *self._new_clones.difference(folders)]

    def access(self, argv: Sequence[str], cwd: Path, asked: StoppedClones | None) -> CloneAccess:
        """The access of a command to the clones in the workspace: git that works in one writes it,
        and so may what a person was asked about."""
        from tui.permissions.sandbox.git_walls import CloneAccess  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.inner_clones import (  # noqa: PLC0415 - on demand
            handled_by_git,
            worked_in,
        )

        clones = [path for path in self._clones() if path not in self._roots]
        line = argv[2] if len(argv) == 3 and argv[1] == "-c" else ""
        opened = worked_in(line, cwd, clones) if clones else frozenset[Path]()
        given = frozenset(asked.clones if asked else ())
        handled = handled_by_git(line, cwd, clones)
        gone = (given if asked and asked.deletes else frozenset[Path]()) | handled.clones
        return CloneAccess((opened | given) - gone, gone, handled.worktrees)

    def sets_git(self, argv: Sequence[str], cwd: Path) -> str:
        """Return the line of a command that runs git, and nothing that would copy or move a link as
        such; "" for any other."""
        from tui.permissions.sandbox.inner_clones import runs_git  # noqa: PLC0415 - on demand

        line = argv[2] if len(argv) == 3 and argv[1] == "-c" else ""
        return line if line and runs_git(line, cwd) else ""

    def with_git(
        self,
        walls: Walls,
        access: CloneAccess | None = None,
        *,
        sets: str = "",
        writes: bool,
    ) -> Walls:
        """Add what git needs to the walls, and record the state of what a command with an access
        may write. `sets` is the line of one that may set what git protects, in copies. A command
        that only reads needs just git's folders, and they stay the same.
        Blocks."""
        from tui.permissions.sandbox.git_quarantine import GitBefore  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.git_walls import (  # noqa: PLC0415 - on demand
            GitAnswers,
            git_places,
            with_git,
        )

        for root in self._roots:
            below = [path for path in self._clones() if access and path.is_relative_to(root)]
            if writes or root not in self._places:
                known = self._git_answers.setdefault(root, GitAnswers())
                places = git_places(root, self._of.environment, below, known, access)
                self._places[root] = self._of_session(root, places)
            places = self._places[root]
            if sets:
                from tui.permissions.sandbox.git_copies import GitCopies  # noqa: PLC0415 - on demand

                alone = not self.writing()
                made = GitCopies.of(places, self._of.folder, root, sets, alone=alone)
                self._copies.append(made)
                walls = replace(walls, copies=(*walls.copies, *made.mounts))
            walls = with_git(walls, places)
            if access is not None:
                now = GitBefore.of(places, self._listing())
                self._before = self._before | now if self._before else now
        own = [root / ".holdfast" / name for root in self._roots for name in _OWN_FILES]
        own.append(Path(sys.prefix))
        return replace(walls, protected=(*walls.protected, *own))

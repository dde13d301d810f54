"""The sandbox of one session: chooses its engine once, builds its walls, starts commands in it.

Nothing here decides who may do what: `permissions.policy` picks a command's level among those that
the engine enforces.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core.errors import HoldfastError
from tui.core.git.in_place import IN_PLACE, MADE
from tui.core.paths import Folders, workspace_slug
from tui.core.workspace import WORKTREES, Workspace
from tui.permissions.sandbox.walls import Level, Plan, Walls

if TYPE_CHECKING:
    from tui.core.config import SandboxSettings
    from tui.keeper.command import Keep, Starter
    from tui.keeper.parent import MonitorReport, WarmParent
    from tui.permissions.named_needs import NamedNeeds
    from tui.permissions.sandbox.engine import Confined, Engine, Sandbox
    from tui.permissions.sandbox.explain import Explanation
    from tui.permissions.sandbox.folder_lists import FolderLists
    from tui.permissions.sandbox.git_quarantine import GitBefore
    from tui.permissions.sandbox.git_settings import GitSettings
    from tui.permissions.sandbox.git_walls import CloneAccess, GitAnswers, GitPlaces
    from tui.permissions.sandbox.inner_clones import StoppedClones

log = logging.getLogger(__name__)

NO_LEVELS: frozenset[Level] = frozenset()
_EVERY = frozenset({Level.READ_ONLY, Level.WORKSPACE, Level.NETWORK})
_MOUNTS = frozenset({"bubblewrap", "launcher"})
"""Engines that replace folders of the machine by others."""
_OWN_FILES = ("config.toml", "hooks.json", "plans", "run")
"""Files in `.holdfast/` that decide about later calls."""
_STATE = "before"
"""The file in a kept command's folder with the earlier state of what its walls do not protect."""
_PLANNED_S = 10.0
"""Seconds for which the plan of a search's walls is reused."""
_ONLY_READS = frozenset({Level.READ_ONLY})


def _name_of(session_id: str) -> str:
    return sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _number_of(server: asyncio.Server | None) -> int:
    return server.sockets[0].getsockname()[1] if server is not None else 0


@dataclass(slots=True)
class Confinement:
    """The sandbox of one session. `close` ends everything that still runs in it, and removes its
    /tmp.

    `folder` belongs to the session, `cache` to its workspace; `hidden` are the program's own
    folders. `denied` returns the files and folders below a root that the person's rules deny
    reading. Once `levels` was called, `reason` says why nothing confines, and `cure` what to do
    about it.
    """

    settings: SandboxSettings
    workspace: Workspace
    folder: Path
    cache: Path
    hidden: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    denied: Callable[[Path], tuple[Path, ...]] = lambda _: ()
    reason: str = ""
    cure: str = ""
    _choice: asyncio.Task[Engine | None] | None = None
    _sandbox: Sandbox | None = None
    _planned: tuple[Walls, Plan, float] | None = None
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
    _zygote: WarmParent | None = None
    _outside: dict[Path, frozenset[Path]] = field(default_factory=dict[Path, "frozenset[Path]"])
    """Folders outside a root that git had when the session began: no command can add to them."""
    _git_settings: GitSettings | None = None
    _places: dict[Path, GitPlaces] = field(default_factory=dict[Path, "GitPlaces"])
    _git_answers: dict[Path, GitAnswers] = field(default_factory=dict[Path, "GitAnswers"])
    _forwards: dict[int, asyncio.Server] = field(default_factory=dict[int, asyncio.Server])

    @classmethod
    def of_session(
        cls, settings: SandboxSettings, workspace: Workspace, folders: Folders, session_id: str
    ) -> Confinement:
        """Create the sandbox of a session: its folders are in the program's cache."""
        place = folders.cache / "sandbox" / workspace_slug(workspace.root)
        hidden = (folders.config, folders.data, folders.cache, folders.log)
        return cls(settings, workspace, place / _name_of(session_id), place / "cache", hidden)

    def around(self, workspace: Workspace, session_id: str) -> Confinement:
        """Create one like it around another folder, for a sub-agent's session."""
        folder = self.folder.parent / _name_of(session_id)
        return Confinement(
            self.settings, workspace, folder, self.cache, self.hidden, self.environment, self.denied
        )

    async def levels(self) -> Collection[Level]:
        """The levels that are enforced here; none if nothing confines. The first call probes."""
        await self.engine()
        return self.known_levels

    @property
    def known_levels(self) -> Collection[Level]:
        """The levels as far as they are known already: none while the engines are still being
        tried."""
        choice = self._choice
        if choice is None or not choice.done() or choice.cancelled():
            return NO_LEVELS
        match choice.result():
            case None:
                return NO_LEVELS
            case engine:
                return _ONLY_READS if engine.value == "landlock" else _EVERY

    async def temporary(self) -> Path | None:
        """The folder that commands see as /tmp; None if they see the machine's own."""
        engine = await self.engine()
        return self.folder / "tmp" if engine is not None and engine.value in _MOUNTS else None

    @property
    def missing(self) -> bool:
        """True if it is known that nothing confines."""
        return bool(self.reason) or self.settings.engine == "off"

    async def engine(self) -> Engine | None:
        """The engine in force; None: nothing confines, and `reason` says why."""
        if self._choice is None:
            self._choice = asyncio.create_task(self._choose(), name="sandbox engine")
        return await asyncio.shield(self._choice)

    def begin(self) -> None:
        """Choose the engine in the background."""
        if self._choice is None:
            self._choice = asyncio.create_task(self._choose(), name="sandbox engine")

    def starter(
        self, level: Level, *, git_settings: bool = False, clones: StoppedClones | None = None
    ) -> Starter:
        """Return the starter of kept commands at a level; at `Level.OUTSIDE` without walls.

        With `git_settings` the command may write those of the repository; `tidy` then checks them.
        With `clones` it may do with these what it was stopped at.
        """
        if level is Level.OUTSIDE:
            return self.outside

        async def start(
            argv: Sequence[str], cwd: Path, environment: Mapping[str, str], keep: Keep
        ) -> tuple[int, MonitorReport]:
            from tui.permissions.sandbox.engine import Sandbox, SandboxError  # noqa: PLC0415 - on demand

            engine = await self.engine()
            if engine is None:
                raise SandboxError(f"The command was not started: {self.reason}.")
            if self._sandbox is None:
                self._sandbox = Sandbox(engine, self._parent())
            writes = level is not Level.READ_ONLY
            # Before the first command that may write: what it changes can only be told by
            # comparison.
            if writes and self._ran_later is None:
                self._since_ns = time.time_ns()
                await asyncio.to_thread(self._note_before)
            async with IN_PLACE.shared():
                access = self._access(argv, cwd, clones) if writes else None
                walls = await asyncio.to_thread(
                    self._with_git, access=access, git_settings=git_settings, writes=writes
                )
                if writes:
                    await asyncio.to_thread(self._note_state, keep.folder)
                started = await self._sandbox.start_supervised(
                    argv, cwd=cwd, environment=environment, walls=walls, level=level, keep=keep
                )
            if writes:
                self._writers.append(keep.folder)
            return started

        return start

    async def start_reader(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        output: int,
        errors: int,
    ) -> Confined | None:
        """Start a program of ours that only reads, as a read-only command; it ends with the
        program. None if no walls hide files from it, or none could be built around it."""
        from tui.permissions.sandbox.engine import Sandbox  # noqa: PLC0415 - on demand

        engine = await self.engine()
        if engine is None or engine.value not in _MOUNTS:
            return None
        if self._sandbox is None:
            self._sandbox = Sandbox(engine, self._parent())
        try:
            async with IN_PLACE.shared():
                walls, planned = await asyncio.to_thread(self._reader_walls)
                return await self._sandbox.start(
                    argv,
                    cwd=cwd,
                    environment=environment,
                    walls=walls,
                    level=Level.READ_ONLY,
                    output=output,
                    errors=errors,
                    planned=planned,
                )
        except HoldfastError as error:
            log.warning("%s runs without walls: %s", argv[0], error)
            return None

    def _reader_walls(self) -> tuple[Walls, Plan]:
        """Return the walls around a program of ours and their plan. The plan is reused for a
        while if nothing in the session has changed them: such a program does not look for a gap.
        Blocks."""
        from tui.permissions.sandbox.engine import planned_walls  # noqa: PLC0415 - on demand

        walls, now = self._with_git(access=None, git_settings=False, writes=False), time.monotonic()
        known = self._planned
        if known is None or known[0] != walls or now - known[2] > _PLANNED_S:
            known = self._planned = walls, planned_walls(walls, Level.READ_ONLY), now
        return walls, known[1]

    async def outside(
        self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str], keep: Keep
    ) -> tuple[int, MonitorReport]:
        """Start a command without walls."""
        from tui.keeper.command import PlainStarter  # noqa: PLC0415 - on demand

        return await PlainStarter(self._parent())(argv, cwd, environment, keep)

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

    def _note_state(self, folder: Path) -> None:
        """Save what `tidy` and `changed_files` need for the next run of the program."""
        from tui.permissions.sandbox.git_quarantine import GitBefore  # noqa: PLC0415 - on demand

        git = (self._before or GitBefore()).to_json()
        later = {str(path): times for path, times in (self._ran_later or {}).items()}
        with suppress(OSError):
            state = json.dumps({"git": git, "later": later, "since": self._since_ns})
            (folder / _STATE).write_bytes(state.encode())

    def _parent(self) -> WarmParent:
        from tui.permissions.sandbox.engine import warm_parent  # noqa: PLC0415 - on demand

        self._zygote = self._zygote or warm_parent()
        return self._zygote

    async def command(
        self, argv: Sequence[str], environment: Mapping[str, str], level: Level
    ) -> list[str]:
        """Return the words that start a program in the workspace at a level, with its streams as
        they are. Raises SandboxError if nothing confines it."""
        from tui.permissions.sandbox.engine import Sandbox, SandboxError  # noqa: PLC0415 - on demand

        engine = await self.engine()
        if engine is None:
            raise SandboxError(f"It should run in the sandbox, but there is none: {self.reason}.")
        program = shutil.which(argv[0], path=environment.get("PATH")) or argv[0]

        def words() -> list[str]:
            writes = level is not Level.READ_ONLY
            walls = self._with_git(access=None, git_settings=False, writes=writes)
            full = [program, *argv[1:]]
            return Sandbox(engine).command(full, self.workspace.root, environment, walls, level)

        return await asyncio.to_thread(words)

    @property
    def _roots(self) -> tuple[Path, ...]:
        return (self.workspace.root, *self.workspace.extra)

    async def changed_files(self) -> list[Path]:
        """Return the files that commands changed since the last call, of those that tools run
        later."""
        from tui.permissions.sandbox import run_later  # noqa: PLC0415 - on demand

        before, self._ran_later = self._ran_later, None
        if before is None:
            return []
        after, filled = await asyncio.to_thread(self._changed)
        self._new_clones.clear()
        if self._writing():
            self._ran_later = after
        paths = {*run_later.changed(before, after), *filled}
        return sorted(path for path in paths if not self._is_own_worktree(path, before))

    def _is_own_worktree(self, link: Path, before: Collection[Path]) -> bool:
        """True if the `.git` belongs to a worktree of ours, new and not made by a command: once the
        folder for worktrees exists, no command can put one into it."""
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
        from tui.permissions.sandbox.git_walls import inner_repositories  # noqa: PLC0415 - on demand

        inner = [one for root in self._roots for one in inner_repositories(root, self.environment)]
        return run_later.file_states(self._roots, inner, self._listing())

    def _listing(self) -> FolderLists:
        from tui.permissions.sandbox.run_later import folder_lists  # noqa: PLC0415 - on demand

        self._lists = self._lists or folder_lists()
        return self._lists

    @property
    def _quarantine(self) -> Path:
        return self.cache.parent / "quarantine"

    def _writing(self) -> bool:
        """True if a command that may write still runs."""
        from tui.keeper.command import lives  # noqa: PLC0415 - on demand

        self._writers = [folder for folder in self._writers if lives(folder)]
        return bool(self._writers)

    async def tidy(self) -> list[str]:
        """Undo what commands put where git would run it; return what was done, in lines.

        As long as one of them runs, the state from before it counts.
        """
        before = self._before
        if not self._writing():
            self._before = None
        settings, self._git_settings = self._git_settings, None
        lines, self._done = self._done, []
        if before:
            moved = await asyncio.to_thread(before.settle, self._quarantine, self._listing())
            lines += [str(one) for one in moved]
            self._before = self._before and self._before.without(moved)
            if before.changed_indexes:
                lines += await asyncio.to_thread(self._settle_new_clones)
        self._unsaid += lines
        if settings:
            lines += await asyncio.to_thread(settings.settle, self._quarantine)
        return lines

    def take_unsaid(self) -> list[str]:
        """Return what `tidy` moved away since the last call: the person is told once a turn."""
        lines, self._unsaid = self._unsaid, []
        return lines

    async def ports(self) -> dict[int, int]:
        """Map the ports that commands listen on behind the walls to the ones at 127.0.0.1 that lead
        there; 0 if none does."""
        listening = await self._sandbox.ports() if self._sandbox else []
        return {port: _number_of(self._forwards.get(port)) for port in listening}

    async def forward(self, port: int) -> int:
        """Forward a port that commands listen on to 127.0.0.1; return the port there."""
        from tui.permissions.sandbox.port_forward import forward  # noqa: PLC0415 - on demand

        assert self._sandbox is not None
        if port not in self._forwards:
            self._forwards[port] = await forward(port, self._sandbox.connect)
        return _number_of(self._forwards[port])

    async def explain(
        self,
        output: str,
        level: Level,
        named_needs: Callable[[], Awaitable[NamedNeeds]],
        *,
        failed: bool,
    ) -> Explanation | None:
        """Explain which wall stopped a command, by its output and by what its words name."""
        from tui.permissions.named_needs import NamedNeeds  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.explain import (  # noqa: PLC0415 - on demand
            Met,
            explain_failure,
            languages_of,
        )
        from tui.permissions.sandbox.git_walls import signs  # noqa: PLC0415 - on demand

        denies = self._sandbox is not None and self._sandbox.engine.value == "landlock"
        # Landlock refuses with "permission denied", which has other causes under other engines.
        met = Met.in_output(output, languages_of(self.environment), denies=denies)
        named = await named_needs() if failed or met != Met() else NamedNeeds()
        signed = bool(met.signing and named.git) and await asyncio.to_thread(
            signs, self.workspace.root, self.environment
        )
        return explain_failure(met, level, self.walls(), named, failed=failed, signs=signed)

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
        inner = [one for root in roots for one in inner_repositories(root, self.environment)]
        lines: list[str] = []
        for place in inner:
            if place in known or not os.path.lexists(place / ".git"):
                continue
            self._new_clones.add(place)
            for file, settings in settings_by_file(place, self.environment, roots).items():
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

    async def close(self) -> None:
        """End everything that still runs, and remove the session's /tmp."""
        if self._choice is not None:
            self._choice.cancel()
        for server in self._forwards.values():
            server.close()
        zygote, self._zygote, self._sandbox = self._zygote, None, None
        await asyncio.to_thread(self._remove, zygote)
        self._writers = []
        for line in await self.tidy():
            log.warning("%s", line)

    def _remove(self, zygote: WarmParent | None) -> None:
        if zygote is not None:
            zygote.close()
        if self._writing():
            return  # it continues, for the next run of the program
        with suppress(OSError):
            shutil.rmtree(self.folder)

    async def _choose(self) -> Engine | None:
        from tui.permissions.sandbox.engine import Engine, choose, probe  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.own_process import hide_secrets  # noqa: PLC0415 - on demand

        with suppress(OSError):
            hide_secrets()
        asked = self.settings.engine
        if asked == "off":
            self.reason = "the sandbox is off"
            return None
        try:
            walls = self.walls()
            if asked == "auto":
                engine, results = await choose(walls)
            else:
                results = [await probe(Engine(asked), walls)]
                engine = Engine(asked) if results[0].ok else None
        except HoldfastError as error:
            self.reason, self.cure = error.message.rstrip("."), error.hint
            return None
        if engine is None:
            self.reason = "; ".join(f"{one.engine}: {one.reason}" for one in results)
        return engine

    def walls(self) -> Walls:
        """Build the walls' definition, without what git needs."""
        given, home = self.settings, Path(self.environment.get("HOME") or Path.home())
        return Walls(
            workspace=self.workspace.root,
            session=self.folder,
            cache=self.cache,
            home=home,
            search_path=self.environment.get("PATH", ""),
            added=self.workspace.extra,
            hidden=self.hidden,
            readable=(Path(sys.prefix), Path(sys.base_prefix)),
            opened=self.workspace.readable,
            denied=self.denied(self.workspace.root),
            sockets=tuple(Path(name).expanduser() for name in given.sockets),
            keep_env=tuple(given.keep_env),
            share_caches=given.share_caches,
        )

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

    def _access(self, argv: Sequence[str], cwd: Path, asked: StoppedClones | None) -> CloneAccess:
        """The access of a command to the clones in the workspace: git that works in one writes it,
        and so may what a person was asked about."""
        from tui.permissions.sandbox.git_walls import CloneAccess  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.inner_clones import worked_in  # noqa: PLC0415 - on demand

        clones = [path for path in self._clones() if path not in self._roots]
        line = argv[2] if len(argv) == 3 and argv[1] == "-c" else ""
        opened = worked_in(line, cwd, clones) if clones else frozenset[Path]()
        given = frozenset(asked.clones if asked else ())
        if asked and asked.deletes:
            return CloneAccess(opened - given, given)
        return CloneAccess(opened | given)

    def _with_git(self, *, access: CloneAccess | None, git_settings: bool, writes: bool) -> Walls:
        """Add what git needs to the walls, and record the state of what a command with an access
        may write. A command that only reads needs just git's folders, and they stay the same."""
        from tui.permissions.sandbox.git_quarantine import GitBefore  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.git_settings import GitSettings  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.git_walls import (  # noqa: PLC0415 - on demand
            GitAnswers,
            git_places,
            with_git,
        )

        walls = self.walls()
        for root in self._roots:
            below = [path for path in self._clones() if access and path.is_relative_to(root)]
            if writes or root not in self._places:
                known = self._git_answers.setdefault(root, GitAnswers())
                places = git_places(root, self.environment, below, known, access)
                self._places[root] = self._of_session(root, places)
            places = self._places[root]
            if git_settings and places.folders and self._git_settings is None:
                self._git_settings = GitSettings.of(places.folders[0])
                # The settings file that the person opened is not protected.
                open_one = self._git_settings.path
                protected = tuple(path for path in places.protected if path != open_one)
                places = replace(places, protected=protected)
            walls = with_git(walls, places)
            if access is not None:
                now = GitBefore.of(places, self._listing())
                self._before = self._before | now if self._before else now
        own = [root / ".holdfast" / name for root in self._roots for name in _OWN_FILES]
        own.append(Path(sys.prefix))
        return replace(walls, protected=(*walls.protected, *own))

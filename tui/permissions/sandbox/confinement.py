"""The sandbox of one session: chooses its engine once, builds its walls, starts commands in it.

Nothing here decides who may do what: `permissions.policy` picks a command's level among those that
the engine enforces.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.paths import Folders, workspace_slug
from tui.core.workspace import Workspace
from tui.permissions.sandbox.command_traces import CommandTraces
from tui.permissions.sandbox.walls import Level, Walls

if TYPE_CHECKING:
    from tui.core.config import SandboxSettings
    from tui.keeper.command import Keep, Starter
    from tui.keeper.parent import MonitorReport, WarmParent
    from tui.permissions.named_needs import NamedNeeds
    from tui.permissions.sandbox.engine import Confined, Engine, Sandbox
    from tui.permissions.sandbox.explain import Explanation
    from tui.permissions.sandbox.inner_clones import StoppedClones

log = logging.getLogger(__name__)

NO_LEVELS: frozenset[Level] = frozenset()
_EVERY = frozenset({Level.READ_ONLY, Level.WORKSPACE, Level.NETWORK})
_MOUNTS = frozenset({"bubblewrap", "launcher"})
"""Engines that replace folders of the machine by others."""
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
    traces: CommandTraces = field(init=False)
    _hidden: bool = False
    _choice: asyncio.Task[Engine | None] | None = None
    _sandbox: Sandbox | None = None
    _zygote: WarmParent | None = None
    _forwards: dict[int, asyncio.Server] = field(default_factory=dict[int, asyncio.Server])

    def __post_init__(self) -> None:
        self.traces = CommandTraces(self)

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

    async def hide_secrets(self) -> None:
        """Hide the program's own secrets from other processes, which needs no engine."""
        from tui.permissions.sandbox.own_process import hide_secrets  # noqa: PLC0415 - on demand

        if not self._hidden:
            self._hidden = True
            with suppress(OSError):
                await asyncio.to_thread(hide_secrets)

    def starter(
        self, level: Level, *, git_copies: bool = False, clones: StoppedClones | None = None
    ) -> Starter:
        """Return the starter of kept commands at a level; at `Level.OUTSIDE` without walls.

        With `git_copies` a git command may set what the repository protects, in a copy;
        `traces.tidy` puts it in its place. With `clones` it may do with these what it was stopped
        at.
        """
        if level is Level.OUTSIDE:
            return self.outside

        async def start(
            argv: Sequence[str], cwd: Path, environment: Mapping[str, str], keep: Keep
        ) -> tuple[int, MonitorReport]:
            from tui.core.git.in_place import IN_PLACE  # noqa: PLC0415 - on demand
            from tui.permissions.sandbox.engine import Sandbox, SandboxError  # noqa: PLC0415 - on demand

            engine = await self.engine()
            if engine is None:
                raise SandboxError(f"The command was not started: {self.reason}.")
            if self._sandbox is None:
                self._sandbox = Sandbox(engine, self._parent())
            writes = level is not Level.READ_ONLY
            traces = self.traces
            if writes:
                await traces.begin()
            async with IN_PLACE.shared():
                access = traces.access(argv, cwd, clones) if writes else None

                def prepared() -> Walls:
                    walls = self.walls()
                    sets = traces.sets_git(argv, cwd) if git_copies and writes else ""
                    walls = traces.with_git(walls, access, sets=sets, writes=writes)
                    if writes:
                        traces.save(keep.folder)
                    return walls

                started = await self._sandbox.start_supervised(
                    argv, cwd=cwd, environment=environment, walls=prepared, level=level, keep=keep
                )
            if writes:
                traces.add(keep.folder)
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
        from tui.core.git.in_place import IN_PLACE  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.engine import Sandbox  # noqa: PLC0415 - on demand

        engine = await self.engine()
        if engine is None or engine.value not in _MOUNTS:
            return None
        if self._sandbox is None:
            self._sandbox = Sandbox(engine, self._parent())
        try:
            async with IN_PLACE.shared():
                walls = await asyncio.to_thread(self.traces.with_git, self.walls(), writes=False)
                return await self._sandbox.start(
                    argv,
                    cwd=cwd,
                    environment=environment,
                    walls=walls,
                    level=Level.READ_ONLY,
                    output=output,
                    errors=errors,
                )
        except HoldfastError as error:
            log.warning("%s runs without walls: %s", argv[0], error)
            return None

    async def start(
        self,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        level: Level,
        output: int,
    ) -> Confined:
        """Start a command that nobody keeps: it ends with the program. All that it prints goes to
        `output`. Raises SandboxError if nothing confines it."""
        from tui.core.git.in_place import IN_PLACE  # noqa: PLC0415 - on demand
        from tui.permissions.sandbox.engine import Sandbox, SandboxError  # noqa: PLC0415 - on demand

        engine = await self.engine()
        if engine is None:
            raise SandboxError(f"The command was not started: {self.reason}.")
        if self._sandbox is None:
            self._sandbox = Sandbox(engine, self._parent())
        writes = level is not Level.READ_ONLY
        async with IN_PLACE.shared():
            walls = await asyncio.to_thread(
                lambda: self.traces.with_git(self.walls(), writes=writes)
            )
            return await self._sandbox.start(
                argv, cwd=cwd, environment=environment, walls=walls, level=level, output=output
            )

    async def outside(
        self, argv: Sequence[str], cwd: Path, environment: Mapping[str, str], keep: Keep
    ) -> tuple[int, MonitorReport]:
        """Start a command without walls."""
        from tui.keeper.command import PlainStarter  # noqa: PLC0415 - on demand

        return await PlainStarter(self._parent())(argv, cwd, environment, keep)

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
            walls = self.traces.with_git(self.walls(), writes=writes)
            full = [program, *argv[1:]]
            return Sandbox(engine).command(full, self.workspace.root, environment, walls, level)

        return await asyncio.to_thread(words)

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

    async def close(self) -> None:
        """End everything that still runs, and remove the session's /tmp."""
        if self._choice is not None:
            self._choice.cancel()
        for server in self._forwards.values():
            server.close()
        zygote, self._zygote, self._sandbox = self._zygote, None, None
        await asyncio.to_thread(self._remove, zygote)
        await self.traces.close()

    def _remove(self, zygote: WarmParent | None) -> None:
        if zygote is not None:
            zygote.close()
        if self.traces.writing():
            return  # it continues, for the next run of the program
        with suppress(OSError):
            shutil.rmtree(self.folder)

    async def _choose(self) -> Engine | None:
        from tui.permissions.sandbox import engine as engines  # noqa: PLC0415 - on demand

        await self.hide_secrets()
        asked = self.settings.engine
        if asked == "off":
            self.reason = "the sandbox is off"
            return None
        parent = engines.warm_parent()
        try:
            walls = self.walls()
            if asked == "auto":
                engine, results = await engines.choose(walls, parent)
            else:
                results = [await engines.probe(engines.Engine(asked), walls, parent)]
                engine = results[0].engine if results[0].ok else None
        except HoldfastError as error:
            self.reason, self.cure = error.message.rstrip("."), error.hint
            return None
        if engine is not None and self._zygote is None:
            self._zygote = parent  # the first command finds it running, with the network made
        else:
            await asyncio.to_thread(parent.close)
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

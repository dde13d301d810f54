"""Suggestions for the prompt: commands, their arguments, and the files of the workspace, which
ripgrep lists so that ignore files count."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence, Set
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tui.app import manual
from tui.app.commands.table import COMMANDS, ELSEWHERE
from tui.app.conversation import Conversation
from tui.app.dialog_data import profile_words
from tui.app.frontend import AgentHolder
from tui.app.mcp_offers import prompts_of, resources_of
from tui.core.clock import Clock
from tui.core.errors import ConfigError, ToolError
from tui.tools import search
from tui.tools.base import StartReader
from tui.tools.search import SearchRoot
from tui.tools.search_proof import confirmed_names
from tui.ui.toolkit import themes
from tui.ui.widgets.autocomplete import Suggestion, rank

if TYPE_CHECKING:
    from tui.ui.widgets.conversation.items_view import ItemsView

_LOOKED_AT = 2000
"""Maximum number of entries read in the parent folder."""


class PromptSources:
    """The suggestions of one conversation. Nothing here blocks the event loop."""

    def __init__(self, conversation: Conversation, shown: ItemsView | None = None) -> None:
        """`shown` has the answer whose code blocks `/copy` offers."""
        self._conversation, self._shown = conversation, shown
        services = conversation.services
        self._files = WorkspaceFiles(services.workspace, services.clock, conversation)

    def commands(self) -> Sequence[Suggestion]:
        """Return all names, then the aliases."""
        named = [Suggestion(c.name, c.help, needs=c.needs_argument) for c in COMMANDS]
        own = [
            Suggestion(c.name, c.description, needs=bool(c.argument) and c.argument[0] != "[")
            for c in self._conversation.user_commands.commands.values()
        ]
        own += [
            Suggestion(name, prompt.description, needs=any(must for _, must in prompt.arguments))
            for name, (_, prompt) in prompts_of(self._conversation).items()
        ]
        aliases = [
            Suggestion(alias, f"{c.help} (/{c.name})", needs=c.needs_argument)
            for c in COMMANDS
            for alias in c.aliases
        ]
        return [*named, *own, *aliases]

    async def arguments(self, command: str) -> Sequence[Suggestion]:
        services = self._conversation.services
        command = ELSEWHERE.get(command, command)
        match = next((c for c in COMMANDS if command == c.name or command in c.aliases), None)
        match match.name if match else "":
            case "help":
                topics = await asyncio.to_thread(manual.topics)
                return [Suggestion(topic.name, topic.summary) for topic in topics]
            case "theme":
                folder = services.folders.config / "themes"
                names = await asyncio.to_thread(themes.available, folder)
                return [Suggestion(name) for name in names]
            case "model":
                return [Suggestion(row.name, f"{row.window:,} tokens") for row in services.models()]
            case "profile":
                try:
                    profiles = await asyncio.to_thread(services.profiles)
                except ConfigError:  # the command says it
                    return []
                return [Suggestion(row.name, profile_words(row)) for row in profiles]
            case "resume":
                rows = await services.list_sessions()
                return [
                    Suggestion(row.id, row.title, words=f"{row.id} {row.title}") for row in rows
                ]
            case "copy":
                return await self._code_blocks()
            case "add-dir":
                names = await asyncio.to_thread(_neighbours, services.workspace)
                return [Suggestion(f"../{name}/", words=name) for name in names]
            case _:
                return [Suggestion(word) for word in match.offers] if match else []

    async def _code_blocks(self) -> Sequence[Suggestion]:
        """Return the numbers of the code blocks that `/copy` takes, with their first lines."""
        from tui.ui.widgets.markdown.code import blocks  # noqa: PLC0415 - on demand

        answer = self._shown.with_code if self._shown else None
        code = await asyncio.to_thread(blocks, answer.text) if answer else []
        first_lines = (next(filter(str.strip, text.split("\n")), "") for text in code)
        return [Suggestion(str(n), text.strip()) for n, text in enumerate(first_lines, 1)]

    async def files(self) -> Sequence[str]:
        """Return the files of the workspace and the resources of MCP servers."""
        files = await self._files.paths()
        names = resources_of(self._conversation)
        return [*files, *names] if names else files

    async def unlisted(self, query: str) -> Sequence[str]:
        return await self._files.unlisted(query)


def _neighbours(workspace: Path) -> list[str]:
    """Return the names of a folder's siblings; folders inside it are allowed already."""
    try:
        names = [
            path.name
            for path in islice(workspace.parent.iterdir(), _LOOKED_AT)
            if path != workspace and not path.name.startswith(".") and path.is_dir()
        ]
    except OSError:
        return []
    return sorted(names)


FILES_MAX: Final = 200_000
LIST_S: Final = 10.0
"""Seconds that a listing may take; files found by then are used."""
FRESH_S: Final = 15.0
"""Seconds before a listing is made again."""


class WorkspaceFiles:
    """Paths relative to `root`, folders with a final slash, listed again when they are old."""

    def __init__(self, root: Path, clock: Clock, holder: AgentHolder | None = None) -> None:
        """A listing is made behind the walls of the agent that `holder` has, if it has any."""
        self._root, self._clock, self._holder = root, clock, holder
        self._made: float | None = None
        self._paths: Sequence[str] = ()
        self._listed: Set[str] = frozenset()
        self._making: asyncio.Task[None] | None = None

    async def paths(self) -> Sequence[str]:
        """Return all paths. The first call waits for the listing, later ones get the latest one."""
        now = self._clock.monotonic()
        old = self._made is None or now - self._made > FRESH_S
        if old and (self._making is None or self._making.done()):
            self._making = asyncio.create_task(self._list(), name="listing files")
        if self._made is None and self._making is not None:
            await asyncio.shield(self._making)
        return self._paths

    async def unlisted(self, query: str) -> list[str]:
        """Return what fits in the folder that a query names, and is not listed."""
        names = await asyncio.to_thread(_entries, self._root, query.rpartition("/")[0])
        return rank(query, [name for name in names if name not in self._listed])

    async def _list(self) -> None:
        agent = self._holder.agent if self._holder else None
        start = agent.permissions.start_reader if agent else None
        files = await _files_below(self._root, start)
        self._paths = await asyncio.to_thread(with_folders, files)
        self._listed = await asyncio.to_thread(frozenset, self._paths)
        self._made = self._clock.monotonic()


def _entries(root: Path, folder: str) -> list[str]:
    """Return the paths in a folder of the workspace. Blocks."""
    place = root / folder
    try:
        if not place.resolve().is_relative_to(root.resolve()):
            return []
        with os.scandir(place) as entries:
            names = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in islice(entries, _LOOKED_AT)
                if entry.name != ".git"
            ]
    except (OSError, ValueError):
        return []
    return sorted(f"{folder}/{name}" if folder else name for name in names)


def with_folders(files: Sequence[str]) -> list[str]:
    """Return the files and every folder that holds one, sorted by depth, then by name."""
    folders = {f"{parent}/" for file in files for parent in _parents(file)}
    return sorted((*files, *folders), key=lambda path: (path.rstrip("/").count("/"), path))


def _parents(file: str) -> list[str]:
    parts = file.split("/")[:-1]
    return ["/".join(parts[:n]) for n in range(1, len(parts) + 1)]


async def _files_below(folder: Path, start: StartReader | None) -> list[str]:
    """List the files that no ignore file excludes, as far as there is time."""
    root = SearchRoot(folder, None, "", inside_excluded=False, in_workspace=True)
    records: list[bytes] = []

    def take(record: bytes) -> bool:
        records.append(record)
        return len(records) < FILES_MAX

    walled = False
    with suppress(ToolError, TimeoutError):
        arguments = [*search.exclusions(), "--files"]
        command = await asyncio.to_thread(search.command, root, arguments, in_order=False)
        async with asyncio.timeout(LIST_S):
            walled = (await search.run(command, root, b"\0", take, start)).walled
    names = [name.removeprefix(b"./") for name in records]
    if not walled:
        names = await asyncio.to_thread(confirmed_names, folder, names)
    return [name.decode("utf-8", "replace") for name in names]

"""What the prompt may suggest: commands, what they take, the files of the workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tui.app import manual
from tui.app.commands.registry import COMMANDS, ELSEWHERE
from tui.app.conversation import Conversation
from tui.ui.toolkit import themes
from tui.ui.widgets.autocomplete import Suggestion
from tui.ui.widgets.workspace_files import WorkspaceFiles

_LOOKED_AT = 2000
"""Entries of the folder above, at most."""


class PromptSources:
    """The suggestions of one conversation. Nothing here blocks the event loop."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        services = conversation.services
        self._files = WorkspaceFiles(services.workspace, services.clock)

    def commands(self) -> Sequence[Suggestion]:
        """All names, then the aliases."""
        named = [Suggestion(c.name, c.help, needs=c.needs_argument) for c in COMMANDS]
        own = [
            Suggestion(c.name, c.description, needs=bool(c.argument) and c.argument[0] != "[")
            for c in self._conversation.user_commands.commands.values()
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
        found = next((c for c in COMMANDS if command == c.name or command in c.aliases), None)
        match found.name if found else "":
            case "help":
                topics = await asyncio.to_thread(manual.topics)
                return [Suggestion(topic.name, topic.summary) for topic in topics]
            case "theme":
                folder = services.folders.config / "themes"
                names = await asyncio.to_thread(themes.available, folder)
                return [Suggestion(name) for name in names]
            case "model":
                return [Suggestion(row.name, f"{row.window:,} tokens") for row in services.models()]
            case "resume":
                rows = await services.list_sessions()
                return [
                    Suggestion(row.id, row.title, words=f"{row.id} {row.title}") for row in rows
                ]
            case "add-dir":
                names = await asyncio.to_thread(_neighbours, services.workspace)
                return [Suggestion(f"../{name}/", words=name) for name in names]
            case _:
                return [Suggestion(word) for word in found.offers] if found else []

    async def files(self) -> Sequence[str]:
        return await self._files.paths()


def _neighbours(workspace: Path) -> list[str]:
    """The names of the folders next to one: those in it are allowed already."""
    try:
        found = [
            path.name
            for path in islice(workspace.parent.iterdir(), _LOOKED_AT)
            if path != workspace and not path.name.startswith(".") and path.is_dir()
        ]
    except OSError:
        return []
    return sorted(found)

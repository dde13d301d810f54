"""Which commands of their own a person has here."""

from __future__ import annotations

from pathlib import Path

from tui.app.commands.registry import COMMANDS
from tui.app.ports import AppServices
from tui.core.workspace import PRIVATE_DIR
from tui.settings.user_commands import UserCommands


def own_commands(services: AppServices) -> UserCommands:
    """The person's own commands; those that a folder brings along only where it is trusted."""
    mine = services.folders.config / "commands"
    brought = services.workspace / PRIVATE_DIR / "commands"

    def folders() -> tuple[Path, ...]:
        return (mine, brought) if services.trusted() else (mine,)

    taken = frozenset(name for c in COMMANDS for name in (c.name, *c.aliases))
    return UserCommands(folders, taken)

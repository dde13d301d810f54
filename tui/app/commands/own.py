"""The commands that a person wrote: where they are found, and what one brings to its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui.core.claude_names import claude_folder
from tui.core.errors import UsageError
from tui.core.paths import Folders
from tui.core.text_cleaning import one_line
from tui.settings.skills import InstalledSkills
from tui.settings.trust import Trust
from tui.settings.user_commands import FOLDERS, SHIPPED, UserCommand, UserCommands

if TYPE_CHECKING:
    from tui.agent.prompts import CommandTurn
    from tui.permissions.rules import Rule
    from tui.provider.base import ModelInfo


def user_commands(
    folders: Folders,
    workspace: Path,
    trust: Callable[[], Trust],
    reserved: frozenset[str],
    *,
    bare: bool = False,
) -> UserCommands:
    """The commands that come as prompts, those that the person wrote, and those of the folder that
    they trust; the last of a name counts. Claude Code takes the person's before the folder's.
    With `bare`, only the first."""
    if bare:
        return UserCommands((SHIPPED,), reserved, workspace=workspace)
    brought = tuple(workspace / name for name in FOLDERS)
    theirs, own = brought
    places = (SHIPPED, theirs, claude_folder() / "commands", folders.config / "commands", own)

    def counts(path: Path, content: bytes) -> bool:
        if not any(folder in path.parents for folder in brought):
            return True
        return trust().allows(str(path.relative_to(workspace)), content)

    skills = InstalledSkills(folders, workspace, lambda name, data: trust().allows(name, data))
    return UserCommands(places, reserved, counts, skills, workspace, folders)


def turn_variables(workspace: Path, session_id: str | None) -> Mapping[str, str]:
    """The variables of a session that a command's text may name, by Claude Code's names."""
    known = {"CLAUDE_PROJECT_DIR": str(workspace), "CLAUDE_SESSION_ID": session_id}
    return {name: value for name, value in known.items() if value is not None}


async def command_turn(
    command: UserCommand,
    arguments: str,
    find_model: Callable[[str], ModelInfo | None],
    say: Callable[[str], None],
    variables: Mapping[str, str],
) -> CommandTurn:
    """The turn of `/command arguments`. `find_model` finds the model that is meant by a name, and
    blocks; parts of the command that can't be done are reported. See `turn_variables`."""
    from tui.agent.prompts import CommandTurn  # noqa: PLC0415 - the table is read at start-up

    rules, ignored = _rules(command)
    if ignored:
        say(f"/{command.name} can't allow {one_line(', '.join(ignored))} here.")
    if command.left:
        say(f"/{command.name} has fields that do nothing here: {', '.join(command.left)}.")
    model = await asyncio.to_thread(find_model, command.model) if command.model else None
    if command.model and model is None:
        say(f"/{command.name} asks for the model {command.model}, which isn't offered here.")
    sent = command.expanded(arguments, variables)
    return CommandTurn(command.name, str(command.path), sent.text, sent.runs, rules, model)


def _rules(command: UserCommand) -> tuple[tuple[Rule, ...], list[str]]:
    """Return what its turn may do without a question, and what is no such rule."""
    from tui.permissions.rules import Rule  # noqa: PLC0415 - as above

    rules, ignored = list[Rule](), [*command.allowed.ignored]
    for text in command.allowed.rules:
        try:
            rules.append(Rule.parse(text))
        except UsageError:
            ignored.append(text)
    return tuple(rules), ignored

"""Claude Code's names for our tools, and the folder of its personal files: for files that were
written for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

SETTINGS_FILES: Final = (".claude/settings.json", ".claude/settings.local.json")
"""Its settings in a workspace."""

TOOLS: Final[Mapping[str, tuple[str, ...]]] = {
    "Agent": ("task",),
    "AskUserQuestion": ("ask_user",),
    "Bash": ("run_command",),
    "BashOutput": ("command_status",),
    "Edit": ("edit_file", "apply_patch"),
    "ExitPlanMode": ("present_plan",),
    "Glob": ("find_by_name",),
    "Grep": ("grep_search",),
    "KillShell": ("command_status",),
    "LS": ("list_dir",),
    "MultiEdit": ("edit_file", "apply_patch"),
    "NotebookEdit": ("edit_file",),
    "NotebookRead": ("read_file",),
    "Read": ("read_file",),
    "Skill": ("skill",),
    "Task": ("task",),
    "TodoRead": ("todo_write",),
    "TodoWrite": ("todo_write",),
    "WebFetch": ("web_fetch",),
    "WebSearch": ("web_search",),
    "Write": ("write_file",),
}
"""Its tools, and ours that do the same."""
_FIRST: Final = {"read_file": "Read", "task": "Task", "todo_write": "TodoWrite"}
"""The name for a tool of ours that does the work of several of its tools."""
_SMALL: Final = {name.casefold(): ours for name, ours in TOOLS.items()}


def known(name: str) -> tuple[str, ...]:
    """Return our tools for one of its names, in upper or lower case; none for any other name."""
    return _SMALL.get(name.casefold(), ())


def ours(name: str) -> tuple[str, ...]:
    """Return our tools for one of its names, in upper or lower case; any other name as it is."""
    return known(name) or (name,)


def names_of(tool: str) -> tuple[str, ...]:
    """Return all names of a tool of ours: the one that it has in Claude Code first, our own
    last."""
    theirs = [name for name, tools in TOOLS.items() if tool in tools]
    first = _FIRST.get(tool)
    return (*([first] if first else []), *(name for name in theirs if name != first), tool)


def file_path(path: str, root: Path) -> str:
    """Return a path of a call as hooks get it there (2.1.332, tried): whole and without `..`, so
    that a guard can tell what lies outside a folder."""
    return os.path.normpath(root / os.path.expanduser(path))  # noqa: PTH111 - it never raises


def input_of(input_: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return the arguments of a call of ours in `root`, with a path also as it is given there."""
    path = input_.get("path")
    return {**({"file_path": file_path(path, root)} if isinstance(path, str) else {}), **input_}


def own_input(before: Mapping[str, Any], given: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return the arguments as a hook changed those of `input_of`, under our names: of the two names
    of a path, the one that it changed counts."""
    input_ = dict(given)
    if "file_path" in input_ and "file_path" not in before:
        path, own = input_.pop("file_path"), before.get("path")
        if path not in {own, input_of(before, root).get("file_path")}:
            input_["path"] = path
        input_.setdefault("path", own)
    return input_


def claude_folder() -> Path:
    """Return the folder of Claude Code's personal files."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def is_claudes(folder: Path) -> bool:
    """True for a folder of one kind of Claude Code's files: the person's, or those of a place."""
    return folder.parent.name == ".claude" or folder.parent == claude_folder()

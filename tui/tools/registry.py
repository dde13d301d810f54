"""The tools by name: how a call of each is named, and those that every session begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from tui.core.dataclass import dataclass

if TYPE_CHECKING:
    from tui.tools.base import Tool

Kind: TypeAlias = Literal[
    "read", "edit", "search", "execute", "think", "fetch", "switch_mode", "other"
]
"""The kinds of calls that editors tell apart."""


@dataclass(frozen=True, slots=True)
class ToolWords:
    """The words in which people see a tool: the verb that begins the title of a call ("": its
    name), and a call's kind. One that `asks` puts questions to the person."""

    verb: str
    kind: Kind = "other"
    asks: bool = False


SEARCH_INSTALLED: Final = "search_installed"
TERMINAL: Final = "terminal"

TOOLS: Final[Mapping[str, ToolWords]] = {
    "run_command": ToolWords("Run", "execute"),
    "command_status": ToolWords("Job", "execute"),
    TERMINAL: ToolWords("Terminal", "execute"),
    "read_file": ToolWords("Read", "read"),
    "list_dir": ToolWords("List", "read"),
    "read_mcp_resource": ToolWords("Read", "read"),
    "grep_search": ToolWords("Search", "search"),
    "find_by_name": ToolWords("Find", "search"),
    "web_fetch": ToolWords("Fetch", "fetch"),
    "web_search": ToolWords("Search the web", "fetch"),
    "edit_file": ToolWords("Edit", "edit"),
    "write_file": ToolWords("Write", "edit"),
    "apply_patch": ToolWords("Patch", "edit"),
    "todo_write": ToolWords("To-do list", "think"),
    "recall": ToolWords("Recall", "read"),
    "ask_user": ToolWords("Question", asks=True),
    "present_plan": ToolWords("Plan", "switch_mode", asks=True),
    "task": ToolWords("Sub-agent", "think"),
    "skill": ToolWords("Skill", "read"),
    SEARCH_INSTALLED: ToolWords("Find a skill or sub-agent", "search"),
    "search_tools": ToolWords("Find a tool"),
    "call_tool": ToolWords("Call a tool"),
    "submit_result": ToolWords(""),
}
"""All tools that a session may have, besides those of MCP servers and of an embedding program: the
names that rules can use."""

_OWN_COMMAND: Final = "shell"
"""The name of a command that the person ran by `!`."""
_OTHERS: Final = ToolWords("")


def words_of(tool: str) -> ToolWords:
    """Return the words of a tool, none for one that is not the program's own."""
    return TOOLS.get(tool, _OTHERS)


def verb(tool: str) -> str:
    """Return a verb for a tool; for one that is not the program's own, its name after that of its
    MCP server."""
    if tool.startswith("mcp__"):
        return tool.removeprefix("mcp__").replace("__", ": ", 1)
    if tool == _OWN_COMMAND:
        return "$"
    return words_of(tool).verb or tool


def title(tool: str, label: str) -> str:
    """Return the verb and the object of a call, such as `Edit calc.py`."""
    return f"{verb(tool)} {label}".rstrip()


def builtin_tools() -> dict[str, Tool[Any]]:
    """Return all built-in tools, in the order in which they are sent to the model."""
    from tui.tools.apply_patch import ApplyPatch  # noqa: PLC0415 - start-up stays light
    from tui.tools.command_status import CommandStatus  # noqa: PLC0415
    from tui.tools.edit_file import EditFile  # noqa: PLC0415
    from tui.tools.find_by_name import FindByName  # noqa: PLC0415
    from tui.tools.grep_search import GrepSearch  # noqa: PLC0415
    from tui.tools.list_dir import ListDir  # noqa: PLC0415
    from tui.tools.read_file import ReadFile  # noqa: PLC0415
    from tui.tools.run_command import RunCommand  # noqa: PLC0415
    from tui.tools.todo_write import TodoWrite  # noqa: PLC0415
    from tui.tools.web_fetch import WebFetch  # noqa: PLC0415
    from tui.tools.write_file import WriteFile  # noqa: PLC0415

    tools: tuple[Tool[Any], ...] = (
        ReadFile(), WriteFile(), EditFile(), ApplyPatch(), ListDir(), FindByName(), GrepSearch(),
        RunCommand(), CommandStatus(), WebFetch(), TodoWrite(),
    )  # fmt: skip
    return {tool.name: tool for tool in tools}

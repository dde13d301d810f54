"""The built-in tools, by name."""

from __future__ import annotations

from typing import Any, Final

from tui.tools.base import Tool

NAMES: Final = frozenset(
    {
        "apply_patch", "ask_user", "call_tool", "command_status", "edit_file", "find_by_name",
        "grep_search", "list_dir", "present_plan", "read_file", "read_mcp_resource", "recall",
        "run_command", "search_tools", "skill", "submit_result", "task", "todo_write", "web_fetch",
        "web_search", "write_file",
    }
)  # fmt: skip
"""Names of all tools that a session may have, besides those of MCP servers and of an embedding
program: the names that rules can use."""


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

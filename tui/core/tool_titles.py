"""Titles of tool calls: a verb and its object, such as `Edit calc.py`."""

from __future__ import annotations

from typing import Final

VERBS: Final = {
    "run_command": "Run",
    "command_status": "Job",
    "read_file": "Read",
    "list_dir": "List",
    "read_mcp_resource": "Read",
    "grep_search": "Search",
    "find_by_name": "Find",
    "web_fetch": "Fetch",
    "web_search": "Search the web",
    "edit_file": "Edit",
    "write_file": "Write",
    "apply_patch": "Patch",
    "todo_write": "To-do list",
    "recall": "Recall",
    "ask_user": "Question",
    "present_plan": "Plan",
    "task": "Sub-agent",
    "skill": "Skill",
    "search_tools": "Find a tool",
    "call_tool": "Call a tool",
    "shell": "$",
}
"""The tools of the program; `shell` is a command that the person ran by `!`."""


def verb(tool: str) -> str:
    """Return a verb for a tool; for one that is not the program's own, its name after that of its
    MCP server."""
    if tool.startswith("mcp__"):
        return tool.removeprefix("mcp__").replace("__", ": ", 1)
    return VERBS.get(tool, tool)


def title(tool: str, label: str) -> str:
    """Return the verb and the object of a call."""
    return f"{verb(tool)} {label}".rstrip()

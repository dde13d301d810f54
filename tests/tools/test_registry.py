"""What the model is told of the tools, and todo_write."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from tests.tools.folder import Folder
from tui.core.errors import ToolError
from tui.tools import registry
from tui.tools.ask_user import AskUser
from tui.tools.base import Todo
from tui.tools.mcp.call_tool import CallTool
from tui.tools.mcp.read_mcp_resource import ReadMcpResource
from tui.tools.mcp.search_tools import SearchTools
from tui.tools.present_plan import PresentPlan
from tui.tools.recall import Recall
from tui.tools.registry import builtin_tools
from tui.tools.search_installed import SearchInstalled
from tui.tools.skill import Skill
from tui.tools.submit_result import SubmitResult
from tui.tools.task import SubAgentTool
from tui.tools.todo_write import TodoWrite

NAMES = [
    *("read_file", "write_file", "edit_file", "apply_patch", "list_dir", "find_by_name"),
    *("grep_search", "run_command", "command_status", "web_fetch", "todo_write"),
]


def test_the_tools_stand_in_a_fixed_order() -> None:
    tools = builtin_tools()
    assert list(tools) == NAMES
    assert [tool.name for tool in tools.values()] == NAMES


def test_effects() -> None:
    effects = {name: tool.effect for name, tool in builtin_tools().items()}
    assert [n for n in NAMES if effects[n] == "read"] == [
        *("read_file", "list_dir", "find_by_name", "grep_search"),
    ]
    assert [n for n in NAMES if effects[n] == "write"] == [
        *("write_file", "edit_file", "apply_patch"),
    ]
    assert effects["web_fetch"] == "fetch"
    assert effects["todo_write"] == "none"


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_explains_every_argument(name: str) -> None:
    schema = builtin_tools()[name].schema()
    assert schema["name"] == name
    assert len(schema["description"]) > 60
    described = schema["input_schema"]
    assert described["type"] == "object"
    assert described["additionalProperties"] is False
    assert described["properties"]
    assert "$ref" not in str(schema)

    def check(properties: dict[str, Any]) -> None:
        for argument, value in properties.items():
            assert value.get("description"), f"{name}.{argument} is not explained"
            inner = value.get("items", {}).get("properties")
            if inner:
                check(inner)

    check(described["properties"])


def test_naming_the_tools_loads_nothing_heavy() -> None:
    heavy = {"textual", "anthropic", "tiktoken", "rich", "httpx2", "html_to_markdown"}
    code = "import sys; from tui.tools.registry import builtin_tools; builtin_tools(); "
    code += f"print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


async def test_todos_reach_the_screen(folder: Folder) -> None:
    todo_write = TodoWrite()
    output = await folder.call(
        todo_write,
        todos=[
            {"text": "look", "status": "completed"},
            {"text": "change", "status": "in_progress"},
            {"text": "test", "status": "pending"},
        ],
    )
    assert folder.host.todos == [
        Todo("look", "completed"),
        Todo("change", "in_progress"),
        Todo("test", "pending"),
    ]
    assert output.summary == "1/3 done"
    assert output.content[0]["text"] == (
        "The list has 3 items: 1 completed, 1 in progress, 1 pending."
    )
    assert await folder.text(todo_write, todos=[]) == "The list is empty now."
    assert folder.host.todos == []


async def test_wrong_todos_are_named(folder: Folder) -> None:
    todo_write = TodoWrite()
    with pytest.raises(ToolError, match=r"todos\[0\]\.status"):
        await folder.call(todo_write, todos=[{"text": "a", "status": "done"}])
    with pytest.raises(ToolError, match="todos"):
        await folder.call(todo_write, todos=[{"text": "", "status": "pending"}])


def test_the_names_that_rules_may_have_are_those_of_all_tools() -> None:
    others = (
        AskUser, CallTool, PresentPlan, ReadMcpResource, Recall, SearchInstalled, SearchTools,
        Skill, SubAgentTool, SubmitResult,
    )  # fmt: skip
    assert {
        *NAMES,
        *(tool.name for tool in others),
        "web_search",
        "terminal",
    } == registry.TOOLS.keys()

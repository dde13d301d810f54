"""Public MCP servers through the program: files, memory, git and time.

They are programs of their own that may not be there: each test runs where its server is on the
PATH (npm's `@modelcontextprotocol/server-filesystem` and `server-memory`; `mcp-server-git` and
`mcp-server-time` of PyPI).
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import Program, of_type
from tests.support.server import LoopbackServer

pytestmark = pytest.mark.slow

Call = tuple[str, dict[str, Any], bool, str]

SERVERS: dict[str, tuple[list[str], list[Call]]] = {
    "mcp-server-filesystem": (
        ["."],
        [
            ("write_file", {"path": "new.txt", "content": "grüß"}, False, "wrote"),
            ("read_text_file", {"path": "new.txt"}, False, "grüß"),
            ("read_text_file", {"path": "/etc/passwd"}, True, "Access denied"),
            ("list_directory", {"path": "."}, False, "[FILE] new.txt"),
        ],
    ),
    "mcp-server-memory": (
        [],
        [
            (
                "create_entities",
                {"entities": [{"name": "Ann", "entityType": "person", "observations": ["tea"]}]},
                False,
                "Ann",
            ),
            ("search_nodes", {"query": "tea"}, False, '"person"'),
            ("create_entities", {"entities": 3}, True, "validation"),
        ],
    ),
    "mcp-server-git": (
        [],
        [
            ("git_status", {"repo_path": "."}, False, "On branch"),
            ("git_status", {"repo_path": "/nowhere"}, True, "nowhere"),
        ],
    ),
    "mcp-server-time": (
        ["--local-timezone", "Europe/Lisbon"],
        [
            ("get_current_time", {"timezone": "Asia/Tokyo"}, False, "+09:00"),
            ("get_current_time", {"timezone": "Mars/One"}, True, "Invalid timezone"),
        ],
    ),
}


@pytest.mark.parametrize("name", list(SERVERS))
def test_its_tools_are_called_and_answer(
    name: str,
    holdfast: Program,
    serve: Callable[..., LoopbackServer],
    config: Callable[[str], Path],
) -> None:
    if (command := shutil.which(name)) is None:
        pytest.skip(f"{name} is not on the PATH")
    subprocess.run(["git", "init", "-q"], cwd=holdfast.work, check=True)
    args, calls = SERVERS[name]
    memory = json.dumps(str(holdfast.work / "memory.jsonl"))
    config(
        f"[mcp.one]\ncommand = {json.dumps([command, *args])}\n"
        f"env = {{ MEMORY_FILE_PATH = {memory} }}\n"
    )
    turns = [
        {"tools": [{"name": f"mcp__one__{tool}", "input": given}]} for tool, given, _, _ in calls
    ]
    server = serve(*turns, {"text": "All called."})
    env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    words = ("-p", "call them", "--allow", "mcp__one__*", "--output-format", "stream-json")
    told = holdfast(*words, env=env).events
    finished = of_type(told, "tool_finished")
    for (tool, _, fails, says), event in zip(calls, finished, strict=True):
        assert (event["name"], event["is_error"]) == (f"mcp__one__{tool}", fails), event["text"]
        assert says in event["text"], tool
    assert told[-1]["outcome"] == "done"

"""Every tool of the reference server of the protocol, through the program.

It is a program for node that may not be there: the tests run where `mcp-server-everything` is on
the PATH (npm's package `@modelcontextprotocol/server-everything`), and are skipped elsewhere.
"""

from __future__ import annotations

import base64
import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.program import Program, of_type
from tests.support.server import LoopbackServer

SERVER = shutil.which("mcp-server-everything")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        SERVER is None or shutil.which("node") is None,
        reason="node, or mcp-server-everything on the PATH, is missing",
    ),
]

OFFERED = {
    "echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference",
    "get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource",
    "toggle-simulated-logging", "toggle-subscriber-updates", "trigger-elicitation-request",
    "trigger-long-running-operation", "trigger-url-elicitation",
}  # fmt: skip
"""What it offers to a client that takes questions to the person, but lends no model."""

Call = tuple[str, dict[str, Any], bool, str]

CALLS: list[Call] = [
    ("echo", {"message": "grüß"}, False, "Echo: grüß"),
    ("echo", {"message": 1}, True, "Input validation error"),
    ("echo", {"message": "a", "mesage": "b"}, False, "mcp__all__echo lists no argument `mesage`"),
    ("get-annotated-message", {"messageType": "error", "includeImage": True}, False, "Error: "),
    ("get-env", {}, False, "PATH"),
    ("get-resource-links", {"count": 2}, False, "[resource demo://resource/dynamic/text/2: "),
    ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}, False, "plaintext"),
    ("get-resource-reference", {"resourceType": "Blob", "resourceId": 2}, False, "base64 blob"),
    ("get-structured-content", {"location": "New York"}, False, '"conditions"'),
    ("get-structured-content", {"location": "Mars"}, True, "Invalid option"),
    ("get-sum", {"a": 1, "b": 2}, False, "is 3."),
    ("get-tiny-image", {}, False, "the image you requested"),
    (
        "gzip-file-as-resource",
        {"name": "x.gz", "data": "data:text/plain;base64,aGk=", "outputType": "resource"},
        False,
        "application/gzip: not shown]",
    ),
    ("toggle-simulated-logging", {}, False, "Started simulated"),
    ("toggle-subscriber-updates", {}, False, "Started simulated"),
    ("trigger-elicitation-request", {}, False, "User declined to provide"),
    (
        "trigger-url-elicitation",
        {"url": "https://example.com/", "message": "Sign in."},
        False,
        "User declined to open the URL",
    ),
    ("trigger-long-running-operation", {"duration": 1, "steps": 4}, False, "completed"),
]


@pytest.fixture
def everything(config: Callable[[str], Path]) -> None:
    config(f"[mcp.all]\ncommand = {json.dumps([SERVER])}\n")


def calls_of(calls: list[Call]) -> str:
    """A practice script that makes the calls, one a turn."""
    turns = [
        f'[[turn]]\ntools = [{{name = "mcp__all__{name}", input = {_toml(given)}}}]\n'
        for name, given, _, _ in calls
    ]
    return "".join(turns) + '[[turn]]\ntext = "All called."\n'


def _toml(given: dict[str, Any]) -> str:
    fields = (f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in given.items())
    return f"{{{', '.join(fields)}}}"


def recorded(home: Path) -> list[dict[str, Any]]:
    """The results as the session has them."""
    (path,) = (home / "data" / "sessions").rglob("*.jsonl")
    records = [json.loads(line) for line in path.read_bytes().splitlines()]
    return [record for record in records if record["type"] == "tool_result"]


@pytest.mark.usefixtures("everything")
def test_every_tool_is_called_and_answers(
    holdfast: Program, home: Path, script: Callable[[str], str]
) -> None:
    words = ("--practice", "--practice-script", script(calls_of(CALLS)), "-p", "call them")
    program = Program(holdfast.work, {**holdfast.env, "ANTHROPIC_API_KEY": "sk-ant-secret"})
    told = program.lines(*words, "--allow", "mcp__all__*")
    assert told[-1]["outcome"] == "done"
    assert {name for name, *_ in CALLS} == OFFERED
    finished = of_type(told, "tool_finished")
    for (name, _, fails, says), event in zip(CALLS, finished, strict=True):
        assert (event["name"], event["is_error"]) == (f"mcp__all__{name}", fails)
        assert says in event["text"], name

    progress = "".join(event["text"] for event in of_type(told, "tool_output"))
    assert [f"{step} of 4" for step in range(1, 5)] == progress.split("\n")[-5:-1]

    results = {n: record["content"] for n, record in enumerate(recorded(home))}
    for number in (3, 11):  # the message with an image, and the tiny image
        (image,) = [block for block in results[number] if block["type"] == "image"]
        assert image["source"]["media_type"] == "image/png"
        assert base64.b64decode(image["source"]["data"]).startswith(b"\x89PNG")
    environment = str(results[4])
    assert "HOLDFAST_HOME" not in environment
    assert "sk-ant-secret" not in environment


@pytest.mark.usefixtures("everything")
def test_a_model_is_offered_what_can_be_called_and_takes_the_image(
    holdfast: Program, serve: Callable[..., LoopbackServer]
) -> None:
    """The strict server refuses any request that the API would."""
    image: dict[str, Any] = {"tools": [{"name": "mcp__all__get-tiny-image", "input": {}}]}
    server = serve(image, {"text": "I have seen it."})
    env = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "sk-ant-test"}
    done = holdfast("-p", "look", "--allow", "mcp__all__*", env=env)
    assert done.stdout == "I have seen it.\n"
    asked = server.requests[-1].body
    mcp = {tool["name"] for tool in asked["tools"] if tool["name"].startswith("mcp__")}
    assert mcp == {f"mcp__all__{name}" for name in OFFERED}  # no tasks, no `sampling`
    (result,) = [b for b in asked["messages"][-1]["content"] if b["type"] == "tool_result"]
    assert "image" in [block["type"] for block in result["content"]]


@pytest.mark.usefixtures("everything")
def test_a_long_call_is_stopped_and_closed(
    holdfast: Program, home: Path, script: Callable[[str], str]
) -> None:
    slow: list[Call] = [("trigger-long-running-operation", {"duration": 50, "steps": 50}, True, "")]
    words = ("--practice", "--practice-script", script(calls_of(slow)), "-p", "wait for it")
    rules = ("--allow", "mcp__all__*", "--output-format", "stream-json")
    with holdfast.started(*words, *rules) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "1 of 50" in line:
                break
        process.send_signal(signal.SIGINT)
        rest = [json.loads(line) for line in process.stdout]
        assert process.wait(PATIENCE_S) == 130
    (finished,) = of_type(rest, "tool_finished")
    assert finished["is_error"]
    (result,) = recorded(home)
    assert result["is_error"]

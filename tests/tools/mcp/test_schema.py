"""Schemas and arguments of MCP tools, as the API and the protocol take them."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import Tool

from tests.support.call_host import UNCALLED
from tui.tools.mcp.tool import McpTool

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
URL = {"type": "object", "properties": {"url": {"$ref": "#/$defs/url"}}}
DEFINITIONS = {"url": {"type": "string"}}


def made(schema: dict[str, Any]) -> McpTool:
    return McpTool("s", Tool(name="t", input_schema=schema), UNCALLED)


@pytest.mark.parametrize("choice", ["oneOf", "anyOf", "allOf"])
def test_22_a_choice_at_the_top_is_wrapped(choice: str) -> None:
    tool = made({choice: [PATH, URL], "$defs": DEFINITIONS})
    assert tool.schema()["input_schema"] == {
        "type": "object",
        "properties": {"arguments": {choice: [PATH, URL]}},
        "required": ["arguments"],
        "$defs": DEFINITIONS,
    }
    assert tool.parse({"arguments": {"path": "a"}}).arguments == {"path": "a"}
    assert tool.parse({"path": "a"}).arguments == {"path": "a"}


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        (PATH, PATH),
        ({}, {"type": "object"}),
        ({"type": "array", "items": {}}, {"type": "object"}),
        ({"properties": {"arguments": {}}}, {"type": "object", "properties": {"arguments": {}}}),
    ],
)
def test_22_every_other_schema_is_an_object(schema: dict[str, Any], taken: object) -> None:
    tool = made(schema)
    assert tool.schema()["input_schema"] == taken
    assert tool.parse({"arguments": {"a": 1}}).arguments == {"arguments": {"a": 1}}


def test_45_half_a_character_does_not_reach_the_server() -> None:
    given = {"a\ud800": ["x\udc00", 1, None, {"b": "\U0001f600"}]}
    assert made({}).parse(given).arguments == {"a\ufffd": ["x\ufffd", 1, None, {"b": "\U0001f600"}]}

"""Schemas and arguments of MCP tools, as the API and the protocol take them."""

from __future__ import annotations

import re
from typing import Any, cast

import pytest
from mcp_types import Tool

from tests.support.call_host import UNCALLED
from tests.tools.folder import Folder
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput
from tui.tools.base import CallHost
from tui.tools.mcp.tool import McpTool

PATH = {"type": "object", "properties": {"path": {"type": "string"}}}
URL = {"type": "object", "properties": {"url": {"$ref": "#/$defs/url"}}}
DEFINITIONS = {"url": {"type": "string"}}


class Answering:
    """A server that does what it is asked."""

    async def call(self, tool: str, arguments: dict[str, Any], host: CallHost) -> ToolOutput:
        return ToolOutput.text("done")


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


LISTED: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "$dry": {"type": "boolean"}},
}


def test_an_argument_that_the_schema_forbids_is_refused() -> None:
    tool = made(LISTED | {"additionalProperties": False})
    with pytest.raises(ToolError, match=r"has no argument `dryrun`\. Nothing was run") as caught:
        tool.parse({"path": "a", "dryrun": True})
    assert caught.value.hint == "Its arguments: path, $dry."
    safe = next(name for name in tool.schema()["input_schema"]["properties"] if name != "path")
    assert tool.parse({"path": "a", safe: True}).arguments == {"path": "a", "$dry": True}


@pytest.mark.parametrize(
    ("more", "noted"),
    [
        ({}, True),
        ({"additionalProperties": True}, False),
        ({"additionalProperties": {"type": "boolean"}}, False),
        ({"patternProperties": {"^d": {}}}, False),
        ({"additionalProperties": False, "patternProperties": {"^d": {}}}, False),
        ({"anyOf": [PATH, URL], "additionalProperties": False}, False),
    ],
)
async def test_an_argument_that_the_schema_does_not_list_is_noted(
    folder: Folder, more: dict[str, Any], noted: bool
) -> None:
    tool = McpTool("s", Tool(name="t", input_schema=LISTED | more), Answering())
    assert await folder.text(tool, path="a") == "done"
    text = await folder.text(tool, path="a", dryrun=True, quiet=1)
    note = "\n[mcp__s__t lists no arguments `dryrun`, `quiet`: the server may have ignored it.]"
    assert text == "done" + note * noted


def test_45_half_a_character_does_not_reach_the_server() -> None:
    given = {"a\ud800": ["x\udc00", 1, None, {"b": "\U0001f600"}]}
    assert made({}).parse(given).arguments == {"a\ufffd": ["x\ufffd", 1, None, {"b": "\U0001f600"}]}


ODD_NAMES: dict[str, Any] = {
    "type": "object",
    "properties": {
        "$filter": {"type": "string", "default": "$filter"},
        "页面": {"$ref": "#/$defs/page"},
        "plain": {"anyOf": [{"properties": {"a b": {}}, "required": ["a b"]}, {"type": "null"}]},
        "properties": {"type": "array", "items": {"properties": {"n" * 65: {}, "": {}}}},
    },
    "required": ["$filter", "plain"],
    "$defs": {"page": {"type": "object", "properties": {"page[size]": {"title": "Size"}}}},
    "dependentRequired": {"页面": ["$filter"]},
}


def names_in(value: object) -> set[str]:
    """The names of all arguments in a schema."""
    if isinstance(value, list):
        return set[str]().union(*map(names_in, cast("list[object]", value)))
    if not isinstance(value, dict):
        return set()
    fields = cast("dict[str, object]", value)
    own = fields.get("properties")
    here = cast("dict[str, object]", own) if isinstance(own, dict) and "type" not in own else {}
    return set(here).union(*map(names_in, fields.values()))


def test_names_that_the_api_refuses_are_exchanged_and_come_back() -> None:
    tool = made(ODD_NAMES)
    schema = tool.schema()["input_schema"]
    names = names_in(schema)
    assert len(names) == 8
    assert all(re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", name) for name in names), names
    safe = next(name for name in names if name.startswith("_filter_"))
    page = next(name for name in names if name.startswith("___"))
    size = next(name for name in names if name.startswith("page_size__"))
    blank = next(name for name in schema["properties"]["plain"]["anyOf"][0]["properties"])
    assert schema["required"] == [safe, "plain"]
    assert schema["dependentRequired"] == {page: [safe]}
    assert schema["properties"][safe] == {
        "title": "$filter",
        "type": "string",
        "default": "$filter",
    }
    assert schema["$defs"]["page"]["properties"] == {size: {"title": "Size"}}
    assert schema["properties"]["plain"]["anyOf"][0]["required"] == [blank]
    given = {safe: "x", page: {size: 1}, "plain": {blank: [{safe: 2}]}, "$filter": "kept"}
    assert tool.parse({**given}).arguments == {
        "$filter": "kept", "页面": {"page[size]": 1}, "plain": {"a b": [{"$filter": 2}]},
    }  # fmt: skip


def test_exchanged_names_do_not_collide() -> None:
    odd: dict[str, Any] = {
        "type": "object",
        "properties": {name: {} for name in ("a b", "a/b", "a_b", "a:b")},
    }
    assert len(made(odd).schema()["input_schema"]["properties"]) == 4
    assert made(odd).schema() == made(odd).schema(), "the request's bytes stay the same"


def test_who_guards_a_call_sees_the_names_that_the_server_gets() -> None:
    """A guard that looks for `$filter` would find nothing under the name that the API has."""
    tool = made(ODD_NAMES)
    safe = next(name for name in tool.schema()["input_schema"]["properties"] if "filter" in name)
    params = tool.parse({safe: "x"})
    assert tool.input_shown(params, {safe: "x"}) == {"$filter": "x"}
    assert tool.parse({"$filter": "x"}) == params, "as a hook gives it back"
    plain = made(PATH)
    assert plain.input_shown(plain.parse({"path": "a"}), {"path": "a"}) == {"path": "a"}

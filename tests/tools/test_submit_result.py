"""Results that have to fit a schema, and functions as tools: what is refused, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tui.core.errors import ToolError, UsageError
from tui.tools.function_tool import FunctionTool
from tui.tools.submit_result import SubmitResult


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ([], "isn't an object"),
        ("text", "isn't an object"),
        ({"type": "nothing"}, "wrong at"),
        ({"type": "object", "properties": 3}, "wrong at"),
    ],
)
def test_what_is_no_schema_is_refused(schema: object, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        SubmitResult(schema)


@pytest.mark.parametrize(
    ("schema", "given", "value"),
    [
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": 3}, {"n": 3}),
        ({"type": "array", "items": {"type": "integer"}}, {"result": [1, 2]}, [1, 2]),
        ({"enum": ["yes", "no"]}, {"result": "yes"}, "yes"),
        (
            {"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer", "minimum": 1}}},
            {"result": 1},
            1,
        ),
    ],
)
def test_a_result_that_fits_is_taken_as_it_is(schema: object, given: object, value: object) -> None:
    tool = SubmitResult(schema)
    assert tool.schema()["input_schema"]["type"] == "object"
    assert tool.parse(given).value == value


def test_every_fault_is_named_with_its_place() -> None:
    item = {"type": "object", "required": ["line"], "properties": {"line": {"minimum": 1}}}
    tool = SubmitResult({"type": "array", "items": item})
    with pytest.raises(ToolError) as raised:
        tool.parse({"result": [{"line": 0}, {}]})
    assert "$[0].line: 0 is less than the minimum of 1." in raised.value.message
    assert "$[1]: 'line' is a required property." in raised.value.message


def test_no_schema_is_fetched_from_anywhere() -> None:
    tool = SubmitResult({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}})
    with pytest.raises(ToolError, match="refers to something"):
        tool.parse({"a": 1})


def test_definitions_stay_where_references_look_for_them() -> None:
    schema = {"anyOf": [{"$ref": "#/$defs/n"}], "$defs": {"n": {"type": "integer"}}}
    assert SubmitResult(schema).schema()["input_schema"]["$defs"] == {"n": {"type": "integer"}}


def positional(a: int, /) -> None: ...
def many(*names: str) -> None: ...
def odd(a: Callable[[], int]) -> None: ...


@pytest.mark.parametrize("function", [positional, many, odd, lambda: 3])
def test_a_function_that_cannot_be_a_tool_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(UsageError):
        FunctionTool(function)

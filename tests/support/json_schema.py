"""Whether a value fits a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator

_VALIDATOR: Any = Draft202012Validator  # its types are known in part only


def check_schema(schema: dict[str, Any]) -> None:
    """Raise SchemaError for a schema that is none."""
    _VALIDATOR.check_schema(schema)


def fits(schema: dict[str, Any], value: object) -> bool:
    return bool(_VALIDATOR(schema).is_valid(value))


def objects(schema: object) -> Iterator[dict[str, Any]]:
    """All objects in a schema."""
    if isinstance(schema, dict):
        found = cast("dict[str, Any]", schema)
        yield found
        for value in found.values():
            yield from objects(value)
    elif isinstance(schema, list):
        for one in cast("list[object]", schema):
            yield from objects(one)


def check_event(event: dict[str, Any]) -> None:
    """Raise AssertionError for a line of stream-json or `run --json` that its schema does not
    have."""
    part = _events()[event["type"]]
    for error in part.iter_errors(event):
        raise AssertionError(f"{event}: {error.message}")


@cache
def _events() -> dict[str, Any]:
    """The schema of each event, by its type."""
    from tui.cli.schema import events  # noqa: PLC0415 - for the tests that read them

    schema = events()
    return {
        part["properties"]["type"]["enum"][0]: _VALIDATOR({**part, "$defs": schema["$defs"]})
        for part in schema["$defs"].values()
        if "enum" in part.get("properties", {}).get("type", {})
    }

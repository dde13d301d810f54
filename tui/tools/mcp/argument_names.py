"""Names of arguments that the API refuses, exchanged for ones that it takes, and back again.

The API wants up to 64 letters of ASCII, digits, `_`, `.` and `-` for each property of a tool's
schema, also inside of others; servers name theirs as they like (`$filter`, `page[size]`, words of
any language). A safe name ends in a hash of the own one, so that it is the same everywhere and no
other name's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from tui.core.messages import is_object

_SAFE: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_ODD: Final = re.compile(r"[^a-zA-Z0-9_.-]")
_MAX: Final = 64
_HASH: Final = 8
_BY_NAME: Final = frozenset({"properties", "dependentSchemas", "dependentRequired", "dependencies"})
"""Keywords whose keys are names of arguments."""
_DEFINITIONS: Final = frozenset({"$defs", "definitions", "patternProperties"})
"""Keywords whose keys are other names, and whose values are schemas."""
_VALUES: Final = frozenset({"default", "examples", "enum", "const"})
"""Keywords that hold values, not schemas: the server takes its own names as well."""


def with_safe_names(schema: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A schema whose names the API takes, and the own names by those that were exchanged."""
    names: dict[str, str] = {}
    return _schema(schema, names), names


def with_own_names(value: object, names: Mapping[str, str]) -> object:
    """Arguments as the server knows them."""
    if not names:
        return value
    match value:
        case dict():
            fields = cast("dict[str, object]", value).items()
            return {names.get(name, name): with_own_names(one, names) for name, one in fields}
        case list():
            return [with_own_names(one, names) for one in cast("list[object]", value)]
        case _:
            return value


def _schema(schema: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _BY_NAME and is_object(value):
            changed[keyword] = {
                _safe(name, names): _names_of(one) or _part(one, names)
                for name, one in value.items()
            }
            if keyword == "properties":
                changed[keyword] = {
                    name: _titled(one, names.get(name)) for name, one in changed[keyword].items()
                }
        elif keyword in _DEFINITIONS and is_object(value):
            changed[keyword] = {name: _part(one, names) for name, one in value.items()}
        elif keyword == "required" and isinstance(value, list):
            changed[keyword] = _names_of(cast("object", value))
        elif keyword in _VALUES:
            changed[keyword] = value
        else:
            changed[keyword] = _part(value, names)
    return changed


def _part(value: object, names: dict[str, str]) -> object:
    if is_object(value):
        return _schema(cast("Mapping[str, Any]", value), names)
    if isinstance(value, list):
        return [_part(one, names) for one in cast("list[object]", value)]
    return value


def _names_of(listed: object) -> list[object]:
    """The names in a list; none, where it is no list."""
    given = cast("list[object]", listed) if isinstance(listed, list) else []
    return [_safe(one, {}) if isinstance(one, str) else one for one in given]


def _titled(schema: object, own_name: str | None) -> object:
    """The schema of a renamed argument, which tells the model the name that it has."""
    if own_name is None or not is_object(schema):
        return schema
    return {"title": own_name, **cast("Mapping[str, Any]", schema)}


def _safe(name: str, names: dict[str, str]) -> str:
    """The name for the API; where it is another one, `names` gets it."""
    if _SAFE.fullmatch(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_HASH]
    safe = f"{_ODD.sub('_', name)[: _MAX - _HASH - 1]}_{digest}"
    names[safe] = name
    return safe

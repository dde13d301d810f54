"""Checks what a tool promised of its structured output against what came.

The answer is used in any case. Patterns are not tried: one of the server's own can hold the program
for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from tui.core.messages import is_object

NAMED_MAX: Final = 3
_DEEP: Final = 4
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int, float),
    "null": (type(None),),
}


def broken_promises(schema: Mapping[str, Any], value: object) -> list[str]:
    """Name the places where a value isn't what the schema says, some of them."""
    if value is None:
        return ["its outputSchema promises structured output, but there is none"]
    faults: list[str] = []
    for fault in _faults(schema, value, "", _DEEP):
        faults.append(f"its structured output breaks its outputSchema: {fault}")
        if len(faults) == NAMED_MAX:
            break
    return faults


def _faults(schema: object, value: object, place: str, deep: int) -> Iterator[str]:
    if not is_object(schema) or not deep:
        return
    where = place or "the whole"
    given = schema.get("type")
    kinds = [given] if isinstance(given, str) else given
    if isinstance(kinds, list) and not _is_one_of(value, cast("list[object]", kinds)):
        yield f"{where} isn't {' or '.join(map(str, cast('list[object]', kinds)))}"
        return
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        required = schema.get("required")
        for name in cast("Sequence[object]", required) if isinstance(required, list) else ():
            if name not in fields:
                yield f"{where} lacks {name}"
        properties = schema.get("properties")
        for name, inner in properties.items() if is_object(properties) else ():
            if name in fields:
                yield from _faults(inner, fields[name], f"{place}.{name}".lstrip("."), deep - 1)
    elif isinstance(value, list):
        for place_of, one in enumerate(cast("list[object]", value)):
            yield from _faults(schema.get("items"), one, f"{place}[{place_of}]", deep - 1)


def _is_one_of(value: object, kinds: Sequence[object]) -> bool:
    known = [_TYPES.get(str(kind)) for kind in kinds]
    if None in known:
        return True
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, float) and "number" not in kinds and not value.is_integer():
        return False
    return any(isinstance(value, types) for types in known if types)

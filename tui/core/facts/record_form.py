"""The form of a durable fact's fields in its record, and their reading from one.

Any program may have written a record: what is missing or has another type than the field is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeAlias, Union, get_args, get_origin

import msgspec
from msgspec.structs import FieldInfo

from tui.core.dataclass import dataclass
from tui.core.messages import Block, Usage, blocks_of, list_of, object_of, string_of

KEPT: Final = "kept"
"""Marks the type of a field that is written and not published."""

Read: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The fields of a class: those `told`, as they are named outside; those `written`, as (key,
    field, whether an empty one is left out); and of each field in its place the key (`keys`; ""
    where it is in no record) and how to `read` it: the type of a value that is taken as it is, what
    reads others, and what stands for none. `hides` is True if any isn't published."""

    told: tuple[tuple[str, str], ...]
    written: tuple[tuple[str, str, bool], ...]
    keys: tuple[str, ...]
    read: tuple[tuple[type, Read, Any], ...]
    hides: bool


@cache
def form_of(kind: type[Any]) -> RecordForm:
    """The form of a class of durable facts."""
    fields = {one.name: one for one in msgspec.structs.fields(kind)}
    written: list[tuple[str, str, bool]] = []
    for word in kind.written.split() or fields:
        key, _, name = word.removesuffix("?").partition("=")
        written.append((key, name or key, word.endswith("?")))
    keys = {name: key for key, name, _ in written}
    shown = [one for one in fields.values() if not _is_hidden(one)]
    return RecordForm(
        told=tuple((one.name, one.encode_name) for one in shown),
        written=tuple(written),
        keys=tuple(keys.get(name, "") for name in fields),
        read=tuple(_reading(one, name in keys) for name, one in fields.items()),
        hides=len(shown) < len(fields),
    )


def _reading(field: FieldInfo, recorded: bool) -> tuple[type, Read, Any]:
    """Choose the reader of a field; one that is not `recorded` is in no record."""
    read, kind = _reader(field.type), _bare(field.type)
    if not recorded and not field.required:
        made = field.default_factory
        empty = field.default if made is msgspec.NODEFAULT else made()
    else:
        empty = read(None)
    return kind if kind in {str, int, float, bool, dict} else object, read, empty


def plain(value: object) -> Any:
    """The value of a field as JSON has it."""
    if isinstance(value, tuple):
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON
    return value.to_json() if isinstance(value, Usage) else value


def _is_hidden(field: FieldInfo) -> bool:
    return KEPT in getattr(field.type, "__metadata__", ())


def _any(value: object) -> object:
    return value


def _maybe(read: Read, null: bool, value: object) -> object:
    known = read(value)
    return msgspec.UNSET if known is None and not null else known


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _objects(value: object) -> tuple[dict[str, Any], ...]:
    return tuple(map(object_of, list_of(value)))


def _texts(value: object) -> tuple[dict[str, str], ...]:
    return tuple({k: string_of(v) for k, v in one.items()} for one in _objects(value))


_READERS: Final[dict[object, Read]] = {
    str: _text,
    int: _whole,
    float: _number,
    bool: lambda value: value is True,
    Usage: Usage.from_json,
    Sequence[Block]: blocks_of,
    Sequence: list_of,
    list: list_of,
    dict: object_of,
    tuple[dict[str, Any], ...]: _objects,
    tuple[dict[str, str], ...]: _texts,
    tuple[str, ...]: lambda value: tuple(map(string_of, list_of(value))),
}
_MAYBE: Final[dict[object, Read]] = {
    str: lambda value: value if isinstance(value, str) else None,
    int: lambda value: value if isinstance(value, int) else None,
    float: lambda value: float(value) if isinstance(value, int | float) else None,
    Usage: lambda value: Usage.from_json(value) if value else None,
}


def _reader(type_: Any) -> Read:
    """Choose the reader of a type."""
    if hasattr(type_, "__metadata__"):
        return _reader(get_args(type_)[0])
    origin = get_origin(type_)
    if origin in {Union, UnionType}:
        kinds = [one for one in get_args(type_) if one not in {NoneType, msgspec.UnsetType}]
        return partial(_maybe, _MAYBE.get(_bare(kinds[0]), _any), NoneType in get_args(type_))
    return _READERS.get(type_) or _READERS.get(_bare(type_), _any)


def _bare(type_: Any) -> Any:
    """A type without its arguments; of names, which are given as literals, their type; of one that
    may be nothing else, that."""
    if hasattr(type_, "__metadata__"):
        return _bare(get_args(type_)[0])
    origin = get_origin(type_)
    if origin in {Union, UnionType}:
        return _bare(get_args(type_)[0])
    return str if origin is Literal else origin or type_

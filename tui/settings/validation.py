"""Error messages for a configuration: which key is wrong, and what is allowed there.

The schema in `tui.core.config` decides what is valid; only if something is not, this module looks
for the key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias, cast, get_args

import msgspec
from msgspec import inspect as schema

from tui.core import keymap
from tui.core.config import Config
from tui.core.errors import ConfigError
from tui.core.redaction import mask

Key: TypeAlias = tuple[str, ...]
"""A key of the configuration with those of the tables around it: `("retry", "max_attempts")`."""

Fault: TypeAlias = tuple[Key, str, str]
"""A wrong key, what is wrong with it, and a hint."""


def check(
    merged: Mapping[str, Any],
    layer: Mapping[str, Any],
    source: str,
    *,
    kind: type[Config] = Config,
    at: Key = (),
) -> None:
    """Raise ConfigError if `merged` is invalid, naming the key of `layer` that is wrong. `at` is
    the table that the layer is in the file."""
    try:
        msgspec.convert(merged, kind)
    except msgspec.ValidationError as error:
        fault = next(_faults(layer, kind, ()), None) or _delays(merged, layer)
        if fault is None:
            raise ConfigError(source, dotted(at), f"is not valid: {error}.") from None
        path, message, hint = fault
        raise ConfigError(source, dotted((*at, *path)), message, hint=hint) from None
    here = layer.get("keys", {})
    below = {action: keys for action, keys in merged.get("keys", {}).items() if action not in here}
    for action, message, hint in keymap.faults(below | here):  # what comes later is at fault
        raise ConfigError(source, dotted((*at, "keys", action)), message, hint=hint)


def dotted(path: Key) -> str:
    """A key as TOML writes it; anything but a bare key is quoted, control characters escaped."""
    return ".".join(
        part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part) for part in path
    )


def _faults(value: object, kind: Any, path: Key) -> Iterator[Fault]:
    """Yield the places where a value does not fit a type of the schema, innermost first."""
    info, _ = plain(kind)
    match info:
        case schema.StructType(cls=section):
            from tui.settings.fields import fields_of  # noqa: PLC0415 - only on error

            fields = fields_of(section)
            for key, item in _items(value):
                if key in fields:
                    yield from _faults(item, fields[key].type, (*path, key))
                else:
                    yield (*path, key), "isn't a known key.", _suggest(key, path, fields)
        case schema.DictType():
            for key, item in _items(value):
                yield from _faults(item, get_args(kind)[1], (*path, key))
        case schema.VarTupleType() if isinstance(value, list | tuple):
            for item in cast("list[object]", value):
                yield from _faults(item, get_args(kind)[0], path)
        case _:
            pass
    problem = _problem(cast("object", value), kind)
    if problem and not (isinstance(info, schema.StructType) and isinstance(value, dict)):
        shown = "This value" if _is_private(path) else _show(cast("object", value))
        yield path, f"{shown} isn't allowed; it must be {allowed(kind)}.", ""
    elif problem and path[:1] == ("mcp",):  # a rule over two keys; that of [retry] is _delays
        yield path, f"{problem}.", ""


def allowed(kind: Any) -> str:
    """The values that a type of the schema allows, in words that follow "it must be"."""
    info, description = plain(kind)
    return description or _allowed(info)


def plain(kind: Any) -> tuple[schema.Type, str]:
    """A type of the schema without its description, and the description."""
    info = schema.type_info(kind)
    if not isinstance(info, schema.Metadata):
        return info, ""
    extra = cast("dict[str, object]", info.extra_json_schema or {})
    return info.type, str(extra.get("description", ""))


def _problem(value: object, kind: Any) -> str:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _items(value: object) -> Iterable[tuple[str, object]]:
    return cast("dict[str, object]", value).items() if isinstance(value, dict) else ()


def _delays(merged: Mapping[str, Any], layer: Mapping[str, Any]) -> Fault | None:
    """The rule that the first retry delay is at most the longest: the keys may be in two files."""
    retry: Mapping[str, Any] = merged.get("retry", {})
    here: Mapping[str, Any] = layer.get("retry", {})
    default = Config().retry
    longest = retry.get("max_delay_ms", default.max_delay_ms)
    first = retry.get("initial_delay_ms", default.initial_delay_ms)
    if longest >= first:
        return None
    if "max_delay_ms" in here:
        return (
            ("retry", "max_delay_ms"),
            f"{longest} isn't allowed; it must be at least retry.initial_delay_ms ({first}).",
            "",
        )
    return (
        ("retry", "initial_delay_ms"),
        f"{first} isn't allowed; it must be at most retry.max_delay_ms ({longest}).",
        "Set retry.max_delay_ms too; it may be up to 300000.",
    )


def _allowed(info: Any) -> str:
    match info:
        case schema.IntType():
            return "a whole number" + _bounds(info.gt, info.ge, info.le)
        case schema.FloatType():
            return "a number" + _bounds(info.gt, info.ge, info.le)
        case schema.BoolType():
            return "true or false"
        case schema.LiteralType(values=values):
            return " or ".join(sorted(json.dumps(v) for v in values))
        case schema.StrType(min_length=1):
            return "text in quotes, not empty"
        case schema.StrType():
            return "text in quotes"
        case schema.VarTupleType():
            return "a list in [brackets]"
        case _:
            return "a table"


def _bounds(gt: float | None, ge: float | None, le: float | None) -> str:
    lower = f"above {gt:g}" if gt is not None else f"of at least {ge:g}" if ge is not None else ""
    upper = f"at most {le:.15g}" if le is not None else ""
    return " " + " and ".join(part for part in (lower, upper) if part) if lower or upper else ""


def _is_private(path: Key) -> bool:
    """True if a value may be a key: in a header or a variable of an MCP server."""
    return path[:1] == ("mcp",) and path[2:3] in {("env",), ("headers",)}


def _show(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    text = mask(json.dumps(value, default=str))[0]
    return text if len(text) <= 60 else text[:59] + "…"


def _suggest(key: str, path: Key, siblings: Mapping[str, Any]) -> str:
    """The key that was probably meant: one of this table, or the same name in another."""
    from difflib import get_close_matches  # noqa: PLC0415 - only on error

    near = get_close_matches(key, siblings, n=1)
    if near:
        return f"Did you mean {dotted((*path, near[0]))}?"
    from tui.settings.fields import fields_of  # noqa: PLC0415 - as above

    for name, field in fields_of(Config).items():
        if field.section and key in field.section.__struct_fields__:
            return f"Did you mean {name}.{key}?"
    return f"Available: {', '.join(sorted(siblings))}."

"""Values of settings as text: how they are shown, how they are typed, and what was meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from tui.core.redaction import MASK, mask
from tui.settings.validation import dotted

if TYPE_CHECKING:
    from tui.settings.schema import Setting
    from tui.settings.toml_edit import Key, Value

_LOGIN: Final = re.compile(r"(?<=://)[^\s/?#@]*@")
_GROUPED: Final = re.compile(r"(?<=\d)[,_ ](?=\d)")


def told(value: object) -> str:
    """A value in one line, without what is not to be shown."""
    match value:
        case None:
            return "—"
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.12g}"
        case dict():
            entries = cast("dict[str, object]", value).items()
            return ", ".join(f"{dotted((name,))} {told(one)}" for name, one in entries) or "none"
        case list() | tuple():
            return ", ".join(told(one) for one in cast("list[object]", value)) or "none"
        case _:
            return " ".join(safe(str(value)).split()) or '""'


def safe(text: str) -> str:
    """A text without keys of known shapes, and an address without the login in it."""
    return _LOGIN.sub(f"{MASK}@", mask(text)[0])


def typed(value: Any) -> str:
    """A value as it stands in a field; lists and tables of numbers have a line for each entry."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dict():
            entries = cast("dict[str, object]", value).items()
            return "\n".join(f"{dotted((name,))} = {one}" for name, one in entries)
        case list() | tuple():
            return "\n".join(str(one) for one in cast("list[object]", value))
        case float():
            return f"{value:.12g}"
        case _:
            return str(value)


def changes(row: Setting, text: str) -> dict[Key, Value | None]:
    """What a typed text would write. One that does not fit is passed on as it is, for the check
    of the configuration to refuse."""
    match row.kind:
        case "switch":
            return {row.key: text == "true"}
        case "number":
            return {row.key: _number(text, whole=isinstance(row.default, int))}
        case "list":
            return {row.key: [line.strip() for line in text.splitlines() if line.strip()]}
        case "entries":
            return dict(_entries(row, text))
        case _:
            return {row.key: text.strip()}


def removal(row: Setting) -> dict[Key, Value | None]:
    """What puts a setting back to its default, as far as the user's own file goes."""
    if row.kind != "entries":
        return {row.key: None}
    return {(*row.key, name): None for name in cast("Mapping[str, object]", row.own or {})}


def _entries(row: Setting, text: str) -> Iterator[tuple[Key, Value | None]]:
    wanted: dict[str, Value] = {}
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = line.rpartition("=")
        name, value = (name, value) if equals else (line, "")
        wanted[name.strip().strip("\"'")] = _number(value, whole=True)
    for (*_, name), nothing in removal(row).items():
        if name not in wanted:
            yield (*row.key, name), nothing
    for name, number in wanted.items():
        yield (*row.key, name), number


def _number(text: str, *, whole: bool) -> int | float | str:
    digits = _GROUPED.sub("", text.strip())
    for kind in (int, float) if whole else (float,):
        try:
            return kind(digits)
        except ValueError:
            continue
    return text.strip()

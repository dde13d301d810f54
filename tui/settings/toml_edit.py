"""Sets or removes one key of a TOML text, keeping its comments and its layout. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from itertools import chain
from typing import Any, Final, TypeAlias, cast

from tui.core.toml_files import parse_toml
from tui.settings.layers import Table
from tui.settings.validation import Key, dotted

Value: TypeAlias = str | int | float | bool | list[str]

LONG: Final = 80
"""Characters of a new list above which each entry gets a line of its own."""

_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


class LayoutError(Exception):
    """The text cannot be changed by a machine without losing its layout."""


def rewritten(text: str, key: Key, value: Value | None) -> str:
    """The text with one key set or removed; all else in it stays as it is. Raises LayoutError."""
    import tomlkit  # noqa: PLC0415 - only where something is written
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    wanted = parse_toml(text)
    new = not _has(wanted, key)
    put(wanted, key, value)
    try:
        if new and value is not None:
            with_line = _with_line(text, key, f"{dotted(key[-1:])} = {_literal(value)}")
            if _means(with_line, wanted):
                return with_line
        document: Any = tomlkit.parse(text)
        if value is None and not _has(wanted, key[:-1]):
            without = _without_header(document, key)
            if _means(without, wanted):
                return without
        for layout in chain((text,), _with_last_comma(text, key)):
            document = tomlkit.parse(layout)
            put(document, key, value)
            changed = tomlkit.dumps(document)
            if _means(changed, wanted):
                return changed
    except TOMLKitError as error:
        raise LayoutError(str(error)) from error
    raise LayoutError(f"{dotted(key)} would get another value")


def put(table: MutableMapping[str, Any], key: Key, value: Value | None) -> None:
    """Set a key in a table, plain or of tomlkit, or remove it. A value that is equal already is
    not touched, nor its comments; a table within a section is removed with its last key."""
    *sections, last = key
    outer, above = table, ""
    for section in sections:
        if value is None and section not in table:
            return
        outer, above = table, section
        inner = table.setdefault(section, {})
        if not isinstance(inner, MutableMapping):  # a new one, as what stands there was checked
            raise TypeError(f"{section} isn't a table")
        table = cast("MutableMapping[str, Any]", inner)
    old: object = table.get(last)
    if value is None:
        if last not in table:
            return
        table.pop(last)
        if (
            len(sections) > 1 and not table and sections[:-1] != ["profile"]
        ):  # a model's prices, say: all of them 0 is no default
            outer.pop(above)
    elif isinstance(old, list) and isinstance(value, list):
        _align(cast("list[str]", old), value)
    elif old != value or isinstance(old, bool) != isinstance(value, bool):
        table[last] = value


def same(one: Table, other: Table) -> bool:
    """True if two tables have the same values. Empty sections make no difference."""
    return _filled(one) == _filled(other)


def _without_header(document: Any, key: Key) -> str:
    """The text without the last key of a table, and without its header; its comments stay."""
    import tomlkit  # noqa: PLC0415 - as above

    table = document
    for section in key[:-1]:
        table = table.get(section, {})
    table.pop(key[-1], None)
    lines = _LINES.findall(tomlkit.dumps(document))
    return "".join(line for line in lines if _header(line) != key[:-1])


def _with_last_comma(text: str, key: Key) -> Iterator[str]:
    """Yield the text with a comma behind the last entry of a list, for each place where that entry
    may be: tomlkit sets none before a new entry if a comment follows the last one."""
    import tomlkit  # noqa: PLC0415 - as above
    from tomlkit.items import Array, Item  # noqa: PLC0415 - as above

    values: Any = tomlkit.parse(text)
    for part in key:
        values = values.get(part, {})
    if not isinstance(values, Array) or not values:
        return
    before, listed, after = text.partition(values.as_string())
    entry = cast("Item", values[-1]).as_string()
    end = len(listed)
    while (end := listed.rfind(entry, 0, end)) >= 0:
        behind = end + len(entry)
        yield f"{before}{listed[:behind]},{listed[behind:]}{after}"


def _align(old: list[str], new: list[str]) -> None:
    """Make a list equal to another without touching entries of both, nor their comments."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - only where something is written

    steps = SequenceMatcher(None, [str(entry) for entry in old], new, autojunk=False).get_opcodes()
    for what, begin, end, first, last in reversed(steps):
        if what == "equal":
            continue
        both = min(end - begin, last - first)
        for offset in range(both):
            old[begin + offset] = new[first + offset]
        for index in reversed(range(begin + both, end)):
            old.pop(index)
        for offset, entry in enumerate(new[first + both : last]):
            old.insert(begin + both + offset, entry)


def _has(table: Table, key: Key) -> bool:
    value: object = table
    for part in key:
        if not isinstance(value, dict) or part not in value:
            return False
        value = cast("object", value[part])
    return True


def _filled(table: Table) -> Table:
    return {name: value for name, value in table.items() if value != {}}


def _means(text: str, wanted: Table) -> bool:
    try:
        return same(parse_toml(text), wanted)
    except ValueError:
        return False


def _literal(value: Value) -> str:
    import tomlkit  # noqa: PLC0415 - only where something is written

    if not isinstance(value, list):
        return tomlkit.item(value).as_string()
    entries: Any = tomlkit.array()
    for entry in value:
        entries.append(entry)
    text = entries.as_string()
    return text if len(text) <= LONG else entries.multiline(True).as_string()


def _with_line(text: str, key: Key, line: str) -> str:
    """The text with a new key after the last one of its section, which is added if missing.

    Comments stay in their place: one above a section's header is not separated from it.
    """
    end = "\r\n" if "\r\n" in text else "\n"
    lines: list[str] = _LINES.findall(text)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    headers = [at for at, each in enumerate(lines) if each.lstrip().startswith("[")]
    section = key[:-1]
    begin = 0
    if section:
        own = [at for at in headers if _header(lines[at]) == section]
        if not own:
            space = [end] if lines else []
            return "".join([*lines, *space, f"[{dotted(section)}]{end}", line + end])
        begin = own[0] + 1
    stop = next((at for at in headers if at >= begin and _header(lines[at])), len(lines))
    says = (at for at in range(begin, stop) if lines[at].strip() and not _comment(lines[at]))
    last = max(says, default=None)
    if last is not None:
        place, added = last + 1, [line + end]
    elif section or not lines:
        place, added = begin, [line + end]
    else:
        place, added = _top(lines, line, end)
    return "".join([*lines[:place], *added, *lines[place:]])


def _top(lines: list[str], line: str, end: str) -> tuple[int, list[str]]:
    """Find the place of the first key: after the comment at the top, unless that belongs to a
    section."""
    place = next((at for at, each in enumerate(lines) if not _comment(each)), len(lines))
    if place == len(lines):
        return place, [line + end]
    if lines[place].strip():
        return 0, [line + end, end]
    return place, ([end] if place else []) + [line + end]


def _header(line: str) -> Key:
    """The table that a line opens; () for another line."""
    try:
        value: object = parse_toml(line)
    except ValueError:
        return ()
    names: list[str] = []
    while isinstance(value, dict) and value:
        name, value = cast("tuple[str, object]", next(iter(value.items())))
        names.append(name)
    return tuple(names)


def _comment(line: str) -> bool:
    return line.lstrip().startswith("#")

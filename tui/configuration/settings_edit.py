"""Changes to the user's own config.toml that keep its comments and its layout.

A change is made twice, on the text and on its plain data; the file is only replaced when both
agree and the result is a valid configuration. A file that is broken before is left as it is.
All functions block: call them in a thread.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Generator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

from tui.configuration.config_check import check, dotted
from tui.configuration.settings import Table, parse
from tui.errors import ConfigError, StorageError
from tui.paths import Folders, shorten
from tui.storage.files import locked, read_small, replace_file

Value: TypeAlias = str | int | float | bool | list[str]
Key: TypeAlias = tuple[str, ...]
Changes: TypeAlias = Mapping[Key, Value | None]
"""The values to set; None removes a key, so that its default holds again."""

LONG: Final = 80
"""Characters of a new list above which each entry gets a line of its own."""

_BOM: Final = "\ufeff"
_WRITABLE: Final = 0o222
_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Edit:
    """What was done to the file: its bytes before, None where there was no file, and after."""

    before: bytes | None
    after: bytes


def remember_always(folders: Folders, rule: str) -> None:
    """Add an allow rule to the user's configuration, unless it stands there already.

    Raises ConfigError (the file is broken, or `rule` is no rule) or StorageError; the file is
    then as it was.
    """

    def add(table: Table) -> Changes:
        rules: list[str] = table.get("permissions", {}).get("allow", [])
        return {} if rule in rules else {("permissions", "allow"): [*rules, rule]}

    _edit(folders.config_file, add)


def set_user_value(folders: Folders, key: str, value: Value | None) -> None:
    """Set a dotted key (`model`, `retry.max_attempts`) in the user's configuration.

    None removes it, so that the default holds again. Raises as `remember_always` does.
    """
    change_settings(folders, {tuple(key.split(".")): value})


def change_settings(
    folders: Folders, changes: Changes, *, accept: Callable[[Table], object] | None = None
) -> Edit | None:
    """Set and remove keys of the user's configuration, all of them or none.

    `accept` gets the whole table as it would be, and raises ConfigError to refuse it. None is
    returned where nothing had to be written. Raises as `remember_always` does.
    """
    return _edit(folders.config_file, lambda _: changes, accept)


def take_back(folders: Folders, edit: Edit) -> None:
    """Put the file back as it was before an edit, byte for byte.

    Raises ConfigError where it was changed since, or StorageError.
    """
    file = folders.config_file
    with _held(file):
        if _read(file) != edit.after:
            raise ConfigError(
                shorten(file), "", "has been changed since.", hint="Change it back by hand."
            )
        if edit.before is None:
            file.unlink()
        else:
            replace_file(file, edit.before)


def _edit(
    file: Path,
    plan: Callable[[Table], Changes],
    accept: Callable[[Table], object] | None = None,
) -> Edit | None:
    with _held(file):
        found = _read(file)
        old = found or b""
        new = _changed(old, file, plan, accept)
        if new == old:
            return None
        if found is not None and not file.stat().st_mode & _WRITABLE:
            raise OSError(None, "it is read-only")
        replace_file(file, new)
        return Edit(found, new)


@contextmanager
def _held(file: Path) -> Generator[None]:
    try:
        with locked(file.parent):
            yield
    except OSError as error:
        raise StorageError(
            f"{shorten(file)} could not be written: {error.strerror or error}.",
            hint="Check its permissions, those of its folder, and the free space.",
        ) from error


def _read(file: Path) -> bytes | None:
    try:
        return read_small(file)[0]
    except FileNotFoundError:
        return None


def _changed(
    old: bytes,
    file: Path,
    plan: Callable[[Table], Changes],
    accept: Callable[[Table], object] | None,
) -> bytes:
    before, wanted = parse(old, file), parse(old, file)
    check(before, before, shorten(file))
    changes = plan(before)
    for key, value in changes.items():
        _put(wanted, key, value)
    check(wanted, wanted, shorten(file))
    if accept is not None:
        accept(wanted)
    if wanted == before:
        return old
    text = old.decode("utf-8-sig")
    mark = _BOM if len(old) > len(text.encode()) else ""
    for key, value in changes.items():
        text = _rewritten(text, key, value, file)
    new = (mark + text).encode()
    if _filled(parse(new, file)) != _filled(wanted):
        raise _by_hand(file)
    return new


def _put(table: MutableMapping[str, Any], key: Key, value: Value | None) -> None:
    *sections, last = key
    outer, above = table, ""
    for section in sections:
        if value is None and section not in table:
            return
        outer, above = table, section
        inner = table.setdefault(section, {})
        if not isinstance(inner, MutableMapping):  # a new one, as what stands there was checked
            raise TypeError(f"{section} is no table")
        table = cast("MutableMapping[str, Any]", inner)
    old: object = table.get(last)
    if value is None:
        if last not in table:
            return
        table.pop(last)
        if len(sections) > 1 and not table:  # a model's prices, say: all of them 0 is no default
            outer.pop(above)
    elif isinstance(old, list) and isinstance(value, list):
        _align(cast("list[str]", old), value)
    elif old != value or isinstance(old, bool) != isinstance(value, bool):
        table[last] = value


def _align(old: list[str], new: list[str]) -> None:
    """Make a list equal to another, leaving alone what is in both: its comments stay then."""
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


def _rewritten(text: str, key: Key, value: Value | None, file: Path) -> str:
    """The text with one key set or removed; all else in it stays as it is."""
    import tomlkit  # noqa: PLC0415 - only where something is written
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    wanted = tomllib.loads(text)
    new = not _has(wanted, key)
    _put(wanted, key, value)
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
            document = tomlkit.parse(text)
        _put(document, key, value)
        return tomlkit.dumps(document)
    except TOMLKitError as error:
        raise _by_hand(file) from error


def _without_header(document: Any, key: Key) -> str:
    """The text without the last key of a table, and without its header; its comments stay."""
    import tomlkit  # noqa: PLC0415 - as above

    table = document
    for section in key[:-1]:
        table = table.get(section, {})
    table.pop(key[-1], None)
    lines = _LINES.findall(tomlkit.dumps(document))
    return "".join(line for line in lines if _header(line) != key[:-1])


def _has(table: Table, key: Key) -> bool:
    found: object = table
    for part in key:
        if not isinstance(found, dict) or part not in found:
            return False
        found = cast("object", found[part])
    return True


def _filled(table: Table) -> Table:
    """Without empty sections: it is the same whether one has a header."""
    return {name: value for name, value in table.items() if value != {}}


def _means(text: str, wanted: Table) -> bool:
    try:
        return _filled(tomllib.loads(text)) == _filled(wanted)
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
    """The text with a new key behind the last one of its section, which is made where needed.

    Comments stay where they stand: one over a section's header is not torn from it.
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
    last = max((at for at in range(begin, stop) if _says(lines[at])), default=None)
    if last is not None:
        place, added = last + 1, [line + end]
    elif section or not lines:
        place, added = begin, [line + end]
    else:
        place, added = _top(lines, line, end)
    return "".join([*lines[:place], *added, *lines[place:]])


def _top(lines: list[str], line: str, end: str) -> tuple[int, list[str]]:
    """Where the first key stands: behind the comment at the top, unless that is of a section."""
    place = next((at for at, each in enumerate(lines) if not _comment(each)), len(lines))
    if place == len(lines):
        return place, [line + end]
    if lines[place].strip():
        return 0, [line + end, end]
    return place, ([end] if place else []) + [line + end]


def _header(line: str) -> Key:
    """The table that a line opens; () for another line."""
    try:
        found: object = tomllib.loads(line)
    except ValueError:
        return ()
    names: list[str] = []
    while isinstance(found, dict) and found:
        name, found = cast("tuple[str, object]", next(iter(found.items())))
        names.append(name)
    return tuple(names)


def _says(line: str) -> bool:
    return bool(line.strip()) and not _comment(line)


def _comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _by_hand(file: Path) -> ConfigError:
    return ConfigError(
        shorten(file), "", "cannot be changed without losing its layout.", hint="Edit it by hand."
    )

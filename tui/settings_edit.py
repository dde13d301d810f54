"""Changes to the user's own config.toml that keep its comments and its layout.

A change is made twice, on the document and on its plain data; the file is only replaced when
both agree and the result is a valid configuration. Both functions block: call them in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, TypeAlias, cast

from tui.config_check import check
from tui.errors import ConfigError, StorageError
from tui.files import locked, read_small, replace_file
from tui.paths import Folders, shorten
from tui.settings import parse

Value: TypeAlias = str | int | float | bool | list[str]
_Table: TypeAlias = MutableMapping[str, Any]


def remember_always(folders: Folders, rule: str) -> None:
    """Add an allow rule to the user's configuration, unless it stands there already.

    Raises ConfigError (the file is broken, or `rule` is no rule) or StorageError; the file is
    then as it was.
    """

    def add(table: _Table) -> None:
        rules = table.setdefault("permissions", {}).setdefault("allow", [])
        if rule not in rules:
            rules.append(rule)

    _edit(folders.config_file, add)


def set_user_value(folders: Folders, key: str, value: Value | None) -> None:
    """Set a dotted key (`model`, `retry.max_attempts`) in the user's configuration.

    None removes it, so that the default holds again. Raises as `remember_always` does.
    """
    *sections, last = key.split(".")

    def put(table: _Table) -> None:
        for section in sections:
            if value is None and section not in table:
                return
            table = table.setdefault(section, {})
        if value is None:
            table.pop(last, None)
        else:
            table[last] = value

    _edit(folders.config_file, put)


def _edit(file: Path, change: Callable[[_Table], None]) -> None:
    try:
        with locked(file.parent):
            try:
                old, _ = read_small(file)
            except FileNotFoundError:
                old = b""
            new = _changed(old, file, change)
            if new != old:
                replace_file(file, new)
    except OSError as error:
        raise StorageError(
            f"{shorten(file)} could not be written: {error.strerror or error}.",
            hint="Check the folder's permissions and the free space.",
        ) from error


def _changed(old: bytes, file: Path, change: Callable[[_Table], None]) -> bytes:
    import tomlkit  # noqa: PLC0415 - only where something is written
    from tomlkit.exceptions import TOMLKitError  # noqa: PLC0415

    before, wanted = parse(old, file), parse(old, file)
    try:
        change(wanted)
    except (TypeError, AttributeError):
        check(before, before, shorten(file))  # names the section that is no table
        raise
    check(wanted, wanted, shorten(file))
    if wanted == before:
        return old
    try:
        document = tomlkit.parse(old.decode("utf-8-sig"))
        change(cast("_Table", document))
        new = tomlkit.dumps(document).encode()
    except TOMLKitError as error:
        raise _by_hand(file) from error
    if parse(new, file) != wanted:
        raise _by_hand(file)
    return new


def _by_hand(file: Path) -> ConfigError:
    return ConfigError(
        shorten(file), "", "cannot be changed without losing its layout.", hint="Edit it by hand."
    )

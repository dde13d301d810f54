"""Changes to the user's own config.toml that keep its comments and its layout.

A change is made twice, on the text and on its plain data; the file is only replaced when both
agree and the result is a valid configuration. A file that is broken before is left as it is.
All functions block: call them in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from tui.core.errors import ConfigError, StorageError
from tui.core.paths import Folders, shorten
from tui.core.storage.atomic_files import locked, read_small, replace_file
from tui.settings import toml_edit
from tui.settings.layers import Table, parse
from tui.settings.toml_edit import Key, Value
from tui.settings.validation import check

Changes: TypeAlias = Mapping[Key, Value | None]
"""The values to set; None removes a key, so that its default holds again."""

_BOM: Final = "\ufeff"
_WRITABLE: Final = 0o222


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
        toml_edit.put(wanted, key, value)
    check(wanted, wanted, shorten(file))
    if accept is not None:
        accept(wanted)
    if wanted == before:
        return old
    text = old.decode("utf-8-sig")
    mark = _BOM if len(old) > len(text.encode()) else ""
    try:
        for key, value in changes.items():
            text = toml_edit.rewritten(text, key, value)
    except toml_edit.LayoutError as error:
        raise _by_hand(file) from error
    new = (mark + text).encode()
    if not toml_edit.same(parse(new, file), wanted):
        raise _by_hand(file)
    return new


def _by_hand(file: Path) -> ConfigError:
    return ConfigError(
        shorten(file), "", "cannot be changed without losing its layout.", hint="Edit it by hand."
    )

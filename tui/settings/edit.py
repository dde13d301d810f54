"""Changes to the user's own config.toml that keep its comments and its layout.

A change is made twice, on the text and on its plain data; the file is only replaced when both
agree and the result is a valid configuration. A file that is broken already is not changed.
All functions that take Folders block: call them in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from tui.core.dataclass import dataclass
from tui.core.errors import ConfigError, StorageError, UsageError, os_error_as
from tui.core.files import locked, read_small, replace_file
from tui.core.paths import Folders, shorten
from tui.core.workspace import PRIVATE_DIR
from tui.settings import toml_edit
from tui.settings.file_schemas import SCHEMA_LINE, write_schema_for
from tui.settings.layers import Table, check_own, parse
from tui.settings.toml_edit import Value
from tui.settings.validation import Key

if TYPE_CHECKING:
    from tui.settings.schema import Setting

Changes: TypeAlias = Mapping[Key, Value | None]
"""The values to set; None removes a key, so that its default holds again."""

_GROUPED: Final = re.compile(r"(?<=\d)[,_ ](?=\d)")
_BOM: Final = "\ufeff"
_WRITABLE: Final = 0o222


@dataclass(frozen=True, slots=True)
class SettingsEdit:
    """The bytes of the file before and after a change; `before` is None if there was no file."""

    before: bytes | None
    after: bytes


def remember_always(folders: Folders, rule: str) -> None:
    """Add an allow rule to the user's configuration, unless it is there already.

    Raises ConfigError (the file is broken, or `rule` is no rule) or StorageError; the file is
    then as it was.
    """

    def add(table: Table) -> Changes:
        rules: list[str] = table.get("permissions", {}).get("allow", [])
        return {} if rule in rules else {("permissions", "allow"): [*rules, rule]}

    _edit(folders.config_file, add)


def add_rules(folders: Folders, rules: Mapping[str, Iterable[str]]) -> None:
    """Add rules to the user's configuration, by their kind (allow, ask, deny), less those that are
    there. Raises as `remember_always` does."""

    def add(table: Table) -> Changes:
        changes: dict[Key, Value | None] = {}
        for kind, more in rules.items():
            before: list[str] = table.get("permissions", {}).get(kind, [])
            if fresh := [rule for rule in dict.fromkeys(more) if rule not in before]:
                changes["permissions", kind] = [*before, *fresh]
        return changes

    _edit(folders.config_file, add)


def forget_allowed(folders: Folders, rule: str) -> None:
    """Take an allow rule out of the user's configuration. Raises as `remember_always` does."""

    def remove(table: Table) -> Changes:
        rules: list[str] = table.get("permissions", {}).get("allow", [])
        remaining = [one for one in rules if one != rule]
        return {} if remaining == rules else {("permissions", "allow"): remaining}

    _edit(folders.config_file, remove)


def set_user_value(folders: Folders, key: str, value: Value | None) -> None:
    """Set a dotted key (`model`, `retry.max_attempts`) in the user's configuration.

    None removes it, so that the default holds again. Raises as `remember_always` does.
    """
    change_settings(folders, {tuple(key.split(".")): value})


def add_server(file: Path, name: str, server: Mapping[str, object]) -> None:
    """Add an MCP server to a configuration file. Raises UsageError where it is there already, and
    as `remember_always` does."""
    add_servers(file, {name: server})


def add_servers(file: Path, servers: Mapping[str, Mapping[str, object]]) -> None:
    """Add several, all or none. Raises as `add_server` does."""

    def add(table: Table) -> Changes:
        changes: dict[Key, Value | None] = {}
        for name, server in servers.items():
            if name in table.get("mcp", {}):
                raise UsageError(
                    f"{shorten(file)} has an MCP server {name} already.",
                    hint=f"Remove it first: holdfast mcp remove {name}",
                )
            changes |= _server_changes(name, server)
        return changes

    _edit(file, add)


def _server_changes(name: str, server: Mapping[str, object]) -> dict[Key, Value | None]:
    changes: dict[Key, Value | None] = {}
    for key, value in server.items():
        if isinstance(value, dict):
            entries = cast("dict[str, Value]", value)
            changes |= {("mcp", name, key, inner): one for inner, one in entries.items()}
        else:
            changes["mcp", name, key] = cast("Value", value)
    return changes


def remove_server(file: Path, name: str) -> bool:
    """Remove an MCP server from a configuration file; False where it is not there. Raises as
    `remember_always` does."""
    removed = False

    def remove(table: Table) -> Changes:
        nonlocal removed
        server = table.get("mcp", {}).get(name)
        removed = server is not None
        if not removed:
            return {}
        inner = [key for key, value in server.items() if isinstance(value, dict)]
        entries = [("mcp", name, key, one) for key in inner for one in server[key]]
        keys = [*entries, *(("mcp", name, key) for key in server if key not in inner)]
        return dict.fromkeys(keys)

    if file.exists():
        _edit(file, remove)
    return removed


def change_settings(
    folders: Folders, changes: Changes, *, accept: Callable[[Table], object] | None = None
) -> SettingsEdit | None:
    """Set and remove keys of the user's configuration, all of them or none.

    `accept` gets the whole table as it would be, and raises ConfigError to refuse it. None is
    returned where nothing had to be written. Raises as `remember_always` does.
    """
    return _edit(folders.config_file, lambda _: changes, accept)


def take_back(folders: Folders, edit: SettingsEdit) -> None:
    """Put the file back as it was before an edit, byte for byte.

    Raises ConfigError where it was changed since, or StorageError.
    """
    file = folders.config_file
    with _locked(file):
        if _read(file) != edit.after:
            raise ConfigError(
                shorten(file), "", "has changed since.", hint="Change it back by hand."
            )
        if edit.before is None:
            file.unlink()
        else:
            replace_file(file, edit.before)


def _edit(
    file: Path, plan: Callable[[Table], Changes], accept: Callable[[Table], object] | None = None
) -> SettingsEdit | None:
    with _locked(file):
        content = _read(file)
        old = content or b""
        if (
            content is None and file.parent.name != PRIVATE_DIR
        ):  # that one is shared without a schema
            old = SCHEMA_LINE
        before, wanted = parse(old, file), parse(old, file)
        check_own(before, shorten(file))
        changes = plan(before)
        for key, value in changes.items():
            toml_edit.put(wanted, key, value)
        check_own(wanted, shorten(file))
        if accept is not None:
            accept(wanted)
        new = old if wanted == before else _rewritten(old, file, changes)
        if new == old:
            return None
        if not toml_edit.same(parse(new, file), wanted):
            raise _by_hand(file)
        if content is not None and not file.stat().st_mode & _WRITABLE:
            raise OSError(None, "it is read-only")
        replace_file(file, new)
        if new.startswith(SCHEMA_LINE):
            with suppress(OSError):  # it only helps an editor
                write_schema_for(file)
        return SettingsEdit(content, new)


@contextmanager
def _locked(file: Path) -> Generator[None]:
    hint = "Check its permissions, those of its folder, and the free space."
    what = f"Can't write {shorten(file)}"
    with os_error_as(StorageError, what, hint=hint), locked(file.parent):
        yield


def _read(file: Path) -> bytes | None:
    try:
        return read_small(file)[0]
    except FileNotFoundError:
        return None


def _rewritten(old: bytes, file: Path, changes: Changes) -> bytes:
    text = old.decode("utf-8-sig")
    mark = _BOM if len(old) > len(text.encode()) else ""
    try:
        for key, value in changes.items():
            text = toml_edit.rewritten(text, key, value)
    except toml_edit.LayoutError as error:
        raise _by_hand(file) from error
    return (mark + text).encode()


def _by_hand(file: Path) -> ConfigError:
    return ConfigError(
        shorten(file), "", "can't be changed without losing its layout.", hint="Edit it by hand."
    )


# From the text of a field


def changes_of_text(row: Setting, text: str) -> dict[Key, Value | None]:
    """The changes that a text typed for a setting means.

    A text that is no valid value is passed on as it is: the check of the configuration then
    refuses it.
    """
    match row.kind:
        case "switch":
            return {row.written: text == "true"}
        case "number":
            return {row.written: _number(text, whole=isinstance(row.default, int))}
        case "list":
            return {row.written: [line.strip() for line in text.splitlines() if line.strip()]}
        case "entries":
            return dict(_entries(row, text))
        case _:
            return {row.written: text.strip()}


def changes_to_default(row: Setting) -> dict[Key, Value | None]:
    """The changes that remove a setting from the user's own file, so that its default holds."""
    if row.kind != "entries":
        return {row.written: None}
    return {(*row.key, name): None for name in cast("Mapping[str, object]", row.own or {})}


def _entries(row: Setting, text: str) -> Iterator[tuple[Key, Value | None]]:
    wanted: dict[str, Value] = {}
    keys = row.key == ("keys",)
    for line in filter(str.strip, text.splitlines()):
        name, equals, value = line.rpartition("=")
        name, value = (name, value) if equals else (line, "")
        wanted[name.strip().strip("\"'")] = _keys(value) if keys else _number(value, whole=True)
    for (*_, name), nothing in changes_to_default(row).items():
        if name not in wanted:
            yield (*row.key, name), nothing
    for name, number in wanted.items():
        yield (*row.key, name), number


def _keys(text: str) -> str | list[str]:
    """The keys of an action: one, or several with commas between them."""
    names = [name.strip().strip("\"'") for name in text.split(",")]
    return names[0] if len(names) == 1 else names


def _number(text: str, *, whole: bool) -> int | float | str:
    digits = _GROUPED.sub("", text.strip())
    for kind in (int, float) if whole else (float,):
        try:
            return kind(digits)
        except ValueError:
            continue
    return text.strip()

"""The settings as a table: one row a key, with its value, its origin and what is allowed.

The rows are derived from the schema in `tui.core.config`. Nothing here draws or writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, cast, get_args

import msgspec
from msgspec import inspect as schema

from tui.core.config import Config, Price, profile_of
from tui.core.dataclass import dataclass, replace
from tui.core.redaction import MASK, mask
from tui.settings.fields import Field, fields_of, heading_of
from tui.settings.layers import LoadedSettings, Place, SettingsLayer, Table
from tui.settings.validation import Key, allowed, dotted, plain

Kind: TypeAlias = Literal["switch", "choice", "number", "text", "list", "entries", "fixed"]
"""`switch` is true or false, `choice` one of some words, `entries` a table of numbers or
keys; a `fixed` one cannot be changed on the settings screen."""

_RULES: Final = frozenset({("permissions", name) for name in ("allow", "ask", "deny")})
_CHECKERS: Final = ("diagnostics", "checkers")
_MODELS: Final = ("provider", "models")
_LOGIN: Final = re.compile(r"(?<=://)[^\s/?#@]*@")
_QUERY: Final = re.compile(r"[?#].*", re.DOTALL)
_PLACES: Final[dict[Place, str]] = {"user": "your file", "project": "this folder"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One row. `value` is in force; `own` is the value in the user's file, None without one.

    `places` are those that set the value in force; none means the default. `allowed` says what
    may be typed. `options` are the words of a choice. `notes` are sentences for the person. `at` is
    the table of the profile in which it is changed; () for the top of the file.
    """

    key: Key
    kind: Kind
    value: Any
    default: Any
    own: Any = None
    places: tuple[Place, ...] = ()
    profile: str = ""
    allowed: str = ""
    options: tuple[str, ...] = ()
    description: Field
    notes: tuple[str, ...] = ()
    at: Key = ()

    @property
    def written(self) -> Key:
        """Its key in the user's file, where a change is written."""
        return (*self.at, *self.key)

    @property
    def name(self) -> str:
        """The dotted key, as TOML writes it."""
        return dotted(self.key)

    @property
    def label(self) -> str:
        """Its name, in a few words."""
        return self.key[1] if self.key[0] == "mcp" and self.key[1:] else self.description.label

    @property
    def changed(self) -> bool:
        """True if the value in force is known and differs from the default."""
        known = self.kind != "fixed" and self.value is not None
        return known and field_text(self.value) != field_text(self.default)

    @property
    def section(self) -> Key:
        """The key of the table that it is in; () for the top."""
        return self.key[:-1] or (self.key if self.key[0] == "mcp" else ())

    @property
    def when(self) -> str:
        """The moment when a change takes effect, in words."""
        return self.description.when.value

    @property
    def choices(self) -> Mapping[str, str]:
        """The meanings of those options that have one."""
        return self.description.choices

    @property
    def shown(self) -> str:
        """The value in force in one line, for a person, with secrets masked."""
        return self.words_of(self.value)

    def words_of(self, value: object) -> str:
        """A value in one line: a number with its unit; nothing and 0 by what they mean."""
        if value == "":
            return self.choices.get("", "not set")
        if self.kind == "number" and value == 0 and "0" in self.choices:
            return self.choices["0"]
        if isinstance(value, bool) or not isinstance(value, int | float):
            return display(value)
        if self.key[0] == "prices" or self.key[-1] == "max_cost":
            return f"${value:g}"
        unit = unit_of(self.key)
        unit = _SHORT.get(unit, unit.removesuffix("s") if value == 1 else unit)
        return f"{display(value)} {unit}".rstrip()

    @property
    def origin(self) -> str:
        """The origin of the value in force, in a few words."""
        words = {**_PLACES, "profile": f"profile {self.profile}"}
        return " + ".join(words.get(place, place) for place in self.places) or "default"

    @property
    def adds(self) -> bool:
        """True if the places add up, so that only the user's own entries can be changed."""
        return self.key in _RULES or self.kind == "entries"

    @property
    def edited(self) -> Any:
        """The value to begin an edit with: the user's own, else the one in force."""
        if self.own is not None:
            return self.own
        return self.default if self.adds else self.value

    @property
    def hidden(self) -> bool:
        """True if `edited` holds a secret."""
        value: object = self.edited
        texts = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
        return any(isinstance(text, str) and without_secrets(text) != text for text in texts)


_UNITS: Final = {
    "s": "seconds", "ms": "milliseconds", "bytes": "bytes", "chars": "characters",
    "file": "characters", "tokens": "tokens", "output": "tokens", "window": "tokens",
    "days": "days", "lines": "lines", "messages": "messages",
}  # fmt: skip
"""The units of numbers, by the last word of their key."""
_SHORT: Final = {"seconds": "s", "milliseconds": "ms"}


def unit_of(key: Key) -> str:
    """The unit of a number, which the end of its key names; "" for a count of what the key is."""
    return _UNITS.get(key[-1].rpartition("_")[2], "")


def table(
    loaded: LoadedSettings, *, models: Sequence[str] = (), themes: Sequence[str] = ()
) -> list[Setting]:
    """All settings, by section. `models` get rows for their prices even if none are known (the
    value is then None). `themes` are the names to choose from."""
    rows = [_with_themes(row, themes) for row in _section_rows(loaded, Config, ())]
    top = [row for row in rows if not row.section]
    below = [row for row in rows if row.section]
    return [*top, *below, *_prices(loaded, models), *_servers(loaded)]


def search(rows: Sequence[Setting], words: str) -> list[Setting]:
    """The rows in whose key, label, value, origin, help or section every word occurs; "changed"
    finds those with another value than the default."""
    wanted = words.casefold().split()

    def text(row: Setting) -> str:
        about = heading_of(row.section) if row.section else ""
        changed = "changed" if row.changed else ""
        words = row.name, row.label, row.shown, row.origin, row.description.help, about, changed
        return "\n".join(words).casefold()

    return [row for row in rows if all(word in text(row) for word in wanted)]


def _section_rows(loaded: LoadedSettings, kind: type[msgspec.Struct], at: Key) -> Iterator[Setting]:
    """A row for each key of a section, and for those of the sections in it."""
    defaults = kind()
    for name, field in fields_of(kind).items():
        key = (*at, name)
        if field.section:
            yield from _section_rows(loaded, field.section, key)
        elif key == _CHECKERS:
            names = ", ".join(loaded.config.diagnostics.checkers) or "those that are found"
            yield _fixed(loaded, key, field, names)
        elif key == _MODELS:
            yield _fixed(loaded, key, field, ", ".join(loaded.config.provider.models) or "none")
        elif key == ("profile",):
            yield _fixed(loaded, key, field, loaded.profile.name or "none")
        elif key == ("default_profile",) and not loaded.profiles:
            yield _fixed(loaded, key, field, "none")
        elif key not in {("prices",), ("mcp",)}:
            yield _row(loaded, key, field, getattr(defaults, name))


def _row(loaded: LoadedSettings, key: Key, field: Field, default: object) -> Setting:
    setters = [one for one in loaded.layers if _value_at(one.table, key) is not None]
    kind, options = _kind(field.type)
    value = _value_at(msgspec.to_builtins(getattr(loaded.config, key[0])), key[1:])
    row = Setting(
        key=key,
        kind=kind,
        value=default if value is None else value,
        default=default,
        options=options,
        allowed=_allowed(key, field.type, kind, options),
        description=field,
        profile=loaded.profile.name,
    )
    in_profile = not row.adds and any(one.place == "profile" for one in setters)
    mine = "profile" if in_profile else "user"
    row = replace(
        row,
        own=next((_value_at(one.table, key) for one in setters if one.place == mine), None),
        at=("profile", row.profile) if in_profile else (),
    )
    if key == ("default_profile",):
        options = ("", *loaded.profiles)
        row = replace(row, kind="choice", options=options, allowed=", ".join(options[1:]))
    setting = setters if row.adds else setters[-1:]
    notes = (*_notes(row, setting), *_ignored(loaded, row.name))
    return replace(row, places=tuple(one.place for one in setting), notes=notes)


def _value_at(table: Table, key: Key) -> Any:
    value: Any = table
    for part in key:
        value = cast("Table", value).get(part) if isinstance(value, dict) else None
    return value


def _kind(type_: Any) -> tuple[Kind, tuple[str, ...]]:
    """The kind of a type of the schema, and the words of a choice in their order."""
    match plain(type_)[0]:
        case schema.BoolType():
            return "switch", ("true", "false")
        case schema.LiteralType():
            return "choice", tuple(get_args(type_))
        case schema.IntType() | schema.FloatType():
            return "number", ()
        case schema.VarTupleType():
            return "list", ()
        case schema.DictType():
            return "entries", ()
        case _:
            return "text", ()


def _allowed(key: Key, type_: Any, kind: Kind, options: Sequence[str]) -> str:
    """Describe what may be typed into a field, in words that a person uses."""
    match kind:
        case "switch":
            return "on or off"
        case "choice":
            return ", ".join(option for option in options if option)
        case "list":
            return f"{_typed(get_args(type_)[0], '')}; one per line"
        case "entries":
            return f"name = {_typed(get_args(type_)[1], unit_of(key))}; one per line"
        case _:
            return _typed(type_, unit_of(key))


def _typed(type_: Any, unit: str) -> str:
    """A number with its unit and its range; any text, or what a text must be."""
    info, description = plain(type_)
    match info:
        case schema.IntType():
            least = info.gt + 1 if info.gt is not None else info.ge
            return f"{unit or 'a whole number'}{_range(least, info.le)}"
        case schema.FloatType(gt=gt) if gt is not None:
            return f"a number above {gt:g}" + (f", at most {info.le:g}" if info.le else "")
        case schema.FloatType():
            return f"{unit or 'a number'}{_range(info.ge, info.le)}"
        case schema.StrType() if not description:
            return "any text" if info.min_length else "any text, or empty"
        case _:
            return description or allowed(type_)


def _notes(row: Setting, setting: Sequence[SettingsLayer]) -> Iterator[str]:
    """Sentences about other places that override or add to the user's own file."""
    mine = "profile" if row.at else "user"
    above = [one for one in setting if one.place != mine]
    if row.at:
        yield f"Profile {row.profile} sets it in your file; a change is written there."
    if not above:
        return
    who = " and ".join(
        "The command line" if one.place == "command line" else one.name for one in above
    )
    if row.adds:
        yield f"Others come from {who[0].lower() + who[1:] if who.startswith('The') else who}."
        yield "Only those in your file can be changed here."
        return
    yield f"{who} overrides your file."
    if row.own is not None:
        yield f"Your file says {row.words_of(row.own)}."


def _ignored(loaded: LoadedSettings, name: str) -> Iterator[str]:
    for one in loaded.ignored:
        if one.key == name:
            yield f"This folder's file sets it too, with no effect: {one.reason}."


def _with_themes(row: Setting, themes: Sequence[str]) -> Setting:
    if row.key != ("theme",) or not themes:
        return row
    return replace(row, kind="choice", options=tuple(themes), allowed=", ".join(themes))


def _prices(loaded: LoadedSettings, models: Sequence[str]) -> Iterator[Setting]:
    own = [name for name in loaded.config.prices if not profile_of(name)]
    for model in dict.fromkeys([*models, *own]):
        for name, field in fields_of(Price).items():
            row = _row(loaded, ("prices", model, name), field, getattr(Price(), name))
            yield row if model in loaded.config.prices else replace(row, value=None)


def _servers(loaded: LoadedSettings) -> Iterator[Setting]:
    """The MCP servers. Of a program only the name is shown: its arguments may hold a key."""
    field = fields_of(Config)["mcp"]
    for name, server in loaded.config.mcp.items():
        where = _QUERY.sub("", server.url) or server.words[0]
        yield _fixed(loaded, ("mcp", name), field, where)
    if not loaded.config.mcp:
        yield _fixed(loaded, ("mcp",), field, "none")


def _fixed(loaded: LoadedSettings, key: Key, field: Field, value: str) -> Setting:
    """The row of a table with names of the person's own, which is changed elsewhere."""
    row = _row(loaded, key, replace(field, type=str), "")
    return replace(row, kind="fixed", value=value, allowed="")


def _range(least: float | None, most: float | None) -> str:
    if least is None:
        return ""
    return f", {least:,.12g} or more" if most is None else f", {least:,.12g} to {most:,.12g}"


# Values as text


def display(value: object) -> str:
    """A value in one line, with secrets masked."""
    match value:
        case None:
            return "—"
        case bool():
            return "on" if value else "off"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.12g}"
        case dict():
            entries = cast("dict[str, object]", value).items()
            return ", ".join(f"{dotted((name,))} {display(one)}" for name, one in entries) or "none"
        case list() | tuple():
            return ", ".join(display(one) for one in cast("list[object]", value)) or "none"
        case _:
            return " ".join(without_secrets(str(value)).split()) or '""'


def without_secrets(text: str) -> str:
    """A text with keys of known shapes masked, and the logins in addresses."""
    return _LOGIN.sub(f"{MASK}@", mask(text)[0])


def field_text(value: Any) -> str:
    """A value as text to edit; lists and tables have a line for each entry."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case dict():
            entries = cast("dict[str, object]", value).items()
            return "\n".join(f"{dotted((name,))} = {_entry_text(one)}" for name, one in entries)
        case list() | tuple():
            return "\n".join(str(one) for one in cast("list[object]", value))
        case float():
            return f"{value:.12g}"
        case _:
            return str(value)


def _entry_text(value: object) -> str:
    return (
        ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
    )

"""The settings as a table: one row a key, with its value, where that is from, and what is allowed.

The rows are derived from the schema in `tui.core.config`. Nothing here draws or writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, cast, get_args, get_type_hints

import msgspec
from msgspec import inspect as schema

from tui.core.config import Config, Price
from tui.settings.descriptions import SECTIONS, WHEN, WORDS, Words
from tui.settings.layers import Layer, Loaded, Place, Table
from tui.settings.validation import allowed, dotted, plain
from tui.settings.value_format import safe, told

Key: TypeAlias = tuple[str, ...]
Kind: TypeAlias = Literal["switch", "choice", "number", "text", "list", "entries", "fixed"]
"""`switch` is true or false, `choice` one of some words, `entries` a table of numbers; what is
`fixed` is changed elsewhere."""

_RULES: Final = frozenset({("permissions", name) for name in ("allow", "ask", "deny")})
_QUERY: Final = re.compile(r"[?#].*", re.DOTALL)
_PLACES: Final[dict[Place, str]] = {"user": "your file", "project": "this folder"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """`value` is in force; `own` is what the user's file says, None where it says nothing.

    `places` set what is in force, none of them is the default. `options` are the words of a
    choice; `notes` is what else there is to know, a sentence each.
    """

    key: Key
    kind: Kind
    value: Any
    default: Any
    own: Any = None
    places: tuple[Place, ...] = ()
    allowed: str = ""
    options: tuple[str, ...] = ()
    words: Words
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The dotted key, as TOML writes it."""
        return dotted(self.key)

    @property
    def section(self) -> Key:
        """The key of the table that it stands in; () for the top."""
        return self.key[:-1] or (self.key if self.key[0] == "mcp" else ())

    @property
    def when(self) -> str:
        """From when on a change counts."""
        return WHEN[self.words.when]

    @property
    def shown(self) -> str:
        """The value in force in one line, without what is not to be shown."""
        return told(self.value)

    @property
    def origin(self) -> str:
        """Where the value in force comes from, in a few words."""
        return " + ".join(_PLACES.get(place, place) for place in self.places) or "default"

    @property
    def adds(self) -> bool:
        """Whether the places add up, so that only the user's own entries can be changed."""
        return self.key in _RULES or self.kind == "entries"

    @property
    def edited(self) -> Any:
        """What an edit begins with: the user's own value, else the one in force."""
        if self.own is not None:
            return self.own
        return self.default if self.adds else self.value

    @property
    def hidden(self) -> bool:
        """Whether `edited` holds what is not to be shown."""
        found: object = self.edited
        texts = cast("list[object]", found) if isinstance(found, list | tuple) else [found]
        return any(isinstance(text, str) and safe(text) != text for text in texts)


def table(
    loaded: Loaded, *, models: Sequence[str] = (), themes: Sequence[str] = ()
) -> list[Setting]:
    """All settings, by section. `models` get rows for their prices though none are known;
    the value is None then. `themes` are the names to choose from."""
    rows = [_choosing(row, themes) for row in _of(loaded, Config, ())]
    top = [row for row in rows if not row.section]
    below = [row for row in rows if row.section]
    return [*top, *below, *_prices(loaded, models), *_servers(loaded)]


def matching(rows: Sequence[Setting], words: str) -> list[Setting]:
    """The rows in whose key, value, origin, help or section every word occurs."""
    wanted = words.casefold().split()

    def text(row: Setting) -> str:
        about = SECTIONS[row.section[0]] if row.section else ""
        return "\n".join((row.name, row.shown, row.origin, row.words.help, about)).casefold()

    return [row for row in rows if all(word in text(row) for word in wanted)]


def _of(loaded: Loaded, kind: type[msgspec.Struct], at: Key) -> Iterator[Setting]:
    """A row for each key of a section, and for those of the sections in it."""
    types = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        key, inner = (*at, field.name), types[field.name]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from _of(loaded, inner, key)
        elif key not in {("prices",), ("mcp",)}:
            yield _row(loaded, key, inner, _default(field))


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return field.default_factory() if callable(field.default_factory) else None


def _row(loaded: Loaded, key: Key, type_: Any, default: object, words: str = "") -> Setting:
    found = [one for one in loaded.layers if _in(one.table, key) is not None]
    kind, options = _kind(type_)
    value = _in(msgspec.to_builtins(getattr(loaded.config, key[0])), key[1:])
    row = Setting(
        key=key,
        kind=kind,
        value=default if value is None else value,
        default=default,
        own=next((_in(one.table, key) for one in found if one.place == "user"), None),
        options=options,
        allowed=_allowed(type_, kind, options),
        words=WORDS[words or dotted(key)],
    )
    setting = found if row.adds else found[-1:]
    notes = (*_notes(row, setting), *_ignored(loaded, row.name))
    return replace(row, places=tuple(one.place for one in setting), notes=notes)


def _in(table: Table, key: Key) -> Any:
    found: Any = table
    for part in key:
        found = cast("Table", found).get(part) if isinstance(found, dict) else None
    return found


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


def _allowed(type_: Any, kind: Kind, options: Sequence[str]) -> str:
    """What may be typed, for a field: without the marks that only a file needs."""
    match kind:
        case "switch" | "choice":
            return " or ".join(options)
        case "list":
            return f"{_bare(allowed(get_args(type_)[0]))}; one a line"
        case "entries":
            return f"tool = {_bare(allowed(get_args(type_)[1]))}; one a line"
        case _:
            return _bare(allowed(type_))


def _bare(text: str) -> str:
    return text.removesuffix(", in quotes")


def _notes(row: Setting, setting: Sequence[Layer]) -> Iterator[str]:
    """What stands in the way of the user's own file."""
    above = [one for one in setting if one.place != "user"]
    if not above:
        return
    who = " and ".join(
        "The command line" if one.place == "command line" else one.name for one in above
    )
    if row.adds:
        yield f"Others come from {who[0].lower() + who[1:] if who.startswith('The') else who}."
        yield "Only those of your file are changed here."
        return
    yield f"{who} overrides your file."
    if row.own is not None:
        yield f"Your file says {told(row.own)}."


def _ignored(loaded: Loaded, name: str) -> Iterator[str]:
    for one in loaded.ignored:
        if one.key == name:
            yield f"This folder's file sets it too, without effect: {one.reason}."


def _choosing(row: Setting, themes: Sequence[str]) -> Setting:
    if row.key != ("theme",) or not themes:
        return row
    return replace(row, kind="choice", options=tuple(themes), allowed=", ".join(themes))


def _prices(loaded: Loaded, models: Sequence[str]) -> Iterator[Setting]:
    types = get_type_hints(Price, include_extras=True)
    for model in dict.fromkeys([*models, *loaded.config.prices]):
        for field in msgspec.structs.fields(Price):
            key = ("prices", model, field.name)
            row = _row(loaded, key, types[field.name], field.default, f"prices.{field.name}")
            yield row if model in loaded.config.prices else replace(row, value=None)


def _servers(loaded: Loaded) -> Iterator[Setting]:
    """The MCP servers. Of a program only the name is shown: its arguments may hold a key."""
    for name, server in loaded.config.mcp.items():
        row = _row(loaded, ("mcp", name), str, "", "mcp")
        where = _QUERY.sub("", server.url) or server.command[0]
        yield replace(row, kind="fixed", value=where, allowed="")
    if not loaded.config.mcp:
        yield replace(_row(loaded, ("mcp",), str, "", "mcp"), kind="fixed", value="none")

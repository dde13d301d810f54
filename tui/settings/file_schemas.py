"""JSON Schemas of the files that a person writes, for editors: made of what the program checks.

Whatever the program takes without a word fits them. Rules over two keys and between files are left
to the program.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import msgspec

import tui
from tui.core.config import Price, ProfileSettings
from tui.core.files import read_small, replace_file
from tui.core.keymap import DEFAULT_KEYS
from tui.core.project import REPOSITORY
from tui.settings import hook_files
from tui.settings.fields import fields_of

Schema: TypeAlias = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_REF: Final = "#/$defs/"
SCHEMA_FILE: Final = "config.schema.json"
SCHEMA_LINE: Final = f"#:schema ./{SCHEMA_FILE}\n".encode()
"""The line by which a TOML file names its schema, for Taplo and the editors that use it (Even
Better TOML): by a path from the file, so that it works without a network."""
_HEAD_BYTES: Final = 1000
_OF_PROFILES: Final = frozenset({"key_from", "sign_in"})


def document(name: str, title: str, schema: Mapping[str, Any]) -> Schema:
    """A schema of its own, with the version of the program that it is of in its `$id`."""
    head = {"$schema": DIALECT, "$id": f"{REPOSITORY}/schema/{tui.__version__}/{name}.json"}
    return {**head, "title": title, **_portable(schema)}


def text_of(schema: Schema) -> str:
    """A schema as it is printed and kept."""
    return json.dumps(schema, ensure_ascii=False, indent=2) + "\n"


def write_schema_for(file: Path) -> None:
    """Keep the schema of this version beside a config.toml that names it. Raises OSError."""
    schema_file = file.with_name(SCHEMA_FILE)
    mark = f"/{tui.__version__}/config.json".encode()
    try:
        current = mark in read_small(schema_file, whole=False, limit=_HEAD_BYTES)[0]
    except FileNotFoundError:
        current = False
    if not current:
        replace_file(schema_file, text_of(config()).encode())


def config() -> Schema:
    """The schema of config.toml."""
    schema = msgspec.json.schema(ProfileSettings)
    parts: Schema = schema["$defs"]
    for part in parts.values():
        del part["description"]  # it is for who changes the code
    _describe(parts, ProfileSettings)
    profile = parts["ProfileSettings"]
    profile["properties"]["keys"]["propertyNames"] = {"enum": list(DEFAULT_KEYS)}
    of_all = {key: one for key, one in profile["properties"].items() if key not in _OF_PROFILES}
    for key in ("profile", "default_profile", "plain"):
        del profile["properties"][key]
    tables = {"type": "object", "additionalProperties": {"$ref": f"{_REF}ProfileSettings"}}
    names = of_all["profile"]
    of_all["profile"] = {
        "description": "Profiles by name, in your own file; in a folder's, the name of one.",
        "anyOf": [{key: one for key, one in names.items() if key == "type"}, tables],
    }
    top = {**profile, "properties": of_all, "title": "Config"}
    parts["McpServer"]["anyOf"] = [{"required": ["command"]}, {"required": ["url"]}]
    return document("config", "Holdfast: config.toml", {**top, "$defs": parts})


def _describe(parts: Schema, section: type[msgspec.Struct]) -> None:
    """Say at each key of a table, and of the tables in it, what it does."""
    for name, one in parts[section.__name__]["properties"].items():
        field = fields_of(section)[name]
        if words := field.words or (field.heading and f"{field.heading}."):
            one["description"] = words
        inner = field.section or (Price if field.type == dict[str, Price] else None)
        if inner:
            _describe(parts, inner)


def hooks() -> Schema:
    """The schema of hooks.json."""
    hook = {
        "type": "object",
        "required": ["command"],
        "properties": {
            "type": {"const": "command"},
            "command": {
                "description": "A shell command. It gets the event as JSON on its stdin.",
                "type": "string",
                "pattern": r"^[^\x00]*\S[^\x00]*$",
                "maxLength": hook_files.COMMAND_CHARS,
            },
            "timeout": {
                "description": "Seconds after which it is stopped.",
                "type": "number",
                "exclusiveMinimum": 0,
                "default": hook_files.DEFAULT_TIMEOUT_S,
            },
            "on_error": {
                "description": "What happens to a call when the hook fails.",
                "enum": list(hook_files.ON_ERROR),
                "default": "continue",
            },
            "onFailure": {
                "description": "The same, by Claude Code's name.",
                "enum": list(hook_files.ON_ERROR),
            },
            "args": {
                "description": "The command's arguments; no shell reads it then.",
                "type": "array",
                "items": {"type": "string"},
            },
            "if": {
                "description": "A permission rule: it runs for the calls that this is about.",
                "type": "string",
            },
            "async": {
                "description": "Don't wait for it; it decides nothing.",
                "type": "boolean",
            },
            "shell": {"const": "bash"},
        },
    }
    matcher = {
        "description": "Tool names separated by |, or a regular expression; all tools without it.",
        "type": "string",
    }
    group = {
        "type": "object",
        "required": ["hooks"],
        "properties": {"matcher": matcher, "hooks": {"type": "array", "items": hook}},
    }
    events = {event: {"type": "array", "items": group} for event in hook_files.EVENTS}
    one = {"type": "object", "properties": events}
    by_event = {**one, "additionalProperties": False}
    top: Schema = {"type": "object", "properties": {"hooks": by_event}}
    top["not"] = {"anyOf": [{"required": [event]} for event in hook_files.EVENTS]}
    return document("hooks", "Holdfast: hooks.json", top)


def _portable(value: Any) -> Any:
    """A schema whose patterns mean the same in JavaScript, Rust and Python, and whose texts are
    without the indentation of the code that they are from."""
    match value:
        case dict():
            copied = {key: _portable(one) for key, one in cast("Schema", value).items()}
            if isinstance(pattern := copied.get("pattern"), str):
                portable = pattern.replace(r"\Z", "$").replace("(?s:", "(?:")
                copied["pattern"] = portable.replace(r"\0", r"\x00")
            if isinstance(text := copied.get("description"), str):
                copied["description"] = " ".join(inspect.cleandoc(text).split())
            return copied
        case list() | tuple():
            return list(map(_portable, cast("list[Any]", value)))
        case _:
            return value

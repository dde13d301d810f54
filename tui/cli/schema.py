"""`holdfast schema NAME`: the JSON Schema of a file or an output, for editors and programs.

Each is made from the types that the program itself reads and writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, get_args

import msgspec

from tui.app.options.arguments import Options
from tui.batch.events import BatchEvent, FromAgent
from tui.batch.state import RunState
from tui.core.facts import Fact, FileChangedOutside, SubAgentEvent, ThinkingDropped
from tui.core.theme_cache import COLOURS
from tui.settings.file_schemas import Schema, config, document, hooks, text_of

_EVENT: Final = "Event"
_OF_THE_RUN: Final = "RunEvent"
_REF: Final = "#/$defs/{name}"


def run(options: Options) -> int:
    """Print a schema. Returns the exit code."""
    print(text_of(SCHEMAS[options.help.schema]()), end="")  # noqa: T201
    return 0


def events() -> Schema:
    """Return the schema of a line of `-p --output-format stream-json` and of `run --json`."""
    kinds = [one for one in get_args(BatchEvent) if one not in (FromAgent, *get_args(Fact))]
    _, parts = msgspec.json.schema_components([Fact, FileChangedOutside, *kinds], ref_template=_REF)
    dropped = ThinkingDropped({}, {})
    parts[ThinkingDropped.__name__]["properties"] |= {
        name: msgspec.json.schema(type(value))
        for name, value in dropped.to_json().items()
        if name not in parts[ThinkingDropped.__name__]["properties"]
    }
    parts[SubAgentEvent.__name__]["properties"]["event"] = {"$ref": _REF.format(name=_EVENT)}
    del parts["WireFact"]
    parts[_EVENT] = _any_of((*get_args(Fact), FileChangedOutside))
    parts[_OF_THE_RUN] = _any_of(kinds)
    one = {"anyOf": [{"$ref": _REF.format(name=name)} for name in (_EVENT, _OF_THE_RUN)]}
    return document(
        "events",
        "Holdfast: one event of stream-json",
        {
            "description": "In `run --json`, an agent's event has the index of its task as `task`. "
            "Later versions may add fields and types.",
            **one,
            "$defs": parts,
        },
    )


def _any_of(kinds: Iterable[type[Any]]) -> Schema:
    return {"anyOf": [{"$ref": _REF.format(name=kind.__name__)} for kind in kinds]}


def state() -> Schema:
    """Return the schema of `.holdfast/run/state.json`, which `run --status --json` prints, too."""
    schema = msgspec.json.schema(RunState)
    top = schema["$defs"].pop(RunState.__name__)
    schema = {**top, "$defs": schema["$defs"]}
    return document("state", "Holdfast: the state of a task run", schema)


def theme() -> Schema:
    """Return the schema of a file in `themes/`. A color may have a name, such as `teal`."""
    colours = {name: {"type": "string", "minLength": 1} for name in COLOURS}
    table = {"type": "object", "properties": colours, "additionalProperties": False}
    top = {"type": "object", "properties": {"dark": {"type": "boolean"}, "colors": table}}
    return document("theme", "Holdfast: a theme", top)


SCHEMAS: Final[Mapping[str, Callable[[], Schema]]] = {
    "config": config,
    "hooks": hooks,
    "events": events,
    "state": state,
    "theme": theme,
}

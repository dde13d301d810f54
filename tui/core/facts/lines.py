"""Facts as plain data and back, for another process: in full, also what `to_json` hides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast, get_args

import msgspec

from tui.core import facts
from tui.core.errors import HoldfastError
from tui.core.facts import Fact, Note, SubAgentEvent, Told, WireFact

NAMED: Final[Mapping[str, type[WireFact]]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Fact)
}
"""The published facts by their names in JSON."""
_NOTE: Final = "note"
"""The name of a notice that the record keeps: in JSON it has that of any notice."""
_KINDS: Final[Mapping[str, type[WireFact]]] = {
    **NAMED,
    **{
        str(kind.__struct_config__.tag): kind
        for kind in (facts.CallBegan, facts.Rewound, facts.TurnInterrupted)
    },
    _NOTE: Note,
}


class UnknownFactError(HoldfastError):
    """Data that is no fact this version knows."""


def plain_of(fact: WireFact) -> dict[str, Any]:
    """The data of a fact: its `type`, then its fields but for those as a new one has them."""
    if isinstance(fact, SubAgentEvent):
        head = {"type": fact.type, "id": fact.id, "name": fact.agent}
        return head | {"event": plain_of(fact.event)}
    data: dict[str, Any] = {"type": _NOTE if type(fact) is Note else fact.type}
    for field in msgspec.structs.fields(type(fact)):
        value = getattr(fact, field.name)
        if value is not msgspec.UNSET and (field.required or value != _default(field)):
            data[field.encode_name] = msgspec.to_builtins(value, str_keys=True)
    return data


def fact_of(data: Mapping[str, Any]) -> Told:
    """The fact that `plain_of` made data of. Raises UnknownFactError for any other data."""
    return cast("Told", _read(data, plain=True))


def fact_of_json(data: Mapping[str, Any]) -> WireFact:
    """The fact that `to_json` made data of, without what that hides. Raises UnknownFactError for
    any other data."""
    return _read(data, plain=False)


def _read(data: Mapping[str, Any], *, plain: bool) -> WireFact:
    name = data.get("type")
    try:
        if name == SubAgentEvent.__struct_config__.tag:
            named = msgspec.convert([data["id"], data["name"]], tuple[str, str])
            return SubAgentEvent(*named, _read(data["event"], plain=plain))
        kind = (_KINDS if plain else NAMED)[cast("str", name)]
        tag = kind.__struct_config__.tag
        return msgspec.convert(data if name == tag else {**data, "type": tag}, kind)
    except (KeyError, TypeError, AttributeError, RecursionError, msgspec.ValidationError) as error:
        raise UnknownFactError(
            f"What another program tells is no fact that this version knows ({name!r:.60}).",
            hint="Both programs need the same version of Holdfast.",
        ) from error


def _default(field: msgspec.structs.FieldInfo) -> object:
    made = field.default_factory
    return field.default if made is msgspec.NODEFAULT else made()

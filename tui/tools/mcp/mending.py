"""Answers of a server that the SDK would refuse as a whole, mended part by part.

The SDK (2.3) checks each answer against the protocol's schema and throws all of it away where one
field does not fit: every tool for one without `type` in its schema, a call's good text for one
block of an unknown kind. Here only the part that does not fit is mended, shown as it came or left
out, and what was done is noted in the answer's `_meta`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

from mcp_types import PROTOCOL_VERSION_META_KEY
from mcp_types.methods import SERVER_RESULTS
from mcp_types.version import (
    KNOWN_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    MODERN_PROTOCOL_VERSIONS,
)
from pydantic import TypeAdapter

from tui.core.dataclass import dataclass, field
from tui.core.messages import is_object, object_of
from tui.tools.mcp.tool import LEFT_OUT, NOTES

_LISTS: Final[Mapping[str, tuple[str, frozenset[str]]]] = {
    "tools/list": ("tools", frozenset({"name", "inputSchema"})),
    "tools/call": (
        "content",
        frozenset({"type", "text", "data", "mimeType", "name", "uri", "resource"}),
    ),
    "resources/list": ("resources", frozenset({"name", "uri"})),
    "resources/templates/list": ("resourceTemplates", frozenset({"name", "uriTemplate"})),
    "resources/read": ("contents", frozenset({"uri", "text", "blob"})),
    "prompts/list": ("prompts", frozenset({"name"})),
    "prompts/get": ("messages", frozenset({"role", "content"})),
}
"""The list in each answer whose parts are mended one by one, and what a part can't do without."""
_UNSAID: Final[Mapping[str, object]] = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}
"""What an answer of the newer protocol has to say, as it is meant where it says nothing."""


@dataclass(slots=True)
class OpenRequests:
    """The requests that wait for their answers: their method and version of the protocol, by id.

    `strangers` are those that the server has refused because it knows nothing of their session.
    """

    strangers: set[object] = field(default_factory=set[object])
    _open: dict[object, tuple[str, str]] = field(default_factory=dict[object, tuple[str, str]])
    _version: str = LATEST_HANDSHAKE_VERSION

    @property
    def ids(self) -> Sequence[Any]:
        return tuple(self._open)

    def begin(self, id_: object, method: str, params: Mapping[str, Any] | None) -> None:
        """A request goes out. Those of the newer protocol name its version."""
        version = object_of(object_of(params).get("_meta")).get(PROTOCOL_VERSION_META_KEY)
        self._open[id_] = method, version if isinstance(version, str) else self._version

    def end(self, id_: object, answer: object = None) -> None:
        """An answer has come, which is mended in place."""
        method, version = self._open.pop(id_, ("", ""))
        if not is_object(answer):
            return
        agreed = answer.get("protocolVersion")
        if method == "initialize" and isinstance(agreed, str):
            self._version = agreed
        repair_answer(method, version, answer)

    def waits(self, method: str) -> bool:
        """True while a request of this kind has no answer."""
        return any(method == one for one, _ in self._open.values())


def repair_answer(method: str, version: str, answer: dict[str, Any]) -> None:
    """Make an answer one that the SDK takes, in place, with as much of it as can be kept."""
    if method not in _LISTS:
        return
    key, needed = _LISTS[method]
    version = version if version in KNOWN_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
    if version in MODERN_PROTOCOL_VERSIONS:
        for name, value in _UNSAID.items():
            answer.setdefault(name, value)
    if key == "tools" and isinstance(listed := answer.get(key), list):
        answer[key] = [_complete(tool) for tool in cast("list[object]", listed)]
    if _fits(method, version, answer) or answer.get("resultType", "complete") != "complete":
        return
    frame = {name: answer[name] for name in _UNSAID if name in answer}
    notes: list[str] = []
    parts: list[object] = []
    for part in _parts(answer.get(key), key):
        if (mended := _mended(method, version, {**frame, key: [part]}, needed)) is not None:
            parts.append(mended)
        elif (shown := _as_it_came(key, part)) is not None:
            parts.append(shown)
            kind = json.dumps(object_of(part).get("type"), ensure_ascii=False)
            notes.append(f"a part of the type {kind} is shown as it came")
        else:
            notes.append(str(object_of(part).get("name") or "one without a name"))
    frame[key] = parts
    notes += _keep_the_rest(method, version, answer, frame)
    answer.clear()
    answer.update(frame)
    if notes:
        kind = LEFT_OUT if key == "tools" else NOTES
        answer["_meta"] = {**object_of(answer.get("_meta")), kind: notes}


def _fits(method: str, version: str, answer: Mapping[str, Any]) -> bool:
    """True if the SDK takes the answer."""
    try:
        _ = _adapter(method, version).validate_python(answer, by_name=False)
    except (ValueError, RecursionError):
        return False
    return True


@cache
def _adapter(method: str, version: str) -> TypeAdapter[Any]:
    """The type of an answer in a version of the protocol: the strictest that the SDK has."""
    kind: Any = SERVER_RESULTS[method, version]
    return TypeAdapter(kind)


def _complete(tool: object) -> object:
    """A tool whose schema says that it is an object's: arguments are one in any case."""
    if not is_object(tool) or not isinstance(tool.get("name"), str):
        return tool
    schema = object_of(tool.get("inputSchema"))
    return (
        tool
        if schema.get("type") == "object"
        else {**tool, "inputSchema": {**schema, "type": "object"}}
    )


def _parts(given: object, key: str) -> Sequence[object]:
    """The parts of a list, also where something else stands in its place."""
    match given:
        case list():
            return cast("list[object]", given)
        case str(text) if key == "content":
            return [_text(text)]
        case dict():
            return [cast("dict[str, Any]", given)]
        case _:
            return []


def _mended(
    method: str, version: str, answer: Mapping[str, Any], needed: frozenset[str]
) -> object | None:
    """The only part of an answer, without those of its optional fields that do not fit; None where
    it does not fit even so."""
    key = next(name for name in answer if name not in _UNSAID)
    part = object_of(answer[key][0])
    if _fits(method, version, answer):
        return part
    kept = {name: value for name, value in part.items() if name in needed}
    if not _fits(method, version, {**answer, key: [kept]}):
        return None
    for name, value in part.items():
        if name not in needed and _fits(method, version, {**answer, key: [{**kept, name: value}]}):
            kept[name] = value
    return kept


def _as_it_came(key: str, part: object) -> object | None:
    """A part that does not fit as text, where a model reads the list; None for an offer."""
    text = json.dumps(part, ensure_ascii=False)
    match key:
        case "content":
            return _text(text)
        case "contents":
            return {"uri": str(object_of(part).get("uri", "")), "text": text}
        case "messages":
            return {"role": "user", "content": _text(text)}
        case _:
            return None


def _keep_the_rest(
    method: str, version: str, answer: Mapping[str, Any], frame: dict[str, Any]
) -> Sequence[str]:
    """Take the fields beside the list over that fit, and say which do not."""
    notes: list[str] = []
    for name, value in answer.items():
        if name in frame:
            continue
        if _fits(method, version, {**frame, name: value}):
            frame[name] = value
        elif frame.get("content") == []:
            frame["content"] = [_text(json.dumps(value, ensure_ascii=False, indent=1))]
        else:
            notes.append(f"its field {name} doesn't fit the protocol")
    return notes


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}

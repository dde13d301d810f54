"""Attributes of spans: how they are read from a record's fields, whatever these hold.

A kind of span names its attributes as `Fields`. What no field says as it is, it adds by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from tui.core.config import model_of, profile_of
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, Usage, string_of
from tui.core.otlp import AttributeValue
from tui.core.redaction import mask

Values: TypeAlias = dict[str, AttributeValue]

CONVENTIONS: Final = "https://opentelemetry.io/schemas/1.44.0"
"""The conventions whose names are used: those of the package opentelemetry-semantic-conventions
0.66b2, against which they are tested."""
AGENT: Final = "holdfast"
PROVIDER: Final = "anthropic"
"""The conventions' name for all servers that speak the Messages API, but those of the clouds that
have a name there: these end so."""
_CLOUDS: Final = {
    ".amazonaws.com": "aws.bedrock",
    ".api.aws": "aws.bedrock",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    ".rep.googleapis.com": "gcp.vertex_ai",
}
_LONGEST: Final = 65_536
"""Most characters of a text; the rest is cut."""
_SHORT: Final = 200
"""Most characters of a name or a code."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a record that are attributes of its span, by the attributes' names. `texts` are
    content, which is sent only where the person wants that."""

    codes: Mapping[str, str] = field(default_factory=dict[str, str])
    numbers: Mapping[str, str] = field(default_factory=dict[str, str])
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def read(self, data: Mapping[str, Any], *, content: bool) -> Values:
        """Return the attributes that a record has."""
        values: Values = {name: code(data.get(key)) for name, key in self.codes.items()}
        for name, key in self.numbers.items():
            values |= whole(name, data.get(key))
        if content:
            values |= {name: text(data.get(key)) for name, key in self.texts.items()}
        return values


FAILURE: Final = Fields(
    codes={"error.type": "error_class", "holdfast.request.id": "request_id"},
    numbers={"http.response.status_code": "status"},
)


def failure(data: Mapping[str, Any]) -> Values:
    """Return the class of an error and the server's status; without a class, the conventions'
    `_OTHER`."""
    values = FAILURE.read(data, content=False)
    return values | {"error.type": values["error.type"] or "_OTHER"}


def operation(model: str, provider: str) -> Values:
    """Return what every request to a model has."""
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model_of(model),
        "holdfast.profile": profile_of(model),
    }


def tokens(usage: Usage) -> Values:
    """Return a usage. The conventions count what came from the cache as input, too."""
    if not usage.total:
        return {}
    values: Values = {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens,
    }
    if usage.thinking_tokens:
        values["gen_ai.usage.reasoning.output_tokens"] = usage.thinking_tokens
    if usage.web_search_requests:
        values["holdfast.usage.web_searches"] = usage.web_search_requests
    return values


def server(name: object) -> Values:
    """Return the host and port of an address."""
    try:
        parts = urlsplit(string_of(name))
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return {}
    if not parts.hostname:
        return {}
    values: Values = {"server.address": code(parts.hostname)}
    return values | {"server.port": port} if port else values


def provider(asked: Values) -> str:
    """Return the conventions' name of who answers at a server."""
    host = str(asked.get("server.address", ""))
    return next((name for end, name in _CLOUDS.items() if host.endswith(end)), PROVIDER)


def messages(role: str, parts: list[dict[str, Any]], reason: str = "") -> str:
    """Return one message as the conventions write messages."""
    message = {"role": role, "parts": parts} | ({"finish_reason": reason} if reason else {})
    return as_json([message])


def text_message(role: str, words: str) -> str:
    """Return a message that is only text."""
    return messages(role, [_text_part(words)])


def parts_of(content: Iterable[Block]) -> list[dict[str, Any]]:
    """Return the blocks of an answer as the conventions' parts of a message."""
    parts: list[dict[str, Any]] = []
    for block in content:
        match block.get("type"):
            case "text":
                parts.append(_text_part(string_of(block.get("text"))))
            case "thinking":
                parts.append({"type": "reasoning", "content": text(block.get("thinking"))})
            case "tool_use":
                call = {"id": block.get("id"), "name": block.get("name")}
                parts.append({"type": "tool_call", **call, "arguments": _arguments(block)})
            case kind:
                parts.append({"type": string_of(kind) or "unknown"})
    return parts


def as_json(value: object) -> str:
    """Return a value as JSON that people can read."""
    return json.dumps(value, ensure_ascii=False)


def sendable(values: Mapping[str, AttributeValue]) -> Values:
    """Return attributes as they are sent: keys masked, those without a value left out."""
    return {
        name: mask(value)[0] if isinstance(value, str) else value
        for name, value in values.items()
        if value != ""
    }


def cut(words: str) -> str:
    """Cut a text to its most characters."""
    return _cut(words, _LONGEST)


def text(value: object) -> str:
    """Return a text, whatever is in the record."""
    return cut(string_of(value))


def code(value: object) -> str:
    """Return a name or a code, whatever is in the record."""
    return _cut(string_of(value), _SHORT)


def whole(name: str, value: object) -> Values:
    """Return a whole number as an attribute, none for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62:
        return {name: value}
    return {}


def dollars(name: str, value: object) -> Values:
    """Return a sum of money as an attribute, none for anything else."""
    return {name: float(value)} if isinstance(value, int | float) else {}


def seconds(value: object) -> float:
    """Return seconds that can be counted with; 0 for anything else."""
    return float(value) if isinstance(value, int | float) and 0 < value < 1e8 else 0.0


def nanoseconds(value: object) -> int:
    """Return a record's seconds as spans count time."""
    return int(seconds(value) * 1e9)


def _arguments(block: Block) -> object:
    """The arguments of a call; a text that is cut where they are too long."""
    written = as_json(given := block.get("input"))
    return given if len(written) <= _LONGEST else cut(written)


def _text_part(words: str) -> dict[str, Any]:
    return {"type": "text", "content": cut(words)}


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[:most] + "…"

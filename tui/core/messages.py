"""Messages, content blocks, tool output and usage: the data that every part shares.

Blocks keep the Messages API's own JSON shape, so that a record can be sent, and an unknown block
can be kept, without translation. Nothing here talks to anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypedDict, TypeGuard, cast

import msgspec

from tui.core.dataclass import dataclass, field, replace

Block: TypeAlias = dict[str, Any]
"""One content block, as JSON: `{"type": "text", "text": …}`, `tool_use`, `tool_result`, …"""


class Message(TypedDict):
    """One message of a request. `content` is always a list here, never a bare string."""

    role: Literal["user", "assistant"]
    content: list[Block]


CALL_TOOL: Final = "call_tool"
"""The tool that calls others, which no request lists."""
USAGE_PARTS: Final = ("cache_creation", "output_tokens_details", "server_tool_use")
"""The objects in the API's usage that break a count down."""

_TOO_MANY = 1 << 53
"""No count of tokens reaches it; it would not fit a float, and sums of it no column."""


class Usage(msgspec.Struct, frozen=True):
    """Token counts of one or more answers, under the API's names. They add up with `+`.

    Of the tokens written to the cache, `ephemeral_1h_input_tokens` are kept for an hour. Of the
    output, `thinking_tokens` were thinking, if the server reports them. Each of the
    `web_search_requests` is paid for. If the server ran tools within one answer, the counts are
    sums over several rounds; `context_tokens` are then prompt and output of the last round,
    otherwise 0.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0
    thinking_tokens: int = 0
    web_search_requests: int = 0
    context_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            self.cache_read_input_tokens + other.cache_read_input_tokens,
            self.ephemeral_1h_input_tokens + other.ephemeral_1h_input_tokens,
            self.thinking_tokens + other.thinking_tokens,
            self.web_search_requests + other.web_search_requests,
        )

    @property
    def prompt_tokens(self) -> int:
        """All tokens that the model read: fresh, written to the cache and read from it."""
        return self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens

    @property
    def total(self) -> int:
        """All tokens that were read and written."""
        return self.prompt_tokens + self.output_tokens

    @property
    def context(self) -> int:
        """The size of the context after the answer: prompt and output."""
        return self.context_tokens or self.total

    @property
    def cache_share(self) -> float | None:
        """The share of the prompt that came from the cache; None for an empty prompt."""
        return self.cache_read_input_tokens / self.prompt_tokens if self.prompt_tokens else None

    def to_json(self) -> dict[str, int]:
        """Return the first four counts, and those of the others that are not 0."""
        counts = {name: getattr(self, name) for name in self.__struct_fields__}
        always = self.__struct_fields__[:4]
        return {name: count for name, count in counts.items() if count or name in always}

    @classmethod
    def from_json(cls, value: object) -> Usage:
        """Read usage from JSON. Missing, null or odd values count as 0.

        The API puts the lifetimes of cached tokens, the thinking and the searches in objects of
        their own.
        """
        found = given = object_of(value)
        for name in USAGE_PARTS:
            if name in given:
                found = object_of(given[name]) | found
        counts = map(found.get, cls.__struct_fields__)
        return cls(*[n if type(n) is int and 0 < n < _TOO_MANY else 0 for n in counts])


@dataclass(frozen=True, slots=True)
class RawOutput:
    """The size of a tool's real output, if the content it returns is not all of it.

    `partial`: the content lacks a part; False for a rendition that is only cleaner. `lost` tells
    why a part is in no file either, "" if nothing is lost. `data` is the whole output if it is
    small enough to need no file. `overwritten` counts bytes that the content lacks because carriage
    returns replaced them on the screen; that does not make it `partial`. `sha256` is the hash of
    the whole output, "" unless it was taken when the file that holds it was written.
    """

    bytes: int
    lines: int
    partial: bool = False
    lost: str = ""
    data: bytes | None = field(default=None, repr=False)
    overwritten: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of a tool.

    `content` is for the model; `display` (a unified diff, say) and `summary` (a few words such as
    "+3 −1") are for the person. `details` goes into the record (JSON values only). `full` is a file
    that holds the whole raw output of this call, if the tool has written one; it is removed if
    nothing was cut from the content. `raw` describes that output. `source` names the origin of a
    text that somebody else wrote: the model gets it marked as untrusted. `pin` keeps the result
    from being pruned or summarized. `ends_turn`: the model has nothing left to do.
    """

    content: list[Block]
    is_error: bool = False
    summary: str = ""
    display: str = ""
    details: dict[str, Any] = field(default_factory=dict[str, Any])
    full: Path | None = None
    raw: RawOutput | None = None
    source: str = ""
    pin: bool = False
    ends_turn: bool = False

    @classmethod
    def text(cls, text: str, *, is_error: bool = False, summary: str = "") -> ToolOutput:
        return cls([text_block(text)], is_error=is_error, summary=summary)

    def with_lines(self, lines: Sequence[str]) -> ToolOutput:
        """Return a copy with lines of the program's own at the end."""
        more = [text_block("\n".join(lines))] if lines else []
        return replace(self, content=[*self.content, *more])


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def image_block(media_type: object, data: object) -> Block:
    """Return a block for an image in base64."""
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def text_of(content: str | Iterable[Block]) -> str:
    """Return the text of a content list (or bare string), its text blocks joined by newlines; those
    that cite something are parts of one sentence with their neighbors."""
    if isinstance(content, str):
        return content
    texts = [b for b in content if b.get("type") == "text"]
    if not any("citations" in b for b in texts):
        return "\n".join([str(b.get("text", "")) for b in texts])
    return "\n".join("".join(str(b.get("text", "")) for b in part) for part in sentences(texts))


def sentences(texts: Iterable[Block]) -> Iterator[list[Block]]:
    """Group text blocks: those that cite something go with their neighbors."""
    group: list[Block] = []
    for block in texts:
        if group and not (group[-1].get("citations") or block.get("citations")):
            yield group
            group = []
        group.append(block)
    if group:
        yield group


def blocks_of(content: object) -> list[Block]:
    """Return unchecked content as blocks: a bare string becomes a text block, non-objects are
    dropped."""
    if isinstance(content, str):
        return [text_block(content)]
    if not isinstance(content, list):
        return []
    items = cast("list[object]", content)
    return cast("list[Block]", [item for item in items if isinstance(item, dict)])


def tool_calls(content: Iterable[Block]) -> list[Block]:
    """Return the `tool_use` blocks of an assistant message, in order."""
    return [b for b in content if b.get("type") == "tool_use"]


def as_meant(call: Block) -> Block:
    """Return a call as one of the tool that it is for: a call of `call_tool` becomes one of the MCP
    server's tool that it names."""
    if call.get("name") != CALL_TOOL:
        return call
    given = object_of(call.get("input"))
    name = string_of(given.get("name"))
    if not name.startswith("mcp__"):
        return call
    return {**call, "name": name, "input": given.get("input", {})}


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """True if a JSON value is an object."""
    return isinstance(value, dict)


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON value as an object; an empty one if it is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[object]:
    """Return a JSON value as a list; an empty one if it is none."""
    return cast("list[object]", value) if isinstance(value, list) else []


def string_of(value: object) -> str:
    """Return a JSON value as a string; an empty one if it is none."""
    return value if isinstance(value, str) else ""

"""The frame: the part of every request that is built once and then sent unchanged. Pure.

A server keys its cache by the system prompt and the tools, and signs thinking over them. So they
are recorded with the first request of a session (a `frame` record) and replayed from there; later
changes are stated at the end (see `tui.context.notices`). A new frame is a break.

A frame holds the operator's words. One that this installation did not make, as in a session file
that was copied or edited, is not replayed: its seal is an HMAC with a key that only this
installation has.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from tui.context.system_prompt import JOINT, joined_blocks, system_blocks
from tui.core.dataclass import dataclass, field
from tui.core.messages import Block, list_of, object_of
from tui.provider.prices import CacheLife
from tui.session.records import Record
from tui.tools.limits.clamp import Room

FRAME: Final = "frame"
"""The record's type."""
SEAL: Final = "seal"
"""The field that holds the HMAC of a record's other fields."""

_FORM: Final = ("system", "layers", "blocks", "sha256")
"""The fields of its record that also depend on the order of the layers."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The content that precedes the messages of every request.

    `layers` are the names and texts that make up the system prompt; `facts` the facts about the
    workspace in it, by name; `files` the hashes of the files whose text is in it, by name; `room`
    the size allowed for a tool result; `life` how long the server caches what is sent. `ends` are
    the numbers of layers up to the end of each block of the system prompt, none if it is one block.
    """

    layers: tuple[tuple[str, str], ...]
    tools: list[dict[str, Any]]
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    room: Room = field(default_factory=Room)
    life: CacheLife = "5m"
    ends: tuple[int, ...] = ()

    @property
    def system(self) -> list[Block]:
        """The system prompt, in blocks that each are cached for themselves."""
        return system_blocks([text for _, text in self.layers], self.ends)

    def says_the_same(self, other: Frame) -> bool:
        """True if another frame has the same content, whatever the order and the blocks."""
        one, two = (
            {name: value for name, value in frame.to_json().items() if name not in _FORM}
            | {"layers": sorted(frame.layers)}
            for frame in (self, other)
        )
        return canonical(one) == canonical(two)

    def to_json(self) -> dict[str, Any]:
        """The fields of its record, without the seal."""
        shown = {"system": self.system, "tools": self.tools}
        return {
            **shown,
            "layers": [[name, len(text)] for name, text in self.layers],
            **({"blocks": list(self.ends)} if self.ends else {}),
            "facts": dict(self.facts),
            "files": dict(self.files),
            "room": [self.room.bytes, self.room.lines],
            **({"cache_life": self.life} if self.life != "5m" else {}),
            "sha256": sha256(canonical(shown)).hexdigest(),
        }


def frame_in(record: Record) -> Frame | None:
    """Decode the frame in a record; None where it is damaged."""
    data = record.data
    system, tools = list_of(data.get("system")), list_of(data.get("tools"))
    shown = {"system": data.get("system"), "tools": data.get("tools")}
    if sha256(canonical(shown)).hexdigest() != data.get("sha256"):
        return None
    # The record has only names and lengths of the layers; their text is in the system prompt.
    text = joined_blocks(map(object_of, system))
    layers: list[tuple[str, str]] = []
    start = 0
    for entry in list_of(data.get("layers")):
        name, size = entry if isinstance(entry, list) and len(entry) == 2 else ("", 0)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON
        if not isinstance(name, str) or not isinstance(size, int):
            return None
        layers.append((name, text[start : start + size]))
        start += size + len(JOINT)
    room = list_of(data.get("room"))
    sizes = [size for size in room if isinstance(size, int)]
    frame = Frame(
        tuple(layers),
        [object_of(tool) for tool in tools],
        _strings(data.get("facts")),
        _strings(data.get("files")),
        Room(*sizes) if len(sizes) == 2 else Room(),
        "1h" if data.get("cache_life") == "1h" else "5m",
        tuple(end for end in list_of(data.get("blocks")) if isinstance(end, int)),
    )
    return frame if frame.system == system else None


def last_frame(records: Sequence[Record], key: bytes) -> tuple[Record, Frame] | None:
    """The frame in force on a branch; None where there is none that can be trusted."""
    record = next((one for one in reversed(records) if one.type == FRAME), None)
    if record is None or not is_sealed(record, key):
        return None
    frame = frame_in(record)
    return (record, frame) if frame else None


def sealed(data: dict[str, Any], key: bytes) -> dict[str, Any]:
    """Return the fields of a record with their seal."""
    return data | {SEAL: hmac.new(key, canonical(data), sha256).hexdigest()}


def is_sealed(record: Record, key: bytes) -> bool:
    """True if this installation made the record."""
    seal = record.data.get(SEAL)
    bare = {name: value for name, value in record.data.items() if name != SEAL}
    made = hmac.new(key, canonical(bare), sha256).hexdigest()
    return isinstance(seal, str) and seal.isascii() and hmac.compare_digest(seal, made)


def canonical(value: object) -> bytes:
    """Encode a JSON value independently of the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()


def _strings(value: object) -> dict[str, str]:
    return {name: text for name, text in object_of(value).items() if isinstance(text, str)}

"""What real terminals have sent, and the scripts that ask them: `python -m tests.terminals.record`
for replies, `python -m tests.terminals.record_keys` for keys.

The suite replays both. A line of `replies.jsonl`: terminal, its version, kind (query, mouse, paste,
focus), name, what was sent and what came back (hex), and the sizes of the reads it came in. A line
of `keys.jsonl`: terminal, version, what had been asked for (`legacy` is nothing, `asked` what the
program asks for), the keyboard's layout, and what each key sent (hex), "" for nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Recorded:
    """One reply of a real terminal."""

    terminal: str
    version: str
    kind: str
    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Struck:
    """What the keys of one terminal sent. On another layout than `us` a letter is the key in that
    place of a `us` keyboard."""

    terminal: str
    version: str
    modes: tuple[str, ...]
    layout: str
    sent: Mapping[str, bytes]


@cache
def recorded(*kinds: str) -> tuple[Recorded, ...]:
    """The replies of these kinds; each sequence of bytes once."""
    found: dict[bytes, Recorded] = {}
    for line in (HERE / "replies.jsonl").read_text().splitlines():
        row = json.loads(line)
        data = bytes.fromhex(row["reply"])
        if row["kind"] in kinds and data not in found:
            found[data] = Recorded(row["terminal"], row["version"], row["kind"], row["name"], data)
    return tuple(found.values())


@cache
def struck() -> tuple[Struck, ...]:
    """The keys of all terminals."""
    rows = map(json.loads, (HERE / "keys.jsonl").read_text().splitlines())
    return tuple(
        Struck(
            row["terminal"],
            row["version"],
            tuple(row["modes"]),
            row["layout"],
            {key: bytes.fromhex(sent) for key, sent in row["sent"].items()},
        )
        for row in rows
    )


@cache
def key_bytes() -> tuple[bytes, ...]:
    """All that a key has sent."""
    return tuple(dict.fromkeys(data for row in struck() for data in row.sent.values() if data))

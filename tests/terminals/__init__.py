"""What real terminals have sent, and the script that asks them: `python -m tests.terminals.record`.

`replies.jsonl` is what the suite replays. A line: terminal, its version, kind (query, key, mouse,
paste, focus), name, what was sent and what came back (hex), and the sizes of the reads it came in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

REPLIES: Final = Path(__file__).parent / "replies.jsonl"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One reply of a real terminal."""

    terminal: str
    version: str
    kind: str
    name: str
    data: bytes


@cache
def recorded(*kinds: str) -> tuple[Recorded, ...]:
    """The replies of these kinds; each sequence of bytes once."""
    found: dict[bytes, Recorded] = {}
    for line in REPLIES.read_text().splitlines():
        row = json.loads(line)
        data = bytes.fromhex(row["reply"])
        if row["kind"] in kinds and data not in found:
            found[data] = Recorded(row["terminal"], row["version"], row["kind"], row["name"], data)
    return tuple(found.values())

"""What people are used to from other programs: their keys and commands, as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
PLACES: Final = {
    "prompt": "empty prompt",
    "text": "prompt",
    "send": "prompt",
    "list": "list",
    "picker": "list with a filter",
    "settings": "settings",
    "context": "context (F2)",
    "diff": "diff",
    "approval": "approval",
}
"""The places of the keys, as a person names them."""


def rows(name: str) -> list[dict[str, str]]:
    """The rows of a table: "keys" or "commands"."""
    lines = (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def programs(name: str) -> list[str]:
    """The programs of a table, in order."""
    return list(dict.fromkeys(row["program"] for row in rows(name)))

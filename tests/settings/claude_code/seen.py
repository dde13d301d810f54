"""What Claude Code was seen to send, case by case: the rows of `seen.jsonl`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

SEEN: Final = Path(__file__).parent / "seen.jsonl"


@cache
def seen() -> dict[str, dict[str, Any]]:
    """All rows by the name of their case."""
    return {row["case"]: row for row in map(json.loads, SEEN.read_text().splitlines())}


def prompt_of(row: dict[str, Any]) -> str | None:
    """The text that went out for the command that was typed; None if nothing was sent."""
    said = [text for request in row["sent"] for text in request.get("messages", ())]
    texts = [text.removeprefix("user: ") for text in said if text.startswith("user: ")]
    texts = [text for text in texts if not text.startswith("<command-message>")]
    return texts[0].strip() if texts else None


def lines_of(row: dict[str, Any]) -> list[str]:
    """All lines that were sent, in their order."""
    parts = (request.get(part, ()) for request in row["sent"] for part in ("system", "messages"))
    return [line for texts in parts for text in texts for line in text.splitlines()]


def lay_out(row: dict[str, Any], workspace: Path, home: Path) -> None:
    """Write the files of a case below a folder and a home folder."""
    for name, text in row["files"].items():
        where = home if name.startswith("~/") else workspace
        path = where / name.removeprefix("~/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

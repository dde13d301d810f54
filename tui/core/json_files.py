"""JSON in a file: UTF-8 and whole characters, otherwise refused.

Python reads `"\\ud800"` as half a character, which nothing can write or send again.
"""

from __future__ import annotations

import json
import re

from tui.core.late_pattern import late_pattern

_ESCAPES = late_pattern(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
"""One escape sequence after the other; the group is half a pair."""


def parse_json(data: bytes) -> object:
    """Parse the value in a file. Raises ValueError that names the fault, and its line."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line} is no UTF-8 text") from error
    half = next((match for match in _ESCAPES.finditer(text) if match[1]), None)
    if half is not None:
        line = text.count("\n", 0, half.start()) + 1
        raise ValueError(f"line {line} has half a character ({half[0]})")
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error

"""TOML in a file, as plain data or refused: no text takes long to parse or ends the program.

`tomllib` of Python 3.11 takes quadratic time for a key of many parts (over 60 s for 100,000), and
recurses for each list in a list.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from tui.core.late_pattern import late_pattern

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = late_pattern(
    rf"(?:^[ \t]*+\[{{0,2}}|[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{64}}", re.MULTILINE
)
"""A place for a key, with one of more parts than anybody writes."""


def parse_toml(text: str) -> dict[str, Any]:
    """Parse the table in a text. Raises ValueError that names the fault, and its line."""
    if key := _LONG_KEY.search(text):
        line = text.count("\n", 0, key.start()) + 1
        raise ValueError(f"a key has too many parts (at line {line})")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error

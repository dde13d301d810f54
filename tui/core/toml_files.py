"""TOML that lies in a file, as plain data or refused: no text of it takes long or ends a program.

`tomllib` of Python 3.11 takes quadratic time for a key of many parts (over 60 s for 100,000), and
recurses for each list in a list.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(
    rf"(?:^[ \t]*+\[{{0,2}}|[{{,])[ \t]*+{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{64}}", re.MULTILINE
)
"""Where a key may be, one of more parts than anybody writes."""


def parse_toml(text: str) -> dict[str, Any]:
    """The table in a text. Raises ValueError that says what is wrong with it, and where."""
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key has too many parts (at line {line})")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error

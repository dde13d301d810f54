"""The session files of other agents, a module or folder for each format: what is a record of it
(`matches`), how it becomes one of ours (`convert`), and how it is mended so that its own program
opens it again (`repair_lines`). No I/O here but reading opencode's database.

Import reads more of a damaged file than its own program would open: it follows links past what is
lost. A rescue mends the links first, then the branch that the program opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, TypeAlias

from tui.session.formats import codex, pi
from tui.session.formats.claude_code import mending, reading, records
from tui.session.formats.conversion import Conversion, ParsedLine
from tui.session.formats.lines import MendedLine, Repairs
from tui.session.jsonl import JsonObject

LineFormat: TypeAlias = Literal["claude_code", "pi", "codex"]

_MATCHES: Final[Mapping[LineFormat, Callable[[JsonObject], bool]]] = {
    "codex": codex.matches,
    "claude_code": records.matches,
    "pi": pi.matches,
}
CONVERT: Final[Mapping[LineFormat, Callable[[Iterable[ParsedLine], Conversion], None]]] = {
    "codex": codex.convert,
    "claude_code": reading.convert,
    "pi": pi.convert,
}
"""The conversions of a file's records into ours."""
MEND: Final[Mapping[LineFormat, Callable[[list[MendedLine], Repairs, str], list[MendedLine]]]] = {
    "codex": codex.repair_lines,
    "claude_code": mending.repair_lines,
    "pi": pi.repair_lines,
}
"""The repairs of a file's lines; the text is the file's name."""


def format_of(value: JsonObject) -> LineFormat | None:
    """The format that an object is a record of."""
    return next((name for name, matches in _MATCHES.items() if matches(value)), None)

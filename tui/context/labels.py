"""One-line labels of records and calls. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tui.context.overrides import content_of
from tui.core.messages import Block, as_meant, object_of, string_of, text_of, tool_calls
from tui.session.records import Record
from tui.tools.patch_format import named_paths

CHARS: Final = 80
_SUBJECTS: Final = ("command", "path", "file_path", "pattern", "query", "url", "name")
"""The arguments that best distinguish one call of a tool from another, the best first."""


def label_of(record: Record, calls: Mapping[str, Block]) -> str:
    """Return the label of a sent record. `calls` are the tool calls so far, by id."""
    content = content_of(record)
    if record.type == "tool_result":
        call = calls.get(str(record.data.get("call_id")))
        return call_label(call) if call else str(record.data.get("name") or "result")
    if text := one_line(text_of(content)):
        return text
    made = [call_label(call) for call in tool_calls(content)]
    kinds = sorted({str(block.get("type")) for block in content})
    return one_line(", ".join(made or kinds)) or "(empty)"


def call_label(call: Block) -> str:
    """Label a tool call by its name and its most telling argument."""
    call = as_meant(call)
    arguments = object_of(call.get("input"))
    paths = ", ".join(named_paths(string_of(arguments.get("patch"))))
    named = (*(arguments.get(name) for name in _SUBJECTS), paths, *arguments.values())
    argument = next((value for value in named if isinstance(value, str) and value.strip()), "")
    return one_line(f"{call.get('name')} {argument}")


def one_line(text: str) -> str:
    """Return the first words of a text, on one line of at most `CHARS` characters."""
    line = " ".join(text[: CHARS * 8].split())
    return line if len(line) <= CHARS else line[: CHARS - 1].rstrip() + "…"

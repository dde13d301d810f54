"""The data about a call that hooks get and may change, in the shapes of Claude Code 2.1.332."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from tui.core import claude_names
from tui.core.messages import is_object, object_of, string_of, text_of

_TEXTS: Final[Sequence[Sequence[str]]] = (("text",), ("stdout",), ("file", "content"), ("content",))
"""The places of a result's text: ours, and those of its tools."""


def data_of(call_id: str, tool: str, input_: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Return the data about a call in a workspace."""
    return {
        "tool_name": claude_names.names_of(tool)[0],
        "tool_input": claude_names.input_of(input_, root),
        "tool_use_id": call_id,
    }


def response_of(tool: str, input_: Mapping[str, Any], text: str, root: Path) -> dict[str, Any]:
    """Return the data about a result: what its tools have of it, and all of its text."""
    shape: dict[str, Any] = {}
    if tool == "run_command":
        shape = {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    elif tool == "read_file":
        shape = {"type": "text", "file": {**_place(input_, root), "content": text}}
    elif tool in {"write_file", "edit_file"}:
        shape = _place(input_, root)
    return shape | {"success": True, "text": text}


def _place(input_: Mapping[str, Any], root: Path) -> dict[str, str]:
    return {"filePath": claude_names.file_path(string_of(input_.get("path")), root)}


def changed_text(given: Mapping[str, Any], changed: object) -> str:
    """Return the text of a result that a hook changed; `given` is the one that it got. What has no
    text where one belongs is taken as it is: dropping it would show what the hook took out."""
    if isinstance(changed, str):
        return changed
    if isinstance(changed, list):
        return text_of(cast("list[Any]", changed))
    places = [(at, text) for at in _TEXTS if (text := _text_at(changed, at)) is not None]
    for at, text in places:
        if text != _text_at(given, at):
            errors = string_of(object_of(changed).get("stderr")) if at == ("stdout",) else ""
            return "\n".join(filter(None, (text, errors)))
    return string_of(given.get("text")) if places else json.dumps(changed, ensure_ascii=False)


def _text_at(value: object, at: Sequence[str]) -> str | None:
    for key in at:
        value = object_of(value).get(key) if is_object(value) else None
    if isinstance(value, list):
        return text_of(cast("list[Any]", value))
    return value if isinstance(value, str) else None

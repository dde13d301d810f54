"""A write of a file tool, done again on what the file was: its result isn't kept, only its hash is.

Whoever uses it compares hashes, so a result that differs does no harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui.core.errors import ToolError
from tui.core.messages import list_of, object_of, string_of
from tui.tools.new_content import new_content, whole_content
from tui.tools.patch_format import parse_patch
from tui.tools.patch_hunks import added_text, apply_hunks
from tui.tools.text_decoding import DecodedText, decode
from tui.tools.text_match import TextMatch, find_matches, flatten, splice


def written(tool: str, given: Mapping[str, Any], before: bytes, path: Path) -> bytes | None:
    """The content after a call of a file tool with these arguments; None where it can't be told."""
    with suppress(ToolError, UnicodeError, ValueError):
        old = decode(before, path.name)
        match tool:
            case "write_file":
                text = string_of(given.get("content"))
                return whole_content(old, text, path, path.name).data
            case "edit_file":
                return new_content(old, _edited(old, given), path, path.name).data
            case "apply_patch":
                text = _patched(old, string_of(given.get("patch")), path)
                return new_content(old, text, path, path.name).data
            case _:
                return None
    return None


def _edited(file: DecodedText, given: Mapping[str, Any]) -> str:
    text = file.text
    edits = [object_of(one) for one in list_of(given.get("edits"))] or [given]
    for edit in edits:
        old, new = (string_of(edit.get(name)) for name in ("old_string", "new_string"))
        flat, old, new = map(flatten, (text, old, new))
        if edit.get("replace_all") is True and old in flat:
            at, matches = flat.find(old), list[TextMatch]()
            while at >= 0:
                matches.append(TextMatch(at, at + len(old), new))
                at = flat.find(old, at + len(old))
        else:
            matches = find_matches(flat, old, new)
        if not matches or (len(matches) > 1 and edit.get("replace_all") is not True):
            raise ValueError("the edit doesn't fit")
        text, _ = splice(text, matches)
    return text


def _patched(old: DecodedText, patch: str, path: Path) -> str:
    for file in parse_patch(patch):
        named = {Path(one).name for one in (*file.paths, file.target) if one}
        if path.name in named:
            if file.action == "add":
                return added_text(file)
            return apply_hunks(file, old.text, path.name).text
    raise ValueError("the patch has no such file")

"""What a person is told of the files in the system prompt, as a session starts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def card(files: Sequence[Mapping[str, Any]]) -> tuple[str, str]:
    """A line, and below it one for each file: what was in it, what of it is in the prompt.

    `files` are those of the event ContextFiles.
    """
    kept, count = sum(int(one["kept"]) for one in files), len(files)
    what = f"{files[0]['name']}" if count == 1 else f"{count} files"
    title = f"In the prompt: {what}, {kept:,} characters"
    if cut := [str(one["name"]) for one in files if _is_cut(one)]:
        title += f" · cut: {', '.join(cut)}"
    width = max((len(str(one["name"])) for one in files), default=0)
    return title, "\n".join(f"{one['name']:<{width}}  {_size(one)}" for one in files)


def cuts(files: Sequence[Mapping[str, Any]]) -> list[str]:
    """A line for each file that is not in the prompt as a whole."""
    return [f"{one['name']} in the prompt: {_size(one)}" for one in files if _is_cut(one)]


def _is_cut(one: Mapping[str, Any]) -> bool:
    return one["kept"] < one["raw"]


def _size(one: Mapping[str, Any]) -> str:
    if not _is_cut(one):
        return f"{one['raw']:,} chars"
    if not one["kept"]:
        return f"{one['raw']:,} chars → left out: the prompt is full"
    return f"{one['raw']:,} → {one['kept']:,} chars, cut"

"""Diffs in words."""

from __future__ import annotations

from tui.plain.speech_text import diff
from tui.tools.diff import unified


def test_each_file_is_named_once() -> None:
    changed, added = unified("a\n", "b\n", "x.txt").text, unified(None, "n\n", "new.txt").text
    gone = unified("g\n", None, "old.txt").text
    moved = unified("m\n", "m\n", "to.txt", moved_from="from.txt").text
    assert diff("\n".join([changed, added, gone, moved])) == [
        *("File x.txt", "At line 1:", "  removed: a", "  added: b"),
        *("File new.txt", "At line 1:", "  added: n"),
        *("File old.txt, deleted", "  removed: g"),
        "File to.txt, before: from.txt",
    ]

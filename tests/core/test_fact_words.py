"""Facts in words: one sentence each, wherever they are read."""

from __future__ import annotations

from tui.core.fact_words import fact_lines, words
from tui.core.facts import ContextFiles

AGENTS = {"name": "AGENTS.md", "origin": "project", "raw": 3210, "kept": 3210}
MEMORY = {"name": "MEMORY.md", "origin": "memory", "raw": 31_000, "kept": 20_000}
GONE = {"name": "boot.md", "origin": "boot", "raw": 5000, "kept": 0}


def test_every_file_is_named_with_what_became_of_it() -> None:
    said = words(ContextFiles((AGENTS, MEMORY, GONE)))
    assert said
    assert said.text == "Loaded 3 files (23,210 characters) · cut: MEMORY.md, boot.md"
    assert said.open
    assert said.detail.splitlines() == [
        "AGENTS.md  3,210 chars",
        "MEMORY.md  31,000 → 20,000 chars, cut",
        "boot.md    5,000 chars → left out: the prompt is full",
    ]


def test_one_file_that_is_whole_is_said_so_in_a_line() -> None:
    said = words(ContextFiles((AGENTS,)))
    assert said
    assert said.text == "Loaded AGENTS.md (3,210 characters)"
    assert not said.open


def test_without_a_screen_only_what_was_cut_is_worth_a_line() -> None:
    assert fact_lines(ContextFiles((AGENTS,))) == ()
    cut = "Loaded MEMORY.md (31,000 → 20,000 chars, cut)"
    assert fact_lines(ContextFiles((AGENTS, MEMORY))) == (cut,)

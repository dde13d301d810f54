"""The start card: each file's size, and what of it is in the prompt."""

from __future__ import annotations

from tui.context.project_files import context_file_cuts, context_files_card

AGENTS = {"name": "AGENTS.md", "origin": "project", "raw": 3210, "kept": 3210}
MEMORY = {"name": "MEMORY.md", "origin": "memory", "raw": 31_000, "kept": 20_000}
GONE = {"name": "boot.md", "origin": "boot", "raw": 5000, "kept": 0}


def test_every_file_is_named_with_what_became_of_it() -> None:
    title, detail = context_files_card([AGENTS, MEMORY, GONE])
    assert title == "Loaded 3 files (23,210 characters) · cut: MEMORY.md, boot.md"
    assert detail.splitlines() == [
        "AGENTS.md  3,210 chars",
        "MEMORY.md  31,000 → 20,000 chars, cut",
        "boot.md    5,000 chars → left out: the prompt is full",
    ]


def test_one_file_that_is_whole_is_said_so_in_a_line() -> None:
    assert context_files_card([AGENTS])[0] == "Loaded AGENTS.md (3,210 characters)"


def test_without_a_screen_only_what_was_cut_is_worth_a_line() -> None:
    assert context_file_cuts([AGENTS]) == []
    assert context_file_cuts([AGENTS, MEMORY]) == ["Loaded MEMORY.md (31,000 → 20,000 chars, cut)"]

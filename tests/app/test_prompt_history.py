"""The prompt history: walked with Up and Down, kept per workspace, bounded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.app.prompt_history import ENTRY_LIMIT, LIMIT, PromptHistory


def test_up_and_down_walk_and_the_draft_comes_back() -> None:
    history = PromptHistory()
    history.add("one")
    history.add("two")
    assert history.back("draft") == "two"
    assert history.back("two") == "one"
    assert history.back("one") is None
    assert history.forward("one") == "two"
    assert history.forward("two") == "draft"
    assert history.forward("draft") is None


def test_what_was_recalled_and_edited_becomes_the_draft() -> None:
    history = PromptHistory()
    history.add("one")
    assert history.back("") == "one"
    assert history.forward("one more") is None
    assert history.back("one more") == "one"
    assert history.forward("one") == "one more"


def test_no_draft_is_lost_by_another() -> None:
    history = PromptHistory()
    history.add("one")
    assert history.back("first draft") == "one"
    assert history.back("one, edited") == "first draft"
    assert history.forward("first draft") == "one, edited"
    assert history.back("one, edited") == "first draft"
    history.add("first draft")
    assert history.entries == ["one", "first draft", "one, edited", "first draft"]


def test_an_empty_history_leads_nowhere() -> None:
    history = PromptHistory()
    assert [history.back("draft"), history.back("draft"), history.forward("draft")] == [None] * 3


def test_what_was_typed_elsewhere_is_kept_for_this_run(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "h")
    history.keep("in an editor")
    assert history.back("") == "in an editor"
    assert PromptHistory(tmp_path / "h").entries == []


def test_it_is_there_again_next_time(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history.jsonl"
    PromptHistory(path).add("line one\nline two ✓")
    again = PromptHistory(path)
    assert again.entries == ["line one\nline two ✓"]
    assert path.stat().st_mode & 0o077 == 0


async def test_it_can_be_read_ahead_of_the_first_key(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    PromptHistory(path).add("earlier")
    again, missing = PromptHistory(path), PromptHistory(tmp_path / "none")
    await again.load()
    await missing.load()
    path.unlink()
    assert again.entries == ["earlier"]
    assert missing.entries == []


def test_repetitions_and_blanks_are_not_kept(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "h")
    for text in ("a", "a", "  ", "b", "a"):
        history.add(text)
    assert PromptHistory(tmp_path / "h").entries == ["a", "b", "a"]


def test_the_file_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "h"
    history = PromptHistory(path)
    for n in range(2 * LIMIT + 10):
        history.add(f"prompt {n}")
    again = PromptHistory(path)
    assert len(again.entries) == LIMIT
    assert again.entries[-1] == f"prompt {2 * LIMIT + 9}"
    assert len(path.read_text().splitlines()) == LIMIT


def test_a_huge_entry_stays_in_memory_only(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "h")
    history.add("x" * (ENTRY_LIMIT + 1))
    assert len(history.entries) == 1
    assert PromptHistory(tmp_path / "h").entries == []


def test_the_parts_that_were_pasted_are_known_next_time(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "h")
    history.add("see paste one", [(4, 9)])
    history.add("plain")
    again = PromptHistory(tmp_path / "h")
    assert again.entries == ["see paste one", "plain"]
    assert list(again.pasted_in("see paste one")) == [(4, 9)]
    assert list(again.pasted_in("plain")) == []


def test_parts_that_are_none_are_left_out(tmp_path: Path) -> None:
    odd = {"text": "some text", "pasted": [[0, 4], [2, 5], [5, 99], None, [6], "x", [5, 9]]}
    (tmp_path / "h").write_text(json.dumps(odd))
    history = PromptHistory(tmp_path / "h")
    assert history.entries == ["some text"]
    assert list(history.pasted_in("some text")) == [(0, 4), (5, 9)]


@pytest.mark.parametrize("content", [b'not json\n"good"\n{}\n', b'\xff\xfe\n"good"\n'])
def test_bad_lines_cost_only_themselves(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "h").write_bytes(content)
    assert PromptHistory(tmp_path / "h").entries == ["good"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = PromptHistory(tmp_path / "file" / "h")
    history.add("kept for this run")
    assert history.back("") == "kept for this run"

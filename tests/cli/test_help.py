"""`holdfast help`: a topic, the whole manual, a search; a pager on a terminal, text in a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.terminal import Terminal
from tui.app import manual
from tui.cli import main

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `help` with words; returns the exit code, stdout and stderr."""

    def go(*words: str) -> tuple[int, str, str]:
        code = main.main(["help", *words])
        done = capsys.readouterr()
        return code, done.out, done.err

    return go


def test_the_list_has_every_topic_with_what_it_covers(run: Run) -> None:
    code, out, _ = run("--list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(manual.TOPICS)
    assert "errors         Retries, countdowns" in out


def test_without_a_topic_all_of_it_is_shown_behind_its_contents(run: Run) -> None:
    code, out, _ = run()
    assert code == 0
    assert out.startswith("# The Holdfast manual\n")
    heads = [line for line in out.splitlines() if line.startswith("# ")]
    assert heads[1:] == [f"# {topic.title}" for topic in manual.topics()]


@pytest.mark.parametrize("word", ["permissions", "perm", "PERMISSIONS"])
def test_a_topic_is_found_by_the_start_of_its_name(run: Run, word: str) -> None:
    code, out, _ = run(word)
    assert code == 0
    assert out.startswith("# Permissions\n")
    assert not any(sign in out for sign in ("\x1b", "`", "](", "<!--", "!["))


def test_a_beginning_of_several_names_lists_them(run: Run) -> None:
    code, out, _ = run("com")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["commands", "command-line"]


def test_another_word_lists_the_sections_that_mention_it(run: Run) -> None:
    code, out, _ = run("retry")
    assert code == 0
    assert out.startswith("No topic is called retry.")
    assert "errors › While a retry waits\n    /retry sends the request now" in out
    assert max(map(len, out.splitlines())) <= 80


def test_several_words_are_all_in_the_section(run: Run) -> None:
    code, out, _ = run("rate limit")
    assert code == 0
    assert "errors › What happens when" in out
    assert "keys ›" not in out


@pytest.mark.parametrize(
    ("word", "hint"), [("erors", "Did you mean errors?"), ("zzzz", "holdfast help --list")]
)
def test_what_nothing_is_about_is_a_usage_error(run: Run, word: str, hint: str) -> None:
    code, out, err = run(word)
    assert (code, out) == (2, "")
    assert f"the manual has nothing about '{word}'" in err
    assert hint in err


@pytest.mark.parametrize("words", [["start"], ["--list"], []])
def test_no_line_is_cut_in_the_middle_of_a_word(run: Run, words: list[str]) -> None:
    _, out, _ = run(*words)
    assert out.endswith("\n")
    assert not out.endswith("\n\n")


# On a terminal


HOLDFAST = (sys.executable, "-m", "tui", "help", "themes")


def test_a_terminal_gets_a_pager(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\ncat\necho "paged with LESS=$LESS"\n')
    pager.chmod(0o755)
    with Terminal([*HOLDFAST], cwd=tmp_path, env=os.environ | {"PAGER": str(pager)}) as screen:
        screen.wait_for("Themes", "midnight", "paged with LESS=FRX")


def test_a_pager_that_is_not_there_is_done_without(tmp_path: Path) -> None:
    with Terminal([*HOLDFAST], cwd=tmp_path, env=os.environ | {"PAGER": "no-such-pager"}) as screen:
        screen.wait_for("Themes", "midnight")

"""K25–K33, K43, K44: how directives are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.agent.prompts import Directives, from_json, parse


def test_K25_leading_directives_are_taken_off() -> None:
    parsed = parse("/think /verbose analyze this code")
    assert Directives().with_changes(parsed.changes) == Directives(think=True, verbose=True)
    assert parsed.text == "analyze this code"


def test_K29_off_and_on_again_and_merging() -> None:
    state = Directives().with_changes(parse("/think").changes)
    state = state.with_changes(parse("/verbose").changes)
    assert state == Directives(think=True, verbose=True)
    state = state.with_changes(parse("/think off go on").changes)
    assert state == Directives(verbose=True)
    assert state.with_changes(parse("/think on").changes).think


@pytest.mark.parametrize(
    "text",
    [
        "cat /think/notes",
        "/usr/verbose",
        "/think/notes is a file",
        "```\n/think\n```",
        "/thinking about it",
        "  plain text  \n",
        "please /think",
    ],
)
def test_K30_everything_else_is_left_byte_for_byte(text: str) -> None:
    assert parse(text).text == text
    assert parse(text).changes == {}


def test_K30_case_does_not_matter() -> None:
    assert parse("/THINK /Verbose x").changes == {"think": True, "verbose": True}


def test_K30_an_on_that_begins_a_sentence_is_the_sentences() -> None:
    for typed, changes, text in (
        ("/think on the design of x", {"think": True}, "on the design of x"),
        ("/think on\nthe design", {"think": True}, "the design"),
        ("/think on /verbose on", {"think": True, "verbose": True}, ""),
        ("/verbose on /think on performance", {"think": True, "verbose": True}, "on performance"),
        ("/elevated off the record", {"elevated": False}, "the record"),
        ("/think on", {"think": True}, ""),
    ):
        parsed = parse(typed)
        assert (parsed.changes, parsed.text) == (changes, text)


def test_K31_an_unknown_word_stops_parsing() -> None:
    parsed = parse("/think /frobnicate /verbose")
    assert parsed.changes == {"think": True}
    assert parsed.text == "/frobnicate /verbose"


def test_K32_only_directives_leave_no_text() -> None:
    assert parse("  /think /elevated off ").text == ""


@pytest.mark.parametrize("value", ["yes", None, 3, [], {"think": "on"}, {"other": True}])
def test_K44_corrupted_metadata_is_off(value: object) -> None:
    assert from_json(value) == Directives()


@given(st.text())
def test_parsing_never_loses_what_is_not_a_directive(text: str) -> None:
    parsed = parse(text)
    assert text.endswith(parsed.text)


def test_K30_the_indentation_behind_a_directive_is_kept() -> None:
    assert parse("/think\n\n    if x:\n        y()").text == "    if x:\n        y()"
    assert parse("/think   on \r\n\tgo").text == "\tgo"
    assert parse("/think   go").text == "go"
    assert parse("/think \n ").text == ""

"""The strict server's rules about its own search of the web."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.server_search import Json, call_block, result_block, search_refusals

TOOL: Json = {"type": "web_search_20250305", "name": "web_search"}
PAGE: Json = {"url": "https://a.org/", "title": "A"}


def refused(tools: list[Json], messages: list[Json] | None = None, *lacks: str) -> list[str]:
    body = {"tools": tools, "messages": messages or []}
    return [one.message for one in search_refusals(body, lacks)]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"max_uses": 3},
        {"allowed_domains": ["a.org", "b.org/docs"]},
        {"blocked_domains": ["a.b"]},
    ],
)
def test_a_sound_tool_is_taken(more: dict[str, Any]) -> None:
    assert refused([TOOL | more, {"name": "own"}]) == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"type": "web_search_2020"}, "is not expected"),
        ({"name": "search"}, "Input should be 'web_search'"),
        ({"max_results": 3}, "Extra inputs are not permitted"),
        ({"allowed_domains": ["a.org"], "blocked_domains": ["b.org"]}, "only one of"),
        ({"allowed_domains": ["https://a.org"]}, "is not a domain"),
        ({"blocked_domains": ["*.a.org"]}, "is not a domain"),
    ],
)
def test_others_are_not(more: dict[str, Any], words: str) -> None:
    (said,) = refused([TOOL | more])
    assert words in said


def test_an_organization_may_have_it_switched_off() -> None:
    assert refused([TOOL], None, "web_search") == [
        "Web search is not enabled for this organization."
    ]


def test_what_was_found_comes_back_as_it_went() -> None:
    whole = result_block("srvtoolu_1", [PAGE])
    said = [{"role": "assistant", "content": [call_block("srvtoolu_1", "a"), whole]}]
    assert refused([TOOL], said) == []
    whole["content"][0]["encrypted_content"] = "other"
    assert "Invalid `encrypted_content`" in refused([TOOL], said)[0]

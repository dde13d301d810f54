"""What is known of models: the program's own table, and what a server says in its place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.provider.conversation import MODEL, provider_for
from tests.support.server import LoopbackServer
from tests.support.server_catalogue import listed
from tests.support.server_models import MODELS
from tests.support.server_script import Json
from tui.provider import catalogue
from tui.provider.base import ModelInfo


def _as_published(name: str) -> ModelInfo:
    """A model as the tests' own facts have it."""
    facts = MODELS[name]
    return ModelInfo(
        name,
        facts.window,
        facts.output,
        "catalogue",
        efforts=facts.efforts,
        effort=facts.effort if facts.efforts else "",
        thinking_types=facts.thinking,
        thinks=facts.thinks,
        display=facts.display,
        system_messages=facts.system_messages,
        tool_additions=facts.system_messages,
        turn_effort=facts.turn_effort,
        binds=facts.binds,
        compacts=facts.compacts,
        documents=name != "claude-mythos-preview",
        web_search=name != "claude-mythos-preview",
        cached_from=facts.cached_from,
        retires_at=facts.retires[:10] if facts.retires else "",
        line=name.split("-")[1],
    )


async def _asked(name: str, facts: Json) -> ModelInfo:
    async with LoopbackServer({"models": {name: facts}}) as server:
        provider = provider_for(server)
        info = await provider.model_info(name)
        await provider.aclose()
    return info


@pytest.mark.parametrize("name", MODELS)
def test_every_field_of_a_model_is_as_published(name: str) -> None:
    assert catalogue.model_info(name) == _as_published(name)


@pytest.mark.parametrize("name", MODELS)
async def test_a_server_that_lists_a_model_changes_nothing_that_is_known(name: str) -> None:
    async with LoopbackServer({"catalogue": True}) as server:
        provider = provider_for(server)
        info = await provider.model_info(name)
        await provider.aclose()
    published = _as_published(name)
    assert info == replace(published, source="server", retires_at=MODELS[name].retires or "")


async def test_what_a_server_says_goes_before_the_catalogue() -> None:
    said = listed(MODEL)
    can = said["capabilities"]
    info = await _asked(
        MODEL,
        said
        | {
            "line": "saga",
            "max_input_tokens": 300_000,
            "max_tokens": 9_000,
            "retires_at": "2027-12-01T00:00:00Z",
            "capabilities": can
            | {
                "effort": {
                    "supported": True,
                    "low": {"supported": True},
                    "max": {"supported": False},
                },
                "thinking": {"types": {"between_tools": {"supported": False}}},
                "compaction": {"summarize": {"supported": False}},
            },
        },
    )
    assert (info.window, info.max_output, info.line) == (300_000, 9_000, "saga")
    assert info.efforts == ("low", "medium", "high", "xhigh")
    assert info.thinking_types == ("adaptive",)
    assert not info.compacts
    assert info.retires_at == "2027-12-01T00:00:00Z"
    assert info.binds


async def test_a_server_can_say_that_a_model_has_none_of_it() -> None:
    none = {"supported": False}
    said = {"max_input_tokens": 1, "retires_at": None, "line": None}
    said |= {"capabilities": {"effort": none, "thinking": none}}
    info = await _asked("claude-sonnet-4-5", said)
    assert (info.efforts, info.effort, info.thinking_types) == ((), "", ())
    assert (info.retires_at, info.line) == ("", "")
    assert not (await _asked(MODEL, said)).thinks


@pytest.mark.parametrize(
    "facts",
    [
        {"max_tokens": "9", "capabilities": None, "retires_at": 7, "line": ["opus"]},
        {"max_tokens": True, "max_input_tokens": 1.5, "capabilities": []},
        {"capabilities": {"effort": "all", "thinking": 1, "compaction": None}},
        {"capabilities": {"effort": {"low": 1, "supported": "no"}, "thinking": {"types": [1]}}},
        {"capabilities": {"compaction": {"summarize": True}}},
    ],
)
async def test_what_a_server_says_in_another_form_counts_as_not_said(facts: Json) -> None:
    assert await _asked(MODEL, facts) == catalogue.model_info(MODEL)


async def test_of_an_unknown_model_that_is_known_which_the_server_says() -> None:
    info = await _asked("claude-sonnet-9", listed(MODEL))
    assert info.efforts == catalogue.EFFORTS
    assert (info.line, info.effort, info.thinks, info.system_messages) == (
        "sonnet",
        "",
        False,
        False,
    )


@pytest.mark.parametrize(
    ("name", "source", "window"),
    [
        ("claude-opus-4-6", "catalogue", 1_000_000),
        ("claude-haiku-4-5-20251001", "catalogue", 200_000),
        ("claude-sonnet-4-5@20250929", "catalogue", 200_000),
        ("anthropic/claude-opus-5-5", "catalogue", 1_000_000),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "catalogue", 200_000),
        ("claude-sonnet-5-9", "assumed", 200_000),
        ("claude", "assumed", 200_000),
        ("qwen3:8b", "assumed", 200_000),
    ],
)
def test_catalogue_sees_through_the_names_of_gateways(name: str, source: str, window: int) -> None:
    info = catalogue.model_info(name)
    assert (info.id, info.source, info.window) == (name, source, window)


def test_catalogue_knows_every_model_of_the_sdk() -> None:
    from typing import get_args  # noqa: PLC0415

    from anthropic.types import Model  # noqa: PLC0415 (the import takes a second)

    names = get_args(get_args(Model)[0])
    assert "claude-sonnet-5-5" in names
    assert {catalogue.model_info(name).source for name in names} == {"catalogue"}


def test_nothing_special_is_asked_of_an_unknown_model() -> None:
    assert catalogue.model_info("mine") == ModelInfo("mine", 200_000, 8_192, "assumed")

"""The short ways that the tests of the screen take through Textual lead where Textual's own do."""

from __future__ import annotations

from typing import Any

import pytest
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.message_pump import MessagePump

from tests.support import dispatch, stylesheets
from tests.support.world import World
from tests.ui.screens.driving import running, say

HANDLERS: Any = vars(MessagePump)["_get_dispatch_methods"]
APPLY: Any = vars(Stylesheet)["apply"]
FLAGS = ("_has_hover_style", "_has_focus_within", "_has_order_style", "_has_odd_or_even")
CHECK: Any = vars(Stylesheet)["_check_rule"].__func__


async def test_every_message_goes_to_the_same_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch.remember(monkeypatch)
    short: Any = vars(MessagePump)["_get_dispatch_methods"]
    seen = 0

    def both(pump: Any, name: str, message: Any) -> Any:
        nonlocal seen
        found = list(HANDLERS(pump, name, message))
        assert list(short(pump, name, message)) == found
        seen += len(found)
        return found

    monkeypatch.setattr(MessagePump, "_get_dispatch_methods", both)
    async with running(World()) as (_, pilot):
        await say(pilot, "/help")
    assert seen > 100


async def test_every_node_is_told_the_same_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    stylesheets.share(monkeypatch)
    short: Any = vars(Stylesheet)["_check_rule"].__func__
    seen = 0

    def both(rule: Any, path: list[DOMNode]) -> Any:
        nonlocal seen
        found = list(CHECK(Stylesheet, rule, path))
        assert list(short(rule, path)) == found
        seen += len(found)
        return found

    monkeypatch.setattr(Stylesheet, "_check_rule", staticmethod(both))
    async with running(World()) as (_, pilot):
        await say(pilot, "/help")
    assert seen > 100


def styles_of(node: Any) -> list[Any]:
    """What a style sheet sets on a node; a layout is one of its kind."""
    rules: dict[str, Any] = {**node.styles.base._rules}
    if "layout" in rules:
        rules["layout"] = rules["layout"].name
    return [rules, *(getattr(node, name) for name in FLAGS)]


async def test_every_node_is_styled_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a node took from one before it, in this app or in another, is what the rules say."""
    stylesheets.share(monkeypatch)
    short: Any = vars(Stylesheet)["apply"]
    seen = 0

    def both(sheet: Any, node: Any, **how: Any) -> None:
        nonlocal seen
        APPLY(sheet, node)
        expected = styles_of(node)
        node.styles.base._rules.clear()
        short(sheet, node, **how)
        assert styles_of(node) == expected
        seen += 1

    monkeypatch.setattr(Stylesheet, "apply", both)
    for _ in range(2):
        async with running(World()) as (_, pilot):
            await say(pilot, "/help")
            await pilot.press("escape", "tab")
    assert seen > 200

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

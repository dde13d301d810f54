"""A key's effect is painted when the key has done what it does, not with the next frame."""

from __future__ import annotations

from typing import Any, cast

import pytest
from textual.screen import Screen
from textual.timer import Timer

from tests.support.world import World
from tests.ui.screens.driving import running
from tui.ui.toolkit import base_app


async def test_a_key_is_painted_without_waiting_for_a_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[str] = []
    paint, resume = cast("Any", Screen)._compositor_refresh, Timer.resume

    async with running(World()) as (app, pilot):
        await pilot.press("a")

        def note(screen: Screen[None]) -> None:
            shown.append(app.chat.prompt.text)
            paint(screen)

        def no_frame(timer: Timer) -> None:
            if timer.name != "screen_update":
                resume(timer)

        with monkeypatch.context() as patched:
            patched.setattr(Screen, "_compositor_refresh", note)
            patched.setattr(Timer, "resume", no_frame)
            patched.setattr(base_app, "UPDATE_PERIOD", 0)  # the key before was just echoed
            await pilot.press("b")
            assert shown == ["ab"]

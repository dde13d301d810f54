"""What nobody looks at is not painted: that is a third of what a test of the screen costs.

Pictures, and tests that read the screen, paint it whole. Every app is painted at its end, so that a
state that cannot be drawn fails its test.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen


def on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no app paint what has changed by itself."""
    run_test = App[Any].run_test

    @asynccontextmanager
    async def painted_at_the_end(app: App[Any], **options: Any) -> AsyncGenerator[Pilot[Any]]:
        async with run_test(app, **options) as pilot:
            yield pilot
            if app.is_running:
                _paint(app)

    monkeypatch.setattr(App, "run_test", painted_at_the_end)
    monkeypatch.setattr(Screen, "_compositor_refresh", _forget)


def _paint(app: Any) -> None:
    """Draw all that it shows, and what shines through from the screens below."""
    app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)


def _forget(screen: Screen[Any]) -> None:
    """Take what has changed as painted."""
    screen._dirty_widgets.clear()  # pyright: ignore[reportPrivateUsage]
    screen._compositor._dirty_regions.clear()  # pyright: ignore[reportPrivateUsage]

"""Asking how a model is reached: without a key, or where the server refused it."""

from __future__ import annotations

from typing import Any

from textual.app import App

from tui.app.ports import AppServices
from tui.core.errors import HoldfastError


async def set_up(app: App[Any], services: AppServices, why: str) -> str | None:
    """Ask until it can be kept. Returns what was kept, in a sentence, which may be empty; None
    where the person wants none."""
    from tui.ui.screens.welcome import WelcomeScreen  # noqa: PLC0415 - on demand

    problem = ""
    while True:
        setup = await app.push_screen_wait(WelcomeScreen(services.probe_servers, why, problem))
        if setup is None:
            return None
        try:
            return await services.set_up(setup)
        except HoldfastError as error:
            problem = str(error)

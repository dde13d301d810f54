"""Models as the server listed them: taken from the list it gave last, refreshed meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.server import LoopbackServer
from tui.agent.launch import Access, Launch
from tui.agent.model_access import listed_model, refresh_models, refreshed_models
from tui.core.clock import SystemClock
from tui.core.config import Config
from tui.core.paths import folders
from tui.core.workspace import Workspace
from tui.provider import model_list

NAME = "claude-sonnet-5-5"


@pytest.fixture
def launch(own_folders: Path, tmp_path: Path) -> Launch:
    return Launch(Workspace.at(tmp_path, ceiling="/"), Config(), folders(), Access(key="k"))


async def test_what_the_server_listed_goes_before_the_catalogue(launch: Launch) -> None:
    script = {"models": {NAME: {"max_input_tokens": 123_000, "max_tokens": 4000}}}
    assert listed_model(launch, NAME).source == "catalogue"
    async with LoopbackServer(script) as server:
        launch = replace(launch, config=Config(base_url=server.url))
        await refresh_models(launch, SystemClock())
        found = listed_model(launch, NAME)
        assert (found.window, found.max_output, found.source) == (123_000, 4000, "server")
        assert found.binds
        small = replace(launch, config=Config(base_url=server.url, context_window=9000))
        assert (listed_model(small, NAME).window, listed_model(small, NAME).source) == (
            9000,
            "config",
        )
        async with refreshed_models(launch, SystemClock()):
            pass
        assert [seen.path for seen in server.requests] == ["/v1/models"]


async def test_nobody_waits_for_the_list(launch: Launch) -> None:
    async with LoopbackServer({"models": {}}) as server:
        launch = replace(launch, config=Config(base_url=server.url))
        async with asyncio.timeout(PATIENCE_S), refreshed_models(launch, SystemClock()):
            pass
        assert not model_list.listed(launch.folders.cache, server.url)

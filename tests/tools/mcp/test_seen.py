"""Published servers of 2024 to 2026, as they were seen: each says again what it said, and the
client makes the same of it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.call_host import FakeHost
from tests.support.clock import PATIENCE_S
from tests.tools.mcp.seen import replay
from tests.tools.mcp.seen.day import compared, outcome
from tui.core.config import McpServer
from tui.tools.mcp import Servers, connection

SEEN = sorted((Path(__file__).parent / "seen").glob("*.jsonl"))


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("file", SEEN, ids=lambda file: file.stem)
async def test_a_day_with_a_published_server(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of(file)
    if any(line.get("ended") == "silent" for line in lines):
        monkeypatch.setattr(connection, "PROBE_S", 0.2)  # it never answers, however long
    command = (sys.executable, replay.__file__, str(file))
    servers = Servers({"seen": McpServer(command=command)}, cwd=tmp_path, log_folder=tmp_path)
    servers.start()
    await asyncio.wait_for(servers.settled(), PATIENCE_S)
    (server,) = servers.all
    try:
        (state,) = (line for line in lines if "state" in line)
        assert (server.state, server.detail, server.left_out) == (
            state["state"], state["detail"], state["left_out"],
        ), await server.log_end(4000)  # fmt: skip
        for line in lines:
            if "did" in line:
                got = await outcome(server, line["did"], FakeHost())
                assert compared(got) == line["got"], line["did"]
    finally:
        await asyncio.wait_for(servers.close(), PATIENCE_S)

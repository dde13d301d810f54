"""The loopback server as a process of its own, as the end-to-end tests use it."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.provider.conversation import ask
from tests.support.clock import ManualClock
from tui.provider.anthropic import AnthropicProvider

_JSON = '{"turns": [{"text": "from a script"}]}'
_TOML = '[[turn]]\ntext = "from a script"\nusage = {input_tokens = 5}\n'


@pytest.mark.parametrize(("name", "script"), [("s.json", _JSON), ("s.toml", _TOML)])
async def test_a_server_process_prints_its_url_and_logs_requests(
    tmp_path: Path, name: str, script: str
) -> None:
    (tmp_path / name).write_text(script)
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, "-m", "tests.support.server", "--script", str(tmp_path / name)]
    process = await asyncio.create_subprocess_exec(
        *command, "--log", str(log), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        provider = AnthropicProvider(api_key="k", base_url=url, clock=ManualClock())
        answer = await ask(provider)
        await provider.aclose()
    finally:
        process.terminate()
        await process.wait()
    assert answer.content == [{"type": "text", "text": "from a script"}]
    (line,) = log.read_text().splitlines()
    seen = json.loads(line)
    assert (seen["method"], seen["path"]) == ("POST", "/v1/messages")
    assert seen["body"]["messages"][0]["content"][0]["text"] == "hello"

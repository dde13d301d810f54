"""`holdfast -p` with an MCP server: its tools are there at once, and go through the same gate."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clock import PATIENCE_S
from tests.support.oauth_server import oauth_world
from tests.support.program import Program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
RUN = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    "from tests.tools.mcp.server import server; server.run('stdio')"
)
CONFIG = f"[mcp.odd]\ncommand = {json.dumps([sys.executable, '-c', RUN])}\n"
SCRIPT = """
[[turn]]
tools = [{name = "mcp__odd__echo", input = {text = "from afar"}}]
[[turn]]
text = "It said so."
"""
Write = Callable[[str], Path]


def test_a_tool_of_a_server_runs_where_a_rule_allows_it(
    holdfast: Program, script: Callable[[str], str], config: Write
) -> None:
    config(CONFIG)
    words = ("--practice", "--practice-script", script(SCRIPT), "-p", "say it")
    lines = holdfast.lines(*words, "--allow", "mcp__odd__*")
    (awaited,) = [line for line in lines if line["type"] == "tools_awaited"]
    assert awaited["servers"] == ["odd"]
    (finished,) = [line for line in lines if line["type"] == "tool_finished"]
    assert (finished["is_error"], finished["text"]) == (False, "from afar")
    assert lines[-1]["outcome"] == "done"


def test_without_a_rule_it_is_not_allowed_and_the_wait_is_told(
    holdfast: Program, script: Callable[[str], str], config: Write
) -> None:
    config(CONFIG)
    done = holdfast("--practice", "--practice-script", script(SCRIPT), "-p", "say it")
    assert done.stdout == "It said so.\n"
    assert "Waiting up to 50 s for the MCP servers: odd." in done.stderr
    assert "mcp__odd__echo was not allowed" in done.stderr


def test_a_server_of_an_untrusted_folder_is_not_started(
    holdfast: Program, script: Callable[[str], str]
) -> None:
    touched = holdfast.work / "touched"
    own = holdfast.work / ".holdfast"
    own.mkdir()
    command = [sys.executable, "-c", f"open({str(touched)!r}, 'w')"]
    (own / "config.toml").write_text(f"[mcp.evil]\ncommand = {json.dumps(command)}\n")
    holdfast("--practice", "--practice-script", script('[[turn]]\ntext = "hi"\n'), "-p", "hello")
    assert not touched.exists()
    trusting = ("--trust", "--practice", "--practice-script", script('[[turn]]\ntext = "hi"\n'))
    done = holdfast(*trusting, "-p", "hello")
    assert touched.exists()
    assert done.stdout == "hi\n"
    assert "MCP server evil failed" in done.stderr


def test_a_server_gets_no_keys_but_those_that_are_named(
    holdfast: Program, script: Callable[[str], str], config: Write
) -> None:
    seen = holdfast.work / "seen"
    code = f"import os; open({str(seen)!r}, 'w').write(' '.join(os.environ))"
    server = f"[mcp.looks]\ncommand = {json.dumps([sys.executable, '-c', code])}\n"
    config(f'{server}[sandbox]\nkeep_env = ["DB_TOKEN"]\n')
    keys = {"DB_TOKEN": "a", "AWS_SECRET_ACCESS_KEY": "b", "SSH_AUTH_SOCK": "/c"}
    words = ("--practice", "--practice-script", script('[[turn]]\ntext = "hi"\n'), "-p", "hello")
    holdfast(*words, env=dict(holdfast.env) | keys)
    assert set(keys) & set(seen.read_text().split()) == {"DB_TOKEN"}


async def test_login_prints_the_address_and_takes_what_is_pasted(
    holdfast: Program, config: Write, home: Path
) -> None:
    async with oauth_world() as world:
        config(f'[mcp.door]\nurl = "{world.url}"\n')
        env = {**holdfast.env, "SSH_CONNECTION": "1"}
        env.pop("BROWSER", None)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tui", "mcp", "login", "door",
            cwd=holdfast.work, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE,
        )  # fmt: skip
        assert process.stdin
        assert process.stdout
        address = (await process.stdout.readline()).decode().strip()
        process.stdin.write(f"{await world.redirected(address)}\n".encode())
        await process.stdin.drain()
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert b"Signed in to door: ready, 1 tool." in err
        assert process.returncode == 0
        (name,) = json.loads((home / "config" / "credentials.json").read_text())["keys"]
        assert name == f"mcp {world.url}"

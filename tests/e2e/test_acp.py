"""`holdfast acp` as a process that an editor starts."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from acp import RequestError, schema

from tests.support.clock import PATIENCE_S
from tests.support.editor import Editing, EditorClient, connected
from tests.support.program import Program
from tests.support.terminal import HOLDFAST, Terminal
from tui.core.clock import SystemClock
from tui.session.lock import SessionLock

Write: TypeAlias = Callable[[str], str]

SCRIPT = """
[[turn]]
text = "I'll look."
tools = [{name = "read_file", input = {path = "README.md"}}]
[[turn]]
[[turn.tools]]
name = "edit_file"
input = {path = "README.md", old_string = "Demo", new_string = "Real"}
[[turn]]
text = "Done."
"""


@asynccontextmanager
async def started(
    work: Path, env: dict[str, str], *more: str
) -> AsyncGenerator[tuple[Process, asyncio.StreamReader, asyncio.StreamWriter]]:
    """`holdfast acp`, killed at the end if it has not ended before."""
    process = await asyncio.create_subprocess_exec(
        *HOLDFAST, "acp", *more, cwd=work, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield process, process.stdout, process.stdin
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def opened(
    work: Path, env: dict[str, str], *more: str, client: EditorClient | None = None
) -> AsyncGenerator[tuple[Editing, Process]]:
    client = client or EditorClient()
    async with (
        started(work, env, *more) as (process, reader, writer),
        connected(reader, writer, client) as (conn, checked),
    ):
        await conn.initialize(protocol_version=1)
        yield Editing(conn, client, checked, work), process


async def test_a_task_from_beginning_to_end(work: Path, env: dict[str, str], script: Write) -> None:
    practice = ("--practice", "--practice-script", script(SCRIPT))
    async with opened(work, env, *practice) as (editor, process):
        session = await editor.new()
        done = await editor.prompt(session, "Make it real.")
        assert done.stop_reason == "end_turn"
        assert (work / "README.md").read_text().startswith("# Real")
        assert [asked["title"] for asked in editor.client.asked] == ["Edit README.md"]
        with pytest.raises(RequestError, match="There is no method '_nes/start'"):
            await editor.conn.ext_method("nes/start", {})
        assert process.stdin is not None
        process.stdin.close()
        assert await process.wait() == 0
        assert process.stderr is not None
        assert await process.stderr.read() == b""
    async with opened(work, env, *practice) as (editor, process):
        await editor.conn.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert editor.client.updates[0]["content"]["text"] == "Make it real."
        assert editor.client.said == "I'll look.Done."


async def test_what_another_program_has_open_is_not_loaded(
    work: Path, env: dict[str, str], home: Path, script: Write
) -> None:
    practice = ("--practice", "--practice-script", script('[[turn]]\ntext = "Hi."\n'))
    async with opened(work, env, *practice) as (editor, _):
        session = await editor.new()
        await editor.prompt(session, "Hello.")
        await editor.conn.close_session(session_id=session)
        (path,) = home.rglob(f"*{session}.jsonl")
        lock = SessionLock(path, clock=SystemClock())
        lock.take()
        try:
            with pytest.raises(RequestError, match="open") as caught:
                await editor.conn.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        finally:
            lock.release()
        assert caught.value.code == -32002
        await editor.conn.load_session(cwd=str(work), session_id=session, mcp_servers=[])


@pytest.mark.parametrize("end", ["stdin", "signal"])
async def test_an_end_in_mid_turn_is_an_interruption(
    work: Path, env: dict[str, str], home: Path, script: Write, end: str
) -> None:
    practice = ("--practice", "--practice-script", script(SCRIPT))
    client = EditorClient(answer=None)
    async with opened(work, env, *practice, client=client) as (editor, process):
        session = await editor.new()
        prompt = asyncio.create_task(editor.prompt(session, "Make it real."))
        await client.asking.wait()
        if end == "signal":
            process.send_signal(signal.SIGTERM)
        else:
            assert process.stdin is not None
            process.stdin.close()
        assert await process.wait() == 0
        prompt.cancel()
    (path,) = home.rglob(f"*{session}.jsonl")
    kinds = [json.loads(line)["type"] for line in path.read_text().splitlines()]
    assert "interrupt" in kinds
    assert (work / "README.md").read_text().startswith("# Demo")


BAD: tuple[tuple[bytes, int, str], ...] = (
    (b"{", -32700, "This isn't JSON"),
    (b"\xff\xfe", -32700, "This isn't JSON"),
    (b"[" * 100_000, -32700, "This isn't JSON"),
    (b"[1]", -32600, "one JSON object"),
    (b'"text"', -32600, "one JSON object"),
    (b"{}", -32600, "has a method, a result or an error"),
    (b'{"id": {}, "result": 1}', -32600, "id must be"),
    (b'{"id": 1, "error": "no"}', -32600, "error must be an object"),
    (b'{"id": 1, "method": 5}', -32600, "method must be a string"),
    (b'{"id": 1, "method": "session/new"}', -32602, "cwd: Field required"),
    (b'{"id": 1, "method": "session/new", "params": 3}', -32602, "session/new"),
    (b'{"id": 1, "method": "session/prompt", "params": {"sessionId": "x", "prompt": [{}]}}',
     -32602, "prompt.0"),
    (b'{"id": 1, "method": "initialize", "params": {"protocolVersion": -5}}', -32602,
     "protocolVersion"),
    (b'{"id": 1, "method": "no/such"}', -32601, "There is no method 'no/such'"),
)  # fmt: skip


async def test_bad_input_is_answered_and_the_process_lives_on(
    work: Path, env: dict[str, str]
) -> None:
    async with started(work, env, "--practice") as (process, reader, writer):
        for line, code, words in BAD:
            writer.write(line + b"\n")
            answer: dict[str, Any] = json.loads(await reader.readline())
            assert answer["error"]["code"] == code, line[:80]
            assert words in answer["error"]["message"], line[:80]
        # what answers nothing: an unknown notification, and an answer that nobody waits for
        writer.write(b'\n{"method": "no/such"}\n{"id": 77, "result": {}}\n')
        writer.write(b'{"id": 2, "method": "initialize", "params": {"protocolVersion": 1}}\n')
        answer = json.loads(await reader.readline())
        assert answer["id"] == 2
        found = schema.InitializeResponse.model_validate(answer["result"])
        assert found.protocol_version == 1
        writer.write(b'{"id": 3, "method": "initia')
        writer.close()
        assert await process.wait() == 0
        last = json.loads(await reader.readline())
        assert last["error"]["code"] == -32700


def test_it_is_not_for_a_terminal(work: Path, env: dict[str, str]) -> None:
    with Terminal([*HOLDFAST, "acp"], cwd=work, env=env) as terminal:
        terminal.wait_for("started by an editor, not by hand")


def test_files_are_no_editor(holdfast: Program, work: Path) -> None:
    with (work / "README.md").open("rb") as file:
        done = subprocess.run(
            [*HOLDFAST, "acp"],
            cwd=holdfast.work,
            env=holdfast.env,
            stdin=file,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode == 2
    assert b"talks to an editor over pipes" in done.stderr
    assert done.stdout == b""

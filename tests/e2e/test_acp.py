"""`holdfast acp` as a process that an editor starts."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import PIPE
from typing import Any, TypeAlias

import pytest
from acp import RequestError, schema

from tests.support.clock import PATIENCE_S
from tests.support.editor import Editing, EditorClient, connected
from tests.support.preloaded import RUN, Process, start
from tests.support.program import Program
from tests.support.terminal import HOLDFAST, Terminal
from tui.core.clock import SystemClock
from tui.session.lock import SessionLock

Write: TypeAlias = Callable[[str], str]

PRELOAD = (*RUN, "tui.cli.acp", "tui.cli.acp.agent", "tui.cli.acp.session")
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
    with start(
        [*HOLDFAST, "acp", *more], cwd=work, env=env,
        stdin=PIPE, stdout=PIPE, stderr=PIPE, preload=PRELOAD,
    ) as process:  # fmt: skip
        reader, writer = await streams(process)
        try:
            async with asyncio.timeout(PATIENCE_S):
                yield process, reader, writer
        finally:
            writer.close()
            process.kill()


async def streams(process: Process) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """What it writes, and what it reads."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    taking = partial(asyncio.StreamReaderProtocol, reader)
    await loop.connect_read_pipe(taking, process.stdout)
    giving = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    transport, _ = await loop.connect_write_pipe(lambda: giving, process.stdin)
    return reader, asyncio.StreamWriter(transport, giving, None, loop)


async def end_of(process: Process) -> int:
    """The exit code of one that ends by itself."""
    return await asyncio.to_thread(process.wait, PATIENCE_S)


@asynccontextmanager
async def opened(
    work: Path, env: dict[str, str], *more: str, client: EditorClient | None = None
) -> AsyncGenerator[tuple[Editing, Process, asyncio.StreamWriter]]:
    client = client or EditorClient()
    async with (
        started(work, env, *more) as (process, reader, writer),
        connected(reader, writer, client) as (conn, checked),
    ):
        await conn.initialize(protocol_version=1)
        yield Editing(conn, client, checked, work), process, writer


async def test_a_task_from_beginning_to_end(work: Path, env: dict[str, str], script: Write) -> None:
    practice = ("--practice", "--practice-script", script(SCRIPT))
    async with opened(work, env, *practice) as (editor, process, writer):
        session = await editor.new()
        done = await editor.prompt(session, "Make it real.")
        assert done.stop_reason == "end_turn"
        assert (work / "README.md").read_text().startswith("# Real")
        assert [asked["title"] for asked in editor.client.asked] == ["Edit README.md"]
        with pytest.raises(RequestError, match="There is no method '_nes/start'"):
            await editor.conn.ext_method("nes/start", {})
        writer.close()
        assert await end_of(process) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    async with opened(work, env, *practice) as (editor, *_):
        await editor.conn.load_session(cwd=str(work), session_id=session, mcp_servers=[])
        assert editor.client.updates[0]["content"]["text"] == "Make it real."
        assert editor.client.said == "I'll look.Done."


async def test_what_another_program_has_open_is_not_loaded(
    work: Path, env: dict[str, str], home: Path, script: Write
) -> None:
    practice = ("--practice", "--practice-script", script('[[turn]]\ntext = "Hi."\n'))
    async with opened(work, env, *practice) as (editor, *_):
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
    async with opened(work, env, *practice, client=client) as (editor, process, writer):
        session = await editor.new()
        prompt = asyncio.create_task(editor.prompt(session, "Make it real."))
        await client.asking.wait()
        if end == "signal":
            process.send_signal(signal.SIGTERM)
        else:
            writer.close()
        assert await end_of(process) == 0
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
    (b'{"id": 1, "method": "session/prompt", "params": {"sessionId": "x", "prompt": 5}}',
     -32602, "prompt"),
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
        assert await end_of(process) == 0
        last = json.loads(await reader.readline())
        assert last["error"]["code"] == -32700


def test_it_is_not_for_a_terminal(work: Path, env: dict[str, str]) -> None:
    with Terminal([*HOLDFAST, "acp"], cwd=work, env=env, preload=PRELOAD) as terminal:
        terminal.wait_for("started by an editor, not by hand")


def test_files_are_no_editor(holdfast: Program, work: Path) -> None:
    with (work / "README.md").open("rb") as file, start(
        [*HOLDFAST, "acp"], cwd=holdfast.work, env=holdfast.env,
        stdin=file, stdout=PIPE, stderr=PIPE, preload=PRELOAD,
    ) as process:  # fmt: skip
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert b"talks to an editor over pipes" in err
    assert out == b""

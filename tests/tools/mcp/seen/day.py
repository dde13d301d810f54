"""One step of a day with a server, and what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from tests.support.call_host import FakeHost
from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_of
from tui.tools.mcp import Server

SHOWN: Final = 100
"""Characters of a result that are compared."""
PATIENCE_S: Final = 60


def compared(got: dict[str, Any]) -> dict[str, Any]:
    """What of an outcome is the same where most of the server's words are cut."""
    return {name: one[:SHOWN] if isinstance(one, str) else one for name, one in got.items()}


async def outcome(server: Server, step: Sequence[Any], host: FakeHost) -> dict[str, Any]:
    """Take one step: what the model would get, or the error."""
    before = server.state
    try:
        async with asyncio.timeout(PATIENCE_S):
            got = await _take(server, step, host)
    except ToolError as error:
        got = {"error": str(error)}
    return got if server.state == before else {**got, "state": server.state}


async def _take(server: Server, step: Sequence[Any], host: FakeHost) -> dict[str, Any]:
    match step:
        case ["call", str(tool), arguments]:
            return _shown(await server.calls.call(tool, arguments, host))
        case ["read", str(uri)]:
            return _shown(await server.calls.read_resource(uri, host))
        case ["prompt", str(name), str(arguments)]:
            prompt = next((one for one in server.prompts if one.name == name), None)
            if prompt is None:
                raise ToolError(f"There is no prompt {name}.")
            return {"text": await server.calls.prompt_text(prompt, arguments, host.session_id)}
        case ["cancel", str(tool), arguments]:
            begun = asyncio.Event()
            told = FakeHost(on_output=begun.set)
            waiting = asyncio.ensure_future(server.calls.call(tool, arguments, told))
            await begun.wait()
            waiting.cancel()
            await asyncio.wait({waiting})
            return {"cancelled": waiting.cancelled()}
        case ["restart"]:
            await server.restart()
            await server.connection.settled()
            return {"state": server.state, "tools": len(server.tools) > 0}
        case _:
            raise AssertionError(step)


def _shown(output: ToolOutput) -> dict[str, Any]:
    kinds = [block["type"] for block in output.content]
    return {"kinds": kinds, "is_error": output.is_error, "text": text_of(output.content)}

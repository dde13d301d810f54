"""The requests to an MCP server that take their time: calls of its tools, what it is asked to give
to be read, and its prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from tui.core.errors import ToolError
from tui.core.messages import ToolOutput, text_block
from tui.tools.base import CallHost
from tui.tools.mcp.catalogue import McpPrompt
from tui.tools.mcp.connection import CALL_S, ServerLink
from tui.tools.mcp.open_call import OpenCall, OpenCalls
from tui.tools.mcp.tool import content_blocks, embedded, tool_output

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.exceptions import MCPError
    from mcp_types import RequestParamsMeta

_Answer = TypeVar("_Answer")

_ANEW: Final = (
    "(The MCP server {} had lost the session, perhaps by a restart. A new one was begun: what the "
    "server kept of the earlier one may be gone.)"
)

SESSION_KEY: Final = "sessionID"
"""In the `_meta` of a request: the session that it comes from, by the name that opencode has for
it. It is right over every transport, and for a server that several sessions share."""
TRACE_KEY: Final = "traceparent"
"""In the `_meta` of a request, by SEP-414: the span that it is part of."""
PAGES_ASKED: Final = 3
"""Pages that the person is asked to open before one call."""


class Calls:
    """The calls of one server, over its connection, which they open where it is closed."""

    def __init__(self, server: str, connection: ServerLink, open_calls: OpenCalls) -> None:
        self._server, self._connection, self._open = server, connection, open_calls
        self.promised: Mapping[str, Mapping[str, Any]] = {}
        """The schemas of the structured output that tools promise, by name."""

    @property
    def open(self) -> Sequence[OpenCall]:
        """The calls that wait for their answers now."""
        return self._open.all

    async def call(self, tool: str, arguments: dict[str, Any], host: CallHost) -> ToolOutput:
        """Call one of its tools; `host` puts to the person what it asks meanwhile. Raises ToolError
        when the server does not answer as it should."""
        client = await self._connection.client()
        questions: list[dict[str, Any]] = []
        try:
            async with self._open.begin(CALL_S, host) as call:
                questions = call.asked
                output = await self._called(client, tool, arguments, call)
        except Exception as error:
            failure = self._connection.failure(tool, error)
            if not questions:
                raise failure from error
            output = ToolOutput.text(str(failure), is_error=True, summary=failure.message)
        return (
            replace(output, details={**output.details, "asked": questions}) if questions else output
        )

    async def read_resource(self, uri: str, host: CallHost) -> ToolOutput:
        """Read a resource. Raises ToolError as `call` does."""
        client = await self._connection.client()
        host.emit(f"{uri}\n")
        try:
            async with self._open.begin(CALL_S, host):
                result, anew = await self._answer(
                    client,
                    lambda over: over.read_resource(
                        uri, meta=_from(host.session_id, host.traceparent), cache_mode="bypass"
                    ),
                )
        except Exception as error:
            raise self._connection.failure(f"Reading {uri:.200}", error) from error
        blocks = [embedded(one) for one in result.contents]
        output = ToolOutput(blocks or [text_block("(no content)")])
        return output.with_lines([_ANEW.format(self._server)]) if anew else output

    async def prompt_text(self, prompt: McpPrompt, arguments: str, session_id: str) -> str:
        """The text of a prompt with what was typed for its arguments in a session: a word for each,
        the last one gets the rest. Raises ToolError."""
        words = arguments.split(maxsplit=max(0, len(prompt.arguments) - 1))
        given = dict(zip((name for name, _ in prompt.arguments), words, strict=False))
        if missing := [name for name, must in prompt.arguments if must and name not in given]:
            raise ToolError(f"The prompt {prompt.name} needs: {', '.join(missing)}.")
        client = await self._connection.client()
        try:
            async with asyncio.timeout(CALL_S):
                result, _ = await self._answer(
                    client, lambda over: over.get_prompt(prompt.name, given, meta=_from(session_id))
                )
        except Exception as error:
            raise self._connection.failure(f"The prompt {prompt.name:.200}", error) from error
        blocks = content_blocks(one.content for one in result.messages)
        text = "\n\n".join(str(block["text"]) for block in blocks if block["type"] == "text")
        if not text.strip():
            server = self._server
            raise ToolError(f"The prompt {prompt.name} of the MCP server {server} has no text.")
        return text

    async def _called(
        self, client: Client, tool: str, arguments: dict[str, Any], call: OpenCall
    ) -> ToolOutput:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - it loads the SDK
        from mcp_types import URL_ELICITATION_REQUIRED  # noqa: PLC0415 - as above

        async def report_progress(
            progress: float, total: float | None, message: str | None
        ) -> None:
            call.heard()
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            call.host.emit(f"{share} {message or ''}".rstrip() + "\n")

        try:
            result, anew = await self._answer(
                client,
                lambda over: over.call_tool(
                    tool,
                    arguments,
                    progress_callback=report_progress,
                    meta=_from(call.host.session_id, call.host.traceparent),
                ),
            )
            output = tool_output(result, self.promised.get(tool))
            return output.with_lines([_ANEW.format(self._server)]) if anew else output
        except MCPError as error:
            if error.code != URL_ELICITATION_REQUIRED:
                raise
            return await self._led_away(error, call)

    async def _answer(
        self, client: Client, ask: Callable[[Client], Awaitable[_Answer]]
    ) -> tuple[_Answer, bool]:
        """The answer to a request. Where the server has lost the session, which it does when it is
        restarted, the request was not carried out, and is sent once more in a new one: True."""
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - it loads the SDK

        from tui.tools.mcp.transport import SESSION_LOST  # noqa: PLC0415 - as above

        try:
            return await ask(client), False
        except MCPError as error:
            if error.code != SESSION_LOST:
                raise
        return await ask(await self._connection.begin_anew(client)), True

    async def _led_away(self, error: MCPError, call: OpenCall) -> ToolOutput:
        """The result where the person has to open pages before a call can be carried out."""
        from mcp.shared.exceptions import UrlElicitationRequiredError  # noqa: PLC0415 - as above

        server = self._server
        for page in UrlElicitationRequiredError.from_error(error.error).elicitations[:PAGES_ASKED]:
            reply = await self._open.put(page, call)
            if getattr(reply, "action", "") != "accept":
                text = f"{server} needs the user to open a page first, and they didn't want to."
                return ToolOutput.text(text, is_error=True, summary="declined")
        text = (
            f"{server} needs the user to do something on a page first. They agreed to open it. "
            "Ask whether they are done, then call the tool again."
        )
        return ToolOutput.text(text, is_error=True, summary="a page was opened")


def _from(session_id: str, traceparent: str = "") -> RequestParamsMeta:
    """Return the `_meta` of a request, which names the session that it comes from, and the span
    that the server's own spans continue."""
    trace = {TRACE_KEY: traceparent} if traceparent else {}
    return cast("RequestParamsMeta", {SESSION_KEY: session_id, **trace})

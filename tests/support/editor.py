"""An editor that has the program as its agent: the official client, over pipes. Each message that
comes is checked against the protocol."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp import connect_to_agent, schema
from acp.client.connection import ClientSideConnection
from acp.connection import StreamDirection, StreamEvent
from acp.utils import serialize_params
from pydantic import BaseModel

from tests.support.clock import PATIENCE_S
from tui.app.options.arguments import Options
from tui.cli.acp import serve

ANSWERS: Mapping[str, type[BaseModel]] = {
    "initialize": schema.InitializeResponse,
    "authenticate": schema.AuthenticateResponse,
    "session/new": schema.NewSessionResponse,
    "session/load": schema.LoadSessionResponse,
    "session/resume": schema.ResumeSessionResponse,
    "session/fork": schema.ForkSessionResponse,
    "session/list": schema.ListSessionsResponse,
    "session/close": schema.CloseSessionResponse,
    "session/delete": schema.DeleteSessionResponse,
    "session/prompt": schema.PromptResponse,
    "session/set_mode": schema.SetSessionModeResponse,
    "session/set_config_option": schema.SetSessionConfigOptionResponse,
}
REQUESTS: Mapping[str, type[BaseModel]] = {
    "session/update": schema.SessionNotification,
    "session/request_permission": schema.RequestPermissionRequest,
    "elicitation/create": schema.CreateFormSessionElicitationRequest,
}


def conforms(model: type[BaseModel], value: dict[str, Any]) -> None:
    """Fail where a value is not what the protocol says: what a model leaves out or mends of it was
    wrong."""
    kept = model.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert kept == value


@dataclass
class MessageCheck:
    """Checks all that the agent sends; `wrong` is what did not conform."""

    wrong: list[str] = field(default_factory=list[str])
    seen: int = 0
    _methods: dict[object, str] = field(default_factory=dict[object, str])

    def __call__(self, event: StreamEvent) -> None:
        message = event.message
        if event.direction is StreamDirection.OUTGOING:
            if "method" in message:
                self._methods[message.get("id")] = message["method"]
            return
        self.seen += 1
        try:
            assert message.pop("jsonrpc") == "2.0"
            if "method" in message:
                conforms(REQUESTS[message["method"]], message["params"])
            elif "error" in message:
                assert message["error"]["message"]
            else:
                conforms(ANSWERS[self._methods[message["id"]]], message["result"])
        except Exception as error:  # noqa: BLE001 - an observer's errors are only logged
            self.wrong.append(f"{message}: {error!r}")


@dataclass
class EditorClient:
    """What an editor sees and answers. `answer` gets the options of a permission request, and
    returns the id of one, None for "cancelled"; without it no answer ever comes."""

    answer: Callable[[dict[str, Any]], str | None] | None = lambda _: "once"
    fill_in: Callable[[dict[str, Any]], dict[str, Any] | None] = lambda _: None
    updates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asking: asyncio.Event = field(default_factory=asyncio.Event)

    async def session_update(self, session_id: str, update: BaseModel, **_: Any) -> None:
        self.updates.append({"session": session_id, **serialize_params(update)})

    async def request_permission(
        self, session_id: str, tool_call: BaseModel, options: list[BaseModel], **_: Any
    ) -> schema.RequestPermissionResponse:
        asked = {**serialize_params(tool_call), "options": list(map(serialize_params, options))}
        self.asked.append(asked)
        self.asking.set()
        if self.answer is None:
            await asyncio.Event().wait()
        taken = self.answer(asked) if self.answer else None
        outcome = (
            schema.DeniedOutcome(outcome="cancelled")
            if taken is None
            else schema.AllowedOutcome(outcome="selected", option_id=taken)
        )
        return schema.RequestPermissionResponse(outcome=outcome)

    async def create_elicitation(self, message: str, mode: BaseModel, **_: Any) -> Any:
        asked = {"message": message, **serialize_params(mode)}
        self.asked.append(asked)
        content = self.fill_in(asked)
        if content is None:
            return schema.DeclineElicitationResponse(action="decline")
        return schema.AcceptElicitationResponse(action="accept", content=content)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    @property
    def said(self) -> str:
        """All message chunks, notices among them."""
        return "".join(one["content"]["text"] for one in self.of("agent_message_chunk"))

    def on_connect(self, conn: object) -> None:
        """The client of the tests keeps none."""


@dataclass
class Editing:
    """An editor with its agent."""

    conn: ClientSideConnection
    client: EditorClient
    checked: MessageCheck
    work: Path

    async def new(self, **more: Any) -> str:
        more.setdefault("mcp_servers", [])
        return (await self.conn.new_session(cwd=str(self.work), **more)).session_id

    async def prompt(self, session: str, *blocks: Any) -> schema.PromptResponse:
        texts = [schema.TextContentBlock(type="text", text=b) for b in blocks if isinstance(b, str)]
        others = [block for block in blocks if not isinstance(block, str)]
        return await self.conn.prompt(session_id=session, prompt=[*texts, *others])


@asynccontextmanager
async def connected(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: EditorClient
) -> AsyncGenerator[tuple[ClientSideConnection, MessageCheck]]:
    """The client's side over two streams. Fails at the end where a message did not conform."""
    checked = MessageCheck()
    conn = connect_to_agent(
        client,  # pyright: ignore[reportArgumentType] - an editor need not have all that there is
        writer,
        reader,
        use_unstable_protocol=True,
        observers=[checked],
    )
    try:
        yield conn, checked
    finally:
        await conn.close()
    assert not checked.wrong
    assert checked.seen


@asynccontextmanager
async def editing(
    options: Options, work: Path, client: EditorClient | None = None, *, form: bool = False
) -> AsyncGenerator[Editing]:
    """An editor and the program, in one process."""
    client = client or EditorClient()
    (theirs, ours), (mine, yours) = os.pipe(), os.pipe()
    source, sink = os.fdopen(theirs, "rb", buffering=0), os.fdopen(yours, "wb", buffering=0)
    served = asyncio.create_task(serve(options, source, sink))
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=2**26)
    answers = asyncio.StreamReaderProtocol(asyncio.StreamReader())
    await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(mine, "rb", buffering=0)
    )
    transport, _ = await loop.connect_write_pipe(
        lambda: answers, os.fdopen(ours, "wb", buffering=0)
    )
    writer = asyncio.StreamWriter(transport, answers, None, loop)
    try:
        async with asyncio.timeout(PATIENCE_S), connected(reader, writer, client) as (conn, check):
            can = schema.ClientCapabilities()
            if form:
                fields = schema.ElicitationFormCapabilities()
                can.elicitation = schema.ElicitationCapabilities(form=fields)
            await conn.initialize(protocol_version=1, client_capabilities=can)
            yield Editing(conn, client, check, work)
    finally:
        transport.close()
        await served

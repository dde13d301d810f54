"""The requests that an editor may make, by the methods of the protocol."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from acp import PROTOCOL_VERSION, RequestError, schema
from acp.connection import Connection
from acp.utils import serialize_params
from pydantic import BaseModel, ValidationError

import tui
from tui.app import launch_config
from tui.app.options.arguments import Options
from tui.app.session_repository import SessionRepository
from tui.cli.acp.prompts import PromptRequest
from tui.cli.acp.session import EditorSession
from tui.core.clock import SystemClock
from tui.core.errors import CredentialsError, HoldfastError, SessionError, UsageError
from tui.core.paths import folders
from tui.core.text_cleaning import one_line
from tui.session import catalog, copies
from tui.session.reader import read

log = logging.getLogger(__name__)

OpeningRequest: TypeAlias = (
    schema.NewSessionRequest
    | schema.LoadSessionRequest
    | schema.ResumeSessionRequest
    | schema.ForkSessionRequest
)

PAGE: Final = 100
_LOGGED: Final = 500
"""Characters of a message that a refused notification leaves in the log."""
_CODES: Final[Mapping[type[HoldfastError], int]] = {
    CredentialsError: -32000,
    SessionError: -32002,
    UsageError: -32602,
}
_SIGN_IN: Final = (
    schema.AuthMethodAgent(
        id="stored",
        name="Stored key or profile",
        description="Run `holdfast` in a terminal once and store a key, or `ant auth login`.",
    ),
    schema.EnvVarAuthMethod(
        type="env_var",
        id="environment",
        name="API key in the environment",
        description="Set ANTHROPIC_API_KEY for this agent in the editor's settings.",
        vars=[schema.AuthEnvVar(name="ANTHROPIC_API_KEY", label="API key")],
    ),
)


class EditorService:
    """Answers an editor's requests, and holds its open sessions by id."""

    connection: Connection

    def __init__(self, options: Options) -> None:
        self.options = options
        self.sessions: dict[str, EditorSession] = {}
        self.form = False

    async def __call__(self, method: str, params: Any, notification: bool) -> Any:
        """Answer a request. Raises RequestError, with the words of what went wrong; for a
        notification, to which there is no reply, they become a line of the log."""
        try:
            return await self._answer(method, params)
        except RequestError as error:
            if not notification:
                raise
            log.warning("notification refused: %s", one_line(str(error))[:_LOGGED])
            return None

    async def _answer(self, method: str, params: Any) -> Any:
        if method not in _METHODS:
            raise RequestError(-32601, f"There is no method {method!r}.", {"method": method})
        model, carry_out = _METHODS[method]
        try:
            answer = await carry_out(self, model.model_validate({} if params is None else params))
        except ValidationError as error:
            raise RequestError(-32602, f"{method}: {_wrong(error)}") from error
        except HoldfastError as error:
            codes = (code for kind, code in _CODES.items() if isinstance(error, kind))
            raise RequestError(next(codes, -32603), str(error)) from error
        return serialize_params(answer) if answer is not None else {}

    async def initialize(self, request: schema.InitializeRequest) -> schema.InitializeResponse:
        """Answer with this version of the protocol, whatever the editor asks for: it decides if
        that will do."""
        can, who = request.client_capabilities, request.client_info
        self.form = bool(can and can.elicitation and can.elicitation.form is not None)
        log.info("editor: %s", f"{who.name} {who.version}" if who else "unnamed")
        sessions = schema.SessionCapabilities(
            list=schema.SessionListCapabilities(),
            delete=schema.SessionDeleteCapabilities(),
            fork=schema.SessionForkCapabilities(),
            resume=schema.SessionResumeCapabilities(),
            close=schema.SessionCloseCapabilities(),
            additional_directories=schema.SessionAdditionalDirectoriesCapabilities(),
        )
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(
                name="holdfast", title="Holdfast", version=tui.__version__
            ),
            auth_methods=[*_SIGN_IN],
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=True),
                session_capabilities=sessions,
            ),
        )

    async def authenticate(self, request: schema.AuthenticateRequest) -> None:
        if request.method_id not in {way.id for way in _SIGN_IN}:
            raise UsageError(f"There is no way to sign in named {request.method_id!r}.")
        await asyncio.to_thread(_check_key, self.options)

    # Sessions

    async def new(self, request: schema.NewSessionRequest) -> schema.NewSessionResponse:
        session = await self._open(self._options(request))
        return schema.NewSessionResponse(session_id=session.id, **await session.settings())

    async def load(self, request: schema.LoadSessionRequest) -> schema.LoadSessionResponse:
        session = await self._reopen(request.session_id, self._options(request))
        await session.replay()
        return schema.LoadSessionResponse(**await session.settings())

    async def resume(self, request: schema.ResumeSessionRequest) -> schema.ResumeSessionResponse:
        session = await self._reopen(request.session_id, self._options(request))
        return schema.ResumeSessionResponse(**await session.settings())

    async def fork(self, request: schema.ForkSessionRequest) -> schema.ForkSessionResponse:
        options = self._options(request)
        copy = await asyncio.to_thread(_fork, request.session_id, Path(request.cwd))
        session = await self._open(options.having(resume=str(copy)))
        return schema.ForkSessionResponse(session_id=session.id, **await session.settings())

    async def list(self, request: schema.ListSessionsRequest) -> schema.ListSessionsResponse:
        cursor = request.cursor or "0"
        if not re.fullmatch("[0-9]{1,9}", cursor):
            raise UsageError("This cursor is none of Holdfast's.")
        start, folder = int(cursor), request.cwd
        home, root = folders(), Path(folder) if folder else Path.cwd()
        ours = SessionRepository(home, root, SystemClock(), Path.home()).ours
        rows = await asyncio.to_thread(ours, everywhere=not folder)
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=row.id,
                    cwd=row.cwd or str(root),
                    title=row.title or None,
                    updated_at=row.updated.isoformat(),
                )
                for row in rows[start : start + PAGE]
            ],
            next_cursor=str(start + PAGE) if start + PAGE < len(rows) else None,
        )

    async def delete(self, request: schema.DeleteSessionRequest) -> None:
        """Move a session to the trash folder."""
        if request.session_id in self.sessions:
            raise UsageError(f"Session {request.session_id} is open here.", hint="Close it first.")
        await asyncio.to_thread(_delete, request.session_id)

    async def close(self, request: schema.CloseSessionRequest) -> None:
        session = self._session(request.session_id)
        del self.sessions[request.session_id]
        await session.close()

    # Inside a session

    async def prompt(self, request: PromptRequest) -> schema.PromptResponse:
        return await self._session(request.session_id).prompt(request.prompt)

    async def cancel(self, request: schema.CancelNotification) -> None:
        self._session(request.session_id).cancel()

    async def use_mode(self, request: schema.SetSessionModeRequest) -> None:
        session = self._session(request.session_id)
        await session.use_mode(request.mode_id)
        await session.settle()

    async def configure(
        self, request: schema.SetSessionConfigOptionSelectRequest
    ) -> schema.SetSessionConfigOptionResponse:
        session = self._session(request.session_id)
        config = await session.configure(request.config_id, request.value)
        return schema.SetSessionConfigOptionResponse(config_options=[*config])

    async def leave(self) -> None:
        """Close all sessions: the editor has gone."""
        sessions, self.sessions = self.sessions.values(), {}
        for ended in await asyncio.gather(
            *(one.close() for one in sessions), return_exceptions=True
        ):
            if isinstance(ended, BaseException):
                log.error("a session couldn't be closed", exc_info=ended)

    def _session(self, id_: str) -> EditorSession:
        if session := self.sessions.get(id_):
            return session
        raise SessionError(f"Session {id_} isn't open here.", hint="Load or resume it first.")

    async def _open(self, options: Options) -> EditorSession:
        session = EditorSession(self.connection, options, form=self.form)
        await session.open()
        self.sessions[session.id] = session
        return session

    async def _reopen(self, id_: str, options: Options) -> EditorSession:
        """Return a session that exists: the one that is open here, or the file of that id."""
        if session := self.sessions.get(id_):
            if session.conversation.busy:
                raise UsageError(f"Session {id_} is busy here.", hint="Cancel its turn first.")
            return session
        path = await asyncio.to_thread(catalog.resolve, id_, folders())
        return await self._open(options.having(resume=str(path)))

    def _options(self, request: OpeningRequest) -> Options:
        """Return the options of a session. Raises UsageError."""
        folder = Path(request.cwd)
        if not (folder.is_absolute() and folder.is_dir()):
            raise UsageError(f"cwd must be the absolute path of a folder, not {request.cwd!r}.")
        servers = dict(_server(given) for given in request.mcp_servers or ())
        more = (
            *self.options.permissions.add_dirs,
            *map(Path, request.additional_directories or ()),
        )
        return self.options.having(cwd=folder, add_dirs=more, servers=servers)


_METHODS: Final[
    Mapping[str, tuple[type[BaseModel], Callable[[EditorService, Any], Awaitable[Any]]]]
] = {
    "initialize": (schema.InitializeRequest, EditorService.initialize),
    "authenticate": (schema.AuthenticateRequest, EditorService.authenticate),
    "session/new": (schema.NewSessionRequest, EditorService.new),
    "session/load": (schema.LoadSessionRequest, EditorService.load),
    "session/resume": (schema.ResumeSessionRequest, EditorService.resume),
    "session/fork": (schema.ForkSessionRequest, EditorService.fork),
    "session/list": (schema.ListSessionsRequest, EditorService.list),
    "session/delete": (schema.DeleteSessionRequest, EditorService.delete),
    "session/close": (schema.CloseSessionRequest, EditorService.close),
    "session/prompt": (PromptRequest, EditorService.prompt),
    "session/cancel": (schema.CancelNotification, EditorService.cancel),
    "session/set_mode": (schema.SetSessionModeRequest, EditorService.use_mode),
    "session/set_config_option": (
        schema.SetSessionConfigOptionSelectRequest,
        EditorService.configure,
    ),
}


def _wrong(error: ValidationError) -> str:
    """Return the problems with the parameters of a request, in a line."""
    problems = error.errors(include_url=False, include_input=False)[:3]
    return "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in problems)


def _server(given: Any) -> tuple[str, dict[str, Any]]:
    """Return an MCP server of the editor's as an entry of `[mcp]`. Raises UsageError."""
    match given:
        case schema.McpServerStdio():
            env = {one.name: one.value for one in given.env}
            entry = {"command": given.command, "args": given.args, "env": env}
        case schema.HttpMcpServer() | schema.SseMcpServer():
            headers = {one.name: one.value for one in given.headers}
            entry = {"url": given.url, "type": given.type, "headers": headers}
        case _:
            raise UsageError(f"The MCP server {given.name} can't be reached from here.")
    return given.name, {key: value for key, value in entry.items() if value}


def _check_key(options: Options) -> None:
    """Raise CredentialsError if nothing could sign a request. Blocks."""
    launch_config.with_key(launch_config.prepare(options))


def _fork(id_: str, cwd: Path) -> Path:
    """Copy a session and return the path. Blocks; raises SessionError."""
    home = folders()
    loaded = read(catalog.resolve(id_, home))
    return copies.fork(loaded, folders=home, clock=SystemClock(), cwd=cwd)


def _delete(id_: str) -> None:
    """Move a session to the trash. Blocks; raises SessionError."""
    home = folders()
    copies.delete(catalog.resolve(id_, home), folders=home, clock=SystemClock())

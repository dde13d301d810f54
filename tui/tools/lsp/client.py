"""The connection to one language server: its process, and pygls, which speaks the protocol.

Nothing of what a server sends is trusted. Messages have a limit each and together, and pygls reads
them without the types of the protocol: those are so strict that one odd field of an answer would
lose it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import threading
from asyncio.subprocess import PIPE, Process
from asyncio.subprocess import create_subprocess_exec as start_process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from lsprotocol import types
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCProtocol,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    default_converter,
)
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec

import tui
from tui.core.clock import Clock
from tui.core.config import CheckerSettings
from tui.core.errors import ToolError
from tui.core.formatting import size
from tui.core.messages import list_of, object_of, string_of
from tui.core.text_cleaning import one_line
from tui.keeper.mark import marked
from tui.tools.process import end_server

MESSAGE_MAX: Final = 4 * 1024**2
"""Bytes of one message."""
ALLOWANCE: Final = 32 * 1024**2
"""Bytes that a server may send until it is asked the next time."""
WAITING_MAX: Final = 8 * 1024**2
"""Bytes that wait for a server which does not read."""
ODD_MAX: Final = 100
"""Messages that are none."""
_GRACE_S: Final = 2.0
_ERRORS_KEPT: Final = 4096
_ERROR: Final = re.compile(r"[\w.]*error\b", re.IGNORECASE)
_WORDS_MAX: Final = 300
"""Characters of what a server says of its failure."""
_PULLS: Final = 3
"""Times that a server is asked for the diagnostics of one text, where it says to ask again."""

logging.getLogger("pygls").setLevel(logging.CRITICAL)  # it would log what files hold

_BUSY_MAX: Final = 60.0
"""Seconds after which work that a server announced and never ended doesn't count."""
_WORKS_MAX: Final = 100
_AGAIN: Final = frozenset({-32800, -32801, -32802})
"""Answers to a pull that mean: ask again."""
_UNKNOWN_METHOD: Final = -32601


class ServerListener(Protocol):
    """Takes that which a server says by itself."""

    def published(self, path: Path, version: int | None, said: list[object]) -> None:
        """The diagnostics of a file, and of which version of it they are."""

    def working(self) -> None:
        """It began or ended work that it announced."""

    def refreshed(self) -> None:
        """Its diagnostics may be others now: they can be pulled (again)."""

    def complained(self, text: str) -> None:
        """It has an error to show to the person."""


class _RefusedError(ToolError):
    """A request that was answered with an error."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class _LenientProtocol(JsonRPCProtocol):
    """Messages of the protocol: typed where they are ours, plain data where they are a server's."""

    def get_message_type(self, method: str) -> Any:
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    def structure_message(self, data: dict[str, Any]) -> Any:
        if "jsonrpc" not in data:
            return data
        id_, version, method = data.get("id"), data["jsonrpc"], data.get("method")
        if isinstance(method, str) and isinstance(id_, str | int):
            return JsonRPCRequestMessage(id_, method, version, data.get("params"))
        if isinstance(method, str):
            return JsonRPCNotification(method, version, data.get("params"))
        if "result" in data and isinstance(id_, str | int):
            return JsonRPCResponseMessage(id_, version, data["result"])
        return super().structure_message(data)


class _Input:
    """A server's messages, read within the limits: the reader of pygls."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream
        self.left = ALLOWANCE

    async def readline(self) -> bytes:
        return self._taken(await self._stream.readline())

    async def readexactly(self, n: int) -> bytes:
        if n > MESSAGE_MAX:
            raise ToolError(f"it sent a message of {size(n)}")
        return self._taken(await self._stream.readexactly(n))

    def _taken(self, data: bytes) -> bytes:
        self.left -= len(data)
        if self.left < 0:
            raise ToolError(f"it sent more than {size(ALLOWANCE)} without being asked")
        return data


class Connection:
    """One running server. `ended` is set when it is gone, or was given up: `why` says so, and
    `gave_up` that it had broken a limit. `pulls` is True once its diagnostics can be asked for."""

    def __init__(
        self, process: Process, config: CheckerSettings, listener: ServerListener, clock: Clock
    ) -> None:
        assert process.stdout
        assert process.stdin
        self.ended = asyncio.Event()
        self.why = ""
        self.gave_up = False
        self.pulls = False
        self._process = process
        self._config = config
        self._listener = listener
        self._clock = clock
        self._works: dict[object, float] = {}
        self._input = _Input(process.stdout)
        self._errors = b""
        self._odd = 0
        self._codec = PositionCodec()
        self._client = JsonRPCClient(_LenientProtocol, default_converter)
        self._protocol = self._client.protocol
        self._protocol.set_writer(process.stdin)  # pyright: ignore[reportArgumentType] - writes at once
        self._stop = threading.Event()
        self._answer_requests()
        self._said_errors = asyncio.create_task(self._read_errors(), name="its errors")
        self._tasks = [asyncio.create_task(self._read(), name="language server"), self._said_errors]

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        config: CheckerSettings,
        listener: ServerListener,
        clock: Clock,
    ) -> Connection:
        """Start a server in a process group of its own. Raises OSError."""
        process = await start_process(
            *marked(command, env, cwd), cwd=cwd, env=dict(env), stdin=PIPE, stdout=PIPE,
            stderr=PIPE, start_new_session=True,
        )  # fmt: skip
        return cls(process, config, listener, clock)

    async def initialize(self, root: Path) -> None:
        """Agree on the protocol. Raises ToolError."""
        folder = types.WorkspaceFolder(uri=_uri(root), name=root.name)
        document = types.TextDocumentClientCapabilities(
            synchronization=types.TextDocumentSyncClientCapabilities(did_save=True),
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True),
            diagnostic=types.DiagnosticClientCapabilities(dynamic_registration=True),
        )
        workspace = types.WorkspaceClientCapabilities(
            configuration=True,
            workspace_folders=True,
            diagnostics=types.DiagnosticWorkspaceClientCapabilities(refresh_support=True),
        )
        general = types.GeneralClientCapabilities(
            position_encodings=[types.PositionEncodingKind.Utf16, types.PositionEncodingKind.Utf8]
        )
        params = types.InitializeParams(
            process_id=None,  # behind the walls it could not see us, and would end itself
            client_info=types.ClientInfo("Holdfast", tui.__version__),
            root_uri=folder.uri,
            workspace_folders=[folder],
            initialization_options=_plain(self._config.options) or None,
            capabilities=types.ClientCapabilities(
                workspace=workspace,
                text_document=document,
                general=general,
                window=types.WindowClientCapabilities(work_done_progress=True),
            ),
        )
        answer = object_of(await self._request(types.INITIALIZE, params))
        capabilities = object_of(answer.get("capabilities"))
        self.pulls = isinstance(capabilities.get("diagnosticProvider"), dict)
        encoding = string_of(capabilities.get("positionEncoding"))
        self._codec = PositionCodec(encoding or types.PositionEncodingKind.Utf16)
        self._notify(types.INITIALIZED, types.InitializedParams())
        if self._config.settings:
            settings = types.DidChangeConfigurationParams(_plain(self._config.settings))
            self._notify(types.WORKSPACE_DID_CHANGE_CONFIGURATION, settings)

    def open(self, path: Path, language: str, version: int, text: str) -> None:
        """Show it a file that it has not seen."""
        document = types.TextDocumentItem(_uri(path), language, version, text)
        params = types.DidOpenTextDocumentParams(document)
        self._notify(types.TEXT_DOCUMENT_DID_OPEN, params)

    def change(self, path: Path, version: int, text: str, *, saved: bool) -> None:
        """Show it the new text of an open file, and that it is on the disk."""
        document = types.VersionedTextDocumentIdentifier(version=version, uri=_uri(path))
        whole = types.TextDocumentContentChangeWholeDocument(text)
        params = types.DidChangeTextDocumentParams(document, [whole])
        self._notify(types.TEXT_DOCUMENT_DID_CHANGE, params)
        if saved:
            same = types.TextDocumentIdentifier(_uri(path))
            self._notify(types.TEXT_DOCUMENT_DID_SAVE, types.DidSaveTextDocumentParams(same))

    def close_file(self, path: Path) -> None:
        """It need not look at a file any more."""
        same = types.TextDocumentIdentifier(_uri(path))
        self._notify(types.TEXT_DOCUMENT_DID_CLOSE, types.DidCloseTextDocumentParams(same))

    async def pull(self, path: Path) -> list[object] | None:
        """Ask for the diagnostics of an open file; None where it has none to give now. Raises
        ToolError."""
        same = types.TextDocumentIdentifier(_uri(path))
        params = types.DocumentDiagnosticParams(same)
        for _ in range(_PULLS):
            try:
                answer = await self._request(types.TEXT_DOCUMENT_DIAGNOSTIC, params)
            except _RefusedError as error:
                if error.code == _UNKNOWN_METHOD:
                    self.pulls = False
                if error.code not in _AGAIN:
                    return None
            else:
                report = object_of(answer)
                return list_of(report.get("items")) if "items" in report else None
        return None

    @property
    def works(self) -> bool:
        """True while it does work that it announced."""
        oldest = self._clock.monotonic() - _BUSY_MAX
        return any(began > oldest for began in self._works.values())

    def column(self, line: str, units: int) -> int:
        """A column as the server counts it, in characters."""
        at = types.Position(0, min(units, 4 * len(line)))
        return self._codec.position_from_client_units([line], at).character

    async def close(self, *, at_once: bool = False) -> None:
        """Ask it to end, unless it is to end `at_once`, and end what does not."""
        if not self.ended.is_set() and not at_once:
            with suppress(TimeoutError, ToolError):
                async with asyncio.timeout(_GRACE_S):
                    await self._request(types.SHUTDOWN, None)
                    self._notify(types.EXIT, None)
        self._stop.set()
        await end_server(self._process, at_once=at_once)
        await asyncio.wait(self._tasks, timeout=_GRACE_S)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _answer_requests(self) -> None:
        """Take what a server says and asks: for settings and folders. It may register and report
        anything."""
        handlers: dict[str, Callable[[object], object]] = {
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: self._publish,
            types.WORKSPACE_CONFIGURATION: self._configuration,
            types.CLIENT_REGISTER_CAPABILITY: self._register,
            types.CLIENT_UNREGISTER_CAPABILITY: _nothing,
            types.WINDOW_WORK_DONE_PROGRESS_CREATE: _nothing,
            types.WINDOW_SHOW_MESSAGE_REQUEST: self._show_message,
            types.WINDOW_SHOW_MESSAGE: self._show_message,
            types.PROGRESS: self._progress,
            types.WORKSPACE_DIAGNOSTIC_REFRESH: self._refresh,
        }
        for method, handler in handlers.items():
            self._client.feature(method)(partial(handler))  # pygls marks what it calls

    def _publish(self, params: object) -> None:
        fields = object_of(params)
        version = fields.get("version")
        if (path := _path(fields.get("uri"))) is not None:
            number = version if isinstance(version, int) else None
            self._listener.published(path, number, list_of(fields.get("diagnostics")))

    def _register(self, params: object) -> None:
        registered = [object_of(one) for one in list_of(object_of(params).get("registrations"))]
        if any(one.get("method") == types.TEXT_DOCUMENT_DIAGNOSTIC for one in registered):
            self.pulls = True
            self._listener.refreshed()

    def _refresh(self, _params: object) -> None:
        self._listener.refreshed()

    def _progress(self, params: object) -> None:
        fields = object_of(params)
        token, kind = fields.get("token"), object_of(fields.get("value")).get("kind")
        if not isinstance(token, str | int):
            return
        if kind == "begin" and len(self._works) < _WORKS_MAX:
            self._works[token] = self._clock.monotonic()
        elif kind == "end":
            self._works.pop(token, None)
        else:
            return
        self._listener.working()

    def _show_message(self, params: object) -> None:
        fields = object_of(params)
        said = one_line(string_of(fields.get("message")).strip())
        if fields.get("type") == types.MessageType.Error and said:
            self._listener.complained(_shortened(said))

    def _configuration(self, params: object) -> list[object]:
        items = list_of(object_of(params).get("items"))[:ODD_MAX]
        return [self._setting(string_of(object_of(one).get("section"))) for one in items]

    def _setting(self, section: str) -> object:
        value: object = _plain(self._config.settings)
        for name in section.split(".") if section else ():
            value = object_of(value).get(name)
        # Of a whole section some read fields at once, and say nothing any more where it is null.
        return {} if value is None and "." not in section else value

    async def _read(self) -> None:
        """Read until it ends, or has to be given up."""
        try:
            await run_async(
                self._stop, self._input, self._protocol, error_handler=self._take_odd_message
            )
        except ToolError as error:
            self._give_up(error.message)
        except (asyncio.IncompleteReadError, OSError):
            pass
        except ValueError:
            self._give_up("it sent what isn't the protocol")
        finally:
            await end_server(self._process, at_once=self.gave_up)
            await self._drain()
            await asyncio.wait({self._said_errors}, timeout=_GRACE_S)
            code = self._process.returncode
            said = _error_line(self._errors.decode("utf-8", "replace"))
            self.why = self.why or f"exit code {code}" + (f", {said}" if said else "")
            self.ended.set()

    def _take_odd_message(self, _error: Exception, _kind: object) -> None:
        self._odd += 1
        if self._odd > ODD_MAX:
            self._give_up("it sent what isn't the protocol")
            self._stop.set()

    def _give_up(self, why: str) -> None:
        self.why, self.gave_up = self.why or why, True
        self.ended.set()

    async def _read_errors(self) -> None:
        assert self._process.stderr
        while chunk := await self._process.stderr.read(65_536):
            self._errors = (self._errors + chunk)[-_ERRORS_KEPT:]

    async def _request(self, method: str, params: object) -> object:
        """Ask and wait. Raises ToolError where it ends meanwhile, or answers with an error."""
        self._check()
        answer = self._protocol.send_request_async(method, params)
        ended = asyncio.create_task(self.ended.wait())
        try:
            await asyncio.wait({answer, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if not answer.done() or answer.cancelled():
            answer.cancel()
            raise ToolError(self.why or "it cancelled the request")
        if error := answer.exception():
            code = error.code if isinstance(error, JsonRpcException) else 0
            said = error.message if isinstance(error, JsonRpcException) else str(error)
            raise _RefusedError(_shortened(one_line(said)) or "it refused the request", code)
        return answer.result()

    def _notify(self, method: str, params: object) -> None:
        """Say something. Raises ToolError where it has ended or does not read."""
        self._check()
        self._input.left = ALLOWANCE
        with suppress(BrokenPipeError, ConnectionResetError):
            self._protocol.notify(method, params)

    def _check(self) -> None:
        assert self._process.stdin
        if self.ended.is_set():
            raise ToolError(self.why)
        if self._process.stdin.transport.get_write_buffer_size() > WAITING_MAX:
            self._give_up("it no longer reads its input")
            raise ToolError(self.why)

    async def _drain(self) -> None:
        """Read what is left of a process that has ended, so that its pipes are closed."""
        assert self._process.stdout
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                while await self._process.stdout.read(65_536):
                    pass


def _nothing(_params: object) -> None:
    """The answer to what needs none of ours."""


def _error_line(printed: str) -> str:
    """The line of an error output that tells most: the first that speaks of an error, otherwise the
    last one."""
    lines = [one_line(line).strip() for line in printed.strip().splitlines()]
    errors = (line for line in lines if _ERROR.match(line))
    return _shortened(next(errors, lines[-1] if lines else ""))


def _shortened(text: str) -> str:
    """Begin and end of a long text: the reason often comes last."""
    half = _WORDS_MAX // 2
    return text if len(text) <= _WORDS_MAX else f"{text[:half]} … {text[-half:]}"


def _uri(path: Path) -> str:
    return from_fs_path(str(path)) or ""


def _path(uri: object) -> Path | None:
    """The file of an address; None where it is none."""
    with suppress(ValueError, AttributeError, TypeError):
        if isinstance(uri, str) and uri.startswith("file:") and (path := to_fs_path(uri)):
            return Path(os.path.normpath(path))  # `..` would lead out of the workspace unseen
    return None


def _plain(value: Mapping[str, Any]) -> Any:
    """Settings as JSON has them: TOML knows dates."""
    return json.loads(json.dumps(value, default=str))

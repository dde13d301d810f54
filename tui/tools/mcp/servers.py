"""MCP servers. Each is opened, used and closed in one task of its own, as the SDK demands.

If a server cannot be started, or dies, only its tools are missing: its `detail` says why, and it
is started again when one of its tools is called or the person asks for it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase as fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias, TypeVar, cast

from msgspec import ValidationError, convert, structs

from tui.core.config import McpServer, Url
from tui.core.errors import ToolError
from tui.core.formatting import plural, size
from tui.core.messages import ToolOutput, text_block
from tui.core.private_files import private_dir
from tui.core.questions import AskPerson
from tui.core.redaction import child_environment, mask
from tui.core.variables import expand
from tui.tools.mcp.open_call import ASKS_MAX, OpenCall, OpenCalls
from tui.tools.mcp.tool import (
    DROPPED,
    SCHEMA_MAX,
    McpTool,
    content_blocks,
    embedded,
    tool_output,
)

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.exceptions import MCPError
    from mcp_types import (
        CallToolResult,
        ElicitRequestParams,
        ElicitResult,
        ErrorData,
        LoggingMessageNotificationParams,
    )

    from tui.tools.mcp.oauth import OpenPage, Paste, SignInCheck, TokenVault
    from tui.tools.mcp.transport import Streams

log = logging.getLogger(__name__)

Confine: TypeAlias = Callable[[Sequence[str], Mapping[str, str], str], Awaitable[list[str]]]
"""A command, its environment and a level, to the words that start it behind those walls."""

ServerState: TypeAlias = Literal["off", "starting", "ready", "failed", "needs sign-in"]

START_S: Final = 30.0
"""Seconds a server may take until its tools are listed."""
LEAVE_S: Final = 5.0
"""Seconds a server may take to end by itself when it is stopped."""
SETTLED_S: Final = START_S + LEAVE_S
"""Seconds after which a server that was started is ready, or has failed and is stopped."""
PATIENCE_S: Final = 10.0
"""Seconds that the first request of a person waits for servers that are still starting."""
CALL_S: Final = 600.0
"""Seconds a call may take without a word from the server."""
OTHERS_MAX: Final = 1000
"""Resources, and prompts, of one server that are known by name."""
NOTE_MAX: Final = 4000
NOTES_MAX: Final = 10_000
"""Characters of a message of a server in its log, and messages."""
_Listed = TypeVar("_Listed")
_CHANGES: Final = frozenset(
    {
        "ToolListChangedNotification",
        "ResourceListChangedNotification",
        "PromptListChangedNotification",
    }
)
_SIGN_IN: Final = "it needs you to sign in"
PAGES_MAX: Final = 50
PAGES_ASKED: Final = 3
"""Pages that the person is asked to open before one call."""
_SECRET_PARTS: Final = re.compile(r"(?<=://)[^\s/?#@]*@|[?#].*", re.DOTALL)
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
TOOLS_MAX: Final = 10_000
"""Of one server."""


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something that a server offers to be read."""

    uri: str
    title: str


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that a server offers. `arguments` are names, and whether each is required."""

    name: str
    description: str
    arguments: tuple[tuple[str, bool], ...] = ()


@dataclass(eq=False)
class Server:
    """One configured server. `detail` is its name and version when ready, the reason when failed.

    `templates` are patterns of URIs that can be read beside the listed `resources`.
    `left_out` says which of its tools the model cannot get, and why.
    `environment` is what its process gets, the usual one if it is None; `confine` turns its command
    into one that starts it in the sandbox, where the settings want that; `vault` keeps the tokens
    of the person's sign-in. `tools` is what it offers,
    also while it is started again after it died; the model does not get those in `switched_off`.
    """

    name: str
    config: McpServer
    cwd: Path
    log_file: Path
    environment: Mapping[str, str] | None = None
    confine: Confine | None = None
    vault: TokenVault | None = None
    state: ServerState = "off"
    detail: str = ""
    tools: tuple[McpTool, ...] = ()
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResource, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()
    left_out: str = ""
    switched_off: set[str] = field(default_factory=set[str])
    _client: Client | None = None
    _calls: OpenCalls = field(default_factory=OpenCalls)
    _check: SignInCheck | None = None
    _notes: int = 0
    _task: asyncio.Task[None] | None = None
    _leave: asyncio.Event = field(default_factory=asyncio.Event)
    _settled: asyncio.Event = field(default_factory=asyncio.Event)
    _stale: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def address(self) -> str:
        """What is started or reached, as it is configured, without what may be secret."""
        return address_of(self.config)

    @property
    def has_tokens(self) -> bool:
        """Whether it is reached with the tokens of a sign-in."""
        return self._check is not None and self._check.signed and not self._wants_sign_in

    @property
    def open_calls(self) -> Sequence[OpenCall]:
        """What waits for its answer now."""
        return self._calls.all

    @property
    def offers(self) -> str:
        """What it has beside tools, and how the person names that; "" for nothing."""
        parts: list[str] = []
        if self.resources:
            parts.append(f"{plural(len(self.resources), 'resource')} (@{self.name}:…)")
        if self.prompts:
            parts.append(f"{plural(len(self.prompts), 'prompt')} (/mcp__{self.name}__…)")
        return ", ".join(parts)

    def start(self) -> None:
        """Begin to start it, unless it runs."""
        if self._task is None or self._task.done():
            self._leave, self._settled = asyncio.Event(), asyncio.Event()
            self._set("starting", "")
            self._task = asyncio.create_task(self._run(self._leave), name=f"mcp {self.name}")

    async def settled(self) -> None:
        """Wait until it is ready or has failed. Returns at once if it was never started."""
        if self.state == "starting":
            await self._settled.wait()

    async def stop(self) -> None:
        """Stop it. Returns when its process is gone."""
        self._leave.set()
        if self._task is not None:
            if self.state != "starting":
                await asyncio.wait({self._task}, timeout=LEAVE_S)
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        self.tools, self.resources, self.templates, self.prompts = (), (), (), ()
        self._set("off", "")

    async def restart(self) -> None:
        """Stop it and begin to start it. Its tools stay meanwhile."""
        tools = self.tools
        await self.stop()
        self.tools = tools
        self.start()

    async def sign_in(self, open_page: OpenPage, paste: Paste | None = None) -> None:
        """Let the person sign in, then begin to start it again. Raises ToolError."""
        from tui.tools.mcp import oauth  # noqa: PLC0415 - it loads the SDK

        url = with_variables(self.config, os.environ).url
        if not url or self.vault is None:
            raise ToolError(f"The MCP server {self.name} has no address to sign in to.")
        await oauth.sign_in(url, self.vault, open_page, paste)
        await self.restart()

    async def sign_out(self) -> None:
        """Forget the tokens of the sign-in, then begin to start it again. Raises a
        HoldfastError."""
        from tui.tools.mcp import oauth  # noqa: PLC0415 - as above

        url = with_variables(self.config, os.environ).url
        if not url or self.vault is None:
            raise ToolError(f"The MCP server {self.name} has no address to sign in to.")
        await oauth.sign_out(url, self.vault)
        await self.restart()

    async def log_end(self, most: int) -> str:
        """The last `most` bytes of what it wrote to its standard error, or that it wrote none."""
        import aiofiles  # noqa: PLC0415 - only when somebody looks

        try:
            async with aiofiles.open(self.log_file, "rb") as file:
                await file.seek(max(0, await file.seek(0, os.SEEK_END) - most))
                text = (await file.read()).decode("utf-8", "replace")
        except OSError:
            text = ""
        return text or "The server has written nothing."

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        emit: Callable[[str], None],
        ask: AskPerson | None = None,
    ) -> ToolOutput:
        """Call one of its tools; `ask` puts to the person what it asks meanwhile. Raises ToolError
        when the server does not answer as it should."""
        client = await self.connected()
        asked: list[dict[str, Any]] = []
        try:
            async with self._calls.begin(CALL_S, emit, ask) as call:
                asked = call.asked
                output = await self._called(client, tool, arguments, call)
        except Exception as error:
            failure = self._failure(tool, error)
            if not asked:
                raise failure from error
            output = ToolOutput.text(str(failure), is_error=True, summary=failure.message)
        return replace(output, details={**output.details, "asked": asked}) if asked else output

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
            call.tell(f"{share} {message or ''}".rstrip() + "\n")

        try:
            return tool_output(
                await client.call_tool(tool, arguments, progress_callback=report_progress)
            )
        except MCPError as error:
            if error.code != URL_ELICITATION_REQUIRED:
                raise
            return await self._led_away(error, call)

    async def _led_away(self, error: MCPError, call: OpenCall) -> ToolOutput:
        """The result where the person has to open pages before a call can be carried out."""
        from mcp.shared.exceptions import UrlElicitationRequiredError  # noqa: PLC0415 - as above

        for page in UrlElicitationRequiredError.from_error(error.error).elicitations[:PAGES_ASKED]:
            reply = await self._put(page, call)
            if getattr(reply, "action", "") != "accept":
                text = f"{self.name} needs the user to open a page first, and they didn't want to."
                return ToolOutput.text(text, is_error=True, summary="declined")
        text = (
            f"{self.name} needs the user to do something on a page first. They agreed to open it. "
            "Ask whether they are done, then call the tool again."
        )
        return ToolOutput.text(text, is_error=True, summary="a page was opened")

    async def _elicit(
        self,
        context: object,  # noqa: ARG002 - as the SDK calls it
        params: ElicitRequestParams,
    ) -> ElicitResult | ErrorData:
        """Answer a question of the server: by the person during one of its calls, else not."""
        from mcp_types import ElicitResult  # noqa: PLC0415 - as above

        call = self._calls.asking
        if call is None or len(call.asked) >= ASKS_MAX:
            log.info("the MCP server %s asks where nobody is asked", self.name)
            return ElicitResult(action="decline")
        return await self._put(params, call)

    async def _put(self, params: ElicitRequestParams, call: OpenCall) -> ElicitResult | ErrorData:
        """Put a form or a page to the person, and keep what became of it."""
        from mcp_types import INVALID_PARAMS, ElicitResult, ErrorData  # noqa: PLC0415 - as above

        from tui.tools.mcp.elicitation import fill_form, open_address  # noqa: PLC0415 - if asked

        entry: dict[str, Any] = {"server": self.name, "message": params.message}
        call.asked.append(entry)
        try:
            if params.mode == "url":
                entry["url"] = params.url
                reply = await open_address(self.name, params.message, params.url, call.ask)
            else:
                reply = await fill_form(
                    self.name, params.message, params.requested_schema, call.ask
                )
        except ToolError as error:
            entry["action"] = "error"
            call.tell(f"{self.name} asks what can't be shown: {error.message}\n")
            return ErrorData(code=INVALID_PARAMS, message=error.message)
        entry["action"] = reply.action
        if reply.content:
            entry["answers"] = reply.content
        return ElicitResult(action=reply.action, content=reply.content)

    async def read_resource(
        self, uri: str, emit: Callable[[str], None], ask: AskPerson | None = None
    ) -> ToolOutput:
        """Read a resource. Raises ToolError as `call` does."""
        client = await self.connected()
        emit(f"{uri}\n")
        try:
            async with self._calls.begin(CALL_S, emit, ask):
                result = await client.read_resource(uri, cache_mode="bypass")
        except Exception as error:
            raise self._failure(f"Reading {uri:.200}", error) from error
        blocks = [embedded(one) for one in result.contents]
        return ToolOutput(blocks or [text_block("(no content)")])

    async def prompt_text(self, prompt: McpPrompt, arguments: str) -> str:
        """The text of a prompt with what was typed for its arguments: a word for each, the last
        one gets the rest. Raises ToolError."""
        words = arguments.split(maxsplit=max(0, len(prompt.arguments) - 1))
        given = dict(zip((name for name, _ in prompt.arguments), words, strict=False))
        if missing := [name for name, must in prompt.arguments if must and name not in given]:
            raise ToolError(f"The prompt {prompt.name} needs: {', '.join(missing)}.")
        client = await self.connected()
        try:
            async with asyncio.timeout(CALL_S):
                result = await client.get_prompt(prompt.name, given)
        except Exception as error:
            raise self._failure(f"The prompt {prompt.name:.200}", error) from error
        blocks = content_blocks(one.content for one in result.messages)
        text = "\n\n".join(str(block["text"]) for block in blocks if block["type"] == "text")
        if not text.strip():
            raise ToolError(f"The prompt {prompt.name} of the MCP server {self.name} has no text.")
        return text

    async def connected(self) -> Client:
        """Its client, once it is ready; it is started if it is not. Raises ToolError."""
        if self._leave.is_set() and self._task is not None:
            await asyncio.wait({self._task})  # it is leaving a dead connection
        if self.state != "ready":
            self.start()
            await self.settled()
        if self._client is None:
            raise ToolError(
                f"The MCP server {self.name} isn't running: {self.detail or 'it was stopped'}.",
                hint="The user can restart it with /mcp.",
            )
        return self._client

    def _failure(self, what: str, error: Exception) -> ToolError:
        """A failed request as an error for the model."""
        if _is_gone(error) or self._wants_sign_in:
            self._leave.set()  # its task leaves the dead connection; the next call starts it again
        why = _SIGN_IN if self._wants_sign_in else _error_line(error, CALL_S)
        return ToolError(f"{what} of the MCP server {self.name} failed: {why}")

    async def _run(self, leave: asyncio.Event) -> None:
        """Open the connection, wait until it is to be closed, close it: all in this one task."""
        try:
            self._check = None
            await asyncio.to_thread(importlib.import_module, "mcp")
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(START_S):
                    client = await self._enter(stack)
                    self.tools = await self._list(client)
                    await self._list_others(client)
                self._client = client
                info = client.server_info
                self._set("ready", f"{info.name} {info.version}" if info else "")
                async with asyncio.TaskGroup() as group:
                    tasks = [
                        group.create_task(self._follow(client)),
                        group.create_task(self._listen(client)),
                    ]
                    await leave.wait()
                    for task in tasks:
                        task.cancel()
                self._client = None
            if self._wants_sign_in:
                self._set("needs sign-in", _SIGN_IN)
            else:
                self._set("off", "it died; the next call starts it again")
        except Exception as error:
            if self._wants_sign_in:
                self._set("needs sign-in", _SIGN_IN)
                return
            log.warning("the MCP server %s failed", self.name, exc_info=error)
            if self.state == "starting":
                self.tools = ()
            self._set("failed", _error_line(error))
        finally:
            self._client = None

    async def _enter(self, stack: AsyncExitStack) -> Client:
        from tui.tools.mcp.transport import open_address, open_process  # noqa: PLC0415 - 0.6 s

        config = with_variables(self.config, os.environ)
        if config.url:
            from tui.tools.mcp.oauth import SignInCheck  # noqa: PLC0415 - as above

            has_key = "authorization" in {name.lower() for name in config.headers}
            check = self._check = await SignInCheck.of(config.url, None if has_key else self.vault)
            transport = open_address(
                config.url, config.headers, sse=config.type == "sse", auth=check
            )
            return await self._entered(stack, transport)
        words = stack.enter_context(await asyncio.to_thread(_open_log, self.log_file))
        given = child_environment() if self.environment is None else dict(self.environment)
        given |= config.env
        command: Sequence[str] = config.words
        if config.sandbox != "outside":
            if self.confine is None:
                raise ToolError("It should run in the sandbox, but there is none.")
            command = await self.confine(command, given, config.sandbox)
        transport = open_process(command, env=given, cwd=self.cwd, errors=words)
        return await self._entered(stack, transport)

    async def _entered(
        self, stack: AsyncExitStack, transport: AbstractAsyncContextManager[Streams]
    ) -> Client:
        from mcp import Client  # noqa: PLC0415 - as above

        made = Client(
            transport,
            message_handler=self._hear,
            logging_callback=self._note,
            elicitation_callback=self._elicit,
            log_level="info",
        )
        client = await stack.enter_async_context(made)
        client.session.validate_tool_result = _take_as_it_is
        return client

    @property
    def _wants_sign_in(self) -> bool:
        """Whether the server said that the person is not signed in. One that got a key of the
        configuration has refused that."""
        names = {name.lower() for name in self.config.headers}
        return self._check is not None and self._check.refused and "authorization" not in names

    async def _list(self, client: Client) -> tuple[McpTool, ...]:
        """The tools it offers, sorted by name: the order that a server lists them in may change.

        Tools that only run as tasks of the protocol are left out: it would refuse our calls.
        """
        found: list[McpTool] = []
        cursor, odd = None, 0
        for _ in range(PAGES_MAX):
            page = await client.list_tools(cursor=cursor)
            found += [
                McpTool(self.name, tool, self.call)
                for tool in page.tools
                if tool.execution is None or tool.execution.task_support != "required"
            ]
            odd += int((page.meta or {}).get(DROPPED, 0))
            cursor = page.next_cursor
            if not cursor:
                break
        return await asyncio.to_thread(self._choose, found, odd)

    async def _list_others(self, client: Client) -> None:
        """List its resources and prompts. One that cannot list them has none."""
        known = client.server_capabilities
        if known.resources:
            self.resources = await self._listed(_resources(client), self.resources)
            self.templates = await self._listed(_templates(client), self.templates)
        if known.prompts:
            self.prompts = await self._listed(_prompts(client), self.prompts)

    async def _listed(
        self, listing: Awaitable[list[_Listed]], before: tuple[_Listed, ...]
    ) -> tuple[_Listed, ...]:
        try:
            return tuple(await listing)
        except Exception as error:  # noqa: BLE001 - its tools work all the same
            log.warning("the MCP server %s: %s", self.name, _error_line(error))
            return before

    def _choose(self, found: list[McpTool], odd: int) -> tuple[McpTool, ...]:
        """Those that the settings name and that a request can carry."""
        globs = self.config.tools
        wanted = [
            tool for tool in found if not globs or any(fnmatch(tool.own_name, g) for g in globs)
        ]
        small = [tool for tool in wanted if len(json.dumps(tool.schema())) <= SCHEMA_MAX]
        taken = sorted(small, key=lambda tool: tool.name)[:TOOLS_MAX]
        parts = [f"left out {odd} that the protocol doesn't recognize as tools"] if odd else []
        if large := {tool.own_name for tool in wanted} - {tool.own_name for tool in small}:
            names = ", ".join(sorted(large)[:3]) + ("…" if len(large) > 3 else "")
            parts.append(f"left out, with a schema above {size(SCHEMA_MAX)}: {names:.200}")
        if more := len(small) - len(taken):
            parts.append(
                f"uses only {TOOLS_MAX} of {len(small):,} tools ({more:,} left out); name the "
                f'ones you need with tools = ["…"] under [mcp.{self.name}]'
            )
        self.left_out = "; ".join(parts)
        return tuple(taken)

    async def _hear(self, message: object) -> None:
        if type(message).__name__ in _CHANGES:
            self._stale.set()

    async def _listen(self, client: Client) -> None:
        """Ask for notices of changes: servers of the newer protocol send them only then."""
        from mcp.client.subscriptions import ListenNotSupportedError  # noqa: PLC0415

        try:
            async with client.listen(
                tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True
            ) as changes:
                async for _ in changes:
                    self._stale.set()
        except ListenNotSupportedError:
            pass  # it sends notifications, see `_hear`
        except Exception as error:  # noqa: BLE001 - a server that tells of nothing still works
            log.info("the MCP server %s tells of no changes: %s", self.name, _error_line(error))

    async def _follow(self, client: Client) -> None:
        """List the tools again whenever they changed."""
        while True:
            await self._stale.wait()
            self._stale.clear()
            try:
                self.tools = await self._list(client)
                await self._list_others(client)
            except Exception as error:  # noqa: BLE001 - the tools that were known stay
                log.warning("the MCP server %s lists no tools: %s", self.name, _error_line(error))

    async def _note(self, params: LoggingMessageNotificationParams) -> None:
        """Keep what it tells by the protocol in its log, as what it writes."""
        text = params.data if isinstance(params.data, str) else json.dumps(params.data, default=str)
        line = f"[{params.level}] {params.logger or self.name}: {text:.{NOTE_MAX}}\n"
        self._notes += 1
        if self._notes <= NOTES_MAX:
            await asyncio.to_thread(_append, self.log_file, line)

    def _set(self, state: ServerState, detail: str) -> None:
        self.state, self.detail = state, detail
        if state != "starting":
            self._settled.set()


class Servers:
    """All configured servers. `tools()` is what the model may use now.

    `patience_s` is how long the first request waits for those that are still starting.
    """

    def __init__(
        self,
        configured: Mapping[str, McpServer],
        *,
        cwd: Path,
        log_folder: Path,
        patience_s: float = PATIENCE_S,
        environment: Mapping[str, str] | None = None,
        confine: Confine | None = None,
        vault: TokenVault | None = None,
        on_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.patience_s = patience_s
        self._on_close = on_close
        self.all = tuple(
            Server(name, config, cwd, log_folder / _log_name(name), environment, confine, vault)
            for name, config in sorted(configured.items())
        )

    def start(self) -> None:
        """Begin to start all of them."""
        for server in self.all:
            server.start()

    async def settled(self) -> None:
        """Wait until each is ready or has failed."""
        await asyncio.gather(*(server.settled() for server in self.all))

    def tools(self) -> dict[str, McpTool]:
        """The tools that are switched on, by server and name: the order is a steady one.

        Those of a server that died stay: calling one starts it again.
        """
        return {
            tool.name: tool
            for server in self.all
            for tool in server.tools
            if tool.own_name not in server.switched_off
        }

    async def close(self) -> None:
        """Leave all of them."""
        await asyncio.gather(*(server.stop() for server in self.all))
        if self._on_close is not None:
            await self._on_close()


def address_of(config: McpServer) -> str:
    """What is started or reached, in words, without what may be secret."""
    if not config.url:
        return mask(shlex.join(config.words))[0]
    more = f" with the headers {', '.join(config.headers)}" if config.headers else ""
    return _SECRET_PARTS.sub("", config.url) + more


def with_variables(config: McpServer, variables: Mapping[str, str]) -> McpServer:
    """The same with the values of the variables that it names. Raises ToolError for one that is
    not set, and for what is no address with them."""

    def all_of(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(expand(text, variables) for text in texts)

    try:
        changed = structs.replace(
            config,
            command=all_of(config.words),
            args=(),
            env=dict(zip(config.env, all_of(config.env.values()), strict=True)),
            url=expand(config.url, variables),
            headers=dict(zip(config.headers, all_of(config.headers.values()), strict=True)),
        )
        convert(changed.url, Url)
    except KeyError as error:
        raise ToolError(f"Its configuration names ${{{error.args[0]}}}, which isn't set.") from None
    except ValidationError:
        raise ToolError("Its url isn't an address once its variables have values.") from None
    if odd := [name for name, value in changed.headers.items() if not _is_header(name, value)]:
        raise ToolError(f"The header {odd[0]} can't be sent: its name or value has odd characters.")
    return changed


def _is_header(name: str, value: str) -> bool:
    return bool(_HEADER_NAME.fullmatch(name)) and value.isascii() and value.isprintable()


def _open_log(path: Path) -> TextIO:
    """Open the log of a server for appending, in a private folder."""
    os.close(private_dir(path.parent))
    return path.open("a", encoding="utf-8", errors="replace")


def _append(path: Path, text: str) -> None:
    with suppress(OSError), _open_log(path) as file:
        file.write(text)


async def _resources(client: Client) -> list[McpResource]:
    found: list[McpResource] = []
    cursor = None
    for _ in range(PAGES_MAX):
        page = await client.list_resources(cursor=cursor)
        found += [
            McpResource(str(one.uri), one.title or one.description or one.name)
            for one in page.resources
        ]
        cursor = page.next_cursor
        if not cursor or len(found) >= OTHERS_MAX:
            break
    return found[:OTHERS_MAX]


async def _templates(client: Client) -> list[McpResource]:
    page = await client.list_resource_templates()
    return [
        McpResource(one.uri_template, one.title or one.description or one.name)
        for one in page.resource_templates[:OTHERS_MAX]
    ]


async def _prompts(client: Client) -> list[McpPrompt]:
    found: list[McpPrompt] = []
    cursor = None
    for _ in range(PAGES_MAX):
        page = await client.list_prompts(cursor=cursor)
        for one in page.prompts:
            arguments = tuple((each.name, bool(each.required)) for each in one.arguments or ())
            found.append(McpPrompt(one.name, one.description or one.title or "", arguments))
        cursor = page.next_cursor
        if not cursor or len(found) >= OTHERS_MAX:
            break
    return found[:OTHERS_MAX]


def _log_name(server: str) -> str:
    return f"mcp-{re.sub(r'[^A-Za-z0-9_.-]', '_', server)[:100]}.log"


def _leaves(error: BaseException) -> Iterable[BaseException]:
    """The errors inside nested groups."""
    if isinstance(error, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _is_gone(error: BaseException) -> bool:
    """Whether the connection, not the call, is what failed."""
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415
    from mcp_types import CONNECTION_CLOSED  # noqa: PLC0415

    return any(
        one.code == CONNECTION_CLOSED
        if isinstance(one, MCPError)
        else not isinstance(one, TimeoutError)
        for one in _leaves(error)
    )


async def _take_as_it_is(name: str, result: CallToolResult) -> None:
    """Check nothing. The SDK (2.3) would run the regular expressions of the server's own output
    schema here, which can hold the program for ever, and throw a result away that does not fit."""


def _error_line(error: BaseException, patience_s: float = START_S) -> str:
    """An error in one line."""
    first = next(iter(_leaves(error)), error)
    match first:
        case TimeoutError():
            return f"no answer within {patience_s:.0f} s"
        case FileNotFoundError(filename=str(name)):
            return f"{name} not found"
        case _:
            text = " ".join(str(getattr(first, "message", "") or first).split())
            return (text or type(first).__name__)[:300]

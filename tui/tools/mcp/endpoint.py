"""The endpoint of an MCP server: the process that is started or the address that is reached, and
its log.

Names in the settings are looked up only when they are needed, so that a variable may be set later.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TextIO

from msgspec import ValidationError, convert, structs

from tui.core.config import McpServer, Url
from tui.core.dataclass import dataclass, field
from tui.core.errors import ToolError
from tui.core.private_files import private_dir
from tui.core.redaction import SESSION_VARIABLE, child_environment, mask, session_variables
from tui.core.variables import expand
from tui.tools.mcp import openings

if TYPE_CHECKING:
    from tui.tools.mcp.mending import OpenRequests
    from tui.tools.mcp.oauth import SignInCheck
    from tui.tools.mcp.token_store import SignInPlace, TokenVault
    from tui.tools.mcp.transport import Streams


class ServerSandbox(Protocol):
    """The sandbox of all servers."""

    async def command(
        self, argv: Sequence[str], environment: Mapping[str, str], level: str
    ) -> list[str]:
        """Return the words that start a command in it, at a level as the settings name it."""
        ...

    async def close(self) -> None: ...


LAST_WORDS_MAX: Final = 4096
_SECRET_PARTS: Final = re.compile(r"(?<=://)[^\s/?#@]*@|[?#].*", re.DOTALL)
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(eq=False)
class Endpoint:
    """The means to start or reach one server. `environment` is what its process gets, the usual one
    if it is None; its command is started in the `sandbox`, where the settings want that; `vault`
    keeps the tokens of the person's sign-in; `cache` is the folder for what is remembered of it.
    `session` is the id of the session that starts it, "" for one that several share."""

    name: str
    config: McpServer
    cwd: Path
    log_file: Path
    environment: Mapping[str, str] | None = None
    sandbox: ServerSandbox | None = None
    vault: TokenVault | None = None
    cache: Path | None = None
    session: str = ""
    _log_begin: int = field(default=0, init=False)
    """Where its log began when it was started last."""
    _with_initialize: bool = field(default=False, init=False)
    """Begin with `initialize`, where there is no cache to remember it in."""

    @property
    def address(self) -> str:
        """The command or address, as it is configured, without what may be secret."""
        return address_of(self.config)

    @property
    def has_key(self) -> bool:
        """True if the configuration gives a key, so that no sign-in takes its place."""
        return "authorization" in {name.lower() for name in self.config.headers}

    @property
    def sign_in_place(self) -> SignInPlace:
        """The address to sign in to, the client, and what keeps the tokens. Raises ToolError."""
        from tui.tools.mcp.token_store import SignInPlace  # noqa: PLC0415 - it loads the SDK

        config = self._filled()
        if not config.url or self.vault is None:
            raise ToolError(f"The MCP server {self.name} has no address to sign in to.")
        return SignInPlace(
            config.url,
            self.vault,
            config.client_id,
            config.client_secret,
            config.scopes,
            config.callback_port,
        )

    async def sign_in_check(self) -> SignInCheck | None:
        """Return what signs the requests to an address; None for a process. Raises ToolError."""
        if not self._filled().url:
            return None
        from tui.tools.mcp.oauth import SignInCheck  # noqa: PLC0415 - it loads the SDK

        kept = not self.has_key and self.vault is not None
        return await SignInCheck.of(self.sign_in_place if kept else None)

    async def begins_with_initialize(self) -> bool:
        """True if the server was lost by `server/discover` before."""
        if self.cache is None:
            return self._with_initialize
        return await asyncio.to_thread(openings.is_remembered, self.cache, self.config)

    async def remember_opening(self, *, with_initialize: bool) -> None:
        """Begin so from the next start on."""
        self._with_initialize = with_initialize
        if self.cache is not None:
            keep = partial(openings.remember, with_initialize=with_initialize)
            await asyncio.to_thread(keep, self.cache, self.config)

    @asynccontextmanager
    async def open(self, check: SignInCheck | None, asked: OpenRequests) -> AsyncGenerator[Streams]:
        """Start or reach it. Raises ToolError, and OSError where it cannot be started."""
        from tui.tools.mcp.transport import open_address, open_process  # noqa: PLC0415 - 0.6 s

        config = self._filled()
        if config.url:
            sse = config.type == "sse"
            async with open_address(
                config.url, config.headers, asked, sse=sse, auth=check
            ) as streams:
                yield streams
            return
        environment = child_environment() if self.environment is None else dict(self.environment)
        environment |= session_variables(self.session) | config.env
        command: Sequence[str] = config.words
        with await asyncio.to_thread(_open_log, self.log_file) as words:
            self._log_begin = words.tell()
            if config.sandbox != "outside":
                if self.sandbox is None:
                    raise ToolError("It should run in the sandbox, but there is none.")
                command = await self.sandbox.command(command, environment, config.sandbox)
            async with open_process(
                command, asked, env=environment, cwd=self.cwd, errors=words
            ) as streams:
                yield streams

    def _filled(self) -> McpServer:
        """Return the configuration with the values of the variables that it names: those of the
        environment, and the session's id. Raises ToolError."""
        return with_variables(self.config, {**os.environ, SESSION_VARIABLE: self.session})

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

    async def last_words(self) -> str:
        """The last line that it wrote to its standard error since it was started; "" for none."""
        import aiofiles  # noqa: PLC0415 - only where it failed

        try:
            async with aiofiles.open(self.log_file, "rb") as file:
                end = await file.seek(0, os.SEEK_END)
                await file.seek(max(self._log_begin, end - LAST_WORDS_MAX))
                text = (await file.read()).decode("utf-8", "replace")
        except OSError:
            return ""
        return mask(
            next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
        )[0]

    def write_log(self, line: str) -> None:
        """Add a line to its log, where that can be written."""
        with suppress(OSError), _open_log(self.log_file) as file:
            file.write(line)


def address_of(config: McpServer) -> str:
    """Return the command or address in words, without what may be secret."""
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
            client_id=expand(config.client_id, variables),
            client_secret=expand(config.client_secret, variables),
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

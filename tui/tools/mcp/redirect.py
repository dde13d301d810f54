"""The address that the browser is sent to after a sign-in: received on loopback, or pasted."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from tui.core.errors import ToolError

REDIRECT_PATH: Final = "/callback"
_HEAD_MAX: Final = 16_384
_FIELDS_MAX: Final = 100
_REASON_MAX: Final = 1_000
_PAGE: Final = "<!doctype html><meta charset=utf-8><title>Holdfast</title><p>{}</p>"

Paste = Callable[[], Awaitable[str]]
"""Waits for the address that the browser was sent to, if the person copies it here."""


class RedirectReceiver:
    """Waits on loopback for the address that the browser is sent to after the sign-in."""

    def __init__(self) -> None:
        self.port = 0
        self._state = ""
        self._received: asyncio.Future[AuthorizationCodeResult] = (
            asyncio.get_running_loop().create_future()
        )

    def expect(self, address: str) -> None:
        """Only an answer to this request for a sign-in counts."""
        self._state = _query(address).get("state", "")

    async def result(self, paste: Paste | None) -> AuthorizationCodeResult:
        """Return what the browser was sent with, or what the person pasted. Raises ToolError."""
        if paste is None:
            return await self._received
        pasted = asyncio.ensure_future(paste())
        try:
            await asyncio.wait({pasted, self._received}, return_when=asyncio.FIRST_COMPLETED)
            if self._received.done():
                return self._received.result()
            return self._parsed(pasted.result().strip())
        finally:
            pasted.cancel()

    def _parsed(self, address: str) -> AuthorizationCodeResult:
        query = _query(address)
        if not self._belongs(query):
            raise ToolError("This address doesn't belong to the sign-in that was begun.")
        if error := query.get("error"):
            why = query.get("error_description", "")
            reason = f"{error} {why}".rstrip()[:_REASON_MAX]
            raise ToolError(f"The server refused the sign-in: {reason}.")
        if not (code := query.get("code")):
            raise ToolError("The address has no code.")
        return AuthorizationCodeResult(code=code, state=self._state, iss=query.get("iss") or None)

    def _belongs(self, query: Mapping[str, str]) -> bool:
        """True for the answer to the request that `expect` was given."""
        state = query.get("state", "").encode("utf-8", "replace")
        return bool(self._state) and secrets.compare_digest(state, self._state.encode())

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser. One that does not belong here changes nothing."""
        status, sentence = "400 Bad Request", "This is not the sign-in that Holdfast waits for."
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            method, target, *_ = [*head.partition("\r\n")[0].split(" "), "", ""]
            here = target.partition("?")[0] == REDIRECT_PATH
            if method == "GET" and here and not self._received.done():
                status, sentence = self._take(target, status, sentence)
            page = _PAGE.format(sentence)
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(page)}\r\nReferrer-Policy: no-referrer\r\n"
                f"Connection: close\r\n\r\n{page}".encode()
            )
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _take(self, target: str, status: str, said: str) -> tuple[str, str]:
        if not self._belongs(_query(target)):
            return status, said
        try:
            self._received.set_result(self._parsed(target))
        except ToolError as error:
            self._received.set_exception(error)
            return "200 OK", "You are not signed in. You can close this page."
        return "200 OK", "You are signed in. You can close this page and return to Holdfast."


@asynccontextmanager
async def redirect_receiver(port: int, *, only: bool = False) -> AsyncGenerator[RedirectReceiver]:
    """One that listens on the port that was registered, or, unless it is the `only` one, on another
    if that is taken. Raises ToolError."""
    receiver = RedirectReceiver()
    try:
        server = await asyncio.start_server(receiver.answer, "127.0.0.1", port, limit=_HEAD_MAX)
    except OSError as error:
        if only:
            raise ToolError(f"Port {port} can't be used: {error.strerror or error}.") from error
        server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0, limit=_HEAD_MAX)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


def _query(address: str) -> dict[str, str]:
    """The first value of each field of an address; none, where it is not an address."""
    try:
        fields = parse_qs(urlsplit(address).query, max_num_fields=_FIELDS_MAX)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items()}

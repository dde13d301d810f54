"""One page of the web, by HTTP: checked addresses, few redirects, and limits on size and time.

A host's name is resolved here, and the connection goes to an address that was checked: a name whose
answer changes afterwards, or a redirect, leads nowhere else. No cookies, no stored passwords. A
proxy of the environment is used as for the model's server; it resolves names by itself, so its
connections are not checked here.

The SDK's HTTP client takes long to import: import this module when a page is wanted.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from typing import Any, Final, TypeAlias, cast
from urllib.parse import urljoin
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

from tui import __version__
from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.core.web_address import WebAddress, is_private
from tui.tools.base import UrlAccess
from tui.tools.text_decoding import HEAD_BYTES

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Looks up the IP addresses of a host; raises OSError if it has none."""

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS: Final = {
    "user-agent": f"Holdfast/{__version__} (terminal agent; reads pages on request)",
    "accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
    "accept-encoding": "gzip, deflate",
    "connection": "close",
}


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Limits of a fetch: seconds, bytes and redirects."""

    connect_s: float = 15
    read_s: float = 30
    total_s: float = 120
    max_bytes: int = 10_000_000
    """Maximum bytes of the decoded page."""
    redirects: int = 10


@dataclass(frozen=True, slots=True)
class WebPage:
    """A server's answer. `cut` is True if there was more than is in `body`."""

    address: WebAddress
    status: int
    reason: str
    headers: httpx2.Headers
    body: bytes
    cut: bool

    @property
    def is_error(self) -> bool:
        return self.status >= 400

    @property
    def content_type(self) -> str:
        """The media type, without parameters and in lower case; "" if there is none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def full_size(self) -> int | None:
        """The size of the whole page, if that is known."""
        if not self.cut:
            return len(self.body)
        length = self.headers.get("content-length", "")
        coded = "content-encoding" in self.headers
        return int(length) if length.isascii() and length.isdigit() and not coded else None


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Look up a host in the system's resolver."""
    loop = asyncio.get_running_loop()
    entries = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


async def fetch(
    address: WebAddress,
    access: Callable[[str], UrlAccess],
    *,
    limits: WebLimits,
    wanted: Callable[[bytes], bool],
    resolve: Resolve = resolve_host,
) -> WebPage:
    """Fetch the page at an address, or where it is redirected to.

    `access` decides where redirects may lead, and what may be in the person's own network. If the
    beginning of a page is not `wanted`, nothing more is read. Raises ToolError with the reason of a
    failure.
    """
    try:
        async with asyncio.timeout(limits.total_s):
            return await _follow(address, access, limits, wanted, resolve)
    except TimeoutError as error:
        raise ToolError(
            f"{address.site} took longer than {limits.total_s:g} s, so the fetch was stopped."
        ) from error


async def _follow(
    address: WebAddress,
    access: Callable[[str], UrlAccess],
    limits: WebLimits,
    wanted: Callable[[bytes], bool],
    resolve: Resolve,
) -> WebPage:
    for _ in range(limits.redirects + 1):
        backend = _CheckedBackend(address, access(str(address)).private, resolve)
        with _failures_in_words(address, limits):
            async with _response(address, backend, limits) as response:
                target = response.headers.get("location", "")
                if response.status_code not in _REDIRECTS or not target:
                    body, cut = await _body(response, limits.max_bytes, wanted)
                    return WebPage(
                        address,
                        response.status_code,
                        response.reason_phrase,
                        response.headers,
                        body,
                        cut,
                    )
        address = _redirected(address, target, access)
    raise ToolError(f"{address.site} redirects more than {limits.redirects} times.")


def _redirected(
    address: WebAddress, location: str, access: Callable[[str], UrlAccess]
) -> WebAddress:
    """Return the target of a redirect, if it may be followed: within a site, or where a rule allows
    it."""
    try:
        target = WebAddress.parse(urljoin(str(address), location))
    except ValueError as error:
        raise ToolError(f"{address.site} redirects to {location[:200]!r}: {error}.") from error
    answer = access(str(target)).answer
    if answer == "deny":
        raise ToolError(f"{address} redirects to {target}, which your permissions don't allow.")
    if (address.scheme, target.scheme) == ("https", "http"):
        raise ToolError(
            f"{address} redirects to {target}, which isn't encrypted. It wasn't followed."
        )
    if answer == "ask" or (answer == "site" and not _same_site(address, target)):
        raise ToolError(
            f"{address} redirects to {target}, which needs its own permission.",
            hint="Fetch that address if you need it.",
        )
    return target


def _same_site(one: WebAddress, other: WebAddress) -> bool:
    """True if two addresses are of one site: with or without `www.`, or encryption."""
    return one.site.removeprefix("www.") == other.site.removeprefix("www.")


async def _body(
    response: httpx2.Response, most: int, wanted: Callable[[bytes], bool]
) -> tuple[bytes, bool]:
    """Read a page. The second value is True if there is more. Decoded bytes are counted, so that a
    small file that becomes a huge one does no harm."""
    body = bytearray()
    checked = False
    async with aclosing(response.aiter_bytes()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > most:
                return bytes(body[:most]), True
            if not checked and len(body) >= HEAD_BYTES:
                checked = True
                if not wanted(bytes(body[:HEAD_BYTES])):
                    return bytes(body), True
    return bytes(body), False


@asynccontextmanager
async def _response(
    address: WebAddress, backend: _CheckedBackend, limits: WebLimits
) -> AsyncGenerator[httpx2.Response]:
    """Yield the answer to a request, while its body is read."""
    proxy = _proxy_of(address)
    context = None
    if address.scheme == "https" or proxy:  # reading the system's certificates takes 20 ms
        context = await asyncio.to_thread(httpx2.create_ssl_context)
    if proxy is None:
        transport: httpx2.AsyncBaseTransport = _DirectTransport(backend, context)
    else:
        await backend.check_name()
        transport = httpx2.AsyncHTTPTransport(verify=context or True, proxy=proxy)
    wait = {"connect": limits.connect_s, "read": limits.read_s, "write": limits.read_s}
    request = httpx2.Request(
        "GET", str(address), headers=_HEADERS, extensions={"timeout": {**wait, "pool": None}}
    )
    async with transport:
        response = await transport.handle_async_request(request)
        response.request = request
        try:
            yield response
        finally:
            await response.aclose()


def _proxy_of(address: WebAddress) -> str | None:
    """Return the proxy that the environment names for an address. None can reach this machine
    itself."""
    if address.is_local or proxy_bypass(address.host):
        return None
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to checked addresses only. One for each request."""

    def __init__(self, address: WebAddress, private: bool, resolve: Resolve) -> None:
        self._address = address
        self._private = private
        self._resolve = resolve
        # Its package has two classes of that name, one for when anyio is missing.
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        failed: Exception | None = None
        try:
            async with asyncio.timeout(timeout):
                ips = await self._checked(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout from error
        # Only the checked addresses are tried; the name is not looked up again.
        for ip in ips:
            try:
                return await self._network.connect_tcp(
                    ip, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed or socket.gaierror(socket.EAI_NONAME, "it has no addresses")

    async def check_name(self) -> None:
        """Refuse a private address if a proxy makes the connection. Names that only the proxy knows
        pass."""
        with suppress(OSError):
            await self._checked(self._address.host, self._address.server_port)

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host. Raises ToolError for a private one that is not
        allowed."""
        ips = [ip.partition("%")[0] for ip in await self._resolve(host.strip("[]"), port)]
        private = next((ip for ip in ips if is_private(ip)), None)
        if private is None or self._private:
            return list(dict.fromkeys(ips))
        address = self._address
        word = "" if address.is_local else " private"
        raise ToolError(
            f"{address.site} leads to {private}, on this machine or in the user's own network.",
            hint=f"Only a rule of the user's allows that: web_fetch({address.origin}/*){word}",
        )


class _DirectTransport(httpx2.AsyncBaseTransport):
    """Requests over connections that a backend opens."""

    def __init__(self, backend: _CheckedBackend, context: ssl.SSLContext | None) -> None:
        self._pool = httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=backend)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        answer = await self._pool.handle_async_request(
            httpcore2.Request(
                request.method,
                httpcore2.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Stream(answer),
            extensions=cast("dict[str, Any]", answer.extensions),
        )

    async def aclose(self) -> None:
        await self._pool.aclose()


class _Stream(httpx2.AsyncByteStream):
    """A body as it arrives."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._answer.aclose()


_CONNECT_TIMEOUTS = (httpcore2.ConnectTimeout, httpx2.ConnectTimeout)
_TIMEOUTS = (httpcore2.TimeoutException, httpx2.TimeoutException)
_FAILURES = (
    *_TIMEOUTS,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    httpx2.StreamError,
    OSError,
)


@contextmanager
def _failures_in_words(address: WebAddress, limits: WebLimits) -> Generator[None]:
    """Turn failures in the block into ToolError."""
    try:
        yield
    except _FAILURES as error:
        raise _explained(error, address, limits) from error


def _explained(error: Exception, address: WebAddress, limits: WebLimits) -> ToolError:
    """Explain the failure of a request. The causes are the system's own errors."""
    site = address.site
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            why = cause.verify_message or str(cause)
            return ToolError(
                f"{site} has no certificate that this machine trusts: {why}.",
                hint="Nothing was sent. Holdfast never skips this check; SSL_CERT_FILE names a "
                "certificate authority of your own.",
            )
        if isinstance(cause, ssl.SSLError):
            return ToolError(f"No encrypted connection to {site}: {cause.reason or cause}.")
        if isinstance(cause, socket.gaierror):
            return ToolError(
                f"There is no host named {address.host}: {cause.strerror}.",
                hint="Check the spelling, or the network.",
            )
    if isinstance(error, _CONNECT_TIMEOUTS):
        return ToolError(f"{site} couldn't be reached within {limits.connect_s:g} s.")
    if isinstance(error, _TIMEOUTS):
        return ToolError(f"{site} sent nothing for {limits.read_s:g} s.")
    if isinstance(error, (httpcore2.ConnectError, httpx2.ConnectError)):
        refused = any(isinstance(cause, ConnectionRefusedError) for cause in _causes(error))
        why = "it refused the connection" if refused else str(error) or "no route to it"
        return ToolError(f"{site} couldn't be reached: {why} (port {address.server_port}).")
    return ToolError(f"{site} broke off or sent no valid HTTP: {error or type(error).__name__}.")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and what it was raised from or while handling, groups included."""
    todo: list[BaseException | None] = [error]
    seen: list[BaseException] = []
    while todo:
        one = todo.pop()
        if one is not None and one not in seen:
            seen.append(one)
            yield one
            todo += (one.__cause__, one.__context__)
            if isinstance(one, BaseExceptionGroup):
                todo += cast("BaseExceptionGroup[BaseException]", one).exceptions

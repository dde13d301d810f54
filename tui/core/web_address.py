"""Addresses of web pages: one spelling for each, and a test for those in a private network.

Permission rules are matched against that spelling, and requests are sent with it, so nothing can be
read in two ways: no name and password, no `..`, no letter written as a code, names of other scripts
in their ASCII form, numbers such as `127.1` as the address that they stand for.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

from tui.core.dataclass import dataclass
from tui.core.errors import ToolError
from tui.core.late_pattern import late_pattern

MAX_CHARS: Final = 8000
_SHORTEST_KEY: Final = 20

_PORTS: Final = {"http": 80, "https": 443}
_HOST = late_pattern(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")
_UNRESERVED = late_pattern(r"%([0-9A-Fa-f]{2})")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_LONE_PERCENT = late_pattern(r"%(?![0-9A-Fa-f]{2})")
_SAFE_PATH: Final = "/%:@!$&'()*+,;=~"
_SAFE_QUERY: Final = _SAFE_PATH + "?"
_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
"""IPv6 addresses that a translator turns into the IPv4 address at their end."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """The address of a web page. `str()` is its one spelling; anything after a `#` is left out."""

    scheme: str
    host: str
    """ASCII and in lower case; an IPv6 address without brackets."""
    port: int | None
    """None for the usual one of the scheme."""
    target: str
    """Path and query."""

    @classmethod
    def parse(cls, text: str) -> WebAddress:
        """Parse an address. Raises ToolError that names the fault."""
        text = text.strip()
        shown = text if len(text) <= 200 else f"{text[:199]}…"
        if len(text) > MAX_CHARS:
            raise ToolError(f"The address has more than {MAX_CHARS:,} characters.")
        if not text.isprintable():
            raise ToolError("The address contains control characters.")
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError as error:
            raise ToolError(f"{shown!r} isn't a web address: {error}.") from error
        scheme = parts.scheme.lower()
        if scheme not in _PORTS:
            raise ToolError(
                f"{shown!r} isn't an http:// or https:// address.",
                hint="For files use read_file." if scheme == "file" else "",
            )
        # A name or password could disguise the host.
        if "@" in parts.netloc or "\\" in parts.netloc:
            raise ToolError(
                "The address contains a name or password.", hint="Leave out what precedes the @."
            )
        if port == 0:
            raise ToolError(f"{shown!r} isn't a web address: no server has port 0.")
        port = None if port == _PORTS[scheme] else port
        return cls(scheme, _host(parts, shown), port, _target(parts))

    def __str__(self) -> str:
        return self.origin + self.target

    @property
    def origin(self) -> str:
        """Scheme, host and port: the part that one server answers for."""
        return f"{self.scheme}://{self.site}"

    @property
    def site(self) -> str:
        """Host and port, as a person reads them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def server_port(self) -> int:
        return self.port or _PORTS[self.scheme]

    @property
    def is_local(self) -> bool:
        """True if the address itself shows that it is in the person's own network."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        with suppress(ValueError):
            return is_private(self.host)
        return False


def server_address(typed: str) -> str:
    """Return the address of a server as it was typed. One without a scheme gets `http://` for this
    machine, else `https://`. Raises ToolError if it can't be one."""
    address = typed.strip()
    if is_api_key(address):
        raise ToolError("This is a key, not an address.")
    if "://" not in address:
        address = address.rstrip("/")
        local = _is_loopback(WebAddress.parse(f"https://{address}").host)
        return f"{'http' if local else 'https'}://{address}"
    if not address.startswith(("http://", "https://")):
        raise ToolError("The address must start with http:// or https://.")
    WebAddress.parse(address)
    return address.rstrip("/")


def is_api_key(text: str) -> bool:
    """True for what is a key rather than a name: it would be asked of name servers, and saved in
    plain sight."""
    return text.startswith("sk-") and "." not in text and len(text) >= _SHORTEST_KEY


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return False


def is_private(address: str) -> bool:
    """True if an IP address is anything but one of the public internet.

    Loopback, private and link-local ones, multicast, and reserved ones. An IPv6 address that stands
    for an IPv4 address is judged by that. Raises ValueError for anything else.
    """
    ip: IPv4Address | IPv6Address = ip_address(address)
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _TRANSLATED:
            inner = IPv4Address(ip.packed[-4:])
        if inner is not None:
            return is_private(str(inner))
        if ip.is_site_local:
            return True
    return not ip.is_global or ip.is_multicast or ip.is_reserved


def _host(parts: SplitResult, shown: str) -> str:
    name = (parts.hostname or "").rstrip(".")
    if parts.netloc.startswith("["):
        with suppress(ValueError):
            ip = IPv6Address(name)
            if ip.scope_id is None:
                return str(ip)
        raise ToolError(f"{shown!r} has no valid host name.")
    if not name.isascii():
        import idna  # noqa: PLC0415 - for names in other scripts only

        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except idna.IDNAError as error:
            raise ToolError(f"{shown!r} has no valid host name: {error}.") from error
    if not _HOST.fullmatch(name) or len(name) > 253:
        raise ToolError(f"{shown!r} has no valid host name.")
    if name.rpartition(".")[2][0].isdigit():  # `127.1` and `0x7f.1` are addresses to the system
        with suppress(OSError):
            return socket.inet_ntoa(socket.inet_aton(name))
    return name


def _target(parts: SplitResult) -> str:
    path = _without_dots(_quoted(parts.path, _SAFE_PATH))
    query = _quoted(parts.query, _SAFE_QUERY)
    return f"{path}?{query}" if query else path


def _quoted(text: str, safe: str) -> str:
    """Quote a part of an address in ASCII; characters that need no code have none."""

    def plain(code: re.Match[str]) -> str:
        char = chr(int(code[1], 16))
        return char if char in _PLAIN else code[0].upper()

    text = _LONE_PERCENT.sub("%25", text)
    return quote(_UNRESERVED.sub(plain, text), safe=safe, errors="replace")


def _without_dots(path: str) -> str:
    """Return a path without `.` and `..`; nothing is above its beginning."""
    parts: list[str] = []
    names = path.split("/")[1:] or [""]
    for name in names:
        if name == "..":
            del parts[-1:]
        elif name != ".":
            parts.append(name)
    end = "/" if parts and names[-1] in {".", ".."} else ""
    return "/" + "/".join(parts) + end

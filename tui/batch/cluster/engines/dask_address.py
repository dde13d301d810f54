"""The address of a Dask scheduler, and the rule for where it may be reached without encryption."""

from __future__ import annotations

import ipaddress
from contextlib import suppress
from urllib.parse import urlsplit

from tui.batch.cluster.engines.port import EngineError


def check_address(address: str, *, insecure: bool) -> None:
    """Refuse an address that is none, or that others could read on the way. Raises EngineError."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme not in {"tcp", "tls"} or not host or not port:
        raise EngineError(
            f"{address} isn't the address of a Dask scheduler.",
            hint="Give it as the scheduler printed it: tls://HOST:PORT",
        )
    if parts.scheme == "tcp" and not insecure and not _is_loopback(host):
        raise EngineError(
            f"{address} isn't encrypted: whoever reaches it runs programs on all its machines, "
            "and reads their keys.",
            hint="Use tls://…, or --insecure-cluster where the network is yours alone.",
        )


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"

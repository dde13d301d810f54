"""The loopback server in a thread, for tests that wait for processes."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from threading import Thread

from tests.support.server import LoopbackServer
from tests.support.server_script import Json, Script


@contextmanager
def serving(script: Json | Script | LoopbackServer) -> Generator[LoopbackServer]:
    """A server, or one that plays a script, while the block runs. `requests` may be read from
    outside."""
    server = script if isinstance(script, LoopbackServer) else LoopbackServer(script)
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="loopback server", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

"""Spawn → request on the wire for `-p`, beside a bare script that imports the SDK and sends one."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RUNS = 9

_BARE = """
import asyncio, sys, anthropic
async def main():
    client = anthropic.AsyncAnthropic(api_key="k", base_url=sys.argv[1], max_retries=0)
    await client.messages.create(model="m", max_tokens=9, stream=True,
                                 messages=[{"role": "user", "content": "hello"}])
try:
    asyncio.run(main())
except anthropic.APIError:
    pass
"""


class _Arrivals:
    """A socket that notes when the head of a POST arrives and answers 400 to everything."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self.posted = threading.Event()
        self.at = 0.0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            data = connection.recv(65536)
            if data.startswith(b"POST /v1/messages"):
                self.at = time.perf_counter()
                self.posted.set()
            body = b'{"type":"error","error":{"type":"invalid_request_error","message":"no"}}'
            head = f"HTTP/1.1 400 x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
            connection.sendall(head.encode() + body)

    def time(self, command: list[str], env: dict[str, str]) -> float:
        """Seconds from spawn to the POST."""
        self.posted.clear()
        started = time.perf_counter()
        with subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process:
            if not self.posted.wait(30):
                raise RuntimeError(f"no request from {command}")
            seconds = self.at - started
            process.wait(30)
        return seconds


def run() -> list[tuple[str, float, float]]:
    """One row: the median of ours over the median of the bare script's, taken in turn."""
    arrivals = _Arrivals()
    ours: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        work = Path(home) / "work"
        work.mkdir()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC", "HOLDFAST"))}
        env |= {
            "HOLDFAST_HOME": home,
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_BASE_URL": arrivals.url,
            "ANTHROPIC_CONFIG_DIR": home,
        }
        print_one = [sys.executable, "-m", "tui", "-C", str(work), "-p", "hello"]
        send_one = [sys.executable, "-c", _BARE, arrivals.url]
        for round_ in range(RUNS + 1):
            pair = arrivals.time(print_one, env), arrivals.time(send_one, env)
            if round_:  # the first warms the disk cache
                ours.append(pair[0])
                bare.append(pair[1])
    what = (
        f"-p: spawn → request, {1e3 * statistics.median(ours):.0f} ms ÷ bare SDK script "
        f"{1e3 * statistics.median(bare):.0f} ms"
    )
    return [(what, statistics.median(ours) / statistics.median(bare), 1.05)]

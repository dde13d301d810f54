"""A collector on loopback: it reads what it gets with the protocol's own package."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

from tests.core.test_otlp import read_by_the_package


@dataclass
class LocalCollector:
    """What came, and what is answered: `answers` are statuses with headers and a body, then 200.
    While `hold` is not set, no request is answered."""

    url: str = ""
    answers: list[tuple[int, dict[str, str], bytes]] = field(
        default_factory=list[tuple[int, dict[str, str], bytes]]
    )
    requests: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    spans: list[Any] = field(default_factory=list[Any])
    resources: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    hold: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.spans]

    def take(self, headers: dict[str, str], body: bytes) -> tuple[int, dict[str, str], bytes]:
        self.requests.append(headers)
        self.asked.set()
        self.hold.wait()
        if self.answers:
            status, more, answer = self.answers.pop(0)
            if status != 200:
                return status, more, answer
        else:
            more, answer = {}, b""
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        as_json = headers["content-type"] == "application/json"
        got: Any = (
            read_by_the_package(body.decode())
            if as_json
            else service.ExportTraceServiceRequest.FromString(body)
        )
        for one in got.resource_spans:
            self.resources.append(
                {each.key: each.value.string_value for each in one.resource.attributes}
            )
            for scope in one.scope_spans:
                self.spans += scope.spans
        return 200, more, answer


@contextmanager
def local_collector() -> Generator[LocalCollector]:
    """Run a collector that answers at once."""
    collector = LocalCollector()
    collector.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {key.lower(): value for key, value in self.headers.items()}
            status, more, answer = collector.take({**headers, "path": self.path}, body)
            self.send_response(status)
            for name, value in {"content-length": str(len(answer)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(OSError):  # whoever asked may have gone
                self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.hold.set()
        server.shutdown()
        server.server_close()
        thread.join()

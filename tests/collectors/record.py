"""Asks a real collector that runs, and writes down what it answers, one JSON object a line:
`python -m tests.collectors.record NAME URL [HEADER=VALUE …] >> tests/collectors/heard.jsonl`."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

from tui.agent.span_collector import TIMEOUT_S
from tui.core.otlp import Span, SpanContext, SpanSource, to_json, to_protobuf

PROTOBUF, JSON = "application/x-protobuf", "application/json"
SOURCE = SpanSource({"service.name": "holdfast"}, "holdfast", "1", "")
START = 1_780_000_000_000_000_000
TRACE = "0123456789abcdef0123456789abcdef"
KEPT_HEADERS = ("content-type", "retry-after")
MOST_BYTES = 2_000


def span(text: str = "", trace: str = TRACE, id_: str = "0123456789abcdef") -> Span:
    """One request to a model."""
    values = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "text": text}
    return Span("chat m", SpanContext(trace, id_), "", "client", START, START + 10**9, values)


def probes() -> Iterator[tuple[str, dict[str, str], bytes]]:
    """Yield names, headers and bodies of requests."""
    good = to_json([span()], SOURCE)
    long_ = to_json([span("x" * (1 << 20), id_=f"{n:016x}") for n in range(1, 26)], SOURCE)
    yield "protobuf", {"content-type": PROTOBUF}, to_protobuf(good)
    yield "the same again", {"content-type": PROTOBUF}, to_protobuf(good)
    yield "json", {"content-type": JSON}, json.dumps(good).encode()
    zipped = {"content-type": PROTOBUF, "content-encoding": "gzip"}
    yield "gzip", zipped, gzip.compress(to_protobuf(good))
    yield "no spans", {"content-type": PROTOBUF}, to_protobuf(to_json([], SOURCE))
    yield "cut", {"content-type": PROTOBUF}, to_protobuf(good)[:-3]
    yield "no protobuf", {"content-type": PROTOBUF}, b"\xff\xfe{}"
    yield "no json", {"content-type": JSON}, b'{"resourceSpans": ['
    yield (
        "no trace id",
        {"content-type": PROTOBUF},
        to_protobuf(to_json([span(trace="0" * 32)], SOURCE)),
    )
    yield "another type", {"content-type": "text/plain"}, b"spans"
    yield "25 MiB", {"content-type": PROTOBUF}, to_protobuf(long_)


def answer(url: str, headers: dict[str, str], body: bytes) -> dict[str, object]:
    """Return what comes back: an answer, or how the connection ended."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", parts.path, body, headers)
        got = connection.getresponse()
        said = got.read(MOST_BYTES)
    except OSError as error:
        return {"ended": error.strerror or type(error).__name__}
    finally:
        connection.close()
    kept = {name: value for name in KEPT_HEADERS if (value := got.headers.get(name))}
    return {"status": got.status, "headers": kept, "body": base64.b64encode(said).decode()}


def main(name: str, url: str, *more: str) -> None:
    own = dict(one.split("=", 1) for one in more)
    for probe, headers, body in probes():
        line = {"collector": name, "probe": probe, **answer(url, {**headers, **own}, body)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

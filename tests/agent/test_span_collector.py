"""The person's collector: its address, its headers, and what its answers mean."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

from tests.support.clock import FakeClock
from tests.support.span_collector import LocalCollector, local_collector
from tui.agent.span_collector import (
    MOST,
    MOST_TEXT,
    Collector,
    CollectorError,
    batches,
    collector_of,
    switched_off,
)
from tui.core.config import OtelSettings
from tui.core.otlp import Span, SpanContext, text_size

SPAN = Span("chat m", SpanContext("a" * 32, "b" * 16), "", "client", 1, 2, {"n": 7})
TOKEN = "Bearer sesame-open-now"


@pytest.fixture
def there() -> Generator[LocalCollector]:
    with local_collector() as collector:
        yield collector


def of(there: LocalCollector, env: dict[str, str] | None = None, **settings: object) -> Collector:
    return collector_of(OtelSettings(endpoint=there.url, **settings), env or {})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("endpoint", "env", "url"),
    [
        ("", {}, "http://localhost:4318/v1/traces"),
        ("https://c.test:1/a/", {}, "https://c.test:1/a/v1/traces"),
        ("https://c.test/v1/traces", {}, "https://c.test/v1/traces"),
        ("", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://e:9/x"}, "http://e:9/x/v1/traces"),
        ("", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://e:9/x"}, "http://e:9/x"),
        ("http://own:1", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://e"}, "http://own:1/v1/traces"),
    ],
)  # fmt: skip
def test_the_address_is_the_settings_else_the_environments(
    endpoint: str, env: dict[str, str], url: str
) -> None:
    assert collector_of(OtelSettings(endpoint=endpoint), env).url == url


@pytest.mark.parametrize(
    "env",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "file:///etc/passwd"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://[::1"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:secret@127.0.0.1:9"},
        {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
    ],
)
def test_what_cannot_be_used_is_said(env: dict[str, str]) -> None:
    with pytest.raises(CollectorError) as caught:
        collector_of(OtelSettings(), env)
    assert caught.value.hint
    assert "secret" not in caught.value.message


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_a_collector_gets_what_the_protocol_says(there: LocalCollector, protocol: str) -> None:
    env = {
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b,x=1",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": protocol,
        "OTEL_RESOURCE_ATTRIBUTES": "team=infra,deployment.environment.name=dev",
        "OTEL_SERVICE_NAME": "mine",
    }
    collector = of(there, env, attributes={"team": "core"})
    assert collector.deliver([SPAN]).outcome == "taken"
    assert there.names == ["chat m"]
    (headers,) = there.requests
    assert headers["api-key"] == "a b"
    assert headers["x"] == "1"
    assert headers["path"] == "/v1/traces"
    assert headers["content-encoding"] == "gzip"
    assert (
        headers["content-type"] == f"application/{'json' if 'json' in protocol else 'x-protobuf'}"
    )
    assert there.resources[0]["team"] == "core"
    assert there.resources[0]["service.name"] == "mine"
    assert there.resources[0]["deployment.environment.name"] == "dev"
    assert "a b" not in repr(collector)


def test_headers_for_another_collector_stay_here(there: LocalCollector) -> None:
    env = {
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={TOKEN}",
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example",
    }
    assert of(there, env).deliver([SPAN]).outcome == "taken"
    assert "authorization" not in there.requests[0]
    env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{there.url}/v1/traces"
    assert of(there, env).deliver([SPAN]).outcome == "taken"
    assert there.requests[1]["authorization"] == TOKEN


def test_the_command_prints_headers_and_is_asked_again_once_they_are_refused(
    there: LocalCollector, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(f"Authorization: {TOKEN} 1\n\nX-Org: a\n")
    collector = of(there, headers_command=f"cat {file}")
    assert collector.deliver([SPAN]).outcome == "taken"
    assert there.requests[0]["authorization"] == f"{TOKEN} 1"
    assert there.requests[0]["x-org"] == "a"
    file.write_text(f"Authorization: {TOKEN} 2\n")
    there.answers.append((401, {}, b""))
    assert collector.deliver([SPAN]).outcome == "taken"
    assert [one["authorization"][-1] for one in there.requests] == ["1", "1", "2"]
    there.answers += [(401, {}, b"")] * 2
    assert collector.deliver([SPAN]).outcome == "refused"
    assert TOKEN not in repr(collector)


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 3", "ends with exit code 3"),
        (f"echo {TOKEN}", "prints a line that isn't a header"),
        ("printf 'a: b\\r\\0c: d'", "prints a line that isn't a header"),
    ],
)
def test_a_command_that_fails_is_said_without_what_it_prints(
    there: LocalCollector, command: str, why: str
) -> None:
    done = of(there, headers_command=command).deliver([SPAN])
    assert done.outcome == "later"
    assert why in done.why
    assert TOKEN not in done.why
    assert there.requests == []


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(429, "later"), (502, "later"), (503, "later"), (504, "later"), (400, "refused"),
     (403, "refused"), (404, "refused"), (413, "refused"), (500, "refused"), (302, "refused")],
)  # fmt: skip
def test_a_status_says_whether_the_same_may_come_again(
    there: LocalCollector, status: int, outcome: str
) -> None:
    there.answers.append((status, {"location": "http://127.0.0.1:9/"}, b""))
    done = of(there).deliver([SPAN])
    assert (done.outcome, done.why) == (outcome, f"it answers {status}")


def test_a_collector_says_when_it_wants_to_be_asked_again(there: LocalCollector) -> None:
    collector = of(there)
    collector.clock = FakeClock()
    later = f"{collector.clock.now():%a, %d %b %Y %H:%M:%S GMT}"
    values = {"7": 7.0, later: 0.0, "soon": 0.0, "-5": 0.0, "99999999999": 300.0}
    for value, seconds in values.items():
        there.answers.append((503, {"retry-after": value}, b""))
        assert collector.deliver([SPAN]).wait_s == pytest.approx(seconds, abs=1)  # pyright: ignore[reportUnknownMemberType]


def test_what_it_rejects_is_counted_and_said(there: LocalCollector) -> None:
    part = service.ExportTracePartialSuccess(rejected_spans=1, error_message="too\x1b[31m old")
    body = service.ExportTraceServiceResponse(partial_success=part).SerializeToString()
    there.answers.append((200, {"content-type": "application/x-protobuf"}, body))
    done = of(there).deliver([SPAN])
    assert (done.outcome, done.rejected) == ("taken", 1)
    assert "\x1b" not in done.why
    refusal = b'{"code": 3, "message": "no such tenant"}'
    there.answers.append((400, {"content-type": "application/json"}, refusal))
    assert of(there).deliver([SPAN]).why == "it answers 400: no such tenant"
    there.answers.append((413, {"content-type": "text/plain"}, b"body too large\n"))
    assert of(there).deliver([SPAN]).why == "it answers 413: body too large"
    there.answers.append((502, {"content-type": "text/html"}, b"<html>bad gateway</html>"))
    assert of(there).deliver([SPAN]).why == "it answers 502"
    there.answers.append((400, {"content-type": "application/x-protobuf"}, b"\x08\x03\x12\x03bad"))
    assert of(there).deliver([SPAN]).why == "it answers 400: bad"
    there.answers.append((415, {}, b""))
    assert of(there).deliver([SPAN]).why == "it answers 415: it doesn't take http/protobuf"
    there.answers.append((400, {"content-type": "application/json"}, b"\xff{"))
    assert of(there).deliver([SPAN]).why == "it answers 400"


def test_one_that_is_gone_or_slow_is_asked_later(there: LocalCollector) -> None:
    there.hold.clear()
    assert of(there).deliver([SPAN], within_s=0.05).why == "no answer in time"
    gone = collector_of(OtelSettings(endpoint="http://127.0.0.1:9"), {})
    assert gone.deliver([SPAN]).outcome == "later"


def test_requests_have_no_more_spans_and_texts_than_collectors_take() -> None:
    spans = [replace(SPAN, attributes={"text": "x" * n}) for n in (0, 60_000, 65_000)] * 700
    requests = [*batches(spans)]
    assert [span for some in requests for span in some] == spans
    assert max(len(some) for some in requests) <= MOST
    assert max(sum(map(text_size, some)) for some in requests) < MOST_TEXT + 65_000
    assert [len(some) for some in batches([SPAN] * (MOST + 1))] == [MOST, 1]
    assert [*batches([])] == []


def test_a_collector_is_another_one_by_whatever_it_may_have() -> None:
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=secret-a"}
    url, command = "https://c.test", "pass show collector"
    same = collector_of(OtelSettings(endpoint=url, service_name="x"), env)
    others = [
        collector_of(OtelSettings(endpoint=url), {}),
        collector_of(OtelSettings(endpoint=url), {"OTEL_EXPORTER_OTLP_HEADERS": "api-key=b"}),
        collector_of(OtelSettings(endpoint=url, headers_command=command), env),
        collector_of(OtelSettings(endpoint=url, content=True), env),
        collector_of(OtelSettings(endpoint="https://d.test"), env),
    ]
    of_key = collector_of(OtelSettings(endpoint=url), env).identity(b"k")
    assert same.identity(b"k") == of_key
    assert len({of_key, *(one.identity(b"k") for one in others)}) == 6
    assert same.identity(b"another installation") != of_key


def test_the_environment_can_only_switch_it_off() -> None:
    assert switched_off({"OTEL_SDK_DISABLED": "TRUE"})
    assert not switched_off({"OTEL_SDK_DISABLED": "no"})

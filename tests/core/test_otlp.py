"""OTLP: what is written is read by the protocol's own package, in both forms alike."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from tui.core.otlp import (
    Span,
    SpanContext,
    SpanEvent,
    SpanSource,
    answer_in,
    parent_in,
    refusal_in,
    to_json,
    to_protobuf,
)

SOURCE = SpanSource({"service.name": "holdfast", "team": "ä"}, "holdfast", "1", "https://schema")

texts = st.text(st.characters(), max_size=20)  # lone surrogates, too: a record may have them
values = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(texts, max_size=3).map(tuple),
)
attributes = st.dictionaries(texts, values, max_size=5)
times = st.integers(0, (1 << 64) - 1)
contexts = st.builds(
    SpanContext,
    st.binary(min_size=16, max_size=16).map(bytes.hex),
    st.binary(min_size=8, max_size=8).map(bytes.hex),
)
spans = st.builds(
    Span,
    texts,
    contexts,
    st.one_of(st.just(""), contexts.map(lambda one: one.span_id)),
    st.sampled_from(["internal", "client"]),
    times,
    times,
    attributes,
    st.lists(st.builds(SpanEvent, texts, times, attributes), max_size=2).map(tuple),
    st.lists(contexts, max_size=2).map(tuple),
    st.one_of(st.none(), texts),
)


def read_by_the_package(line: str) -> Any:
    """OTLP has ids in hexadecimal, where JSON of protobuf has base64: that is all that differs."""

    def ids(made: dict[str, Any]) -> dict[str, Any]:
        for key in made.keys() & {"traceId", "spanId", "parentSpanId"}:
            made[key] = base64.b64encode(bytes.fromhex(made[key])).decode()
        return made

    whole = json.loads(line, object_hook=ids)
    return json_format.ParseDict(whole, service.ExportTraceServiceRequest())


@given(st.lists(spans, max_size=3))
def test_both_forms_are_what_the_protocols_own_package_reads(some: list[Span]) -> None:
    made = to_json(some, SOURCE)
    by_json = read_by_the_package(json.dumps(made))
    assert by_json == service.ExportTraceServiceRequest.FromString(to_protobuf(made))
    read = by_json.resource_spans[0].scope_spans[0]
    assert [one.span_id.hex() for one in read.spans] == [one.context.span_id for one in some]
    assert [one.start_time_unix_nano for one in read.spans] == [one.start for one in some]
    assert [one.kind for one in read.spans] == [1 if one.kind == "internal" else 3 for one in some]
    assert [one.status.code for one in read.spans] == [
        0 if one.error is None else 2 for one in some
    ]
    assert read.schema_url == SOURCE.schema


def test_integers_are_strings_in_json_and_enums_numbers() -> None:
    span = Span("a", SpanContext("a" * 32, "b" * 16), "", "client", 1, 2, {"n": 7, "yes": True})
    (made,) = to_json([span], SOURCE)["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert made["kind"] == 3
    assert made["startTimeUnixNano"] == "1"
    assert made["attributes"] == [
        {"key": "n", "value": {"intValue": "7"}},
        {"key": "yes", "value": {"boolValue": True}},
    ]
    assert "parentSpanId" not in made
    assert "status" not in made


def read_by_the_propagator(traceparent: str) -> tuple[str, str] | None:
    """The span that OpenTelemetry's own reader finds, if its trace is kept."""
    context = TraceContextTextMapPropagator().extract({"traceparent": traceparent})
    read = trace.get_current_span(context).get_span_context()
    if not read.is_valid or not read.trace_flags.sampled:
        return None
    return f"{read.trace_id:032x}", f"{read.span_id:016x}"


GOOD = f"00-{'a1' * 16}-{'b2' * 8}-01"


@pytest.mark.parametrize(
    "traceparent",
    [
        GOOD,
        GOOD[:-2] + "00",  # not kept
        GOOD[:-2] + "03",
        GOOD[:-2] + "02",
        "cc" + GOOD[2:],
        "cc" + GOOD[2:] + "-more",
        "cc" + GOOD[2:] + ".more",
        "ff" + GOOD[2:],
        GOOD + "-more",
        GOOD.upper(),
        GOOD.replace("a1", "00"),
        GOOD.replace("b2", "00"),
        GOOD[1:],
        "",
        "\n",
        "a" * 55,
    ],
)
def test_a_traceparent_is_read_as_opentelemetry_reads_it(traceparent: str) -> None:
    parent = parent_in(traceparent)
    assert (parent and (parent.trace_id, parent.span_id)) == read_by_the_propagator(traceparent)


@given(contexts)
def test_a_span_is_named_to_others_as_opentelemetry_reads_it(context: SpanContext) -> None:
    read = read_by_the_propagator(context.traceparent)
    real = context.trace_id.strip("0") and context.span_id.strip("0")
    assert read == ((context.trace_id, context.span_id) if real else None)
    assert parent_in(context.traceparent) == (context if real else None)


def test_what_a_collector_says_is_read() -> None:
    answer = service.ExportTraceServiceResponse(
        partial_success=service.ExportTracePartialSuccess(
            rejected_spans=300, error_message="too old"
        )
    )
    assert answer_in(answer.SerializeToString()) == (300, "too old")
    as_json = json.loads(json_format.MessageToJson(answer))
    assert as_json["partialSuccess"]["rejectedSpans"] == "300"
    assert answer_in(b"", json=as_json) == (300, "too old")
    assert answer_in(service.ExportTraceServiceResponse().SerializeToString()) == (0, "")
    assert answer_in(b"", json={}) == (0, "")
    assert refusal_in(b"\x08\x03\x12\x03bad") == "bad"
    assert refusal_in(b"", json={"code": 3, "message": "bad"}) == "bad"
    assert refusal_in(b"", json={"detail": "bad"}) == "bad"  # as FastAPI says it


@pytest.mark.parametrize("json_", [[], "a", 5, {"partialSuccess": 5}, {"message": [1]}])
def test_any_json_is_an_answer(json_: object) -> None:
    assert answer_in(b"", json=json_) == (0, "")
    assert refusal_in(b"", json=json_) == ""


@given(st.binary(max_size=200))
def test_any_bytes_are_an_answer(body: bytes) -> None:
    rejected, _ = answer_in(body)
    assert rejected >= 0
    refusal_in(body)

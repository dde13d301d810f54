"""Bytes → events → content, wherever the network cuts and whatever the server writes."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.server_script import encoded, events_of
from tui.core.facts import TextDelta
from tui.core.messages import Usage
from tui.provider.anthropic import sse
from tui.provider.anthropic.answer import AnswerBuilder, MalformedEventError, tool_input
from tui.provider.anthropic.sse import BadEventDataError, EventDecoder

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)  # fmt: skip


def _decoded(*chunks: bytes) -> list[dict[str, Any]]:
    decoder = EventDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(p % (len(data) + 1) for p in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("written", [r'"\ud83d"', "NaN", "1e999", "123456789012345678901"])
def test_what_a_strict_parser_refuses_is_read_as_python_reads_it(written: str) -> None:
    (event,) = _decoded(f'data: {{"type": "x", "value": {written}}}\n\n'.encode())
    assert repr(event["value"]) == repr(json.loads(written))


@given(
    text=st.text(min_size=1),
    arguments=st.dictionaries(st.text(), _JSON, max_size=3),
    piece=st.integers(1, 9),
    places=st.lists(st.integers(0, 5000), max_size=20),
)
def test_an_answer_is_the_same_wherever_it_is_cut(
    text: str, arguments: dict[str, Any], piece: int, places: list[int]
) -> None:
    tools = [{"name": "t", "id": "toolu_1", "input": arguments}]
    turn = {"thinking": text[::-1], "text": text, "tools": tools, "piece": piece}
    answer = AnswerBuilder("m")
    shown: list[str] = []
    wire = b"".join(encoded(e) for e in events_of(turn, 0, "m"))
    for event in _decoded(*_cut(wire, places)):
        delta = answer.feed(event)
        if isinstance(delta, TextDelta):
            shown.append(delta.text)
    assert answer.done
    thinking, said, call = answer.completed(None).content
    assert thinking["thinking"] == text[::-1]
    assert said == {"type": "text", "text": text}
    assert "".join(shown) == text
    assert call["input"] == arguments


_TWO = [{"type": "ping"}, {"type": "message_stop"}]


@pytest.mark.parametrize(
    "wire",
    [
        b'event: ping\rdata: {"type": "ping"}\r\rdata: {"type": "message_stop"}\r\r',
        b'event: ping\r\ndata: {"type": "ping"}\r\n\r\ndata: {"type": "message_stop"}\r\n\r\n',
        b'data:{"type": "ping"}\r\n\ndata:{"type": "message_stop"}\r\n\n',
        b'event: ping\ndata: {"type": "ping"}\nevent: message_stop\ndata: {"type": "message_stop"}',
        b'data: {"type": "ping"}\ndata: {"type": "message_stop"}\n',
        b'{"type": "ping"}\n{"type": "message_stop"}\n',
        b'data: {"type":\ndata: "ping"}\n\n\n\ndata: \n\n:\n\nevent: message_stop\ndata:\n\n',
        b"event: ping\ndata: pong\n\nevent: message_stop\ndata: [1]\n\n",
        b'\xef\xbb\xbfdata: {"type": "ping"}   \n\nid: 1\nretry: 5\nevent: message_stop\n\n',
    ],
)
@given(places=st.lists(st.integers(0, 200), max_size=30))
def test_events_are_the_same_however_lines_end_and_reads_are_cut(
    wire: bytes, places: list[int]
) -> None:
    decoder = EventDecoder()
    events = [event for chunk in _cut(wire, places) for event in decoder.feed(chunk)]
    assert [*events, *decoder.finish()] == _TWO


_KINDS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def _sent_delta(index: object, text: object, kind: str = "text_delta", **more: object) -> bytes:
    delta = {"type": kind, _KINDS[kind]: text} | more
    event = {"type": "content_block_delta", "index": index, "delta": delta}
    return b"event: content_block_delta\ndata: " + json.dumps(event).encode() + b"\n\n"


_EVENTS = st.one_of(
    st.builds(_sent_delta, st.integers(0, 1), st.text(max_size=3), st.sampled_from(list(_KINDS))),
    st.sampled_from(
        [
            _sent_delta(0, "a", note="more than a text"),
            _sent_delta(0, None),
            _sent_delta("0", "a"),
            _sent_delta(0.0, "a"),
            b'event: content_block_delta\ndata: {"index": 0, "delta": {}}\n\n',
            b'event: content_block_delta\ndata: {"type": "ping"}\n\n',
            b'event: content_block_delta\ndata: {"type": "content_block_delta"}\n\n',
            b'event: content_block_delta\ndata: {"type": "ping"\ndata: }\n\n',
            b"event: content_block_delta\n: a comment\n\n",
            b'event: ping\ndata: {"type": "ping"}\n\n',
        ]
    ),
)


@given(st.lists(_EVENTS, max_size=30))
def test_deltas_read_together_are_those_read_one_by_one(wire: list[bytes]) -> None:
    begin = b'data: {"type": "message_start", "message": {}}\n\n'
    lines = b"".join([begin, *wire]).splitlines(keepends=True)
    answers = [AnswerBuilder("m"), AnswerBuilder("m")]
    shown = ["", ""]
    for n, events in enumerate((_decoded(begin + b"".join(wire)), _decoded(*lines))):
        for event in events:
            with suppress(MalformedEventError):
                delta = answers[n].feed(event)
                shown[n] += getattr(delta, "text", "")
    assert shown[0] == shown[1]
    assert answers[0].completed(None) == answers[1].completed(None)


@pytest.mark.parametrize("kind", list(_KINDS))
def test_deltas_that_come_together_are_one_for_each_block(kind: str) -> None:
    begin, word = b'data: {"type": "message_start"}\n\n', _sent_delta(0, "a", kind)
    events = _decoded(begin, word * 600 + _sent_delta(1, "b", kind) * 4)
    assert [event.get("delta") for event in events[1:]] == [
        {"type": kind, _KINDS[kind]: "a" * 600},
        {"type": kind, _KINDS[kind]: "bbbb"},
    ]


@pytest.mark.parametrize("parts", [("{0}, {0}",), ('{{"type": "content_block_delta"', "{1}")])
def test_data_that_is_json_only_among_others_is_no_event(parts: tuple[str, ...]) -> None:
    begin, word = b'data: {"type": "message_start"}\n\n', _sent_delta(0, "a")
    head, _, whole = word.decode().strip().partition("data: ")
    rest = whole.removeprefix('{"type": "content_block_delta", ')
    odd = [f"{head}data: {part.format(whole, rest)}\n\n".encode() for part in parts]
    with pytest.raises(BadEventDataError):
        _decoded(begin, b"".join([word, word, *odd, word, word]))


def test_half_an_event_at_the_end_is_none() -> None:
    decoder = EventDecoder()
    events = list(decoder.feed(b'data: {"type": "ping"}\n\ndata: {"type": "message_st'))
    assert [*events, *decoder.finish()] == [{"type": "ping"}]


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        ('event: error\ndata: {"type": "x_error", "message": "No"}', {"type": "x_error"}),
        ('data: {"type": "error", "message": {"message": "No"}}', {"message": "No"}),
        ('data: {"error": {"code": 502, "message": "No"}}', {"code": 502}),
        ("event: error\ndata: No", {"message": "No"}),
    ],
)
def test_an_error_is_one_wherever_a_server_puts_it(wire: str, error: dict[str, Any]) -> None:
    (event,) = _decoded(f"{wire}\n\n".encode())
    assert event["type"] == "error"
    assert error.items() <= event["error"].items()


def test_a_message_in_one_piece_is_the_events_of_a_stream_only_at_the_beginning() -> None:
    message = {"type": "message", "content": "Hello.", "stop_reason": "end_turn"}
    lines = json.dumps(message, indent=1)
    for wire in (lines, f"data: {json.dumps(message)}\n\n"):
        decoder, answer = EventDecoder(), AnswerBuilder("m")
        for event in (*decoder.feed(wire.encode()), *decoder.finish()):
            answer.feed(event)
        assert answer.completed(None).content == [{"type": "text", "text": "Hello."}]
    later = _decoded(b'data: {"type": "ping"}\n\ndata: ' + json.dumps(message).encode() + b"\n\n")
    assert later[1:] == [message]


def test_lines_may_end_with_crlf_and_data_may_span_lines() -> None:
    wire = b': hello\r\nevent: a\r\nid: 7\r\ndata: {"type":\r\ndata: "x"}\r\n\r\nretry: 5\r\n\r\n'
    assert _decoded(wire) == [{"type": "x"}]


def test_an_event_without_a_type_takes_its_name() -> None:
    assert _decoded(b'event: error\ndata: {"error": {}}\n\n') == [{"error": {}, "type": "error"}]


def test_what_is_cut_off_at_the_end_is_no_event() -> None:
    assert _decoded(b'data: {"type": "ping"}\n\ndata: {"type": "message_stop"}') == [
        {"type": "ping"}
    ]


@pytest.mark.parametrize("data", [b"{", b"[1]", b"null", b'"text"', b"\xff\xfe", b"[DONE"])
def test_data_that_is_no_json_object_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        _decoded(b"data: " + data + b"\n\n")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('"just text"', {"raw_input": '"just text"'}),
        ("", {}),
        ("  \n", {}),
        ("null", {}),
        ("[]", {}),
        ("[1]", {"raw_input": "[1]"}),
        ("7", {"raw_input": "7"}),
        ('{"a": ', {"raw_input": '{"a": '}),
        ('{"a": NaN}', {"raw_input": '{"a": NaN}'}),
        ('{"a": 1e999}', {"raw_input": '{"a": 1e999}'}),
        ('{"a": ' + "9" * 5000 + "}", {"raw_input": '{"a": ' + "9" * 5000 + "}"}),
        ("[" * 100_000, {"raw_input": "[" * 100_000}),
        ({"a": 1}, {"a": 1}),
        (None, {}),
        ([], {}),
        ([1], {"raw_input": "[1]"}),
    ],
)
def test_B07_input_is_always_an_object(given: object, expected: dict[str, Any]) -> None:
    assert tool_input(given) == expected


@given(_JSON)
def test_B07_input_can_always_be_sent_back(value: object) -> None:
    result = tool_input(json.dumps(value))
    assert isinstance(result, dict)
    json.dumps(result, allow_nan=False)


def _fed(*events: dict[str, Any]) -> AnswerBuilder:
    answer = AnswerBuilder("asked-for")
    for event in events:
        answer.feed(event)
    return answer


def _start(**message: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"role": "assistant", "content": [], **message}}


def _delta(usage: dict[str, Any], **delta: Any) -> dict[str, Any]:
    return {"type": "message_delta", "delta": delta, "usage": usage}


def test_a_later_null_or_zero_does_not_hide_what_was_counted() -> None:
    answer = _fed(
        _start(usage={"input_tokens": 9, "cache_read_input_tokens": 5, "output_tokens": 1}),
        _delta({"output_tokens": 30, "input_tokens": None, "cache_read_input_tokens": 0}),
        _delta({"output_tokens": 44}, stop_reason="end_turn"),
    )
    assert answer.completed(None).usage == Usage(9, 44, 0, 5)


def test_the_model_that_answered_is_named() -> None:
    assert _fed(_start(model="other")).completed(None).model == "other"
    assert _fed(_start()).completed(None).model == "asked-for"


def test_a_missing_stop_reason_follows_from_the_content() -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
    begun = {"type": "content_block_start", "index": 0, "content_block": call}
    assert _fed(_start()).completed(None).stop_reason == "end_turn"
    assert _fed(_start(), begun).completed(None).stop_reason == "tool_use"


def test_text_that_stands_in_the_first_event_is_kept() -> None:
    begun = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": "Be"},
    }
    more = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "gun"},
    }
    assert _fed(begun, more).completed(None).content == [{"type": "text", "text": "Begun"}]


def test_input_that_came_whole_is_kept() -> None:
    call = {"type": "tool_use", "id": "a", "name": "t", "input": {"path": "x"}}
    begun = {"type": "content_block_start", "index": 0, "content_block": call}
    assert _fed(begun).completed(None).content == [call]


def test_citations_are_kept_in_order() -> None:
    begun = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": "", "citations": None},
    }
    cited = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": {"n": n}},
        }
        for n in (1, 2)
    ]
    block = _fed(begun, *cited).completed(None).content[0]
    assert block["citations"] == [{"n": 1}, {"n": 2}]


def test_kinds_from_the_future_are_passed_over() -> None:
    begun = {
        "type": "content_block_start",
        "index": 0,
        "content_block": {"type": "text", "text": ""},
    }
    new_delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "aura_delta", "x": 1}}
    answer = _fed({"type": "sunrise"}, begun, new_delta, {"type": "message_stop"})
    assert answer.done
    assert answer.completed(None).content == [{"type": "text", "text": ""}]


def _begun(index: object, kind: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": kind, **fields},
    }


def _grown(index: object, kind: str, piece: object) -> dict[str, Any]:
    name = {"input_json": "partial_json"}.get(kind, kind)
    return {
        "type": "content_block_delta",
        "index": index,
        "delta": {"type": f"{kind}_delta", name: piece},
    }


def _stopped(index: object) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def _call(id_: str, **input_: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": "t", "input": input_}


def test_blocks_of_one_index_are_all_there_in_order() -> None:
    answer = _fed(
        _begun(0, "text", text=""),
        _grown(0, "text", "one"),
        _begun(0, "text", text=""),
        _grown(0, "text", "two"),
        _begun(0, "tool_use", id="a", name="t", input={}),
        _grown(0, "input_json", '{"n": 1}'),
        _begun(0, "tool_use", id="b", name="t", input={}),
        _grown(0, "input_json", '{"n": 2}'),
        _stopped(0),
    )
    assert answer.completed(None).content == [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two"},
        _call("a", n=1),
        _call("b", n=2),
    ]


def test_kinds_of_deltas_are_kept_apart() -> None:
    answer = _fed(
        _begun(0, "text", text=""),
        _grown(0, "thinking", "Hm"),
        _grown(0, "text", "An "),
        _grown(0, "thinking", "m."),
        _grown(0, "text", "answer."),
        _grown(0, "signature", "s"),
        _grown(0, "input_json", '{"n": '),
        _grown(0, "input_json", "1}"),
    )
    assert answer.completed(None).content == [
        {"type": "text", "text": "An answer."},
        {"type": "thinking", "thinking": "Hmm.", "signature": "s"},
        {"type": "tool_use", "name": "unnamed", "input": {"n": 1}},
    ]


@pytest.mark.parametrize("index", [3, -1, None, "3"])
def test_a_delta_of_a_block_that_never_began_opens_one(index: object) -> None:
    answer = _fed(_grown(index, "text", "Hel"), _grown(index, "text", "lo."), _stopped(index))
    assert answer.completed(None).content == [{"type": "text", "text": "Hello."}]


def test_deltas_after_the_end_of_their_block_go_on_it() -> None:
    answer = _fed(
        _begun(0, "tool_use", id="a", name="t", input={}),
        _stopped(0),
        _begun(1, "tool_use", id="b", name="t", input={}),
        _grown(0, "input_json", '{"n": 1}'),
        _grown(1, "input_json", '{"n": 2}'),
    )
    assert answer.completed(None).content == [_call("a", n=1), _call("b", n=2)]


def test_nothing_counts_after_the_end() -> None:
    end = {"type": "message_stop"}
    answer = _fed(
        _start(model="one"),
        _begun(0, "text", text="Done."),
        end,
        _start(model="two"),
        _begun(1, "tool_use", id="a", name="t", input={}),
        _grown(0, "text", "more"),
        _delta({"output_tokens": 5}, stop_reason="tool_use"),
        {"type": "nonsense"},
    )
    whole = answer.completed(None)
    assert (whole.model, whole.stop_reason, whole.usage) == ("one", "end_turn", Usage())
    assert whole.content == [{"type": "text", "text": "Done."}]


def test_nulls_and_numbers_in_text_are_read() -> None:
    answer = _fed(
        {"type": "message_start", "message": {"model": None, "usage": None, "content": None}},
        _begun(0, "text", text=None, citations=None),
        _grown(0, "text", None),
        _grown(0, "text", "x"),
        _begun(1, "tool_use", id=None, name=None, input=None),
        {"type": "message_delta", "delta": None, "usage": {"input_tokens": "12"}},
        _delta({"output_tokens": "3"}, stop_reason="end_turn", stop_details=None),
    )
    whole = answer.completed(None)
    assert whole.usage == Usage(12, 3)
    assert whole.content[0]["text"] == "x"
    assert (whole.content[1]["name"], whole.content[1]["input"]) == ("unnamed", {})


def test_a_block_of_an_unknown_kind_is_kept_and_grows() -> None:
    answer = _fed(
        _begun(0, "sketch", strokes="", tool_use_id="a"),
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "sketch_delta", "strokes": "up "},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "sketch_delta", "strokes": "down", "pen": 2},
        },
    )
    assert answer.completed(None).content == [
        {"type": "sketch", "strokes": "up down", "tool_use_id": "a", "pen": 2}
    ]


@pytest.mark.parametrize("chunk", [b"x" * 100, b'data: {"type": "ping"}\n\n'])
def test_23_an_answer_without_an_end_is_given_up(
    monkeypatch: pytest.MonkeyPatch, chunk: bytes
) -> None:
    monkeypatch.setattr(sse, "EVENT_MAX", 1000)
    monkeypatch.setattr(sse, "ANSWER_MAX", 5000)
    decoder = EventDecoder()
    for _ in range(10):
        list(decoder.feed(chunk))

    def go_on() -> None:
        for _ in range(5000 // len(chunk) + 2):
            list(decoder.feed(chunk))

    with pytest.raises(BadEventDataError, match="too large"):
        go_on()

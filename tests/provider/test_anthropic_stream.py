"""The adapter against a loopback server: what goes out, what comes in, and how it ends."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.provider.conversation import MODEL, a_request, ask, parts_of, provider_for, user
from tests.support.clock import PATIENCE_S, ManualClock
from tests.support.server import LoopbackServer
from tests.support.server_binding import BINDING
from tests.support.server_script import Json, signature_of
from tui.core.errors import ErrorClass, ProviderError
from tui.core.facts import TextDelta, ThinkingDelta, ToolInputDelta
from tui.core.messages import Usage
from tui.provider.anthropic import client_factory
from tui.provider.anthropic.client import GATHER_S
from tui.provider.base import AttemptStarted, Completed, StreamPart

_STALLED: Json = {"turns": [{"text": "a long answer", "faults": [{"stall_s": 600, "after": 3}]}]}


async def _failure(script: Json, **options: Any) -> ProviderError:
    """The error that comes of a script's first turn."""
    async with LoopbackServer(script) as server:
        provider = provider_for(server, **options)
        with pytest.raises(ProviderError) as caught:
            await parts_of(provider.stream(a_request()))
        await provider.aclose()
    return caught.value


async def _begun(stream: AsyncGenerator[StreamPart]) -> None:
    """Listen until the first piece of text."""
    async for part in stream:
        if isinstance(part, TextDelta):
            return


async def test_parts_come_in_the_order_of_the_port() -> None:
    turn = {
        "thinking": "Look first.",
        "text": "I'll look at the file.",
        "tools": [{"name": "read_file", "id": "toolu_1", "input": {"path": "a.py", "limit": 3}}],
        "piece": 7,
    }
    async with LoopbackServer({"turns": [turn]}) as server:
        provider = provider_for(server)
        parts = await parts_of(provider.stream(a_request()))
        await provider.aclose()
    assert parts[0] == AttemptStarted(1, MODEL)
    assert "".join(p.text for p in parts if isinstance(p, ThinkingDelta)) == "Look first."
    assert "".join(p.text for p in parts if isinstance(p, TextDelta)) == "I'll look at the file."
    calls = [p for p in parts if isinstance(p, ToolInputDelta)]
    assert {(p.id, p.name) for p in calls} == {("toolu_1", "read_file")}
    assert "".join(p.text for p in calls) == '{"path": "a.py", "limit": 3}'
    order = [AttemptStarted, ThinkingDelta, TextDelta, ToolInputDelta, Completed]
    seen = [kind for kind, _ in itertools.groupby(type(part) for part in parts)]
    assert seen == order
    assert isinstance(parts[-1], Completed)
    signature = parts[-1].content[0]["signature"]
    assert signature.startswith(signature_of("Look first."))
    assert parts[-1] == Completed(
        content=[
            {"type": "thinking", "thinking": "Look first.", "signature": signature},
            {"type": "text", "text": "I'll look at the file."},
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "read_file",
                "input": {"path": "a.py", "limit": 3},
            },
        ],
        model=MODEL,
        stop_reason="tool_use",
        usage=Usage(100, 20),
        message_id="msg_0000",
        request_id="req_0001",
    )


async def test_deltas_of_one_kind_that_come_together_are_one() -> None:
    call = {"name": "read_file", "input": {"path": "a.py"}}
    calls = [{**call, "id": id_} for id_ in ("toolu_1", "toolu_2")]
    turn = {"thinking": "Look first.", "text": "I'll look.", "tools": calls, "piece": 3}
    async with LoopbackServer({"turns": [{**turn, "burst": True}]}) as server:
        provider = provider_for(server)
        _, *deltas, _ = await parts_of(provider.stream(a_request()))
        await provider.aclose()
    input_ = json.dumps(call["input"])
    assert deltas == [
        ThinkingDelta("Look first."),
        TextDelta("I'll look."),
        ToolInputDelta("toolu_1", "read_file", input_),
        ToolInputDelta("toolu_2", "read_file", input_),
    ]


class _TickingClock(ManualClock):
    """A tenth of a second passes whenever somebody looks, as while a model thinks; pauses between
    two reads are over at once."""

    def monotonic(self) -> float:
        self.elapsed += 0.1
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        if seconds > GATHER_S:
            await super().sleep(seconds)
        else:
            self.slept.append(seconds)
            await asyncio.sleep(0)


async def test_the_longer_an_answer_takes_the_more_of_it_is_read_at_once() -> None:
    """Each read wakes the agent and the screen, and an end must not wait for the next one."""
    clock = _TickingClock()
    async with LoopbackServer({"turns": [{"text": "word " * 40, "piece": 5}]}) as server:
        provider = provider_for(server, clock=clock)
        await parts_of(provider.stream(a_request()))
        await provider.aclose()
    pauses = [seconds for seconds in clock.slept if seconds <= GATHER_S]
    assert pauses
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.01
    assert pauses[-1] == GATHER_S


async def test_deltas_before_an_error_are_given_first() -> None:
    pieces = [{"type": "text_delta", "text": text} for text in ("half ", "an")]
    events: list[Json] = [
        {"type": "message_start", "message": {}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text"}},
        *({"type": "content_block_delta", "index": 0, "delta": piece} for piece in pieces),
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ]
    raw = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    script: Json = {"turns": [{"text": "x", "faults": [{"raw": raw, "after": 0}]}]}
    parts: list[StreamPart] = []

    async def listen(stream: AsyncGenerator[StreamPart]) -> None:
        async for part in stream:
            parts.append(part)  # noqa: PERF401 - what came before the error counts

    async with LoopbackServer(script) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError) as caught:
            await listen(provider.stream(a_request()))
        await provider.aclose()
    assert caught.value.error_class == "overloaded"
    assert parts[1:] == [TextDelta("half an")]


async def test_what_is_not_set_is_not_sent() -> None:
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server)
        await ask(provider)
        await provider.aclose()
    body = server.posts[0].body
    assert set(body) == {"model", "max_tokens", "messages", "stream"}
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]


async def test_a_request_is_sent_as_it_is_and_not_changed() -> None:
    tool: Json = {"name": "t", "description": "d", "input_schema": {"type": "object"}}
    mark = {"type": "ephemeral"}
    request = a_request(
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": mark}]},
        system=[{"type": "text", "text": "Be brief.", "cache_control": mark}],
        tools=[tool],
        thinking={"type": "adaptive", "display": "summarized"},
        effort="xhigh",
    )
    before = copy.deepcopy(request)
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server)
        await ask(provider, request)
        await provider.aclose()
    assert request == before
    assert server.posts[0].body == {
        "model": MODEL,
        "max_tokens": 1000,
        "messages": request.messages,
        "system": request.system,
        "tools": [tool],
        "thinking": request.thinking,
        "output_config": {"effort": "xhigh"},
        "stream": True,
    }


@pytest.mark.parametrize(
    ("common", "ours", "sent"),
    [
        ("anthropic-beta: mine-2026-01-01", True, [BINDING, "mine-2026-01-01"]),
        (f"Anthropic-Beta: {BINDING}, mine-2026-01-01", True, [BINDING, "mine-2026-01-01"]),
        ("anthropic-beta: mine-2026-01-01", False, ["mine-2026-01-01"]),
        ("x-team: one", True, [BINDING]),
        ("x-team: one", False, []),
    ],
)
async def test_betas_of_the_environment_are_sent_with_ours(
    monkeypatch: pytest.MonkeyPatch, common: str, ours: bool, sent: list[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", common)
    request = a_request(binding_reports=ours)
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server)
        await ask(provider, request)
        assert await provider.count_tokens(request) > 0
        await provider.aclose()
    for post in server.posts:
        named = post.headers.get("anthropic-beta", "").split(",")
        assert list(dict.fromkeys(one.strip() for one in named if one)) == sent


async def test_key_is_sent_in_both_headers_to_servers_other_than_the_api() -> None:
    async with LoopbackServer({"turns": [{"text": "ok"}], "keys": ["secret-key"]}) as server:
        provider = provider_for(server, api_key=" secret-key\n")
        await ask(provider)
        await provider.aclose()
    headers = server.posts[0].headers
    assert headers["x-api-key"] == "secret-key"
    assert headers["authorization"] == "Bearer secret-key"


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/", "/v1/messages"])
async def test_base_url_may_end_as_people_write_it(ending: str) -> None:
    async with LoopbackServer({"turns": [{"text": "ok"}]}) as server:
        provider = provider_for(server, base_url=server.url + ending)
        await ask(provider)
        await provider.aclose()
    assert [r.path for r in server.requests] == ["/v1/messages"]


async def test_answer_goes_back_verbatim_and_the_server_takes_it() -> None:
    turns: list[Json] = [
        {
            "thinking": "First.",
            "redacted_thinking": "b3BhcXVl",
            "text": ["One.", "Two."],
            "tools": [{"name": "list_dir", "id": "toolu_a"}],
        },
        {"text": "Done."},
    ]
    tool = {"name": "list_dir", "description": "d", "input_schema": {"type": "object"}}
    thinking = {"type": "adaptive"}
    async with LoopbackServer({"turns": turns}) as server:
        provider = provider_for(server)
        first = await ask(provider, a_request(tools=[tool], thinking=thinking))
        result = {"type": "tool_result", "tool_use_id": "toolu_a", "content": "a.py"}
        messages = [
            user("hello"),
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [result]},
        ]
        second = await ask(provider, a_request(*messages, tools=[tool], thinking=thinking))  # pyright: ignore[reportArgumentType]
        await provider.aclose()
    assert [b["type"] for b in first.content] == [
        "thinking",
        "redacted_thinking",
        "text",
        "text",
        "tool_use",
    ]
    assert first.content[1]["data"].startswith("b3BhcXVl")
    assert second.content == [{"type": "text", "text": "Done."}]


async def test_unknown_blocks_are_kept() -> None:
    strange = {"type": "hologram", "rays": [1, 2, {"deep": None}]}
    async with LoopbackServer({"turns": [{"text": "See.", "blocks": [strange]}]}) as server:
        provider = provider_for(server)
        answer = await ask(provider)
        await provider.aclose()
    assert answer.content == [{"type": "text", "text": "See."}, strange]


async def test_usage_is_merged_with_the_cache_fields() -> None:
    usage = {
        "input_tokens": 7,
        "output_tokens": 90,
        "cache_creation_input_tokens": 11,
        "cache_read_input_tokens": 1300,
    }
    async with LoopbackServer({"turns": [{"text": "ok", "usage": usage}]}) as server:
        provider = provider_for(server)
        answer = await ask(provider)
        await provider.aclose()
    assert answer.usage == Usage(7, 90, 11, 1300)


async def test_broken_tool_input_is_kept_as_text() -> None:
    tools = [
        {"name": "a", "json": '{"path": "x'},
        {"name": "b", "json": '"{\\"path\\": \\"x\\"}"'},
        {"name": "c", "json": ""},
        {"name": "d", "json": "[1, 2]"},
    ]
    async with LoopbackServer({"turns": [{"tools": tools}]}) as server:
        provider = provider_for(server)
        answer = await ask(provider)
        await provider.aclose()
    assert [b["input"] for b in answer.content] == [
        {"raw_input": '{"path": "x'},
        {"path": "x"},
        {},
        {"raw_input": "[1, 2]"},
    ]


async def test_connection_is_used_again() -> None:
    async with LoopbackServer({"turns": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}) as server:
        provider = provider_for(server)
        for _ in range(3):
            await ask(provider)
        await provider.aclose()
    assert {r.connection for r in server.posts} == {1}


async def test_request_is_sent_once_whatever_the_server_says() -> None:
    script: Json = {"turns": [{"faults": [{"status": 529}] * 3}]}
    async with LoopbackServer(script) as server:
        provider = provider_for(server)
        with pytest.raises(ProviderError):
            await ask(provider)
        await provider.aclose()
    assert len(server.posts) == 1


@pytest.mark.parametrize(
    ("fault", "error_class"),
    [
        ({"eof_after": 5}, "stream_broken"),
        ({"cut_after": 5}, "stream_broken"),
        ({"cut_after": 0}, "stream_broken"),
        ({"eof_after": 0}, "stream_broken"),
        ({"bad_json": True, "after": 3}, "stream_broken"),
        ({"raw": "data: [1]\n\n"}, "stream_broken"),
        ({"error_event": {"type": "overloaded_error", "message": "Overloaded"}}, "overloaded"),
        ({"error_event": {"type": "api_error", "message": "Internal server error"}}, "server"),
        ({"status": 529}, "overloaded"),
    ],
)
async def test_R17_what_breaks_a_stream_may_be_retried(
    fault: Json, error_class: ErrorClass
) -> None:
    error = await _failure({"turns": [{"text": "a long enough text", "faults": [fault]}]})
    assert (error.error_class, error.retryable) == (error_class, True)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": 5}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": None, "text": "x"}},
        {"type": "content_block_delta", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": "text"},
        {"type": "message_start", "message": None},
    ],
)
async def test_an_event_of_the_wrong_shape_breaks_the_stream(event: Json) -> None:
    raw = f"data: {json.dumps(event)}\n\n"
    error = await _failure({"turns": [{"text": "x", "faults": [{"raw": raw, "after": 2}]}]})
    assert error.error_class == "stream_broken"
    assert "not of the Messages API" in error.message


async def test_no_connection_is_a_network_error_that_says_why() -> None:
    async with LoopbackServer() as server:
        url = server.url
    provider = provider_for(server)
    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    await provider.aclose()
    error = caught.value
    assert (error.error_class, error.retryable, error.status) == ("network", True, None)
    assert error.message == f"Can't reach {url}: connection refused."


async def test_a_password_in_the_address_is_not_shown() -> None:
    async with LoopbackServer() as server:
        url = server.url
    provider = provider_for(server, base_url=url.replace("://", "://me:secret@"))
    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    await provider.aclose()
    assert caught.value.message == f"Can't reach {url}: connection refused."


async def test_closing_the_iterator_closes_the_connection_at_once() -> None:
    async with LoopbackServer(_STALLED) as server:
        provider = provider_for(server)
        stream = provider.stream(a_request())
        await _begun(stream)
        seen = await server.post(1)
        assert not seen.gone.is_set()
        await stream.aclose()
        async with asyncio.timeout(PATIENCE_S):
            await seen.gone.wait()
        await provider.aclose()


@pytest.mark.parametrize("fault", [{"stall_s": 600, "after": 3}, {"slow_s": 600}])
async def test_cancelling_closes_the_connection_at_once(fault: Json) -> None:
    async with LoopbackServer({"turns": [{"text": "x", "faults": [fault]}]}) as server:
        provider = provider_for(server)
        task = asyncio.create_task(parts_of(provider.stream(a_request())))
        seen = await server.post(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with asyncio.timeout(PATIENCE_S):
            await seen.gone.wait()
        await provider.aclose()


async def test_an_error_leaves_the_provider_usable() -> None:
    script: Json = {"turns": [{"text": "fine", "faults": [{"cut_after": 4}, {"status": 500}]}]}
    async with LoopbackServer(script) as server:
        provider = provider_for(server)
        for _ in range(2):
            with pytest.raises(ProviderError):
                await ask(provider)
        answer = await ask(provider)
        await provider.aclose()
    assert answer.content == [{"type": "text", "text": "fine"}]


async def test_two_answers_at_once_do_not_mix() -> None:
    turns: list[Json] = [{"text": "first " * 50}, {"text": "second " * 50}]
    async with LoopbackServer({"turns": turns}) as server:
        provider = provider_for(server)
        answers = await asyncio.gather(ask(provider), ask(provider))
        await provider.aclose()
    assert {a.content[0]["text"] for a in answers} == {"first " * 50, "second " * 50}


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/messages"])
async def test_a_query_of_the_address_goes_with_every_request(path: str) -> None:
    async with LoopbackServer({"turns": [{"text": "yes"}]}) as server:
        address = f"{server.url}{path}?api-version=2026-10-21&code=a%26b"
        provider = provider_for(server, base_url=address)
        await ask(provider)
        await provider.list_models()
        await provider.count_tokens(a_request())
        await provider.aclose()
    query = "api-version=2026-10-21&code=a%26b"
    assert [(seen.path, seen.query) for seen in server.requests] == [
        ("/v1/messages", query),
        ("/v1/models", f"{query}&limit=1000"),
        ("/v1/messages/count_tokens", query),
    ]
    assert client_factory.shown(provider.url) == server.url

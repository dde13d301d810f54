"""Conversations that are made up: the ideal client is never refused, one that edits always is."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.direct import LOOK, Direct
from tests.support.fuzzed_model import HARMLESS, FuzzedModel, converse, thoughts
from tests.support.server import LoopbackServer
from tests.support.server_api import MessagesApi
from tests.support.server_bodies import blocks_of
from tests.support.server_errors import Rejection
from tests.support.server_script import Json
from tests.support.test_strict_server import Client

TOOLS: list[Json] = [{**LOOK, "name": name} for name in sorted(HARMLESS)]


def begun(seed: int, **more: object) -> Direct:
    one = Direct.begun()
    model = FuzzedModel(random=Random(seed), catalogue=True, priced=True)
    one.api = MessagesApi(model)
    one.body["tools"] = TOOLS
    one.body |= more
    return one


def kinds(one: Direct) -> set[str]:
    return {block["type"] for message in one.messages for block in blocks_of(message)}


@pytest.mark.parametrize("seed", range(5))
def test_a_client_that_only_appends_is_never_refused(seed: int) -> None:
    one = begun(seed)
    answers = list(converse(one, 12))
    assert len(answers) > 15
    assert kinds(one) == {"text", "thinking", "tool_use", "tool_result"}
    assert any(
        [b["type"] for b in answer["content"]][1:-1].count("thinking") for answer in answers
    ), "there are notes between calls"


@pytest.mark.parametrize("seed", range(20))
def test_a_client_that_edits_what_stands_before_thinking_is_refused(seed: int) -> None:
    one, random = begun(seed), Random(seed)
    list(converse(one, 6))
    one.say()
    last = thoughts(one)[-1][0]
    texts = [
        block
        for message in one.messages[:last]
        for block in blocks_of(message)
        if block["type"] in {"text", "tool_result"}
    ]
    block = random.choice(texts)
    block["content" if block["type"] == "tool_result" else "text"] = "Edited."
    refusal = one.post()
    assert isinstance(refusal, Rejection)
    assert "bound to a different conversation" in refusal.message


def test_the_same_seed_makes_the_same_conversation() -> None:
    one, two, other = begun(1), begun(1), begun(2)
    for each in (one, two, other):
        list(converse(each, 5))
    assert one.messages == two.messages != other.messages


def test_it_calls_what_there_is_and_speaks_where_it_has_to() -> None:
    one = begun(3, tools=[{**LOOK, "name": "list_dir"}])
    list(converse(one, 8))
    called = {b["name"] for m in one.messages for b in blocks_of(m) if b["type"] == "tool_use"}
    assert called == {"list_dir"}
    two = begun(3)
    two.api.script = FuzzedModel(random=Random(3), in_words=lambda body: True)
    list(converse(two, 8))
    assert "tool_use" not in kinds(two)


async def test_the_server_plays_it() -> None:
    async with LoopbackServer(FuzzedModel(random=Random(5))) as server:
        one = Client(server)
        one.say("hello")
        for _ in range(3):
            await one.send()
            one.say("again")
        assert len(server.posts) == 3
        await one.sdk.close()

"""What is taken over from the request before gives what looking at all of it would give."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tui.context.frame import sealed
from tui.context.notices import Form, NoticeBlock, NoticeLifter, block_of
from tui.context.request_trail import RequestTrail
from tui.core.messages import Message, text_block
from tui.provider.base import Request
from tui.session.records import Record

MARK = {"cache_control": {"type": "ephemeral"}}


def notice(text: str) -> NoticeBlock:
    data = sealed({"kind": "state", "text": text}, b"k")
    block = block_of(Record("notice", "n", None, "", data), Form(system_messages=True))
    assert isinstance(block, NoticeBlock)
    return block


def message(draw: Random, number: int) -> Message:
    content: list[Any] = [text_block(f"{number} {draw.random()}") for _ in range(2)]
    if number % 2 == 0 and draw.random() < 0.3:
        content.append(notice(f"fact {number}"))
    return {"role": "assistant" if number % 2 else "user", "content": content}


def marked(one: Message) -> Message:
    first, *rest = one["content"]
    return {"role": one["role"], "content": [{**first, **MARK}, *rest]}


def changed(draw: Random, messages: list[Message]) -> list[Message]:
    """The list as a later view has it: grown, cut, begun anew, or with another message in it."""
    kind = draw.choice(["grown"] * 6 + ["cut", "anew", "other", "reordered"])
    if kind == "cut":
        return messages[: draw.randint(1, len(messages))]
    if kind == "anew":
        return [{"role": one["role"], "content": list(one["content"])} for one in messages]
    if kind in {"other", "reordered"}:
        place = draw.randrange(len(messages))
        other: Message = message(draw, place)
        if kind == "reordered":  # the order of keys counts
            text: Any = {"text": "x", "type": "text"} if draw.random() < 0.5 else text_block("x")
            other["content"] = [text]
        return [*messages[:place], other, *messages[place + 1 :]]
    start = len(messages)
    return [*messages, *(message(draw, start + n) for n in range(draw.randint(1, 5)))]


@pytest.mark.parametrize("seed", range(20))
def test_trail_and_lifter_find_what_a_fresh_look_finds(seed: int) -> None:
    draw, trail, lifter = Random(seed), RequestTrail(), NoticeLifter()
    messages = [message(draw, n) for n in range(90)]
    for _ in range(40):
        messages = changed(draw, messages)
        lifted = lifter.lifted(messages)
        assert lifted == NoticeLifter().lifted(messages)
        assert len(lifted) >= len(messages)
        sent = list(lifted)
        for place in draw.sample(range(len(sent)), min(3, len(sent))):
            sent[place] = marked(sent[place])
        request = Request("m", [text_block("system")], sent, [], 100)
        found, candidate = trail.measure(request)
        fresh, other = RequestTrail().measure(request)
        assert found == fresh
        count = draw.randint(0, len(sent))
        new = RequestTrail()
        assert trail.digest_after(candidate, count) == new.digest_after(other, count)
        if draw.random() < 0.8:
            trail.keep(candidate)


def test_the_order_of_keys_makes_another_request() -> None:
    trail = RequestTrail()
    hashes: set[str] = set()
    for block in ({"type": "text", "text": "x"}, {"text": "x", "type": "text"}):
        content: Any = [block]
        request = Request("m", [], [{"role": "user", "content": content}], [], 100)
        found, candidate = trail.measure(request)
        trail.keep(candidate)
        hashes.add(found.sha256)
    assert len(hashes) == 2

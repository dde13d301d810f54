"""What a conversation would have cost a client that only ever appends, with the same prompt.

It sends the system prompt and the tools of the first request, every answer as it came, and what is
new in each request behind the last answer. It marks the end of the system prompt, the place of its
last mark, and its end. A conversation that was compacted begins anew, with what is left of it; the
summary is asked for behind what was sent, and so is all but free.
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.support.server_api import Exchange
from tests.support.server_bodies import bare, blocks_of
from tests.support.server_cache import ServerCache
from tests.support.server_script import Json
from tests.support.server_view import shown

_MARK: Json = {"cache_control": {"type": "ephemeral"}}


def ideal_dollars(exchanges: Iterable[Exchange]) -> float:
    """The price of these exchanges for such a client, by the server's own cache."""
    cache = ServerCache()
    messages: list[Json] = []
    front: Json = {}
    last = 0
    for body, answer, begun in exchanges:
        if not front:
            kept = ("model", "tools", "system", "thinking", "output_config", "tool_choice")
            front = {name: bare(body[name]) for name in kept if name in body}
            front["system"] = _marked(blocks_of({"content": front.get("system") or []}))
        sent_now: list[Json] = bare(body["messages"])
        if "compaction" in body:
            asked = [{**m, "content": blocks_of(m)} for m in sent_now]
            asked[-1]["content"] = _marked(asked[-1]["content"])
            usage = cache.read(shown({**front, "messages": asked}), begun)
            cache.charge(body["model"], usage | {"output_tokens": answer["usage"]["output_tokens"]})
            continue
        if messages and blocks_of(sent_now[0])[0] != blocks_of(messages[0])[0]:
            messages, last = sent_now, 0
        else:
            messages += _new(sent_now)
        sent = [{**m, "content": blocks_of(m)} for m in messages]
        for number in {last, len(sent) - 1}:
            sent[number]["content"] = _marked(sent[number]["content"])
        request = {**front, "messages": sent}
        usage = cache.read(shown(request), begun)
        cache.charge(body["model"], usage | {"output_tokens": answer["usage"]["output_tokens"]})
        last = len(sent) - 1
        messages.append({"role": "assistant", "content": answer["content"]})
    return cache.dollars


def _new(messages: list[Json]) -> list[Json]:
    """What stands behind the last answer."""
    answered = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    return messages[answered[-1] + 1 :] if answered else messages


def _marked(blocks: list[Json]) -> list[Json]:
    """Blocks with a mark on the last one."""
    return [*blocks[:-1], *(block | _MARK for block in blocks[-1:])]

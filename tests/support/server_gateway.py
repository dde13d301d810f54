"""A gateway in front of the API that does not know all that the API does: it says so, or not."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping

from tests.support.server_bodies import blocks_of
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_script import Json
from tui.context.rules.media import media_in


def gateway_refusals(
    body: Json, betas: Collection[str], lacks: Collection[str]
) -> Iterator[Rejection]:
    """What of a request it `lacks`: a field of the body, a beta, "ttl", "cache_control",
    "documents", "thinking_type" (adaptive), or the role "system"."""
    for name in sorted(set(lacks) & body.keys()):
        yield invalid(f"{name}: {EXTRA}")
    for name in sorted(set(lacks) & set(betas)):
        yield invalid(
            f"Unexpected value(s) `{name}` for the `anthropic-beta` header. Please consult our "
            "documentation or try again without the header."
        )
    for number, message in enumerate(body["messages"]):
        if "system_role" in lacks and message["role"] == "system":
            yield invalid(f"messages.{number}.role: Input should be 'user' or 'assistant'")
        if "message_effort" in lacks and "output_config" in message:
            yield invalid(f"messages.{number}.output_config: {EXTRA}")
        for where, block in media_in(blocks_of(message), f"messages.{number}"):
            if "documents" in lacks and block["type"] == "document":
                yield invalid(
                    f"{where}: Input tag 'document' found using 'type' does not match any of the "
                    "expected tags: 'text', 'image'"
                )
    if "thinking_type" in lacks and "thinking" in body:
        yield invalid("adaptive thinking is not supported on this model")
    every = [*body.get("system", []), *(b for m in body["messages"] for b in blocks_of(m))]
    if "cache_control" in lacks and any("cache_control" in b for b in every):
        yield invalid(f"system.0.cache_control: {EXTRA}")
    if "ttl" in lacks and any("ttl" in (b.get("cache_control") or {}) for b in every):
        yield invalid(f"system.0.cache_control.ephemeral.ttl: {EXTRA}")


def without(
    raw: bytes, headers: Mapping[str, str], drops: Collection[str]
) -> tuple[bytes, Mapping[str, str]]:
    """A request without what is dropped on the way: a field of the body, a beta, "betas" for all
    of them, or the role "system" with what it says."""
    if not drops:
        return raw, headers
    body: Json = json.loads(raw)
    body = {name: value for name, value in body.items() if name not in drops}
    if "system_role" in drops:
        body["messages"] = [one for one in body["messages"] if one["role"] != "system"]
    named = headers.get("anthropic-beta", "").split(",")
    betas = [] if "betas" in drops else [name for name in named if name not in drops]
    return json.dumps(body).encode(), {**headers, "anthropic-beta": ",".join(betas)}

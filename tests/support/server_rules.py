"""What the real API would reject, in its own words.

The rules of a request's shape are those of `tui.context.validate`; what only a server can know is
checked here: the size of the body, the model's limits, and the signatures that it gave out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, cast

from tests.support.server_binding import Bindings
from tests.support.server_bodies import blocks_of, placed
from tests.support.server_diagnostics import diagnostics_violations
from tests.support.server_documents import document_violations
from tests.support.server_errors import EXTRA, Rejection, invalid
from tests.support.server_gateway import gateway_refusals
from tests.support.server_model_rules import model_violations, without_additions
from tests.support.server_script import Json, Script, signature_of
from tests.support.server_search import search_refusals
from tests.support.server_view import shown
from tui.context.rules.media import media_in
from tui.context.validate import check_request

MAX_BYTES = 32 * 1024 * 1024
CHARACTERS_PER_TOKEN = 4
SMALL_WINDOW_MEDIA: Final = 100
"""The most images and documents in a request to a model whose window is 200,000 tokens."""
_COUNTED: Final = {
    "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config",
    "cache_control", "context_management", "mcp_servers", "compaction",
}  # fmt: skip


def malformed(raw: bytes, script: Script, *, counted: bool = False) -> Json | Rejection:
    """A body whose shape is right, or what is wrong with it. `counted`: only to count tokens."""
    if len(raw) > MAX_BYTES:
        return Rejection(413, "request_too_large", "Request exceeds the maximum size")
    body, problem = parsed(raw)
    if body is None:
        return invalid(f"The request body is not valid JSON: {problem}")
    shape = without_additions(body)
    if counted:
        if extra := body.keys() - _COUNTED:
            return invalid(f"{min(extra)}: {EXTRA}")
        shape["max_tokens"] = 1
    if violations := check_request(shape, prefill="compaction" in body and not counted):
        return invalid(violations[0].text)
    if script.model(body["model"]) is None:
        return Rejection(404, "not_found_error", f"model: {body['model']}")
    return body


def refusals(
    body: Json, script: Script, betas: frozenset[str], bindings: Bindings | None
) -> Iterator[Rejection]:
    """Why the real API would not take a body of the right shape. Without `max_tokens`, it is only
    to be counted: then a request for a summary is judged as any other."""
    counted = "max_tokens" not in body
    judged = {k: v for k, v in body.items() if k != "compaction"} if counted else body
    yield from gateway_refusals(judged, betas, script.lacks)
    yield from search_refusals(judged, script.lacks)
    yield from model_violations(judged, betas)
    yield from diagnostics_violations(body)
    yield from map(invalid, _limits(body, script))
    if script.signatures:
        yield from map(invalid, _signatures(body, script.scripted_signatures))
        if bindings is not None:
            yield from map(invalid, bindings.refusals(betas))


def parsed(raw: bytes) -> tuple[Json | None, str]:
    """A body as JSON, or why it is none."""
    try:
        value: object = json.loads(raw.decode())
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError as error:
        place = f"line 1 column {error.start + 1} (char {error.start})"
        return None, f"no low surrogate in string: {place}"
    except (ValueError, RecursionError) as error:
        return None, str(error)
    return (cast("Json", value), "") if isinstance(value, dict) else (None, "expected an object")


def prompt_tokens(body: Json) -> int:
    """An estimate that is the same for everyone who asks, of what the model is shown."""
    seen = shown(body)
    parts = {name: seen.get(name) for name in ("system", "messages", "tools")}
    return len(json.dumps(parts, ensure_ascii=False)) // CHARACTERS_PER_TOKEN


def _limits(body: Json, script: Script) -> Iterator[str]:
    model = script.model(body["model"]) or {}
    asked, most = body.get("max_tokens", 0), model.get("max_tokens", 64_000)
    if asked > most:
        what = "which is the maximum allowed number of output tokens for"
        yield f"max_tokens: {asked} > {most}, {what} {body['model']}"
    window, tokens = model.get("max_input_tokens", 200_000), prompt_tokens(body)
    found = [one for m in body["messages"] for one in media_in(blocks_of(m), "")]
    if window <= 200_000 and len(found) > SMALL_WINDOW_MEDIA:
        yield f"too many images and documents: {len(found)} + 0 > {SMALL_WINDOW_MEDIA}"
    yield from document_violations(body, window)
    if tokens > window:
        yield f"prompt is too long: {tokens} tokens > {window} maximum"
    if tokens + asked > window and not script.catalogue:  # the models of today take it
        yield (
            f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )


def overflow_of(body: Json, fault: Json) -> Rejection:
    """The 400 of an `overflow` fault: true figures of the request against a window made up."""
    asked = body["max_tokens"]
    if fault["overflow"] == "max_tokens":
        tokens = prompt_tokens(body)
        limit = tokens + max(1, asked // 2)
        return invalid(
            f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {limit}, "
            "decrease input length or `max_tokens` and try again"
        )
    return invalid("prompt is too long: 213462 tokens > 200000 maximum")


def _signatures(body: Json, scripted: set[str]) -> Iterator[str]:
    for one in placed(body):
        if one.block["type"] == "thinking":
            signed = {signature_of(str(one.block.get("thinking"))), *scripted}
            if str(one.block.get("signature")).partition(".")[0] not in signed:
                yield f"{one.at}: Invalid `signature` in `thinking` block"

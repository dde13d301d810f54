"""What the real API would reject, in its own words.

The rules of a request's shape are those of `tui.context.validate`; what only a server can know is
checked here: the size of the body, the model's limits, and the signatures that it gave out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple, cast

from tests.support.server_binding import unbound
from tests.support.server_model_rules import model_violations, without_system_messages
from tests.support.server_script import Json, Script, part, signature_of
from tui.context.validate import check_request

MAX_BYTES = 32 * 1024 * 1024
CHARACTERS_PER_TOKEN = 4


class Rejection(NamedTuple):
    """An error answer: status, type and text."""

    status: int
    type: str
    message: str


def rejected(raw: bytes, script: Script, betas: frozenset[str] = frozenset()) -> Rejection | None:
    """Why the real API would not take this body; None if it would."""
    if len(raw) > MAX_BYTES:
        return Rejection(413, "request_too_large", "Request exceeds the maximum size")
    body, problem = parsed(raw)
    if body is None:
        return _invalid(f"The request body is not valid JSON: {problem}")
    if violations := check_request(without_system_messages(body), prefill="compaction" in body):
        return _invalid(violations[0].text)
    model = script.model(body["model"])
    if model is None:
        return Rejection(404, "not_found_error", f"model: {body['model']}")
    found = (*model_violations(body, betas), *_beyond_the_shape(body, model, script))
    return next(map(_invalid, found), None)


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
    """An estimate that is the same for everyone who asks."""
    parts = {name: body.get(name) for name in ("system", "messages", "tools")}
    return len(json.dumps(parts, ensure_ascii=False)) // CHARACTERS_PER_TOKEN


def _beyond_the_shape(body: Json, model: Json, script: Script) -> Iterator[str]:
    asked, most = body["max_tokens"], model.get("max_tokens", 64_000)
    if asked > most:
        what = "which is the maximum allowed number of output tokens for"
        yield f"max_tokens: {asked} > {most}, {what} {body['model']}"
    window, tokens = model.get("max_input_tokens", 200_000), prompt_tokens(body)
    if tokens > window:
        yield f"prompt is too long: {tokens} tokens > {window} maximum"
    if tokens + asked > window:
        yield (
            f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {window}, "
            "decrease input length or `max_tokens` and try again"
        )
    if script.signatures:
        yield from _signatures(body["messages"], script.scripted_signatures)
        if enforces(body, script):
            yield from unbound(body)


def enforces(body: Json, script: Script) -> bool:
    """Whether thinking behind what it was not made for is refused, not dropped or only noted."""
    binding = part(body, "thinking", "block_binding")
    if behavior := binding.get("prefix_mismatch_behavior"):
        return bool(script.binding) and behavior == "error"
    return script.binding is True


def overflow_of(body: Json, fault: Json) -> Rejection:
    """The 400 of an `overflow` fault: true figures of the request against a window made up."""
    asked = body["max_tokens"]
    if fault["overflow"] == "max_tokens":
        tokens = prompt_tokens(body)
        limit = tokens + max(1, asked // 2)
        return _invalid(
            f"input length and `max_tokens` exceed context limit: {tokens} + {asked} > {limit}, "
            "decrease input length or `max_tokens` and try again"
        )
    return _invalid("prompt is too long: 213462 tokens > 200000 maximum")


def _signatures(messages: list[Json], scripted: set[str]) -> Iterator[str]:
    for number, message in enumerate(messages):
        content: object = message["content"]
        blocks = cast("list[Json]", content) if isinstance(content, list) else []
        for index, block in enumerate(blocks):
            signed = {signature_of(str(block.get("thinking"))), *scripted}
            own = str(block.get("signature")).partition(".")[0]
            if block["type"] == "thinking" and own not in signed:
                at = f"messages.{number}.content.{index}"
                yield f"{at}: Invalid `signature` in `thinking` block"


def _invalid(text: str) -> Rejection:
    return Rejection(400, "invalid_request_error", text)

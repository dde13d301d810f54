"""The sizes that an overflow names: how long the request was, and how long it may be (O28, O33)."""

from __future__ import annotations

import re
from typing import Final, cast

from tui.core.errors import Overflow

_N = r"(\d[\d,]{0,15})"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_PATTERNS: Final = tuple(
    (_pattern(text), fields)
    for text, fields in (
        # Anthropic: input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000
        (rf"{_N} \+ {_N} > {_N}", ("input_tokens", "max_tokens", "limit")),
        # Anthropic: prompt is too long: 213462 tokens > 200000 maximum
        (rf"{_N} tokens > {_N} maximum", ("input_tokens", "limit")),
        # OpenRouter: This endpoint's maximum context length is 131072 tokens. However, you
        # requested about 140120 tokens (130120 of text input, 10000 in the output).
        (
            (
                rf"maximum context length is {_N} tokens.{{1,60}}? requested.{{1,60}}?"
                rf"\({_N} (?:of text input|in the messages), {_N} in the (?:output|completion)\)"
            ),
            ("limit", "input_tokens", "max_tokens"),
        ),
        (
            (
                rf"maximum context length is {_N} tokens.{{1,60}}? (?:resulted in|requested)"
                rf"(?: about)? {_N} tokens"
            ),
            ("limit", "input_tokens"),
        ),
        # xAI: This model's maximum prompt length is 131072 but the request contains 537812 tokens.
        (
            rf"maximum prompt length is {_N} but the request contains {_N}",
            ("limit", "input_tokens"),
        ),
        # Google: The input token count (1196265) exceeds the maximum number of tokens allowed
        # (1048575).
        (
            rf"input token count \({_N}\) exceeds the maximum.{{1,40}}\({_N}\)",
            ("input_tokens", "limit"),
        ),
        # Copilot: prompt token count of 130000 exceeds the limit of 128000
        (rf"token count of {_N} exceeds the limit of {_N}", ("input_tokens", "limit")),
        # Mistral: Prompt contains 150000 tokens …, too large for model with 131072 maximum
        # context length
        (rf"contains {_N} tokens.{{0,60}} model with {_N} maximum", ("input_tokens", "limit")),
        # Kimi: Your request exceeded model token limit: 262144 (requested: 300000)
        (rf"token limit: {_N} \(requested: {_N}\)", ("limit", "input_tokens")),
        # the limit alone
        (rf"(?:length is|limit(?: of)?:?|model with) {_N}\b", ("limit",)),
    )
)


def overflow(body: object, said: str) -> Overflow | None:
    """The sizes in an overflow's body or text; None where it names none."""
    if (named := _of_llama(body)) is not None:
        return named
    for pattern, fields in _PATTERNS:
        if found := pattern.search(said):
            sizes = (int(group.replace(",", "")) for group in found.groups())
            return Overflow(**dict(zip(fields, sizes, strict=True)))
    return None


def _of_llama(body: object) -> Overflow | None:
    """llama.cpp names them apart: {"error": {…, "n_prompt_tokens": 9000, "n_ctx": 4096}}."""
    inner = cast("dict[str, object]", body).get("error") if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return None
    source = cast("dict[str, object]", inner)
    tokens, limit = source.get("n_prompt_tokens"), source.get("n_ctx")
    if isinstance(tokens, int) and isinstance(limit, int):
        return Overflow(input_tokens=tokens, limit=limit)
    return None

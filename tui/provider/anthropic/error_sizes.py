"""The sizes that an error names: of the request, of the answer that it asks for, of its images."""

from __future__ import annotations

import re
from typing import Final

from tui.core.errors import AnswerLimit, LargeImages, Overflow
from tui.core.messages import list_of, object_of

_N = r"(\d[\d,]{0,15})"
_MAXIMUM = rf"maximum context length is {_N} tokens.{{1,60}}?"

_PATTERNS: Final = tuple(
    (re.compile(text, re.IGNORECASE), fields)
    for text, fields in (
        # Anthropic: input length and `max_tokens` exceed context limit: 188059 + 20000 > 200000
        (rf"{_N} \+ {_N} > {_N}", ("input_tokens", "max_tokens", "limit")),
        # Anthropic: prompt is too long: 213462 tokens > 200000 maximum
        (rf"{_N} tokens > {_N} maximum", ("input_tokens", "limit")),
        # OpenRouter: This endpoint's maximum context length is 131072 tokens. However, you
        # requested about 140120 tokens (130120 of text input, 10000 in the output).
        (
            (
                rf"{_MAXIMUM} requested.{{1,60}}?\({_N} (?:of text input|in the messages), "
                rf"{_N} in the (?:output|completion)\)"
            ),
            ("limit", "input_tokens", "max_tokens"),
        ),
        (
            rf"{_MAXIMUM} (?:resulted in|requested)(?: about)? {_N} tokens",
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
        # TGI: `inputs` tokens + `max_new_tokens` must be <= 1512. Given: 1000 `inputs` tokens and
        # 1024 `max_new_tokens`
        (
            rf"must be <= {_N}\. Given: {_N} `inputs` tokens and {_N}",
            ("limit", "input_tokens", "max_tokens"),
        ),
        # vLLM: 'max_tokens' or 'max_completion_tokens' is too large: 64000. This model's maximum
        # context length is 64001 tokens and your request has 24235 input tokens (64000 > …).
        (
            rf"too large: {_N}\. .{{1,40}}context length is {_N} tokens and your request has {_N}",
            ("max_tokens", "limit", "input_tokens"),
        ),
        # vLLM 0.20: … maximum context length is 128000 tokens. However, you requested 65535 output
        # tokens and your prompt contains at least 62466 input tokens
        (
            rf"{_MAXIMUM} requested {_N} output tokens and .{{1,40}}?{_N} input tokens",
            ("limit", "max_tokens", "input_tokens"),
        ),
        # vLLM: The prompt (total length 25938) is too long to fit into the model (context length
        # 4096).
        (rf"length {_N}\) is too long .{{1,40}}length {_N}\)", ("input_tokens", "limit")),
        # SGLang: The input (9000 tokens) is longer than the model's context length (8192 tokens).
        (rf"\({_N} tokens\) is longer than .{{1,40}}\({_N} tokens\)", ("input_tokens", "limit")),
        # Cerebras: Current length is 9000 while limit is 8192
        (rf"current length is {_N} while limit is {_N}", ("input_tokens", "limit")),
        # llama-cpp-python: Requested tokens (516) exceed context window of 512
        (rf"requested tokens \({_N}\) exceed context window of {_N}", ("input_tokens", "limit")),
        # llama.cpp: request (9000 tokens) exceeds the available context size (4096 tokens)
        (
            rf"\({_N} tokens\) exceeds the available .{{1,30}}\({_N} tokens\)",
            ("input_tokens", "limit"),
        ),
        # the limit alone
        (rf"(?:length is|limit(?: of)?:?|model with) {_N}\b", ("limit",)),
    )
)


_LENGTH = r"\bmax(?:imum)?_?(?:completion_|output_?|new_)?tokens\b"

AFFORDED: Final = r"can only afford (\d[\d,]{3,15})"
"""OpenRouter's words for the longest answer that the account can pay, from a thousand tokens on."""

_LIMITS: Final = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        # Anthropic: max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens
        rf"\d > {_N}, which is the maximum",
        # Bedrock: The maximum tokens you requested exceeds the model limit of 4096. Try again with
        # a maximum tokens value that is lower than 4096.
        rf"tokens you requested exceeds? the (?:model )?limit of {_N}",
        rf"maximum tokens value (?:that is )?lower than {_N}",
        # OpenAI: max_tokens is too large: 32000. This model supports at most 16384 completion
        # tokens
        rf"supports? at most {_N} (?:completion|output) tokens",
        # DeepSeek: Invalid max_tokens value, the valid range of max_tokens is [1, 8192]
        # DashScope: Range of max_tokens should be [1, 8192]
        # GLM: max_tokens参数非法：限制数值范围[1,131072]
        rf"{_LENGTH[:-2]}.{{0,40}}\[\d+, ?{_N}\]",
        # PPIO: max_tokens (current value: 4096) must be between 0 and 4000
        rf"{_LENGTH}.{{0,40}} between \d+ and {_N}",
        # Google: … a maxOutputTokens value of 65536 but the supported range is from 1 (inclusive)
        # to 65536 (exclusive).
        rf"{_LENGTH} value of .{{0,60}}\(inclusive\) to {_N} \((?P<below>exclusive)?",
        # Groq: `max_tokens` must be less than or equal to `16384`, …
        # Volcengine: The parameter `max_tokens` … expected a value <= 4096, but got 8192 instead.
        (
            rf"{_LENGTH}.{{0,120}}?(?:less than or equal to|no more than|not exceed|at most|<=|≤)"
            rf" ?`?{_N}"
        ),
        # max_tokens (98304) exceeds model's maximum output tokens (65536)
        rf"exceeds (?:the )?model'?s? maximum output tokens \({_N}\)",
        # does not support max tokens > 8192
        rf"not support max tokens > {_N}",
    )
)
"""The texts in which servers say how long an answer they write at most."""

ANSWER_LIMITS: Final = re.compile("|".join(one.pattern for one in _LIMITS), re.IGNORECASE)
"""Any of these texts."""

_AFFORDED: Final = re.compile(AFFORDED, re.IGNORECASE)

_LEAST_LIMIT: Final = 256
"""A smaller number is none that a server means."""


def answer_limit(text: str) -> AnswerLimit:
    """The longest answer that a text allows."""
    for pattern in (*_LIMITS, _AFFORDED):
        if match := pattern.search(text):
            tokens = int(match[1].replace(",", "")) - bool(match.groupdict().get("below"))
            return AnswerLimit(tokens if tokens >= _LEAST_LIMIT else None)
    return AnswerLimit()


_IMAGE = re.compile(r"^(messages\.\d+\.content\.\d+(?:\.content\.\d+)?)\b")
_SIDE = re.compile(
    r"image dimensions exceed max allowed size[^:]*: (\d{2,5}) pixels", re.IGNORECASE
)


def large_images(body: object, text: str) -> LargeImages | None:
    """The images that are too large, where an error names them: as data, or one in its text."""
    outer = object_of(body)
    details = object_of(object_of(outer.get("error", outer)).get("details"))
    longest, paths = details.get("max_side_length_pixels"), list_of(details.get("paths"))
    named = tuple(path for path in paths if isinstance(path, str))
    if isinstance(longest, int) and longest > 0 and named:
        return LargeImages(named, longest)
    place, side = _IMAGE.match(text), _SIDE.search(text)
    return LargeImages((place[1],), int(side[1])) if place and side else None


def overflow_sizes(body: object, text: str) -> Overflow | None:
    """The sizes in an overflow's body or text; None if it names none."""
    if (named := _of_llama(body)) is not None:
        return named
    for pattern, fields in _PATTERNS:
        if match := pattern.search(text):
            sizes = (int(group.replace(",", "")) for group in match.groups())
            return Overflow(**dict(zip(fields, sizes, strict=True)))
    return None


def _of_llama(body: object) -> Overflow | None:
    """Read the sizes in the form of llama.cpp.

    {"error": {…, "n_prompt_tokens": 9000, "n_ctx": 4096}}
    """
    inner = object_of(object_of(body).get("error"))
    tokens, limit = inner.get("n_prompt_tokens"), inner.get("n_ctx")
    if isinstance(tokens, int) and isinstance(limit, int):
        return Overflow(input_tokens=tokens, limit=limit)
    return None

"""The content of an error's body, in the shapes that servers and the proxies before them use.

Type, code and text of any error, the title of a web page, and the sizes of an overflow: how long
the request was, and how long it may be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from tui.core import redaction
from tui.core.errors import Overflow

_LONGEST: Final = 8000
_PAGE = re.compile(
    r"\s*(?:<!--.*?-->\s*)*+<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_TITLE = re.compile(r"<title[^<>]*>([^<]*)</title", re.IGNORECASE)


class ErrorText(NamedTuple):
    """An error's own words, "" if it has none. `text` is one line without secrets."""

    type: str
    code: str
    text: str


def read(body: object) -> ErrorText:
    """Read the type, code and text of an error's body.

    Known are the API's own `{"error": {"type", "message", "details"}}`, and `{"error": "…"}`,
    `{"message": "…"}`, `{"detail": "…" | [{"msg"}]}`; a plain text is its own text, a web page has
    none.
    """
    if isinstance(body, str):
        return ErrorText("", "", "" if _PAGE.match(body) else plain(body))
    if isinstance(body, list):
        return read(_first(cast("list[object]", body)))
    inner = _get(body, "error")
    if isinstance(inner, str):
        return ErrorText("", "", plain(inner))
    source = body if inner is None else inner
    code = field(_get(source, "details"), "error_code") or field(source, "code") or ""
    text = field(source, "message") or field(body, "message") or field(body, "detail")
    if text is None and isinstance(listed := _get(body, "detail"), list):
        text = field(_first(cast("list[object]", listed)), "msg")
    return ErrorText(field(source, "type") or "", code, plain(text or ""))


def page_title(body: object, headers: Mapping[str, str]) -> str | None:
    """The title of a web page, "" for one without; None for anything else."""
    if not isinstance(body, str):
        return None
    if "html" not in headers.get("content-type", "") and not _PAGE.match(body):
        return None
    title = _TITLE.search(body[:20_000])
    return shortened(plain(title[1]), 80) if title else ""


def is_error(body: object) -> bool:
    return _get(body, "error") is not None


def field(value: object, key: str) -> str | None:
    """A string of a JSON object; None if either is something else."""
    member = _get(value, key)
    return member if isinstance(member, str) else None


def plain(text: str) -> str:
    """Put a text on one line without control characters or keys; at most its first 8,000
    characters."""
    visible = "".join(c if c.isprintable() else " " for c in text[:_LONGEST])
    return redaction.mask(" ".join(visible.split()))[0]


def shortened(line: str, longest: int) -> str:
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _get(value: object, key: str) -> object:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _first(values: list[object]) -> object:
    return values[0] if values else None


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
        # the limit alone
        (rf"(?:length is|limit(?: of)?:?|model with) {_N}\b", ("limit",)),
    )
)


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
    inner = _get(body, "error")
    tokens, limit = _get(inner, "n_prompt_tokens"), _get(inner, "n_ctx")
    if isinstance(tokens, int) and isinstance(limit, int):
        return Overflow(input_tokens=tokens, limit=limit)
    return None

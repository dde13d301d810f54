"""What the body of an error says, in the shapes that servers and the proxies before them use."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from tui.core import redaction

_LONGEST: Final = 8000
_PAGE = re.compile(
    r"\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title", re.IGNORECASE | re.DOTALL)


class Said(NamedTuple):
    """An error's own words, "" where it has none. `text` is one line without secrets."""

    type: str
    code: str
    text: str


def read(body: object) -> Said:
    """The type, code and text of an error's body.

    The API's own `{"error": {"type", "message", "details"}}`, and `{"error": "…"}`,
    `{"message": "…"}`, `{"detail": "…" | [{"msg"}]}`; a plain text is its own text, a web page
    has none.
    """
    if isinstance(body, str):
        return Said("", "", "" if _PAGE.match(body) else plain(body))
    if isinstance(body, list):
        return read(_first(cast("list[object]", body)))
    inner = _get(body, "error")
    if isinstance(inner, str):
        return Said("", "", plain(inner))
    source = body if inner is None else inner
    code = field(_get(source, "details"), "error_code") or field(source, "code") or ""
    text = field(source, "message") or field(body, "message") or field(body, "detail")
    if text is None and isinstance(listed := _get(body, "detail"), list):
        text = field(_first(cast("list[object]", listed)), "msg")
    return Said(field(source, "type") or "", code, plain(text or ""))


def page_title(body: object, headers: Mapping[str, str]) -> str | None:
    """The title of a web page, "" for one without; None for what is no web page."""
    if not isinstance(body, str):
        return None
    if "html" not in headers.get("content-type", "") and not _PAGE.match(body):
        return None
    title = _TITLE.search(body[:20_000])
    return shortened(plain(title[1]), 80) if title else ""


def is_error(body: object) -> bool:
    return _get(body, "error") is not None


def field(value: object, key: str) -> str | None:
    """A string of a JSON object; None where either is something else."""
    found = _get(value, key)
    return found if isinstance(found, str) else None


def plain(text: str) -> str:
    """One line without control characters or keys; of a long text the first 8,000 characters."""
    visible = "".join(c if c.isprintable() else " " for c in text[:_LONGEST])
    return redaction.mask(" ".join(visible.split()))[0]


def shortened(line: str, longest: int) -> str:
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _get(value: object, key: str) -> object:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _first(values: list[object]) -> object:
    return values[0] if values else None

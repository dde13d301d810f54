"""The content of an error's body, in the shapes that servers and the proxies before them use.

Type, code, status and text of any error, and the title of a web page. The sizes that an error names
are read in `tui.provider.anthropic.error_sizes`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

from tui.core import redaction
from tui.core.formatting import shortened
from tui.core.late_pattern import late_pattern
from tui.core.messages import list_of

_LONGEST: Final = 8000
_PAGE = late_pattern(
    r"\s*(?:<!--.*?-->\s*)*+<(!doctype html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_TITLE = late_pattern(r"<title[^<>]*>([^<]*)</title", re.IGNORECASE)


class ErrorText(NamedTuple):
    """An error's own words, "" if it has none. `text` is one line without secrets. `status` is the
    HTTP status that the body names, by number or by name; 0 if it names none."""

    type: str
    code: str
    text: str
    status: int = 0


_STATUS_OF: Final[Mapping[str, int]] = {
    name: status
    for status, names in {
        # Google's: INVALID_ARGUMENT; AWS': ValidationException; Volcengine's: InvalidParameter
        400: "invalidargument failedprecondition validationexception invalidparameter badrequest",
        401: "unauthenticated invalidapikey",
        402: "paymentrequired insufficientquota",
        403: "permissiondenied accessdeniedexception expiredtokenexception"
        " unrecognizedclientexception",
        404: "notfound modelnotfound resourcenotfoundexception",
        # OpenAI's: rate_limit_exceeded; AWS': ThrottlingException; Google's: RESOURCE_EXHAUSTED
        429: "ratelimitexceeded resourceexhausted throttlingexception toomanyrequests ratelimit",
        # OpenAI's: server_error; AWS': InternalServerException; Google's: INTERNAL
        500: "internal internalerror internalservererror internalserverexception servererror",
        # OmniRoute's: stream_error, stream_terminated; OpenRouter's: provider_unavailable
        # AWS': ModelStreamErrorException, in the midst of an answer
        502: "badgateway upstreamerror streamerror streamterminated modelstreamerrorexception",
        503: "unavailable serviceunavailable serviceunavailableexception providerunavailable",
        504: "timeout gatewaytimeout deadlineexceeded modeltimeoutexception",
        529: "overloaded modeloverloaded provideroverloaded",
    }.items()
    for name in names.split()
}
"""The status that an error's type or code stands for where a server gives it by name; names are in
lower case, without anything between words."""

_TEXTS: Final = ("message", "detail", "msg", "status_msg", "error_description")
_DEEPEST: Final = 4
_VAGUE: Final = frozenset({"", "Provider returned error", "Param Incorrect"})
"""Messages that say nothing: the reason is in another field."""


def read(body: object, depth: int = 0) -> ErrorText:
    """Read the type, code, status and text of an error's body.

    Known are the API's own `{"error": {"type", "message", "details"}}`, and `{"error": "…"}`,
    `{"message": "…"}`, `{"detail": "…" | [{"loc", "msg"}]}`; a plain text is its own text, a web
    page has none. Gateways hand on the body of another server as a text within their own: then the
    innermost counts.
    """
    if isinstance(body, str):
        if _PAGE.match(body):
            return ErrorText("", "", "")
        return _innermost(ErrorText("", "", plain(body)), body, depth)
    if isinstance(body, list):
        return read(_first(cast("list[object]", body)), depth)
    inner = _get(body, "error")
    if isinstance(inner, str):
        source, own = body, inner
    else:
        source = body if inner is None else inner
        own = _own_text(source) or _own_text(body)
    meta = _get(source, "metadata")
    if own in _VAGUE:
        own = field(meta, "raw") or field(source, "param") or own
    code = field(_get(source, "details"), "error_code") or _name(_get(source, "code"))
    kind = _name(_get(source, "type"))
    named = (code, field(meta, "error_type"), field(source, "status"), kind, field(body, "code"))
    statuses = [*map(_status, _numbers(source, body))]
    statuses += [_STATUS_OF.get(_bare(name), 0) for name in named if name]
    status = next((one for one in statuses if one), 0)
    return _innermost(ErrorText(kind, code, plain(own), status), own, depth)


def _own_text(source: object) -> str:
    """The words of one object: its message, or where what is wrong was found."""
    for name in _TEXTS:
        if text := field(source, name):
            return text
    if reply := _get(source, "base_resp"):  # MiniMax's
        return _own_text(reply)
    for name in ("detail", "errors"):
        if isinstance(listed := _get(source, name), list):
            one = _first(cast("list[object]", listed))
            where = [str(part) for part in list_of(_get(one, "loc")) if part != "body"]
            return ": ".join(filter(None, (".".join(where), field(one, "msg") or "")))
    return ""


def _innermost(outer: ErrorText, text: str, depth: int) -> ErrorText:
    """The error of another server that is quoted in a text; `outer` where there is none."""
    quoted = _quoted(text) if depth < _DEEPEST else None
    if quoted is None:
        return outer
    inner = read(quoted, depth + 1)
    if not inner.text:
        return outer
    return ErrorText(
        inner.type or outer.type, inner.code or outer.code, inner.text, inner.status or outer.status
    )


def _quoted(text: str) -> object:
    """The first JSON object in a text, if it is an error; None for anything else."""
    start = text.find("{", 0, _LONGEST)
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(text[: start + _LONGEST], start)
    except (ValueError, RecursionError):
        return None
    return value if is_error(value) or _own_text(value) else None


def _numbers(source: object, body: object) -> Iterator[object]:
    for place in (source, body):
        yield from (_get(place, name) for name in ("code", "status", "status_code"))


def _status(value: object) -> int:
    """An HTTP status of an error that is given as a number or as one in a text; otherwise 0."""
    number = value
    if isinstance(value, str) and re.fullmatch(r"[45]\d\d", value, re.ASCII):
        number = int(value)
    if isinstance(number, int) and not isinstance(number, bool) and 400 <= number <= 599:
        return number
    return 0


def _name(value: object) -> str:
    """A type or a code as a name; "" for a number and for what stands for nothing."""
    if not isinstance(value, str) or value in {"None", "<nil>", "null"} or _status(value):
        return ""
    return value


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def page_title(body: object, headers: Mapping[str, str]) -> str | None:
    """The title of a web page, "" for one without; None for anything else."""
    if not isinstance(body, str):
        return None
    if "html" not in headers.get("content-type", "") and not _PAGE.match(body):
        return None
    title = _TITLE.search(body[:20_000])
    return shortened(plain(title[1]), 80) if title else ""


def is_error(body: object) -> bool:
    """True for a body that says itself that it is an error, whatever its HTTP status."""
    if _get(body, "error") is not None or _get(body, "type") == "error":
        return True
    # A number above 599 is no status, but no success either: MiniMax's 1039.
    number = _get(_get(body, "base_resp"), "status_code")
    failed = isinstance(number, int) and number >= 400
    return failed or (any(map(_status, _numbers(body, body))) and bool(_own_text(body)))


def field(value: object, key: str) -> str | None:
    """A string of a JSON object; None if either is something else."""
    member = _get(value, key)
    return member if isinstance(member, str) else None


def plain(text: str) -> str:
    """Put a text on one line without control characters or keys; at most its first 8,000
    characters."""
    visible = "".join(c if c.isprintable() else " " for c in text[:_LONGEST])
    return redaction.mask(" ".join(visible.split()))[0]


def _get(value: object, key: str) -> object:
    return cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None


def _first(values: list[object]) -> object:
    return values[0] if values else None

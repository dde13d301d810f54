"""Every failure of a request → one ProviderError. Nothing above this module looks at text.

An answer with an error (an HTTP status, or an `error` event in a stream, whose status is 200) is
looked up in `error_rules`, first match wins. Failures without an answer (no connection, a torn
stream, silence) are distinguished by exception.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

from tui.core.dataclass import dataclass
from tui.core.errors import ProviderError
from tui.provider.anthropic import error_bodies
from tui.provider.anthropic.client_factory import SIGN_IN_HINT, sign_in_failed

if TYPE_CHECKING:
    from tui.core.clouds import CloudAccess
    from tui.provider.anthropic.error_rule import ErrorRule

RETRYABLE_STATUS: Final = frozenset({408, 409, 424, 429, 500, 502, 503, 504, 529})
"""Statuses after which the same request may succeed; so may those of CDNs, 520 to 524."""

_TRANSIENT: Final = frozenset({"rate_limit", "overloaded", "server", "timeout"})
"""Classes after which the same request may succeed, where there is no status to tell."""
_LONGEST_MESSAGE: Final = 500
_REQUEST_IDS: Final = ("request-id", "x-amzn-requestid", "apim-request-id")
"""The headers that name a request: the API's own first, then those of AWS and Azure."""

STREAM_HINT: Final = "Send the prompt again."
WAIT_HINT: Final = (
    "Send the prompt again; first_byte_timeout_s and stall_timeout_s under [retry] in config.toml "
    "say how long to wait."
)
URL_HINT: Final = "Check base_url in config.toml or ANTHROPIC_BASE_URL."


@dataclass(frozen=True, slots=True)
class RequestAttempt:
    """The request that failed. `began`: part of the answer had come. `cloud` is what was asked in
    the place of Anthropic."""

    url: str
    model: str
    now: datetime
    began: bool = False
    cloud: CloudAccess | None = None


def classify(error: BaseException, at: RequestAttempt) -> ProviderError:
    """Turn an exception of the SDK, its HTTP layer or the parsing of an answer into a
    ProviderError."""
    import anthropic  # noqa: PLC0415 (loaded by now, and never at start-up)
    import httpx2  # noqa: PLC0415
    from anthropic.lib.credentials import WorkloadIdentityError  # noqa: PLC0415

    chain = list(_causes(error))
    if isinstance(error, anthropic.APIStatusError):
        headers = cast("Mapping[str, str]", error.response.headers)
        return from_answer(error.status_code, headers, error.body, at)
    if at.cloud is not None and (unsigned := _not_signed(chain, at.cloud)):
        return unsigned
    if any(isinstance(e, (TimeoutError, httpx2.TimeoutException)) for e in chain):
        connecting = any(isinstance(e, httpx2.ConnectTimeout) for e in chain)
        what = "No connection to" if connecting else "No answer from"
        return ProviderError("timeout", f"{what} {at.url} in time.", hint=WAIT_HINT, retryable=True)
    if any(isinstance(e, ssl.SSLCertVerificationError) for e in chain):
        return ProviderError(
            "network",
            f"Couldn't verify the certificate of {at.url}.",
            hint="If a proxy inspects TLS, set SSL_CERT_FILE to its certificate.",
        )
    unreachable = any(isinstance(e, httpx2.HTTPError) for e in chain)
    if isinstance(error, (anthropic.CredentialsError, WorkloadIdentityError)) and not unreachable:
        return ProviderError("auth", sign_in_failed(error), hint=SIGN_IN_HINT)
    # Anything else is no failure of the connection: the bytes that came make no sense.
    if not (unreachable or isinstance(error, (anthropic.APIConnectionError, OSError))):
        why = "the server sent something that is not an event of the Messages API"
        return stream_error(why, unreadable=True)
    if at.began:
        return stream_error("the connection was lost")
    return ProviderError(
        "network",
        f"Can't reach {at.url}{_reason(chain, at)}.",
        hint="Check the connection, and that the server is running at this address.",
        retryable=True,
    )


def _not_signed(chain: list[BaseException], cloud: CloudAccess) -> ProviderError | None:
    """The error of a request that a cloud's own library could not sign."""
    from tui.provider.anthropic import cloud_clients  # noqa: PLC0415 - loaded by now

    why = next(filter(None, map(cloud_clients.unsigned, chain)), None)
    if why is None:
        return None
    message = cloud_clients.no_sign_in(cloud.cloud, why)
    return ProviderError("auth", message, hint=cloud_clients.sign_in_hint(cloud))


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """The id that a server, or the cloud before it, gave a request, for those who run it."""
    return next(filter(None, map(headers.get, _REQUEST_IDS)), None)


def not_json(value: object) -> ProviderError | None:
    """The error of a request that cannot be written as JSON. Costs as much as writing it."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        return ProviderError(
            "invalid_request",
            "The request can't be written as JSON.",
            hint="Repair the session with /repair.",
        )
    return None


def stream_error(why: str, *, unreadable: bool = False) -> ProviderError:
    """The error of a stream that did not reach its end, or whose bytes make no sense."""
    return ProviderError(
        "stream_broken",
        f"The answer was cut off: {why}.",
        hint=STREAM_HINT,
        retryable=True,
        unreadable=unreadable,
    )


def from_answer(
    status: int, headers: Mapping[str, str], body: object, at: RequestAttempt
) -> ProviderError:
    """Turn an error that the server named into a ProviderError, by status, type, code and text."""
    # Most prompts meet no error: its tables are loaded by the first one.
    from tui.provider.anthropic import error_sizes  # noqa: PLC0415
    from tui.provider.anthropic.error_rules import rule_for  # noqa: PLC0415

    kind, code, text, named = error_bodies.read(body)
    kind = kind or headers.get("x-amzn-errortype", "").partition(":")[0]
    if status == HTTPStatus.OK:  # an error within an answer: its own number counts
        status = named or status
    page = error_bodies.page_title(body, headers)
    rule = rule_for(status, kind, code, text, cloud=at.cloud is not None)
    again = status in RETRYABLE_STATUS or 520 <= status <= 524
    if status == HTTPStatus.OK:
        again = rule.error_class in _TRANSIENT
    message, hint = _phrase(rule, status, text, at)
    # A web page does not come from the API, so its text says nothing about the request.
    if page is not None:
        message, hint = _of_page(status, page, rule, at)
    elif 300 <= status <= 399:
        target = headers.get("location", "elsewhere")
        message, hint = f"{at.url} redirects to {target}.", URL_HINT
    return ProviderError(
        rule.error_class,
        message,
        hint=hint,
        status=status,
        request_id=request_id_of(headers) or error_bodies.field(body, "request_id"),
        retry_after=retry_after(headers, at.now),
        retryable=again and not rule.final and headers.get("x-should-retry") != "false",
        overflow=error_sizes.overflow_sizes(body, text)
        if rule.error_class == "context_overflow"
        else None,
        thinking_refused=rule.thinking,
        answer=error_sizes.answer_limit(text) if rule.answer else None,
        images=error_sizes.large_images(body, text),
    )


def not_the_api(headers: Mapping[str, str], body: bytes, at: RequestAttempt) -> ProviderError:
    """The error for a success that is not a stream of events: mostly a web page, or some JSON."""
    text = body.decode("utf-8", "replace")
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if error_bodies.is_error(value):
        return from_answer(HTTPStatus.OK, headers, value, at)
    page = error_bodies.page_title(value, headers)
    what = _a_page(page) if page is not None else headers.get("content-type") or "something else"
    return ProviderError(
        "not_found",
        f"{at.url} answered with {what}, not with the Messages API.",
        hint=URL_HINT,
        status=HTTPStatus.OK,
    )


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds until the server wants to be asked again: retry-after-ms, seconds or HTTP date.

    A date is measured from the server's own `date`, if it sends one: clocks differ.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    if (seconds := _number(value)) is not None or value is None:
        return seconds
    if (moment := _date(value)) is None:
        return None
    return max(0.0, (moment - (_date(headers.get("date")) or now)).total_seconds())


def _date(value: str | None) -> datetime | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - a dozen modules, seldom needed

    try:
        moment = parsedate_to_datetime(value) if value else None
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment


def _number(value: str | None) -> float | None:
    if value is None or not re.fullmatch(r"\s*\d{1,15}(\.\d{1,15})?\s*", value):
        return None
    return float(value)


def _phrase(rule: ErrorRule, status: int, text: str, at: RequestAttempt) -> tuple[str, str]:
    places = {"url": at.url, "model": at.model, "sign_in": "", "id": at.model}
    if at.cloud is not None:
        from tui.provider.anthropic import cloud_clients  # noqa: PLC0415 - loaded by now

        sign_in = cloud_clients.sign_in_hint(at.cloud)
        places |= {"sign_in": sign_in, "id": at.cloud.id_of(at.model)}
    number = f" ({status})" if status != HTTPStatus.OK else ""
    text = error_bodies.shortened(text, _LONGEST_MESSAGE)
    message = f"{rule.headline.format(**places)}{number}{': ' if text else ''}{text}"
    end = "" if message.endswith((".", "!", "?", "…")) else "."
    return message + end, rule.hint.format(**places)


def _of_page(status: int, page: str, rule: ErrorRule, at: RequestAttempt) -> tuple[str, str]:
    message = f"{at.url} answered with {_a_page(page)} ({status}), not with the Messages API."
    if rule.error_class in {"server", "overloaded", "timeout", "rate_limit"}:
        return message, "A proxy may be in the way; try again in a moment."
    return message, f"{URL_HINT} A proxy may be in the way."


def _a_page(title: str) -> str:
    return f"a web page “{title}”" if title else "a web page"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and its causes, groups opened; each once."""
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        current = waiting.pop(0)
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", current)
            waiting.extend(group.exceptions)
        # The HTTP layer passes on the exception it caught as an argument.
        args = cast("tuple[object, ...]", current.args)
        waiting.extend(arg for arg in args if isinstance(arg, BaseException))
        before = current.__context__ if not current.__suppress_context__ else None
        waiting.extend(e for e in (current.__cause__, before) if e is not None)


def _reason(chain: list[BaseException], at: RequestAttempt) -> str:
    """The reason why there is no connection, as ": …", or "" if none is known.

    The HTTP layer's own errors are matched by name: they must not be imported for this.
    """
    for error in reversed(chain):
        if isinstance(error, socket.gaierror):
            return ": unknown host name"
        if isinstance(error, ssl.SSLError):
            return ": the server doesn't speak TLS"
        if type(error).__name__ == "EndOfStream" and at.url.startswith("https:"):
            return ": the server closed the connection; maybe it doesn't speak TLS"
        if type(error).__name__ == "ProxyError":
            return (
                f": the proxy said “{error_bodies.shortened(error_bodies.plain(str(error)), 80)}”"
            )
        if isinstance(error, OSError) and error.errno:
            return f": {os.strerror(error.errno).lower()}"
    return ""

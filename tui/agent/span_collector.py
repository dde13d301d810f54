"""Sends spans to the person's own collector, by OTLP over HTTP. Blocks; for a thread.

What `[otel]` leaves open is in the environment's `OTEL_…` variables, under their standard names:
they count only where the person's own file has switched the sending on.
"""

from __future__ import annotations

import gzip
import http.client
import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

import tui
from tui.context.spans import AGENT, CONVENTIONS
from tui.core.clock import Clock, SystemClock
from tui.core.config import OtelSettings
from tui.core.dataclass import dataclass, field
from tui.core.errors import HoldfastError
from tui.core.late_pattern import late_pattern
from tui.core.otlp import (
    AttributeValue,
    Span,
    SpanSource,
    answer_in,
    refusal_in,
    text_size,
    to_json,
    to_protobuf,
)
from tui.core.redaction import child_environment, mask
from tui.core.text_cleaning import one_line

PORT: Final = "http://localhost:4318"
"""Where a collector listens by the protocol's own rule."""
MOST: Final = 512
"""Most spans of one request."""
MOST_TEXT: Final = 1 << 20
"""Characters after which a request has no further span: collectors close the connection on what is
too long for them, which looks as if they were gone."""
TIMEOUT_S: Final = 10.0
"""Seconds for a request, by the protocol's own rule."""

_PATH: Final = "/v1/traces"
_TYPES: Final = {"http/json": "application/json", "http/protobuf": "application/x-protobuf"}
_AGAIN: Final = frozenset({429, 502, 503, 504})
"""The statuses after which the same may be sent again; after all others it must not."""
_LONGEST_WAIT_S: Final = 300.0
_COMMAND_S: Final = 10.0
_ANSWER_BYTES: Final = 64 * 1024
_WORDS: Final = 200
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADER: Final = late_pattern(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*:\s*([\x21-\x7e][\x20-\x7e]*)")


class CollectorError(HoldfastError):
    """The settings of the collector can't be used."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The outcome for spans: the collector has them, up to `rejected`; it refused them; or they can
    be sent later, not before `wait_s` seconds. `why` is for the person."""

    outcome: Literal["taken", "refused", "later"]
    rejected: int = 0
    why: str = ""
    wait_s: float = 0.0


@dataclass(slots=True)
class Collector:
    """A collector. `url` is the whole address; `command` prints further headers. What may be secret
    is in no repr."""

    url: str
    protocol: Literal["http/protobuf", "http/json"]
    source: SpanSource
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    command: str = ""
    timeout_s: float = TIMEOUT_S
    compressed: bool = False
    content: bool = False
    """True if it gets texts, too."""
    clock: Clock = field(default_factory=SystemClock)
    _printed: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """Its host and port, for the person."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def identity(self, key: bytes) -> str:
        """Return what names this collector, and what it may have, in a record. It tells nothing of
        the headers to whoever lacks the installation's `key`."""
        parts = (self.url, sorted(self.headers.items()), self.command, self.content)
        return blake2b(json.dumps(parts).encode(), key=key, digest_size=8).hexdigest()

    def deliver(self, spans: Sequence[Span], *, within_s: float = TIMEOUT_S) -> Delivery:
        """Send spans. Never raises. A token that is refused is asked for once more."""
        request = to_json(spans, self.source)
        as_json = self.protocol == "http/json"
        body = json.dumps(request).encode() if as_json else to_protobuf(request)
        timeout = min(self.timeout_s, within_s)
        known = self._printed is not None
        status, delivery = self._sent(body, timeout)
        if status == http.client.UNAUTHORIZED and self.command and known:
            self._printed = None
            _, delivery = self._sent(body, timeout)
        return delivery

    def _sent(self, body: bytes, timeout: float) -> tuple[int, Delivery]:
        """Send a body once. Returns the status of the answer, 0 without one."""
        try:
            headers = self._all_headers()
        except CollectorError as error:
            return 0, Delivery("later", why=error.message)
        headers["content-type"] = _TYPES[self.protocol]
        headers["user-agent"] = f"OTel-OTLP-Exporter-Holdfast/{tui.__version__}"
        if self.compressed:
            headers["content-encoding"], body = "gzip", gzip.compress(body)
        local = urlsplit(self.url).hostname in _LOCAL
        handlers = [_Stay(), ProxyHandler({})] if local else [_Stay()]
        try:
            asked = Request(self.url, body, headers, method="POST")  # noqa: S310 - http(s) only
            with build_opener(*handlers).open(asked, timeout=timeout) as answer:
                return int(answer.status), self._taken(answer.read(_ANSWER_BYTES), answer.headers)
        except HTTPError as error:
            with error, suppress(OSError, http.client.HTTPException):
                return error.code, self._refused(
                    error.code, error.read(_ANSWER_BYTES), error.headers
                )
            return error.code, self._refused(error.code, b"", error.headers)
        except URLError as error:
            return 0, Delivery("later", why=_words_of(error.reason))
        except (OSError, ValueError, http.client.HTTPException) as error:
            return 0, Delivery("later", why=_words_of(error))

    def _taken(self, body: bytes, headers: Any) -> Delivery:
        rejected, why = answer_in(body, json=_json_of(body, headers))
        return Delivery("taken", rejected, _shown(why))

    def _refused(self, status: int, body: bytes, headers: Any) -> Delivery:
        if status == http.client.UNSUPPORTED_MEDIA_TYPE:
            message = f"it doesn't take {self.protocol}"
        else:
            message = _shown(_plain_text(body) or refusal_in(body, json=_json_of(body, headers)))
        why = f"it answers {status}" + (f": {message}" if message else "")
        if status in _AGAIN:
            return Delivery("later", why=why, wait_s=self._wait(headers.get("retry-after")))
        return Delivery("refused", why=why)

    def _wait(self, value: str | None) -> float:
        """Read how long the collector wants to be left alone, in seconds or until a date."""
        text = (value or "").strip()
        if text.isascii() and text.isdecimal():
            return min(float(text[:9]), _LONGEST_WAIT_S)
        with suppress(ValueError, TypeError, OverflowError):
            seconds = (parsedate_to_datetime(text) - self.clock.now()).total_seconds()
            return min(max(0.0, seconds), _LONGEST_WAIT_S)
        return 0.0

    def _all_headers(self) -> dict[str, str]:
        if self._printed is None:
            self._printed = dict(_printed_headers(self.command)) if self.command else {}
        return {**self.headers, **self._printed}


class _Stay(HTTPRedirectHandler):
    """A redirect would carry the headers to whatever place it names."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def batches(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Yield spans by requests."""
    batch: list[Span] = []
    size = 0
    for span in spans:
        batch.append(span)
        size += text_size(span)
        if len(batch) == MOST or size >= MOST_TEXT:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def collector_of(settings: OtelSettings, env: Mapping[str, str]) -> Collector:
    """Return the collector that the person named. Raises CollectorError."""
    own = f"{settings.endpoint.rstrip('/')}" if settings.endpoint else ""
    named = _either(env, "OTEL_EXPORTER_OTLP_ENDPOINT")
    url = own or env.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "").strip()
    if not url or own:
        base = own or named.rstrip("/") or PORT
        url = base if base.endswith(_PATH) else base + _PATH
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and (parts.port or 1)
    except ValueError:
        parts, good = urlsplit(""), False
    if not good:
        raise CollectorError(
            f"{_shown(url)} isn't the address of a collector.",
            hint="Set [otel] endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT, to an http(s) address.",
        )
    if "@" in parts.netloc:
        raise CollectorError(
            "The collector's address holds a password.",
            hint="Let [otel] headers_command print an Authorization header instead.",
        )
    protocol = settings.protocol or _either(env, "OTEL_EXPORTER_OTLP_PROTOCOL") or "http/protobuf"
    if protocol not in _TYPES:
        raise CollectorError(
            f"{_shown(protocol)} isn't a protocol that Holdfast speaks.",
            hint='Set [otel] protocol to "http/protobuf" or "http/json"; port 4317 is for grpc.',
        )
    if own and named and _server(named) != _server(url):
        given = ""  # a token for another collector
    else:
        given = _either(env, "OTEL_EXPORTER_OTLP_HEADERS")
    milliseconds = _either(env, "OTEL_EXPORTER_OTLP_TIMEOUT")
    timeout = int(milliseconds) / 1000 if milliseconds.isdecimal() else 0.0
    return Collector(
        url,
        "http/json" if protocol == "http/json" else "http/protobuf",
        source_of(settings, env),
        dict(_pairs(given)),
        settings.headers_command,
        timeout or TIMEOUT_S,
        _either(env, "OTEL_EXPORTER_OTLP_COMPRESSION") == "gzip",
        settings.content,
    )


def _server(url: str) -> str:
    """Return the scheme, host and port of an address; "" for what is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return f"{parts.scheme}://{parts.netloc}".lower()


def source_of(settings: OtelSettings, env: Mapping[str, str]) -> SpanSource:
    """Return the attributes that describe this program in what it sends."""
    given = {**dict(_pairs(env.get("OTEL_RESOURCE_ATTRIBUTES", ""))), **settings.attributes}
    name = settings.service_name or env.get("OTEL_SERVICE_NAME", "").strip()
    resource: dict[str, AttributeValue] = {key: mask(value)[0] for key, value in given.items()}
    resource["service.name"] = name or given.get("service.name") or AGENT
    resource["service.version"] = tui.__version__
    return SpanSource(resource, AGENT, tui.__version__, CONVENTIONS)


def switched_off(env: Mapping[str, str]) -> bool:
    """True if the environment switches off what the settings switch on."""
    return env.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def _either(env: Mapping[str, str], name: str) -> str:
    """A variable for traces, else for all signals."""
    names = (name.replace("_OTLP_", "_OTLP_TRACES_"), name)
    return next((text for each in names if (text := env.get(each, "").strip())), "")


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """The pairs of `key=value,…`, whose values may be percent-encoded."""
    for one in text.split(","):
        key, sign, value = one.partition("=")
        if sign and (key := key.strip()):
            yield key, unquote(value.strip())


def _printed_headers(command: str) -> Iterator[tuple[str, str]]:
    """Run the person's command in their home. Raises CollectorError, which never quotes it."""
    try:
        done = subprocess.run(  # noqa: S602 - it is the person's own, as they would type it
            command,
            shell=True,
            check=False,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_COMMAND_S,
            cwd=Path.home(),
            env=child_environment(),
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = "takes too long" if isinstance(error, subprocess.TimeoutExpired) else "can't be run"
        raise CollectorError(f"the headers command {why}") from None
    if done.returncode:
        raise CollectorError(f"the headers command ends with exit code {done.returncode}")
    for line in done.stdout.decode(errors="replace").splitlines():
        if not line.strip():
            continue
        if (found := _HEADER.fullmatch(line.strip())) is None:
            raise CollectorError("the headers command prints a line that isn't a header")
        yield found[1].lower(), found[2]


def _json_of(body: bytes, headers: Any) -> object:
    """The body as JSON where that is its type, {} where it can't be read; None for protobuf."""
    if "json" not in str(headers.get("content-type") or ""):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return {}


def _plain_text(body: bytes) -> str:
    """Return a body that is text for people, as many collectors send it; "" for JSON, a page or a
    message in binary."""
    with suppress(UnicodeDecodeError):
        text = body.decode().strip()
        if text.isprintable() and not text.startswith(("{", "[", "<")):
            return text
    return ""


def _words_of(reason: object) -> str:
    if isinstance(reason, TimeoutError):
        return "no answer in time"
    if isinstance(reason, http.client.HTTPException):
        return "its answer isn't HTTP"
    text = reason.strerror if isinstance(reason, OSError) else ""
    return _shown(text or str(reason) or type(reason).__name__)


def _shown(text: str) -> str:
    return one_line(mask(text)[0])[:_WORDS]

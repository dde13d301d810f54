"""Keeps secrets out of child processes, logs, exports and, on request, the record."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from typing import Any, Final, cast

from tui.core.late_pattern import late_pattern

MASK = "[secret removed]"

_PRIVATE = late_pattern(
    r"^(HOLDFAST_.*|AWS_BEARER_TOKEN_BEDROCK"
    r"|ANTHROPIC_(.*_)?(API_KEY|AUTH_TOKEN|IDENTITY_TOKEN|CUSTOM_HEADERS))$"
)

_KEYS: Final = (
    (("sk-",), r"sk-ant-[A-Za-z0-9_-]{16,}"),
    # A name such as sk-fading-circle has no digit.
    (("sk-",), r"sk-(?=[A-Za-z_-]{0,256}[0-9])[A-Za-z0-9_-]{20,}"),
    (("k_live_", "k_test_"), r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{30,}"),
    (("github_pat_",), r"github_pat_[A-Za-z0-9_]{30,}"),
    (("glpat-",), r"glpat-[A-Za-z0-9_-]{20,}"),
    (("xox",), r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    (("xapp-",), r"xapp-[0-9]-[A-Za-z0-9-]{20,}"),
    (("AKIA", "ASIA"), r"A(?:KIA|SIA)[0-9A-Z]{16}(?![0-9A-Z])"),
    (("AIza",), r"AIza[0-9A-Za-z_-]{35}"),
    (("npm_",), r"npm_[A-Za-z0-9]{36}"),
    (("hf_",), r"hf_[A-Za-z0-9]{30,}"),
    (("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    (("SG.",), r"SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,}"),
    # After - or _ the first part is limited: otherwise, each of many would be read to the end of
    # them.
    (
        ("eyJ",),
        (
            r"eyJ(?:(?<![_-]eyJ)[A-Za-z0-9_-]{10,}|[A-Za-z0-9_-]{10,1000})"
            r"\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
        ),
    ),
)
"""The shapes of keys, each with its marks: every key of that shape has one of them."""

_MARKS: Final = tuple(dict.fromkeys(mark for marks, _ in _KEYS for mark in marks))

_SHAPES = late_pattern(
    # After the escape of a newline or a tab a key begins, too.
    r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:" + "|".join(shape for _, shape in _KEYS) + ")"
)

_PEM_MARK = late_pattern(r"-----(BEGIN|END) ([A-Z ]*PRIVATE KEY)(?=-----)")
_PEM_LINES = late_pattern(r"(?:(?:\\n|\s)*[A-Za-z0-9+/=]{20,})+")
_PEM_CHARS = 20_000

_SECRET_NAMES = late_pattern(
    r"(?:^|/)(?:"
    r"\.env(?!\.(?:example|sample|template|dist|defaults)$)(?:\.[^/]+)?"
    r"|\.?(?:netrc|npmrc|pypirc|git-credentials|pgpass|htpasswd)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?"
    r"|[^/]*(?:credentials|secrets)(?:\.(?:json|ya?ml|toml|ini|txt))?"
    r"|[^/]+\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk)"
    r"|service[-_]account[^/]*\.json"
    r")$",
    re.IGNORECASE,
)

_SECRET_FIELDS = late_pattern(
    r"pass(?:word|phrase|code)|secret|token|api.?key|private.?key|credential|\bpin\b|\bcvv?\b",
    re.IGNORECASE,
)

_BASE64 = late_pattern(r"[A-Za-z0-9+/]*={0,2}")
_PICTURES = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR", "JVBERi0")
"""The start of PNG, JPEG, GIF, WebP and PDF in base64."""


SESSION_VARIABLE: Final = "HOLDFAST_SESSION_ID"
"""The variable that names the session to the processes that it starts."""
_SESSION_VARIABLES: Final = (SESSION_VARIABLE, "CLAUDE_CODE_SESSION_ID")
"""Scripts and servers that are written for Claude Code read the other one."""
_TRACEPARENT: Final = "TRACEPARENT"
_TRACESTATE: Final = "TRACESTATE"
_TRACE: Final = slice(3, 35)
"""The id of the trace in a value of the first."""


def child_environment(session: str = "", traceparent: str = "") -> dict[str, str]:
    """Return the environment of a tool's or server's process: ours without the program's own
    secrets, and with the id of the `session` that it belongs to. `traceparent` is the span that its
    own spans continue; without one it continues what we were given ourselves."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not _PRIVATE.match(name)
        and name not in _SESSION_VARIABLES  # of a session around this one
    }
    if traceparent:
        if kept.get(_TRACEPARENT, "")[_TRACE] != traceparent[_TRACE]:
            kept.pop(_TRACESTATE, None)  # it is about another trace
        kept[_TRACEPARENT] = traceparent
    return kept | session_variables(session)


def session_variables(session: str) -> dict[str, str]:
    """Return the variables that name a session by its id; none for ""."""
    return dict.fromkeys(_SESSION_VARIABLES, session) if session else {}


def mask(text: str) -> tuple[str, int]:
    """Return `text` with keys of known shapes masked, and the number of them."""
    text, keys = _mask_private_keys(text)
    for mark in _MARKS:
        if mark in text:
            text, others = _SHAPES.subn(MASK, text)
            return text, keys + others
    return text, keys  # as most texts: without the pattern, which takes several times as long


def is_secret_name(path: str) -> bool:
    """True if a file with such a path usually holds secrets: `.env`, keys, stored credentials."""
    return _SECRET_NAMES.search(path) is not None


def is_secret_field(name: str) -> bool:
    """True if a form's field with such a name or title asks for a secret."""
    return _SECRET_FIELDS.search(name) is not None


def _mask_private_keys(text: str) -> tuple[str, int]:
    """Return `text` with PEM keys masked: up to their end mark, without one as far as their lines
    go.

    All marks are found first, so that no text is read again for each of them.
    """
    begins: list[re.Match[str]] = []
    ends: dict[str, list[int]] = {}
    for mark in _PEM_MARK.finditer(text):
        if mark[1] == "BEGIN":
            begins.append(mark)
        else:
            ends.setdefault(mark[2], []).append(mark.start())
    pieces: list[str] = []
    done = 0
    for mark in begins:
        if mark.start() < done:
            continue
        kind, body = mark[2], mark.end() + len("-----")
        later = ends.get(kind, [])
        nearest = bisect_left(later, body)
        # An end mark too far away belongs to another key.
        if nearest < len(later) and later[nearest] - body <= _PEM_CHARS:
            end = later[nearest] + len(f"-----END {kind}-----")
        elif lines := _PEM_LINES.match(text, body):
            end = lines.end()
        else:
            continue
        pieces += (text[done : mark.start()], MASK)
        done = end
    return "".join((*pieces, text[done:])), len(pieces) // 2


def mask_values(value: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a JSON object with the keys in its texts masked, field names included, and their
    number."""
    count = 0

    def masked(part: Any) -> Any:
        nonlocal count
        if isinstance(part, str):
            text, keys = mask(part)
            count += keys
            return text
        if isinstance(part, (list, tuple)):
            return [masked(item) for item in cast("list[Any]", part)]
        if isinstance(part, dict):
            items = cast("dict[str, Any]", part)
            if _is_picture(items):
                return items
            return {masked(name): masked(item) for name, item in items.items()}
        return part

    return masked(value), count


def _is_picture(source: dict[str, Any]) -> bool:
    """True if an object is the bytes of an image or a PDF: masked, they would be invalid."""
    kind, data = source.get("media_type"), source.get("data")
    return (
        source.keys() == {"type", "media_type", "data"}
        and source["type"] == "base64"
        and isinstance(kind, str)
        and (kind.startswith("image/") or kind == "application/pdf")
        and isinstance(data, str)
        and data.startswith(_PICTURES)
        and _BASE64.fullmatch(data) is not None
    )

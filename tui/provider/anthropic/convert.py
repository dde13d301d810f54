"""Requests in the form of the server, models in the form of the port."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tui.core.late_pattern import late_pattern
from tui.core.messages import Block, blocks_of, object_of
from tui.provider import catalogue
from tui.provider.base import ModelInfo, Request
from tui.provider.server_tools import WEB_SEARCH

_SPEAKERS = frozenset({"user", "assistant"})
COMPACTION: Final = "compact-2026-09-04"

_BETAS: Final = {
    "tool_additions": "inline-tools-2026-09-15",
    "turn_effort": "mid-conversation-output-config-2026-07-01",
    "updates": "thinking-display-updates-2026-08-18",
    "binding_reports": "thinking-binding-controls-2026-08-01",
    "compaction_blocks": COMPACTION,
}
"""The header that the API requires for a feature."""

_EXTRA: Final = r".{0,40}extra inputs are not permitted"
_BETA_REFUSED: Final = late_pattern(
    r"anthropic-beta|(?:unknown|invalid|unsupported|unexpected|unrecognized) beta", re.IGNORECASE
)
_BETA_NAME: Final = late_pattern(r"[a-z][a-z0-9-]*-20\d\d-\d\d-\d\d")
_REFUSED: Final = (
    ("turn_effort", r"messages\.\d+\.output_config\b|per-turn effort"),
    ("tool_additions", r"\btool_(?:addition|removal)\b"),
    ("system_messages", r"role\W{1,3}system\b|messages\.\d+\.role\b"),
    ("diagnostics", r"\bdiagnostics\b"),
    ("cache_life", r"cache_control\S*\.ttl\b"),
    (
        "cache_marks",
        (
            rf"cache_control\b{_EXTRA}|cache_control\b.{{0,40}}not supported|"
            r"unsupported.{0,20}cache_control|prompt caching is not supported|"
            r"not allow prompt caching"
        ),
    ),
    ("updates", r"thinking\S*\.display\b.{0,80}should be"),
    ("display", r"thinking\S*\.display\b" + _EXTRA),
    (
        "effort",
        (
            rf"(?<!\.)\boutput_config(?:\.effort)?{_EXTRA}|effort parameter|"
            r"\beffort[= ]'?\w+'? is not supported"
        ),
    ),
    (
        "thinking",
        (
            r"(?<![.\w])thinking`?: extra inputs are not permitted|"
            r"adaptive thinking is not supported|'adaptive' found using 'type'|"
            r"thinking\.type\.\w+\W{0,2} is not supported"
        ),
    ),
    ("documents", r"\bdocuments?\b|\bPDFs?\b"),
    ("web_search", r"\bweb[_ ]search"),
)
"""The ways in which an error names a feature; the first that the request has is meant."""


def features(request: Request) -> frozenset[str]:
    """The features in a request that not every server and model knows."""
    notices = [message for message in request.messages if message["role"] not in _SPEAKERS]
    kinds = {block.get("type") for message in notices for block in message["content"]}
    first = [block for message in request.messages[:1] for block in message["content"][:1]]
    blocks = [block for block in first if block.get("type") == "compaction"]
    changes = any(block.get("tool_changes") for block in blocks)
    display = (request.thinking or {}).get("display")
    marks = [block.get("cache_control") for block in request.system]
    marks += [b.get("cache_control") for m in request.messages for b in m["content"]]
    present = {
        "compaction_blocks": bool(blocks) or request.compaction is not None,
        "tool_additions": changes or bool(kinds & {"tool_addition", "tool_removal"}),
        "turn_effort": any("output_config" in message for message in notices),
        "updates": display == "updates",
        "binding_reports": request.binding_reports,
        "system_messages": bool(notices),
        "diagnostics": request.diagnostics is not None,
        "cache_life": any("ttl" in mark for mark in marks if mark),
        "cache_marks": any(marks),
        "display": display is not None,
        "effort": request.effort is not None,
        "thinking": request.thinking is not None,
        "documents": any(_has_document(message["content"]) for message in request.messages),
        "web_search": any(tool.get("name") == WEB_SEARCH for tool in request.tools),
    }
    return frozenset(name for name, there in present.items() if there)


def _has_document(content: Sequence[Block]) -> bool:
    return any(
        block.get("type") == "document"
        or (block.get("type") == "tool_result" and _has_document(blocks_of(block.get("content"))))
        for block in content
    )


def betas(request: Request) -> list[str]:
    """The beta headers without which the API refuses the features in a request."""
    there = features(request)
    return [beta for feature, beta in _BETAS.items() if feature in there]


def refused_feature(text: str, request: Request) -> str:
    """The feature of a request that an error text (of a 400) names; "" if it names none."""
    there = features(request)
    if _BETA_REFUSED.search(text):
        named = [feature for feature, beta in _BETAS.items() if beta in text and feature in there]
        if not named and _BETA_NAME.search(text):  # one that the SDK or a gateway has added
            return ""
        betas_there = [feature for feature in _BETAS if feature in there]
        # A text that names no header may mean any; they are dropped one after the other.
        return next(iter(named or betas_there), "")
    for feature, pattern in _REFUSED:
        if feature in there and re.search(pattern, text, re.IGNORECASE):
            return feature
    return ""


def payload(request: Request) -> dict[str, Any]:
    """The body of a request, in JSON; what is not set is left out."""
    optional: dict[str, Any] = {
        "diagnostics": request.diagnostics,
        "output_config": {"effort": request.effort} if request.effort else None,
        "stream": True,
        "system": request.system or None,
        "thinking": request.thinking,
        "tools": request.tools or None,
        "compaction": request.compaction or None,
    }
    return {
        "max_tokens": request.max_tokens,
        "messages": request.messages,
        "model": request.model,
        **{name: value for name, value in optional.items() if value is not None},
    }


class Uncopied(list[Any]):
    """A list whose deep copy is itself. The clouds' clients copy each body and change only its top:
    to copy the messages would take time that grows with the conversation."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Uncopied:
        return self


def body(request: Request) -> bytes:
    """The bytes of a request's body, as the SDK sends them."""
    text = json.dumps(payload(request), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def model_info(model: str, said: object) -> ModelInfo:
    """Decode a model as the server described it, in JSON; the rest comes from the catalogue.

    Servers that only resemble the API may send anything: no field is trusted to be there. The
    source is the server if it says how much the model reads.
    """
    described, known = object_of(said), catalogue.model_info(model)
    abilities = object_of(described.get("capabilities"))
    window, thinking = (
        _positive(described.get("max_input_tokens")),
        object_of(abilities.get("thinking")),
    )
    efforts = _supported(abilities.get("effort"), catalogue.EFFORTS, known.efforts)
    types = _supported(
        thinking | object_of(thinking.get("types")), catalogue.THINKING_TYPES, known.thinking_types
    )
    summarize = object_of(abilities.get("compaction")).get("summarize")
    server_tools = object_of(abilities.get("server_tools"))
    return replace(
        known,
        window=window or known.window,
        max_output=_positive(described.get("max_tokens")) or known.max_output,
        source="server" if window else known.source,
        efforts=efforts,
        effort=known.effort if known.effort in efforts else "",
        thinking_types=types,
        thinks=known.thinks and bool(types),
        compacts=_is_supported(summarize, known.compacts),
        documents=_is_supported(abilities.get("pdf_input"), known.documents),
        web_search=_is_supported(server_tools.get("web_search"), known.web_search),
        batches=_is_supported(abilities.get("batch"), known.batches),
        retires_at=_text(described, "retires_at", known.retires_at),
        line=_text(described, "line", known.line),
    )


def _positive(value: object) -> int:
    """A positive whole number; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _is_supported(entry: object, known: bool) -> bool:
    """The value of `{"supported": …}`, otherwise what is known."""
    value = object_of(entry).get("supported")
    return value if isinstance(value, bool) else known


def _supported(entries: object, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """The `names` that an object of `{"supported": …}` has; its own entry may deny all."""
    if not _is_supported(entries, True):
        return ()
    levels = object_of(entries)
    return tuple(name for name in names if _is_supported(levels.get(name), name in known))


def _text(fields: Mapping[str, Any], name: str, known: str) -> str:
    """A text of a model; null means that there is none."""
    value = fields.get(name, known)
    return value if isinstance(value, str) else "" if value is None else known

"""What the API says of its models: one, or a page of the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.support.server_errors import Rejection, invalid
from tests.support.server_models import ALL_EFFORTS, MODELS

_PAGE: Final = 20
_MOST: Final = 1000
_TYPES: Final = ("adaptive", "enabled", "disabled", "between_tools")
_LINES: Final = {"haiku", "sonnet", "opus", "fable", "mythos"}
_COMPACTION: Final = "compact-2026-09-04"


def listed(name: str, betas: frozenset[str] = frozenset()) -> dict[str, Any]:
    """What `GET /v1/models/{id}` says of a model that is known, beside its names."""
    facts = MODELS[name]
    line = name.split("-")[1]
    efforts = {level: _has(level in facts.efforts) for level in ALL_EFFORTS}
    types = {kind: _has(kind in facts.thinking) for kind in _TYPES}
    capabilities: dict[str, Any] = {
        **{able: _has(True) for able in ("batch", "citations", "image_input", "pdf_input")},
        "structured_outputs": _has(True),
        "code_execution": _has(True),
        "effort": {**_has(bool(facts.efforts)), **efforts},
        "thinking": {**_has(True), "types": types},
        "context_management": {
            **_has(True),
            "clear_thinking_20251015": _has(True),
            "clear_tool_uses_20250919": _has(True),
            "compact_20260112": _has(facts.compacts),
        },
        "server_tools": {
            **_has(True),
            "web_search": _has(True),
            "code_execution": _has(True),
        },
    }
    if _COMPACTION in betas:
        capabilities["compaction"] = {**_has(facts.compacts), "summarize": _has(facts.compacts)}
    return {
        "line": line if line in _LINES else None,
        "lifecycle": "deprecated" if facts.deprecated else "active",
        "max_input_tokens": facts.window,
        "max_tokens": facts.output,
        "deprecated_at": facts.deprecated,
        "retires_at": facts.retires,
        "capabilities": capabilities,
    }


def described(name: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A model as an answer shows it."""
    return {
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": "active",
        **facts,
    }


def page(models: Sequence[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any] | Rejection:
    """The part of a list that a query asks for: `limit` after `after_id`, or before `before_id`."""
    try:
        limit = int(query.get("limit", _PAGE))
    except ValueError:
        limit = 0
    if not 1 <= limit <= _MOST:
        return invalid(f"limit: Input should be between 1 and {_MOST}")
    ids = [model["id"] for model in models]
    first, last = 0, len(ids)
    for name in ("after_id", "before_id"):
        if name in query and query[name] not in ids:
            return invalid(f"{name}: no model {query[name]!r}")
    if "after_id" in query:
        first = ids.index(query["after_id"]) + 1
    if "before_id" in query:
        last = ids.index(query["before_id"])
    backwards = "before_id" in query and "after_id" not in query
    shown = models[first:last][-limit:] if backwards else models[first:last][:limit]
    return {
        "data": shown,
        "has_more": last - first > limit,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
    }


def _has(supported: bool) -> dict[str, bool]:
    return {"supported": supported}

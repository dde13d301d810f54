"""Requests as the SDK takes them, models as the port describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tui.core.messages import object_of
from tui.provider import catalogue
from tui.provider.base import ModelInfo, Request

_SPEAKERS = frozenset({"user", "assistant"})
_INLINE_TOOLS = "inline-tools-2026-09-15"
_TURN_EFFORT = "mid-conversation-output-config-2026-07-01"
_UPDATES = "thinking-display-updates-2026-08-18"
COMPACTION: Final = "compact-2026-09-04"


def betas(request: Request) -> list[str]:
    """The beta headers without which the API refuses what is in a request."""
    notices = [message for message in request.messages if message["role"] not in _SPEAKERS]
    kinds = {block.get("type") for message in notices for block in message["content"]}
    first = [block for message in request.messages[:1] for block in message["content"][:1]]
    blocks = [block for block in first if block.get("type") == "compaction"]
    changes = any(block.get("tool_changes") for block in blocks)
    found = {
        COMPACTION: bool(blocks) or request.compaction is not None,
        _INLINE_TOOLS: changes or bool(kinds & {"tool_addition", "tool_removal"}),
        _TURN_EFFORT: any("output_config" in message for message in notices),
        _UPDATES: (request.thinking or {}).get("display") == "updates",
    }
    return [name for name, needed in found.items() if needed]


def arguments(request: Request) -> dict[str, Any]:
    """A request as the SDK takes it; what is not set is left out."""
    needed = betas(request)
    optional: dict[str, Any] = {
        "system": request.system or None,
        "tools": request.tools or None,
        "thinking": request.thinking,
        "output_config": {"effort": request.effort} if request.effort else None,
        "extra_headers": {"anthropic-beta": ",".join(needed)} if needed else None,
        "extra_body": {"compaction": request.compaction} if request.compaction else None,
    }
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": request.messages,
        **{name: value for name, value in optional.items() if value is not None},
    }


def body(request: Request) -> bytes:
    """The bytes of a request's body, as the SDK sends them."""
    given = arguments(request) | {"stream": True}
    given.pop("extra_headers", None)
    given |= given.pop("extra_body", {})
    given = dict(sorted(given.items()))
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def model_info(model: str, said: object) -> ModelInfo:
    """A model as the server described it, in JSON; what it does not say is from the catalogue.

    Servers that only resemble the API may say anything: no field is trusted to be there. The
    source is the server if it says how much the model reads.
    """
    found, known = object_of(said), catalogue.model_info(model)
    abilities = object_of(found.get("capabilities"))
    window, thinking = (
        _positive(found.get("max_input_tokens")),
        object_of(abilities.get("thinking")),
    )
    efforts = _supported(abilities.get("effort"), catalogue.EFFORTS, known.efforts)
    types = _supported(
        thinking | object_of(thinking.get("types")), catalogue.THINKING_TYPES, known.thinking_types
    )
    summarize = object_of(abilities.get("compaction")).get("summarize")
    return replace(
        known,
        window=window or known.window,
        max_output=_positive(found.get("max_tokens")) or known.max_output,
        source="server" if window else known.source,
        efforts=efforts,
        effort=known.effort if known.effort in efforts else "",
        thinking_types=types,
        thinks=known.thinks and bool(types),
        compacts=_is_supported(summarize, known.compacts),
        retires_at=_text(found, "retires_at", known.retires_at),
        line=_text(found, "line", known.line),
    )


def _positive(value: object) -> int:
    """A positive whole number; 0 for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _is_supported(said: object, known: bool) -> bool:
    """What `{"supported": …}` says, else what is known."""
    value = object_of(said).get("supported")
    return value if isinstance(value, bool) else known


def _supported(said: object, names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Which of `names` an object of `{"supported": …}` has; its own may say that it has none."""
    if not _is_supported(said, True):
        return ()
    levels = object_of(said)
    return tuple(name for name in names if _is_supported(levels.get(name), name in known))


def _text(found: Mapping[str, Any], name: str, known: str) -> str:
    """A text of a model; null says that there is none."""
    value = found.get(name, known)
    return value if isinstance(value, str) else "" if value is None else known

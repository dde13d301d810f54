"""Requests as the SDK takes them, models as the port describes them."""

from __future__ import annotations

from typing import Any

from tui.provider import catalogue
from tui.provider.base import ModelInfo, Request


def arguments(request: Request) -> dict[str, Any]:
    """A request as the SDK takes it; what is not set is left out."""
    optional: dict[str, Any] = {
        "system": request.system or None,
        "tools": request.tools or None,
        "thinking": request.thinking,
        "output_config": {"effort": request.effort} if request.effort else None,
    }
    return {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": request.messages,
        **{name: value for name, value in optional.items() if value is not None},
    }


def model_info(model: str, found: object) -> ModelInfo | None:
    """A model as the server described it; None if it does not say how much the model reads.

    Servers that only resemble the API may send anything: fields are not trusted to be there.
    """
    window = getattr(found, "max_input_tokens", None)
    if not isinstance(window, int) or window <= 0:
        return None
    fallback = catalogue.model_info(model)
    output = getattr(found, "max_tokens", None)
    known = found
    for name in ("capabilities", "thinking", "types", "adaptive", "supported"):
        known = getattr(known, name, None)
    return ModelInfo(
        model,
        window,
        output if isinstance(output, int) and output > 0 else fallback.max_output,
        "server",
        known if isinstance(known, bool) else fallback.adaptive_thinking,
    )

"""What is known of models without asking the server.

Only the server knows a model's real limits; this is what is used until it has answered, and with
servers that do not say. Windows are 200,000 tokens throughout: true for the models before 5 and
a safe assumption for the later ones, whose windows are not published with the SDK. `max_output`
is the published limit where there is one, otherwise a figure every listed model allows. Adaptive
thinking began with the 4.6 generation.
"""

from __future__ import annotations

import re
from typing import Final

from tui.provider.base import ModelInfo

WINDOW: Final = 200_000
ASSUMED_OUTPUT: Final = 8_192

_SAFE_OUTPUT: Final = 32_000

_MAX_OUTPUT: Final = {
    "claude-fable-5-2": _SAFE_OUTPUT,
    "claude-mythos-5-2": _SAFE_OUTPUT,
    "claude-haiku-5-5": _SAFE_OUTPUT,
    "claude-sonnet-5-5": _SAFE_OUTPUT,
    "claude-fable-5-1": _SAFE_OUTPUT,
    "claude-opus-5-5": _SAFE_OUTPUT,
    "claude-mythos-5-1": _SAFE_OUTPUT,
    "claude-sonnet-5": _SAFE_OUTPUT,
    "claude-fable-5": _SAFE_OUTPUT,
    "claude-mythos-5": _SAFE_OUTPUT,
    "claude-opus-5": _SAFE_OUTPUT,
    "claude-opus-4-8": _SAFE_OUTPUT,
    "claude-opus-4-7": _SAFE_OUTPUT,
    "claude-mythos-preview": _SAFE_OUTPUT,
    "claude-opus-4-6": 128_000,
    "claude-sonnet-4-6": 64_000,
    "claude-haiku-4-5": 64_000,
    "claude-opus-4-5": 64_000,
    "claude-sonnet-4-5": 64_000,
}

_NOT_ADAPTIVE: Final = {"claude-haiku-4-5", "claude-opus-4-5", "claude-sonnet-4-5"}

_GATEWAY_NAME = re.compile(r"(?:.*[/.])?(claude-[a-z0-9-]+?)(?:[-@]\d{8})?(?:-v\d+(?::\d+)?)?")


def names() -> tuple[str, ...]:
    """The models that are known, the newest first."""
    return tuple(_MAX_OUTPUT)


def model_info(model: str) -> ModelInfo:
    """What is known of `model`, source "catalogue"; of an unknown one, source "assumed".

    A date at the end and the forms of gateways (`anthropic/…`, `us.anthropic.…-v1:0`, `…@date`)
    are seen through.
    """
    match = _GATEWAY_NAME.fullmatch(model)
    name = match[1] if match else model
    if name not in _MAX_OUTPUT:
        return ModelInfo(model, WINDOW, ASSUMED_OUTPUT, "assumed")
    return ModelInfo(
        model,
        WINDOW,
        _MAX_OUTPUT[name],
        "catalogue",
        adaptive_thinking=name not in _NOT_ADAPTIVE,
    )

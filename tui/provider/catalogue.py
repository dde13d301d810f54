"""The models as known without asking the server, as of November 2026.

From the published documentation of the Messages API. It is used until a server has answered and for
servers that do not say: the server's own description takes precedence (see
`tui.provider.anthropic.convert`). Some things no server says and only this module knows: the
default effort, the smallest cached prompt, what may be in a conversation, if thinking is bound.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from tui.core.late_pattern import late_pattern
from tui.provider.base import ModelInfo

AS_OF: Final = "2026-11"
ASSUMED_WINDOW: Final = 200_000
ASSUMED_OUTPUT: Final = 8_192

EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
"""All levels, the lowest first."""

SOON_DAYS: Final = 60
"""Days before a model's retirement at which a person is told."""

THINKING_TYPES: Final = ("adaptive", "enabled", "disabled", "between_tools")

_GATEWAY_NAME = late_pattern(r"(?:.*[/.])?(claude-[a-z0-9-]+?)(?:[-@]\d{8})?(?:-v\d+(?::\d+)?)?")

_GENERATION_5: Final = ModelInfo(
    "",
    1_000_000,
    128_000,
    "catalogue",
    efforts=EFFORTS,
    effort="high",
    thinking_types=("adaptive",),
    thinks=True,
    display="omitted",
    system_messages=True,
    tool_additions=True,
    compacts=True,
    documents=True,
    web_search=True,
    cached_from=512,
)
_BINDS: Final = replace(_GENERATION_5, binds=True)
_BINDS_TURN_EFFORT: Final = replace(_BINDS, turn_effort=True)
_OFF: Final = ("adaptive", "disabled")
_OPUS_4_8: Final = replace(_GENERATION_5, thinking_types=_OFF, thinks=False, cached_from=1024)
_GENERATION_4_6: Final = replace(
    _OPUS_4_8,
    efforts=("low", "medium", "high", "max"),
    thinking_types=("adaptive", "enabled", "disabled"),
    display="summarized",
    system_messages=False,
    tool_additions=False,
)
_GENERATION_4_5: Final = replace(
    _GENERATION_4_6,
    window=200_000,
    max_output=64_000,
    efforts=(),
    effort="",
    thinking_types=("enabled", "disabled"),
    compacts=False,
)

_MODELS: Final = {
    "claude-fable-5-2": replace(_BINDS, compacts=False),
    "claude-mythos-5-2": replace(_BINDS, compacts=False),
    "claude-haiku-5-5": replace(_BINDS_TURN_EFFORT, effort="medium", thinking_types=_OFF),
    "claude-sonnet-5-5": replace(_BINDS_TURN_EFFORT, thinking_types=("adaptive", "between_tools")),
    "claude-fable-5-1": _BINDS_TURN_EFFORT,
    "claude-opus-5-5": replace(_BINDS_TURN_EFFORT, effort="medium"),
    "claude-mythos-5-1": _BINDS_TURN_EFFORT,
    "claude-sonnet-5": replace(
        _GENERATION_5,
        thinking_types=_OFF,
        system_messages=False,
        tool_additions=False,
        cached_from=1024,
    ),
    "claude-fable-5": _GENERATION_5,
    "claude-mythos-5": _GENERATION_5,
    "claude-opus-5": replace(_GENERATION_5, thinking_types=_OFF, turn_effort=True),
    "claude-opus-4-8": _OPUS_4_8,
    "claude-opus-4-7": replace(
        _OPUS_4_8, system_messages=False, tool_additions=False, cached_from=2048
    ),
    "claude-mythos-preview": ModelInfo(
        "",
        ASSUMED_WINDOW,
        32_000,
        "catalogue",
        thinking_types=("adaptive",),
        retires_at="2026-06-30",
    ),
    "claude-opus-4-6": replace(_GENERATION_4_6, cached_from=4096),
    "claude-sonnet-4-6": _GENERATION_4_6,
    "claude-haiku-4-5": replace(_GENERATION_4_5, cached_from=4096),
    "claude-opus-4-5": replace(
        _GENERATION_4_5,
        efforts=("low", "medium", "high"),
        effort="high",
        cached_from=4096,
        retires_at="2027-01-22",
    ),
    "claude-sonnet-4-5": replace(_GENERATION_4_5, retires_at="2026-11-30"),
}
"""The known models, the newest first."""


def names() -> tuple[str, ...]:
    """The known models that were available at that time, the newest first."""
    return tuple(name for name, known in _MODELS.items() if not "" < known.retires_at < AS_OF)


def retirement(model: ModelInfo, now: datetime) -> str:
    """A sentence for a model that retires soon, or may have retired already; otherwise ""."""
    try:
        day = datetime.fromisoformat(model.retires_at).date()
    except ValueError:
        return ""
    left = (day - now.date()).days
    if left > SOON_DAYS:
        return ""
    verb = "retires" if left >= 0 else "was retired"
    return f"{model.id} {verb} on {day:%Y-%m-%d}. Choose another model with /model."


def base_name(model: str) -> str:
    """The name under which a model is known here; any other name as it is.

    A date at the end and the forms of gateways (`anthropic/…`, `us.anthropic.…-v1:0`, `…@date`) are
    ignored.
    """
    match = _GATEWAY_NAME.fullmatch(model)
    return match[1] if match else model


def model_info(model: str) -> ModelInfo:
    """Look a model up: source "catalogue", or "assumed" for an unknown one."""
    name = base_name(model)
    if (info := _MODELS.get(name)) is None:
        return ModelInfo(model, ASSUMED_WINDOW, ASSUMED_OUTPUT, "assumed")
    return replace(info, id=model, line=name.split("-")[1])

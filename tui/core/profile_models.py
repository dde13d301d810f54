"""Models that are asked through another profile: `@PROFILE/MODEL`, or `@PROFILE` for the model that
is asked otherwise.

Such a name stands wherever a model's name does, in requests, records and prices, so that each
answer says who was asked and who pays. "default" is the server and the key without a profile.

    through("bedrock", "claude-opus-5-5")     "@bedrock/claude-opus-5-5"
    profile_of("@bedrock/claude-opus-5-5")    "bedrock"; "" for the profile in use
    model_of("@bedrock/claude-opus-5-5")      "claude-opus-5-5"
"""

from __future__ import annotations

from typing import Final

_SIGN: Final = "@"


def profile_of(model: str) -> str:
    """The profile that a model's name has; "" where it has none."""
    return model[1:].partition("/")[0] if model.startswith(_SIGN) else ""


def model_of(model: str) -> str:
    """A model's name without a profile; "" where the name has nothing else."""
    return model.partition("/")[2] if model.startswith(_SIGN) else model


def through(profile: str, model: str) -> str:
    """The name of a model that is asked through a profile; "" is the one in use."""
    return f"{_SIGN}{profile}/{model}" if profile else model

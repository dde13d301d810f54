"""What the Messages API is known to say and charge for each of its models (November 2026).

Written from the API's documentation for the tests' server alone: nothing here comes from the
program, whose own catalogue is checked against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

ALL_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens. The last two writes are those of entries that live five
    minutes and an hour."""

    input: float
    output: float
    write_5m: float
    write_1h: float
    read: float

    def cost(self, usage: Mapping[str, Any]) -> float:
        """What a request with this `usage` of the API costs, in US dollars."""
        written = usage.get("cache_creation", {})
        hour: int = written.get("ephemeral_1h_input_tokens", 0)
        short = usage.get("cache_creation_input_tokens", 0) - hour
        return (
            usage["input_tokens"] * self.input
            + usage["output_tokens"] * self.output
            + short * self.write_5m
            + hour * self.write_1h
            + usage.get("cache_read_input_tokens", 0) * self.read
        ) / 1_000_000


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model. `long_price` holds for prompts of over `long_from` tokens.

    `thinking` are the accepted types, `thinks`: it does so without being asked. `binds`: its
    thinking is bound to what stood before it, `account_bound`: and to the organization.
    `system_messages`: they may stand in the middle of a conversation, and bring or take tools.
    `turn_effort`: a system message may set the effort.
    `retires`: a list has a date once one is set, none where a model stays "at least until" one.
    """

    price: Price
    window: int = 1_000_000
    output: int = 128_000
    thinking: tuple[str, ...] = ("adaptive",)
    thinks: bool = True
    efforts: tuple[str, ...] = ALL_EFFORTS
    effort: str = "high"
    display: str = "omitted"
    binds: bool = False
    account_bound: bool = False
    system_messages: bool = True
    turn_effort: bool = False
    forced_tools: bool = True
    compacts: bool = True
    cached_from: int = 512
    long_price: Price | None = None
    long_from: int = 0
    retires: str | None = None
    deprecated: str | None = None

    def price_of(self, prompt_tokens: int) -> Price:
        """What is charged for a request with so large a prompt."""
        long = self.long_price is not None and prompt_tokens > self.long_from
        return self.long_price if long and self.long_price else self.price


_FABLE = ModelFacts(Price(10, 50, 12.5, 20, 0.25), binds=True, turn_effort=True, forced_tools=False)
_FABLE_52 = replace(_FABLE, price=Price(8, 40, 10, 16, 0.20), turn_effort=False, compacts=False)
_OPUS_4 = Price(5, 25, 6.25, 10, 0.5)
_SONNET_4 = Price(3, 15, 3.75, 6, 0.3)
_OLD = ModelFacts(
    _SONNET_4,
    window=200_000,
    output=64_000,
    thinking=("enabled", "disabled"),
    thinks=False,
    efforts=(),
    display="summarized",
    system_messages=False,
    compacts=False,
    cached_from=1024,
)

MODELS: Final[Mapping[str, ModelFacts]] = {
    "claude-fable-5-2": _FABLE_52,
    "claude-mythos-5-2": _FABLE_52,
    "claude-fable-5-1": _FABLE,
    "claude-mythos-5-1": _FABLE,
    "claude-opus-5-5": ModelFacts(
        Price(4, 20, 5, 8, 0.2),
        effort="medium",
        binds=True,
        turn_effort=True,
        forced_tools=False,
    ),
    "claude-sonnet-5-5": ModelFacts(
        Price(2, 10, 2.5, 4, 0.1),
        thinking=("adaptive", "between_tools"),
        binds=True,
        account_bound=True,
        turn_effort=True,
        forced_tools=False,
    ),
    "claude-haiku-5-5": ModelFacts(
        Price(0.1, 0.5, 0.125, 0.2, 0.01),
        thinking=("adaptive", "disabled"),
        effort="medium",
        binds=True,
        account_bound=True,
        turn_effort=True,
        long_price=Price(0.5, 2.5, 0.625, 1, 0.05),
        long_from=100_000,
    ),
    "claude-fable-5": ModelFacts(Price(10, 50, 12.5, 20, 1)),
    "claude-mythos-5": ModelFacts(Price(10, 50, 12.5, 20, 1)),
    "claude-opus-5": ModelFacts(
        _OPUS_4,
        thinking=("adaptive", "disabled"),
        turn_effort=True,
    ),
    "claude-sonnet-5": ModelFacts(
        Price(2, 10, 2.5, 4, 0.2),
        thinking=("adaptive", "disabled"),
        system_messages=False,
        cached_from=1024,
    ),
    "claude-opus-4-8": ModelFacts(
        _OPUS_4, thinking=("adaptive", "disabled"), thinks=False, cached_from=1024
    ),
    "claude-opus-4-7": ModelFacts(
        _OPUS_4,
        thinking=("adaptive", "disabled"),
        thinks=False,
        system_messages=False,
        cached_from=2048,
    ),
    "claude-opus-4-6": ModelFacts(
        _OPUS_4,
        thinking=("adaptive", "enabled", "disabled"),
        thinks=False,
        efforts=("low", "medium", "high", "max"),
        display="summarized",
        system_messages=False,
        cached_from=4096,
    ),
    "claude-sonnet-4-6": ModelFacts(
        _SONNET_4,
        thinking=("adaptive", "enabled", "disabled"),
        thinks=False,
        efforts=("low", "medium", "high", "max"),
        display="summarized",
        system_messages=False,
        cached_from=1024,
    ),
    "claude-opus-4-5": replace(
        _OLD,
        retires="2027-01-22T00:00:00Z",
        price=_OPUS_4,
        efforts=("low", "medium", "high"),
        cached_from=4096,
    ),
    "claude-sonnet-4-5": replace(
        _OLD, retires="2026-11-30T00:00:00Z", deprecated="2026-09-30T00:00:00Z"
    ),
    "claude-haiku-4-5": replace(
        _OLD,
        price=Price(1, 5, 1.25, 2, 0.1),
        cached_from=4096,
    ),
}


_READS: Final[Mapping[str, frozenset[str]]] = {
    "claude-fable-5-2": frozenset({"claude-mythos-5-2"}),
    "claude-mythos-5-2": frozenset({"claude-fable-5-2"}),
    "claude-fable-5-1": frozenset({"claude-mythos-5-1", "claude-opus-5-5"}),
    "claude-mythos-5-1": frozenset({"claude-fable-5-1", "claude-opus-5-5"}),
    "claude-opus-5-5": frozenset({"claude-sonnet-5-5", "claude-haiku-5-5"}),
    "claude-sonnet-5-5": frozenset({"claude-haiku-5-5"}),
}


def reads(model: str, other: str) -> bool:
    """Whether a model reads the bound thinking of another. All read what older models thought."""
    return other in _READS.get(model, ())

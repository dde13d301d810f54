"""The cost of requests: the prices of the first party as of November 2026, in USD.

`[prices]` in the configuration takes precedence, by the model's name. A model that is in neither
has no known price. All prices are for a million tokens.

    price_of(model, config.prices)          the price of a model, None if not known
    price.cost(usage)                       the cost of an answer, by the usage that came with it
    price.in_batch()                        the same model's price in a message batch
    price.forecast(written=…, read=…, …)    the cost of a request before it is sent
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from tui.core.config import EVERY_MODEL, Price, ProfilePrices, model_of, profile_of
from tui.core.dataclass import astuple, dataclass
from tui.core.formatting import tokens
from tui.core.messages import Usage
from tui.provider.catalogue import base_name

_CLOUD_ID: Final = "anthropic.claude-"
_GLOBAL: Final = "global."
"""The beginning of an id of Bedrock's that may be served anywhere."""

CacheLife: TypeAlias = Literal["5m", "1h"]
"""The time for which content written to the cache can be read."""

_MILLION: Final = 1_000_000
SEARCH_USD: Final = 0.01
"""The server's price for one search of the web, whatever the model."""


@dataclass(frozen=True, slots=True)
class Payer:
    """The account that pays: the person's profile, "" for none, the server that it is for, and the
    prices that the person has set for it."""

    profile: str
    server: str
    prices: Mapping[str, Price]


def _rate(usd: float) -> str:
    """A rate without digits that say nothing: $4, $0.10, $0.125."""
    cents = usd != int(usd) and round(usd, 2) == usd
    return f"${usd:.2f}" if cents else f"${usd:g}"


@dataclass(frozen=True, slots=True)
class Rates:
    """USD for a million tokens; the writes are by the life of what is written."""

    input: float
    output: float
    write_5m: float
    write_1h: float
    read: float

    @property
    def words(self) -> str:
        return f"{_rate(self.input)} in, {_rate(self.output)} out, {_rate(self.read)} cached"

    def multiplied(self, times: float) -> Rates:
        return Rates(*(round(rate * times, 6) for rate in astuple(self)))

    def of(self, usage: Usage) -> float:
        """The cost of that usage in one request."""
        hour = min(usage.ephemeral_1h_input_tokens, usage.cache_creation_input_tokens)
        return (
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + (usage.cache_creation_input_tokens - hour) * self.write_5m
            + hour * self.write_1h
            + usage.cache_read_input_tokens * self.read
        ) / _MILLION


@dataclass(frozen=True, slots=True)
class ModelPrice:
    """The price of one model. `long` applies to requests whose prompt exceeds `long_from`
    tokens."""

    rates: Rates
    long: Rates | None = None
    long_from: int = 0

    def in_batch(self) -> ModelPrice:
        """The price in a message batch: half, for everything read and written."""
        return self.multiplied(0.5)

    def multiplied(self, times: float) -> ModelPrice:
        """The price where everything costs a multiple."""
        long = self.long.multiplied(times) if self.long else None
        return ModelPrice(self.rates.multiplied(times), long, self.long_from)

    @property
    def short(self) -> str:
        """The prices of a million tokens of input and of output, as in a table."""
        return f"{_rate(self.rates.input)}/{_rate(self.rates.output)}"

    @property
    def words(self) -> str:
        """The prices of a million tokens, by their kind."""
        above = f"; {self.long.words} above {tokens(self.long_from)}" if self.long else ""
        return f"{self.rates.words} per million tokens{above}"

    def rates_for(self, prompt_tokens: int) -> Rates:
        """The rates of a request with a prompt of that size, however much of it is cached."""
        return self.long if self.long and prompt_tokens > self.long_from else self.rates

    def cost(self, usage: Usage) -> float:
        """USD of one request, including its searches of the web. Add up costs, not usages: the
        rates depend on the size of each request."""
        prompt = usage.context_tokens or usage.prompt_tokens
        return self.rates_for(prompt).of(usage) + usage.web_search_requests * SEARCH_USD

    def forecast(
        self,
        *,
        fresh: int = 0,
        written: int = 0,
        read: int = 0,
        output: int = 0,
        life: CacheLife = "5m",
        prompt: int | None = None,
    ) -> float:
        """USD of that many tokens of a request that is not sent yet: fresh (neither read nor kept),
        written to the cache for a `life`, read from it, and output.

        `prompt` is the size of the whole prompt if the tokens are only a part of it.
        """
        hour = written if life == "1h" else 0
        usage = Usage(fresh, output, written, read, hour)
        return self.rates_for(usage.prompt_tokens if prompt is None else prompt).of(usage)


_FABLE: Final = ModelPrice(Rates(10, 50, 12.5, 20, 0.25))
_FABLE_5_2: Final = ModelPrice(Rates(8, 40, 10, 16, 0.2))
_FABLE_5: Final = ModelPrice(Rates(10, 50, 12.5, 20, 1))
_OPUS: Final = ModelPrice(Rates(5, 25, 6.25, 10, 0.5))
_SONNET_4: Final = ModelPrice(Rates(3, 15, 3.75, 6, 0.3))

_PRICES: Final = {
    "claude-fable-5-2": _FABLE_5_2,
    "claude-mythos-5-2": _FABLE_5_2,
    "claude-haiku-5-5": ModelPrice(
        Rates(0.1, 0.5, 0.125, 0.2, 0.01), Rates(0.5, 2.5, 0.625, 1, 0.05), 100_000
    ),
    "claude-sonnet-5-5": ModelPrice(Rates(2, 10, 2.5, 4, 0.1)),
    "claude-fable-5-1": _FABLE,
    "claude-opus-5-5": ModelPrice(Rates(4, 20, 5, 8, 0.2)),
    "claude-mythos-5-1": _FABLE,
    "claude-sonnet-5": ModelPrice(Rates(2, 10, 2.5, 4, 0.2)),
    "claude-fable-5": _FABLE_5,
    "claude-mythos-5": _FABLE_5,
    "claude-opus-5": _OPUS,
    "claude-opus-4-8": _OPUS,
    "claude-opus-4-7": _OPUS,
    "claude-opus-4-6": _OPUS,
    "claude-sonnet-4-6": _SONNET_4,
    "claude-haiku-4-5": ModelPrice(Rates(1, 5, 1.25, 2, 0.1)),
    "claude-opus-4-5": _OPUS,
    "claude-sonnet-4-5": _SONNET_4,
}


def price_of(
    model: str, configured: Mapping[str, Price], payer: str | None = None
) -> ModelPrice | None:
    """The price of a model: the configured one, otherwise the shipped one; None if there is none.

    `payer` is the profile that paid, where it may be another than the one in use; a model's whole
    name says it itself. Names of gateways and with dates are recognized, as in the catalogue. A
    multiple of a shipped price may be for all models; for an id that names its region, that region
    decides.
    """
    payer, model = profile_of(model) or payer, model_of(model)
    if payer is not None and isinstance(configured, ProfilePrices):
        configured = configured.of(payer)
    name = base_name(model)
    every, shipped = configured.get(EVERY_MODEL), _PRICES.get(name)
    exact = configured.get(model)
    own = exact or configured.get(name) or every
    if own is None or not own.times:
        return shipped if own is None else ModelPrice(_rates(own))
    times = own.times
    if every is not None and exact is None and _CLOUD_ID in model:
        times = 1.0 if model.startswith(_GLOBAL) else every.times
    return shipped.multiplied(times) if shipped else None


def _rates(own: Price) -> Rates:
    hour = own.cache_write_1h or 2 * own.input
    return Rates(own.input, own.output, own.cache_write, hour, own.cache_read)


def shipped() -> Mapping[str, ModelPrice]:
    """The prices that are shipped, by the models' names."""
    return _PRICES

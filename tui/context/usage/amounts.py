"""Tokens by their price class with the money they cost, and sums of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tui.core.dataclass import dataclass, fields
from tui.core.messages import Usage
from tui.provider.prices import SEARCH_USD, ModelPrice

_MILLION: Final = 1_000_000
_COUNTS: Final = 5
"""The first fields of an amount are tokens, the others USD."""


@dataclass(slots=True)
class Amount:
    """Tokens that were read from the cache, written to it, new, and output, with the USD for each;
    `fees` are those for searches. `unpriced` tokens came from a model without a known price: there
    is nothing in the USD for them."""

    read: float = 0.0
    written: float = 0.0
    fresh: float = 0.0
    output: float = 0.0
    unpriced: float = 0.0
    read_usd: float = 0.0
    written_usd: float = 0.0
    fresh_usd: float = 0.0
    output_usd: float = 0.0
    fees: float = 0.0

    def add(self, other: Amount, times: float = 1.0) -> None:
        """Add another amount, that many times."""
        self.read += other.read * times
        self.written += other.written * times
        self.fresh += other.fresh * times
        self.output += other.output * times
        self.unpriced += other.unpriced * times
        self.read_usd += other.read_usd * times
        self.written_usd += other.written_usd * times
        self.fresh_usd += other.fresh_usd * times
        self.output_usd += other.output_usd * times
        self.fees += other.fees * times

    @property
    def usd(self) -> float:
        return self.read_usd + self.new_usd + self.output_usd + self.fees

    @property
    def new_usd(self) -> float:
        """The USD for input that the cache did not have."""
        return self.written_usd + self.fresh_usd

    @property
    def new(self) -> float:
        """The tokens of input that the cache did not have."""
        return self.written + self.fresh

    @property
    def tokens(self) -> float:
        return self.read + self.new + self.output

    def to_json(self) -> list[float]:
        """Its numbers, rounded to what a sum over a million rows needs."""
        numbers = [round(getattr(self, one.name), 3) for one in fields(self)[:_COUNTS]]
        return numbers + [round(getattr(self, one.name), 12) for one in fields(self)[_COUNTS:]]

    @classmethod
    def of_json(cls, value: Iterable[float]) -> Amount:
        """Decode what `to_json` wrote. Raises TypeError for anything else."""
        return cls(*value)

    @classmethod
    def of(cls, usage: Usage, price: ModelPrice | None) -> Amount:
        """One answer, with its searches."""
        made, rates = cls(), TokenRates.of(usage, price)
        made.add(rates.read, usage.cache_read_input_tokens)
        made.add(rates.written, usage.cache_creation_input_tokens)
        made.add(rates.fresh, usage.input_tokens)
        made.add(rates.output, usage.output_tokens)
        made.fees = usage.web_search_requests * SEARCH_USD if price else 0.0
        return made


def total_of(amounts: Iterable[Amount]) -> Amount:
    """The sum of amounts."""
    total = Amount()
    for one in amounts:
        total.add(one)
    return total


@dataclass(frozen=True, slots=True)
class TokenRates:
    """A token of one request in each price class: the amount that it is."""

    read: Amount
    written: Amount
    fresh: Amount
    output: Amount

    @classmethod
    def of(cls, usage: Usage, price: ModelPrice | None) -> TokenRates:
        """The rates that a request was billed at. What was written costs what it did on average,
        where some of it lives for an hour."""
        if price is None:
            return _UNPRICED
        rates = price.rates_for(usage.context_tokens or usage.prompt_tokens)
        whole = usage.cache_creation_input_tokens
        hour = min(usage.ephemeral_1h_input_tokens, whole) / whole if whole else 0.0
        write = rates.write_5m + hour * (rates.write_1h - rates.write_5m)
        return cls(
            Amount(read=1.0, read_usd=rates.read / _MILLION),
            Amount(written=1.0, written_usd=write / _MILLION),
            Amount(fresh=1.0, fresh_usd=rates.input / _MILLION),
            Amount(output=1.0, output_usd=rates.output / _MILLION),
        )


_UNPRICED: Final = TokenRates(
    Amount(read=1.0, unpriced=1.0),
    Amount(written=1.0, unpriced=1.0),
    Amount(fresh=1.0, unpriced=1.0),
    Amount(output=1.0, unpriced=1.0),
)


def merge(into: dict[str, Amount], rows: Mapping[str, Amount]) -> None:
    """Add rows to those of the same name."""
    for name, amount in rows.items():
        into.setdefault(name, Amount()).add(amount)

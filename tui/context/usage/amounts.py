"""Tokens by their price class with the money they cost, and sums of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from tui.context.usage.bills import Bill
from tui.core.messages import Usage
from tui.provider.prices import SEARCH_USD, ModelPrice

_MILLION: Final = 1_000_000
_COUNTS: Final = 5
"""The first fields of an amount are tokens, most others USD."""


class Amount(Struct, gc=False):
    """Tokens that were read from the cache, written to it, new, and output, with the USD for each;
    `fees` are those for searches. `unpriced` tokens came from a model without a known price: there
    is nothing in the USD for them. `requests` counts those that belong to it whole: none where a
    request is shared among several."""

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
    requests: float = 0.0

    def add(self, other: Amount) -> None:
        """Add another amount."""
        self.read += other.read
        self.written += other.written
        self.fresh += other.fresh
        self.output += other.output
        self.unpriced += other.unpriced
        self.read_usd += other.read_usd
        self.written_usd += other.written_usd
        self.fresh_usd += other.fresh_usd
        self.output_usd += other.output_usd
        self.fees += other.fees
        self.requests += other.requests

    def take(self, other: Amount) -> None:
        """Take another amount out of this one."""
        self.read -= other.read
        self.written -= other.written
        self.fresh -= other.fresh
        self.output -= other.output
        self.unpriced -= other.unpriced
        self.read_usd -= other.read_usd
        self.written_usd -= other.written_usd
        self.fresh_usd -= other.fresh_usd
        self.output_usd -= other.output_usd
        self.fees -= other.fees
        self.requests -= other.requests

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
        numbers = astuple(self)
        counts, usd = numbers[:_COUNTS], numbers[_COUNTS:]
        return [  # most of them are zero
            *[round(one, 3) if one else one for one in counts],
            *[round(one, 12) if one else one for one in usd],
        ]

    @classmethod
    def of_json(cls, value: Iterable[float]) -> Amount:
        """Decode what `to_json` wrote. Raises TypeError for anything else."""
        return cls(*value)

    @classmethod
    def of(cls, bill: Bill, price: ModelPrice | None) -> Amount:
        """All that a bill is for, with its searches."""
        return cls.at(bill, TokenRates.of(bill.usage, price))

    @classmethod
    def at(cls, bill: Bill, rates: TokenRates) -> Amount:
        """All that a bill is for, with its searches, at the rates that it was billed at."""
        usage = bill.usage
        made = rates.amount(
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.input_tokens,
            usage.output_tokens,
        )
        made.fees = rates.fees(usage)
        made.requests = float(bill.requests)
        return made


def total_of(amounts: Iterable[Amount]) -> Amount:
    """The sum of amounts."""
    total = Amount()
    for one in amounts:
        total.add(one)
    return total


class TokenRates(NamedTuple):
    """The USD for a token of one request in each price class. `unpriced` is 1 where no price is
    known, otherwise 0."""

    read: float
    written: float
    fresh: float
    output: float
    unpriced: float = 0.0

    @classmethod
    def of(cls, usage: Usage, price: ModelPrice | None) -> TokenRates:
        """The rates that a request was billed at. What was written costs what it did on average,
        where some of it lives for an hour."""
        if price is None:
            return _UNPRICED
        rates = price.rates_for(usage.context_tokens or usage.prompt_tokens)
        write = rates.write_5m
        if usage.ephemeral_1h_input_tokens and (whole := usage.cache_creation_input_tokens):
            hour = min(usage.ephemeral_1h_input_tokens, whole) / whole
            write += hour * (rates.write_1h - rates.write_5m)
        return cls(
            rates.read / _MILLION,
            write / _MILLION,
            rates.input / _MILLION,
            rates.output / _MILLION,
        )

    def fees(self, usage: Usage) -> float:
        """The USD for the searches of a request, nothing where no price is known."""
        return 0.0 if self.unpriced else usage.web_search_requests * SEARCH_USD

    def amount(self, read: float, written: float, fresh: float, output: float = 0.0) -> Amount:
        """The amount of so many tokens of each class."""
        own_read, own_written, own_fresh, own_output, unpriced = self
        return Amount(
            read,
            written,
            fresh,
            output,
            unpriced and read + written + fresh + output,
            read * own_read,
            written * own_written,
            fresh * own_fresh,
            output * own_output,
        )


_UNPRICED: Final = TokenRates(0.0, 0.0, 0.0, 0.0, 1.0)


def merge(into: dict[str, Amount], rows: Mapping[str, Amount]) -> None:
    """Add rows to those of the same name."""
    for name, amount in rows.items():
        into.setdefault(name, Amount()).add(amount)

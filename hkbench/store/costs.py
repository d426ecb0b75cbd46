"""What replies cost by the price that a run keeps, and what a run has spent so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from hkbench.records import (
    AdviceKey,
    CallKey,
    Price,
    Usage,
)

PER = 1_000_000  #: tokens that a price is for
DIGITS = 9  #: decimals of a sum, beyond which it shows the rounding of its floats


def cost_of(usage: Usage, price: Price | None) -> float | None:
    """Return the money for one reply. `None` where the price is not known, or the service did not say input or output.

    Cached tokens that it did not tell of are taken as not cached.
    """
    if price is None or usage.input is None or usage.output is None:
        return None
    rates = price.rates
    cached = min(usage.cached_input or 0, usage.input)
    cheaper = rates.input if rates.cached_input is None else rates.cached_input
    return ((usage.input - cached) * rates.input + cached * cheaper + usage.output * rates.output) / PER


def money(value: float, currency: str | None) -> str:
    """Return "12.35 USD" or "0.00123 USD": two decimals, below 1 three digits."""
    figure = f"{value:,.2f}" if value >= 1 or value == 0 else f"{value:.3g}"
    return figure if currency is None else f"{figure} {currency}"


@dataclass(frozen=True)
class _Spent:
    tokens: int | None
    cost: float | None


@dataclass
class Spending:
    """The model calls of a run: a reply that is told of twice counts once, a replayed one costs nothing."""

    price: Price | None
    judge_price: Price | None = None
    calls: int = 0
    tokens: int = 0  #: input and output, of the replies that said both
    silent: int = 0  #: replies that did not say
    known_cost: float = 0.0
    unpriced: int = 0  #: replies whose cost is not known
    _replies: dict[CallKey, _Spent | None] = field(default_factory=dict)
    _most_tokens: int | None = None  #: of one reply
    _most_cost: float | None = None

    def take(self, key: CallKey, usage: Usage, replayed: bool) -> None:
        """Count one reply."""
        self._count(self._replies.get(key), -1)
        self._replies[key] = None
        if replayed:
            return
        known = usage.input is not None and usage.output is not None
        price = self.judge_price if isinstance(key, AdviceKey) else self.price
        spent = _Spent((usage.input or 0) + (usage.output or 0) if known else None, cost_of(usage, price))
        self._replies[key] = spent
        self._count(spent, 1)
        if spent.tokens is not None:
            self._most_tokens = max(self._most_tokens or 0, spent.tokens)
        if spent.cost is not None:
            self._most_cost = max(self._most_cost or 0.0, spent.cost)

    def __contains__(self, key: CallKey) -> bool:
        """Tell whether the reply to a call is counted."""
        return key in self._replies

    @property
    def currency(self) -> str | None:
        """`None`: there is no price."""
        price = self.price or self.judge_price
        return None if price is None else price.currency

    def _count(self, spent: _Spent | None, sign: int) -> None:
        if spent is None:
            return
        self.calls += sign
        self.tokens += sign * (spent.tokens or 0)
        self.silent += sign * (spent.tokens is None)
        self.known_cost += sign * (spent.cost or 0.0)
        self.unpriced += sign * (spent.cost is None)

    @property
    def cost(self) -> float | None:
        """Cost of the replies whose cost is known; 0 without a model call, `None` when none is known."""
        return None if self.unpriced and self.unpriced == self.calls else round(self.known_cost, DIGITS)

    @property
    def cautious_cost(self) -> float | None:
        """Replies of unknown cost counted as the dearest of the others; `None` where there is no other."""
        if not self.unpriced:
            return self.known_cost
        return None if self._most_cost is None else self.known_cost + self.unpriced * self._most_cost

    @property
    def cautious_tokens(self) -> int | None:
        """Replies that did not say counted as the longest of the others; `None` where there is no other."""
        if not self.silent:
            return self.tokens
        return None if self._most_tokens is None else self.tokens + self.silent * self._most_tokens

"""Strategies: each decides what is tried next, and nothing else. A strategy is one file, and one name in `register`."""

from __future__ import annotations

from typing import Any

from hkbench.errors import UsageError
from hkbench.strategies.agents import Agents
from hkbench.strategies.base import Attempts, Options, Samples, Seeded, Strategy
from hkbench.strategies.graph import Graph
from hkbench.strategies.judge import Judge
from hkbench.strategies.reflect import Reflect
from hkbench.strategies.staged import Staged

STRATEGIES: dict[str, Strategy[Any]] = {}  #: by name, the default first


def register(*strategies: Strategy[Any]) -> None:
    """Offer strategies as --strategy NAME."""
    STRATEGIES.update({strategy.name: strategy for strategy in strategies})


def find_strategy(name: str) -> Strategy[Any]:
    """Return the strategy of this name. Raises UsageError where none is registered."""
    if name not in STRATEGIES:
        raise UsageError(f"there is no strategy {name}: register it, or name one of {', '.join(STRATEGIES)}")
    return STRATEGIES[name]


register(Reflect(), Judge(), Staged(), Graph(), Agents())

__all__ = [
    "STRATEGIES",
    "Agents",
    "Attempts",
    "Graph",
    "Judge",
    "Options",
    "Reflect",
    "Samples",
    "Seeded",
    "Staged",
    "Strategy",
    "find_strategy",
    "register",
]

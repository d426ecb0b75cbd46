"""Strategies: coroutines over a lab. Each decides what to ask next, and nothing else."""

from hkbench.strategies.reflect import reflect

STRATEGIES = {"reflect": reflect}

__all__ = ["STRATEGIES", "reflect"]

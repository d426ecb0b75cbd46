"""Schedules builds (on CPU cores) and measurements (one at a time per device) side by side."""

from hkbench.engine.evaluator import Evaluated, Evaluator

__all__ = ["Evaluated", "Evaluator"]

"""Schedules builds (on CPU cores) and measurements (one at a time per device) side by side."""

from hkbench.engine.build_evaluator import BuildEvaluator
from hkbench.engine.evaluator import Evaluated, Evaluator
from hkbench.engine.protocol import Evaluating

__all__ = ["BuildEvaluator", "Evaluated", "Evaluating", "Evaluator"]

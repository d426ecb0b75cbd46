"""Schedule builds (on CPU cores) and measurements (one timed at a time per device) side by side."""

from hkbench.engine.completion import EvaluationResult
from hkbench.engine.evaluator import LocalEvaluator
from hkbench.engine.protocol import Evaluator

__all__ = ["EvaluationResult", "Evaluator", "LocalEvaluator"]

"""Schedule builds (on CPU cores) and measurements (one at a time per device) side by side."""

from hkbench.engine.evaluator import EvaluationResult, LocalEvaluator
from hkbench.engine.protocol import Evaluator

__all__ = ["EvaluationResult", "Evaluator", "LocalEvaluator"]

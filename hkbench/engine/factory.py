"""The evaluator that commands take: replace it here and every command of this process takes the other one."""

from __future__ import annotations

from hkbench.engine.evaluator import LocalEvaluator

local_evaluator: type[LocalEvaluator] = LocalEvaluator

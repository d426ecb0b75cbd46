"""A whole run: the plan, the problems side by side, the end."""

from hkbench.batch.plan import RunPlan, make_plan
from hkbench.batch.run import Outcome, run_batch

__all__ = ["Outcome", "RunPlan", "make_plan", "run_batch"]

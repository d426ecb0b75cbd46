"""What a strategy works with: prompts, generations, verdicts, hints. Everything that it does is recorded."""

from hkbench.lab.lab import Lab, Plan
from hkbench.lab.samples import Sample, best_of
from hkbench.lab.stop import Stop

__all__ = ["Lab", "Plan", "Sample", "Stop", "best_of"]

"""What a strategy works with: prompts, generations, verdicts, hints. Everything that it does is recorded."""

from hkbench.lab.flight import Flight
from hkbench.lab.lab import Lab
from hkbench.lab.samples import Ask, Attempt, Proposal, Sample, best_of, rank, ranked
from hkbench.lab.stop import Stop

__all__ = ["Ask", "Attempt", "Flight", "Lab", "Proposal", "Sample", "Stop", "best_of", "rank", "ranked"]

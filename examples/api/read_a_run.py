"""Print the failures of a run by attempt, and each sample's speed-up with its interval.

python examples/api/read_a_run.py RESULTS
"""

import sys

import hkbench

run = hkbench.load_run(sys.argv[1])
print(run.config.model, run.config.strategy.name, run.complete)
print(run.samples.groupby(["attempt", "status"]).size())
print(run.samples[["problem", "attempt", "sample", "speedup", "low", "high"]].to_string(index=False))

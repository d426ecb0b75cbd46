"""Run a problem on recorded replies, without a model, and print what came of it.

python examples/api/run_a_batch.py REPLIES RESULTS
"""

import sys

import hkbench

replies, results = sys.argv[1:]
run = hkbench.run(
    {"numbers": 4, "device": "cpu", "samples": 1, "attempts": 1, "trials": 2, "timing-runs": 5, "replay": replies},
    results=results,
)
print(run.complete)
print(run.problems[["problem", "outcome"]].to_string(index=False))

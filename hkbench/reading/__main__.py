"""Print docs/rules.md, which scripts/docs.py writes."""

from __future__ import annotations

import sys

from hkbench.reading.rules import table
from hkbench.records import DEMANDS, Rule

HEAD = """# Rules

What a candidate can be refused for although nothing it computes is wrong, what KernelBench asks in
its place, and the one change by which it would pass. A verdict that fails by one of these names the
rule, the change and, where the file or a traceback tells it, the line; so does the next prompt.

`--rules kernelbench` judges by KernelBench's own contract, as `src/kernelbench/eval.py` has it
(commit 423217d). What it does not ask for is then noted and not held against a candidate: the
verdict's `would_fail` names it, and how the trials of hkbench's rules end, which are made after
everything else. Run titles and reports say so. What keeps a time from being forged is the same
under both: clocks, ownership by track, fresh inputs in each timed call and the look at their
outputs, confinement, limits, static rules.

| | hkbench | kernelbench |
| --- | --- | --- |
| compared with | the reference in higher precision | eager PyTorch, by `torch.allclose` |
| error of an element | at most rtol * (abs(expected) + rms(expected)) | at most rtol * (1 + abs(got)) |
| tolerance | float32 1e-4, float16 5e-3, bfloat16 1.6e-2 | float32 1e-4, float16 and bfloat16 1e-2 |
| integers, booleans | exactly | by the tolerance of float32 |
| NaN | where the reference has it | never passes |
| inputs of trials | own, shifted, heavy-tailed, outliers; with planted extremes, but for the first | own |
| parameters | the reference's are loaded, and change | made under the same seed, and stay |

By hkbench's rules rounding alone may throw a few elements further off, at most one in 10,000 of a
large output: such an answer is right that is at most twice as far off as eager's, or within rtol of
the root mean square of the row, or of the line along another dimension, on which it lies.

"""

STATIC = """
## Static rules

A candidate is read before it runs: its Python by the syntax tree, with names followed through
imports, aliases and constants; the C++ in its strings preprocessed, with all branches of
conditionals, and parsed. What is found is advice beside the verdict. Only `hard` refuses a
candidate: no honest use of it exists. What the evaluator measures decides everything else.

This page is written by `scripts/docs.py`.

"""


def page() -> str:
    """Return the text of docs/rules.md."""
    return HEAD + demands() + STATIC + table()


def demands() -> str:
    """Return what each kind of failure refuses, as a table."""
    rows = [
        f"| `{demand.rule}` | `{kind}` | {demand.asks} | {demand.kernelbench or 'not asked'} | {demand.change} |"
        for kind, demand in sorted(DEMANDS.items(), key=lambda item: list(Rule).index(item[1].rule))
    ]
    head = "| rule | refused as | hkbench asks | kernelbench asks | the change |"
    return "\n".join([head, "| --- | --- | --- | --- | --- |", *rows]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())

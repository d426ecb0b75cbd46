#!/usr/bin/env python3
"""What gains of earlier runs are worth to a search whose moves a model makes, and what leaving weak ones out costs.

    python benchmarks/search_priors.py --seeds 200 --trained 60

The kernels are those of search_edits.py, of six classes (`Bottleneck`). That the kernels of a class share what moves
are worth there, and by which part, is an assumption: the table has none, half and all of it. Gains are learnt from
searches of 30 edits on kernels that are not among those reported. No hand-set weight takes part: the moves have names
of their own.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks.search_edits import MOVES, Edits
from hkbench.cli.arguments import positive
from hkbench.moves import Priors
from hkbench.records import Bottleneck, MoveGain
from hkbench.search import DEFAULTS, GraphSearch, Kind, Move, Size
from hkbench.stats import bootstrap_interval

FIRST_KERNEL = 1000
EDITS = 30
SHOWN = (5, 10, 20, 30)
CLASSES = tuple(Bottleneck)


class Classed(Edits):
    """A kernel of a class, whose moves are worth `shared` of what they are in the class, and else its own."""

    def __init__(self, kernel: int, shared: float, priors: Priors | None = None) -> None:
        super().__init__(kernel)
        self.waits_for = CLASSES[kernel % len(CLASSES)]
        draw = random.Random(self.waits_for)
        weights = [draw.gammavariate(1.0, 1.0) for _ in MOVES]
        scale = len(MOVES) / sum(weights)
        for name, weight in zip(MOVES, weights, strict=True):
            self._worth[name] = shared * scale * weight + (1.0 - shared) * self._worth[name]
        self._priors = priors or Priors()

    def moves(self, key: str) -> Sequence[Move]:
        weigh = self._priors.weight
        return [replace(move, prior=weigh(move.name, self.waits_for)) for move in super().moves(key)]


def search(space: Classed, seed: int, min_gain: float = 0.0) -> tuple[list[float], GraphSearch]:
    """Return the true log speed-up of the best after each edit, of at most `EDITS`, and the search."""
    searcher = GraphSearch(space, space.start(), seed=seed, constants=replace(DEFAULTS, min_gain=min_gain))
    curve: list[float] = []
    while len(curve) < EDITS or searcher.confirming:
        request = searcher.propose()
        if request is None:
            break
        searcher.tell(request, space.outcome(request))
        time = space.versions[searcher.best.key].time
        assert time is not None
        if request.kind is Kind.CONFIRM:
            curve[-1] = -math.log(time)
        else:
            curve.append(-math.log(time))
    return curve, searcher


def learnt(kernels: range, shared: float) -> Priors:
    """Return what searches on these kernels would leave."""
    found: list[MoveGain] = []
    for kernel in kernels:
        space = Classed(kernel, shared)
        _, searcher = search(space, kernel)
        for request, outcome in searcher.history:
            if outcome is None or request.kind is not Kind.MEASURE or request.move.size is not Size.SMALL:
                continue
            gain = next((e.gain for e in searcher.graph.nodes[request.parent].edges if e.child == outcome.key), 0.0)
            found.append(
                MoveGain(
                    move=request.move.name, bottleneck=space.waits_for, tried=1, failed=outcome.seconds is None,
                    gained=gain > 0.0, log_gain=max(0.0, gain),
                )
            )  # fmt: skip
    return Priors(found)


def after(curve: Sequence[float], edits: int) -> float:
    return curve[min(edits, len(curve)) - 1] if curve else 0.0


def row(name: str, runs: Sequence[Sequence[float]], without: Sequence[Sequence[float]]) -> str:
    """Return speed-ups after some edits, the edits made, and the ratio to the search without, after 10 and 30."""
    cells = [name, *(f"{math.exp(np.mean([after(curve, n) for curve in runs])):.2f}" for n in SHOWN)]
    cells.append(f"{np.mean([len(curve) for curve in runs]):.1f}")
    for edits in (10, EDITS):
        pairs = [after(ours, edits) - after(theirs, edits) for ours, theirs in zip(runs, without, strict=True)]
        found = bootstrap_interval(pairs, np.mean) if any(pairs) else None
        if found is None or found.low is None or found.high is None or found.low <= 0.0 <= found.high:
            cells.append("no difference" if found is not None else "")
        else:
            cells.append(f"x{math.exp(found.value):.3f} [{math.exp(found.low):.3f}, {math.exp(found.high):.3f}]")
    return f"| {' | '.join(cells)} |"


def table(shared: float, seeds: int, trained: int) -> str:
    kernels = range(FIRST_KERNEL, FIRST_KERNEL + seeds)
    priors = learnt(range(trained), shared)
    head = ["search", *(f"{n} edits" for n in SHOWN), "made of 30", "over the first, after 10", "after 30"]
    without = [search(Classed(kernel, shared), kernel)[0] for kernel in kernels]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|", row("without", without, without)]
    lines.append(row("learnt", [search(Classed(k, shared, priors), k)[0] for k in kernels], without))
    for percent in (1, 2, 5):
        least = math.log1p(percent / 100)
        pruned = [search(Classed(k, shared, priors), k, least)[0] for k in kernels]
        lines.append(row(f"learnt, none below {percent} %", pruned, without))
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=positive, default=200, metavar="N", help="kernels that are reported")
    parser.add_argument("--trained", type=positive, default=60, metavar="N", help="kernels that gains are learnt from")
    options = parser.parse_args()
    for shared in (0.0, 0.5, 1.0):
        print(
            f"What moves are worth is the class's by {shared:.0%}:\n\n{table(shared, options.seeds, options.trained)}"
        )


if __name__ == "__main__":
    main()

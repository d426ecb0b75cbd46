"""Several evaluations in flight, in simulated time: what is gained in throughput, and what the search loses by it.

Durations are drawn as those of real verdicts: a failure takes some seconds, a verdict 10 to 30. They are a state's own:
the same whoever measures it, and when. Nothing sleeps: the clock jumps to the next end.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.search_edits import Edits
from benchmarks.search_figures import AREA
from benchmarks.search_spaces import Recorded
from hkbench.records import Interval
from hkbench.search import Outcome, Request, Searcher
from hkbench.stats import bootstrap_interval

WORKERS = 4
FAILURE = (2.0, 6.0)  #: seconds of what does not compile or run
VERDICT = (10.0, 30.0)
SEQUENTIAL, BATCHES, ASYNCHRONOUS = "one at a time", f"batches of {WORKERS}", f"{WORKERS} in flight"
EDITS = 40  #: evaluations of a run on simulated edits: the budget of hkbench optimize
WAYS = (SEQUENTIAL, BATCHES, ASYNCHRONOUS)


@dataclass(frozen=True)
class Flown:
    """One run in simulated time. `curve`: how far the best had come after each evaluation; confirmations are some."""

    part: str
    case: str  #: space and seed: what ways are compared on
    way: str
    curve: list[float] = field(repr=False)
    seconds: float

    @property
    def area(self) -> float:
        return math.fsum(self.curve) / len(self.curve)

    @property
    def rate(self) -> float:
        return len(self.curve) / self.seconds


def fly(
    searcher: Searcher,
    outcome: Callable[[Request], Outcome],
    standing: Callable[[Searcher], float],
    case: str,
    evaluations: int,
    way: str,
) -> tuple[list[float], float]:
    """Return what `standing` says after each evaluation that the searcher is told of, and when the last one ended."""
    workers = 1 if way == SEQUENTIAL else WORKERS
    running: list[tuple[float, int, Request, Outcome]] = []  # by their ends, as a heap
    curve: list[float] = []
    now, begun = 0.0, 0
    while True:
        while len(running) < workers and begun < evaluations and (request := searcher.propose()) is not None:
            found = outcome(request)
            heapq.heappush(running, (now + duration(case, request, found), request.number, request, found))
            begun += 1
        if not running:
            return curve, now
        over = [heapq.heappop(running) for _ in range(len(running) if way == BATCHES else 1)]
        now = over[-1][0]
        for _, _, request, found in sorted(over, key=lambda one: one[1]):
            searcher.tell(request, found)
            curve.append(standing(searcher))


def duration(case: str, request: Request, found: Outcome) -> float:
    """Return the seconds that an evaluation takes: those of a state are the same whenever it is evaluated."""
    draw = random.Random(f"{case} {request.kind} {found.key}")
    return draw.uniform(*(FAILURE if found.seconds is None else VERDICT))


def on_space(make: Callable[..., Searcher], space: Recorded, seed: int, way: str) -> Flown:
    """Run on a recorded space; what counts is the share of the log way from the start to the optimum."""
    start = space.start(seed)
    assert start.seconds is not None
    whole = math.log(start.seconds / space.best)
    searcher = make(space, start, features=space.features(start.key), seed=seed)

    def share(searcher: Searcher) -> float:
        assert searcher.best.time is not None
        return 1.0 - (searcher.best.time - math.log(space.best)) / whole

    case = f"{space.name} {seed}"
    return Flown("recorded spaces", case, way, *fly(searcher, space.outcome, share, case, AREA, way))


def on_edits(make: Callable[..., Searcher], kernel: int, way: str) -> Flown:
    """Run on simulated edits; what counts is the true log speed-up of what was measured as the fastest."""
    space = Edits(kernel)
    searcher = make(space, space.start(), seed=kernel)

    def gained(searcher: Searcher) -> float:
        timed = [(node.time, node.key) for node in searcher.graph.nodes.values() if node.time is not None]
        time = space.versions[min(timed)[1]].time
        assert time is not None
        return -math.log(time)

    case = f"edits {kernel}"
    return Flown("simulated edits", case, way, *fly(searcher, space.outcome, gained, case, EDITS, way))


def parallel_table(runs: Sequence[Flown]) -> str:
    """Return a row for each part and way, and what it has over one evaluation at a time, run for run."""
    head = [
        "",
        "runs",
        "in flight",
        "evaluations a minute",
        "throughput over one at a time",
        "area under log best-so-far",
    ]
    lines = [f"| {' | '.join([*head, 'area lost'])} |", "| --- " * (len(head) + 1) + "|"]
    for part in dict.fromkeys(run.part for run in runs):
        base = {run.case: run for run in runs if run.part == part and run.way == SEQUENTIAL}
        for way in dict.fromkeys(run.way for run in runs if run.part == part):
            own = [run for run in runs if run.part == part and run.way == way]
            paired = [base[run.case] for run in own]
            cells = [part, str(len(own)), way, f"{60.0 * np.mean([run.rate for run in own]):.2f}"]
            rate, area = ratio(own, paired, lambda run: run.rate), ratio(own, paired, lambda run: run.area)
            cells.append("" if way == SEQUENTIAL else f"x{rate.value:.2f} [{rate.low:.2f}, {rate.high:.2f}]")
            cells.append(f"{np.mean([run.area for run in own]):.3f}")
            lost = f"{1.0 - area.value:.1%} [{1.0 - area.high:.1%}, {1.0 - area.low:.1%}]"
            cells.append("" if way == SEQUENTIAL else lost)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def ratio(ours: Sequence[Flown], theirs: Sequence[Flown], of: Callable[[Flown], float]) -> Interval:
    """Return the ratio of the means of a figure over pairs of runs."""
    pairs = np.array([[of(one), of(other)] for one, other in zip(ours, theirs, strict=True)])
    return bootstrap_interval(
        [float(row) for row in range(len(pairs))],
        lambda rows: float(pairs[rows.astype(int), 0].mean() / pairs[rows.astype(int), 1].mean()),
    )

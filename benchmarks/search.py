#!/usr/bin/env python3
"""The proving ground of the search: hkbench/search beside uniform sampling, greedy, a beam, and others' searchers.

    python benchmarks/search.py recorded --spaces FOLDER --seeds 50 --json runs.json
    python benchmarks/search.py recorded --spaces FOLDER --rivals --only "optuna TPE" --seeds 50 --json tpe.json
    python benchmarks/search.py tables runs.json tpe.json
    python benchmarks/search.py measured edits traps monotone
    python benchmarks/search.py parallel ablation [--spaces FOLDER]

recorded: every configuration of a kernel was measured once (tables NAME.csv.gz as those of AutoTuningAssociation's
benchmark_hub: the parameters, then the time); a state's neighbours are one parameter, one step. Spaces of cards in
VALIDATION were held back while most constants were chosen. measured: every state of a Triton kernel was measured once
(search_measured.py), and rules edit its source. edits: simulated edits (search_edits.py). traps: a move that
pays with a second one only. monotone: every step towards the optimum pays. parallel: several evaluations in flight, in
simulated time. ablation: parts of the search left out. These two are on recorded spaces where --spaces names them, else
on simulated edits. It takes one core; --rivals needs optuna and kernel-tuner, which hkbench does not depend on.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Protocol

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: small matrices, and one core of a shared machine
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks import search_ablation as parts
from benchmarks.search_ablation import Answering, Unmerged, ablation_table
from benchmarks.search_edits import Edits
from benchmarks.search_figures import AREA, Run, table
from benchmarks.search_measured import SHARE, load as load_measured, measured_table
from benchmarks.search_others import rivals
from benchmarks.search_parallel import WAYS, Flown, on_edits, on_space, parallel_table
from benchmarks.search_spaces import Recorded, load, monotone, traps
from hkbench.cli.arguments import positive
from hkbench.search import DEFAULTS, Beam, GraphSearch, Greedy, Kind, Searcher, Uniform
from hkbench.stats import bootstrap_interval
from hkbench.store.files import write_atomic

Make = Callable[..., Searcher]
PARTS = ("recorded", "measured", "edits", "traps", "monotone", "parallel", "ablation")
GREEDY = "greedy, restarts"
DEFAULT = "graph search"
VALIDATION = ("W6600", "W7800")
SEARCHERS: dict[str, Make] = {
    DEFAULT: GraphSearch,
    "uniform": Uniform,
    GREEDY: Greedy,
    "beam 4 x 4": Beam,
    "without surrogate": functools.partial(GraphSearch, surrogate=False),
    "PUCT, mean back-up, c = 0.3": functools.partial(
        GraphSearch, surrogate=False, learning=False, constants=replace(DEFAULTS, backup=None, puct=0.3)
    ),
    "one step only": functools.partial(
        GraphSearch, constants=replace(DEFAULTS, fresh_states=0, large_moves=0, initial=1)
    ),
}
#: On simulated edits, whose features are not known, the default is PUCT.
OF_EDITS: dict[str, Make] = {
    **{name: SEARCHERS[name] for name in (DEFAULT, "uniform", GREEDY, "beam 4 x 4")},
    "PUCT, mean back-up, c = 0.3": SEARCHERS["PUCT, mean back-up, c = 0.3"],
    "without learnt priors": functools.partial(GraphSearch, learning=False),
    "without large edits": functools.partial(GraphSearch, constants=replace(DEFAULTS, large_share=0.0)),
    "without widening": functools.partial(GraphSearch, constants=replace(DEFAULTS, widen=math.inf)),
}
FIRST_KERNEL = 1000  #: of those that are reported; constants were chosen on the kernels before
EDITS = 30  #: of a run on simulated edits
MAX_EDITS = 2 * EDITS  #: made in search of what greedy came to in the end
MAX_STEPS = 400  #: until a trap counts as not escaped
NEARLY = math.log(1.01)  #: what counts as the optimum there
SETTLED = 10  #: evaluations from which on one searcher may be called behind another


class Known(Answering, Protocol):
    """A space whose optimum is known."""

    best: float


def follow(
    searcher: Searcher, space: Known, evaluations: int, near: float = -1.0, answering: Answering | None = None
) -> list[float]:
    """Return log(best so far / optimum) after each evaluation, until it is at most `near`.

    `answering`: what the searcher goes through, where that is not the space itself.
    """
    curve: list[float] = []
    while len(curve) < evaluations and (request := searcher.propose()) is not None:
        searcher.tell(request, (answering or space).outcome(request))
        assert searcher.best.time is not None
        curve.append(searcher.best.time - math.log(space.best))
        if curve[-1] <= near:
            break
    return curve


def recorded(options: argparse.Namespace) -> list[Run]:
    """Run each searcher on each space and seed, and keep what is done as it is done."""
    spaces = loaded(options.spaces)
    others = rivals() if options.rivals else {}
    names = options.only or [*SEARCHERS, *others]
    if unknown := [name for name in names if name not in SEARCHERS and name not in others]:
        raise SystemExit(f"no searcher {', '.join(unknown)}: there are {', '.join([*SEARCHERS, *others])}")
    runs: list[Run] = []
    for name in names:
        for seed in range(options.seeds):
            for space in spaces:
                start = space.start(seed)
                assert start.seconds is not None
                if name in others:
                    curve = curve_of(space, start.seconds, others[name](space, seed, options.evaluations))
                else:
                    searcher = SEARCHERS[name](space, start, features=space.features(start.key), seed=seed)
                    curve = follow(searcher, space, options.evaluations)
                runs.append(Run(name, space.name, seed, math.log(start.seconds / space.best), curve))
            if options.json:
                write_atomic(options.json, json.dumps([asdict(run) for run in runs]))
        print(f"{name}: {options.seeds} seeds on {len(spaces)} spaces", file=sys.stderr, flush=True)
    return runs


def measured(seeds: int) -> str:
    """Return the tables of the Triton kernels: each search begins with the spec's own kernel."""
    spaces = load_measured()
    runs = []
    for name in (name for name in SEARCHERS if name != "one step only"):
        for space in spaces:
            start = space.measure(space.start)
            assert start.seconds is not None
            for seed in range(seeds):
                searcher = SEARCHERS[name](space, start, features=space.features(start.key), seed=seed)
                curve = follow(searcher, space, int(SHARE * len(space.seconds)))
                runs.append(Run(name, space.name, seed, math.log(start.seconds / space.best), curve))
    return measured_table(spaces, runs, DEFAULT)


def loaded(folder: Path) -> list[Recorded]:
    spaces = [load(path) for path in sorted(folder.glob("*.csv.gz"))]
    if not spaces:
        raise SystemExit(f"there is no NAME.csv.gz in {folder}")
    return spaces


def curve_of(space: Recorded, start: float, order: Sequence[tuple[int, ...]]) -> list[float]:
    best, curve = start, []
    for state in order:
        best = min(best, space.times[state] or math.inf)
        curve.append(math.log(best / space.best))
    return curve


def tables(runs: Sequence[Run]) -> str:
    """Return the table of all spaces, and one each of those that constants were chosen on and of the others."""
    kept = [run for run in runs if run.space.endswith(VALIDATION)]
    chosen = [run for run in runs if not run.space.endswith(VALIDATION)]
    parts = {"All spaces": runs, "Constants were chosen on these": chosen, "Held back": kept}
    return "\n".join(
        f"{title} ({', '.join(dict.fromkeys(run.space for run in part))}):\n\n{table(part, DEFAULT)}"
        for title, part in parts.items()
        if part
    )


def edit(make: Make, kernel: int, edits: int, merged: bool = True) -> tuple[list[float], int | None, int]:
    """Return the log speed-up of the best after each edit, after how many the search would stop, and confirmations."""
    own = Edits(kernel)
    space = own if merged else Unmerged(own)
    searcher = make(space, own.start(), seed=kernel)
    curve: list[float] = []
    stop = None
    while len(curve) < edits or searcher.confirming:
        request = searcher.propose()
        assert request is not None
        searcher.tell(request, space.outcome(request))
        time = own.versions[searcher.best.key.partition("|")[0]].time
        assert time is not None
        if request.kind is Kind.CONFIRM:
            curve[-1] = -math.log(time)
        else:
            curve.append(-math.log(time))
        if stop is None and searcher.stop and not searcher.confirming:
            stop = len(curve)
    return curve, stop, searcher.confirmations


def of_edits(seeds: int) -> str:
    """Return the table of simulated edits: the best after so many, and how many reach what greedy came to."""
    kernels = range(FIRST_KERNEL, FIRST_KERNEL + seeds)
    greedy = [edit(Greedy, kernel, MAX_EDITS)[0] for kernel in kernels]
    goal = [curve[EDITS - 1] for curve in greedy]
    reached = [first(curve, aim) for curve, aim in zip(greedy, goal, strict=True)]
    head = ["searcher", "5 edits", "10", "20", "30", "edits to greedy's final value, median", "over greedy's"]
    head += ["not in 60", "confirmations in 60", "stops after, of 30", "with of the log gain", "last gain, of 30"]
    lines = [f"| {' | '.join(head)} |", "| --- " * len(head) + "|"]
    for name, make in OF_EDITS.items():
        runs = [edit(make, kernel, MAX_EDITS) for kernel in kernels]
        needed = np.array([first(curve, aim) for (curve, _, _), aim in zip(runs, goal, strict=True)])
        ratio = median_ratio(needed, np.array(reached))
        stops = [min(stop or EDITS, EDITS) for _, stop, _ in runs]
        kept = sum(curve[n - 1] for (curve, _, _), n in zip(runs, stops, strict=True))
        cells = [name, *(f"{math.exp(np.mean([curve[n - 1] for curve, _, _ in runs])):.2f}" for n in (5, 10, 20, 30))]
        cells += [f"{np.median(needed):g}", ratio, f"{np.mean(needed > MAX_EDITS):.0%}"]
        cells += [f"{np.mean([again for _, _, again in runs]):.1f}", f"{np.mean(stops) / EDITS:.0%}"]
        cells += [f"{kept / sum(curve[EDITS - 1] for curve, _, _ in runs):.0%}"]
        cells += [f"{np.mean([first(curve, curve[EDITS - 1]) for curve, _, _ in runs]) / EDITS:.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def first(curve: Sequence[float], aim: float) -> int:
    """Return the evaluation after which a curve is at an aim; one more than all where it never is."""
    return next((number for number, value in enumerate(curve, 1) if value >= aim - 1e-9), len(curve) + 1)


def median_ratio(ours: Any, theirs: Any) -> str:
    """Return the ratio of the medians of paired counts; medians, for some never get there."""
    pairs = np.stack([ours, theirs], axis=1)
    found = bootstrap_interval(
        [float(row) for row in range(len(pairs))],
        lambda rows: float(np.median(pairs[rows.astype(int), 0]) / np.median(pairs[rows.astype(int), 1])),
    )
    return f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def of_landscapes(make_space: Callable[[int], Recorded], seeds: int) -> str:
    """Return the table of evaluations to within 1 % of the optimum, from the worst state."""
    needed: dict[str, list[int]] = {}
    behind: dict[str, list[float]] = {}
    names = [name for name in SEARCHERS if name != "one step only"]
    for seed in range(seeds):
        space = make_space(seed)
        start = space.measure((0,) * len(space.parameters))
        curves = {}
        for name in names:
            searcher = SEARCHERS[name](space, start, features=space.features(start.key), seed=seed)
            curves[name] = follow(searcher, space, MAX_STEPS, NEARLY)
        for name in names:
            needed.setdefault(name, []).append(first([-value for value in curves[name]], -NEARLY))
            behind.setdefault(name, []).append(furthest_behind(curves[name], curves[GREEDY]))
    lines = ["| searcher | evaluations to within 1 %, mean | median | over greedy's | behind greedy at worst, mean |",
             "| --- " * 5 + "|"]  # fmt: skip
    for name in names:
        ratio = median_ratio(np.array(needed[name]), np.array(needed[GREEDY]))
        worst = math.exp(float(np.mean(behind[name]))) - 1.0
        lines.append(
            f"| {name} | {np.mean(needed[name]):.1f} | {np.median(needed[name]):g} | {ratio} | {max(0.0, worst):.1%} |"
        )
    return "\n".join(lines) + "\n"


def furthest_behind(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the largest difference of two curves after the first evaluations; one that ended keeps its last value."""

    def at(curve: Sequence[float], number: int) -> float:
        return curve[min(number, len(curve) - 1)]

    return max(at(ours, number) - at(theirs, number) for number in range(SETTLED - 1, MAX_STEPS))


def parallel(options: argparse.Namespace) -> str:
    """Return the table of one evaluation at a time, of batches, and of several in flight."""
    runs: list[Flown] = []
    spaces = loaded(options.spaces) if options.spaces is not None else []
    for seed in range(options.seeds):
        if not spaces:
            runs += [on_edits(GraphSearch, FIRST_KERNEL + seed, way) for way in WAYS]
        for space in spaces:
            runs += [on_space(GraphSearch, space, seed, way) for way in WAYS]
    return parallel_table(runs)


def ablation(options: argparse.Namespace) -> str:
    """Return the tables of what parts are worth, on recorded spaces or on simulated edits."""
    if options.spaces is None:
        kernels = range(FIRST_KERNEL, FIRST_KERNEL + options.seeds)
        runs = [
            Run(name, "edits", kernel, 0.0, [-gain for gain in edit(make, kernel, EDITS, merged(name))[0]])
            for name, make in parts.OF_EDITS.items()
            for kernel in kernels
        ]
        return ablation_table(runs, DEFAULT, parts.ON_EDITS)
    spaces = loaded(options.spaces)
    tables = []
    for searchers, whole in ((parts.WITH_FEATURES, DEFAULT), (parts.OF_PUCT, parts.PUCT)):
        runs = [
            without(make, name, space, seed)
            for name, make in searchers.items()
            for seed in range(options.seeds)
            for space in spaces
        ]
        tables.append(ablation_table(runs, whole, parts.ON_SPACES))
    return "\n".join(tables)


def without(make: Make, name: str, space: Recorded, seed: int) -> Run:
    """Run a search that lacks a part."""
    start = space.start(seed)
    assert start.seconds is not None
    answering: Answering = space if merged(name) else Unmerged(space)
    searcher = make(answering, start, features=space.features(start.key), seed=seed)
    curve = follow(searcher, space, AREA, answering=answering)
    return Run(name, space.name, seed, math.log(start.seconds / space.best), curve)


def merged(name: str) -> bool:
    """Return whether states that are reached by two ways are one."""
    return name != parts.NO_TRANSPOSITIONS


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what",
        nargs="+",
        help="recorded, measured, edits, traps, monotone, parallel, ablation; or tables and the files of --json",
    )
    parser.add_argument("--spaces", type=Path, metavar="DIR", help="recorded spaces")
    parser.add_argument("--seeds", type=positive, default=50, metavar="N")
    parser.add_argument("--evaluations", type=positive, default=200, metavar="N", help="of a run on a recorded space")
    parser.add_argument("--rivals", action="store_true", help="optuna and kernel-tuner too, where installed")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these searchers")
    parser.add_argument("--json", type=Path, metavar="F", help="keep the curves of recorded spaces")
    return parser.parse_args()


def main() -> int:
    options = parse()
    if options.what[0] == "tables":
        print(tables([Run(**run) for name in options.what[1:] for run in json.loads(Path(name).read_text())]))
        return 0
    for what in options.what:
        if what == "recorded":
            if options.spaces is None:
                raise SystemExit("recorded needs --spaces DIR")
            print(tables(recorded(options)))
        elif what == "measured":
            print(measured(options.seeds))
        elif what == "edits":
            print(of_edits(options.seeds))
        elif what in ("parallel", "ablation"):
            print(parallel(options) if what == "parallel" else ablation(options))
        elif what in ("traps", "monotone"):
            print(of_landscapes(traps if what == "traps" else monotone, options.seeds))
        else:
            raise SystemExit(f"{what} is none of {', '.join(PARTS)}, tables")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

#!/usr/bin/env python3
"""How long a verdict takes, beside KernelBench's own evaluator on the same candidates, machine and run.

    export KERNELBENCH_DIR=...                       # a checkout; problems and evaluator are taken from it
    python benchmarks/verdicts.py --device cuda --time-limit 570 --problems 19 23 26 36 47 --json a.json
    python benchmarks/verdicts.py --device cuda --time-limit 570 --problems 1 4 42 89 94 --json b.json
    python benchmarks/verdicts.py --device cuda --time-limit 570 --cold --problems 1 42 19 --json c.json
    python benchmarks/verdicts.py --combine a.json b.json c.json

Both sides evaluate benchmarks/candidates/kernelbench_level1/ at the problems' own sizes: five correctness trials, a
hundred timed runs of candidate and reference each, or as many as `--timing-runs` says. KernelBench:
`eval_kernel_against_ref` (see kernelbench_verdict.py).
hkbench: track any, no profile. Two figures of each:

- one evaluation in a process that has imported torch: for KernelBench the call alone, in a fresh process that has
  made its CUDA context; for hkbench `LocalEvaluator.evaluate`, as a batch calls it, with the processes that it forks
  and their contexts;
- as processes, from start to end: kernelbench_verdict.py, and eval.py where `--processes` asks for it.

Without --cold the build is not counted. All candidates are built first, side by side: KernelBench's into its build
cache, where the measured call finds them (it still asks ninja, and loads them); hkbench builds in a private folder for
each verdict, so its candidates wait, loaded and frozen, until they are measured. Its seconds are those of the
evaluation without that wait and without the verdict's stage `build`, which is the call of `load_inline`; what was done
before the wait ran beside other builds. eval.py builds alone, some 50 s with nvcc, and its stage `build` is taken off.

With `--apart N` KernelBench evaluates N candidates at once: most of its time is spent on the host, a core for each of
its processes. hkbench evaluates one at a time, on two GPUs on the second meanwhile, on one GPU before, with nothing
beside it.

With --cold each side builds from nothing, one at a time (of KernelBench N with `--apart N`), and everything counts.
hkbench's precompiled headers are not there either. Such verdicts also give both sides' seconds without the
build, the call of `load_inline`.

Only verdicts that came to their end count: correct and timed. Medians over repeats. Exit code 0: a table was made;
1: no problem has figures of both sides; 69: no GPU, or none that KernelBench's evaluator accepts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.kernelbench_verdict import NO_GPU, NO_GPU_CODE, RUNS, TRIALS
from benchmarks.runs import Deadline, load_runs
from benchmarks.verdicts_figures import KERNELBENCH, Figure, failed, summary
from benchmarks.verdicts_sides import ROOT, KernelBench, Ours, TakingTurns, Task, repeated, settings
from hkbench.cli.arguments import positive, seconds
from hkbench.errors import HkbenchError
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, SizeSet
from hkbench.store.files import write_atomic

CANDIDATES = ROOT / "benchmarks" / "candidates" / "kernelbench_level1"
#: ReLU first, then softmax, GELU, a norm, a reduction, products with a matrix and a vector, pooling, a scan, a loss.
PROBLEMS = ("19", "23", "26", "36", "47", "1", "4", "42", "89", "94")
FACTS = ("device", "torch", "cores", "isolation", "trials", "timing_runs", "apart")
FIRST_GUESS = 100.0  #: seconds of both sides on one problem


class Record:
    """The figures so far: printed as they come, and written anew each time."""

    def __init__(self, path: Path | None, facts: dict[str, Any]) -> None:
        self._path = path
        self._facts = facts
        self.figures: list[Figure] = []
        say("; ".join(f"{key} {value}" for key, value in facts.items()))

    def add(self, figures: Sequence[Figure]) -> None:
        for figure in figures:
            build = f", {figure.build:.1f} s of it the build" if figure.build else ""
            words = figure.status if figure.complete else f"{figure.status}: {figure.reason[:400]}"
            how = "process" if figure.process else "call"
            say(f"{figure.evaluator:12} {figure.problem:36} {how:8} {figure.seconds:7.1f} s{build}; {words}")
        self.figures += figures
        if self._path is not None:
            plain = self._facts | {"figures": [figure.to_json() for figure in self.figures]}
            write_atomic(self._path, json.dumps(plain, indent=1) + "\n")


def say(text: str) -> None:
    print(text, flush=True)


async def run(options: argparse.Namespace, checkout: Path, deadline: Deadline) -> list[Figure]:
    order = repeated(chosen(options.problems, checkout), options.repeats)
    named = options.problems if options.processes == [] else options.processes or []
    processes = {task.problem.name for task in chosen(named, checkout)}
    with tempfile.TemporaryDirectory(prefix="hkbench-verdicts-") as folder:
        scratch = Path(folder)
        if options.cold:
            os.environ["XDG_CACHE_HOME"] = str(scratch / "cache")  # where hkbench would look for PCHs
        runs = options.timing_runs
        builds = max(len(order), os.cpu_count() or 1)
        evaluator = TakingTurns(DeviceKind(options.device), settings(runs), SizeSet.FULL, builds)
        evaluator.spares = bool(options.apart)
        async with evaluator:
            record = Record(options.json, about(evaluator, runs) | {"apart": options.apart})
            theirs = KernelBench(checkout, evaluator.device, scratch / "kernelbench", runs, options.apart or 1)
            ours = Ours(evaluator, scratch / "hkbench", runs)
            try:
                async with asyncio.timeout(deadline.left):
                    if options.apart:
                        await measure_apart(order, options.cold, evaluator.beside, theirs, ours, record, deadline)
                    else:
                        await measure(order, processes, options.cold, theirs, ours, record, deadline)
            except TimeoutError:
                say(f"the time limit of {options.time_limit:g} s is reached; what was under way is given up")
            finally:
                await ours.close()
    return record.figures


async def measure(
    order: Sequence[Task],
    processes: set[str],
    cold: bool,
    theirs: KernelBench,
    ours: Ours,
    record: Record,
    deadline: Deadline,
) -> None:
    """One verdict of each side after the other; `processes` names the problems for which eval.py is run too."""
    broken = {} if cold else await build_all(order, theirs, ours, deadline)
    for number, task in enumerate(order):
        name, started = task.problem.name, time.monotonic()
        if not deadline.allows(name):
            say(f"the time limit is near: {len(order) - number} of {len(order)} not done")
            return
        if name in broken:
            record.add([failed(KERNELBENCH, name, False, cold, 0.0, f"it was not built: {broken[name]}")])
        else:
            record.add(await theirs.evaluate(task, deadline.left, cold))
        record.add([await (ours.evaluate_cold(task) if cold else ours.evaluate(task))])
        if name in processes:
            record.add([await ours.evaluate_as_process(task, cold, deadline.left)])
        deadline.took(name, time.monotonic() - started)


async def measure_apart(
    order: Sequence[Task],
    cold: bool,
    beside: bool,
    theirs: KernelBench,
    ours: Ours,
    record: Record,
    deadline: Deadline,
) -> None:
    """All verdicts of each side: `beside` each other, else hkbench's and then KernelBench's."""
    broken = {} if cold else await build_all(order, theirs, ours, deadline)

    async def kernelbench(task: Task) -> None:
        record.add(await theirs.evaluate(task, None, cold))  # it waits for its turn: what is left then is not known yet

    async def hkbench() -> None:
        for task in order:
            record.add([await (ours.evaluate_cold(task) if cold else ours.evaluate(task))])

    for name, reason in broken.items():
        record.add([failed(KERNELBENCH, name, False, False, 0.0, f"it was not built: {reason}")])
    async with asyncio.TaskGroup() as group:  # at the time limit it waits until the processes of each have ended
        own = group.create_task(hkbench())
        if not beside:
            await own
        for task in order:
            if task.problem.name not in broken:
                group.create_task(kernelbench(task))


async def build_all(order: Sequence[Task], theirs: KernelBench, ours: Ours, deadline: Deadline) -> dict[str, str]:
    """Build everything for both sides at once; for which problems KernelBench's build failed, and why."""
    started = time.monotonic()
    say(f"building for {len(order)} verdicts of each side")
    for task in order:
        ours.start(task)
    once = {task.problem.name: task for task in order}
    async with asyncio.TaskGroup() as group:
        builds = {name: group.create_task(theirs.build(task, deadline.left)) for name, task in once.items()}
    failures = {name: build.result() for name, build in builds.items()}
    for task in order:
        if not await ours.built(task):
            say(f"hkbench: {task.name} came to its end before it was measured")
    say(f"built in {time.monotonic() - started:.0f} s")
    return {name: reason for name, reason in failures.items() if reason is not None}


def about(evaluator: TakingTurns, runs: int) -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "device": evaluator.device.name,
        "torch": evaluator.device.versions["torch"],
        "cores": len(os.sched_getaffinity(0)),
        "isolation": evaluator.isolation.level.value,
        "trials": TRIALS,
        "timing_runs": runs,
    }


def chosen(numbers: Sequence[str], checkout: Path) -> list[Task]:
    """Return the candidates of these problems, in this order."""
    tasks = []
    for number in numbers:
        code = next(iter(CANDIDATES.glob(f"{number}_*.py")), None)
        if code is None:
            raise SystemExit(f"there is no candidate for problem {number} in {CANDIDATES}")
        path = checkout / "KernelBench" / "level1" / code.name
        if not path.is_file():
            raise SystemExit(f"{path} is missing; KERNELBENCH_DIR has to name a checkout of KernelBench")
        tasks.append(Task(load_problem(path), code, 0))
    return tasks


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), metavar="N", help="numbers at level 1")
    parser.add_argument(
        "--timing-runs", type=positive, default=RUNS, metavar="N", help="of candidate and reference each"
    )
    parser.add_argument("--repeats", type=positive, default=1, metavar="N", help="verdicts of each side on each")
    parser.add_argument(
        "--processes", nargs="*", metavar="N", help="problems that eval.py evaluates too (no number: all)"
    )
    parser.add_argument(
        "--apart",
        type=positive,
        metavar="N",
        help="N verdicts of KernelBench at once; where there are two GPUs, one a side",
    )
    parser.add_argument("--cold", action="store_true", help="count the builds, each made alone and from nothing")
    parser.add_argument("--time-limit", type=seconds, metavar="S", help="end before S seconds are over")
    parser.add_argument("--json", type=Path, metavar="F", help="write the raw figures, anew after each verdict")
    parser.add_argument("--combine", type=Path, nargs="+", metavar="F", help="sum up these files and evaluate nothing")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    options = parse(words)
    if options.apart and options.processes is not None:
        raise SystemExit("--apart compares calls alone: leave out --processes")
    if options.combine:
        figures = [Figure.from_json(figure) for figure in load_runs(options.combine, FACTS)]
    elif options.device == "cpu":
        print(f"{NO_GPU}: on a CPU there is nothing to compare hkbench with", file=sys.stderr)
        return NO_GPU_CODE
    elif not os.environ.get("KERNELBENCH_DIR"):
        raise SystemExit("KERNELBENCH_DIR has to name a checkout of KernelBench: both sides take the problems from it")
    else:
        deadline = Deadline(options.time_limit, FIRST_GUESS)
        try:
            figures = asyncio.run(run(options, Path(os.environ["KERNELBENCH_DIR"]).resolve(), deadline))
        except HkbenchError as error:
            print(f"hkbench: {error}", file=sys.stderr)
            return error.exit_code
    text = summary(figures)
    print(f"\n{text}")
    return 0 if "geometric mean" in text else 1


if __name__ == "__main__":
    raise SystemExit(main())

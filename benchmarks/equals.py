#!/usr/bin/env python3
"""An A/A test: each reference as its own candidate, many times over; every speed-up ought to be 1.

    python benchmarks/equals.py --device cuda --verdicts 100 --seed 1 --time-limit 570 --json a.json
    python benchmarks/equals.py --device cuda --verdicts 100 --seed 2 --time-limit 570 --json b.json
    python benchmarks/equals.py --combine a.json b.json

Where KERNELBENCH_DIR names a checkout of KernelBench, its own timing function times the same equals in the same run,
after each verdict on the same problem (see kernelbench_timing.py). It states no interval; the one printed is the
normal 95 % interval of the ratio of means that a reader would make of its mean, standard deviation and number of
trials.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.equals_figures import Figure, of_means, of_verdict, schedule, summary
from benchmarks.runs import Deadline, add_evaluation_of_equals, load_runs
from hkbench.cli.arguments import chosen_sizes, device_kind, positive, seconds
from hkbench.cli.settings import evaluation_settings
from hkbench.device_kinds import model_of
from hkbench.engine import LocalEvaluator
from hkbench.errors import HkbenchError
from hkbench.evaluation.measure import rounds
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, Problem
from hkbench.registry import default_backend
from hkbench.store.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
#: One of each kind: elementwise, norm, reduction, matrix product, batched product, attention, convolution, pooling,
#: scan, and a loss, which is a softmax as well.
PROBLEMS = (1, 4, 9, 18, 22, 23, 28, 30, 32, 34)
KERNELBENCH_SECONDS = 300.0  #: limit of one answer


class KernelBench:
    """The process that times with KernelBench's function."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def time(self, problem: Problem, sizes: str) -> Figure:
        assert self._process.stdin is not None and self._process.stdout is not None
        started = time.perf_counter()
        request = json.dumps({"problem": str(problem.path.resolve()), "sizes": sizes}) + "\n"
        self._process.stdin.write(request.encode())
        line = await asyncio.wait_for(self._process.stdout.readline(), KERNELBENCH_SECONDS)
        if not line:
            raise SystemExit("kernelbench_timing.py ended; its message stands above")
        return of_means(problem.name, json.loads(line), time.perf_counter() - started)


@asynccontextmanager
async def kernelbench(kind: DeviceKind) -> AsyncIterator[KernelBench | None]:
    """None, and a line that says so, without a checkout."""
    checkout = os.environ.get("KERNELBENCH_DIR")
    if not checkout:
        print("KernelBench's timing is left out: KERNELBENCH_DIR does not name a checkout of it")
        yield None
        return
    script = str(ROOT / "benchmarks" / "kernelbench_timing.py")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, script, checkout, "--device", "cpu" if kind is DeviceKind.CPU else "cuda"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if os.environ.get("KERNELBENCH_VERBOSE") else asyncio.subprocess.PIPE,
        limit=1 << 22,
    )
    errors = asyncio.create_task(_last_words(process))
    try:
        yield KernelBench(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        if await process.wait():
            print(f"kernelbench_timing.py failed: {await errors}", file=sys.stderr)
        await errors


async def _last_words(process: asyncio.subprocess.Process) -> str:
    """Read what the process says of its progress, which would fill the pipe, and keep the end."""
    kept = b""
    while process.stderr is not None and (part := await process.stderr.read(1 << 16)):
        kept = (kept + part)[-2000:]
    return kept.decode(errors="replace")


async def evaluate(evaluator: LocalEvaluator, problem: Problem, folder: Path, runs: Sequence[int]) -> Figure:
    """Return the verdict on the reference as its own candidate."""
    code = folder / "code.py"
    code.write_text(problem.source + "\n\nModelNew = Model\n")
    started = time.perf_counter()
    try:
        evaluated = await evaluator.evaluate(problem, code, folder / "build", default_backend(evaluator.device.kind))
    except HkbenchError as error:
        return Figure("hkbench", problem.name, type(error).__name__, time.perf_counter() - started, str(error))
    assert evaluated.verdict is not None
    return of_verdict(evaluated.verdict, time.perf_counter() - started, runs)


async def run(options: argparse.Namespace) -> list[Figure]:
    deadline = Deadline(options.time_limit)
    problems = {problem.name: problem for problem in map(load_problem, problem_files(options.problems))}
    order = schedule(list(problems), options.verdicts, options.seed)
    wanted = options.verdicts if options.kernelbench_verdicts is None else options.kernelbench_verdicts
    settings = evaluation_settings(options)
    figures: list[Figure] = []
    async with LocalEvaluator(device_kind(options), settings, chosen_sizes(options)) as evaluator:
        facts = about(evaluator, options)
        print("; ".join(f"{key} {value}" for key, value in facts.items()), flush=True)
        runs = rounds(settings.timing_runs, model_of(evaluator.device.kind))
        done = 0
        async with kernelbench(evaluator.device.kind) as other:
            with tempfile.TemporaryDirectory(prefix="hkbench-") as folder:
                for number, name in enumerate(order):
                    if not deadline.allows(name):
                        print(f"the time limit of {options.time_limit:g} s is near")
                        break
                    started = time.monotonic()
                    added = [await evaluate(evaluator, problems[name], Path(folder), runs)]
                    if other is not None and number < wanted:
                        added.append(await other.time(problems[name], evaluator.sizes.value))
                    deadline.took(name, time.monotonic() - started)
                    figures += added
                    done += 1
                    tell(number, added)
                    if options.json:
                        write_atomic(options.json, json.dumps(facts | {"figures": [f.to_json() for f in figures]}))
        for what, times in Counter(evaluator.left_behind).most_common():
            print(f"{times} workers were replaced for what they left behind: {what}")
    print(f"{done} of {options.verdicts} verdicts done\n")
    return figures


def about(evaluator: LocalEvaluator, options: argparse.Namespace) -> dict[str, Any]:
    """Return what the figures depend on."""
    return {
        "device": evaluator.device.name,
        "torch": evaluator.device.versions["torch"],
        "sizes": evaluator.sizes.value,
        "isolation": evaluator.isolation.level.value,
        "timing_runs": options.timing_runs,
        "trials": options.trials,
        "seed": options.seed,
    }


def tell(number: int, figures: Sequence[Figure]) -> None:
    for figure in figures:
        words = figure.reason[:160]
        if figure.speedup is not None:
            words = f"{figure.speedup.value:.4f} [{figure.speedup.low:.4f}, {figure.speedup.high:.4f}]"
        print(f"{number + 1:4} {figure.evaluator:12} {figure.problem:32} {words}  {figure.seconds:.1f} s", flush=True)


def problem_files(names: Sequence[str]) -> list[Path]:
    """Files as they are; numbers among the project's own problems."""
    found = []
    for name in names:
        own = sorted((ROOT / "problems" / "level1").glob(f"{name}_*.py")) if name.isdecimal() else [Path(name)]
        if not own:
            raise SystemExit(f"there is no problem {name} in problems/level1")
        found += own
    return found


def combine(paths: Sequence[Path]) -> list[Figure]:
    """Return the figures of several runs of one machine."""
    facts = ("device", "torch", "sizes", "isolation", "timing_runs", "trials")
    return [Figure.from_json(figure) for figure in load_runs(paths, facts)]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=[str(number) for number in PROBLEMS], metavar="P",
                        help="numbers of the project's problems, or files")  # fmt: skip
    parser.add_argument("--verdicts", type=positive, default=200, metavar="N")
    parser.add_argument("--kernelbench-verdicts", type=int, metavar="N", help="the first N only (default: as many)")
    parser.add_argument("--seed", type=int, default=0, help="of the order of the verdicts")
    parser.add_argument("--time-limit", type=seconds, metavar="S", help="end before S seconds are over")
    parser.add_argument("--json", type=Path, metavar="F", help="write the raw figures, anew after each verdict")
    parser.add_argument("--combine", type=Path, nargs="+", metavar="F", help="sum up these files and evaluate nothing")
    add_evaluation_of_equals(parser)
    return parser.parse_args()


def main() -> int:
    options = parse()
    figures = combine(options.combine) if options.combine else asyncio.run(run(options))
    print(summary(figures) if figures else "no verdicts")
    return 0 if figures else 1


if __name__ == "__main__":
    raise SystemExit(main())

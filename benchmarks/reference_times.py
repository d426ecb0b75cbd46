#!/usr/bin/env python3
"""Evaluate each problem's own reference as its candidate (an A/A run) and print its time.

Shows that every problem loads, runs and is timed on this device, and how far from 1 the speed-up of equals comes out:

    python benchmarks/reference_times.py --device cuda --output references.json
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.runs import add_evaluation_of_equals
from hkbench.cli.arguments import chosen_sizes, device_kind
from hkbench.cli.settings import evaluation_settings
from hkbench.engine import LocalEvaluator
from hkbench.errors import HkbenchError
from hkbench.problems import chosen_problems
from hkbench.records import Problem, Verdict
from hkbench.registry import default_backend


async def evaluate(evaluator: LocalEvaluator, problem: Problem, folder: Path) -> Verdict:
    """Return the verdict on the reference itself."""
    code = folder / "code.py"
    code.write_text(problem.source + "\n\nModelNew = Model\n")
    backend = default_backend(evaluator.device.kind)
    evaluated = await evaluator.evaluate(problem, code, folder / "build", backend)
    assert evaluated.verdict is not None
    return evaluated.verdict


def line(verdict: Verdict, seconds: float) -> str:
    if verdict.speedup is None or verdict.baseline is None or verdict.candidate is None:
        assert verdict.failure is not None
        return f"{verdict.problem:42} {verdict.failure.kind}: {verdict.failure.message[:120]}"
    baseline, candidate = verdict.baseline.median.value * 1e3, verdict.candidate.median.value * 1e3
    return (
        f"{verdict.problem:42} {baseline:9.3f} ms  {candidate:9.3f} ms"
        f"  {verdict.speedup.value:6.3f} [{verdict.speedup.low:.3f}, {verdict.speedup.high:.3f}]"
        f"  {verdict.conditions.reference_precision:8} {seconds:6.1f} s"
    )


async def run(options: argparse.Namespace) -> int:
    numbers = ((options.first, options.last),)
    chosen = chosen_problems(options.problems, os.environ, level=options.level, numbers=numbers, match=options.match)
    problems = chosen.problems
    rows, failed = [], 0
    sizes = chosen_sizes(options)
    async with LocalEvaluator(device_kind(options), evaluation_settings(options), sizes) as evaluator:
        print(f"{evaluator.device.name}, torch {evaluator.device.versions['torch']}, {evaluator.sizes} sizes")
        print(f"{'problem':42} {'reference':>12}  {'as candidate':>12}  speed-up of equals      reference  verdict in")
        for problem in problems:
            started = time.perf_counter()
            try:
                with tempfile.TemporaryDirectory() as folder:
                    verdict = await evaluate(evaluator, problem, Path(folder))
            except HkbenchError as error:
                failed += 1
                print(f"{problem.name:42} {type(error).__name__}: {str(error)[:300]}", flush=True)
                continue
            seconds = time.perf_counter() - started
            failed += verdict.speedup is None
            print(line(verdict, seconds), flush=True)
            rows.append(verdict.model_dump(mode="json") | {"verdict_seconds": seconds})
    if options.output:
        options.output.write_text(json.dumps(rows))
    print(f"{len(problems) - failed} of {len(problems)} problems timed")
    return int(failed > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", type=int, nargs="?", default=1)
    parser.add_argument("last", type=int, nargs="?", default=40)
    parser.add_argument("--problems", type=Path)
    parser.add_argument("--level", type=int)
    parser.add_argument("--match")
    parser.add_argument("--output", type=Path)
    add_evaluation_of_equals(parser)
    return asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    raise SystemExit(main())

#!/usr/bin/env python3
"""Compare the evaluator's times of short kernels with the durations that Nsight Compute gives for them.

    python benchmarks/short_kernels.py --device cuda --json f.json

Each problem is one elementwise kernel of PyTorch, over as many float32 elements as take about 5, 20 and 100 us on an
H100. The evaluator times it as its own candidate; ncu (`gpu__time_duration.sum`, caches and clocks left alone) profiles
the same operator in a process of its own, after the same flush of the cache. The evaluator takes off what a call
without a kernel costs; ncu's duration holds the launch, so that of an empty kernel is taken off too. Exit code: 0 a
table was made, 1 a side has no figure.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.equals import evaluate
from benchmarks.runs import add_evaluation_of_equals
from hkbench.cli.arguments import chosen_sizes, device_kind
from hkbench.cli.settings import evaluation_settings
from hkbench.device_kinds import model_of
from hkbench.engine import LocalEvaluator
from hkbench.evaluation.measure import rounds
from hkbench.problems import load_problem

#: Elements that one kernel reads and writes.
ELEMENTS = (1_000_000, 5_000_000, 30_000_000)
LAUNCHES = 30
PROBLEM = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 3.0


def get_inputs():
    return [torch.randn({elements})]


def get_init_inputs():
    return []
"""
LAUNCHED = """\
import torch

from hkbench.protocol.device_stream import Flusher

x = torch.randn({elements}, device="cuda")
flush = Flusher(x.device, 2 * torch.cuda.get_device_properties(x.device).L2_cache_size, holds=False)
for _ in range({launches}):
    flush()
    x * 3.0
    torch.cuda._sleep(0)
torch.cuda.synchronize()
"""
#: The names of the kernel that is compared, and of the empty one.
WORK, EMPTY = "vectorized_elementwise_kernel", "spin_kernel"


def by_ncu(elements: int) -> tuple[list[float], list[float]]:
    """Return the durations of the kernel and of an empty one in seconds, the first half of the launches left out."""
    program = LAUNCHED.format(elements=elements, launches=LAUNCHES)
    command = ["ncu", "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw",
               "--print-units", "base", "--metrics", "gpu__time_duration.sum",
               sys.executable, "-c", program]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
    rows = list(csv.DictReader(lines))[1:]  # the first row holds the units
    # The flush's `fill_` is an elementwise kernel too: its functor names it.
    work = [_seconds(row) for row in rows if WORK in row["Kernel Name"] and "Fill" not in row["Kernel Name"]]
    empty = [_seconds(row) for row in rows if EMPTY in row["Kernel Name"]]
    if len(work) < LAUNCHES or len(empty) < LAUNCHES:
        names = sorted({row["Kernel Name"][:100] for row in rows})
        raise SystemExit(f"ncu gave {len(work)} and {len(empty)} launches: {names} {done.stderr[-500:]}")
    return work[-LAUNCHES // 2 :], empty[-LAUNCHES // 2 :]


def _seconds(row: dict[str, str]) -> float:
    return float(row["gpu__time_duration.sum"].replace(",", "")) * 1e-9


async def by_evaluator(options: argparse.Namespace, folder: Path) -> list[list[float]]:
    """Return the times of both sides of each problem in seconds, or nothing for one that was refused."""
    settings = evaluation_settings(options)
    times = []
    async with LocalEvaluator(device_kind(options), settings, chosen_sizes(options)) as evaluator:
        runs = rounds(settings.timing_runs, model_of(evaluator.device.kind))
        for elements in ELEMENTS:
            path = folder / f"{elements}_elementwise.py"
            path.write_text(PROBLEM.format(elements=elements))
            figure = await evaluate(evaluator, load_problem(path), folder, runs)
            if figure.speedup is None:
                print(f"{elements} elements: {figure.status}: {figure.reason}")
            times.append([second for side in figure.samples for second in side])
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, metavar="F", help="write the raw figures")
    add_evaluation_of_equals(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hkbench-") as folder:
        judged = asyncio.run(by_evaluator(options, Path(folder)))
    profiled = [by_ncu(elements) for elements in ELEMENTS]
    figures: list[dict[str, Any]] = []
    print("| elements | evaluator, us | ncu, us | empty kernel by ncu, us | difference, us | |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |")
    for elements, mine, (work, empty) in zip(ELEMENTS, judged, profiled, strict=True):
        figures.append({"elements": elements, "evaluator": mine, "ncu": work, "empty": empty})
        if mine:
            ours_us, ncu_us, empty_us = (median(times) * 1e6 for times in (mine, work, empty))
            off = ours_us - (ncu_us - empty_us)
            print(f"| {elements} | {ours_us:.2f} | {ncu_us:.2f} | {empty_us:.2f} | {off:+.2f} | {off / ncu_us:+.1%} |")
    if options.json:
        options.json.write_text(json.dumps(figures))
    return 0 if all(judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())

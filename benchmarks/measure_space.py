#!/usr/bin/env python3
"""Measure every state of the spaces of search_measured.py once, on the GPUs of this machine.

    python benchmarks/measure_space.py --out benchmarks/measured --card H100 --jobs 48 [NAME...]

First all states are built side by side, each run once and compared with the reference; then each GPU times a share of
the right ones, one after another, in drawn order, by the median of `triton.testing.do_bench`, which clears the L2 cache
between runs. A state that does not build, does not run or is wrong has no time.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import importlib.util
import io
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.search_measured import CHOICES, NarrowSpace, spec_of
from hkbench.cli.arguments import positive
from hkbench.specs import problem
from hkbench.store.files import write_atomic

TOLERANCE = {"torch.float16": 2e-2, "torch.bfloat16": 5e-2}  #: relative to the largest element; else 1e-3
WARM_MS, RUN_MS = 10, 40

Task = tuple[str, tuple[str, ...]]  #: the name of a space, a state


@cache
def space_of(name: str) -> NarrowSpace:
    return NarrowSpace(spec_of(name), CHOICES[name])


def imported(source: str, name: str) -> ModuleType:
    """Import a source from a file, for Triton reads what it compiles from there."""
    path = Path(tempfile.gettempdir()) / f"{name}_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py"
    path.write_text(source)
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@lru_cache(1)  # on the GPU, which many processes share
def expected_of(name: str) -> tuple[list[Any], Any]:
    """Return a problem's inputs and what its reference makes of them, on the GPU."""
    import torch

    torch.cuda.empty_cache()
    torch.manual_seed(0)
    module = imported(problem(spec_of(name)), f"problem_{name}")
    inputs = [value.cuda() if isinstance(value, torch.Tensor) else value for value in module.get_inputs()]
    with torch.no_grad():
        return inputs, module.Model(*module.get_init_inputs()).cuda()(*inputs)


def see_one_gpu(number: int) -> None:
    os.environ["CUDA_VISIBLE_DEVICES"] = str(number)


def model_of(task: Task) -> Any:
    name, texts = task
    return imported(space_of(name).source_of(texts), name).ModelNew().cuda()


def built(task: Task) -> str:
    """Build and run a state once; return what came of it."""
    import torch

    try:
        inputs, expected = expected_of(task[0])
        with torch.no_grad():
            got = model_of(task)(*inputs)
        allowed = TOLERANCE.get(str(expected.dtype), 1e-3) * expected.abs().max().item()
        off = (got.float() - expected.float()).abs().max().item()
        del got
        torch.cuda.empty_cache()
    except Exception as error:  # noqa: BLE001 - whatever a compiler raises: the state has no time
        return type(error).__name__
    return "right" if off <= allowed else "wrong"


def timed(tasks: Sequence[Task]) -> list[float]:
    """Return the seconds of each state, which was built before."""
    import torch
    from triton.testing import do_bench

    found = []
    for task in tasks:
        inputs, _ = expected_of(task[0])
        model = model_of(task)
        with torch.no_grad():
            milliseconds = do_bench(lambda: model(*inputs), warmup=WARM_MS, rep=RUN_MS, return_mode="median")  # noqa: B023
        found.append(milliseconds / 1000.0)
    return found


def pools(gpus: Sequence[int], workers: int) -> list[ProcessPoolExecutor]:
    """Return a pool for each GPU, whose processes see no other."""
    context = multiprocessing.get_context("spawn")
    return [ProcessPoolExecutor(workers, context, initializer=see_one_gpu, initargs=(gpu,)) for gpu in gpus]


def measure(tasks: Sequence[Task], gpus: Sequence[int], jobs: int) -> dict[Task, float | None]:
    """Return the seconds of each state, None where it has none."""
    begun = time.monotonic()
    building = pools(gpus, max(1, jobs // len(gpus)))
    asked = {task: building[place % len(gpus)].submit(built, task) for place, task in enumerate(tasks)}
    came = {task: future.result() for task, future in asked.items()}
    for pool in building:
        pool.shutdown()
    names = list(dict.fromkeys(name for name, _ in tasks))
    for name in names:
        said = Counter(what for (of, _), what in came.items() if of == name)
        print(f"{name}: {dict(said)}", flush=True)
    print(f"built in {time.monotonic() - begun:.0f} s", flush=True)
    right = [task for task in tasks if came[task] == "right"]
    random.Random(0).shuffle(right)
    right.sort(key=lambda task: names.index(task[0]))  # a problem's inputs are made once
    seconds: dict[Task, float | None] = dict.fromkeys(tasks)
    timing = pools(gpus, 1)
    shares = [right[place :: len(gpus)] for place in range(len(gpus))]
    answers = [pool.submit(timed, share) for pool, share in zip(timing, shares, strict=True)]
    for share, answer in zip(shares, answers, strict=True):
        seconds.update(zip(share, answer.result(), strict=True))
    print(f"timed after {time.monotonic() - begun:.0f} s", flush=True)
    return seconds


def table(space: NarrowSpace, rows: Iterable[tuple[tuple[str, ...], float | None]]) -> bytes:
    """Return the gzipped CSV of a space."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*space.labels, "seconds"])
    writer.writerows([*texts, "" if seconds is None else f"{seconds:.3e}"] for texts, seconds in rows)
    return gzip.compress(text.getvalue().encode(), mtime=0)


def main() -> None:
    """Write a table a space."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(CHOICES)} (default: all)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--card", required=True, help="the name of the GPUs, for the files' names")
    parser.add_argument("--gpus", default="0", help="their numbers, with commas between (default: 0)")
    parser.add_argument("--jobs", type=positive, default=os.cpu_count(), help="builds side by side (default: all CPUs)")
    options = parser.parse_args()
    if unknown := set(options.names) - set(CHOICES):
        parser.error(f"no space {', '.join(sorted(unknown))}: there are {', '.join(CHOICES)}")
    names = options.names or list(CHOICES)
    tasks = [(name, texts) for name in names for texts in space_of(name).all_states()]
    seconds = measure(tasks, [int(gpu) for gpu in options.gpus.split(",")], options.jobs)
    options.out.mkdir(parents=True, exist_ok=True)
    for name in names:
        rows = [(texts, seconds[name, texts]) for texts in space_of(name).all_states()]
        write_atomic(options.out / f"{name}_{options.card}.csv.gz", table(space_of(name), rows))


if __name__ == "__main__":
    main()

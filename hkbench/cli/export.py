"""hkbench export: a run in KernelBench's layout."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hkbench.cli.arguments import positive
from hkbench.cli.runs import only_one_of
from hkbench.errors import UsageError
from hkbench.report.kernelbench import (
    Exported,
    baseline_times,
    eval_results,
    exported,
    kernel_name,
    problem_number,
)
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.store.reader import RunView, read_run

DESCRIPTION = """Write a run as KernelBench's scripts write theirs, for its analysis and for other tools that read it.

DIR gets the kernels (level_L_problem_P_sample_S_kernel.py), eval_results.json, and baseline.json with this run's
times of the references, the baseline_file of their analysis script. Sample ids count from 0; hkbench_samples.json says
which attempt and sample each of them is. Times are means in milliseconds, as there; hkbench's speed-ups are of medians.
What hkbench refused is not correct there, and what it only built neither."""

_TAKEN = ("first", "best", "all")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("results", type=Path, metavar="RUN", help="the run folder")
    parser.add_argument("--kernelbench", type=Path, required=True, metavar="DIR", help="a new folder: runs/NAME there")
    parser.add_argument(
        "--samples",
        choices=_TAKEN,
        default="first",
        help="first: those of attempt 1, drawn from one prompt as theirs are; best: each problem's best as sample 0, "
        "the only one that their analysis reads; all: of every attempt, in order (default: first)",
    )
    parser.add_argument("--level", type=positive, metavar="N", help="where the run's problems have no level")


def run(options: argparse.Namespace) -> int:
    """Write the folder and say what is in it.

    Raises:
        UsageError: DIR is not empty, the level is not known, or a problem's name does not begin with a number.
    """
    view = read_run(RunPaths(only_one_of(options.results)))
    level = options.level or view.config.level
    if level is None:
        raise UsageError("the run's problems have no level, and KernelBench's names need one: give --level")
    _check_names(view)
    folder: Path = options.kernelbench
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder; name a new one")
    samples = exported(view, options.samples)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder, level, samples)
    print(_said(folder, level, samples))
    return 0


def _check_names(view: RunView) -> None:
    numbers: dict[int, str] = {}
    for name in view.config.problems:
        try:
            number = problem_number(name)
        except ValueError:
            raise UsageError(f"{name} does not begin with a number, which KernelBench's names need") from None
        if number in numbers:
            raise UsageError(f"{numbers[number]} and {name} have the same number, which KernelBench's names need")
        numbers[number] = name


def _write(folder: Path, level: int, samples: list[Exported]) -> None:
    for one in samples:
        if one.code is not None:
            write_atomic(folder / kernel_name(level, one), one.code)
    names = {
        kernel_name(level, one): one.key.model_dump()
        | {"kernel": one.code is not None, "judged": one.result is not None}
        for one in samples
    }
    _write_json(folder / "hkbench_samples.json", names)
    _write_json(folder / "baseline.json", baseline_times(samples, level))
    _write_json(folder / "eval_results.json", eval_results(samples))


def _write_json(path: Path, data: object) -> None:
    write_atomic(path, json.dumps(data, indent=4) + "\n")


def _said(folder: Path, level: int, samples: list[Exported]) -> str:
    kernels = sum(one.code is not None for one in samples)
    judged = [one.result for one in samples if one.result is not None]
    correct = sum(result["correctness"] for result in judged)
    where = folder.absolute()
    return (
        f"{folder}: {kernels} kernels, {len(judged)} results, {correct} correct\n"
        "in a checkout of KernelBench: python scripts/benchmark_eval_analysis.py "
        f"run_name={where.name} level={level} hardware=hkbench baseline=hkbench "
        f"eval_results_dir={where.parent} baseline_file={where / 'baseline.json'}"
    )

"""hkbench import: the kernels of KernelBench's scripts as recorded replies."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from hkbench.errors import InputMissing, UsageError
from hkbench.problems import find_problems, problems_root
from hkbench.shipped import batch_command
from hkbench.store.files import write_atomic
from hkbench.store.layout import ProblemPaths
from hkbench.store.sanitize import one_line

DESCRIPTION = """Take over kernels that KernelBench's scripts generated, to be judged here.

DIR is a run folder of theirs (runs/NAME), with level_L_problem_P_sample_S_kernel.py. REPLIES becomes a folder of
recorded replies: `hkbench run --replay REPLIES` evaluates each as the reply of a model, whatever their own results say,
and makes a run folder like any other. The command for it is printed. Of the problems from the first to the last that
DIR has, a sample without a kernel becomes a reply without code: their analysis counts it as failed too."""

_KERNEL = re.compile(r"level_(\d+)_problem_(\d+)_sample_(\d+)_kernel\.py")
_MODEL = re.compile(r"^model_name:[ \t]*(.+?)[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"`{3,}")
NO_KERNEL = "KernelBench's run folder has no kernel for this sample.\n"

Kernels = dict[tuple[int, int], Path]  #: by problem and sample, theirs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kernelbench", type=Path, required=True, metavar="DIR", help="a run folder of theirs")
    parser.add_argument("replies", type=Path, metavar="REPLIES", help="a new folder for the replies")
    parser.add_argument(
        "--problems",
        type=Path,
        metavar="DIR",
        help="the problems that they were generated for: a checkout of KernelBench (default: as hkbench run)",
    )


def run(options: argparse.Namespace) -> int:
    """Write the replies and say how to evaluate them.

    Raises:
        InputMissing: DIR holds no kernel, or a problem is not there.
        UsageError: REPLIES is not empty, or DIR has several levels.
    """
    level, kernels = find_kernels(options.kernelbench)
    numbers = range(min(problem for problem, _ in kernels), max(problem for problem, _ in kernels) + 1)
    root = problems_root(options.problems, os.environ)
    names = {problem.number: problem.name for problem in find_problems(root, level, numbers[0], numbers[-1])}
    absent = sorted({problem for problem, _ in kernels} - set(names))
    if absent:
        raise InputMissing(f"{root} has no problem {', '.join(map(str, absent))} in level {level}; name the problems")
    replies: Path = options.replies
    if replies.exists() and (not replies.is_dir() or any(replies.iterdir())):
        raise UsageError(f"{replies} is not an empty folder; name a new one")
    samples = 1 + max(sample for _, sample in kernels)
    missing = write_replies(replies, names, kernels, samples, model_of(options.kernelbench))
    print(f"{replies}: {len(kernels)} kernels of level {level} as replies of {len(names)} problems")
    if missing:
        print(f"without a kernel, and so replies without code: {', '.join(missing)}")
    where = [] if options.problems is None else ["--problems", str(options.problems)]
    fixed = ["--level", str(level), *where, "--samples", str(samples), "--attempts", "1", "--replay", str(replies)]
    command = [*batch_command().split(), str(numbers[0]), str(numbers[-1]), *fixed, "--results", "RESULTS"]
    print(f"to evaluate them: {shlex.join(command)}")
    return 0


def find_kernels(folder: Path) -> tuple[int, Kernels]:
    """Return the level and the kernels of a run folder of theirs."""
    if not folder.is_dir():
        raise InputMissing(f"{folder} is not a folder; name one below KernelBench's runs/")
    found = [(match, path) for path in sorted(folder.iterdir()) if (match := _KERNEL.fullmatch(path.name))]
    levels = sorted({int(match[1]) for match, _ in found})
    if not levels:
        raise InputMissing(f"{folder} has no level_L_problem_P_sample_S_kernel.py; name one below KernelBench's runs/")
    if len(levels) > 1:
        raise UsageError(f"{folder} has kernels of levels {', '.join(map(str, levels))}; one level at a time")
    return levels[0], {(int(match[2]), int(match[3])): path for match, path in found}


def write_replies(root: Path, names: Mapping[int, str], kernels: Kernels, samples: int, model: str) -> Sequence[str]:
    """Return one attempt of `samples` replies for each problem; returns the names of those that had no kernel."""
    missing: list[str] = []
    for number, name in sorted(names.items()):
        for index in range(samples):
            paths = ProblemPaths(root / name).sample(1, index + 1)  # theirs count from 0
            paths.root.mkdir(parents=True)
            kernel = kernels.get((number, index))
            if kernel is None:
                missing.append(f"{name} sample {index}")
            write_atomic(paths.response, NO_KERNEL if kernel is None else fenced(_text(kernel)))
            origin = {"imported_from": None if kernel is None else str(kernel.absolute())}
            write_atomic(paths.exchange, json.dumps({"model": model, "request": origin}, indent=2) + "\n")
    return missing


def fenced(source: str) -> str:
    """Return a reply whose only block is `source`; its fence is longer than any in there."""
    fence = "`" * (1 + max((len(found) for found in _FENCE.findall(source)), default=2))
    return f"{fence}python\n{source.rstrip()}\n{fence}\n"


def model_of(folder: Path) -> str:
    """Return the model that their generation_config.yaml names, else the folder."""
    try:
        found = _MODEL.search(_text(folder / "generation_config.yaml"))
    except FileNotFoundError:
        found = None
    name = one_line(found[1].strip("'\""), 200) if found else ""
    return name if name not in {"", "null", "None", "~"} else f"KernelBench run {folder.absolute().name}"


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")

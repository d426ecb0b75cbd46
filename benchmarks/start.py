#!/usr/bin/env python3
"""CPU seconds (user and system) that short commands take from start to end, beside a Python that imports all commands.

    python benchmarks/start.py                        # a minute on two cores
    python benchmarks/start.py --repeats 20 --json start.json

The run that `show`, `monitor --once` and `report` read has 8 problems with 10 samples each. Its prompts, replies and
verdicts are made by the batch's own code as in benchmarks/harness.py. The median of the repeats counts; the commands
take turns, so that a machine that slows down slows all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.harness import AtOnce, batch
from hkbench.cli.arguments import positive
from hkbench.cli.main import COMMANDS
from hkbench.problems import find_problems, problems_root
from hkbench.records import DeviceKind, EvaluationSettings, SizeSet
from hkbench.store.files import write_atomic

PROBLEMS = 8
ROOT = Path(__file__).resolve().parents[1]
EVERYTHING = "every command imported"
BARE = "a Python that does nothing"


def commands(run: Path) -> dict[str, list[str]]:
    """Name of each command, and its words."""
    python = [sys.executable]
    hkbench = [sys.executable, "-c", "import sys; from hkbench.cli.main import main; sys.exit(main())"]
    all_commands = "; ".join(f"import hkbench.cli.{command.module}" for command in COMMANDS.values())
    return {
        BARE: [*python, "-c", "pass"],
        "hkbench --help": [*hkbench, "--help"],
        "hkbench --version": [*hkbench, "--version"],
        "hkbench show --help": [*hkbench, "show", "--help"],
        "run_batch.py --help": [*python, str(ROOT / "run_batch.py"), "--help"],
        "hkbench show RUN": [*hkbench, "show", str(run)],
        "hkbench show RUN 1/1/1": [*hkbench, "show", str(run), "1/1/1"],
        "monitor.py --once RUN": [*python, str(ROOT / "monitor.py"), "--once", str(run)],
        "generate_report.py RUN": [*python, str(ROOT / "generate_report.py"), str(run)],
        EVERYTHING: [*python, "-c", all_commands],
    }


def cpu_seconds(words: Sequence[str]) -> float:
    """Run a command to its end; user and system time of it and of all that it waited for."""
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    with process:
        assert process.stderr is not None
        said = process.stderr.read()
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}: {said}")
    return usage.ru_utime + usage.ru_stime


async def make_run(folder: Path) -> None:
    """Record a run of PROBLEMS problems."""
    problems = tuple(find_problems(problems_root(None, {}), 1, 1, PROBLEMS))
    async with AtOnce(DeviceKind.CPU, EvaluationSettings(), SizeSet.CPU) as evaluator:
        await batch(evaluator, folder, problems, 1)


def measure(words: Mapping[str, Sequence[str]], repeats: int) -> dict[str, list[float]]:
    """CPU seconds of each command, `repeats` times, after one call of each that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in words}
    for turn in range(repeats + 1):
        for name, command in words.items():
            seconds = cpu_seconds(command)
            if turn:
                found[name].append(seconds)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=positive, default=5, metavar="N")
    parser.add_argument("--json", type=Path, metavar="F", help="write the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hkbench-start-") as scratch:
        run = Path(scratch, "run")
        asyncio.run(make_run(run))
        found = measure(commands(run), options.repeats)
    whole = median(found[EVERYTHING])
    print(f"{'':28} {'CPU, s':>7}  {'least':>6} {'most':>6}  of {EVERYTHING}")
    for name, seconds in found.items():
        share = median(seconds) / whole
        print(f"{name:28} {median(seconds):7.2f}  {min(seconds):6.2f} {max(seconds):6.2f}  {share:6.2f}")
    if options.json:
        write_atomic(options.json, json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

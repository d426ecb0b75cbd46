#!/usr/bin/env python3
"""How long a verdict on an emulated GPU takes, at the sizes that problems have for one.

    python benchmarks/emulated_times.py --json times.json                  # known answers, HIP replies; an hour
    python benchmarks/emulated_times.py 1,8 --arch gfx942 --json times.json  # some of them; known rows are kept
    python benchmarks/emulated_times.py --candidates DIR --json times.json   # HIP files of one's own, 19_ANY.py
    python benchmarks/emulated_times.py --json times.json --table docs/emulator_times.md --no-verdicts

Beside the seconds stand those of the processors: of all processes of the verdict, compilers apart. A machine without
other work takes about half of them on two cores, as far as the emulated device does the work.

Judged are examples/hipkittens, examples/hip and the first HIP replies of examples/replies/reflect.toml, which together
have a candidate for each problem. A verdict's seconds are those of `LocalEvaluator.evaluate`, as a batch calls it:
build, five trials, checks. Exit code 0: all were right; 1: some were not, or a verdict took more than `--limit`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hkbench.cli.arguments import seconds
from hkbench.engine import LocalEvaluator
from hkbench.llm.extract import extract
from hkbench.llm.replies import call_name, replies_in_file
from hkbench.problems import chosen_problems, constants_in_force, parse_numbers
from hkbench.problems.select import SHIPPED
from hkbench.records import DeviceKind, EvaluationSettings, Problem, SampleKey, SizeSet, Stage, Status, Verdict
from hkbench.store.files import write_atomic
from hkbench.toolchain.hipkittens import dialect_for

ROOT = Path(__file__).resolve().parents[1]
ARCHS = ("gfx942", "gfx950")
LOOK_SECONDS = 0.15
GOAL = 30.0  #: seconds of a verdict
REPLIES = ROOT / "examples" / "replies" / "reflect.toml"
ANSWERS = ROOT / "examples" / "hipkittens"
PLAIN = ROOT / "examples" / "hip"


@dataclass(frozen=True)
class Case:
    """A candidate for an architecture."""

    problem: Problem
    backend: str
    text: str


@dataclass(frozen=True)
class Row:
    """What became of it."""

    problem: str
    number: int
    sizes: str
    candidate: str  #: "hipkittens", "hip", or the folder of one's own
    arch: str
    status: str
    failure: str | None
    error_over_tolerance: float | None  #: the largest of all trials
    build: float  #: seconds
    seconds: float  #: of the whole verdict
    processors: float  #: seconds of all processes but the compilers


class Processors:
    """Counts what the processes below this one take of the processors, looking at them now and then."""

    def __init__(self) -> None:
        self._root = psutil.Process()
        self._before = dict(self._looked())
        self._after: dict[int, float] = {}
        self._done = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watch.join()

    @property
    def seconds(self) -> float:
        """All so far."""
        return sum(seconds - self._before.get(pid, 0.0) for pid, seconds in self._after.items())

    def _look(self) -> None:
        while not self._done.wait(LOOK_SECONDS):
            self._after.update(self._looked())

    def _looked(self) -> Iterator[tuple[int, float]]:
        for process in self._root.children(recursive=True):
            with suppress(psutil.Error):
                times = process.cpu_times()
                if process.name().startswith("python"):
                    yield process.pid, times.user + times.system


def cases(problems: Sequence[Problem], arch: str, own: Path | None) -> Iterator[tuple[str, Case]]:
    """Yield each candidate with the name that its rows have."""
    if own is not None:
        for problem in problems:
            for path in sorted(own.glob(f"{problem.number}_*.py")):
                yield own.name, Case(problem, "hip", path.read_text(encoding="utf-8"))
        return
    replies = replies_in_file(REPLIES, "hip")
    for problem in problems:
        answer = ANSWERS / dialect_for(arch) / f"{problem.name}.py"
        if answer.exists():
            yield "hipkittens", Case(problem, "hipkittens", answer.read_text(encoding="utf-8"))
        reply = replies.get(call_name(SampleKey(problem=problem.name, attempt=1, sample=1)))
        plain = PLAIN / f"{problem.name}.py"
        if reply is not None:
            yield "hip", Case(problem, "hip", extract(reply.text, None).source or "")
        elif plain.exists():
            yield "hip", Case(problem, "hip", plain.read_text(encoding="utf-8"))


async def row_of(evaluator: LocalEvaluator, case: Case, name: str, arch: str) -> Row:
    """Judge a candidate."""
    started = time.perf_counter()
    with Processors() as used, tempfile.TemporaryDirectory() as folder:
        code = Path(folder) / "code.py"
        code.write_text(case.text, encoding="utf-8")
        found = await evaluator.evaluate(case.problem, code, Path(folder) / "build", case.backend)
    assert found.verdict is not None
    return described(found.verdict, case.problem, name, arch, time.perf_counter() - started, used.seconds)


def described(verdict: Verdict, problem: Problem, name: str, arch: str, taken: float, processors: float) -> Row:
    """Return what the table says of a verdict."""
    errors = [trial.max_error_over_tolerance for trial in verdict.trials]
    sizes = constants_in_force(SizeSet.EMULATED, problem)
    return Row(
        problem=problem.name,
        number=problem.number,
        sizes=", ".join(f"{constant} {value}" for constant, value in sizes.items()),
        candidate=name,
        arch=arch,
        status=verdict.status.value,
        failure=f"{verdict.failure.kind}: {verdict.failure.message[:300]}" if verdict.failure else None,
        error_over_tolerance=max((error for error in errors if error is not None), default=None),
        build=sum(one.seconds for one in verdict.stages if one.stage is Stage.BUILD),
        seconds=taken,
        processors=processors,
    )


async def judge(options: argparse.Namespace, problems: Sequence[Problem], rows: dict[str, Row]) -> None:
    """Judge what there is, and keep the rows as they come."""
    for arch in options.arch or ARCHS:
        async with LocalEvaluator(
            DeviceKind(f"emulated:{arch}"), EvaluationSettings(run_timeout=options.run_timeout)
        ) as evaluator:
            for name, case in cases(problems, arch, options.candidates):
                row = await row_of(evaluator, case, name, arch)
                rows[f"{row.problem} {name} {arch}"] = row
                said = row.failure or f"{row.status}, error/tolerance {row.error_over_tolerance or 0.0:.3f}"
                taken = f"{row.seconds:6.1f} s, build {row.build:.1f}, processors {row.processors:.1f}"
                print(f"{taken}  {row.problem} {name} {arch}: {said}", flush=True)
                if options.json is not None:
                    write_atomic(options.json, json.dumps([asdict(one) for one in rows.values()], indent=1) + "\n")


def table(rows: Sequence[Row]) -> str:
    """Return the page: a line for each candidate, its seconds and, beside them, those without the build."""
    lines = [
        "# Seconds of a verdict on an emulated GPU",
        "",
        "Written by `benchmarks/emulated_times.py --table`: build, five trials (one with the checker, one with late "
        "delivery) and checks, at the sizes that each problem names for an emulated GPU (`EMULATED_SIZES`).",
        "",
        "| problem | changed sizes | candidate | arch | result | error/tolerance | seconds | build | processors |",
        "| --- | --- | --- | --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for row in sorted(rows, key=lambda one: (one.number, one.candidate, one.arch)):
        error = "-" if row.error_over_tolerance is None else f"{row.error_over_tolerance:.3f}"
        cells = (row.problem, row.sizes, row.candidate, row.arch, row.failure or row.status, error)
        lines.append(f"| {' | '.join(cells)} | {row.seconds:.1f} | {row.build:.1f} | {row.processors:.1f} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", metavar="PROBLEM", help="which problems (default: all)")
    parser.add_argument("--arch", action="append", choices=ARCHS, help="default: both")
    parser.add_argument("--candidates", type=Path, metavar="DIR", help="HIP files of one's own, named by number")
    parser.add_argument("--limit", type=seconds, default=GOAL, metavar="S", help="default: %(default)g")
    parser.add_argument(
        "--run-timeout", type=seconds, default=600.0, metavar="S", help="of a pass (default: %(default)g)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep the rows; those of other candidates stay")
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the rows as a page")
    parser.add_argument("--no-verdicts", action="store_true", help="judge nothing: only read --json")
    options = parser.parse_args()
    known = [] if options.json is None or not options.json.exists() else json.loads(options.json.read_text())
    rows = {f"{one['problem']} {one['candidate']} {one['arch']}": Row(**one) for one in known}
    if not options.no_verdicts:
        problems = chosen_problems(SHIPPED, os.environ, numbers=parse_numbers(options.numbers)).problems
        asyncio.run(judge(options, problems, rows))
    if options.table is not None:
        write_atomic(options.table, table(list(rows.values())))
    good = Status.EMULATED.value
    return int(any(row.status != good or row.seconds > options.limit for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())

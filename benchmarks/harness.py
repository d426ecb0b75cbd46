#!/usr/bin/env python3
"""What hkbench itself costs on a large run: recording, resuming, reporting and watching, without a model or an
evaluator.

    python benchmarks/harness.py                      # 10,000 samples, half a minute or two
    python benchmarks/harness.py --samples 1000 --json harness.json

A run is made by the batch's own code (lab, strategy, recorder, prompts) with a model that answers at once and an
evaluator that gives a recorded verdict at once: two thirds fail to build, the others are correct and slow, with a
hundred timed runs of each side. Then the same command is given again (resume), the report is written by
generate_report.py, and the monitor reads the folder and is refreshed: as a plain frame, and as its screen.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import io
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil
from rich.console import Console

from hkbench import __version__
from hkbench.batch import run_batch
from hkbench.batch.run import Batch
from hkbench.cli.arguments import positive
from hkbench.engine import LocalEvaluator
from hkbench.engine.completion import EvaluationResult
from hkbench.engine.evaluator import OnStage
from hkbench.lab.prompting import Prompter
from hkbench.llm.client import ALWAYS, Permit
from hkbench.monitor.live import Watch
from hkbench.problems import find_problems, problems_root
from hkbench.prompts import load_prompts
from hkbench.records import (
    Advice,
    AnyEvent,
    BackendName,
    CallKey,
    Conditions,
    DeviceKind,
    EvaluationSettings,
    Failure,
    FailureKind,
    Interval,
    Problem,
    Reply,
    RunConfig,
    RunFacts,
    SampleKey,
    SizeSet,
    Stage,
    StageTime,
    Status,
    Timing,
    Trial,
    Usage,
    Verdict,
    VerdictReached,
)
from hkbench.stats import median_interval
from hkbench.store.events import read_history
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.store.recorder import Recorder
from hkbench.store.resume import finished_problems
from hkbench.store.state import RunState
from hkbench.strategies import Reflect

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS, PER_ATTEMPT = 40, 10
RUNS = 100
SOURCE_LINES = 120
REFRESHES, EVENTS_BETWEEN = 50, 20
WIDTH, HEIGHT = 120, 40
MIB = 1 << 20


class AtOnce(LocalEvaluator):
    """The engine with its workers left out: every verdict is there before it is asked for."""

    async def evaluate(  # type: ignore[override]  # there are no build-only evaluations here
        self,
        problem: Problem,
        code: Path,
        _scratch: Path,
        _backend: BackendName,
        on_stage: OnStage | None = None,
        **_: object,
    ) -> EvaluationResult:
        for stage in (Stage.BUILD, Stage.LOAD, Stage.RUN, Stage.TIME):
            if on_stage is not None:
                on_stage(stage, None)
        await asyncio.sleep(0)
        return EvaluationResult(_verdict(problem, self, code))


def _verdict(problem: Problem, evaluator: LocalEvaluator, code: Path) -> Verdict:
    source = code.read_text()
    number = int(source.partition("# sample ")[2].partition("\n")[0])
    drawn = random.Random(number)
    conditions = Conditions(
        backend="cpp",
        device=DeviceKind.CPU,
        device_name=evaluator.device.name,
        sizes=SizeSet.CPU,
        versions=evaluator.device.versions,
        candidate_sha256=sha256(source.encode()).hexdigest(),
        problem_sha256=problem.sha256,
        isolation=evaluator.isolation,
        warnings=("the interval of the speed-up holds 1.0",),
    )
    stages = tuple(StageTime(stage=stage, seconds=drawn.random()) for stage in Stage)
    if number % 3:
        message = "candidate.cpp:12:5: error: 'foo' was not declared in this scope\n" * 20
        failure = Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message)
        return Verdict(
            problem=problem.name, status=Status.INCORRECT, failure=failure, stages=stages, conditions=conditions
        )
    baseline = tuple(drawn.gauss(1e-3, 2e-5) for _ in range(RUNS))
    candidate = tuple(drawn.gauss(1.3e-3, 2e-5) for _ in range(RUNS))
    return Verdict(
        problem=problem.name,
        status=Status.SLOW,
        trials=tuple(Trial(seed=drawn.getrandbits(63), passed=True) for _ in range(5)),
        baseline=Timing(samples=baseline, median=median_interval(baseline), clock="perf_counter", warmups=3),
        candidate=Timing(samples=candidate, median=median_interval(candidate), clock="perf_counter", warmups=3),
        speedup=Interval(value=1 / 1.3, low=0.75, high=0.79),
        stages=stages,
        conditions=conditions,
    )


class Talker:
    """A model that answers at once, each time with other code."""

    def __init__(self) -> None:
        self._count = 0

    async def complete(
        self,
        _key: CallKey,
        prompt: str,
        _form: type[Advice] | None = None,
        permit: Permit = ALWAYS,
        system: str | None = None,  # noqa: ARG002
    ) -> Reply:
        permit.begin()
        self._count += 1
        body = "\n".join(
            f"KERNEL_{line} = 'float y{line} = x[{line}] * {self._count}.0f;'" for line in range(SOURCE_LINES)
        )
        code = f"import torch\n\n# sample {self._count}\n{body}\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
        usage = Usage(input=len(prompt) // 4, output=len(code) // 3)
        return Reply(text=f"Here it is.\n```python\n{code}```\n", model="at once", usage=usage, seconds=1.0)

    async def close(self) -> None:
        """There is nothing to close."""


@dataclass
class Spent:
    """Seconds of one part: on the wall, and of this process's CPU."""

    wall: float = 0.0
    cpu: float = 0.0


@contextmanager
def clocked() -> Iterator[Spent]:
    spent = Spent()
    wall, cpu = time.perf_counter(), time.process_time()
    yield spent
    spent.wall, spent.cpu = time.perf_counter() - wall, time.process_time() - cpu


def resident() -> float:
    """MiB of this process."""
    gc.collect()
    return psutil.Process().memory_info().rss / MIB


async def batch(
    evaluator: LocalEvaluator, folder: Path, problems: tuple[Problem, ...], attempts: int
) -> tuple[Spent, float]:
    """Run or resume a batch; return its cost, and the memory at its end."""
    settings = EvaluationSettings()
    book = load_prompts(ROOT / "prompts")
    config = RunConfig(
        strategy=Reflect().record(Reflect.Options(exhaust=True)),
        problems=tuple(problem.name for problem in problems),
        problem_hashes=tuple(problem.sha256 for problem in problems),
        level=1,
        backend="cpp",
        device=DeviceKind.CPU,
        sizes=SizeSet.CPU,
        samples=PER_ATTEMPT,
        attempts=attempts,
        model="at once",
        prompts_sha256=book.sha256,
        evaluation=settings,
    )
    facts = RunFacts(started="2026-01-02T03:04:05Z", hkbench=__version__, versions={}, hardware={"device": "a CPU"})
    with clocked() as spent:
        recorder = Recorder(RunPaths(folder), lambda _event: None)
        try:
            resumed = recorder.begin(config, facts)
            prompter = Prompter(book, "cpp", evaluator, settings)
            before = RunState.after(read_history(recorder.paths.journal), config)
            finished = finished_problems(recorder.paths, before)
            runs = Batch(config, recorder, evaluator, Talker(), prompter, 8, finished=finished)
            await run_batch(runs, problems, resumed)
        finally:
            recorder.close()
    return spent, resident()


def report(folder: Path) -> Spent:
    """generate_report.py as a user runs it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run([sys.executable, str(ROOT / "generate_report.py"), str(folder)], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Spent(time.perf_counter() - started, cpu)


def _add_verdicts(paths: RunPaths, number: int) -> None:
    """What happens in the run between two looks: `EVENTS_BETWEEN` verdicts, of one problem."""
    problem = next(path.name for path in sorted(paths.root.iterdir()) if path.is_dir())
    events: list[AnyEvent] = [
        VerdictReached(
            time=time.time(),
            key=SampleKey(problem=problem, attempt=1, sample=sample % PER_ATTEMPT + 1),
            status=Status.SLOW, kind=None, stage=None, speedup=0.5 + number / 1000, seconds=1.0,
        )
        for sample in range(EVENTS_BETWEEN)
    ]  # fmt: skip
    with paths.journal.open("a") as journal:
        journal.writelines(event.model_dump_json() + "\n" for event in events)


def watched_plain(folder: Path) -> tuple[Spent, float]:
    """Return the first plain frame, and the median seconds of CPU of one more while the run goes on."""
    paths = RunPaths(folder)
    screen = Console(file=io.StringIO(), force_terminal=True, width=WIDTH, height=HEIGHT)
    with clocked() as first:
        watch = Watch(paths)
        watch.look()
        screen.print(watch.view(time.time(), HEIGHT))
    took = []
    for number in range(REFRESHES):
        _add_verdicts(paths, number)
        with clocked() as spent:
            watch.look()
            screen.print(watch.view(time.time(), HEIGHT))
        took.append(spent.cpu)
    return first, median(took)


async def watched(folder: Path) -> tuple[Spent, float]:
    """The same of the monitor's screen, without a terminal: from its start to the first full picture, and a refresh."""
    from hkbench.monitor.app import MonitorApp  # not above: textual's memory is not the batch's

    paths = RunPaths(folder)
    took = []
    with clocked() as first:
        app = MonitorApp([Watch(paths)], refresh=3600.0)
        running = app.run_test(size=(WIDTH, HEIGHT))
        pilot = await running.__aenter__()
        while app.state is None:
            await pilot.pause()
        await pilot.pause()
    try:
        for number in range(REFRESHES):
            _add_verdicts(paths, number)
            with clocked() as spent:
                app.look()
                await pilot.pause()  # until all is drawn and nothing is left to do
            took.append(spent.cpu)
    finally:
        await running.__aexit__(None, None, None)
    return first, median(took)


async def measure(samples: int, folder: Path) -> dict[str, float]:
    """Return the figures, by what they are."""
    problems = tuple(find_problems(problems_root(None, {}), 1, 1, PROBLEMS))
    attempts = max(1, samples // (PROBLEMS * PER_ATTEMPT))
    made = len(problems) * attempts * PER_ATTEMPT
    async with AtOnce(DeviceKind.CPU, EvaluationSettings(), SizeSet.CPU) as evaluator:
        await batch(evaluator, folder / "small", problems, 1)  # what is imported and cached once is not growth
        small = resident()
        ran, large = await batch(evaluator, folder / "run", problems, attempts)
        resumed, _ = await batch(evaluator, folder / "run", problems, attempts)
    reported = report(folder / "run")
    plain, frame = watched_plain(folder / "run")
    first, refresh = await watched(folder / "run")
    return {
        "samples": made,
        "CPU of a sample, ms": 1e3 * ran.cpu / made,
        "wall of a sample, ms": 1e3 * ran.wall / made,
        f"memory after {PROBLEMS * PER_ATTEMPT} samples, MiB": small,
        "memory after all, MiB": large,
        "resume, s": resumed.wall,
        "resume, CPU s": resumed.cpu,
        "report, s": reported.wall,
        "report, CPU s": reported.cpu,
        "monitor's first plain frame, s": plain.wall,
        "another plain frame, CPU ms": 1e3 * frame,
        "monitor's start, s": first.wall,
        "monitor's refresh, CPU ms": 1e3 * refresh,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=positive, default=10_000, metavar="N")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep the runs here (default: they are removed)")
    parser.add_argument("--json", type=Path, metavar="F", help="write the figures")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hkbench-harness-") as scratch:
        figures = asyncio.run(measure(options.samples, options.folder or Path(scratch)))
    for name, value in figures.items():
        print(f"{name:36} {value:10,.2f}")
    if options.json:
        write_atomic(options.json, json.dumps(figures, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

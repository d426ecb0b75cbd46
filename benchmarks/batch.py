#!/usr/bin/env python3
"""Throughput of a whole batch: how long GPUs are idle, verdicts per hour, and what more GPUs of one host bring.

    python benchmarks/batch.py --device cuda --time-limit 560 --json batch.json
    python benchmarks/batch.py --device cuda --gpus 1 2 4 --problems 1 20 --time-limit 560 --json scale.json
    python benchmarks/batch.py --device cpu --problems 1 4 --samples 2 -- --timing-runs 10

Replies for forty problems x three samples are written (replies.py says what they are, and which share is built), and
run_batch.py is started on them as a user would: --replay, one attempt, track `any`, without profiles of the slow (an
equal is "slow" every other time). Once for each number of GPUs, each on the first so many. The figures come from the
run's journal:

- a GPU is idle while no evaluation holds it, from the first measurement's begin to the last one's end, over all GPUs.
  An evaluation holds its GPU while contexts are made, inputs drawn and answers compared, too; how much of the time a
  kernel ran is the driver's utilisation, printed beside it (utilisation.py);
- `--gpus` with several numbers compares the runs: throughput, how long a verdict holds its GPU, and the times that were
  measured, each for the same candidates. Two of the three kinds of candidates are equals, whose speed-up is 1: "missed"
  counts the stated intervals that do not hold 1, beside whatever the neighbours did.

Where KERNELBENCH_DIR names a checkout of KernelBench, its batch evaluation is run on some of the same candidates,
evenly chosen, after the batches and on the first number of GPUs (kernelbench_batch.py says how), and scaled to an hour.
At least a quarter of --time-limit is kept for it. A batch that would take longer than its part is stopped as by Ctrl-C;
its figures are those of what was reached. What stands after `--` goes to run_batch.py.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import kernelbench_batch
from benchmarks.batch_figures import Judged, Run, kinds_of_verdicts, scaling, table
from benchmarks.kernelbench_batch import LIMIT, Outcome, Task, precision_of
from benchmarks.replies import Kind, write_replies
from benchmarks.runs import interruptible
from benchmarks.utilisation import Utilisation
from hkbench.cli.arguments import positive, seconds
from hkbench.llm.extract import extract
from hkbench.problems import find_problems
from hkbench.records import (
    DeviceKind,
    EvaluationFailed,
    Problem,
    RunClosed,
    SampleKey,
    Verdict,
    VerdictReached,
)
from hkbench.store.events import CorruptEntry, JournalTail, read_events
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run_file

ROOT = Path(__file__).resolve().parents[1]
PROBLEMS = ROOT / "problems"
BACKENDS = {DeviceKind.CUDA: "cuda", DeviceKind.ROCM: "hip", DeviceKind.CPU: "cpp"}
#: How a run is shown only some devices.
VISIBLE = {DeviceKind.CUDA: "CUDA_VISIBLE_DEVICES", DeviceKind.ROCM: "HIP_VISIBLE_DEVICES"}
STRIDE = 4
KERNELBENCH_SHARE = 0.25  #: of the time limit, at least
SHUTDOWN_SECONDS = 15.0
STOPPING_SECONDS = 60.0  #: after which a run that was told to stop is killed
USUAL_STOP = 10.0  #: what that takes
POLL_SECONDS, TELL_SECONDS = 0.5, 10.0


@dataclass
class Plan:
    """The batch, the same for every number of GPUs."""

    problems: Sequence[Problem]
    samples: int
    device: DeviceKind
    replies: Path
    kinds: dict[SampleKey, Kind]
    more: Sequence[str]

    def command(self, results: Path) -> list[str]:
        first, last = self.problems[0].number, self.problems[-1].number
        words = [sys.executable, str(ROOT / "run_batch.py"), str(first), str(last), "--problems", str(PROBLEMS)]
        words += ["--replay", str(self.replies), "--samples", str(self.samples), "--attempts", "1"]
        words += ["--device", self.device.value, "--backend", BACKENDS[self.device]]
        words += ["--track", "any", "--no-profile", "--display", "plain", "--results", str(results)]
        return [*words, *self.more]


def visible(device: DeviceKind, gpus: int) -> list[str]:
    """Return the first so many devices, as the environment names them, else by number; none on a CPU."""
    if device is DeviceKind.CPU:
        return []
    named = [name for name in os.environ.get(VISIBLE[device], "").split(",") if name]
    if named and len(named) < gpus:
        raise SystemExit(f"{VISIBLE[device]} names {len(named)} devices, fewer than {gpus}")
    return named[:gpus] or [str(number) for number in range(gpus)]


def environment(device: DeviceKind, gpus: int) -> dict[str, str]:
    """This process's, with the first so many devices, and with the programs beside this interpreter (ninja)."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    names = visible(device, gpus)
    return {**os.environ, "PATH": path} | ({VISIBLE[device]: ",".join(names)} if names else {})


def run_batch(plan: Plan, gpus: int, results: Path, limit: float | None) -> Run:
    """Return one run of the batch, stopped after `limit` seconds if it is not done by then."""
    log = results.with_suffix(".log")
    began = time.monotonic()
    names = visible(plan.device, gpus) if plan.device is DeviceKind.CUDA else []
    with Utilisation(names) as utilisation, log.open("wb") as output:
        process = subprocess.Popen(
            plan.command(results),
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment(plan.device, gpus),
            preexec_fn=interruptible,
        )
        try:
            follow(process, plan, gpus, RunPaths(results), began, limit)
        finally:
            stop(process)
    run = read(plan, gpus, results, time.monotonic() - began)
    if run.window is not None:
        run.utilisation = utilisation.shares(*run.window)
    if process.returncode != 0:
        words = log.read_text(errors="replace").splitlines()[-5:]
        print(f"the batch ended with {process.returncode}: " + "\n".join(words), flush=True)
    return run


def follow(
    process: subprocess.Popen[bytes], plan: Plan, gpus: int, paths: RunPaths, began: float, limit: float | None
) -> None:
    """Say how far the run is, until it ends or its time is over."""
    tail, done, told = JournalTail(paths.journal), 0, began
    while process.poll() is None:
        time.sleep(POLL_SECONDS)
        now = time.monotonic()
        done += sum(isinstance(event, VerdictReached) for event in tail.poll().events)
        if now - told >= TELL_SECONDS:
            told = now
            print(f"{gpus} GPUs, {now - began:5.0f} s: {done} of {len(plan.kinds)} verdicts", flush=True)
        if limit is not None and now - began > limit:
            print(f"the batch is stopped after {limit:.0f} s", flush=True)
            return


def stop(process: subprocess.Popen[bytes]) -> None:
    """As by Ctrl-C; what does not end so is killed, and its guards end the rest."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(STOPPING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def read(plan: Plan, gpus: int, results: Path, took: float) -> Run:
    """Return what stands in the run folder.

    Raises:
        SystemExit: the run had another number of devices than it should.
    """
    paths = RunPaths(results)
    if not paths.run.exists():
        return Run(gpus, len(plan.kinds), took, complete=False, judged=[])
    facts = read_run_file(paths).facts
    if (count := int(facts.hardware["count"])) != gpus:
        raise SystemExit(f"{gpus} GPUs were asked for, and the run had {count}")
    run = Run(gpus, len(plan.kinds), took, complete=False, judged=[], where=facts.hardware | facts.versions)
    print("; ".join(f"{name} {value}" for name, value in run.where.items()), flush=True)
    for event in read_events(paths.journal):
        if isinstance(event, CorruptEntry):
            continue
        if isinstance(event, VerdictReached):
            run.judged.append(judged(plan, paths, event))
        elif isinstance(event, EvaluationFailed):
            run.lost += 1
            print(f"not judged: {event.key.problem} {event.key.sample}: {event.message[:300]}", flush=True)
        elif isinstance(event, RunClosed):
            run.complete = event.complete
    return run


def judged(plan: Plan, paths: RunPaths, event: VerdictReached) -> Judged:
    key = event.key
    file = paths.problem(key.problem).sample(key.attempt, key.sample).result
    verdict = Verdict.model_validate_json(file.read_bytes())
    medians = [None if timing is None else timing.median.value for timing in (verdict.baseline, verdict.candidate)]
    failure = None if verdict.failure is None else verdict.failure.kind.value
    return Judged(key, plan.kinds[key], event.status.value, failure, event.turns, verdict.speedup, *medians)


def tasks(plan: Plan, count: int) -> list[Task]:
    """So many of the candidates, evenly chosen, for KernelBench; a reply without code has nothing to be evaluated.

    In an order in which the first few are spread over all problems and kinds too: the time may not suffice for all.
    """
    by_name = {problem.name: problem for problem in plan.problems}
    found = []
    for key, kind in plan.kinds.items():
        own = plan.replies / key.problem / "attempt_1" / f"sample_{key.sample}" / "response.txt"
        source = extract(own.read_text(), None).source
        if source is not None:
            name = f"{key.problem}/{key.sample}"
            reference = by_name[key.problem].source
            found.append(Task(name, reference, source, precision_of(key.problem), kind is Kind.WRITTEN))
    count = min(count, len(found))
    chosen = [found[int((number + 0.5) * len(found) / count)] for number in range(count)]
    return [task for first in range(STRIDE) for task in chosen[first::STRIDE]]


def beside(plan: Plan, checkout: Path, count: int, gpus: int, ends: float | None) -> Outcome:
    """KernelBench's evaluation, until the moment `ends` of the monotonic clock."""
    with Utilisation(visible(plan.device, gpus)) as utilisation:
        outcome = kernelbench_batch.evaluate_all(
            checkout,
            tasks(plan, count),
            gpus,
            environment(plan.device, gpus),
            lambda: LIMIT if ends is None else max(0.1, ends - time.monotonic()),
        )
    outcome.utilisation = utilisation.shares(outcome.begin, outcome.end)
    return outcome


def kernelbench_table(outcome: Outcome, run: Run | None) -> str:
    """KernelBench's figures, beside how long the same candidates held a GPU in the run."""
    holds = {} if run is None else {f"{key.problem}/{key.sample}": held for key, held in run.holds().items()}
    same = [holds[answer["name"]] for answer in outcome.answers if answer["name"] in holds]
    busy = ", ".join("-" if share is None else f"{share:.0%}" for share in outcome.utilisation) or "-"
    right = sum(bool(answer.get("correct")) for answer in outcome.answers)
    cells = [str(outcome.gpus), str(len(outcome.answers)), str(right), f"{outcome.build_seconds:.0f}"]
    cells += [f"{outcome.evaluation_seconds:.0f}", f"{outcome.per_hour or 0.0:.0f}", busy]
    cells += [_mean([answer["seconds"] for answer in outcome.answers]), f"{_mean(same)} ({len(same)})"]
    return (
        "| KernelBench: GPUs | verdicts | of them correct | builds before, s | evaluations, s "
        "| verdicts/h, builds not counted | driver's utilisation | a verdict, mean s "
        "| the same ones hold a GPU in hkbench, mean s (number) |\n"
        f"| {' | '.join(['---'] * 9)} |\n| {' | '.join(cells)} |"
    )


def _mean(values: Sequence[float]) -> str:
    return f"{fmean(values):.1f}" if values else "-"


def measure(options: argparse.Namespace, folder: Path) -> list[Run]:
    began = time.monotonic()
    ends = None if options.time_limit is None else began + options.time_limit - SHUTDOWN_SECONDS
    plan = make_plan(options, folder)
    checkout = os.environ.get("KERNELBENCH_DIR") if options.kernelbench_verdicts else None
    if plan.device is not DeviceKind.CUDA and checkout:
        print("KernelBench's evaluation is left out: it asks for CUDA", flush=True)
        checkout = None
    kept = KERNELBENCH_SHARE * options.time_limit if checkout and ends is not None else 0.0
    runs: list[Run] = []
    facts = {"problems": options.problems, "samples": options.samples, "more": options.more}
    outcome: Outcome | None = None
    numbers = [] if options.skip_batch else options.gpus
    for place, gpus in enumerate(numbers):
        limit = None
        if ends is not None:  # those to come take the time of as many GPUs as they have
            left = ends - kept - time.monotonic()
            limit = left / gpus / sum(1.0 / number for number in numbers[place:]) - USUAL_STOP
        runs.append(run_batch(plan, gpus, folder / f"run_{place + 1}_{gpus}", limit))
        save(options.json, facts, runs, outcome)
        print(f"\n{table(runs)}\n\n{kinds_of_verdicts(runs[-1])}\n", flush=True)
    if checkout:
        outcome = beside(plan, Path(checkout), options.kernelbench_verdicts, options.gpus[0], ends)
        save(options.json, facts, runs, outcome)
        print("\n" + kernelbench_table(outcome, runs[0] if runs else None) + "\n", flush=True)
    if len(runs) > 1:
        print(scaling(runs), flush=True)
    return runs


def make_plan(options: argparse.Namespace, folder: Path) -> Plan:
    device = DeviceKind(options.device)
    first, last = options.problems
    problems = find_problems(PROBLEMS, 1, first, last)
    if not problems:
        raise SystemExit(f"there is no problem from {first} to {last}")
    kinds = write_replies(folder / "replies", problems, options.samples, BACKENDS[device], options.written)
    counts = ", ".join(f"{sum(kind is one for kind in kinds.values())} {one}" for one in Kind)
    print(f"{len(kinds)} candidates: {counts}", flush=True)
    return Plan(problems, options.samples, device, folder / "replies", kinds, options.more)


def save(path: Path | None, facts: dict[str, Any], runs: Sequence[Run], outcome: Outcome | None) -> None:
    if path is not None:
        other = None if outcome is None else outcome.to_json()
        write_atomic(path, json.dumps(facts | {"runs": [run.to_json() for run in runs], "kernelbench": other}) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind.known()], required=True)
    parser.add_argument("--gpus", type=positive, nargs="+", default=[1], metavar="N", help="a run for each number")
    parser.add_argument("--problems", type=positive, nargs=2, default=[1, 40], metavar=("FIRST", "LAST"))
    parser.add_argument("--samples", type=positive, default=3, metavar="N")
    parser.add_argument("--written", type=int, metavar="N", help="at most N hand-written replies (default: all)")
    parser.add_argument("--kernelbench-verdicts", type=int, default=12, metavar="N", help="0: leave it out")
    parser.add_argument("--skip-batch", action="store_true", help="KernelBench's evaluation alone")
    parser.add_argument("--time-limit", type=seconds, metavar="S", help="end before S seconds are over")
    parser.add_argument("--json", type=Path, metavar="F", help="write all figures, anew after each run")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep the run folders here (default: removed)")
    parser.add_argument("more", nargs="*", help="more arguments of run_batch.py, after --")
    options = parser.parse_args()
    if options.device == DeviceKind.CPU and options.gpus != [1]:
        parser.error("a CPU is one device")
    if options.folder is not None and options.folder.exists() and any(options.folder.iterdir()):
        parser.error(f"{options.folder} is not empty")
    return options


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="hkbench-batch-") as scratch:
        folder = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        runs = measure(options, folder.resolve())
    return 0 if options.skip_batch or all(run.judged for run in runs) else 1


if __name__ == "__main__":
    raise SystemExit(main())

#!/usr/bin/env python3
"""What trust costs: the seconds of a verdict by stage and by part, and those of a runner, confined and not.

    python benchmarks/overhead.py --device cpu
    python benchmarks/overhead.py --device cuda --at-once 5 --json overhead.json

Each candidate is judged several times with and without confinement, in turn; the table shows medians. "All" is the sum
of the stages, so that neither waiting for a slot nor for the device is in it. Without confinement the runners keep
their limits and their guard only; that is arranged here and cannot be asked of the evaluator.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil

from hkbench.cli.arguments import add_device, chosen_sizes, device_kind, positive
from hkbench.cli.settings import add_evaluation, evaluation_settings
from hkbench.engine import LocalEvaluator, evaluator
from hkbench.engine.confinement import Cages, prefix, survey
from hkbench.errors import InputMissing
from hkbench.evaluation.link import RunnerLink
from hkbench.llm.extract import extract
from hkbench.llm.replies import replies_in_file
from hkbench.problems import load_problem
from hkbench.protocol.messages import Load
from hkbench.records import DeviceKind, Isolation, IsolationLevel, Problem, Protection, Verdict
from hkbench.registry import default_backend
from hkbench.sandbox.client import ForkServer
from hkbench.sandbox.environment import kept_environment, runner_environment
from hkbench.store.files import write_atomic

ROOT = Path(__file__).resolve().parents[1]
LEVEL = ROOT / "problems" / "level1"
REPLIES = ROOT / "examples" / "replies" / "reflect.toml"
CONFINED, FREE = "confined", "not confined"
EMPTY_CANDIDATE = "class ModelNew:\n    pass\n"


@dataclass(frozen=True)
class Case:
    """A candidate of a problem; `source` is its code."""

    problem: Problem
    name: str
    source: str


@dataclass(frozen=True)
class Row:
    """The seconds of one verdict: of its stages, and of the parts that evaluator_probe.py clocks."""

    case: str
    mode: str
    status: str
    stages: dict[str, float]
    parts: dict[str, dict[str, float]]

    @property
    def all(self) -> float:
        return sum(self.stages.values())


def cases(kind: DeviceKind, names: Sequence[str] | None) -> list[Case]:
    """PROBLEM:FILE pairs, a reply or Python; without any, what the project brings for the device."""
    if names:
        pairs = [(Path(problem), Path(file)) for problem, file in (name.split(":", 1) for name in names)]
    elif kind is DeviceKind.CPU:
        pairs = [(LEVEL / "4_RMSNorm_fp32.py", ROOT / "examples" / "candidates" / "fast.py")]
    else:
        problems = ("4_RMSNorm_fp32", "8_Linear_bias_GELU_fp32")
        replies = replies_in_file(REPLIES, "hip" if kind is DeviceKind.ROCM else "cuda")
        texts = [(problem, replies[f"{problem}/attempt_1/sample_1"].text) for problem in problems]
        return [Case(load_problem(LEVEL / f"{name}.py"), "reply", _extracted(text, name)) for name, text in texts]
    return [Case(load_problem(problem), file.stem, _source(file)) for problem, file in pairs]


def _source(file: Path) -> str:
    if not file.is_file():
        raise InputMissing(f"{file}: there is no such candidate")
    text = file.read_text()
    return text if file.suffix == ".py" else _extracted(text, file)


def _extracted(text: str, file: str | Path) -> str:
    found = extract(text, None)
    if found.source is None:
        raise InputMissing(f"{file}: {found.note}")
    return found.source


def unconfined() -> Isolation:
    return Isolation(
        level=IsolationLevel.LIMITS,
        layers=("guard",),
        holds=(Protection.LIMITS,),
        missing=("left out, to measure what confinement costs",),
    )


@contextmanager
def confinement(mode: str) -> Iterator[None]:
    """In which evaluators begin with all that works here, or with none of it."""
    if mode == CONFINED:
        yield
        return

    async def nothing() -> Isolation:
        return unconfined()

    with patch.object(evaluator, "survey", nothing):
        yield


class Probed(LocalEvaluator):
    """An evaluator whose workers note in a file what their parts take."""

    def __init__(self, notes: Path, *args: Any) -> None:
        super().__init__(*args)
        search = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        own = {"OMP_WAIT_POLICY": "PASSIVE", "PYTHONPATH": search, "PROBE_FILE": str(notes)}
        home = {"HOME": os.environ["HOME"]} if "HOME" in os.environ else {}
        self._workers = ForkServer("benchmarks.evaluator_probe", kept_environment() | own | home)


async def judged(evaluator: LocalEvaluator, case: Case, folder: Path) -> Verdict:
    folder.mkdir(parents=True, exist_ok=True)
    code = folder / "code.py"
    code.write_text(case.source)
    backend = default_backend(evaluator.device.kind)
    evaluated = await evaluator.evaluate(case.problem, code, folder / "build", backend)
    assert evaluated.verdict is not None
    return evaluated.verdict


async def rounds(
    evaluator: LocalEvaluator, notes: Path, case: Case, mode: str, number: int, scratch: Path
) -> list[Row]:
    """`number` verdicts at once: they build side by side, and the device is lent to one at a time."""
    notes.write_text("")
    verdicts = await asyncio.gather(*(judged(evaluator, case, scratch / str(place)) for place in range(number)))
    parts = _parts([json.loads(line) for line in notes.read_text().splitlines()])
    name = f"{case.problem.name} {case.name}"
    made = [
        Row(name, mode, _status(verdict), {time.stage.value: time.seconds for time in verdict.stages}, spent)
        for verdict, spent in zip(verdicts, parts, strict=True)
    ]
    for row in made:
        print(f"{row.case:44} {mode:13} {row.status:10} {row.all:7.2f} s", flush=True)
    return made


def _parts(lines: list[dict[str, Any]]) -> list[dict[str, dict[str, float]]]:
    """Of each evaluation, what its two workers noted, as they came to an end: of equal candidates any fits any."""
    nothing: dict[str, dict[str, float]] = {}
    loads, measures = (
        [line["parts"] for line in lines if line["worker"] == worker] for worker in ("loads", "measures")
    )
    return [
        {
            part: {key: sum(found[part][key] for found in both if part in found) for key in ("calls", "seconds")}
            for part in {**both[0], **both[1]}
        }
        for both in zip_longest(loads, measures, fillvalue=nothing)
    ]


def _status(verdict: Verdict) -> str:
    return verdict.status.value if verdict.failure is None else f"{verdict.status.value} ({verdict.failure.kind})"


async def measure(options: argparse.Namespace) -> tuple[dict[str, Any], list[Row]]:
    """Verdicts in both modes, in turn, so that a machine that changes meets both alike."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="hkbench-") as scratch:
        notes = {mode: Path(scratch, f"{mode}.jsonl") for mode in (CONFINED, FREE)}
        arguments = (device_kind(options), evaluation_settings(options), chosen_sizes(options))
        with confinement(CONFINED):
            confined = await Probed(notes[CONFINED], *arguments).__aenter__()
        try:
            with confinement(FREE):
                free = await Probed(notes[FREE], *arguments).__aenter__()
            try:
                facts = {"device": confined.device.name, "torch": confined.device.versions["torch"]}
                facts |= {"sizes": confined.sizes.value, "layers": ", ".join(confined.isolation.layers)}
                print("; ".join(f"{key} {value}" for key, value in facts.items()), flush=True)
                for case in cases(confined.device.kind, options.candidates):
                    left, pair = options.repeats, [(CONFINED, confined), (FREE, free)]
                    while left:
                        number = min(left, options.at_once)
                        left -= number
                        for mode, evaluator in pair:
                            rows += await rounds(evaluator, notes[mode], case, mode, number, Path(scratch, mode))
                        pair.reverse()
            finally:
                await free.__aexit__()
        finally:
            await confined.__aexit__()
    return facts, rows


async def runner_seconds(repeats: int) -> dict[str, dict[str, list[float]]]:
    """Of one runner that imports an empty candidate, by mode: until it has, until it is frozen, thawed, and ended."""
    found: dict[str, dict[str, list[float]]] = {}
    everything = await survey()
    for mode, isolation in ((CONFINED, everything), (FREE, unconfined())):
        server = ForkServer("hkbench.runner.main", kept_environment())
        server.start(prefix(isolation))
        try:
            server.wait_ready()
            with tempfile.TemporaryDirectory(prefix="hkbench-") as scratch:
                code = Path(scratch, "code.py")
                code.write_text(EMPTY_CANDIDATE)
                cages = Cages(isolation)
                one_runner(server, cages, code, Path(scratch, "first"))  # the first pays for cold files
                spent = [one_runner(server, cages, code, Path(scratch, str(n))) for n in range(repeats)]
        finally:
            server.close()
        found[mode] = {name: [each[name] for each in spent] for name in spent[0]}
    return found


def one_runner(server: ForkServer, cages: Cages, code: Path, folder: Path) -> dict[str, float]:
    """Return the steps of one runner's life, in seconds."""
    spent: dict[str, float] = {}
    wanted = Load(path=str(code), class_="ModelNew", capture=False, overrides={})
    folder.mkdir()
    (worker, channel), (asks, control) = socket.socketpair(), socket.socketpair()
    files = [os.memfd_create(name) for name in ("inbox", "outbox")]
    guard = {
        "limits": {"memory_bytes": psutil.virtual_memory().total},
        "folder": str(folder),
        "environment": runner_environment(folder),
        "cage": asdict(cages.cage(folder, str(code))),
    }
    try:
        with clock(spent, "forked, in its cage, candidate imported"):
            server.fork([control.fileno(), channel.fileno(), *files], guard)
            channel.close()
            control.close()
            link = RunnerLink(worker, asks)
            answer = link.request(wanted, 60.0)
        assert answer["ok"], answer
        with clock(spent, "frozen"):
            link.freeze()
        with clock(spent, "thawed"):
            link.resume()
        with clock(spent, "ended"):
            link.end()
    finally:
        for fd in files:
            os.close(fd)
    return spent


@contextmanager
def clock(spent: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    spent[name] = time.perf_counter() - start


def tables(rows: Sequence[Row], runners: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[str]:
    for case in dict.fromkeys(row.case for row in rows):
        yield from _case_table(case, [row for row in rows if row.case == case])
    yield "\n| one runner, ms | confined | not confined |\n| --- | --- | --- |"
    for name in runners[CONFINED]:
        yield (
            f"| {name} | " + " | ".join(f"{median(runners[mode][name]) * 1e3:.1f}" for mode in (CONFINED, FREE)) + " |"
        )


def _case_table(case: str, rows: Sequence[Row]) -> Iterator[str]:
    sides = [[row for row in rows if row.mode == mode] for mode in (CONFINED, FREE)]
    outcomes = sorted({row.status for row in rows})
    yield f"\n{case}: medians of {len(sides[0])} verdicts each, seconds; verdicts: {', '.join(outcomes)}"
    yield "| | confined | not confined |\n| --- | --- | --- |"
    yield _line("all stages", [[row.all for row in side] for side in sides])
    for stage in dict.fromkeys(stage for row in rows for stage in row.stages):
        yield _line(f"stage {stage}", [[row.stages.get(stage, 0.0) for row in side] for side in sides])
    for part in dict.fromkeys(part for row in rows for part in row.parts):
        calls = median(row.parts.get(part, {"calls": 0})["calls"] for row in rows)
        spent = [[row.parts.get(part, {"seconds": 0.0})["seconds"] for row in side] for side in sides]
        yield _line(f"{part} ({calls:g}x)", spent)


def _line(name: str, sides: Sequence[Sequence[float]]) -> str:
    return f"| {name} | " + " | ".join(f"{median(values):.3f}" for values in sides) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", nargs="+", metavar="PROBLEM:FILE", help="Python or recorded replies")
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help="verdicts of each kind (default: 5)")
    parser.add_argument("--at-once", type=positive, default=1, metavar="N", help="of them built side by side")
    parser.add_argument("--json", type=Path, metavar="F", help="write the raw figures")
    add_device(parser)
    add_evaluation(parser)
    options = parser.parse_args()
    runners = asyncio.run(runner_seconds(max(5, options.repeats)))
    facts, rows = asyncio.run(measure(options))
    print("\n".join(tables(rows, runners)))
    if options.json:
        write_atomic(options.json, json.dumps({"facts": facts, "rows": [asdict(r) for r in rows], "runners": runners}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

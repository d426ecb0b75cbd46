#!/usr/bin/env python3
"""Throughput of candidates that build late: verdicts an hour and idle GPU, by where a candidate builds.

    KERNELBENCH_DIR=... python benchmarks/late_builds.py --device cuda --time-limit 530 --json late.json
    python benchmarks/late_builds.py --device cpu --problems 3 --samples 1 -- --timing-runs 10

One batch of run_batch.py a form, one after the other:

- module, init, forward: the same candidates, which build at the level of their module, in `__init__` or in the first
  `forward` (forms.py rewrites them). On CUDA those of candidates/kernelbench_level1, on problems of the checkout of
  KernelBench that KERNELBENCH_DIR names; on a CPU the hand-written C++ replies of examples/replies.
- triton (CUDA): an elementwise kernel, autotuned over three configurations, of two of these problems.
- compile: each problem's own forward under torch.compile.

No two samples are the same file, so that each is built and judged. Figures are from the journal. The window goes from
the first loan of a device to the last return. A GPU is idle while no candidate has it, and while the one that has it
compiles; "compiling" is the latter's share alone. What stands after `--` goes to run_batch.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.batch import BACKENDS, ROOT, Plan, run_batch
from benchmarks.batch_figures import Run, Span, busy_seconds
from benchmarks.forms import Form, in_form
from benchmarks.replies import WRITTEN_REPLIES, Kind
from hkbench.cli.arguments import positive, seconds
from hkbench.llm.extract import extract
from hkbench.llm.replies import call_name, replies_in_file
from hkbench.problems import find_problems, load_problem
from hkbench.records import DeviceKind, Problem, SampleKey, Stage, StageEntered, VerdictReached
from hkbench.store.events import read_events
from hkbench.store.files import write_atomic
from hkbench.store.layout import RunPaths

CANDIDATES = ROOT / "benchmarks" / "candidates" / "kernelbench_level1"
PARTS = (*(form.value for form in Form), "triton", "compile")
ENDING_SECONDS = 15.0  #: of the time limit, for the last batch to be stopped

TRITON = """
import torch
import triton
import triton.language as tl
from torch import nn


@triton.autotune([triton.Config({"BLOCK": block}, num_warps=4) for block in (512, 1024, 2048)], key=["count"])
@triton.jit
def kernel(x_at, out_at, count, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_at + at, mask=at < count)
    tl.store(out_at + at, EXPRESSION, mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        kernel[lambda given: (triton.cdiv(x.numel(), given["BLOCK"]),)](x, out, x.numel())
        return out
"""
#: By the numbers of KernelBench's problems.
EXPRESSIONS = {19: "tl.where(x > 0, x, 0.0)", 26: "0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))"}

COMPILED = """

class ModelNew(Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.compiled = torch.compile(super().forward)

    def forward(self, *inputs):
        return self.compiled(*inputs)
"""


@dataclass
class LatePlan(Plan):
    """A batch on problems of a folder, and in another backend for Triton."""

    folder: Path
    backend: str

    def command(self, results: Path) -> list[str]:
        words = [sys.executable, str(ROOT / "run_batch.py"), "--problems", str(self.folder)]
        words += ["--replay", str(self.replies), "--samples", str(self.samples), "--attempts", "1"]
        words += ["--device", self.device.value, "--backend", self.backend]
        words += ["--track", "any", "--no-profile", "--display", "plain", "--results", str(results)]
        return [*words, *self.more]


Candidates = Sequence[tuple[Problem, str]]  #: each of a problem


def sources(device: DeviceKind, count: int | None) -> Candidates:
    """Return candidates that build at the level of their module, at most so many."""
    found: list[tuple[Problem, str]] = []
    if device is DeviceKind.CPU:
        written = replies_in_file(WRITTEN_REPLIES, "cpp")
        for problem in find_problems(ROOT / "problems", 1):
            reply = written.get(call_name(SampleKey(problem=problem.name, attempt=1, sample=1)))
            source = None if reply is None else extract(reply.text, None).source
            if source is not None and "= load_inline(" in source:
                found.append((problem, source))
        return found[:count]
    checkout = os.environ.get("KERNELBENCH_DIR")
    if not checkout:
        raise SystemExit("KERNELBENCH_DIR has to name a checkout of KernelBench: the problems are taken from it")
    level = Path(checkout) / "KernelBench" / "level1"
    return [(load_problem(level / code.name), code.read_text()) for code in sorted(CANDIDATES.glob("*.py"))[:count]]


def of_part(part: str, candidates: Candidates) -> Candidates:
    """Return the candidates of a part; those that it has none for are left out."""
    if part == "triton":
        numbered = [(problem, EXPRESSIONS.get(problem.number)) for problem, _ in candidates]
        return [(problem, TRITON.replace("EXPRESSION", text)) for problem, text in numbered if text is not None]
    if part == "compile":
        return [(problem, problem.source + COMPILED) for problem, _ in candidates]
    return [(problem, in_form(source, Form(part))) for problem, source in candidates]


def make_plan(part: str, candidates: Candidates, options: argparse.Namespace, folder: Path) -> LatePlan:
    """Write problems and replies of a part below `folder`."""
    device = DeviceKind(options.device)
    problems, replies = folder / "level1", folder / "replies"
    kinds: dict[SampleKey, Kind] = {}
    chosen = of_part(part, candidates)
    problems.mkdir(parents=True)
    samples = options.samples * (len(candidates) // len(chosen))  # of fewer problems more each
    for problem, source in chosen:
        (problems / problem.path.name).write_text(problem.source)
        for sample in range(1, samples + 1):
            key = SampleKey(problem=problem.name, attempt=1, sample=sample)
            reply = replies / call_name(key) / "response.txt"
            reply.parent.mkdir(parents=True)
            reply.write_text(f"```python\n# sample {sample}\n{source}```\n")
            kinds[key] = Kind.WRITTEN
    backend = "triton" if part in ("triton", "compile") and device is not DeviceKind.CPU else BACKENDS[device]
    return LatePlan(
        [problem for problem, _ in chosen], samples, device, replies, kinds, options.more, problems, backend
    )


def compiling(journal: Path) -> Iterator[Span]:
    """Yield when a candidate that had a device was building."""
    begun: dict[SampleKey, float] = {}
    for event in read_events(journal):
        if isinstance(event, StageEntered | VerdictReached):
            if (begin := begun.pop(event.key, None)) is not None:
                yield begin, event.time
            if isinstance(event, StageEntered) and event.stage is Stage.BUILD and event.device is not None:
                begun[event.key] = event.time


def figures(part: str, run: Run, journal: Path) -> dict[str, Any]:
    """Return what a part came to."""
    window = run.window
    built = [] if window is None else [*compiling(journal)]
    length = 0.0 if window is None else window[1] - window[0]
    share = busy_seconds(built, window) / length if window is not None and length else 0.0
    statuses = [one.failure or one.status for one in run.judged]
    return {
        "part": part,
        "verdicts": run.finished(window),
        "planned": run.planned,
        "correct": sum(one.status in ("fast", "slow") for one in run.judged),
        "others": {status: statuses.count(status) for status in sorted({*statuses} - {"fast", "slow"})},
        "seconds": run.seconds,
        "window": length,
        "per_hour": run.per_hour(window),
        "idle": (run.idle[0] if run.idle else 0.0) + share,
        "compiling": share,
        "run": run.to_json(),
    }


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the parts as markdown."""
    first = found[0]["per_hour"]
    lines = [
        "| it builds | verdicts | correct | window, s | whole command, s | verdicts/h | of the first "
        "| GPU idle | of it compiling |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in found:
        rate = one["per_hour"] or 0.0
        verdicts = str(one["verdicts"]) if one["run"]["complete"] else f"{one['verdicts']} of {one['planned']}, stopped"
        cells = [one["part"], verdicts, str(one["correct"]), f"{one['window']:.0f}", f"{one['seconds']:.0f}"]
        cells += [
            f"{rate:.0f}",
            f"{rate / first:.0%}" if first else "-",
            f"{one['idle']:.1%}",
            f"{one['compiling']:.1%}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def measure(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    ends = None if options.time_limit is None else time.monotonic() + options.time_limit - ENDING_SECONDS
    candidates = sources(DeviceKind(options.device), options.problems)
    parts = [part for part in options.parts if part != "triton" or options.device != DeviceKind.CPU]
    found: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        plan = make_plan(part, candidates, options, folder / part)
        limit = None if ends is None else (ends - time.monotonic()) / (len(parts) - number)
        results = folder / part / "run"
        run = run_batch(plan, 1, results, limit)
        found.append(figures(part, run, RunPaths(results).journal))
        print(f"\n{part}: {found[-1]['others'] or 'all correct'}\n\n{table(found)}\n", flush=True)
        if options.json is not None:
            write_atomic(options.json, json.dumps({"device": options.device, "parts": found}) + "\n")
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=[DeviceKind.CUDA.value, DeviceKind.CPU.value], required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--problems", type=positive, metavar="N", help="the first N (default: all)")
    parser.add_argument("--samples", type=positive, default=3, metavar="N", help="of each problem")
    parser.add_argument("--time-limit", type=seconds, metavar="S", help="end before S seconds are over")
    parser.add_argument("--json", type=Path, metavar="F", help="write all figures, anew after each part")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep the run folders here (default: removed)")
    parser.add_argument("more", nargs="*", help="more arguments of run_batch.py, after --")
    return parser.parse_args()


def main() -> int:
    options = parse()
    with tempfile.TemporaryDirectory(prefix="hkbench-late-") as scratch:
        found = measure(options, (options.folder or Path(scratch)).resolve())
    return 0 if all(one["verdicts"] for one in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())

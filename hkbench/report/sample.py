"""Parts of one sample as lines of text: the diff to its parent, the timing with its histogram, the profile."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hkbench.records import EvaluationSettings, KernelUse, Timing, Verdict
from hkbench.report.format import estimate, not_profiled, percent, table
from hkbench.store.figures import kernel_interval, kernel_time
from hkbench.store.sample import WholeSample
from hkbench.store.sanitize import one_line, strip_escapes

BARS = 40  #: columns of the longest bar
BINS = 8
_NAME = 60  #: columns of a kernel's name


@dataclass(frozen=True)
class Bin:
    """Samples in [low, high), seconds; the last bin has its upper end too."""

    low: float
    high: float
    count: int


def histogram(samples: Sequence[float], bins: int = BINS) -> tuple[Bin, ...]:
    """Return `bins` of equal width from the smallest sample to the 95 % quantile, and one more for the rest.

    Timings have a long upper tail, which would leave everything else in one bin. Where the tail is no longer than a
    bin, the last of the bins reaches to the largest sample; of equal samples there is one bin.
    """
    data = np.sort(np.asarray(samples, dtype=np.float64))
    low, high = float(data[0]), float(data[-1])
    if low == high:
        return (Bin(low, high, int(data.size)),)
    body = float(np.quantile(data, 0.95))
    if high - body <= (body - low) / bins or body == low:
        counts, edges = np.histogram(data, bins, (low, high))
    else:
        edges = np.append(np.linspace(low, body, bins + 1), high)
        counts, edges = np.histogram(data, edges)
    return tuple(Bin(float(a), float(b), int(n)) for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True))


def diff_lines(sample: WholeSample) -> list[str]:
    """Return the unified diff from the parent's code to the sample's; without colours, escapes stripped."""
    if sample.code is None:
        return ["the reply holds no code"]
    if sample.parent is None:
        return ["no parent: the prompt tells of no earlier sample"]
    name = f"{sample.parent.attempt}/{sample.parent.sample}"
    if sample.parent_code is None:
        return [f"the parent, {name}, has no code"]
    before, after = (strip_escapes(code).splitlines() for code in (sample.parent_code, sample.code))
    found = difflib.unified_diff(before, after, name, f"{sample.key.attempt}/{sample.key.sample}", lineterm="")
    return list(found) or [f"the same code as {name}"]


def build_lines(verdict: Verdict) -> list[str]:
    """Return what the tools said where building or importing failed, the compiler's resources, what was printed."""
    lines: list[str] = []
    spent = [f"{stage.stage} {stage.seconds:.1f} s" for stage in verdict.stages]
    if spent:
        lines.append(f"stages: {', '.join(spent)}")
    failure = verdict.failure
    if failure is not None and failure.stage in ("parse", "build", "load"):
        lines.append(f"{failure.kind} at {failure.stage}: {one_line(failure.message, 1000)}")
        lines += [f"| {line}" for line in strip_escapes(failure.detail or "").splitlines()]
    for kernel in verdict.resources:
        figures = kernel.model_dump(exclude={"name", "arch", "instructions", "findings", "is_function"})
        said = ", ".join(f"{name} {value}" for name, value in figures.items() if value is not None)
        lines.append(f"{kernel.arch} {one_line(kernel.name, 200)}: {one_line(said, 1000)}")
    if verdict.output:
        lines += ["printed by the candidate:", *(f"| {x}" for x in strip_escapes(verdict.output).splitlines())]
    return lines or ["nothing is recorded of the build"]


def timing_lines(verdict: Verdict) -> list[str]:
    """Return both sides: median with its interval, number of runs, a histogram; the speed-up and the floor."""
    if verdict.baseline is None or verdict.candidate is None:
        return ["not timed"]
    lines = [] if verdict.speedup is None else [f"speed-up   {estimate(verdict.speedup)}"]
    if verdict.floor is not None:
        lines.append(f"floor      {kernel_time(verdict.floor.seconds)}, by {verdict.floor.bound}")
    for name, timing in (("baseline", verdict.baseline), ("candidate", verdict.candidate)):
        lines += ["", *_side(name, timing)]
    return lines[1:] if lines[0] == "" else lines


def _side(name: str, timing: Timing) -> list[str]:
    runs = f"{len(timing.samples)} runs, {timing.clock}, {timing.warmups} warm-ups"
    lines = [f"{name:<10} {kernel_interval(timing.median)}; {runs}"]
    bins = histogram(timing.samples)
    most = max(one.count for one in bins)
    for one in bins:
        bar = "#" * max(1 if one.count else 0, round(BARS * one.count / most))
        lines.append(f"  {kernel_time(one.low):>8} to {kernel_time(one.high):>8} {one.count:>4} {bar}".rstrip())
    return lines


def profile_lines(verdict: Verdict, settings: EvaluationSettings) -> list[str]:
    """Return kernels, longest first, with their figures; then findings and notes."""
    profile = verdict.profile
    if profile is None:
        return [not_profiled(verdict.status, settings)]
    rows = [
        (one_line(use.name, _NAME), use.owner.value, f"{use.calls}", kernel_time(use.seconds), percent(use.share))
        for use in profile.kernels
    ]
    header = ("kernel", "whose", "calls", "time", "share")
    lines = [f"{profile.source}: {kernel_time(profile.seconds)} a pass"]
    lines += table(header, rows, right=(2, 3, 4)) if rows else []
    for use in profile.kernels:
        said = _figures(use)
        if said:
            lines.append(f"{one_line(use.name, _NAME)}: {one_line(said, 1000)}")
    lines += [f"finding: {one_line(finding, 1000)}" for finding in profile.findings]
    return lines + [f"note: {one_line(note, 1000)}" for note in profile.notes]


def _figures(use: KernelUse) -> str:
    held = use.model_dump(exclude={"name", "owner", "calls", "seconds", "share", "counters", "figures"})
    said = [f"{name} {_plain(value)}" for name, value in held.items() if value is not None]
    said += [f"{name} {figure.value:.4g} {figure.unit}" for name, figure in use.figures.items()]
    return ", ".join(said)


def _plain(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)

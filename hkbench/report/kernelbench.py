"""A run as KernelBench's scripts keep theirs: kernels, eval_results.json, and the baseline for their analysis.

Field names and file names are those of KernelBench's scripts/eval_from_generations.py, generate_samples.py and
benchmark_eval_analysis.py; times are milliseconds, as theirs, whatever the comment at KernelExecResult says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any, Literal

from hkbench.records import SampleKey, Stage, Status, Timing, Verdict, best_of
from hkbench.store.reader import ProblemView, RunView, SampleView
from hkbench.store.sample import read_sample

#: Which samples are exported: those of the first attempt, the best of each problem, or all in order.
Which = Literal["first", "best", "all"]

NOT_MEASURED = -1.0  #: their value for a time that there is not
_BEFORE_RUNNING = frozenset({Stage.EXTRACT, Stage.PARSE, Stage.BUILD, Stage.LOAD})


@dataclass(frozen=True)
class Exported:
    """One sample under their names."""

    problem: int  #: their problem id: the number that the file's name begins with
    sample: int  #: their sample id, from 0
    key: SampleKey
    code: str | None  #: `None`: the reply held none, and they would have no file
    result: dict[str, Any] | None  #: an entry of eval_results.json; `None`: no verdict yet
    baseline: Timing | None


def exported(run: RunView, which: Which) -> list[Exported]:
    """Return the samples of a run, numbered as theirs. Files are read; nothing is written."""
    found: list[Exported] = []
    for problem in run.problems:
        number = problem_number(problem.name)
        for index, view in enumerate(chosen(problem, which)):
            sample = read_sample(run.paths, view.key, run.state)
            verdict = sample.verdict
            result = eval_result(index, view.key, verdict) if verdict is not None else None
            baseline = verdict.baseline if verdict is not None else None
            found.append(Exported(number, index, view.key, sample.code, result, baseline))
    return found


def problem_number(name: str) -> int:
    """Return the problem's number. ValueError where the name does not begin with one."""
    return int(name.partition("_")[0])


def chosen(problem: ProblemView, which: Which) -> Sequence[SampleView]:
    """Return the samples of a problem that are exported.

    Where none is correct the "best" is the first, so that the problem counts as failed and not as missing.
    """
    if which == "best":
        best = best_of(problem.samples)
        return [best] if best is not None else problem.samples[:1]
    if which == "first":
        return problem.attempts[0] if problem.attempts else ()
    return problem.samples


def eval_result(sample: int, key: SampleKey, verdict: Verdict) -> dict[str, Any]:
    """Return one entry of eval_results.json. What was refused, or only built, is not correct there."""
    correct = verdict.status in (Status.FAST, Status.SLOW)
    stats = timing_stats(verdict.candidate, verdict) if correct and verdict.candidate is not None else {}
    return {
        "sample_id": sample,
        "compiled": verdict.failure is None or verdict.failure.stage not in _BEFORE_RUNNING,
        "correctness": correct,
        "metadata": _metadata(key, verdict),
        "runtime": stats.get("mean", NOT_MEASURED),
        "runtime_stats": stats,
    }


def timing_stats(timing: Timing, verdict: Verdict) -> dict[str, Any]:
    """Return their statistics of one side, in milliseconds. Their analysis divides means, where ours has medians."""
    times = [1e3 * seconds for seconds in timing.samples]
    return {
        "mean": fmean(times),
        "std": pstdev(times),
        "min": min(times),
        "max": max(times),
        "num_trials": len(times),
        "hardware": verdict.conditions.device_name,
        "device": verdict.conditions.device.value,
    }


def _metadata(key: SampleKey, verdict: Verdict) -> dict[str, Any]:
    failure = verdict.failure
    ours = {
        "attempt": key.attempt,
        "sample": key.sample,
        "status": verdict.status.value,
        "stage": failure.stage.value if failure is not None else None,
        "kind": failure.kind.value if failure is not None else None,
        "speedup": verdict.speedup.value if verdict.speedup is not None else None,
    }
    found: dict[str, Any] = {
        "hardware": verdict.conditions.device_name,
        "device": verdict.conditions.device.value,
        "hkbench": ours,
    }
    if failure is None:
        return found
    if failure.stage in _BEFORE_RUNNING:
        return found | {"compilation_error_name": failure.kind.value, "compilation_error": failure.message}
    if failure.stage is Stage.RUN:
        return found | {"runtime_error_name": failure.kind.value, "runtime_error": failure.message}
    return found | {"correctness_issue_name": failure.kind.value, "correctness_issue": failure.message}


def eval_results(samples: Sequence[Exported]) -> dict[str, list[dict[str, Any]]]:
    """Return eval_results.json: the entries of each problem that has a verdict, by problem id."""
    found: dict[str, list[dict[str, Any]]] = {}
    for one in sorted(samples, key=lambda sample: (sample.problem, sample.sample)):
        if one.result is not None:
            found.setdefault(str(one.problem), []).append(one.result)
    return found


def baseline_times(samples: Sequence[Exported], level: int) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the baseline file of their analysis: this run's own measurements of each reference.

    Of a problem's samples the first that was timed: its baseline was measured in turn with it. A problem without one
    has -1.0: their analysis takes times of correct samples alone, but counts only problems that the file names.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in samples:
        name = f"{one.key.problem}.py"
        times = [1e3 * seconds for seconds in one.baseline.samples] if one.baseline is not None else []
        if times and found.get(name, {}).get("num_trials", 0) == 0:
            found[name] = {
                "mean": fmean(times), "std": pstdev(times), "min": min(times), "max": max(times),
                "num_trials": len(times),
            }  # fmt: skip
        else:
            found.setdefault(name, {"mean": NOT_MEASURED, "num_trials": 0})
    return {f"level{level}": found}


def kernel_name(level: int, one: Exported) -> str:
    """Return the file name of one kernel in their run folder."""
    return f"level_{level}_problem_{one.problem}_sample_{one.sample}_kernel.py"

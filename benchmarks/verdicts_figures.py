"""The figures of verdicts.py: how long each verdict took, and the table of both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import geometric_mean, median
from typing import Any

from hkbench.records import Stage, Status, Verdict

HKBENCH, KERNELBENCH = "hkbench", "kernelbench"


@dataclass(frozen=True)
class Figure:
    """One verdict. Seconds are wall clock."""

    evaluator: str  #: HKBENCH or KERNELBENCH
    problem: str
    process: bool  #: a process from its start to its end; else one evaluation in a process that was ready for it
    cold: bool  #: the candidate was built from nothing within `seconds`, with nothing else on the machine
    seconds: float  #: without waiting for other candidates' turns
    build: float | None  #: of `seconds`; `None`: not known
    complete: bool  #: correct and timed to the end: others stopped early, or began again
    status: str
    speedup: float | None = None  #: what the evaluator says of the candidate
    stages: dict[str, float] = field(default_factory=dict)
    reason: str = ""  #: why it is not complete

    def counted(self, cold: bool) -> float | None:
        """Seconds with the build (`cold`) or without it; `None` where this verdict does not say."""
        if cold:
            return self.seconds if self.cold else None
        return None if self.build is None else self.seconds - self.build

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @classmethod
    def from_json(cls, plain: dict[str, Any]) -> Figure:
        renamed = {"evaluator" if name == "judge" else name: value for name, value in plain.items()}  # older files
        return cls(**renamed)


def of_verdict(verdict: Verdict, seconds: float, process: bool, cold: bool) -> Figure:
    """`seconds` include the build, which the verdict's stages tell apart."""
    stages = {one.stage.value: one.seconds for one in verdict.stages}
    failure = verdict.failure
    return Figure(
        HKBENCH,
        verdict.problem,
        process,
        cold,
        seconds,
        stages.get(Stage.BUILD.value, 0.0),
        verdict.status in (Status.FAST, Status.SLOW),
        verdict.status.value,
        None if verdict.speedup is None else verdict.speedup.value,
        stages,
        "" if failure is None else f"{failure.kind}: {failure.message} {failure.detail or ''}"[:1000],
    )


def of_answer(problem: str, answer: dict[str, Any], whole: float, cold: bool) -> list[Figure]:
    """Return the two figures of one run of kernelbench_verdict.py: of the call, and of the process, `whole` seconds.

    A run that should have found its build and made it anew is not complete.
    """
    complete, reason = answer["correct"] and answer["timed"], ""
    if not complete:
        reason = str(answer["metadata"])
    elif answer["rebuilt"] and not cold:
        complete, reason = False, "the extension was built again, though it was there"
    status = "correct" if answer["correct"] else "incorrect" if answer["compiled"] else "not compiled"
    build = answer["build"] if cold else 0.0  # to find what was built, and to load it, counts as theirs
    return [
        Figure(KERNELBENCH, problem, process, cold, seconds, build, complete, status, answer["speedup"], {}, reason)
        for process, seconds in ((False, answer["seconds"]), (True, whole))
    ]


def failed(evaluator: str, problem: str, process: bool, cold: bool, seconds: float, reason: str) -> Figure:
    """There is no verdict."""
    return Figure(evaluator, problem, process, cold, seconds, None, False, "no verdict", reason=reason)


def summary(figures: Sequence[Figure]) -> str:
    """Return a table for each way to count the build that there are figures of, and what was left out."""
    parts = ["\n".join(_table(figures, cold)) for cold in (False, True) if _names(figures, cold)]
    notes = [
        f"left out: {figure.evaluator}, {figure.problem}{', as a process' * figure.process}: {figure.status} "
        f"{' '.join(figure.reason.split())[:300]}"
        for figure in figures
        if not figure.complete
    ]
    return "\n\n".join(parts + ["\n".join(notes)] * bool(notes)) or "no figures"


def _seconds(figures: Sequence[Figure], evaluator: str, problem: str, process: bool, cold: bool) -> float | None:
    """Return the median over repeats."""
    found = _counted(figures, evaluator, problem, process, cold)
    return median(found) if found else None


def _counted(figures: Sequence[Figure], evaluator: str, problem: str, process: bool, cold: bool) -> list[float]:
    wanted = (evaluator, problem, process)
    same = [one for one in figures if one.complete and (one.evaluator, one.problem, one.process) == wanted]
    return [seconds for one in same if (seconds := one.counted(cold)) is not None]


def _names(figures: Sequence[Figure], cold: bool) -> list[str]:
    """Problems that both evaluators have a figure for, of the same kind, in the order in which they were measured."""
    return [
        name
        for name in dict.fromkeys(figure.problem for figure in figures)
        if any(None not in _pair(figures, name, process, cold) for process in (False, True))
    ]


def _pair(figures: Sequence[Figure], problem: str, process: bool, cold: bool) -> list[float | None]:
    return [_seconds(figures, evaluator, problem, process, cold) for evaluator in (KERNELBENCH, HKBENCH)]


def _table(figures: Sequence[Figure], cold: bool) -> Iterator[str]:
    yield "build included, from nothing:" if cold else "build not counted:"
    yield "| problem | verdicts | KernelBench, s | hkbench, s | ratio | process: KernelBench, s | hkbench, s | ratio |"
    yield "| --- |" + " ---: |" * 7
    ratios: dict[bool, list[float]] = {False: [], True: []}
    for name in _names(figures, cold):
        numbers = (len(_counted(figures, evaluator, name, False, cold)) for evaluator in (KERNELBENCH, HKBENCH))
        cells = [name, ", ".join(map(str, numbers))]
        for process in (False, True):
            theirs, ours = _pair(figures, name, process, cold)
            cells += [_cell(theirs, 1), _cell(ours, 1)]
            if theirs is None or ours is None:
                cells.append("-")
            else:
                ratios[process].append(theirs / ours)
                cells.append(f"{theirs / ours:.1f}")
        yield _line(cells)
    means = [geometric_mean(found) if found else None for found in ratios.values()]
    counts = " and ".join(str(len(found)) for found in ratios.values() if found)
    yield _line([f"geometric mean of {counts}", "", "", "", _cell(means[0], 1), "", "", _cell(means[1], 1)])


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"

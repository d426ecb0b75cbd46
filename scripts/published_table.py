"""What a run made of a published set, beside what its publishers say, as markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from statistics import median

from hkbench.records import (
    BaselineName,
    FailureKind,
    Mismatch,
    Outcome,
    Ownership,
    SampleKey,
    SlotTimes,
    Stage,
    Status,
    Verdict,
    VerdictReached,
    outcome_of,
)
from hkbench.stats import geometric_mean
from hkbench.store.events import CorruptEntry, read_events
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run_file
from hkbench.store.sample import read_sample
from hkbench.store.sanitize import one_line
from scripts.published_sets import PublishedSet, Task

HOUR = 3600.0
REASON_WIDTH = 160  #: of a reason in a table


class Own(Enum):
    """Whether a candidate passes the test of its own publishers, as far as the verdict tells."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "not known"


#: What the publishers' tests do not look at: allclose on a problem's own inputs and parameters, in one process.
BEYOND_ALLCLOSE = frozenset({
    FailureKind.ALIASED_OUTPUT, FailureKind.DEVICE_ERROR, FailureKind.FORBIDDEN, FailureKind.INPUT_MODIFIED,
    FailureKind.LIMIT, FailureKind.NOT_REPEATABLE, FailureKind.PROTOCOL, FailureKind.STALE_PARAMETERS,
    FailureKind.STATE_MODIFIED, FailureKind.WRONG_PARAMETERS, FailureKind.WRONG_STRIDES, FailureKind.WRONG_TYPE,
})  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """One task and its verdict; `None`: there is none."""

    task: Task
    verdict: Verdict | None
    over_compile: float | None = None  #: speed-up over torch.compile, where that was measured

    @property
    def correct(self) -> bool:
        """Tell whether it is correct by our rules, whatever its speed."""
        return self.verdict is not None and self.verdict.status in (Status.FAST, Status.SLOW)

    @property
    def speedup(self) -> float | None:
        """Return the speed-up over eager, of a correct one."""
        return None if self.verdict is None or self.verdict.speedup is None else self.verdict.speedup.value

    @property
    def outcome(self) -> Outcome:
        """Return its class, by the interval of its speed-up."""
        found = self.verdict
        if found is None:
            return Outcome.NOT_JUDGED
        gain = found.speedup
        return outcome_of(found.status, *((gain.value, gain.low, gain.high) if gain is not None else ()))

    @property
    def title(self) -> str:
        """Return its problem as people name it: level and file."""
        number, _, rest = self.task.name.partition("_")
        return f"{self.task.level}/{int(number) % 1000} {rest}"


@dataclass(frozen=True)
class JudgedSet:
    """A set with its verdicts, and what the run took."""

    published: PublishedSet
    samples: tuple[Judged, ...]
    device: str
    spans: tuple[tuple[float, float], ...]  #: of the sessions: seconds since the epoch
    turns: tuple[SlotTimes, ...]

    @property
    def verdicts(self) -> list[Judged]:
        return [one for one in self.samples if one.verdict is not None]

    @property
    def over_compile(self) -> list[float]:
        """Return the speed-ups over torch.compile of the correct ones, where they were measured."""
        return [one.over_compile for one in self.samples if one.correct and one.over_compile is not None]

    @property
    def seconds(self) -> float:
        """Return how long the sessions took together, each from its start to its last event."""
        return sum(end - begin for begin, end in self.spans)


def judged_of(published: PublishedSet, tasks: Sequence[Task], folder: Path, compiled: Path | None) -> JudgedSet:
    """Read the run in `folder`, and the speed-ups over torch.compile of the one in `compiled`.

    Raises:
        InputMissing: a folder holds no run.
    """
    paths = RunPaths(folder)
    run = read_run_file(paths)
    over = {} if compiled is None else _over_compile(RunPaths(compiled), tasks)
    samples = tuple(Judged(task, _verdict(paths, task), over.get(task.name)) for task in tasks)
    events = [event for event in read_events(paths.journal) if not isinstance(event, CorruptEntry)]
    spans: list[tuple[float, float]] = []
    for event in events:
        if event.event == "run_started":
            spans.append((event.time, event.time))
        elif spans:
            spans[-1] = (spans[-1][0], event.time)
    turns = tuple(event.turns for event in events if isinstance(event, VerdictReached) and event.turns is not None)
    reached = (one.verdict.conditions for one in samples if one.verdict is not None)
    names = sorted({one.device_name for one in reached if one.device_facts is not None})
    return JudgedSet(published, samples, ", ".join(names) or str(run.config.device), tuple(spans), turns)


def _verdict(paths: RunPaths, task: Task) -> Verdict | None:
    if not task.has_code or not paths.problem(task.name).root.is_dir():
        return None
    return read_sample(paths, SampleKey(problem=task.name, attempt=1, sample=1)).verdict


def _over_compile(paths: RunPaths, tasks: Sequence[Task]) -> dict[str, float]:
    read_run_file(paths)
    found = ((task.name, _verdict(paths, task)) for task in tasks)
    return {
        name: one.speedup.value
        for name, verdict in found
        if verdict is not None
        for one in verdict.baselines
        if one.name is BaselineName.COMPILE and one.speedup is not None
    }


def by_own_test(verdict: Verdict, tolerance: float) -> Own:
    """Return whether the candidate passes allclose with this atol and rtol on the problem's own inputs.

    Trial 1 has these. An answer that is wrong there is looked up where it is furthest outside of our tolerance.
    """
    if any(trial.inputs == "own" and trial.parameters == "own" and trial.passed for trial in verdict.trials):
        return Own.YES
    failure = verdict.failure
    if failure is None:
        return Own.YES
    if failure.kind is FailureKind.WRONG_VALUES and failure.mismatch is not None:
        return _within(failure.mismatch, tolerance)
    return Own.UNKNOWN if failure.kind in BEYOND_ALLCLOSE else Own.NO


def _within(found: Mismatch, tolerance: float) -> Own:
    if found.max_abs_error is not None and found.max_abs_error <= tolerance:
        return Own.YES
    if abs(found.got - found.expected) > tolerance + tolerance * abs(found.expected):
        return Own.NO
    return Own.UNKNOWN


def report(sets: Sequence[JudgedSet], largest: int) -> str:
    """Return all tables."""
    parts = ["\n".join(_summary(sets)), "\n".join(_reasons(sets)), "\n".join(_spent(sets))]
    parts += ["\n".join(_disagreements(one, largest)) for one in sets]
    return "\n\n".join(parts)


def _row(name: str, cells: Iterable[object]) -> str:
    return f"| {name} | " + " | ".join(str(cell) for cell in cells) + " |"


def _head(first: str, names: Sequence[str]) -> list[str]:
    return [_row(first, names), "| --- |" + " ---: |" * len(names)]


def _summary(sets: Sequence[JudgedSet]) -> Iterator[str]:
    yield from _head("", [one.published.title for one in sets])
    rows: list[tuple[str, Callable[[JudgedSet], object]]] = [
        ("published entries", lambda s: len(s.samples)),
        ("claimed correct", lambda s: sum(one.task.claim.correct for one in s.samples)),
        ("without code", lambda s: sum(not one.task.has_code for one in s.samples)),
        ("judged", lambda s: len(s.verdicts)),
        ("with code, no verdict", lambda s: sum(one.task.has_code for one in s.samples) - len(s.verdicts)),
        ("its own tolerance (allclose)", lambda s: f"{s.published.tolerance:g}"),
        ("right by its own test: yes, no, not known", _own_counts),
        ("**correct by our rules**", lambda s: f"**{sum(one.correct for one in s.verdicts)}**"),
        ("of them looked at further shapes: right at all, at some, at none", _at_shapes),
        ("refused, the answers being right", lambda s: _count(s, Outcome.REFUSED)),
        ("faster than eager, on a par, slower", _speeds),
        ("of the correct, most of the work by own kernels", _own_work),
        ("claimed over eager, all entries: median, geometric mean", lambda s: _claimed(s.samples)),
        ("claimed, of the correct", lambda s: _claimed([one for one in s.samples if one.correct])),
        ("**judged over eager**, of the same", lambda s: _means([g for one in s.samples if (g := one.speedup)])),
        ("over `torch.compile`, where its answers are right", lambda s: _means(s.over_compile)),
        ("of these, faster than `torch.compile`", _beats_compile),
        ("claimed on, judged on", lambda s: f"{s.published.claimed_on}, {s.device}"),
    ]
    for name, cell in rows:
        yield _row(name, map(cell, sets))


def _own_counts(one: JudgedSet) -> str:
    found = Counter(by_own_test(sample.verdict, one.published.tolerance) for sample in one.verdicts if sample.verdict)
    return ", ".join(str(found[answer]) for answer in Own)


def _count(one: JudgedSet, *outcomes: Outcome) -> int:
    return sum(sample.outcome in outcomes for sample in one.samples)


def _at_shapes(one: JudgedSet) -> str:
    found = [sample.verdict.shapes for sample in one.verdicts if sample.verdict and sample.correct]
    known = [shapes for shapes in found if shapes is not None and shapes.results]
    whole, none = sum(not shapes.failed for shapes in known), sum(not shapes.right for shapes in known)
    return f"{whole}, {len(known) - whole - none}, {none} of {len(known)}" if known else "-"


def _speeds(one: JudgedSet) -> str:
    return ", ".join(str(_count(one, outcome)) for outcome in (Outcome.FASTER, Outcome.ON_PAR, Outcome.SLOWER))


def _own_work(one: JudgedSet) -> str:
    known = [sample.verdict.ownership for sample in one.verdicts if sample.verdict and sample.correct]
    return f"{sum(found is Ownership.OWN for found in known)} of {len(known)}"


def _beats_compile(one: JudgedSet) -> str:
    found = one.over_compile
    return f"{sum(over > 1.0 for over in found)} of {len(found)}" if found else "-"


def _claimed(samples: Iterable[Judged]) -> str:
    return _means([claim for one in samples if (claim := one.task.claim.over_eager) is not None])


def _means(values: Sequence[float]) -> str:
    return f"{median(values):.2f}x, {geometric_mean(values):.2f}x" if values else "-"


def _reasons(sets: Sequence[JudgedSet]) -> Iterator[str]:
    counts = [
        Counter(one.verdict.failure.kind for one in s.verdicts if one.verdict and one.verdict.failure) for s in sets
    ]
    total = sum(counts, Counter[FailureKind]())
    yield from _head("not correct because", [one.published.title for one in sets])
    for kind, _ in total.most_common():
        yield _row(f"`{kind.value}`", [count[kind] for count in counts])


def _spent(sets: Sequence[JudgedSet]) -> Iterator[str]:
    yield from _head("the run", [one.published.title for one in sets])
    rows: list[tuple[str, Callable[[JudgedSet], object]]] = [
        ("sessions", lambda s: len(s.spans)),
        ("seconds, all sessions from start to last event", lambda s: f"{s.seconds:.0f}"),
        ("verdicts an hour", lambda s: f"{len(s.verdicts) * HOUR / s.seconds:.0f}" if s.seconds else "-"),
        ("a verdict holds the GPU: median, mean, most, s", _held),
        (
            "share of the time in which the GPU is lent",
            lambda s: f"{sum(_holds(s)) / s.seconds:.0%}" if s.seconds else "-",
        ),
        *(
            (f"mean seconds of `{stage.value}`", _stage_mean(stage))
            for stage in (Stage.BUILD, Stage.LOAD, Stage.RUN, Stage.TIME, Stage.SHAPES)
        ),
    ]
    for name, cell in rows:
        yield _row(name, map(cell, sets))


def _holds(one: JudgedSet) -> list[float]:
    return [t.returned - t.lent for t in one.turns if t.lent is not None and t.returned is not None]


def _held(one: JudgedSet) -> str:
    held = _holds(one)
    return f"{median(held):.1f}, {sum(held) / len(held):.1f}, {max(held):.1f}" if held else "-"


def _stage_mean(stage: Stage) -> Callable[[JudgedSet], str]:
    def cell(one: JudgedSet) -> str:
        verdicts = [sample.verdict for sample in one.verdicts if sample.verdict is not None]
        seconds = [time.seconds for verdict in verdicts for time in verdict.stages if time.stage is stage]
        return f"{sum(seconds) / len(seconds):.1f} (of {len(seconds)})" if seconds else "-"

    return cell


def _disagreements(one: JudgedSet, largest: int) -> Iterator[str]:
    """Yield the kernels of which most was claimed that does not hold."""
    claimed = [(sample, claim) for sample in one.verdicts if (claim := sample.task.claim.over_eager) is not None]
    ranked = sorted(claimed, key=lambda pair: pair[1] / (pair[0].speedup or 1.0), reverse=True)
    yield from [
        f"{one.published.title}, where claimed and judged are furthest apart:",
        "",
        "| problem | claimed | judged | reason |",
        "| --- | ---: | ---: | --- |",
    ]
    for sample, claim in ranked[:largest]:
        judged = f"{sample.speedup:.2f}x" if sample.speedup is not None else sample.outcome.label
        yield f"| {sample.title} | {claim:.2f}x | {judged} | {_why(sample)} |"


def _why(sample: Judged) -> str:
    failure = sample.verdict.failure if sample.verdict is not None else None
    if failure is None:
        return "correct"
    return f"`{failure.kind.value}`: {one_line(failure.message, REASON_WIDTH)}".replace("|", "\\|")

"""The arithmetic of a batch: which device was held when, for how long nobody held it, and what that comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from benchmarks.equals_figures import NEAR, holds_one
from benchmarks.replies import EQUALS, Kind
from hkbench.records import Interval, SampleKey, SlotTimes

HOUR = 3600.0
Span = tuple[float, float]  #: begin and end, seconds since the epoch


@dataclass(frozen=True)
class Judged:
    """One verdict of a batch. Medians in seconds; None where the candidate was not timed."""

    key: SampleKey
    kind: Kind
    status: str
    failure: str | None
    turns: SlotTimes | None
    speedup: Interval | None = None
    baseline: float | None = None
    candidate: float | None = None

    @property
    def held(self) -> Span | None:
        """When it had a device."""
        turns = self.turns
        return None if turns is None or turns.lent is None or turns.returned is None else (turns.lent, turns.returned)

    def to_json(self) -> dict[str, Any]:
        plain = dict(vars(self)) | {"kind": self.kind.value, "key": self.key.model_dump()}
        for name in ("turns", "speedup"):
            plain[name] = None if plain[name] is None else plain[name].model_dump()
        return plain


@dataclass
class Run:
    """One run of the batch on `gpus` devices."""

    gpus: int
    planned: int  #: verdicts
    seconds: float  #: of the whole command
    complete: bool  #: it came to its end; else it was stopped for the time limit
    judged: list[Judged]
    lost: int = 0  #: evaluations that the machine failed at
    where: dict[str, str] = field(default_factory=dict)  #: hardware and versions
    utilisation: list[float | None] = field(default_factory=list)  #: the driver's share of busy time, by device

    @property
    def by_device(self) -> dict[int, list[Span]]:
        """The spans in which each device was held, in order; one that was never lent has none."""
        spans: dict[int, list[Span]] = {index: [] for index in range(self.gpus)}
        for one in self.judged:
            if one.held is not None and one.turns is not None and one.turns.device is not None:
                spans.setdefault(one.turns.device, []).append(one.held)
        return {index: sorted(held) for index, held in sorted(spans.items())}

    @property
    def window(self) -> Span | None:
        """From the first measurement's begin to the last one's end.

        Where the run was stopped, what was under way then is not in the journal: as `steady`.
        """
        return self._until(max if self.complete else min)

    @property
    def steady(self) -> Span | None:
        """The same without the end of the run: until the first device gave back the last one that it had."""
        return self._until(min)

    def _until(self, which: Callable[[Iterable[float]], float]) -> Span | None:
        used = [spans for spans in self.by_device.values() if spans]
        if not used:
            return None
        return min(spans[0][0] for spans in used), which(max(end for _, end in spans) for spans in used)

    def finished(self, window: Span | None) -> int:
        """Verdicts that were reached by the end of the window; a build that failed counts with its end."""
        if window is None:
            return 0
        turns = [one.turns for one in self.judged if one.turns is not None]
        return sum((turn.loaded if turn.returned is None else turn.returned) <= window[1] for turn in turns)

    def per_hour(self, window: Span | None) -> float | None:
        """Verdicts per hour of the window."""
        if window is None or window[1] <= window[0]:
            return None
        return self.finished(window) * HOUR / (window[1] - window[0])

    @property
    def idle(self) -> list[float]:
        """For each device the share of the window in which nobody held it."""
        window = self.window
        return [] if window is None else [idle_share(spans, window) for spans in self.by_device.values()]

    def holds(self) -> dict[SampleKey, float]:
        """Seconds for which each verdict held its device."""
        return {one.key: one.held[1] - one.held[0] for one in self.judged if one.held is not None}

    def to_json(self) -> dict[str, Any]:
        figures = {"window": self.window, "per_hour": self.per_hour(self.window), "idle": self.idle}
        plain = {
            name: getattr(self, name)
            for name in ("gpus", "planned", "seconds", "complete", "lost", "where", "utilisation")
        }
        return plain | figures | {"judged": [one.to_json() for one in self.judged]}


def busy_seconds(spans: Iterable[Span], window: Span) -> float:
    """Return how long at least one of the spans was on, within the window."""
    total, reached = 0.0, window[0]
    for begin, end in sorted(spans):
        begin, end = max(begin, reached), min(end, window[1])  # cut to what is not counted yet
        if end > begin:
            total += end - begin
            reached = end
    return total


def idle_share(spans: Iterable[Span], window: Span) -> float:
    """Return the share of the window in which none of the spans was on."""
    length = window[1] - window[0]
    return 1.0 - busy_seconds(spans, window) / length if length > 0 else 0.0


def longest_gap(spans: Sequence[Span], window: Span) -> float:
    """Seconds of the longest time in the window in which none of the spans was on."""
    longest, reached = 0.0, window[0]
    for begin, end in [*sorted(spans), (window[1], window[1])]:
        longest = max(longest, min(begin, window[1]) - reached)
        reached = max(reached, min(end, window[1]))
    return longest


def table(runs: Sequence[Run]) -> str:
    """Return what each run came to, as markdown."""
    lines = [
        "| GPUs | verdicts | of them timed | window, s | verdicts/h | idle, not held | longest gap, s "
        "| driver's utilisation | held, median s | waited for a slot, median and most, s "
        "| waited for a device, median and most, s | equals | of them not correct | outside | missed |",
        "| " + " | ".join(["---"] * 15) + " |",
    ]
    return "\n".join(lines + [_row(run) for run in runs])


def _row(run: Run) -> str:
    window = run.window
    verdicts = (
        f"{run.finished(run.window)}" if run.complete else f"{run.finished(run.window)} of {run.planned}, stopped"
    )
    if window is None:
        return f"| {run.gpus} | {verdicts} |" + " - |" * 13
    turns = [one.turns for one in run.judged if one.turns is not None]
    lent = [(turn.loaded, turn.lent) for turn in turns if turn.lent is not None]
    judged = [one for one in run.judged if one.kind in EQUALS]
    equals = [one.speedup for one in judged if one.speedup is not None]
    gaps = [longest_gap(spans, window) for spans in run.by_device.values()]
    cells = [
        str(run.gpus),
        verdicts,
        str(sum(one.speedup is not None for one in run.judged)),
        f"{window[1] - window[0]:.0f}",
        f"{run.per_hour(window) or 0.0:.0f}",
        ", ".join(f"{share:.1%}" for share in run.idle),
        f"{max(gaps):.1f}",
        ", ".join("-" if share is None else f"{share:.0%}" for share in run.utilisation) or "-",
        f"{median(run.holds().values()):.2f}",
        _waits([turn.building - turn.asked for turn in turns]),
        _waits([end - begin for begin, end in lent]),
        str(len(judged)),
        str(len(judged) - len(equals)),
        str(sum(abs(interval.value - 1.0) > NEAR for interval in equals)),
        str(sum(not holds_one(interval) for interval in equals)),
    ]
    return "| " + " | ".join(cells) + " |"


def kinds_of_verdicts(run: Run) -> str:
    """Return what became of each kind of candidate, a line each; equals that failed by name."""
    lines = [f"{run.gpus} GPUs, {run.seconds:.0f} s for the whole command, {run.lost} evaluations lost:"]
    for kind in Kind:
        counts = Counter(one.failure or one.status for one in run.judged if one.kind is kind)
        if counts:
            lines.append(f"- {kind}: " + ", ".join(f"{count} {name}" for name, count in counts.most_common()))
    failed = [one for one in run.judged if one.kind in EQUALS and one.failure]
    names = [f"{one.key.problem} {one.key.sample} ({one.failure})" for one in failed]
    return "\n".join(lines + ([f"- equals that failed: {', '.join(names)}"] if names else []))


def _waits(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.1f}, {max(seconds):.1f}" if seconds else "-"


def scaling(runs: Sequence[Run]) -> str:
    """Return each run beside the first, as markdown: throughput, and what changes for the same candidate."""
    first, *others = runs
    lines = [
        f"| GPUs | verdicts/h, times those of {first.gpus} | without the end of the runs | candidates in both "
        "| a verdict holds its device, ratio | baseline's time, ratio | candidate's time, ratio |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in others:
        holds = ratios(first.holds(), run.holds())
        cells = [str(run.gpus), _times_as_many(run.per_hour(run.window), first.per_hour(first.window))]
        cells += [_times_as_many(run.per_hour(run.steady), first.per_hour(first.steady)), str(len(holds))]
        cells.append(_spread(holds))
        cells += [_spread(ratios(_times(first, side), _times(run, side))) for side in ("baseline", "candidate")]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _times_as_many(one: float | None, other: float | None) -> str:
    return f"{one / other:.2f}" if one and other else "-"


def ratios(left: Mapping[SampleKey, float], right: Mapping[SampleKey, float]) -> list[float]:
    """right / left, of what is in both."""
    return sorted(right[key] / left[key] for key in left.keys() & right.keys() if left[key] > 0)


def _times(run: Run, side: str) -> dict[SampleKey, float]:
    found = {one.key: getattr(one, side) for one in run.judged}
    return {key: seconds for key, seconds in found.items() if seconds is not None}


def _spread(values: Sequence[float]) -> str:
    """Median, lowest and highest, and how many are further from 1 than NEAR."""
    if not values:
        return "-"
    outside = sum(abs(value - 1.0) > NEAR for value in values)
    return f"{median(values):.3f} ({values[0]:.3f} to {values[-1]:.3f}), {outside} of {len(values)} outside"

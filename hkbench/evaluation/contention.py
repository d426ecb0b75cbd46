"""Other work on the processors while a CPU's calls are timed, by the counts of the kernel.

No process of the candidate has a say in them.

It slows the two sides down by factors that have nothing to do with each other (eager's threads wait for one another, a
kernel of one thread does not), and all calls alike: neither scatter nor the interval shows it. A measurement beside
other work is *unsettled*. It is made again once the machine is quiet, or the verdict says so.

Waits alone say little: threads of one side wait for one another, eager's also on a quiet machine. They count beside
other work, which is what the processors did besides the two sides, their guards and this process. A candidate is
frozen while the baseline's calls are timed, so it cannot make a measurement unsettled by waiting for itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ParamSpec, Protocol

import torch

from hkbench.evaluation.measure import Measurement
from hkbench.records import Contention

MAX_QUEUED = 0.10  #: share of the time in which threads could run that they waited for a processor
#: Seconds of a call; threads that are woken wait less with nothing else at work, and longer for a turn of others'.
MIN_WAIT = 2e-4
MAX_PRESSURE = 0.10  #: share of the baseline's calls in which some task waited
MAX_STOLEN = 0.05  #: share of the processors' time that went to other virtual machines
MAX_OTHERS = 0.25  #: processors
MAX_MEASUREMENTS = 3
LOOK_SECONDS = 0.25  #: at a machine that is waited for
NOT_COUNTED = (
    "whether other work had the processors while calls were timed: this kernel counts neither waits nor pressure"
)

P = ParamSpec("P")
Queued = Mapping[int, tuple[int, int]]  #: by thread, nanoseconds with a processor and waiting for one


class Side(Protocol):
    """A runner, as far as it is asked how long its threads waited."""

    @property
    def guard_seconds(self) -> float: ...

    def queued(self) -> Queued | None: ...


@dataclass(frozen=True)
class Processors:
    """Seconds of all processors so far: at work, and taken by the hypervisor for others."""

    busy: float
    stolen: float


class Accounts:
    """What the kernel counts for the whole machine, or for the control group that this process is in."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._stat = root / "proc/stat"
        self._pressure = _pressure_file(root)
        self.count = os.cpu_count() or 1

    def processors(self) -> Processors | None:
        """Return the seconds of all processors; `None`: not counted here."""
        try:
            name, *ticks = self._stat.read_text().partition("\n")[0].split()
            user, nice, system, _idle, _wait, irq, softirq, stolen = map(int, ticks[:8])
        except (OSError, ValueError):
            return None
        rate = os.sysconf("SC_CLK_TCK")
        return Processors((user + nice + system + irq + softirq) / rate, stolen / rate) if name == "cpu" else None

    def stalled(self) -> float | None:
        """Return the seconds so far in which some task waited for a processor; `None`: not counted here."""
        if self._pressure is None:
            return None
        try:
            for line in self._pressure.read_text().splitlines():
                kind, *fields = line.split()
                if kind == "some":
                    return int(dict(part.split("=") for part in fields)["total"]) / 1e6
        except (OSError, ValueError, KeyError):  # a kernel may have the file and refuse to read it
            return None
        return None


def _pressure_file(root: Path) -> Path | None:
    """Return the file of this process's own control group, else the machine's where this process has all of it.

    On a part of a machine others may wait for the rest of it all the time.
    """
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        groups = []
    for line in groups:
        if line.startswith("0::"):
            own = root / "sys/fs/cgroup" / line.removeprefix("0::").lstrip("/") / "cpu.pressure"
            if own.exists():
                return own
    whole = root / "proc/pressure/cpu"
    return whole if whole.exists() and len(os.sched_getaffinity(0)) == os.cpu_count() else None


@dataclass
class _Turns:
    """What was counted during the calls of one side."""

    ran: float = 0.0
    waited: float = 0.0
    stalled: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    counted: bool = True  #: the threads' waits
    pressed: bool = True  #: the pressure

    @property
    def queued(self) -> float | None:
        whole = self.ran + self.waited
        return self.waited / whole if self.counted and whole > 0.0 else None

    @property
    def wait(self) -> float:
        """Return the seconds of a call, on average, that its threads waited."""
        return self.waited / self.calls if self.calls else 0.0

    @property
    def pressure(self) -> float | None:
        return self.stalled / self.seconds if self.pressed and self.seconds > 0.0 else None


@dataclass
class Watch:
    """Looks at the accounts around each call of a measurement."""

    baseline: Side
    candidate: Side
    accounts: Accounts = field(default_factory=Accounts)
    clock: Callable[[], float] = time.perf_counter
    _turns: tuple[_Turns, _Turns] = field(init=False)
    _before: tuple[float, Processors | None, float] = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Forget what was seen before: a measurement begins."""
        self._turns = _Turns(), _Turns()
        for side in (self.baseline, self.candidate):
            side.queued()
        self._before = self.clock(), self.accounts.processors(), self._own()

    def around(self, side: Side, call: Callable[P, None]) -> Callable[P, None]:
        """Return `call`, each with the counts looked at before and after it; the side is frozen then."""

        def counted(*args: P.args, **kwargs: P.kwargs) -> None:
            with self._turn(side):
                call(*args, **kwargs)

        return counted

    @contextmanager
    def _turn(self, side: Side) -> Iterator[None]:
        turns = self._turns[side is not self.baseline]
        before, stalled, began = side.queued(), self.accounts.stalled(), self.clock()
        yield
        turns.seconds += self.clock() - began
        turns.calls += 1
        now, after = self.accounts.stalled(), side.queued()
        turns.pressed &= stalled is not None and now is not None
        turns.stalled += (now or 0.0) - (stalled or 0.0)
        turns.counted &= before is not None and after is not None
        for thread, (ran, waited) in (after or {}).items():
            ran_before, waited_before = (before or {}).get(thread, (0, 0))
            turns.ran += (ran - ran_before) / 1e9
            turns.waited += (waited - waited_before) / 1e9

    def found(self) -> Contention:
        """Return what was seen since `begin`, with the reasons for which the measurement is unsettled."""
        left, right = self._turns
        began, before, own_before = self._before
        seconds, after = self.clock() - began, self.accounts.processors()
        stolen = others = None
        if before is not None and after is not None and seconds > 0.0:
            stolen = (after.stolen - before.stolen) / (seconds * self.accounts.count)
            ours = left.ran + right.ran + self._own() - own_before
            others = max(0.0, after.busy - before.busy - ours) / seconds if left.counted and right.counted else None
        found = Contention(
            baseline_queued=left.queued,
            candidate_queued=right.queued,
            pressure=left.pressure,
            stolen=stolen,
            others=others,
        )
        return found.model_copy(update={"reasons": tuple(_reasons(found, left.wait, right.wait))})

    def _own(self) -> float:
        """Return the processor time of this process and of the guards, as far as they have told it."""
        return time.process_time() + self.baseline.guard_seconds + self.candidate.guard_seconds

    def quiet(self, seconds: float, sleep: Callable[[float], None] = time.sleep) -> bool:
        """Wait until the processors are free, at most so long; return whether they are. Nothing of ours runs here."""
        ends = self.clock() + seconds
        while True:
            began, before, stalled = self.clock(), self.accounts.processors(), self.accounts.stalled()
            sleep(LOOK_SECONDS)
            passed, after, now = self.clock() - began, self.accounts.processors(), self.accounts.stalled()
            free = stalled is None or now is None or (now - stalled) / passed <= MAX_PRESSURE
            if before is not None and after is not None:
                used = (after.busy - before.busy + after.stolen - before.stolen) / passed
                free = (
                    free
                    and self.accounts.count - used >= min(torch.get_num_threads(), self.accounts.count) - MAX_OTHERS
                )
            if free or self.clock() >= ends:
                return free


def _reasons(found: Contention, wait: float, candidates_wait: float) -> Iterator[str]:
    """Say why the measurement is unsettled; the waits are the seconds of a call that each side's threads waited.

    Threads wait for one another too, eager's also on a quiet machine: waits count where other work was seen, and where
    it could not be.
    """
    if found.others is None or found.others > MAX_OTHERS:
        beside = "" if found.others is None else f", while other work had {found.others:.1f} processors"
        if _waits(found.baseline_queued, wait):
            yield f"the baseline's threads waited for a processor in {found.baseline_queued:.0%} of their time{beside}"
        if beside and _waits(found.candidate_queued, candidates_wait):
            yield (
                f"the candidate's threads waited for a processor in {found.candidate_queued:.0%} of their time{beside}"
            )
    if found.baseline_queued is None and found.pressure is not None and found.pressure > MAX_PRESSURE:
        yield f"during {found.pressure:.0%} of the baseline's calls something waited for a processor"
    if found.stolen is not None and found.stolen > MAX_STOLEN:
        yield f"the hypervisor gave {found.stolen:.0%} of the processors' time to others"


def _waits(queued: float | None, wait: float) -> bool:
    return queued is not None and queued > MAX_QUEUED and wait > MIN_WAIT


def settled(
    measure: Callable[[], Measurement],
    watch: Watch,
    wait_seconds: float,
    grant: Callable[[float], None],
    tell: Callable[[str], None],
) -> Measurement:
    """Measure, and once or twice more where other work had the processors; what is returned says whether it still had.

    Before each further measurement the machine is waited for, no longer than the one before took and `wait_seconds` in
    all; with 0 there is none. `grant` puts off the end of the evaluation: a busy machine is not the candidate's fault.
    """
    waited = 0.0
    for number in range(1, MAX_MEASUREMENTS + 1):
        watch.begin()
        began = watch.clock()
        measured = measure()
        took = watch.clock() - began
        seen = watch.found().model_copy(update={"measurements": number, "waited_seconds": waited})
        left = min(took, wait_seconds - waited)
        if not seen.reasons or left <= 0.0 or number == MAX_MEASUREMENTS:
            break
        tell(f"waiting for the processors: {seen.reasons[0]}")
        began = watch.clock()
        watch.quiet(left)
        waited += watch.clock() - began
        grant(took + watch.clock() - began)
    return replace(measured, contention=seen, warnings=(*measured.warnings, *_warnings(seen)))


def _warnings(seen: Contention) -> tuple[str, ...]:
    if not seen.reasons:
        return ()
    again = f" in each of {seen.measurements} measurements" if seen.measurements > 1 else ""
    return (
        f"unsettled: other work was on the processors{again} ({'; '.join(seen.reasons)}), so neither the speed-up nor "
        "its interval can be relied on; evaluate it again on a quiet machine",
    )

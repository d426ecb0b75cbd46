"""What the kernel's counts say of other work on the processors, and what becomes of a measurement beside it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hkbench.device_kinds.cpu import CPU
from hkbench.evaluation import contention
from hkbench.evaluation.contention import Accounts, Processors, Queued, Watch, settled
from hkbench.evaluation.link import RunnerLink
from hkbench.evaluation.measure import Measurement, Samples, conclude
from hkbench.sandbox.tree import Tree

MS = 1_000_000  #: nanoseconds


class Machine(Accounts):
    """Counts that a test sets; each look at the clock takes none of them further."""

    def __init__(self, count: int = 2) -> None:
        self.count, self.now = count, 0.0
        self.busy = self.stolen = self.waiting = 0.0

    def processors(self) -> Processors | None:
        return Processors(self.busy, self.stolen)

    def stalled(self) -> float | None:
        return self.waiting


class Runner:
    guard_seconds = 0.0

    def __init__(self) -> None:
        self.threads: dict[int, tuple[int, int]] | None = {7: (0, 0)}

    def queued(self) -> Queued | None:
        return None if self.threads is None else dict(self.threads)


class Bench:
    """Two runners on a machine, whose calls take a millisecond of a thread and wait as long as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
        self.machine, self.baseline, self.candidate = Machine(), Runner(), Runner()
        self.watch = Watch(self.baseline, self.candidate, self.machine, lambda: self.machine.now)
        self.measured = 0

    def measure(self, waits: tuple[float, float] = (0.0, 0.0), others: float = 0.0, stolen: float = 0.0) -> Measurement:
        self.measured += 1
        for side, wait in zip((self.baseline, self.candidate), waits, strict=True):
            self.watch.around(side, self._call)(side, wait, others, stolen)
        return measurement()

    def _call(self, side: Runner, wait: float, others: float, stolen: float) -> None:
        seconds = 0.1 * (1.0 + wait)
        self.machine.now += seconds
        self.machine.busy += 0.1 + others * seconds
        self.machine.stolen += stolen * seconds * self.machine.count
        self.machine.waiting += 0.1 * wait
        if side.threads is not None:
            ran, waited = side.threads[7]
            side.threads[7] = ran + 100 * MS, waited + int(100 * MS * wait)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(monkeypatch)


def never(said: object) -> None:
    raise AssertionError(said)


def measurement() -> Measurement:
    side = Samples([1e-3] * 20, [1e-3] * 20, [1e-3] * 20, [1e-4] * 20)
    return conclude(side, side, "perf_counter", 0, CPU)


def test_a_quiet_machine_settles_it_at_once(bench: Bench) -> None:
    found = settled(bench.measure, bench.watch, 60.0, never, never)
    assert found.contention is not None and found.contention.counted
    assert found.contention.reasons == () and found.contention.measurements == 1
    assert found.contention.baseline_queued == found.contention.pressure == found.contention.stolen == 0.0
    assert not any("unsettled" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("waits", "others", "stolen", "unsettled"),
    [
        ((0.02, 0.0), 0.1, 0.0, False),
        ((1.0, 0.0), 1.0, 0.0, True),
        ((1.0, 0.0), 0.0, 0.0, False),  # eager's threads wait for one another
        ((0.0, 1.0), 0.0, 0.0, False),  # as more threads than processors do
        ((0.0, 1.0), 1.0, 0.0, True),
        ((0.0, 0.0), 1.0, 0.0, False),  # on a processor that nobody else wanted
        ((0.0, 0.0), 0.0, 0.2, True),
    ],
)
def test_only_what_others_do_unsettles(
    bench: Bench, waits: tuple[float, float], others: float, stolen: float, unsettled: bool
) -> None:
    found = settled(lambda: bench.measure(waits, others, stolen), bench.watch, 0.0, never, never)
    assert found.contention is not None
    assert bool(found.contention.reasons) is unsettled
    assert any("unsettled" in warning for warning in found.warnings) is unsettled
    assert bench.measured == 1, "nobody asked to wait"


def test_short_calls_may_wait_a_moment_when_they_are_woken(bench: Bench) -> None:
    def measure(wait: int) -> Measurement:
        ran, waited = (bench.baseline.threads or {})[7]

        def call() -> None:
            bench.baseline.threads = {7: (ran + MS, waited + wait)}

        bench.watch.around(bench.baseline, call)()
        return measurement()

    woken = settled(lambda: measure(MS // 8), bench.watch, 0.0, never, never).contention
    assert woken is not None and woken.reasons == () and woken.baseline_queued == pytest.approx(1 / 9)
    waiting = settled(lambda: measure(MS), bench.watch, 0.0, never, never).contention
    assert waiting is not None and waiting.reasons


def test_pressure_decides_where_threads_are_not_counted(bench: Bench) -> None:
    bench.baseline.threads = bench.candidate.threads = None
    found = settled(lambda: bench.measure((1.0, 0.0)), bench.watch, 0.0, never, never).contention
    assert found is not None and found.baseline_queued is None and len(found.reasons) == 1


def test_it_waits_for_a_quiet_machine_and_measures_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    granted: list[float] = []
    work = iter([((1.0, 1.0), 1.0), ((0.0, 0.0), 0.0)])
    monkeypatch.setattr(bench.watch, "quiet", lambda seconds: setattr(bench.machine, "now", bench.machine.now + 0.25))
    found = settled(lambda: bench.measure(*next(work)), bench.watch, 60.0, granted.append, lambda _: None)
    assert found.contention is not None and found.contention.reasons == ()
    assert (found.contention.measurements, found.contention.waited_seconds) == (2, 0.25)
    assert granted == [pytest.approx(0.4 + 0.25)], "what is thrown away and the wait are not the candidate's"


def test_a_machine_that_stays_busy_is_told_of_in_the_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bench.watch, "quiet", lambda seconds: setattr(bench.machine, "now", bench.machine.now + seconds)
    )
    found = settled(lambda: bench.measure((1.0, 1.0), 1.0), bench.watch, 60.0, lambda _: None, lambda _: None)
    assert found.contention is not None and found.contention.reasons
    assert found.contention.measurements == bench.measured == contention.MAX_MEASUREMENTS
    assert found.contention.waited_seconds == pytest.approx(0.8), "no longer than the calls before took"


@pytest.mark.parametrize(("used", "quiet"), [(0.0, True), (1.0, False)])
def test_a_machine_is_quiet_when_its_processors_are_free(bench: Bench, used: float, quiet: bool) -> None:
    def sleep(seconds: float) -> None:
        bench.machine.now += seconds
        bench.machine.busy += used * seconds

    assert bench.watch.quiet(1.0, sleep) is quiet
    assert bench.machine.now == (contention.LOOK_SECONDS if quiet else 1.0)


def test_the_counts_as_the_kernel_writes_them(tmp_path: Path) -> None:
    own = tmp_path / "sys/fs/cgroup/box"
    for folder in (tmp_path / "proc/self", tmp_path / "proc/pressure", own):
        folder.mkdir(parents=True)
    rate = os.sysconf("SC_CLK_TCK")
    ticks = " ".join(str(seconds * rate) for seconds in (10, 1, 2, 300, 40, 3, 4, 5, 6, 7))
    (tmp_path / "proc/stat").write_text(f"cpu  {ticks}\ncpu0 1 1 1 1\n")
    (tmp_path / "proc/self/cgroup").write_text("3:cpu:/old\n0::/box\n")
    line = "some avg10=44.60 avg60=30.97 avg300=10.92 total=46802050\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
    (own / "cpu.pressure").write_text(line)
    (tmp_path / "proc/pressure/cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n")
    accounts = Accounts(tmp_path)
    assert accounts.processors() == Processors(busy=20.0, stolen=5.0)
    assert accounts.stalled() == pytest.approx(46.80205), "of its own control group"
    nothing = Accounts(tmp_path / "absent")
    assert nothing.processors() is None and nothing.stalled() is None


def counts(processes: list[subprocess.Popen[bytes]]) -> list[tuple[int, int]]:
    queued = Tree(os.getpid()).queued()
    assert queued is not None
    return [queued.get(process.pid, (0, 0)) for process in processes]


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this kernel does not count waits")
def test_processes_on_one_processor_wait_for_one_another() -> None:
    place = min(os.sched_getaffinity(0))
    spin = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{place}}})\nwhile True: pass"]
    processes = [subprocess.Popen(spin) for _ in range(3)]
    try:
        while any(ran < 20 * MS for ran, _ in counts(processes)):
            time.sleep(0.05)
        before = counts(processes)  # each has found its place
        while any(
            ran - ran_before < 50 * MS for (ran, _), (ran_before, _) in zip(counts(processes), before, strict=True)
        ):
            time.sleep(0.05)
        passed = [
            [now - then for now, then in zip(*pair, strict=True)]
            for pair in zip(counts(processes), before, strict=True)
        ]
        assert sum(waited for _, waited in passed) > sum(ran for ran, _ in passed), "each waits for two others"
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_the_guard_is_asked_by_the_link() -> None:
    (ours, guards), (channel, other) = socket.socketpair(), socket.socketpair()
    link = RunnerLink(channel, ours)
    guards.sendall(
        b'{"threads": [[7, 100, 20], [8, 5, 0]], "guard_seconds": 1.5}\n{"threads": null, "guard_seconds": 1.75}\n'
    )
    assert link.queued() == {7: (100, 20), 8: (5, 0)} and link.guard_seconds == 1.5
    assert link.queued() is None and link.guard_seconds == 1.75
    assert guards.recv(2) == b"WW"
    for end in (ours, guards, channel, other):
        end.close()

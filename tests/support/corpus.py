"""The corpus: its cases (corpus_cases.py), each run as a real candidate, and what became of them."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from support.cluster_traces import planted
from support.corpus_cases import (
    CLASSES as CLASSES,
    EMULATED as EMULATED,
    GOOD as GOOD,
    ROOT as ROOT,
    Case as Case,
    CorpusError as CorpusError,
    load_cases as load_cases,
    parse as parse,
)

from hkbench.cli.arguments import add_device, chosen_sizes, device_kind
from hkbench.cli.settings import add_evaluation, evaluation_settings
from hkbench.engine import LocalEvaluator
from hkbench.engine.slots import BuildSlots, Devices
from hkbench.engine.workers import DeviceLocks
from hkbench.errors import HkbenchError
from hkbench.evaluation.refusal import NO_WORK
from hkbench.problems import load_problem
from hkbench.records import DeviceKind, EvaluationSettings, Ownership, Severity, SizeSet, Status, Verdict

#: Short, since the corpus is long; the evaluator is the same.
QUICK = (
    *("--trials", "3", "--timing-runs", "10", "--timing-seconds", "1", "--no-profile"),
    *("--run-timeout", "10", "--load-timeout", "40", "--build-timeout", "120", "--busy-wait", "0"),
)
#: Planted in the environment of the harness, for an attack to look for.
SECRET = ("HKBENCH_CORPUS_SECRET", "not for candidates")
QUICK_WARMUPS = 1  #: by the engine only; a call costs 0.15 s on a CPU, most of it to evict the caches
MORE_LOOKS = 2
HUNG_SECONDS = 240.0  #: no verdict after this long: the harness itself hangs
#: Its kernels are executed by the processors that everything else here needs.
PATIENT = ("--run-timeout", "30", "--load-timeout", "120", "--build-timeout", "300")


@dataclass(frozen=True)
class Row:
    """What became of one case."""

    case: str
    group: str
    title: str
    expected: str
    status: str  #: of the verdict, or "no verdict"
    kind: str | None
    stage: str | None
    message: str
    reason_found: bool
    findings: tuple[str, ...]  #: of the static reading: "severity rule"
    seconds: float
    exit_code: int | None  #: of eval.py, where it ran the case
    passed: bool
    ownership: str | None = None
    speedup: tuple[float, float] | None = None  #: the ends of its interval
    awaits_twin: bool = False  #: an attack that was judged correct, and is still to be held against its honest twin

    @property
    def word(self) -> str:
        """In the table: an attack that succeeded is louder than one caught by another rule than expected."""
        if self.passed:
            return "ok"
        if self.status == "no verdict":
            return "NO VERDICT"
        if self.awaits_twin:
            return "its twin decides"
        if self.group != "honest" and self.status in GOOD:
            return "ATTACK SUCCEEDED"
        return "HONEST HURT" if self.group == "honest" else "not as expected"


def options_of(case: Case, device: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the words for eval.py, and for the evaluator."""
    patient = PATIENT if device.startswith(EMULATED) else ()
    return ("--device", device, *QUICK, *patient, *more, *case.options)


async def run(
    cases: Sequence[Case],
    device: str,
    options: Sequence[str] = (),
    jobs: int = 2,
    via: Literal["engine", "eval"] = "engine",
    on_row: Callable[[Row], None] = lambda _row: None,
    again: bool = False,
) -> list[Row]:
    """Evaluate all cases, `jobs` at a time; the rows are in the order of the cases.

    On a CPU only those that have to be found by the clock are measured alone on the machine; the others are judged in
    `jobs` lanes side by side.

    With `again` those that did not come out as expected are judged up to `MORE_LOOKS` times more, alone, and the last
    row counts: other programs on the machine disturb clocks.

    `via="engine"` takes one evaluator for all cases of a lane with the same options; "eval" starts eval.py for each.
    """
    os.environ.update([SECRET])
    cases = [case.on(device) for case in cases]
    with tempfile.TemporaryDirectory(prefix="hkbench-corpus-") as folder:
        async with contextlib.AsyncExitStack() as stack:
            stack.enter_context(planted())
            lanes = [Lane(stack, Path(folder), device, options, via, on_row) for _ in range(jobs)]
            beside = [case for case in cases if device == "cpu" and not case.by_the_clock]
            found = await side_by_side(lanes, beside)
            alone = lanes[0]
            gate = asyncio.Semaphore(jobs)

            async def gated(case: Case) -> None:
                async with gate:
                    found[case.path] = await alone.judge(case)

            async with asyncio.TaskGroup() as judged:  # an evaluator that cannot start ends the others' waiting too
                for case in cases:
                    if case.path not in found:
                        judged.create_task(gated(case))
            twins: dict[Path, Row] = {}

            async def weighed(case: Case, row: Row) -> Row:
                if case.twin is None or row.status not in GOOD:
                    return row
                twins[case.twin] = twins.get(case.twin) or await alone.judge(parse(case.twin).on(device))
                row = held_against(row, twins[case.twin])
                on_row(row)
                return row

            for case in cases:
                row = await weighed(case, found[case.path])
                for _ in range(MORE_LOOKS if again else 1):
                    # Without a verdict: perhaps a neighbour took the harness down.
                    if row.passed or not (again or row.status == "no verdict"):
                        break
                    row = await weighed(case, await alone.judge(case))
                found[case.path] = row
            return [found[case.path] for case in cases]


async def side_by_side(lanes: Sequence[Lane], cases: Iterable[Case]) -> dict[Path, Row]:
    """Judge the cases, one at a time in each lane; return their rows by the cases' files.

    Those with options of their own, which need an evaluator each, are the first lane's.
    """
    own: deque[Case] = deque()
    usual: deque[Case] = deque()
    for case in cases:
        (own if case.options else usual).append(case)
    found: dict[Path, Row] = {}

    async def work(lane: Lane, queues: Sequence[deque[Case]]) -> None:
        for queue in queues:
            while queue:
                case = queue.popleft()
                found[case.path] = await lane.judge(case)

    await asyncio.gather(*(work(lane, (usual,) if number else (own, usual)) for number, lane in enumerate(lanes)))
    return found


class Lane:
    """Evaluators that measure one at a time, one for each set of options; started when a case needs it."""

    def __init__(
        self,
        stack: contextlib.AsyncExitStack,
        folder: Path,
        device: str,
        options: Sequence[str],
        via: Literal["engine", "eval"],
        on_row: Callable[[Row], None],
    ) -> None:
        self._stack, self._folder, self._via, self._on_row = stack, folder, via, on_row
        self._device, self._options = device, options
        self._machine = Machine()
        stack.callback(DeviceLocks.close, self._machine.locks)
        self._benches: dict[tuple[str, ...], Bench] = {}

    async def judge(self, case: Case) -> Row:
        words = options_of(case, self._device, self._options)
        if self._via == "eval":
            row = await asyncio.to_thread(run_eval, case, words, self._folder)
        else:
            if words not in self._benches:
                self._benches[words] = await self._stack.enter_async_context(Bench.open(words, self._machine))
            row = await self._benches[words].judge(case, self._folder)
        self._on_row(row)
        return row


class SharedLocks(DeviceLocks):
    """Locks that outlast each of the evaluators."""

    def close(self) -> None:
        """Leave them for the others."""


@dataclass
class Machine:
    """Who builds and who measures, for all evaluators of a lane.

    Else one would measure beside another's endless kernel.
    """

    slots: BuildSlots | None = None
    lent: Devices | None = None
    locks: DeviceLocks = field(default_factory=SharedLocks)


def _quick(options: argparse.Namespace) -> dict[str, int]:
    """Return the settings that make a case quick: further shapes are looked at where it asks for them."""
    asked = options.shapes is not None or options.require_shapes
    return {"warmups": QUICK_WARMUPS} | ({} if asked else {"shapes": 0})


class OneOfSeveral(LocalEvaluator):
    """An evaluator beside others with other settings."""

    def __init__(
        self, kind: DeviceKind | None, settings: EvaluationSettings, sizes: SizeSet | None, machine: Machine
    ) -> None:
        super().__init__(kind, settings, sizes)
        self._machine, self._locks = machine, machine.locks

    def _share(self) -> None:
        super()._share()
        self._machine.slots = self._slots = self._machine.slots or self._slots
        self._machine.lent = self._lent = self._machine.lent or self._lent


class Bench:
    """One evaluator; replaced when an attack has taken it down, so that the next case is judged all the same."""

    def __init__(self, words: Sequence[str], machine: Machine) -> None:
        parser = argparse.ArgumentParser()
        add_device(parser)
        add_evaluation(parser)
        self._options = parser.parse_args(words)
        self._machine = machine
        self._evaluator: LocalEvaluator | None = None
        self._users: Counter[LocalEvaluator] = Counter()  # cases that it judges
        self._lock = asyncio.Lock()

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, words: Sequence[str], machine: Machine) -> AsyncIterator[Bench]:
        bench = cls(words, machine)
        try:
            yield bench
        finally:
            await bench.close()

    async def close(self) -> None:
        if self._evaluator is not None:
            await self._evaluator.__aexit__()

    async def judge(self, case: Case, folder: Path) -> Row:
        evaluator = await self.evaluator()
        self._users[evaluator] += 1
        try:
            return await self._judged(evaluator, case, folder)
        finally:
            self._users[evaluator] -= 1
            if evaluator is not self._evaluator and not self._users[evaluator]:
                await evaluator.__aexit__()

    async def _judged(self, evaluator: LocalEvaluator, case: Case, folder: Path) -> Row:
        started = time.monotonic()
        try:
            async with asyncio.timeout(HUNG_SECONDS):
                build = folder / case.name / "build"
                evaluated = await evaluator.evaluate(load_problem(case.problem), case.path, build, case.backend)
        except (HkbenchError, TimeoutError) as error:
            if evaluator is self._evaluator:  # the next case has another; those under way keep this one
                self._evaluator = None
            return without_verdict(case, f"{type(error).__name__}: {error}", time.monotonic() - started)
        assert evaluated.verdict is not None
        return row_of(case, evaluated.verdict, time.monotonic() - started)

    async def evaluator(self) -> LocalEvaluator:
        async with self._lock:
            if self._evaluator is None:
                options = self._options
                settings = evaluation_settings(options).model_copy(update=_quick(options))
                evaluator = OneOfSeveral(device_kind(options), settings, chosen_sizes(options), self._machine)
                self._evaluator = await evaluator.__aenter__()
            return self._evaluator


def run_eval(case: Case, words: Sequence[str], folder: Path) -> Row:
    """Return the same by the command line; its exit code has to fit the verdict."""
    output = folder / f"{case.name}.json"
    command = [sys.executable, str(ROOT / "eval.py"), "--code", str(case.path), "--problem", str(case.problem)]
    command += ["--backend", case.backend, "--output", str(output), *words]
    started = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=HUNG_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return without_verdict(case, "eval.py did not end", time.monotonic() - started)
    seconds = time.monotonic() - started
    if not output.exists():
        return without_verdict(case, done.stderr.strip()[-400:], seconds, done.returncode)
    return row_of(case, Verdict.model_validate_json(output.read_text()), seconds, done.returncode)


EXIT_CODES = {Status.FAST: 0, Status.EMULATED: 0, Status.SLOW: 1, Status.INCORRECT: 2, Status.REFUSED: 2}


def row_of(case: Case, verdict: Verdict, seconds: float, exit_code: int | None = None) -> Row:
    """Return whether the verdict is what the case expects: status, or kind of failure and its reason."""
    failure = verdict.failure
    open_ends = "; ".join(text for text in verdict.conditions.not_checked if text.startswith(NO_WORK))
    message = failure.message if failure else open_ends
    found = case.reason is None or re.search(case.reason, message, re.IGNORECASE) is not None
    flagged = [item for item in verdict.findings if item.severity is not Severity.ADVICE]
    if case.honest:
        refused = failure is not None and failure.kind.value in case.instead
        passed = refused or (verdict.status.value in case.outcome and not flagged)
    elif failure is None:
        unclaimed = verdict.ownership is Ownership.NOT_ESTABLISHED and verdict.ownership.value in case.outcome
        passed = unclaimed or verdict.status.value in case.outcome
    else:
        passed = (failure.kind.value in case.outcome and found) or failure.kind.value in case.instead
    if exit_code is not None:
        passed = passed and exit_code == EXIT_CODES[verdict.status]
    return Row(
        case=case.name,
        group=case.group,
        title=case.title,
        expected="|".join(sorted(case.outcome)),
        status=verdict.status.value,
        kind=failure.kind.value if failure else None,
        stage=failure.stage.value if failure else None,
        message=message,
        reason_found=found,
        findings=tuple(f"{item.severity} {item.rule}" for item in verdict.findings),
        seconds=seconds,
        exit_code=exit_code,
        passed=passed,
        ownership=None if verdict.ownership is None else verdict.ownership.value,
        speedup=None if verdict.speedup is None else (verdict.speedup.low, verdict.speedup.high),
        awaits_twin=case.twin is not None and verdict.status in GOOD and not passed,
    )


def held_against(row: Row, twin: Row) -> Row:
    """Return an attack that was judged correct, with what its honest twin came to."""
    row = replace(row, awaits_twin=False)
    if row.speedup is None or twin.speedup is None:
        return row
    (low, high), (twin_low, twin_high) = row.speedup, twin.speedup
    message = f"{low:.3f} to {high:.3f} times as fast; its twin {twin.case} {twin_low:.3f} to {twin_high:.3f}"
    return replace(row, passed=low <= twin_high, message=message)


def without_verdict(case: Case, message: str, seconds: float, exit_code: int | None = None) -> Row:
    """Return the harness failed instead of the candidate: never what a case expects."""
    return Row(
        case=case.name,
        group=case.group,
        title=case.title,
        expected="|".join(sorted(case.outcome)),
        status="no verdict",
        kind=None,
        stage=None,
        message=message,
        reason_found=False,
        findings=(),
        seconds=seconds,
        exit_code=exit_code,
        passed=False,
    )


def as_json(rows: Sequence[Row]) -> list[dict[str, object]]:
    return [asdict(row) for row in rows]


def totals(rows: Sequence[Row]) -> list[tuple[str, int, int, int]]:
    """By class: cases, as expected, attacks that succeeded (or honest candidates hurt)."""
    every, good = Counter(row.group for row in rows), Counter(row.group for row in rows if row.passed)
    loud = Counter(row.group for row in rows if row.word in ("ATTACK SUCCEEDED", "HONEST HURT", "NO VERDICT"))
    order = [*CLASSES.values(), "honest"]
    return [(group, every[group], good[group], loud[group]) for group in order if every[group]]


def markdown(rows: Sequence[Row]) -> str:
    """Return the table and the totals, for a document."""
    lines = ["| case | what it does | verdict | caught by | seconds | |", "| --- | --- | --- | --- | ---: | --- |"]
    for row in rows:
        what = row.title.split(": ", 1)[-1].replace("|", "\\|")
        unclaimed = "not established" if row.ownership == Ownership.NOT_ESTABLISHED.value else ""
        caught = f"{row.kind} at {row.stage}" if row.kind else unclaimed
        lines.append(f"| {row.case} | {what} | {row.status} | {caught} | {row.seconds:.1f} | {row.word} |")
    lines += ["", "| class | cases | as expected | succeeded or hurt |", "| --- | ---: | ---: | ---: |"]
    lines += [f"| {group} | {every} | {good} | {loud} |" for group, every, good, loud in totals(rows)]
    every, good = len(rows), sum(row.passed for row in rows)
    return "\n".join([*lines, f"| all | {every} | {good} | {sum(t[3] for t in totals(rows))} |"]) + "\n"

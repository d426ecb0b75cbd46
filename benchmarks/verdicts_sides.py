"""The two sides of verdicts.py: hkbench's evaluator, here and as a process, and KernelBench's as a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.kernelbench_verdict import TRIALS
from benchmarks.verdicts_figures import HKBENCH, KERNELBENCH, Figure, failed, of_answer, of_verdict
from hkbench.engine import LocalEvaluator
from hkbench.engine.slots import BuildSlots, Devices, DeviceSlot, host_share
from hkbench.errors import HkbenchError
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, Problem, SlotTimes, Track, Verdict
from hkbench.registry import default_backend
from hkbench.sandbox.environment import runner_path

ROOT = Path(__file__).resolve().parents[1]
LAST_WORDS = 2000  #: characters of a process's messages that are kept


def settings(runs: int) -> EvaluationSettings:
    """Return what KernelBench does too, with `runs` timed runs of each side."""
    return EvaluationSettings(trials=TRIALS, timing_runs=runs, track=Track.ANY, profile_slow=False)


@dataclass(frozen=True)
class Task:
    """One candidate for one problem, to be judged for the `number`th time."""

    problem: Problem
    code: Path
    number: int

    @property
    def name(self) -> str:
        return f"{self.problem.name}#{self.number}"


class Lending(Devices):
    """Lends a device to the task whose turn it is; tasks are known by their names in asyncio."""

    def __init__(self, indexes: Sequence[int], each: int = 1) -> None:
        super().__init__(indexes, each)
        self._turns: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._arrivals: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    @asynccontextmanager
    async def one(self) -> AsyncIterator[DeviceSlot]:
        task = asyncio.current_task()
        assert task is not None
        name = task.get_name()
        self._arrivals[name].set()
        await self._turns[name].wait()
        async with super().one() as slot:
            yield slot

    def give(self, name: str) -> None:
        self._turns[name].set()

    async def arrival(self, name: str) -> None:
        """Until the task wants the device."""
        await self._arrivals[name].wait()


class TakingTurns(LocalEvaluator):
    """hkbench's evaluator, in which a candidate that is built waits until it is told to go on."""

    spares = False  #: whether the first of several devices is left to the other side

    @property
    def beside(self) -> bool:
        """Whether both sides can evaluate at once, the other one on the device that is left to it."""
        return self.spares and len(self.devices) > 1

    async def __aenter__(self) -> TakingTurns:
        await super().__aenter__()
        own = self.devices[1:] if self.beside else self.devices
        self._lent = self.turns = Lending([facts.index for facts in own])
        # Each build has two cores for its two halves, and what is counted beside it need not wait for others' builds.
        builds = max(1, len(os.sched_getaffinity(0)) // 2)
        self._slots = BuildSlots(builds, host_share(self._model))
        return self


class Ours:
    """hkbench in one long-lived process, as a batch uses it."""

    def __init__(self, evaluator: TakingTurns, scratch: Path, runs: int) -> None:
        self._evaluator = evaluator
        self._runs = runs
        self._scratch = scratch
        self._started: dict[str, asyncio.Task[Figure]] = {}

    def start(self, task: Task, cold: bool = False) -> None:
        """Build the candidate, beside others that were started; `evaluate` lets it go on."""
        work = self._evaluate(task, cold)
        self._started[task.name] = asyncio.create_task(work, name=task.name)

    async def built(self, task: Task) -> bool:
        """Wait until the candidate is loaded and wants the device; whether it came so far."""
        running = self._started[task.name]
        arrival = asyncio.create_task(self._evaluator.turns.arrival(task.name))
        await asyncio.wait((running, arrival), return_when=asyncio.FIRST_COMPLETED)
        arrival.cancel()
        return not running.done()

    async def evaluate(self, task: Task) -> Figure:
        self._evaluator.turns.give(task.name)
        return await self._started.pop(task.name)

    async def evaluate_cold(self, task: Task) -> Figure:
        self._evaluator.turns.give(task.name)
        self.start(task, cold=True)
        return await self.evaluate(task)

    async def evaluate_as_process(self, task: Task, cold: bool, limit: float | None) -> Figure:
        """By eval.py, which builds for itself."""
        return await eval_process(task, self._evaluator.device.kind, self._scratch, cold, limit, self._runs)

    async def close(self) -> None:
        """End what nobody waits for any more."""
        for running in self._started.values():
            running.cancel()
        await asyncio.gather(*self._started.values(), return_exceptions=True)

    async def _evaluate(self, task: Task, cold: bool) -> Figure:
        backend = default_backend(self._evaluator.device.kind)
        folder = self._scratch / f"{task.problem.name}_{task.number}"
        started = time.perf_counter()
        try:
            evaluated = await self._evaluator.evaluate(task.problem, task.code, folder, backend)
        except HkbenchError as error:
            seconds = time.perf_counter() - started
            return failed(HKBENCH, task.problem.name, False, cold, seconds, f"{type(error).__name__}: {error}")
        assert evaluated.verdict is not None and evaluated.turns is not None
        seconds = time.perf_counter() - started - _waited(evaluated.turns)
        return of_verdict(evaluated.verdict, seconds, process=False, cold=cold)


def _waited(turns: SlotTimes) -> float:
    """Seconds for a slot to build in and for the device."""
    return turns.building - turns.asked + (0.0 if turns.lent is None else turns.lent - turns.loaded)


async def eval_process(
    task: Task, kind: DeviceKind, scratch: Path, cold: bool, limit: float | None, runs: int
) -> Figure:
    """hkbench as a process: eval.py, from its start to its end."""
    output = scratch / f"{task.problem.name}_{task.number}.json"
    scratch.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    words = ["--code", task.code, "--problem", task.problem.path, "--device", kind.value, "--output", output]
    words += ["--trials", TRIALS, "--timing-runs", runs, "--track", "any", "--no-profile"]
    done = await finish([sys.executable, ROOT / "eval.py", *words], os.environ, limit)
    if not output.is_file():
        reason = f"exit code {done.code}: {done.errors}"
        return failed(HKBENCH, task.problem.name, True, cold, done.seconds, reason)
    verdict = Verdict.model_validate_json(output.read_text(encoding="utf-8"))
    return of_verdict(verdict, done.seconds, process=True, cold=cold)


class KernelBench:
    """Their evaluator, a process a verdict."""

    def __init__(self, checkout: Path, device: DeviceFacts, scratch: Path, runs: int, at_once: int = 1) -> None:
        """Its processes see the machine's devices in their order and use the first; `at_once` of them evaluate."""
        self._checkout = checkout
        self._scratch = scratch
        self._runs = runs
        self._turns = asyncio.Semaphore(at_once)
        # ninja as hkbench's builds find it, and the same code for the same device.
        self._environment = dict(os.environ) | {"PATH": runner_path(), "TORCH_CUDA_ARCH_LIST": capability(device)}

    def folder(self, task: Task, cold: bool = False) -> Path:
        """Return the build cache; of all repeats unless each builds."""
        return self._scratch / (f"{task.problem.name}_{task.number}" if cold else task.problem.name)

    async def build(self, task: Task, limit: float | None) -> str | None:
        """Fill the build cache without a GPU; what went wrong, if anything."""
        # `current_device()` is asked for when their module is imported; here it would make a context for nothing.
        hidden = self._environment | {"CUDA_VISIBLE_DEVICES": ""}
        done = await finish([*self._command(task, self.folder(task)), "--build-only"], hidden, limit)
        if done.code != 0:
            return f"exit code {done.code}: {done.errors}"
        answer = json.loads(done.output.splitlines()[-1])
        return None if answer["built"] else str(answer["error"])

    async def evaluate(self, task: Task, limit: float | None, cold: bool = False) -> list[Figure]:
        """The figures of the call and of the process around it; waits for its turn first, which does not count."""
        async with self._turns:
            done = await finish(self._command(task, self.folder(task, cold)), self._environment, limit)
        if done.code != 0:
            reason = f"exit code {done.code}: {done.errors}"
            return [failed(KERNELBENCH, task.problem.name, True, cold, done.seconds, reason)]
        return of_answer(task.problem.name, json.loads(done.output.splitlines()[-1]), done.seconds, cold)

    def _command(self, task: Task, folder: Path) -> list[str | Path]:
        script = ROOT / "benchmarks" / "kernelbench_verdict.py"
        files: list[str | Path] = ["--problem", task.problem.path, "--code", task.code, "--build-dir", folder]
        return [sys.executable, script, self._checkout, *files, "--runs", str(self._runs)]


def capability(device: DeviceFacts) -> str:
    """As TORCH_CUDA_ARCH_LIST names it: "9.0" for sm_90."""
    digits = (device.arch or "").removeprefix("sm_")
    if not digits[:-1].isdecimal():
        raise SystemExit(f"{device.name}: its architecture is {device.arch}, which is none of an NVIDIA GPU")
    return f"{digits[:-1]}.{digits[-1]}"


@dataclass(frozen=True)
class Done:
    """What became of a process; `errors` is the end of what it wrote there."""

    code: int
    output: str
    errors: str
    seconds: float


async def finish(command: Sequence[object], environment: Mapping[str, str], limit: float | None) -> Done:
    """Run a process to its end, or kill it and all that it started after `limit` seconds."""
    started = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=dict(environment),
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        output, errors = await asyncio.wait_for(process.communicate(), limit)
    except TimeoutError:
        await _kill(process)
        return Done(-9, "", f"it was ended after {limit:.0f} s, at the time limit", time.perf_counter() - started)
    except asyncio.CancelledError:
        await _kill(process)
        raise
    words = errors.decode(errors="replace")[-LAST_WORDS:]
    assert process.returncode is not None
    return Done(process.returncode, output.decode(errors="replace"), words, time.perf_counter() - started)


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.communicate()  # to the end of its pipes, which the event loop would otherwise find open when it ends


def repeated(tasks: Sequence[Task], repeats: int) -> list[Task]:
    """Return all of them once, then all of them again."""
    return [replace(task, number=number) for number in range(repeats) for task in tasks]

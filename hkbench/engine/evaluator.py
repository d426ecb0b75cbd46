"""Judges candidates: two judge processes and two guarded runners, forked from servers that have imported torch."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import psutil

from hkbench import errors
from hkbench.engine.built_code import with_built_code
from hkbench.engine.channel import Channel
from hkbench.engine.confinement import Cages, prefix, require, survey
from hkbench.engine.guards import QUIET_KINETO, Guards, Spare
from hkbench.engine.judges import Judges
from hkbench.engine.kittens import Kittens, find_kittens
from hkbench.engine.needs import check_kind, check_tools
from hkbench.engine.preparation import Preparation
from hkbench.engine.private_folder import private_folder
from hkbench.engine.slots import BuildSlots, Devices
from hkbench.judge.audited import ProblemAudit
from hkbench.judge.job import SOCKETS, AuditJob, DescribeJob, EvaluateJob, FactsJob
from hkbench.records import (
    Backend,
    DeviceFacts,
    DeviceKind,
    DevicePlace,
    FailureKind,
    JudgeSettings,
    Problem,
    ProblemFacts,
    SizeSet,
    Stage,
    Track,
    Turns,
    Verdict,
)
from hkbench.sandbox.client import ForkServer, ForkServerLost, memory_file
from hkbench.sandbox.environment import kept_environment

GIB = 1 << 30
MEMORY_SHARE = 0.8
LOADED_AHEAD = 2  #: candidates for each device that may have it or wait for it, beyond the builds under way
DESCRIBE_SECONDS = 300.0
SILENT_SECONDS = 600.0  #: for a judge to say something beyond the limits that it holds a candidate to
FACTS_SECONDS = 600.0
CANDIDATE = "candidate"  #: the private folder of its runner
DEVICE_CODE = "device_code"  #: beside them: copies of what the candidate built, for the tools that read them

#: glibc gives large freed blocks back to the system or not, by the history of its heap; a fresh page then costs more
#: than the arithmetic on it, in one process and not in its twin. With these both sides keep what they have touched.
STEADY_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the largest that glibc accepts
    "MALLOC_TRIM_THRESHOLD_": str(64 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}

#: The judge works between timed calls. Its OpenMP threads stay awake from one operation to the next (to wake them costs
#: more than most operations), but spin for some 0.5 ms only, where libgomp's default is up to 15 ms: not into a call.
BRIEF_SPIN = {"GOMP_SPINCOUNT": "20000"}

#: Failures that a missing compiler looks like. A lazy candidate builds when it is called.
_BY_TOOLS = frozenset({FailureKind.BUILD_ERROR, FailureKind.LOAD_ERROR, FailureKind.RUNTIME_ERROR})

#: Told of each stage with the index of the device that is lent for it, `None` while none is.
OnStage = Callable[[Stage, int | None], None]

#: Told of the steps within a stage, in words: "trial 2 of 5".
OnStep = Callable[[str], None]


@dataclass(frozen=True)
class Ends:
    """The judge's ends of an evaluation's sockets, and its files: given to the judge that loads and that measures."""

    sockets: tuple[socket.socket, ...]
    files: tuple[int, ...]

    @property
    def descriptors(self) -> list[int]:
        return [*(sock.fileno() for sock in self.sockets), *self.files]

    def close(self) -> None:
        """To be called once. A runner whose judge is gone ends when these are closed too."""
        for sock in self.sockets:
            sock.close()
        for fd in self.files:
            os.close(fd)


@dataclass(frozen=True)
class Evaluated:
    """The verdict, or for a build-only evaluation what the candidate wanted built."""

    verdict: Verdict | None
    extensions: tuple[dict[str, Any], ...] = ()
    launched: dict[str, Any] | None = None  #: see judge/launches.py
    output: str | None = None
    turns: Turns | None = None


class Evaluator:
    """Use as an async context manager; `open` starts both fork servers at once (seconds, while torch is imported)."""

    def __init__(
        self,
        kind: DeviceKind | None,
        settings: JudgeSettings,
        sizes: SizeSet | None = None,
        builds: int | None = None,
        prepares: bool = False,
        indices: Sequence[int] | None = None,
    ) -> None:
        """`prepares`: what later candidates' builds could use is made beside the run (preparation.py).

        `indices`: the devices to measure on, by torch's numbers; `None`: all of the kind.
        """
        self._kind = kind
        self._indices = indices
        self._settings = settings
        self._sizes = sizes
        self._builds = builds or len(os.sched_getaffinity(0))
        self._prepares = prepares
        self._preparation: Preparation | None = None
        self._kittens: Kittens | None = None
        self._served: set[Backend] = set()  # that candidates have all they need for
        own = BRIEF_SPIN | STEADY_MALLOC | ({"HOME": os.environ["HOME"]} if "HOME" in os.environ else {})
        self._judges = ForkServer("hkbench.judge.worker", kept_environment() | own)
        self._runners = ForkServer("hkbench.runner.main", kept_environment() | STEADY_MALLOC | QUIET_KINETO)
        self._memory = int((settings.memory_gib or 0) * GIB) or int(MEMORY_SHARE * psutil.virtual_memory().total)
        self._measuring = self._judges_of(())
        self.devices: tuple[DeviceFacts, ...] = ()

    async def __aenter__(self) -> Evaluator:
        self._judges.start()
        try:
            self.isolation = await survey()
            require(self.isolation, self._settings.require_isolation)
            self._runners.start(prefix(self.isolation))
            await asyncio.gather(
                asyncio.to_thread(self._judges.wait_ready), asyncio.to_thread(self._runners.wait_ready)
            )
            self.devices = await self._describe()
        except BaseException as error:
            await self.__aexit__()
            if isinstance(error, ForkServerLost):
                raise errors.WorkerLost(f"{error}; does `python -c 'import torch'` work?") from error
            raise
        self._cages = Cages(self.isolation)
        self._share()
        kind = self.device.kind
        # On a CPU nothing is measured meanwhile: that takes longer than a short run gains.
        prepares = self._prepares and kind is not DeviceKind.CPU
        self._preparation = Preparation(self.isolation, self._cages, self._slots, self._settings, kind, prepares)
        self._guards = Guards(self._cages, self.device, self._memory, self._preparation)
        self._measuring = self._judges_of(self.devices)
        self._measuring.start()
        return self

    def _share(self) -> None:
        """Who may build and measure at once: as many builds as cores, one measurement for each device."""
        self._slots = BuildSlots(self._builds, exclusive_measurement=self.device.kind is DeviceKind.CPU)
        self._loaded = asyncio.Semaphore(self._builds + LOADED_AHEAD * len(self.devices))
        self._lent = Devices([facts.index for facts in self.devices])

    def _judges_of(self, devices: tuple[DeviceFacts, ...]) -> Judges:
        return Judges((self._judges, self._runners), lambda folder: self._guards.baseline(folder), devices)

    async def __aexit__(self, *_: object) -> None:
        if self._preparation is not None:
            await self._preparation.close()
        await asyncio.to_thread(self._measuring.close)
        await asyncio.to_thread(self._judges.close)
        await asyncio.to_thread(self._runners.close)

    @property
    def device(self) -> DeviceFacts:
        return self.devices[0]

    @property
    def places(self) -> tuple[DevicePlace, ...]:
        """Where the devices are, for the journal."""
        return tuple(
            DevicePlace(index=facts.index, name=facts.name, uuid=facts.uuid, pci=facts.pci) for facts in self.devices
        )

    @property
    def track(self) -> Track:
        return self._settings.track

    @property
    def sizes(self) -> SizeSet:
        """The sizes in force: the problems' CPU sizes on a CPU unless told otherwise."""
        if self._sizes is not None:
            return self._sizes
        return SizeSet.CPU if self.device.kind is DeviceKind.CPU else SizeSet.FULL

    async def _describe(self) -> tuple[DeviceFacts, ...]:
        job = DescribeJob(kind=self._kind)
        result = await self._simple(job.model_dump(mode="json"), DESCRIBE_SECONDS)
        found = tuple(DeviceFacts.model_validate(item) for item in result)
        return found if self._indices is None else chosen_devices(found, self._indices)

    @property
    def compiled_for(self) -> str | None:
        """Candidates are measured; see `BuildEvaluator`."""
        return None

    def build_slot(self) -> AbstractAsyncContextManager[None]:
        """Within it the caller's build is one of those that go on side by side."""
        return self._slots.build()

    async def problem_facts(self, problem: Problem, seconds: float | None = None) -> ProblemFacts:
        """Shapes, dtypes and operators, by running the problem's own code in a process of its own.

        Raises:
            HkbenchError: the problem's code fails, or takes longer than `seconds` (`FACTS_SECONDS`).
        """
        limit = FACTS_SECONDS if seconds is None else seconds
        job = FactsJob(problem=problem, sizes=self.sizes)
        return ProblemFacts.model_validate(await self._simple(job.model_dump(mode="json"), limit))

    async def audit_problem(self, problem: Problem, seconds: float) -> ProblemAudit:
        """Which null controls pass the problem's checks; one at a time a GPU, on a CPU as many as builds.

        Raises:
            HkbenchError: the problem's code fails, it is too large for this machine, or it takes longer than `seconds`.
        """
        async with self._slots.build(), self._lent.one() if self.device.kind is not DeviceKind.CPU else _nothing() as i:
            job = AuditJob(
                problem=problem,
                sizes=self.sizes,
                device=self.device.kind,
                index=i,
                trials=self._settings.trials,
                seconds=seconds + 5.0,
            )
            return ProblemAudit.model_validate(await self._simple(job.model_dump(mode="json"), seconds))

    async def _simple(self, job: dict[str, Any], seconds: float) -> Any:
        ours, theirs = socket.socketpair()
        try:
            self._judges.fork([theirs.fileno()])
        finally:
            theirs.close()
        async with await Channel.open(ours) as channel:
            await channel.send(job)
            try:
                async with asyncio.timeout(seconds):
                    return _result(await channel.receive())
            except TimeoutError as error:
                what = job["problem"]["path"] if "problem" in job else "the question which devices there are"
                raise errors.WorkerLost(
                    f"{what}: no answer within {seconds:g} s; does its code come to an end?"
                ) from error

    async def require(self, backend: Backend) -> None:
        """Looks, once, for what candidates of a backend need: a device of its kind, compilers, a HipKittens checkout.

        Raises:
            UsageError: the backend is for other devices.
            HkbenchError: something is not there; see engine/needs.py and engine/kittens.py.
        """
        if backend in self._served:
            return
        check_kind(backend, self.device.kind, self.device.name)
        check_tools(backend)
        if backend is Backend.HIPKITTENS:
            self._kittens = await find_kittens(self.device)
        self._served.add(backend)

    async def evaluate(
        self,
        problem: Problem,
        code: Path,
        folder: Path,
        backend: Backend,
        on_stage: OnStage = lambda _stage, _device: None,
        build_only: Literal["capture", "real", "launch"] | None = None,
        arch: str | None = None,
        on_step: OnStep = lambda _step: None,
    ) -> Evaluated:
        """Judges the candidate in the file `code`; `folder` is made for its builds and removed afterwards.

        With `build_only` it only builds: see `EvaluateJob`, also for `arch`.

        Raises:
            HkbenchError: the machine failed, not the candidate.
        """
        asked = time.time()
        if build_only is None:
            await self.require(backend)
        async with private_folder(folder) as private, self._loaded:
            job = EvaluateJob(
                problem=problem,
                code=str(code.resolve()),
                folder=str(private / CANDIDATE),
                backend=backend,
                device=self.device.kind,
                sizes=self.sizes,
                settings=self._settings,
                isolation=self.isolation,
                build_only=build_only,
                arch=arch,
            )
            found = await self._evaluate(job, on_stage, asked, on_step)
            if found.verdict is not None and found.verdict.failure is not None:
                self._blame_the_machine(backend, found.verdict.failure.kind)
            return self._with_kittens(job, await self._with_built_code(job, found))

    def _blame_the_machine(self, backend: Backend, kind: FailureKind) -> None:
        """Raises ToolchainUnavailable where a candidate failed, and a tool that builds for its backend is gone.

        Whether it is gone is looked up here: nothing that a candidate prints or starts makes it so.
        """
        if kind in _BY_TOOLS:
            check_tools(backend)

    async def _evaluate(self, job: EvaluateJob, on_stage: OnStage, asked: float, on_step: OnStep) -> Evaluated:
        async with self._slots.build():
            building = time.time()
            channel, profiler, ends = await self._start(job)
            try:
                async with channel:
                    message = await self._until_news(channel, on_stage, profiler, None)
                self._shared().note(Path(job.folder))
            except BaseException:
                profiler.close()
                ends.close()
                raise
        turns = Turns(asked=asked, building=building, loaded=time.time())
        with closing(profiler), closing(ends):
            if "ready" in message:
                async with self._slots.measure(), self._lent.one() as index:
                    lent = time.time()
                    message = await self._measure(job, ends, index, on_stage, profiler, on_step)
                turns = turns.model_copy(update={"device": index, "lent": lent, "returned": time.time()})
            result = _result(message)
        if "verdict" in result:
            return Evaluated(Verdict.model_validate(result["verdict"]), turns=turns)
        return Evaluated(None, tuple(result["extensions"]), result["launched"], result["output"], turns)

    async def _measure(
        self, job: EvaluateJob, ends: Ends, index: int, on_stage: OnStage, profiler: Spare, on_step: OnStep
    ) -> dict[str, Any]:
        """Has the judge of a device measure what another one has loaded."""
        message: dict[str, Any] = {}
        try:
            async with await Channel.open(self._measuring.measure(index, ends.descriptors)) as channel:
                await channel.send(self._asked(job))
                async with asyncio.timeout(self._longest):
                    message = await self._until_news(channel, on_stage, profiler, index, on_step)
        except TimeoutError as error:
            raise errors.WorkerLost(
                f"the judge of device {index} came to no verdict on {job.code} within {self._longest:g} s; start the "
                "command again, and if it comes to none again, please report it"
            ) from error
        finally:
            if not message.get("stays"):
                self._measuring.leave(index)
        return message

    @property
    def _longest(self) -> float:
        """Seconds after which a judge that measures has itself gone wrong: it ends a candidate before."""
        settings = self._settings
        limits = (settings.evaluation_timeout, settings.build_timeout, settings.run_timeout, settings.profile_timeout)
        return sum(limits) + SILENT_SECONDS

    def _asked(self, job: EvaluateJob) -> dict[str, Any]:
        return job.model_dump(mode="json") | {"memory_bytes": self._memory}

    async def _with_built_code(self, job: EvaluateJob, found: Evaluated) -> Evaluated:
        """On an AMD GPU, what the device code says that the candidate was built into; its processes have ended."""
        arch = self.device.arch
        asked = job.backend in (Backend.HIP, Backend.HIPKITTENS) and job.device is DeviceKind.ROCM
        if found.verdict is None or arch is None or not asked:
            return found
        folder = Path(job.folder)
        async with self._slots.build():
            verdict = await with_built_code(found.verdict, folder, folder.with_name(DEVICE_CODE), arch, self._cages)
        return replace(found, verdict=verdict)

    def _with_kittens(self, job: EvaluateJob, found: Evaluated) -> Evaluated:
        if found.verdict is None or self._kittens is None or job.backend is not Backend.HIPKITTENS:
            return found
        conditions = found.verdict.conditions
        update = {
            "versions": conditions.versions | self._kittens.versions,
            "warnings": (*conditions.warnings, *self._kittens.warnings),
        }
        conditions = conditions.model_copy(update=update)
        return replace(found, verdict=found.verdict.model_copy(update={"conditions": conditions}))

    async def _until_news(
        self,
        channel: Channel,
        on_stage: OnStage,
        profiler: Spare,
        device: int | None,
        on_step: OnStep = lambda _step: None,
    ) -> dict[str, Any]:
        while True:
            message = await channel.receive()
            if "stage" in message:
                on_stage(Stage(message["stage"]), device)
            elif "step" in message:
                on_step(message["step"])
            elif "profiler" in message:
                profiler.start()
            else:
                return message

    async def _start(self, job: EvaluateJob) -> tuple[Channel, Spare, Ends]:
        """Forks a judge and the candidate's runner, with the sockets and files between them.

        The judge has it loaded; its ends of the sockets are kept for the one that measures.

        Another runner, for a profiler, has its sockets and is forked when the judge asks for it.
        """
        engine, judge_engine = socket.socketpair()
        pairs = [socket.socketpair() for _ in range(SOCKETS)]
        inbox, outbox, loaded = (memory_file(name) for name in ("inbox", "outbox", "loaded"))
        ends = Ends(tuple(ours for ours, _ in pairs), (inbox, outbox, loaded))
        channel, control, channel_end, control_end = (there for _, there in pairs)
        profiler = Spare(self._runners, (control_end, channel_end), self._guards.profiler(job))
        try:
            guard = self._guards.runner(Path(job.folder), job.code)
            self._runners.fork([control.fileno(), channel.fileno(), inbox, outbox], guard)
            self._judges.fork([judge_engine.fileno(), *ends.descriptors])
        except ForkServerLost as error:
            engine.close()
            profiler.close()
            ends.close()
            raise errors.WorkerLost(f"{error}; start the command again") from error
        finally:
            for sock in (channel, control, judge_engine):
                sock.close()
        judge = await Channel.open(engine)
        await judge.send(self._asked(job))
        return judge, profiler, ends

    def _shared(self) -> Preparation:
        assert self._preparation is not None, "used outside of `async with`"
        return self._preparation


@asynccontextmanager
async def _nothing() -> AsyncIterator[int]:
    """In place of a device that is lent: audits on a CPU measure no time."""
    yield 0


def _result(message: dict[str, Any]) -> Any:
    if "error" in message:
        kind = getattr(errors, message["error"], errors.InternalError)
        raise kind(message["message"])
    return message["result"]


def chosen_devices(found: Sequence[DeviceFacts], indices: Sequence[int]) -> tuple[DeviceFacts, ...]:
    """The devices with these numbers, in the order of `indices`.

    Raises:
        DeviceUnavailable: there is no such device; the message lists those that there are.
    """
    by_index = {facts.index: facts for facts in found}
    absent = [index for index in indices if index not in by_index]
    if absent:
        there = ", ".join(f"{facts.index} ({facts.name})" for facts in found)
        raise errors.DeviceUnavailable(
            f"there is no {found[0].kind} device {', '.join(map(str, absent))}; --device-index can name {there}"
        )
    return tuple(by_index[index] for index in indices)

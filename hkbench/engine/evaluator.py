"""Evaluate candidates: two worker processes and two guarded runners, forked from servers that have imported torch."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, closing, nullcontext
from pathlib import Path
from typing import Literal

import psutil

from hkbench import errors
from hkbench.audit.records import ProblemAudit
from hkbench.backends import Provision, find_backend
from hkbench.device_kinds import DeviceModel, model_of
from hkbench.engine.channel import Channel
from hkbench.engine.completion import Completion, EvaluationResult
from hkbench.engine.confinement import Cages, prefix, require, survey
from hkbench.engine.emulation import EmulatedParts, find_emulation
from hkbench.engine.guards import QUIET_KINETO, DeferredRunner, FurtherRunners, Guards, RunnersOnDemand, check_disk
from hkbench.engine.library_free import LibraryFreeRunners
from hkbench.engine.preparation import PchBuilder
from hkbench.engine.private_folder import private_folder
from hkbench.engine.reevaluation import evaluate_until_settled
from hkbench.engine.slots import BuildSlots, Devices, DeviceSlot, HostShare, host_share, loaded_ahead, side_by_side
from hkbench.engine.workers import DeviceLocks, DeviceWorkers, EvaluationSockets, chosen_devices
from hkbench.evaluation import frames
from hkbench.evaluation.job import OF_META_TENSORS, SOCKETS, EvaluateJob
from hkbench.records import (
    BackendName,
    DeviceFacts,
    DeviceKind,
    DevicePlace,
    EvaluationSettings,
    FailureKind,
    Problem,
    ProblemFacts,
    Reach,
    SizeSet,
    SlotTimes,
    Stage,
    Track,
)
from hkbench.sandbox.client import ForkServer, ForkServerLost, memory_file
from hkbench.sandbox.environment import kept_environment

GIB = 1 << 30
MEMORY_SHARE = 0.8
DESCRIBE_SECONDS = 300.0
SILENT_SECONDS = 600.0  #: for an evaluator to say something beyond the limits that it holds a candidate to
FACTS_SECONDS = 600.0
UNHEARD_SECONDS = 5.0  #: after its limit, a process that answers to nobody ends itself
NO_PROFILE = {"profile_slow": False, "profile_fast": False}  #: settings
CANDIDATE = "candidate"  #: the private folder of its runner
DEVICE_FOLDER = "emulated_device"  #: beside it, of the process that is an emulated GPU

#: glibc gives large freed blocks back to the system or not, by the history of its heap; a fresh page then costs more
#: than the arithmetic on it, in one process and not in its twin. With these both sides keep what they have touched.
STEADY_MALLOC = {
    "MALLOC_MMAP_THRESHOLD_": str(32 << 20),  # the largest that glibc accepts
    "MALLOC_TRIM_THRESHOLD_": str(64 << 30),
    "MALLOC_TOP_PAD_": str(64 << 20),
}

#: The evaluator works between timed calls. Its OpenMP threads stay awake from one operation to the next (to wake them
#: costs more than most operations), but spin for some 0.5 ms only, where libgomp's default is up to 15 ms: not into a
#: call.
BRIEF_SPIN = {"GOMP_SPINCOUNT": "20000"}

#: Failures that a missing compiler or a full disk looks like. A lazy candidate builds when it is called.
_BY_TOOLS = frozenset({FailureKind.BUILD_ERROR, FailureKind.LOAD_ERROR, FailureKind.RUNTIME_ERROR})

#: Told of each stage with the index of the device that is lent for it, `None` while none is.
OnStage = Callable[[Stage, int | None], None]

#: Told of the steps within a stage, in words: "trial 2 of 5".
OnStep = Callable[[str], None]


class LocalEvaluator:
    """Use as an async context manager; `open` starts the fork servers at once (seconds, while torch is imported)."""

    def __init__(
        self,
        kind: DeviceKind | None,
        settings: EvaluationSettings,
        sizes: SizeSet | None = None,
        builds: int | None = None,
        prepares: bool = False,
        indices: Sequence[int] | None = None,
    ) -> None:
        """Set up the engine; `prepares`: make beside the run what later candidates' builds could use (preparation.py).

        `indices`: the devices to measure on, by torch's numbers; `None`: all of the kind.
        """
        self._kind = kind
        self._indices = indices
        self._settings = settings
        self._sizes = sizes
        self._builds = builds or len(os.sched_getaffinity(0))
        self._prepares = prepares
        self._preparation: PchBuilder | None = None
        self._emulation: EmulatedParts | None = None
        self._gpu: dict[str, object] = {}
        self._served: dict[BackendName, Provision] = {}  # backends whose candidates have all they need
        own = BRIEF_SPIN | STEADY_MALLOC | ({"HOME": os.environ["HOME"]} if "HOME" in os.environ else {})
        self._workers = ForkServer("hkbench.evaluation.worker", kept_environment() | own)
        self._runner_environment = kept_environment() | STEADY_MALLOC | QUIET_KINETO
        self._runners = ForkServer("hkbench.runner.main", self._runner_environment)
        self._free = LibraryFreeRunners(settings)
        self._memory = int((settings.memory_gib or 0) * GIB) or int(MEMORY_SHARE * psutil.virtual_memory().total)
        self._locks = DeviceLocks()
        self._measuring = self._workers_of(())
        self.devices: tuple[DeviceFacts, ...] = ()
        self.left_behind: list[str] = []  #: why a GPU's workers were replaced although they are reusable

    async def __aenter__(self) -> LocalEvaluator:
        self._workers.start()
        try:
            self.isolation = await survey()
            require(self.isolation, self._settings.require_isolation)
            self._runners.start(prefix(self.isolation))
            early = self._prepares or self._kind is not None  # else perhaps nobody asks but which devices there are
            self._free.start(self._kind, self.isolation, self._runner_environment, early)
            await asyncio.gather(
                asyncio.to_thread(self._workers.wait_ready), asyncio.to_thread(self._runners.wait_ready)
            )
            self.devices = await self._describe()
            if self._model.on_host and self._settings.shapes != 0:  # a worker that stays with a GPU does it itself
                self._workers.share(OF_META_TENSORS)
        except BaseException as error:
            await self.__aexit__()
            if isinstance(error, ForkServerLost):
                raise errors.WorkerLost(f"{error}; does `python -c 'import torch'` work?") from error
            raise
        self._cages = Cages(self.isolation)
        self._share()
        self._emulation = await asyncio.to_thread(find_emulation, self._model)
        environment = self._emulation.environment() if self._emulation else {}
        told = self.isolation, self._cages, self._slots, self._settings, self.device.kind
        self._preparation = PchBuilder(*told, environment, self._pchs_after if self._prepares else 0)
        self._guards = Guards(self._cages, self.device, self._memory, self._preparation, self._emulation)
        self._completion = Completion(self.device, self._slots, self._cages)
        self._measuring = self._workers_of(self.devices)
        self._measuring.start(self._beside if self._prepares else 1)
        return self

    @property
    def _model(self) -> DeviceModel:
        """What is known of the devices' kind."""
        return model_of(self.device.kind)

    def _share(self) -> None:
        """Set who may build and measure at once: as many builds as cores, one measurement for each device.

        An emulated device is a process for each evaluation: as many measurements as cores, builds among them.
        """
        self._slots = BuildSlots(self._builds, host_share(self._model))
        self._loaded = asyncio.Semaphore(self.capacity)
        each = self._builds if self._model.emulates else self._beside
        self._lent = Devices([facts.index for facts in self.devices], each)

    @property
    def _pchs_after(self) -> int:
        """Return how many builds have to be able to use a PCH before it is made.

        On a CPU nothing is measured meanwhile, and one that nobody asks for again would be lost time.
        """
        return 2 if host_share(self._model) is HostShare.ALL else 1

    @property
    def _beside(self) -> int:
        return side_by_side(self._model, self._settings)

    def _workers_of(self, devices: tuple[DeviceFacts, ...]) -> DeviceWorkers:
        servers = self._workers, self._runners
        return DeviceWorkers(servers, lambda folder: self._guards.baseline(folder), devices, self._locks)

    async def __aexit__(self, *_: object) -> None:
        if self._preparation is not None:
            await self._preparation.close()
        await asyncio.to_thread(self._measuring.close)
        self._locks.close()
        await asyncio.to_thread(self._workers.close)
        await asyncio.to_thread(self._runners.close)
        await self._free.close()

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
    def capacity(self) -> int:
        """As many candidates as builds, and those that have a device or wait for it."""
        return self._builds + loaded_ahead(self._model, self._settings) * len(self.devices)

    @property
    def track(self) -> Track:
        return self._settings.track

    @property
    def sizes(self) -> SizeSet:
        """The sizes in force: those of the kind of device unless told otherwise."""
        if self._sizes is not None:
            return self._sizes
        return self._model.default_sizes

    async def _describe(self) -> tuple[DeviceFacts, ...]:
        job = frames.Describe(kind=self._kind)
        told = await self._simple(job, DESCRIBE_SECONDS, "the question which devices there are")
        found, self._gpu = tuple(told.devices), told.properties
        return found if self._indices is None else chosen_devices(found, self._indices)

    @property
    def compiled_for(self) -> str | None:
        """Candidates are measured; see `CompileOnlyEvaluator`."""
        return None

    def build_slot(self) -> AbstractAsyncContextManager[None]:
        """Return a context that holds one of the slots for builds that go on side by side."""
        return self._slots.build()

    async def problem_facts(self, problem: Problem, seconds: float | None = None) -> ProblemFacts:
        """Return shapes, dtypes and operators, by running the problem's own code in a process of its own.

        Raises:
            HkbenchError: the problem's code fails, or takes longer than `seconds` (`FACTS_SECONDS`).
        """
        limit = FACTS_SECONDS if seconds is None else seconds
        job = frames.FindFacts(problem=problem, sizes=self.sizes, seconds=limit + UNHEARD_SECONDS)
        return (await self._simple(job, limit, str(problem.path))).facts

    async def audit_problem(self, problem: Problem, seconds: float) -> ProblemAudit:
        """Return which null controls pass the problem's checks; one at a time a GPU, on a CPU as many as builds.

        Raises:
            HkbenchError: the problem's code fails, it is too large for this machine, or it takes longer than `seconds`.
        """
        on_cpu = nullcontext(DeviceSlot(0))  # an audit there measures no time
        async with self._slots.build(), on_cpu if self._model.on_host else self._lent.one() as slot:
            job = frames.Audit(
                problem=problem,
                sizes=self.sizes,
                device=self.device.kind,
                index=slot.device,
                trials=self._settings.trials,
                seconds=seconds + UNHEARD_SECONDS,
            )
            return (await self._simple(job, seconds, str(problem.path))).audit

    async def _simple(self, job: frames.Job[frames.Answer], seconds: float, what: str) -> frames.Answer:
        ours, theirs = socket.socketpair()
        try:
            self._workers.fork([theirs.fileno()])
        finally:
            theirs.close()
        async with await Channel.open(ours) as channel:
            await channel.send(job)
            try:
                async with asyncio.timeout(seconds):
                    return frames.answer_to(job, await channel.receive())
            except TimeoutError as error:
                raise errors.WorkerLost(
                    f"{what}: no answer within {seconds:g} s; does its code come to an end?"
                ) from error

    async def require(self, backend: BackendName) -> None:
        """Check, once, what candidates of a backend need: a device of its kind, compilers, a HipKittens checkout.

        Raises:
            UsageError: the backend is for other devices.
            HkbenchError: something is not there; see the backend's `find_tools` and `provide`.
        """
        if backend in self._served:
            return
        wanted = find_backend(backend)
        wanted.check_device(self.device.kind, self.device.name)
        wanted.check_tools()
        self._served[backend] = await wanted.provide(self.device)

    async def evaluate(
        self,
        problem: Problem,
        code: Path,
        folder: Path,
        backend: BackendName,
        on_stage: OnStage = lambda _stage, _device: None,
        build_only: Literal["capture", "real", "launch"] | None = None,
        arch: str | None = None,
        on_step: OnStep = lambda _step: None,
        profile: bool = True,
    ) -> EvaluationResult:
        """Evaluate the candidate in the file `code`; `folder` is made for its builds and removed afterwards.

        Without `profile` a correct candidate is not profiled, whatever the settings say. With `build_only` it only
        builds: see `EvaluateJob`, also for `arch`.

        Raises:
            HkbenchError: the machine failed, not the candidate.
        """
        asked = time.time()
        if build_only is None:
            await self.require(backend)
        job = EvaluateJob(
            problem=problem,
            code=str(code.resolve()),
            folder=str(folder.resolve() / CANDIDATE),
            backend=backend,
            device=self.device.kind,
            sizes=self.sizes,
            settings=self._settings if profile else self._settings.model_copy(update=NO_PROFILE),
            isolation=self.isolation,
            build_only=build_only,
            arch=arch,
            emulation=None if self._emulation is None else self._emulation.told,
            gpu=self._gpu,
        )

        async def once(job: EvaluateJob) -> EvaluationResult:
            return await self._once(job, folder, on_stage, asked, on_step)

        if build_only is not None:
            return await once(job)
        return await evaluate_until_settled(job, code, once, self._free.with_reach, self._beside > 1)

    async def _once(
        self, job: EvaluateJob, folder: Path, on_stage: OnStage, asked: float, on_step: OnStep
    ) -> EvaluationResult:
        """Evaluate a candidate in a folder that is made for it and removed afterwards."""
        async with private_folder(folder) as private, self._loaded:
            found = await self._evaluate(job, on_stage, asked, on_step)
            if found.verdict is not None and found.verdict.failure is not None:
                self._blame_the_machine(job.backend, found.verdict.failure.kind, private)
            return await self._completion.complete(found, job, self._served.get(job.backend))

    def _blame_the_machine(self, backend: BackendName, kind: FailureKind, private: Path) -> None:
        """Raise Unavailable where a candidate failed, and a tool that builds for its backend is gone, or the disk full.

        Whether that is so is looked up here: nothing that a candidate prints or start makes it so.
        """
        if kind in _BY_TOOLS:
            find_backend(backend).check_tools()
            check_disk(private)

    async def _evaluate(self, job: EvaluateJob, on_stage: OnStage, asked: float, on_step: OnStep) -> EvaluationResult:
        async with self._slots.build():
            building = time.time()
            channel, spare, ends = await self._start(job)
            try:
                async with channel:
                    found = await self._until_news(channel, on_stage, spare, None)
                self._shared().note(Path(job.folder))
            except BaseException:
                spare.close()
                ends.close()
                raise
        turns = SlotTimes(asked=asked, building=building, loaded=time.time())
        with closing(spare), closing(ends):
            if isinstance(found, frames.Ready):
                async with self._slots.measure(), self._lent.one() as slot:
                    lent = time.time()
                    found = await self._measure(job, ends, slot, on_stage, spare, on_step)
                turns = turns.model_copy(update={"device": slot.device, "lent": lent, "returned": time.time()})
        match found:
            case frames.Judged(verdict=verdict):
                return EvaluationResult(verdict, turns=turns)
            case frames.Built():
                return EvaluationResult(None, tuple(found.extensions), found.launched, found.output, turns=turns)
        raise frames.failure(found)

    async def _measure(
        self,
        job: EvaluateJob,
        ends: EvaluationSockets,
        slot: DeviceSlot,
        on_stage: OnStage,
        spare: RunnersOnDemand,
        on_step: OnStep,
    ) -> frames.Frame:
        """Have the evaluator of a device measure what another one has loaded."""
        found: frames.Frame | None = None
        try:
            async with await Channel.open(self._measuring.measure(slot, ends.descriptors)) as channel:
                await channel.send(self._asked(job))
                async with asyncio.timeout(longest(self._settings)):
                    found = await self._until_news(channel, on_stage, spare, slot.device, on_step)
                    return found
        except TimeoutError as error:
            raise errors.WorkerLost(
                f"device {slot.device}: no verdict on {job.code} within {longest(self._settings):g} s; start the "
                "command again, and if it comes to none again, please report it"
            ) from error
        finally:
            if not isinstance(found, frames.Judged) or not found.stays:
                self.left_behind += found.left_behind if isinstance(found, frames.Judged) else ()
                self._measuring.leave(slot)

    def _asked(self, job: EvaluateJob) -> frames.Evaluate:
        return frames.Evaluate(job=job, memory_bytes=self._memory)

    async def _until_news(
        self,
        channel: Channel,
        on_stage: OnStage,
        spare: RunnersOnDemand,
        device: int | None,
        on_step: OnStep = lambda _step: None,
    ) -> frames.Frame:
        """Pass on what is told meanwhile; return the first frame that is something else."""
        while True:
            frame = await channel.receive()
            match frame:
                case frames.Entered(stage=stage):
                    on_stage(stage, device)
                case frames.Stepped(step=step):
                    on_step(step)
                case frames.ProfilerWanted():
                    spare.profiler.start()
                case frames.RunnerWanted():
                    spare.further.start()
                case _:
                    return frame

    async def _start(self, job: EvaluateJob) -> tuple[Channel, RunnersOnDemand, EvaluationSockets]:
        """Fork an evaluator and the candidate's runner, with the sockets and files between them.

        The evaluator has it loaded; its ends of the sockets are kept for the one that measures.

        Another runner, for a profiler, and further ones of the candidate are forked when the evaluator asks for them.
        """
        engine, worker_end = socket.socketpair()
        pairs = [socket.socketpair() for _ in range(SOCKETS)]
        inbox, outbox, loaded = (memory_file(name) for name in ("inbox", "outbox", "loaded"))
        ends = EvaluationSockets(tuple(ours for ours, _ in pairs), (inbox, outbox, loaded))
        channel, control, channel_end, control_end, device, further = (there for _, there in pairs)
        runners = self._runners if job.reach is Reach.ALL else self._free.server(job.reach)
        guard = self._guards.runner(Path(job.folder), job.code)
        spare = RunnersOnDemand(
            DeferredRunner(self._runners, (control_end, channel_end), self._guards.profiler(job)),
            FurtherRunners(runners, further, guard),
        )
        try:
            runners.fork([control.fileno(), channel.fileno(), inbox, outbox], guard)
            self._workers.fork([worker_end.fileno(), *ends.descriptors])
            if self._emulation is not None:
                self._emulation.fork(self._workers, device, Path(job.folder).with_name(DEVICE_FOLDER), self.isolation)
        except ForkServerLost as error:
            engine.close()
            spare.close()
            ends.close()
            raise errors.WorkerLost(f"{error}; start the command again") from error
        finally:
            for sock in (channel, control, worker_end, device):
                sock.close()
        worker = await Channel.open(engine)
        await worker.send(self._asked(job))
        return worker, spare, ends

    def _shared(self) -> PchBuilder:
        assert self._preparation is not None, "used outside of `async with`"
        return self._preparation


def longest(settings: EvaluationSettings) -> float:
    """Return after how many seconds a measuring evaluator has itself gone wrong: it ends a candidate earlier.

    It may have waited as long for each of those that share its device.
    """
    limits = (
        2 * settings.evaluation_timeout,
        settings.build_timeout,
        settings.run_timeout,
        settings.profile_timeout,
    )
    return sum(limits) * settings.evaluations_per_gpu + SILENT_SECONDS

"""Reach the verdicts of machines without the GPU: *compiled*, or what the compiler refused."""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from pathlib import Path

from hkbench.backends import Backend, find_backend, shipped_backends
from hkbench.backends.base import Target
from hkbench.backends.targets import HipTarget, TritonTarget
from hkbench.compile_only.hip import compile_captured
from hkbench.compile_only.triton import compile_triton
from hkbench.devices.targets import target_facts
from hkbench.engine import factory
from hkbench.engine.assembly import assembly_of
from hkbench.engine.completion import EvaluationResult
from hkbench.engine.confinement import Cages
from hkbench.engine.evaluator import OnStage
from hkbench.engine.private_folder import private_folder
from hkbench.errors import InternalError, UsageError
from hkbench.records import (
    BackendName,
    DeviceFacts,
    DeviceKind,
    DevicePlace,
    EvaluationSettings,
    Isolation,
    Problem,
    ProblemFacts,
    SizeSet,
    SlotTimes,
    Stage,
    Track,
    Verdict,
)

DEFAULT_ARCH = "gfx942"
BUILD_ONLY_BACKEND = "hip"  #: where none is named


def cross_compiled() -> tuple[str, ...]:
    """Return the names of the shipped backends that compile for a GPU that need not be there."""
    return tuple(sorted(one.name for one in shipped_backends() if one.compile_only is not None))


def built_on_host(backend: Backend) -> bool:
    """Tell whether candidates are built and loaded for this machine where they are only compiled."""
    return backend.compile_only is None and backend.runs_on(DeviceKind.CPU)


class CompileOnlyEvaluator:
    """Compile candidates of one backend for one architecture in place of running them.

    HIP and HipKittens candidates are imported with their builds recorded, which are then compiled (hip.py);
    Triton candidates are called on tensors without contents (triton.py). For HipKittens a candidate finds the
    checkout under HIPKITTENS_ROOT and THUNDERKITTENS_ROOT, and HIP under ROCM_PATH, in its environment.

    Use as an async context manager, whose beginning raises

        UsageError: the backend or the architecture cannot be built so.
        InputMissing: the checkout of HipKittens is not where the environment says.
        ToolchainUnavailable: there is no HIP compiler here, no Triton, or no HipKittens that serves the architecture.
    """

    def __init__(
        self,
        backend: BackendName,
        arch: str | None,
        settings: EvaluationSettings,
        sizes: SizeSet | None = None,
        builds: int | None = None,
    ) -> None:
        self._backend = backend
        self._arch = arch or DEFAULT_ARCH
        self._settings = settings
        self._sizes = sizes or SizeSet.FULL
        self._builds = builds
        self._stack = AsyncExitStack()
        self._target: Target

    async def __aenter__(self) -> CompileOnlyEvaluator:
        async with AsyncExitStack() as stack:
            self._target = await self._find()
            stack.enter_context(self._target.offered())
            workers = factory.local_evaluator(DeviceKind.CPU, self._settings, self._sizes, self._builds)
            self._workers = await stack.enter_async_context(workers)
            self._device = target_facts(self._arch, workers.device.versions | self._target.versions())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _find(self) -> Target:
        """Find the compilers, before anything is started."""
        cross = find_backend(self._backend).compile_only
        if cross is None:
            known = ", ".join(cross_compiled())
            host = ", ".join(one.name for one in shipped_backends() if built_on_host(one))
            raise UsageError(
                f"--build-only knows the backends {known} and (eval.py alone) {host}, not {self._backend}; name one "
                "with --backend"
            )
        if self._arch not in cross.archs:
            raise UsageError(f"--arch {self._arch}: hkbench builds {self._backend} for {', '.join(cross.archs)}")
        return await cross.find_target(self._arch, self._settings)

    @property
    def device(self) -> DeviceFacts:
        """The part that is compiled for."""
        return self._device

    @property
    def devices(self) -> tuple[DeviceFacts, ...]:
        return ()

    @property
    def places(self) -> tuple[DevicePlace, ...]:
        return ()

    @property
    def capacity(self) -> int:
        return self._workers.capacity

    @property
    def track(self) -> Track:
        return self._settings.track

    @property
    def sizes(self) -> SizeSet:
        return self._sizes

    @property
    def isolation(self) -> Isolation:
        return self._workers.isolation

    @property
    def compiled_for(self) -> str | None:
        return self._arch

    async def require(self, backend: BackendName) -> None:
        """Raise UsageError for another backend than the one that was looked for at the beginning."""
        if backend != self._backend:
            raise UsageError(f"compilers for {self._backend} were looked for, not for {backend}")

    async def problem_facts(self, problem: Problem, seconds: float | None = None) -> ProblemFacts:
        """Answer as `LocalEvaluator.problem_facts`; shapes need no GPU."""
        return await self._workers.problem_facts(problem, seconds)

    async def compile(
        self, problem: Problem, code: Path, scratch: Path, on_stage: OnStage = lambda _stage, _device: None
    ) -> Verdict:
        """Return the verdict on the candidate in the file `code`, with builds in the folder `scratch`.

        Raises:
            HkbenchError: the machine failed, not the candidate.
        """
        if isinstance(self._target, HipTarget):
            return await compile_captured(problem, code, scratch, self._target, self._settings, self._workers, on_stage)
        if not isinstance(self._target, TritonTarget):
            raise InternalError(f"--build-only does not know how to compile for a {type(self._target).__name__}")
        return await compile_triton(problem, code, scratch, self._target, self._workers, on_stage)

    async def evaluate(
        self,
        problem: Problem,
        code: Path,
        folder: Path,
        backend: BackendName,
        on_stage: OnStage = lambda _stage, _device: None,
        profile: bool = True,
    ) -> EvaluationResult:
        """Evaluate as `LocalEvaluator.evaluate`: `folder` is made for the builds and removed afterwards."""
        del profile  # nothing is run
        await self.require(backend)
        asked = time.time()
        begun: list[float] = []

        def entered(stage: Stage, device: int | None) -> None:
            begun.append(time.time())
            on_stage(stage, device)

        assembly = None
        async with private_folder(folder) as private:
            verdict = await self.compile(problem, code, private, entered)
            ended = time.time()
            if self._settings.keep_assembly:
                async with self._workers.build_slot():
                    cages = Cages(self.isolation)
                    assembly = await assembly_of(private, private / "assembly", self._arch, cages)
        turns = SlotTimes(asked=asked, building=(begun or [ended])[0], loaded=ended)
        return EvaluationResult(verdict, assembly=assembly, turns=turns)

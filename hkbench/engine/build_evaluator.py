"""Reaches the verdicts of machines without the GPU: *compiled*, or what the compiler refused."""

from __future__ import annotations

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from hipkittens_build.source import MACROS
from hkbench.devices.targets import target_facts
from hkbench.engine.build_captured import HipTarget, compile_captured
from hkbench.engine.build_triton import compile_triton
from hkbench.engine.evaluator import Evaluated, Evaluator, OnStage
from hkbench.engine.hip_kits import hip_kits
from hkbench.engine.private_folder import private_folder
from hkbench.errors import UsageError
from hkbench.records import (
    Backend,
    DeviceFacts,
    DeviceKind,
    DevicePlace,
    Isolation,
    JudgeSettings,
    Problem,
    ProblemFacts,
    SizeSet,
    Stage,
    Track,
    Turns,
    Verdict,
)
from hkbench.toolchain.hip import ARCHITECTURES, find_hip
from hkbench.toolchain.hipkittens import dialect_for, find_checkout
from hkbench.toolchain.triton import Triton, find_triton

DEFAULT_ARCH = "gfx942"
BACKENDS = (Backend.HIP, Backend.HIPKITTENS, Backend.TRITON)


class BuildEvaluator:
    """In an `Evaluator`'s place for candidates of one backend that are compiled for one architecture and never run.

    HIP and HipKittens candidates are imported with their builds recorded, which are then compiled (build_captured.py);
    Triton candidates are called on tensors without contents (build_triton.py). For HipKittens a candidate finds the
    checkout under HIPKITTENS_ROOT and THUNDERKITTENS_ROOT, and HIP under ROCM_PATH, in its environment.

    Use as an async context manager, whose beginning raises

        UsageError: the backend or the architecture cannot be built so.
        InputMissing: the checkout of HipKittens is not where the environment says.
        ToolchainUnavailable: there is no HIP compiler here, no Triton, or no HipKittens that serves the architecture.
    """

    def __init__(
        self,
        backend: Backend,
        arch: str | None,
        settings: JudgeSettings,
        sizes: SizeSet | None = None,
        builds: int | None = None,
    ) -> None:
        self._backend = backend
        self._arch = arch or DEFAULT_ARCH
        self._settings = settings
        self._sizes = sizes or SizeSet.FULL
        self._builds = builds
        self._stack = AsyncExitStack()
        self._target: HipTarget | Triton

    async def __aenter__(self) -> BuildEvaluator:
        async with AsyncExitStack() as stack:
            self._target = await self._find()
            if isinstance(self._target, HipTarget):
                stack.enter_context(self._target.offered())
            judges = Evaluator(DeviceKind.CPU, self._settings, self._sizes, self._builds)
            self._judges = await stack.enter_async_context(judges)
            self._device = target_facts(self._arch, judges.device.versions | self._versions())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def _find(self) -> HipTarget | Triton:
        """The compilers, before anything is started."""
        if self._backend not in BACKENDS:
            known = "hip, hipkittens, triton and (eval.py alone) cpp"
            raise UsageError(f"--build-only knows the backends {known}, not {self._backend}; name one with --backend")
        archs = tuple(MACROS) if self._backend is Backend.HIPKITTENS else ARCHITECTURES
        if self._arch not in archs:
            raise UsageError(f"--arch {self._arch}: hkbench builds {self._backend} for {', '.join(archs)}")
        if self._backend is Backend.TRITON:
            return find_triton()
        toolchain = find_hip()
        kittens = None
        if self._backend is Backend.HIPKITTENS:
            kittens = find_checkout(), dialect_for(self._arch)
            with tempfile.TemporaryDirectory(prefix="hkbench-kittens-") as folder:
                await asyncio.to_thread(kittens[0].require, kittens[1], toolchain, Path(folder))
        kits = None if self._settings.stock_builds else hip_kits(toolchain)
        return HipTarget(self._backend, self._arch, toolchain, kittens, kits)

    def _versions(self) -> dict[str, str]:
        target = self._target
        return target.versions() if isinstance(target, HipTarget) else {"triton": target.version}

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
    def track(self) -> Track:
        return self._settings.track

    @property
    def sizes(self) -> SizeSet:
        return self._sizes

    @property
    def isolation(self) -> Isolation:
        return self._judges.isolation

    @property
    def compiled_for(self) -> str | None:
        return self._arch

    async def require(self, backend: Backend) -> None:
        """Raises UsageError for another backend than the one that was looked for at the beginning."""
        if backend is not self._backend:
            raise UsageError(f"compilers for {self._backend} were looked for, not for {backend}")

    async def problem_facts(self, problem: Problem, seconds: float | None = None) -> ProblemFacts:
        """See `Evaluator.problem_facts`; shapes need no GPU."""
        return await self._judges.problem_facts(problem, seconds)

    async def compile(
        self, problem: Problem, code: Path, scratch: Path, on_stage: OnStage = lambda _stage, _device: None
    ) -> Verdict:
        """The verdict on the candidate in the file `code`, with builds in the folder `scratch`.

        Raises:
            HkbenchError: the machine failed, not the candidate.
        """
        if isinstance(self._target, HipTarget):
            return await compile_captured(problem, code, scratch, self._target, self._settings, self._judges, on_stage)
        return await compile_triton(problem, code, scratch, self._arch, self._target, self._judges, on_stage)

    async def evaluate(
        self,
        problem: Problem,
        code: Path,
        folder: Path,
        backend: Backend,
        on_stage: OnStage = lambda _stage, _device: None,
    ) -> Evaluated:
        """As `Evaluator.evaluate`: `folder` is made for the builds and removed afterwards."""
        await self.require(backend)
        asked = time.time()
        begun: list[float] = []

        def entered(stage: Stage, device: int | None) -> None:
            begun.append(time.time())
            on_stage(stage, device)

        async with private_folder(folder) as private:
            verdict = await self.compile(problem, code, private, entered)
        ended = time.time()
        return Evaluated(verdict, turns=Turns(asked=asked, building=(begun or [ended])[0], loaded=ended))

"""Compiles a candidate and runs nothing of it but its import."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hkbench.engine.build_triton import compile_triton
from hkbench.engine.built_code import spill_warnings
from hkbench.engine.conditions import compiled_conditions
from hkbench.engine.confinement import Cages
from hkbench.engine.evaluator import Evaluator
from hkbench.engine.hip_kits import HipKits, hip_kits
from hkbench.errors import UsageError
from hkbench.profile.hipkittens import kernel_language
from hkbench.profile.language import not_hipkittens
from hkbench.records import (
    Backend,
    DeviceKind,
    Failure,
    FailureKind,
    JudgeSettings,
    KernelResources,
    Problem,
    SizeSet,
    Stage,
    StageTime,
    Status,
    Verdict,
)
from hkbench.toolchain.build_hip import BuildResult, build_hip, reads
from hkbench.toolchain.diagnostics import first_error_line
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain, find_hip
from hkbench.toolchain.hipkittens import Checkout, Dialect, dialect_for, doubts, find_checkout

DEFAULT_ARCH = "gfx942"
MESSAGE_LIMIT = 500
NOTHING_TO_COMPILE = (
    "the file calls neither load_inline nor load nor hipkittens_build.build when it is imported, so there is nothing "
    "to compile"
)


@dataclass(frozen=True)
class _Target:
    """What a captured build is compiled for, and with what."""

    backend: Backend
    arch: str
    toolchain: HipToolchain
    kittens: tuple[Checkout, Dialect] | None  #: for backend hipkittens

    def offered(self) -> AbstractContextManager[None]:
        """Within it, runners are told where HipKittens is."""
        return nullcontext() if self.kittens is None else self.kittens[0].offered(self.toolchain)

    def versions(self) -> dict[str, str]:
        versions = {"hip": self.toolchain.version, "compiler": self.toolchain.compiler}
        return versions if self.kittens is None else versions | self.kittens[0].versions(self.kittens[1])


async def compile_only(
    problem: Problem,
    code: Path,
    scratch: Path,
    backend: Backend,
    arch: str | None,
    settings: JudgeSettings,
    sizes: SizeSet = SizeSet.FULL,
) -> Verdict:
    """The verdict `COMPILED`, or what the compiler refused.

    `sizes` are those at which a Triton candidate is called: its kernels are only known from their launches.

    HIP and HipKittens candidates are imported with their `load_inline`, `load` and `hipkittens_build.build` calls
    recorded, and what those would have built is compiled for `arch`; C++ candidates are really built and loaded. For
    HipKittens the candidate finds the checkout under HIPKITTENS_ROOT and THUNDERKITTENS_ROOT, and HIP under ROCM_PATH,
    in its environment.

    Raises:
        UsageError: the backend or the architecture cannot be built so.
        InputMissing: the checkout of HipKittens is not where the environment says.
        ToolchainUnavailable: there is no HIP compiler here, or no HipKittens that serves the architecture.
    """
    if backend is Backend.CPP:
        if arch is not None:
            raise UsageError("--arch names a GPU; a C++ candidate is built for this machine: leave it out")
        return await _real(problem, code, scratch, settings)
    if backend not in (Backend.HIP, Backend.HIPKITTENS, Backend.TRITON):
        known = "hip, hipkittens, triton and cpp"
        raise UsageError(f"--build-only knows the backends {known}, not {backend}; name one with --backend")
    arch = arch or DEFAULT_ARCH
    if arch not in ARCHITECTURES:
        raise UsageError(f"--arch {arch}: hkbench builds for {' and '.join(ARCHITECTURES)}")
    if backend is Backend.TRITON:
        return await compile_triton(problem, code, scratch, arch, settings, sizes)
    toolchain = find_hip()
    kittens = None
    if backend is Backend.HIPKITTENS:
        kittens = find_checkout(), dialect_for(arch)
        await asyncio.to_thread(kittens[0].require, kittens[1], toolchain, scratch / "headers")
    return await _captured(problem, code, scratch, settings, _Target(backend, arch, toolchain, kittens))


async def _real(problem: Problem, code: Path, scratch: Path, settings: JudgeSettings) -> Verdict:
    async with Evaluator(DeviceKind.CPU, settings) as evaluator:
        found = await evaluator.evaluate(problem, code, scratch / "load", Backend.CPP, build_only="real")
    never = ("compiled and loaded, never run",)
    conditions = compiled_conditions(problem, code, Backend.CPP, DeviceKind.CPU, None, {}, evaluator.isolation, never)
    return found.verdict or Verdict(problem=problem.name, status=Status.COMPILED, conditions=conditions)


async def _captured(problem: Problem, code: Path, scratch: Path, settings: JudgeSettings, target: _Target) -> Verdict:
    started = time.monotonic()
    with target.offered():
        async with Evaluator(DeviceKind.CPU, settings) as evaluator:
            found = await evaluator.evaluate(problem, code, scratch / "load", target.backend, build_only="capture")
        if found.verdict is not None:
            return found.verdict
        loaded = time.monotonic() - started
        calls, failure = _calls(found.extensions)
        kits = None if settings.stock_builds else hip_kits(target.toolchain)
        results = await _built(calls, scratch, settings, target, Cages(evaluator.isolation), kits)
    if results and not results[-1].ok:
        failure = _failure(results[-1])
    resources = tuple(kernel for result in results for kernel in result.resources)
    warnings: list[str] = []
    language = kernel_language([text for call in calls for text in (*call.cpp_sources, *call.cuda_sources)])
    if target.kittens is not None:
        warnings = _kittens_notes(calls, resources, target.kittens[1])
        plain = not_hipkittens(target.backend, language) if calls else None
        warnings += [] if plain is None else [plain]
    conditions = compiled_conditions(
        problem,
        code,
        target.backend,
        DeviceKind.ROCM,
        target.arch,
        target.versions(),
        evaluator.isolation,
        tuple(dict.fromkeys(note for result in results for note in result.not_checked)),
        tuple(warnings),
    )
    built = sum(result.seconds for result in results)
    return Verdict(
        problem=problem.name,
        status=Status.INCORRECT if failure else Status.COMPILED,
        failure=failure,
        language=language if calls else None,
        resources=resources,
        stages=(StageTime(stage=Stage.LOAD, seconds=loaded), StageTime(stage=Stage.BUILD, seconds=built)),
        conditions=conditions,
    )


async def _built(
    calls: Sequence[ExtensionCall],
    scratch: Path,
    settings: JudgeSettings,
    target: _Target,
    cages: Cages,
    kits: HipKits | None,
) -> list[BuildResult]:
    """The builds up to the first that fails, each by tools in a cage: they read text that a candidate wrote."""
    results: list[BuildResult] = []
    toolchain, limit = target.toolchain, settings.build_timeout
    seen = (*reads(toolchain), *(kits.readable() if kits is not None else ()))
    for number, call in enumerate(calls):
        folder = scratch / f"extension_{number}"
        folder.mkdir(parents=True)
        cage = cages.tool(folder, *seen)
        checkout = None if target.kittens is None else target.kittens[0]
        results.append(
            await asyncio.to_thread(build_hip, call, target.arch, folder, limit, toolchain, cage, checkout, kits)
        )
        if not results[-1].ok:
            break
    if kits is not None and settings.prepare_builds:
        await asyncio.to_thread(kits.make_wanted, lambda folder: cages.tool(folder, *reads(toolchain)))
    return results


def _calls(recorded: Sequence[Mapping[str, object]]) -> tuple[list[ExtensionCall], Failure | None]:
    """The calls as far as they are what torch would take, and what is wrong with the first that is not."""
    calls: list[ExtensionCall] = []
    message = None if recorded else NOTHING_TO_COMPILE
    for raw in recorded:
        try:
            calls.append(ExtensionCall.model_validate(raw))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            called = "load_inline" if raw.get("bound") is None else "hipkittens_build.build"
            message = f"{called}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            break
    failure = None if message is None else Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message)
    return calls, failure


def _kittens_notes(calls: Sequence[ExtensionCall], resources: Sequence[KernelResources], dialect: Dialect) -> list[str]:
    """What to keep in mind of a HipKittens build."""
    warnings = [doubt for call in calls for doubt in doubts(call, dialect)]
    return [*warnings, *spill_warnings(resources, hipkittens=True)]


def _failure(result: BuildResult) -> Failure:
    text = result.error or "the build failed"
    kind = FailureKind.BUILD_TIMEOUT if result.timed_out else FailureKind.BUILD_ERROR
    # The lines above an error in a header only say who included it.
    message = first_error_line(text) or text.splitlines()[0]
    return Failure(stage=Stage.BUILD, kind=kind, message=message[:MESSAGE_LIMIT], detail=text)

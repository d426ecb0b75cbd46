"""Compiles a candidate and runs nothing of it but its import."""

from __future__ import annotations

import asyncio
import time
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from hkbench.engine.evaluator import Evaluator
from hkbench.errors import UsageError
from hkbench.records import (
    Backend,
    Conditions,
    DeviceKind,
    Failure,
    FailureKind,
    Isolation,
    IsolationLevel,
    JudgeSettings,
    KernelResources,
    Problem,
    Protection,
    Stage,
    StageTime,
    Status,
    Verdict,
)
from hkbench.toolchain.build_hip import BuildResult, build_hip
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain, find_hip

DEFAULT_ARCH = "gfx942"
MESSAGE_LIMIT = 500


async def compile_only(
    problem: Problem, code: Path, scratch: Path, backend: Backend, arch: str | None, settings: JudgeSettings
) -> Verdict:
    """The verdict `COMPILED`, or what the compiler refused.

    HIP candidates are imported with their `load_inline` and `load` calls recorded, and what those would have built is
    compiled for `arch`; C++ candidates are really built and loaded.

    Raises:
        UsageError: the backend or the architecture cannot be built so.
        ToolchainUnavailable: there is no HIP compiler here.
    """
    if backend is Backend.CPP:
        if arch is not None:
            raise UsageError("--arch names a GPU; a C++ candidate is built for this machine: leave it out")
        return await _real(problem, code, scratch, settings)
    if backend is not Backend.HIP:
        raise UsageError(f"--build-only knows the backends hip and cpp, not {backend}; name one with --backend")
    arch = arch or DEFAULT_ARCH
    if arch not in ARCHITECTURES:
        raise UsageError(f"--arch {arch}: hkbench builds for {' and '.join(ARCHITECTURES)}")
    toolchain = find_hip()
    return await _captured(problem, code, scratch, arch, settings, toolchain)


async def _real(problem: Problem, code: Path, scratch: Path, settings: JudgeSettings) -> Verdict:
    async with Evaluator(DeviceKind.CPU, settings) as evaluator:
        found = await evaluator.evaluate(problem, code, scratch / "load", Backend.CPP, build_only="real")
    conditions = _conditions(problem, code, Backend.CPP, DeviceKind.CPU, None, {}, ("compiled and loaded, never run",))
    return found.verdict or Verdict(problem=problem.name, status=Status.COMPILED, conditions=conditions)


async def _captured(
    problem: Problem, code: Path, scratch: Path, arch: str, settings: JudgeSettings, toolchain: HipToolchain
) -> Verdict:
    started = time.monotonic()
    async with Evaluator(DeviceKind.CPU, settings) as evaluator:
        found = await evaluator.evaluate(problem, code, scratch / "load", Backend.HIP, build_only="capture")
    if found.verdict is not None:
        return found.verdict
    loaded = time.monotonic() - started
    failure: Failure | None = None
    not_checked: list[str] = []
    resources: list[KernelResources] = []
    seconds = 0.0
    if not found.extensions:
        message = "the file calls neither load_inline nor load when it is imported, so there is nothing to compile"
        failure = Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message)
    for number, raw in enumerate(found.extensions):
        try:
            call = ExtensionCall.model_validate(raw)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            message = f"load_inline: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            failure = Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message)
            break
        folder = scratch / f"extension_{number}"
        result = await asyncio.to_thread(build_hip, call, arch, folder, settings.build_timeout, toolchain)
        seconds += result.seconds
        resources += result.resources
        not_checked += [note for note in result.not_checked if note not in not_checked]
        if not result.ok:
            failure = _failure(result)
            break
    versions = {"hip": toolchain.version, "compiler": toolchain.compiler}
    conditions = _conditions(problem, code, Backend.HIP, DeviceKind.ROCM, arch, versions, tuple(not_checked))
    stages = (StageTime(stage=Stage.LOAD, seconds=loaded), StageTime(stage=Stage.BUILD, seconds=seconds))
    return Verdict(
        problem=problem.name,
        status=Status.INCORRECT if failure else Status.COMPILED,
        failure=failure,
        resources=tuple(resources),
        stages=stages,
        conditions=conditions,
    )


def _failure(result: BuildResult) -> Failure:
    text = result.error or "the build failed"
    kind = FailureKind.BUILD_TIMEOUT if result.timed_out else FailureKind.BUILD_ERROR
    return Failure(stage=Stage.BUILD, kind=kind, message=text.splitlines()[0][:MESSAGE_LIMIT], detail=text)


def _conditions(
    problem: Problem,
    code: Path,
    backend: Backend,
    device: DeviceKind,
    arch: str | None,
    versions: dict[str, str],
    not_checked: tuple[str, ...],
) -> Conditions:
    return Conditions(
        backend=backend,
        device=device,
        device_name=f"no device (compiled for {arch})" if arch else "no device (compiled only)",
        arch=arch,
        versions=versions,
        candidate_sha256=sha256(code.read_bytes()).hexdigest(),
        problem_sha256=problem.sha256,
        isolation=Isolation(level=IsolationLevel.LIMITS, layers=("guard",), holds=(Protection.LIMITS,)),
        not_checked=not_checked,
    )

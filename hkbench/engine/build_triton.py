"""Compiles what a Triton candidate launches, for a GPU that need not be there."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from pydantic import ValidationError

from hkbench.engine.conditions import compiled_conditions
from hkbench.engine.confinement import Cages
from hkbench.engine.evaluator import Evaluator
from hkbench.errors import ToolchainUnavailable
from hkbench.records import (
    Backend,
    DeviceKind,
    Failure,
    FailureKind,
    Isolation,
    JudgeSettings,
    KernelResources,
    Problem,
    SizeSet,
    Stage,
    StageTime,
    Status,
    Verdict,
)
from hkbench.toolchain.code_object import NotInspected, Tools
from hkbench.toolchain.hip import find_hip
from hkbench.toolchain.triton import LaunchedKernel, Triton, find_triton, resources

INSPECT_SECONDS = 300.0
_NEVER_RUN = (
    "only compiled for {arch} with Triton {version}, never run: correctness and speed are unknown; compiled is what "
    "one forward pass launches at the {sizes} sizes"
)


async def compile_triton(
    problem: Problem, code: Path, scratch: Path, arch: str, settings: JudgeSettings, sizes: SizeSet
) -> Verdict:
    """The verdict `COMPILED`, or what Triton refused.

    The candidate is imported, `ModelNew` made and called once, all in its runner's cage, on tensors that have shapes
    and no contents; every launch is compiled by Triton's AMD back end there, and none is run (runner/launches.py).

    Raises:
        ToolchainUnavailable: Triton is not installed.
    """
    triton = find_triton()
    started = time.monotonic()
    async with Evaluator(DeviceKind.CPU, settings, sizes) as evaluator:
        found = await evaluator.evaluate(
            problem, code, scratch / "load", Backend.TRITON, build_only="launch", arch=arch
        )
    if found.verdict is not None:
        return _for_target(found.verdict, arch, triton)
    seconds = time.monotonic() - started
    launched = found.launched or {}
    warnings = [str(note) for note in launched.get("notes", ())]
    not_checked = [_NEVER_RUN.format(arch=arch, version=triton.version, sizes=sizes)]
    failure: Failure | None = None
    kernels: tuple[LaunchedKernel, ...] = ()
    try:
        kernels = tuple(LaunchedKernel.model_validate(one) for one in launched.get("kernels", ()))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        message = f"kernels: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        failure = Failure(stage=Stage.BUILD, kind=FailureKind.PROTOCOL, message=message)
    warnings += [_not_loaded(kernel) for kernel in kernels if not kernel.image]
    loaded = tuple(kernel for kernel in kernels if kernel.image)
    shown, uninspected = await asyncio.to_thread(_shown, loaded, arch, scratch, evaluator.isolation)
    return Verdict(
        problem=problem.name,
        status=Status.INCORRECT if failure else Status.COMPILED,
        failure=failure,
        resources=shown,
        stages=(StageTime(stage=Stage.BUILD, seconds=seconds),),
        conditions=compiled_conditions(
            problem,
            code,
            Backend.TRITON,
            DeviceKind.ROCM,
            arch,
            {"triton": triton.version},
            evaluator.isolation,
            (*not_checked, *uninspected),
            tuple(warnings),
            sizes,
        ),
        output=found.output or None,
    )


def _for_target(verdict: Verdict, arch: str, triton: Triton) -> Verdict:
    """A judge's verdict names the device at hand, which had no part in this."""
    said = {"device": DeviceKind.ROCM, "device_name": f"no device (compiled for {arch})", "arch": arch}
    versions = verdict.conditions.versions | {"triton": triton.version}
    return verdict.model_copy(
        update={"conditions": verdict.conditions.model_copy(update=said | {"versions": versions})}
    )


def _not_loaded(kernel: LaunchedKernel) -> str:
    return (
        f"{kernel.label} compiles, but cannot be launched: it asks for {kernel.lds_bytes} bytes of LDS, or for more "
        "threads than a workgroup may have"
    )


def _shown(
    kernels: tuple[LaunchedKernel, ...], arch: str, scratch: Path, isolation: Isolation
) -> tuple[tuple[KernelResources, ...], tuple[str, ...]]:
    """The report of the code objects, by LLVM's tools in a cage, and what stays open where there are none."""
    try:
        toolchain = find_hip()
        folder = scratch / "device_code"
        folder.mkdir(parents=True)
        cage = Cages(isolation).tool(folder, toolchain.root, toolchain.hipcc)
        return resources(kernels, arch, Tools(toolchain, folder, time.monotonic() + INSPECT_SECONDS, cage)), ()
    except (NotInspected, ToolchainUnavailable) as reason:
        return (), (f"registers, occupancy and instructions of {len(kernels)} kernels: {reason}",)

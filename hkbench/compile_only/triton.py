"""Compile what a Triton candidate launches, for a GPU that need not be there."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from pydantic import ValidationError

from hkbench.backends.targets import TritonTarget
from hkbench.compile_only.conditions import compiled_conditions, for_target
from hkbench.engine.confinement import Cages
from hkbench.engine.evaluator import LocalEvaluator, OnStage
from hkbench.errors import ToolchainUnavailable
from hkbench.records import (
    DeviceKind,
    Failure,
    FailureKind,
    Isolation,
    KernelResources,
    Problem,
    Stage,
    StageTime,
    Status,
    Verdict,
)
from hkbench.toolchain.code_object import NotInspected, Tools
from hkbench.toolchain.hip import find_hip
from hkbench.toolchain.triton import LaunchedKernel, resources

INSPECT_SECONDS = 300.0
_NEVER_RUN = (
    "only compiled for {arch} with Triton {version}, never run: correctness and speed are unknown; compiled is what "
    "one forward pass launches at the {sizes} sizes"
)


async def compile_triton(
    problem: Problem, code: Path, scratch: Path, target: TritonTarget, evaluator: LocalEvaluator, on_stage: OnStage
) -> Verdict:
    """Return the verdict `COMPILED`, or what Triton refused.

    The candidate is imported, `ModelNew` made and called once, all in its runner's cage, on tensors that have shapes
    and no contents; every launch is compiled by Triton's AMD back end there, and none is run (runner/launches.py).
    """
    started, arch = time.monotonic(), target.arch
    sizes = evaluator.sizes
    found = await evaluator.evaluate(
        problem, code, scratch / "load", target.backend, on_stage, build_only="launch", arch=arch
    )
    if found.verdict is not None:
        return for_target(found.verdict, arch, target.versions())
    seconds = time.monotonic() - started
    launched = found.launched
    warnings = [] if launched is None else list(launched.notes)
    not_checked = [_NEVER_RUN.format(arch=arch, version=target.triton.version, sizes=sizes)]
    failure: Failure | None = None
    kernels: tuple[LaunchedKernel, ...] = ()
    try:
        kernels = tuple(LaunchedKernel.model_validate(one) for one in (launched.kernels if launched else ()))
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
            target.backend,
            DeviceKind.ROCM,
            arch,
            target.versions(),
            evaluator.isolation,
            (*not_checked, *uninspected),
            tuple(warnings),
            sizes,
        ),
        output=found.output or None,
    )


def _not_loaded(kernel: LaunchedKernel) -> str:
    return (
        f"{kernel.label} compiles, but cannot be launched: it asks for {kernel.lds_bytes} bytes of LDS, or for more "
        "threads than a workgroup may have"
    )


def _shown(
    kernels: tuple[LaunchedKernel, ...], arch: str, scratch: Path, isolation: Isolation
) -> tuple[tuple[KernelResources, ...], tuple[str, ...]]:
    """Return the report of the code objects, by LLVM's tools in a cage, and what stays open where there are none."""
    try:
        toolchain = find_hip()
        folder = scratch / "device_code"
        folder.mkdir(parents=True)
        cage = Cages(isolation).tool(folder, toolchain.root, toolchain.hipcc)
        return resources(kernels, arch, Tools(toolchain, folder, time.monotonic() + INSPECT_SECONDS, cage)), ()
    except (NotInspected, ToolchainUnavailable) as reason:
        return (), (f"registers, occupancy and instructions of {len(kernels)} kernels: {reason}",)

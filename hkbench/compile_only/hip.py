"""Compile what a HIP or HipKittens candidate would have built at its import, for a GPU that need not be there."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from hkbench.backends import Backend, find_backend
from hkbench.backends.targets import HipTarget
from hkbench.compile_only.conditions import compiled_conditions, for_target
from hkbench.engine.built_code import code_warnings
from hkbench.engine.confinement import Cages
from hkbench.engine.evaluator import LocalEvaluator, OnStage
from hkbench.profile.hipkittens import kernel_language_apart
from hkbench.records import (
    DeviceKind,
    EvaluationSettings,
    Failure,
    FailureKind,
    KernelResources,
    Problem,
    Stage,
    StageTime,
    Status,
    Verdict,
)
from hkbench.toolchain.build_hip import BuildResult, build_hip, reads
from hkbench.toolchain.diagnostics import first_error_line
from hkbench.toolchain.extension import ExtensionCall
from hkbench.toolchain.hipkittens import Dialect, doubts, wrong_results

MESSAGE_LIMIT = 500
NOTHING_TO_COMPILE = (
    "the file calls neither load_inline nor load nor hipkittens_build.build when it is imported, so there is nothing "
    "to compile"
)


async def compile_captured(
    problem: Problem,
    code: Path,
    scratch: Path,
    target: HipTarget,
    settings: EvaluationSettings,
    evaluator: LocalEvaluator,
    on_stage: OnStage,
) -> Verdict:
    """Return the verdict `COMPILED`, or what the compiler refused.

    The candidate is imported with its `load_inline`, `load` and `hipkittens_build.build` calls recorded, and what those
    would have built is compiled for the target, in a build slot.
    """
    started = time.monotonic()
    found = await evaluator.evaluate(problem, code, scratch / "load", target.backend, on_stage, build_only="capture")
    if found.verdict is not None:
        return for_target(found.verdict, target.arch, target.versions())
    loaded = time.monotonic() - started
    calls, failure = _calls(found.extensions)
    async with evaluator.build_slot():
        on_stage(Stage.BUILD, None)
        results = await _built(calls, scratch, settings, target, Cages(evaluator.isolation))
    if results and not results[-1].ok:
        failure = _failure(results[-1])
    resources = tuple(kernel for result in results for kernel in result.resources)
    warnings: list[str] = []
    texts = [text for call in calls for text in (*call.cpp_sources, *call.cuda_sources)]
    language = await asyncio.to_thread(kernel_language_apart, texts)
    if target.kittens is not None:
        backend = find_backend(target.backend)
        warnings = _kittens_notes(calls, resources, target.kittens[1], target.toolchain.compiler, backend)
        mistaken = backend.language_warning(language) if calls else None
        warnings += [] if mistaken is None else [mistaken]
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
    calls: Sequence[ExtensionCall], scratch: Path, settings: EvaluationSettings, target: HipTarget, cages: Cages
) -> list[BuildResult]:
    """Return the builds up to the first that fails, each by tools in a cage: they read text that a candidate wrote."""
    results: list[BuildResult] = []
    toolchain, pchs = target.toolchain, target.pchs
    checkout = None if target.kittens is None else target.kittens[0]
    seen = (*reads(toolchain), *(pchs.readable() if pchs is not None else ()))
    for number, call in enumerate(calls):
        folder = scratch / f"extension_{number}"
        folder.mkdir(parents=True)
        cage = cages.tool(folder, *seen)
        words = (call, target.arch, folder, settings.build_timeout, toolchain, cage, checkout, pchs)
        results.append(await _ended_with_us(partial(build_hip, *words)))
        if not results[-1].ok:
            break
    if pchs is not None and settings.prepare_builds:
        async with target.making:
            await asyncio.to_thread(pchs.make_wanted, lambda folder: cages.tool(folder, *reads(toolchain)))
    return results


async def _ended_with_us(build: Callable[[threading.Event], BuildResult]) -> BuildResult:
    """Build in a thread of its own, and end its tools when the caller is cancelled: their folder is about to go."""
    stop = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(build, stop))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait((work,))
        raise


def _calls(recorded: Sequence[object]) -> tuple[list[ExtensionCall], Failure | None]:
    """Return the calls up to the first that torch would refuse, and what is wrong with that one."""
    calls: list[ExtensionCall] = []
    message = None if recorded else NOTHING_TO_COMPILE
    for raw in recorded:
        try:
            calls.append(ExtensionCall.model_validate(raw))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            bound = raw.get("bound") if isinstance(raw, Mapping) else None
            called = "load_inline" if bound is None else "hipkittens_build.build"
            message = f"{called}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            break
    failure = None if message is None else Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message=message)
    return calls, failure


def _kittens_notes(
    calls: Sequence[ExtensionCall],
    resources: Sequence[KernelResources],
    dialect: Dialect,
    compiler: str,
    backend: Backend,
) -> list[str]:
    """Return what to keep in mind of a HipKittens build."""
    warnings = [doubt for call in calls for doubt in doubts(call, dialect)]
    return [*warnings, *wrong_results(dialect, compiler), *code_warnings(resources, backend)]


def _failure(result: BuildResult) -> Failure:
    text = result.error or "the build failed"
    kind = FailureKind.BUILD_TIMEOUT if result.timed_out else FailureKind.BUILD_ERROR
    # The lines above an error in a header only say who included it.
    message = first_error_line(text) or text.splitlines()[0]
    return Failure(stage=Stage.BUILD, kind=kind, message=message[:MESSAGE_LIMIT], detail=text)

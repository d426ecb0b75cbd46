"""Compiles one candidate and runs nothing of it but its import."""

from __future__ import annotations

from pathlib import Path

from hkbench.engine.build_evaluator import BuildEvaluator
from hkbench.engine.conditions import compiled_conditions
from hkbench.engine.evaluator import Evaluator
from hkbench.errors import UsageError
from hkbench.records import Backend, DeviceKind, JudgeSettings, Problem, SizeSet, Status, Verdict


async def compile_only(
    problem: Problem,
    code: Path,
    scratch: Path,
    backend: Backend,
    arch: str | None,
    settings: JudgeSettings,
    sizes: SizeSet = SizeSet.FULL,
) -> Verdict:
    """The verdict `COMPILED`, or what the compiler refused; `scratch` is a folder of its own.

    `sizes` are those at which a Triton candidate is called: its kernels are only known from their launches. C++
    candidates are really built and loaded; for the others see `BuildEvaluator`.

    Raises:
        UsageError: the backend or the architecture cannot be built so.
        InputMissing: the checkout of HipKittens is not where the environment says.
        ToolchainUnavailable: there is no HIP compiler here, or no HipKittens that serves the architecture.
    """
    if backend is Backend.CPP:
        if arch is not None:
            raise UsageError("--arch names a GPU; a C++ candidate is built for this machine: leave it out")
        return await _real(problem, code, scratch, settings)
    async with BuildEvaluator(backend, arch, settings, sizes) as evaluator:
        return await evaluator.compile(problem, code, scratch)


async def _real(problem: Problem, code: Path, scratch: Path, settings: JudgeSettings) -> Verdict:
    async with Evaluator(DeviceKind.CPU, settings) as evaluator:
        found = await evaluator.evaluate(problem, code, scratch / "load", Backend.CPP, build_only="real")
    never = ("compiled and loaded, never run",)
    conditions = compiled_conditions(problem, code, Backend.CPP, DeviceKind.CPU, None, {}, evaluator.isolation, never)
    return found.verdict or Verdict(problem=problem.name, status=Status.COMPILED, conditions=conditions)

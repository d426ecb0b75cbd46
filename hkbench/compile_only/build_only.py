"""Compile one candidate and run nothing of it but its import."""

from __future__ import annotations

from pathlib import Path

from hkbench.backends import find_backend
from hkbench.compile_only.conditions import compiled_conditions
from hkbench.compile_only.evaluator import CompileOnlyEvaluator, built_on_host
from hkbench.engine import factory
from hkbench.errors import UsageError
from hkbench.records import BackendName, DeviceKind, EvaluationSettings, Problem, SizeSet, Status, Verdict


async def compile_only(
    problem: Problem,
    code: Path,
    scratch: Path,
    backend: BackendName,
    arch: str | None,
    settings: EvaluationSettings,
    sizes: SizeSet = SizeSet.FULL,
) -> Verdict:
    """Return the verdict `COMPILED`, or what the compiler refused; `scratch` is a folder of its own.

    `sizes` are those at which a Triton candidate is called: its kernels are only known from their launches. C++
    candidates are really built and loaded; for the others see `CompileOnlyEvaluator`.

    Raises:
        UsageError: the backend or the architecture cannot be built so.
        InputMissing: the checkout of HipKittens is not where the environment says.
        ToolchainUnavailable: there is no HIP compiler here, or no HipKittens that serves the architecture.
    """
    named = find_backend(backend)
    if built_on_host(named):
        if arch is not None:
            raise UsageError(f"--arch names a GPU; a {named.title} candidate is built for this machine: leave it out")
        return await _real(problem, code, scratch, backend, settings)
    async with CompileOnlyEvaluator(backend, arch, settings, sizes) as evaluator:
        return await evaluator.compile(problem, code, scratch)


async def _real(
    problem: Problem, code: Path, scratch: Path, backend: BackendName, settings: EvaluationSettings
) -> Verdict:
    async with factory.local_evaluator(DeviceKind.CPU, settings) as evaluator:
        found = await evaluator.evaluate(problem, code, scratch / "load", backend, build_only="real")
    never = ("compiled and loaded, never run",)
    conditions = compiled_conditions(problem, code, backend, DeviceKind.CPU, None, {}, evaluator.isolation, never)
    return found.verdict or Verdict(problem=problem.name, status=Status.COMPILED, conditions=conditions)

"""The conditions of a verdict that says *compiled*."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from hkbench.records import BackendName, Conditions, DeviceKind, Isolation, Problem, SizeSet, Verdict


def no_device(arch: str | None) -> str:
    """Return what stands in the place of a device's name."""
    return f"no device (compiled for {arch})" if arch else "no device (compiled only)"


def compiled_conditions(
    problem: Problem,
    code: Path,
    backend: BackendName,
    device: DeviceKind,
    arch: str | None,
    versions: dict[str, str],
    isolation: Isolation,
    not_checked: tuple[str, ...],
    warnings: tuple[str, ...] = (),
    sizes: SizeSet = SizeSet.FULL,
) -> Conditions:
    return Conditions(
        backend=backend,
        device=device,
        device_name=no_device(arch),
        arch=arch,
        sizes=sizes,
        versions=versions,
        candidate_sha256=sha256(code.read_bytes()).hexdigest(),
        problem_sha256=problem.sha256,
        isolation=isolation,
        not_checked=not_checked,
        warnings=warnings,
    )


def for_target(verdict: Verdict, arch: str, versions: dict[str, str]) -> Verdict:
    """Return an evaluator's verdict names the device at hand, which had no part in this."""
    said = {"device": DeviceKind.ROCM, "device_name": no_device(arch), "arch": arch, "device_facts": None}
    versions = verdict.conditions.versions | versions
    return verdict.model_copy(
        update={"conditions": verdict.conditions.model_copy(update=said | {"versions": versions})}
    )

"""The conditions of a verdict that says *compiled*."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from hkbench.records import Backend, Conditions, DeviceKind, Isolation, Problem, SizeSet


def compiled_conditions(
    problem: Problem,
    code: Path,
    backend: Backend,
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
        device_name=f"no device (compiled for {arch})" if arch else "no device (compiled only)",
        arch=arch,
        sizes=sizes,
        versions=versions,
        candidate_sha256=sha256(code.read_bytes()).hexdigest(),
        problem_sha256=problem.sha256,
        isolation=isolation,
        not_checked=not_checked,
        warnings=warnings,
    )

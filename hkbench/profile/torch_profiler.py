"""Reads what the runner's torch profiler reported: untrusted numbers, so everything is checked."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hkbench.records import KernelProfile, KernelUse, Owner

_CPU_NOTHING = re.compile(r"^(?:ProfilerStep|aten::(?:empty|as_strided|view|detach|alias|slice|select|resize_))")
NOTABLE_SHARE = 0.05
MOST_KERNELS = 64
NAME_LIMIT = 400
LARGEST = 1e9


OwnerOf = Callable[[str], Owner]


def kernel_profile(answer: dict[str, Any], owner_of: OwnerOf) -> KernelProfile | None:
    """A profile from the runner's answer; None when it holds nothing that can be used. `owner_of`: see ownership.py."""
    on_gpu = answer.get("on_gpu") is True
    reported = answer.get("kernels")
    rows = [row for row in reported if _is_row(row)][:MOST_KERNELS] if isinstance(reported, list) else []
    wall = answer.get("wall_seconds")
    if not isinstance(wall, float) or not 0 < wall < 1e6:
        return None
    kernels = [(_plain(r["name"]), float(r["calls"]), float(r["seconds"])) for r in rows]
    if not on_gpu:
        kernels = [kernel for kernel in kernels if not _CPU_NOTHING.match(kernel[0])]
        # The profiler sees operators only; the rest of the pass is the candidate's compiled code and Python.
        rest = wall - sum(seconds for _, _, seconds in kernels)
        kernels.append(("(the candidate's own code)", 1.0, max(0.0, rest)))
    total = sum(seconds for _, _, seconds in kernels)
    if total <= 0:
        return None
    uses = tuple(
        KernelUse(
            name=name,
            owner=owner_of(name),
            calls=max(1, round(calls)),
            seconds=seconds,
            share=seconds / total,
        )
        for name, calls, seconds in sorted(kernels, key=lambda kernel: -kernel[2])
    )
    source = "torch.profiler (device kernels)" if on_gpu else "torch.profiler (CPU operators)"
    return KernelProfile(source=source, kernels=uses, seconds=total, findings=_findings(uses, wall, on_gpu))


def _is_row(row: object) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get("name"), str)
        and all(type(row.get(key)) in (int, float) and 0 <= row[key] < LARGEST for key in ("calls", "seconds"))
    )


def _plain(name: str) -> str:
    """Cut, and without the lone surrogates that UTF-8 cannot hold."""
    return name[:NAME_LIMIT].encode(errors="replace").decode()


def _findings(uses: tuple[KernelUse, ...], wall: float, on_gpu: bool) -> tuple[str, ...]:
    """What matters of it, most important first."""
    findings = []
    casts = sum(use.share for use in uses if _is_cast(use.name))
    if casts > NOTABLE_SHARE:
        findings.append(
            f"{casts:.0%} of the time goes to PyTorch's dtype conversions and copies; convert in the kernel"
        )
    own = sum(use.share for use in uses if use.owner is Owner.CANDIDATE)
    if own < 0.5:
        findings.append(f"only {own:.0%} of the time is spent in your own kernels; PyTorch or a library does the rest")
    launches = sum(use.calls for use in uses)
    if on_gpu and launches > 3:
        findings.append(f"{launches} kernels run per pass; each one reads and writes memory again: fuse them")
    busy = sum(use.seconds for use in uses)
    if on_gpu and wall > 2 * busy + 2e-5:
        findings.append(
            f"the GPU works {busy * 1e3:.3f} ms of {wall * 1e3:.3f} ms: host work between launches dominates"
        )
    return tuple(findings)


def _is_cast(name: str) -> bool:
    return bool(re.search(r"aten::(?:_to_copy|copy_)|direct_copy_kernel|_copy_kernel|bfloat16_copy|float16_copy", name))

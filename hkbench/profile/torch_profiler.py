"""Read what the runner's torch profiler reported: untrusted numbers, so everything is checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hkbench.profile.findings import Pass, findings
from hkbench.records import KernelProfile, KernelUse, Owner

_CPU_NOTHING = re.compile(r"^(?:ProfilerStep|aten::(?:empty|as_strided|view|detach|alias|slice|select|resize_))")
MAX_KERNELS = 64
NAME_LIMIT = 400
MAX_NUMBER = 1e9


OwnerOf = Callable[[str], Owner]


def kernel_profile(answer: dict[str, Any], owner_of: OwnerOf) -> KernelProfile | None:
    """Return a profile from the runner's answer; None when it holds nothing that can be used.

    `owner_of`: see ownership.py.
    """
    on_gpu = answer.get("on_gpu") is True
    reported = answer.get("kernels")
    rows = [row for row in reported if _is_row(row)][:MAX_KERNELS] if isinstance(reported, list) else []
    wall = answer.get("wall_seconds")
    if not isinstance(wall, float) or not 0 < wall < 1e6:
        return None
    kernels = [(r["name"][:NAME_LIMIT], float(r["calls"]), float(r["seconds"])) for r in rows]
    if not on_gpu:
        kernels = [kernel for kernel in kernels if not _CPU_NOTHING.match(kernel[0])]
        # The profiler sees operators only; the rest of the pass is the candidate's compiled code and Python.
        rest = wall - sum(seconds for _, _, seconds in kernels)
        kernels.append(("(the candidate's own code)", 1.0, max(0.0, rest)))
    source = "torch.profiler (device kernels)" if on_gpu else "torch.profiler (CPU operators)"
    return profile_of_totals(source, kernels, wall, on_gpu, owner_of)


def profile_of_totals(
    source: str, kernels: Sequence[tuple[str, float, float]], wall: float | None, on_gpu: bool, owner_of: OwnerOf
) -> KernelProfile | None:
    """Return a profile from name, calls and seconds of each kernel of a pass; None where they took no time.

    `wall`: seconds of the pass, where they are known.
    """
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
    return KernelProfile(source=source, kernels=uses, seconds=total, findings=findings(Pass(uses, wall, on_gpu)))


def _is_row(row: object) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get("name"), str)
        and all(type(row.get(key)) in (int, float) and 0 <= row[key] < MAX_NUMBER for key in ("calls", "seconds"))
    )

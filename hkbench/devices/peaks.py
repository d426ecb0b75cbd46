"""Data-sheet figures of the parts that hkbench meets, dense rates without sparsity.

Sources: AMD's "GPU hardware specifications" in the ROCm documentation and the CDNA3/CDNA4 data sheets; NVIDIA's H100
and H200 data sheets (SXM). A part that is not listed has no peaks: nothing is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MIB = 1 << 20
TERA = 1e12


@dataclass(frozen=True)
class Part:
    """One GPU model. `llc` counts the last cache before memory (Infinity Cache on MI300), bytes."""

    pattern: re.Pattern[str]
    bandwidth: float  #: bytes/s
    llc: int
    flops: dict[str, float] = field(default_factory=dict)


def _part(pattern: str, tera_bytes: float, llc_mib: int, **tera_flops: float) -> Part:
    flops = {name: value * TERA for name, value in tera_flops.items()}
    return Part(re.compile(pattern, re.IGNORECASE), tera_bytes * TERA, llc_mib * MIB, flops)


PARTS = (
    _part("MI300X", 5.3, 256, bfloat16=1307.4, float16=1307.4, float32=163.4, float64=81.7),
    _part("MI325X", 6.0, 256, bfloat16=1307.4, float16=1307.4, float32=163.4, float64=81.7),
    _part("MI355X", 8.0, 256, bfloat16=2516.6, float16=2516.6, float32=157.3, float64=78.6),
    _part("MI350X", 8.0, 256, bfloat16=2300.0, float16=2300.0, float32=144.2, float64=72.1),
    _part(r"\bH200(?! NVL)", 4.8, 50, bfloat16=989.4, float16=989.4, float32=66.9, float64=33.5),
    _part(r"\bH100(?! (?:NVL|PCIe))", 3.35, 50, bfloat16=989.4, float16=989.4, float32=66.9, float64=33.5),
)


def find_part(name: str) -> Part | None:
    """The part whose name occurs in the device's own name ("AMD Instinct MI300X", "NVIDIA H200")."""
    return next((part for part in PARTS if part.pattern.search(name)), None)

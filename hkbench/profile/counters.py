"""Which hardware counters are asked of an AMD part, and in how many runs: a run counts only so many of each block.

Sources: ROCprofiler-SDK's counter_defs.yaml (blocks and expressions for gfx942 and gfx950) and the ROCm
documentation, "MI300 and MI200 series performance counters" (counters of a block). A set that does not fit is an error
of the profiler, which does not split it by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

#: Counters of one block that a run can collect, on gfx942 and gfx950.
LIMITS = {"SQ": 8, "TCC": 4, "TCP": 4, "TA": 2, "TD": 2, "SPI": 6, "CPC": 2, "CPF": 2, "GRBM": 2, "GDS": 4}
#: Hardware counters of the derived ones that are asked for.
_NEEDS = {
    "FETCH_SIZE": ("TCC_EA0_RDREQ", "TCC_EA0_RDREQ_32B", "TCC_BUBBLE"),
    "WRITE_SIZE": ("TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"),
}
#: Those that the formulas of derived.py take, and the number of waves: 24 of the SQ at most, so three runs.
_WORK = (
    "GRBM_GUI_ACTIVE", "SQ_WAVES", "SQ_WAVE_CYCLES", "SQ_VALU_MFMA_BUSY_CYCLES", "SQ_INSTS_VMEM_RD",
    "SQ_LDS_BANK_CONFLICT", "SQ_LDS_IDX_ACTIVE", "TCC_HIT_sum", "TCC_MISS_sum", "WRITE_SIZE", "FETCH_SIZE",
)  # fmt: skip
_VECTOR = tuple(
    f"SQ_INSTS_VALU_{kind}_{dtype}" for dtype in ("F32", "F16", "F64") for kind in ("ADD", "MUL", "FMA", "TRANS")
)
_MATRIX = tuple(f"SQ_INSTS_VALU_MFMA_MOPS_{dtype}" for dtype in ("BF16", "F16", "F32", "F64", "F8"))
_SETS = {
    "gfx942": (*_WORK, *_MATRIX, *_VECTOR),
    "gfx950": (*_WORK, *_MATRIX, "SQ_INSTS_VALU_MFMA_MOPS_F6F4", *_VECTOR),
}


def counter_set(arch: str | None) -> tuple[str, ...]:
    """What is asked of a part; nothing of one whose counters are not known."""
    return _SETS.get(arch or "", ())


def packed(counters: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The counters in as few runs as first fit makes of them, each within `LIMITS`."""
    runs: list[list[str]] = []
    for name in counters:
        target = next((run for run in runs if fits([*run, name])), None)
        if target is None:
            runs.append([name])
        else:
            target.append(name)
    return tuple(tuple(run) for run in runs)


def fits(counters: Sequence[str]) -> bool:
    """Whether one run can collect all of them."""
    hardware = {needed for name in counters for needed in _NEEDS.get(name, (name.removesuffix("_sum"),))}
    used = Counter(name.partition("_")[0] for name in hardware)
    return all(count <= LIMITS.get(block, 0) for block, count in used.items())

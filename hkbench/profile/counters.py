"""Which hardware counters are asked of an AMD part, and in how many runs: a run counts only so many of each block.

Sources: ROCprofiler-SDK's counter_defs.yaml (blocks and expressions for gfx942 and gfx950) and the ROCm
documentation, "MI300 and MI200 series performance counters" (counters of a block). A set that does not fit is an error
of the profiler, which does not split it by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hkbench.records import metrics

#: Counters of one block that a run can collect, on gfx942 and gfx950.
LIMITS = {"SQ": 8, "TCC": 4, "TCP": 4, "TA": 2, "TD": 2, "SPI": 6, "CPC": 2, "CPF": 2, "GRBM": 2, "GDS": 4}
#: Hardware counters of the derived ones that are asked for.
_NEEDS = {
    "FETCH_SIZE": ("TCC_EA0_RDREQ", "TCC_EA0_RDREQ_32B", "TCC_BUBBLE"),
    "WRITE_SIZE": ("TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"),
}
_MATRIX = tuple(name for name in metrics.AMD_MATRIX if not name.endswith("F6F4"))
#: 24 of the SQ at most, so three runs.
_SETS = {
    "gfx942": (*metrics.AMD_WORK, *_MATRIX, *metrics.AMD_VECTOR),
    "gfx950": (*metrics.AMD_WORK, *metrics.AMD_MATRIX, *metrics.AMD_VECTOR),
}


def counter_set(arch: str | None) -> tuple[str, ...]:
    """Return what is asked of a part; nothing of one whose counters are not known."""
    return _SETS.get(arch or "", ())


def packed(counters: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Pack the counters by first fit into as few runs as that gives, each within `LIMITS`."""
    runs: list[list[str]] = []
    for name in counters:
        target = next((run for run in runs if fits([*run, name])), None)
        if target is None:
            runs.append([name])
        else:
            target.append(name)
    return tuple(tuple(run) for run in runs)


def fits(counters: Sequence[str]) -> bool:
    """Return whether one run can collect all of them."""
    hardware = {needed for name in counters for needed in _NEEDS.get(name, (name.removesuffix("_sum"),))}
    used = Counter(name.partition("_")[0] for name in hardware)
    return all(count <= LIMITS.get(block, 0) for block, count in used.items())

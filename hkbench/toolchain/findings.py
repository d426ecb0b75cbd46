"""What the compiler's figures of a kernel say to the author of its next version."""

from __future__ import annotations

import re

from hkbench.cdna import MAX_WAVES, SIMDS, VGPRS, WAVE
from hkbench.records import KernelResources
from hkbench.toolchain.disassembly import LOST
from hkbench.toolchain.occupancy import DEFAULT_WORKGROUP, LDS

_WAVE_A_SIMD = WAVE * SIMDS  # threads of a workgroup that puts one wave on each SIMD
_WIDE = 128  #: bits a lane of the widest load
_WORD = 32  #: bits
_GLOBAL_LOAD = re.compile(r"(global|buffer|flat)_load_(?P<lds>lds_)?b(?P<bits>\d+)")
_GLOBAL_STORE = re.compile(r"(global|buffer|flat)_store_b(?P<bits>\d+)")
_WIDE_TO_LDS = ("gfx950",)  # where a load straight to LDS can have 128 bits; on gfx942 it has 32 at most
_FUNCTIONS_NAMED = 3


def findings(kernel: KernelResources, functions: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what is worth changing, most important first; nothing where the figures are not known.

    `functions` are the names of the device functions that were not inlined into any kernel. Whether a kernel does
    matrix work without matrix instructions is not said: the figures do not show what a kernel is for.
    """
    if kernel.is_function:
        return ()
    said = (
        lost_loads(kernel),
        _memory_for_registers(kernel),
        _calls(kernel, functions),
        _lds_limit(kernel),
        _narrow_loads(kernel),
        _narrow_stores(kernel),
        _flat(kernel),
        _other_spills(kernel),
    )
    return tuple(one for one in said if one is not None)


def lost_loads(kernel: KernelResources) -> str | None:
    """Return loads to LDS that the compiler sends to a null pointer's address.

    HipKittens' G::load with a buffer resource and an LDS base sets M0 in inline assembly that does not say so, and the
    compiler may set M0 again between it and the load.
    """
    count = sum(count for name, count in (kernel.instructions or {}).items() if f"_lds_{LOST}_" in name)
    if not count:
        return None
    said = "1 load to LDS goes" if count == 1 else f"{count} loads to LDS go"
    return (
        f"{said} to a null pointer's address (M0 is -1): that part of the tile is never loaded, and the result is "
        "wrong. The compiler sets M0 after HipKittens' inline assembly did: in place of G::load(tile, gl, coord, "
        "offsets, srsrc, base, lds) use G::load(tile, gl, coord, offsets)"
    )


def _memory_for_registers(kernel: KernelResources) -> str | None:
    scratch, spills = kernel.scratch_bytes_per_lane or 0, kernel.vgpr_spills or 0
    if scratch == 0:
        return None
    accesses = sum(count for name, count in (kernel.instructions or {}).items() if name.startswith("scratch_"))
    shown = f" ({accesses} accesses in the code)" if accesses else ""
    if spills:
        cause = f"{spills} VGPRs spill to {scratch} bytes of scratch memory a lane{shown}: use fewer live values"
    else:
        cause = (
            f"{scratch} bytes of scratch memory a lane{shown} without spilled VGPRs: an array that is indexed at run "
            "time, or the stack of a call; unroll the loops over it completely"
        )
    return (
        f"{cause}{_bound(kernel)}. Scratch is slow, and it uses the counters of s_waitcnt: where waits are placed by "
        "hand, as in HipKittens, results can be wrong"
    )


def _bound(kernel: KernelResources) -> str:
    """Return the advice to state the workgroup's size, where not knowing it cost the compiler registers."""
    if kernel.max_workgroup_size != DEFAULT_WORKGROUP or not kernel.vgpr_spills:
        return ""
    registers = VGPRS // (DEFAULT_WORKGROUP // _WAVE_A_SIMD)
    return (
        f", or state a smaller workgroup by __launch_bounds__ if it is one: compiled for {DEFAULT_WORKGROUP} threads, "
        f"a lane has {registers} registers"
    )


def _calls(kernel: KernelResources, functions: tuple[str, ...]) -> str | None:
    calls = (kernel.instructions or {}).get("call", 0)
    if not calls:
        return None
    named = ", ".join(functions[:_FUNCTIONS_NAMED]) + (", ..." if len(functions) > _FUNCTIONS_NAMED else "")
    among = f" (not inlined here: {named})" if named else ""
    return (
        f"{calls} call{'s' if calls > 1 else ''} of device functions{among}: their instructions are counted apart, and "
        "a call passes values through fixed registers and a stack; __forceinline__ avoids it"
    )


def _lds_limit(kernel: KernelResources) -> str | None:
    if kernel.limited_by is None or LDS not in kernel.limited_by:
        return None
    step = f": {kernel.next_step}" if kernel.next_step and LDS in kernel.next_step else ""
    return (
        f"LDS ({kernel.lds_bytes} bytes a workgroup) limits the occupancy to "
        f"{kernel.whole_workgroup_waves_per_simd} of {MAX_WAVES} waves a SIMD{step}"
    )


def _narrow_loads(kernel: KernelResources) -> str | None:
    loads = [match for match in map(_GLOBAL_LOAD.fullmatch, kernel.instructions or {}) if match]
    if kernel.arch not in _WIDE_TO_LDS and any(load["lds"] for load in loads):
        return None
    widest = max((int(load["bits"]) for load in loads), default=_WIDE)
    if widest >= _WIDE:
        return None
    return (
        f"no global load is wider than {widest} bits a lane: where a thread can take consecutive elements, 128 bits "
        "(float4, 8 x bf16) need fewer instructions for the same bytes"
    )


def _narrow_stores(kernel: KernelResources) -> str | None:
    """Advise where all stores are below 32 bits: a wave's stores of 32 bits fill whole cache lines already."""
    stores = [match for match in map(_GLOBAL_STORE.fullmatch, kernel.instructions or {}) if match]
    widest = max((int(store["bits"]) for store in stores), default=_WORD)
    if widest >= _WORD:
        return None
    return f"no global store is wider than {widest} bits a lane: pack neighbouring results into one wider store"


def _flat(kernel: KernelResources) -> str | None:
    count = sum(count for name, count in (kernel.instructions or {}).items() if name.startswith("flat_"))
    if not count:
        return None
    return (
        f"{count} flat accesses: the compiler does not know whether the pointer is global or LDS, and such an access "
        "takes part in both wait counters. Take pointers from the kernel's arguments, and do not choose between an LDS "
        "and a global pointer at run time"
    )


def _other_spills(kernel: KernelResources) -> str | None:
    """Say which spills stay in registers: SGPRs in lanes of VGPRs, VGPRs in AGPRs."""
    if kernel.scratch_bytes_per_lane is None or kernel.scratch_bytes_per_lane > 0:
        return None
    spilled = {"SGPRs": kernel.sgpr_spills, "VGPRs": kernel.vgpr_spills}
    said = " and ".join(f"{count} {what}" for what, count in spilled.items() if count)
    return f"{said} spill into other registers, without memory: copies that cost instructions" if said else None

"""How many waves (warps) of a kernel a compute unit can hold, from what the profiler says that it uses.

For launches as the profiler saw them. What a kernel can reach at most, from its compiled code: toolchain/occupancy.py.

Sources: AMD's CDNA 3 and CDNA 4 instruction set guides and "MI300 and MI200 series performance counters" (512 vector
registers a lane and SIMD in units of 8, 8 waves a SIMD, 4 SIMDs); NVIDIA's CUDA C++ Programming Guide, compute
capability 9.0 (65536 registers in units of 8 a thread, 64 warps and 32 blocks a multiprocessor).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hkbench.records import DeviceFacts, DeviceKind, KernelUse

_AMD = ("gfx942", "gfx950")
_NVIDIA = ("sm_90",)
_AMD_REGISTERS, _AMD_WAVES, _AMD_SIMDS, _AMD_WAVE = 512, 8, 4, 64
_NVIDIA_REGISTERS, _NVIDIA_WARPS, _NVIDIA_BLOCKS, _NVIDIA_WARP = 65536, 64, 32, 32
_UNIT = 8  #: registers are given out in eights, on both


@dataclass(frozen=True)
class Limit:
    """The share of wave slots that can be filled at most, and what ends it."""

    share: float
    reason: str


def limit_of(use: KernelUse, facts: DeviceFacts) -> Limit | None:
    """The tightest limit by registers and LDS; None for a part, or a kernel, of which too little is known."""
    if use.block is None:
        return None
    threads = math.prod(use.block)
    if facts.kind is DeviceKind.ROCM and facts.arch in _AMD:
        found = [_amd_registers(use), _by_lds(use, facts, threads, _AMD_WAVE, _AMD_WAVES * _AMD_SIMDS, "LDS")]
    elif facts.kind is DeviceKind.CUDA and facts.arch in _NVIDIA:
        found = [
            _nvidia_registers(use, threads),
            _by_lds(use, facts, threads, _NVIDIA_WARP, _NVIDIA_WARPS, "shared memory"),
        ]
    else:
        return None
    known = [limit for limit in found if limit is not None]
    return min(known, key=lambda limit: limit.share) if known else None


def _amd_registers(use: KernelUse) -> Limit | None:
    if use.vgprs is None:
        return None
    registers = use.vgprs
    if use.agprs:  # they begin at a multiple of four
        registers = math.ceil(use.vgprs / 4) * 4 + use.agprs
    waves = min(_AMD_WAVES, _AMD_REGISTERS // _rounded(registers))
    return Limit(waves / _AMD_WAVES, f"{registers} vector registers a lane leave room for {waves} waves a SIMD")


def _nvidia_registers(use: KernelUse, threads: int) -> Limit | None:
    if use.registers is None or not threads:
        return None
    warps = math.ceil(threads / _NVIDIA_WARP)
    blocks = min(_NVIDIA_BLOCKS, _NVIDIA_REGISTERS // (_rounded(use.registers) * warps * _NVIDIA_WARP))
    share = min(1.0, blocks * warps / _NVIDIA_WARPS)
    return Limit(share, f"{use.registers} registers a thread leave room for {blocks} blocks a multiprocessor")


def _by_lds(use: KernelUse, facts: DeviceFacts, threads: int, wave: int, slots: int, word: str) -> Limit | None:
    if not use.lds_bytes or not facts.lds_bytes or not threads:
        return None
    blocks = facts.lds_bytes // use.lds_bytes
    share = min(1.0, blocks * math.ceil(threads / wave) / slots)
    return Limit(share, f"{use.lds_bytes} bytes of {word} a block leave room for {blocks} blocks a compute unit")


def _rounded(registers: int) -> int:
    return max(_UNIT, math.ceil(registers / _UNIT) * _UNIT)

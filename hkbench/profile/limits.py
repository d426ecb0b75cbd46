"""How many waves (warps) of a kernel a compute unit can hold, from what the profiler says that it uses.

For launches as the profiler saw them. What a kernel can reach at most, from its compiled code: toolchain/occupancy.py.

Sources: hkbench/cdna.py for AMD's; NVIDIA's CUDA C++ Programming Guide, compute
capability 9.0 (65536 registers in units of 8 a thread, 64 warps and 32 blocks a multiprocessor).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hkbench.cdna import LDS_BYTES, MAX_WAVES, SIMDS, WAVE, allocated, waves_by_registers, workgroups_by_lds
from hkbench.records import DeviceFacts, KernelUse

_NVIDIA = ("sm_90",)
_NVIDIA_REGISTERS, _NVIDIA_WARPS, _NVIDIA_BLOCKS, _NVIDIA_WARP = 65536, 64, 32, 32
_NVIDIA_UNIT = 8  #: registers are given out in eights


@dataclass(frozen=True)
class Limit:
    """The share of wave slots that can be filled at most, and what ends it."""

    share: float
    reason: str


def limit_of(use: KernelUse, facts: DeviceFacts) -> Limit | None:
    """Return the tightest limit by registers and LDS; None for a part, or a kernel, of which too little is known."""
    if use.block is None:
        return None
    threads = math.prod(use.block)
    if facts.arch in LDS_BYTES:
        found = [_amd_registers(use), _amd_lds(use, facts.arch, threads)]
    elif facts.arch in _NVIDIA:
        found = [_nvidia_registers(use, threads), _nvidia_shared(use, facts, threads)]
    else:
        return None
    known = [limit for limit in found if limit is not None]
    return min(known, key=lambda limit: limit.share) if known else None


def launched_share(use: KernelUse, facts: DeviceFacts) -> float | None:
    """Return the share of the device's wave slots that the launch's blocks can fill; None if not known."""
    if use.grid is None or use.block is None or not facts.compute_units:
        return None
    if facts.arch in LDS_BYTES:
        wave, slots = WAVE, MAX_WAVES * SIMDS
    elif facts.arch in _NVIDIA:
        wave, slots = _NVIDIA_WARP, _NVIDIA_WARPS
    else:
        return None
    waves = math.prod(use.grid) * math.ceil(math.prod(use.block) / wave)
    return min(1.0, waves / (slots * facts.compute_units))


def _amd_registers(use: KernelUse) -> Limit | None:
    if use.vgprs is None:
        return None
    registers = allocated(use.vgprs, use.agprs or 0)
    waves = waves_by_registers(registers)
    return Limit(waves / MAX_WAVES, f"{registers} vector registers a lane leave room for {waves} waves a SIMD")


def _amd_lds(use: KernelUse, arch: str, threads: int) -> Limit | None:
    if not use.lds_bytes or not threads:
        return None
    slots = MAX_WAVES * SIMDS
    return _by_blocks(use.lds_bytes, workgroups_by_lds(arch, use.lds_bytes, slots), threads, WAVE, slots, "LDS")


def _nvidia_registers(use: KernelUse, threads: int) -> Limit | None:
    if use.registers is None or not threads:
        return None
    warps = math.ceil(threads / _NVIDIA_WARP)
    registers = max(1, math.ceil(use.registers / _NVIDIA_UNIT)) * _NVIDIA_UNIT  # as they are given out
    blocks = min(_NVIDIA_BLOCKS, _NVIDIA_REGISTERS // (registers * warps * _NVIDIA_WARP))
    share = min(1.0, blocks * warps / _NVIDIA_WARPS)
    return Limit(share, f"{use.registers} registers a thread leave room for {blocks} blocks a multiprocessor")


def _nvidia_shared(use: KernelUse, facts: DeviceFacts, threads: int) -> Limit | None:
    if not use.lds_bytes or not facts.lds_bytes or not threads:
        return None
    blocks = facts.lds_bytes // use.lds_bytes
    return _by_blocks(use.lds_bytes, blocks, threads, _NVIDIA_WARP, _NVIDIA_WARPS, "shared memory")


def _by_blocks(lds: int, blocks: int, threads: int, wave: int, slots: int, word: str) -> Limit:
    share = min(1.0, blocks * math.ceil(threads / wave) / slots)
    return Limit(share, f"{lds} bytes of {word} a block leave room for {blocks} blocks a compute unit")

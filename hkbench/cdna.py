"""What a compute unit of gfx942 (CDNA 3) and gfx950 (CDNA 4) has, and how it is given out.

The rules, and where they stand ("LLVM" is the compiler's own source; AMD's instruction set guides of CDNA 3 and CDNA 4
say the same of registers and waves):

- A compute unit has four SIMDs; a SIMD holds up to 8 waves (LLVM `IsaInfo::getEUsPerCU`, `getMaxWavesPerEU` on gfx90a
  and later).
- VGPRs: a SIMD has 512 a lane for VGPRs and AGPRs together, given out in blocks of 8. AGPRs begin at a multiple of 4
  (LLVM `getTotalNumVGPRs`, `getVGPRAllocGranule`, `getTotalNumVGPRs(has90AInsts, AGPRs, VGPRs)`; AMDGPUUsage,
  GRANULATED_WORKITEM_VGPR_COUNT and ACCUM_OFFSET).
- SGPRs: up to 100 leave room for 8 waves, more for 7 (LLVM `getOccupancyWithNumSGPRs`, from VOLCANIC_ISLANDS up to
  GFX9).
- LDS: 64 KiB a compute unit in blocks of 512 bytes on gfx942, 160 KiB in blocks of 1280 bytes on gfx950 (AMDGPUUsage,
  GRANULATED_LDS_SIZE; LLVM features AddressableLocalMemorySize65536 and AddressableLocalMemorySize163840).
"""

from __future__ import annotations

SIMDS = 4  #: a compute unit
MAX_WAVES = 8  #: a SIMD
WAVE = 64  #: threads
VGPRS = 512  #: a lane of a SIMD, AGPRs among them
VGPR_BLOCK = 8
SGPRS_FOR_ALL_WAVES = 100
LDS_BYTES = {"gfx942": 64 << 10, "gfx950": 160 << 10}  #: a compute unit
LDS_BLOCK = {"gfx942": 512, "gfx950": 1280}  #: bytes
_AGPR_ALIGNMENT = 4
_WAVES_WITH_MORE_SGPRS = 7


def allocated(vgprs: int, agprs: int) -> int:
    """Return VGPRs and AGPRs a lane in one count, before rounding to blocks."""
    return _rounded(vgprs, _AGPR_ALIGNMENT) + agprs if agprs else vgprs


def waves_by_registers(registers: int) -> int:
    """Return the waves a SIMD that so many VGPRs and AGPRs a lane leave room for; 0 for more than there are."""
    return min(MAX_WAVES, VGPRS // _rounded(max(registers, 1), VGPR_BLOCK))


def waves_by_sgprs(sgprs: int) -> int:
    """Return the waves a SIMD that so many SGPRs leave room for."""
    return MAX_WAVES if sgprs <= SGPRS_FOR_ALL_WAVES else _WAVES_WITH_MORE_SGPRS


def workgroups_by_lds(arch: str, lds: int, most: int) -> int:
    """Return how many workgroups of `lds` bytes fit into a compute unit of `arch`, at most `most`; 0: none fits."""
    return min(most, LDS_BYTES[arch] // _rounded(lds, LDS_BLOCK[arch])) if lds else most


def _rounded(count: int, block: int) -> int:
    return -(-count // block) * block

"""rocminfo's output, written after the format of ROCm's rocminfo.cc (ROCm/rocminfo, docs/how-to/use-rocminfo.rst).

Not captured on a GPU of ours: the values of the MI300X are those that owners have posted, the MI355X's follow AMD's
specification page.
"""

from __future__ import annotations

HEADER = """\
ROCk module version 6.12.12 is loaded
=====================
HSA System Attributes
=====================
Runtime Version:         1.18
Runtime Ext Version:     1.11
System Timestamp Freq.:  1000.000000MHz
Sig. Max Wait Duration:  18446744073709551615 (0xFFFFFFFFFFFFFFFF) (timestamp count)
Machine Model:           LARGE
System Endianness:       LITTLE
Mwaitx:                  DISABLED
XNACK enabled:           NO
DMAbuf Support:          YES
VMM Support:             YES

==========
HSA Agents
==========
"""

CPU = """\
*******
Agent {agent}
*******
  Name:                    AMD EPYC 9654 96-Core Processor
  Uuid:                    CPU-XX
  Marketing Name:          AMD EPYC 9654 96-Core Processor
  Vendor Name:             CPU
  Feature:                 None specified
  Profile:                 FULL_PROFILE
  Device Type:             CPU
  Cache Info:
    L1:                      32768(0x8000) KB
  Chip ID:                 0(0x0)
  Cacheline Size:          64(0x40)
  Max Clock Freq. (MHz):   3707
  BDFID:                   0
  Compute Unit:            192
  Memory Properties:
  Features:                None
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    792303268(0x2f3996a4) KB
      Allocatable:             TRUE
  ISA Info:
"""

GPU = """\
*******
Agent {agent}
*******
  Name:                    {arch}
  Uuid:                    GPU-8af705259683161c
  Marketing Name:          {name}
  Vendor Name:             AMD
  Feature:                 KERNEL_DISPATCH
  Profile:                 BASE_PROFILE
  Float Round Mode:        NEAR
  Max Queue Number:        128(0x80)
  Queue Type:              MULTI
  Node:                    {agent}
  Device Type:             GPU
  Cache Info:
    L1:                      32(0x20) KB
    L2:                      4096(0x1000) KB
    L3:                      262144(0x40000) KB
  Chip ID:                 29857(0x74a1)
  ASIC Revision:           1(0x1)
  Cacheline Size:          128(0x80)
  Max Clock Freq. (MHz):   {mhz}
  BDFID:                   {bdf}
  Internal Node ID:        {agent}
  Compute Unit:            {units}
  SIMDs per CU:            4
  Shader Engines:          32
  Coherent Host Access:    FALSE
  Memory Properties:
  Features:                KERNEL_DISPATCH
  Fast F16 Operation:      TRUE
  Wavefront Size:          64(0x40)
  Workgroup Max Size:      1024(0x400)
  Workgroup Max Size per Dimension:
    x                        1024(0x400)
    y                        1024(0x400)
    z                        1024(0x400)
  Max Waves Per CU:        32(0x20)
  Packet Processor uCode:: 189
  IOMMU Support::          None
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    {memory_kib} KB
      Allocatable:             TRUE
      Alloc Granule:           4KB
      Accessible by all:       FALSE
    Pool 2
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    {memory_kib} KB
      Allocatable:             TRUE
    Pool 3
      Segment:                 GROUP
      Size:                    {lds_kib} KB
      Allocatable:             FALSE
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--{arch}:sramecc+:xnack-
      Machine Models:          HSA_MACHINE_MODEL_LARGE
      Workgroup Max Size:      1024(0x400)
    ISA 2
      Name:                    amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-
"""


def mi300x(agent: int, bdf: int = 6912, name: str = "AMD Instinct MI300X") -> str:
    return GPU.format(
        agent=agent, bdf=bdf, name=name, arch="gfx942", mhz=2100, units=304, memory_kib="200998912(0xbfb0000)",
        lds_kib="64(0x40)",
    )  # fmt: skip


def mi355x(agent: int, bdf: int = 29952, name: str = "AMD Instinct MI355X") -> str:
    return GPU.format(
        agent=agent, bdf=bdf, name=name, arch="gfx950", mhz=2400, units=256, memory_kib="301973504(0x11ffc000)",
        lds_kib="160(0xa0)",
    )  # fmt: skip


def listing(*agents: str) -> str:
    return HEADER + "".join(agents) + "*** Done ***\n"


def padded(text: str) -> str:
    """As rocminfo really prints it: lines filled up with blanks."""
    return "".join(f"{line:<67}\n" for line in text.splitlines())

"""How a compute unit is given out; test_compiled_kernels.py holds the rules against the compiler itself."""

from __future__ import annotations

import pytest

from hkbench.cdna import SIMDS, WAVE, allocated, waves_by_registers, waves_by_sgprs, workgroups_by_lds
from hkbench.profile.limits import limit_of
from hkbench.records import DeviceFacts, DeviceKind, KernelResources, KernelUse, Owner
from hkbench.toolchain.occupancy import occupancy


@pytest.mark.parametrize(
    ("registers", "waves"),
    [(0, 8), (64, 8), (65, 7), (72, 7), (73, 6), (128, 4), (129, 3), (256, 2), (257, 1), (513, 0)],
)
def test_registers_come_in_blocks_of_eight(registers: int, waves: int) -> None:
    assert waves_by_registers(registers) == waves


def test_agprs_begin_at_a_multiple_of_four() -> None:
    assert (allocated(61, 64), allocated(61, 0)) == (128, 61)


def test_sgprs_hardly_limit() -> None:
    assert (waves_by_sgprs(100), waves_by_sgprs(101)) == (8, 7)


@pytest.mark.parametrize(
    ("arch", "lds", "workgroups"),
    [("gfx942", 0, 32), ("gfx942", 5461, 11), ("gfx942", 65536, 1), ("gfx942", 65537, 0), ("gfx950", 13653, 11),
     ("gfx950", 65537, 2)],
)  # fmt: skip
def test_lds_comes_in_blocks(arch: str, lds: int, workgroups: int) -> None:
    assert workgroups_by_lds(arch, lds, 32) == workgroups


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("vgprs", "agprs", "lds"), [(96, 0, 0), (61, 64, 0), (32, 0, 5461), (32, 0, 13653)])
def test_profile_and_compiler_figures_come_to_the_same(arch: str, vgprs: int, agprs: int, lds: int) -> None:
    threads = WAVE * SIMDS
    compiled = KernelResources(
        name="k", arch=arch, vgprs=vgprs, agprs=agprs, sgprs=20, lds_bytes=lds, max_workgroup_size=threads
    )
    seen = KernelUse(
        name="k", owner=Owner.CANDIDATE, calls=1, seconds=1.0, share=1.0, block=(threads, 1, 1), vgprs=vgprs,
        agprs=agprs, lds_bytes=lds,
    )  # fmt: skip
    by_compiler = occupancy(compiled)
    by_profile = limit_of(seen, DeviceFacts(kind=DeviceKind.ROCM, index=0, name="a GPU", arch=arch))
    assert by_compiler is not None and by_profile is not None
    assert by_profile.share == by_compiler.waves / 8

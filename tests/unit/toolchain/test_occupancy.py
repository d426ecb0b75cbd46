"""The allocation rules by themselves; test_compiled_kernels.py holds them against the compiler."""

from __future__ import annotations

import pytest

from hkbench.records import KernelResources
from hkbench.toolchain.occupancy import (
    LDS,
    REGISTERS,
    WORKGROUP,
    Demand,
    occupancy,
    registers_of,
    waves_per_simd,
)


def _kernel(**known: object) -> KernelResources:
    start = {"name": "k", "arch": "gfx942", "vgprs": 32, "agprs": 0, "sgprs": 20, "lds_bytes": 0}
    return KernelResources.model_validate({**start, "max_workgroup_size": 256, **known})


def test_agprs_begin_at_a_multiple_of_four() -> None:
    assert registers_of(_kernel(vgprs=61, agprs=64)) == 128
    assert registers_of(_kernel(vgprs=61, agprs=0)) == 61
    assert registers_of(_kernel(vgprs=None)) is None


def test_workgroups_are_whole() -> None:
    by_threads = {
        threads: waves_per_simd(Demand("gfx942", registers=80, sgprs=20, lds=0, threads=threads))
        for threads in (64, 256, 512, 1024)
    }
    assert by_threads == {64: 6, 256: 6, 512: 6, 1024: 4}


def test_a_large_workgroup_leaves_room_unused() -> None:
    found = occupancy(_kernel(vgprs=72, max_workgroup_size=1024))
    assert found is not None
    assert (found.waves, found.limited_by) == (4, (REGISTERS, WORKGROUP))
    assert found.next_step == "64 VGPRs or fewer would give 8 waves a SIMD"
    smaller = occupancy(_kernel(vgprs=72, max_workgroup_size=768))
    assert smaller is not None
    assert (smaller.waves, smaller.limited_by) == (6, (WORKGROUP,))
    assert smaller.next_step == "workgroups of 256 threads would give 7 waves a SIMD"


def test_two_limits_at_once_have_no_single_next_step() -> None:
    found = occupancy(_kernel(vgprs=128, lds_bytes=16384))
    assert found is not None
    assert (found.waves, found.limited_by, found.next_step) == (4, (REGISTERS, LDS), None)


def test_small_workgroups_leave_simds_unequal() -> None:
    found = occupancy(_kernel(lds_bytes=20000, max_workgroup_size=64))
    assert found is not None
    assert (found.waves, found.limited_by) == (1, (LDS,))  # three waves on four SIMDs


@pytest.mark.parametrize(("arch", "budget"), [("gfx942", 8192), ("gfx950", 20480)])
def test_the_budget_of_lds_is_in_whole_blocks(arch: str, budget: int) -> None:
    found = occupancy(_kernel(arch=arch))
    assert found is not None
    assert (found.waves, found.limited_by, found.lds_budget) == (8, (), budget)


@pytest.mark.parametrize("unknown", [{"vgprs": None}, {"max_workgroup_size": None}, {"arch": "gfx1100"}])
def test_what_is_not_known_is_not_guessed(unknown: dict[str, object]) -> None:
    assert occupancy(_kernel(**unknown)) is None

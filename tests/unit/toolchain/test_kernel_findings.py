"""What is said about a kernel's figures, and how the figures of the code join those of the remarks."""

from __future__ import annotations

import pytest

from hkbench.cli.verdicts import kernel_resources as terminal_lines
from hkbench.prompts.reflection import _resources as prompt_line
from hkbench.records import KernelResources
from hkbench.toolchain.code_object import KernelMetadata
from hkbench.toolchain.findings import findings, lost_loads
from hkbench.toolchain.resources import completed, with_findings


def _kernel(**known: object) -> KernelResources:
    return KernelResources.model_validate({"name": "k", "arch": "gfx942", **known})


def test_nothing_known_nothing_said() -> None:
    assert findings(_kernel()) == ()
    assert findings(_kernel(vgprs=40, scratch_bytes_per_lane=0, instructions={"valu": 3})) == ()


def test_loads_that_do_not_arrive_come_before_all() -> None:
    instructions = {"buffer_load_lds_lost_b128": 2, "buffer_load_lds_b128": 6}
    said = findings(_kernel(arch="gfx950", scratch_bytes_per_lane=64, vgpr_spills=16, instructions=instructions))
    assert said[0].startswith("2 loads to LDS go to a null pointer's address")
    assert lost_loads(_kernel(instructions={"buffer_load_lds_b128": 6})) is None


def test_scratch_comes_first_and_names_its_cause() -> None:
    instructions = {"global_load_b32": 4, "scratch_load_b64": 3, "scratch_store_b64": 2}
    indexed = findings(_kernel(scratch_bytes_per_lane=816, vgpr_spills=0, instructions=instructions))
    assert indexed[0].startswith("816 bytes of scratch memory a lane (5 accesses in the code) without spilled VGPRs")
    assert "s_waitcnt" in indexed[0]
    assert len(indexed) == 2
    spilled = findings(_kernel(scratch_bytes_per_lane=64, vgpr_spills=16, max_workgroup_size=256))
    assert spilled[0].startswith("16 VGPRs spill to 64 bytes")
    assert "__launch_bounds__" not in spilled[0]


def test_spills_into_registers_are_a_smaller_matter() -> None:
    (said,) = findings(_kernel(scratch_bytes_per_lane=0, vgpr_spills=0, sgpr_spills=9))
    assert said.startswith("9 SGPRs spill into other registers")


@pytest.mark.parametrize(
    ("instructions", "said"),
    [
        ({"global_load_b16": 8, "buffer_load_b64": 1}, "no global load is wider than 64 bits"),
        ({"global_load_b128": 1, "global_load_b32": 9}, None),
        ({"scalar_load": 4}, None),
        ({"buffer_load_lds_b32": 4, "global_load_b32": 1}, None),  # gfx942 loads no more than 32 bits straight to LDS
        ({"global_load_b128": 1, "global_store_b16": 64}, "no global store is wider than 16 bits"),
        ({"flat_load_b128": 2}, "2 flat accesses"),
    ],
)
def test_memory_accesses(instructions: dict[str, int], said: str | None) -> None:
    found = findings(_kernel(instructions=instructions))
    assert [one.startswith(said) for one in found] == [True] if said else not found


def test_the_code_joins_the_remarks_by_mangled_name() -> None:
    remarks = (_kernel(name="_Z1k", vgprs=80, agprs=0, sgprs=12, lds_bytes=0, occupancy_waves_per_simd=6),)
    counts = {"_Z1k": {"lds_read_b32": 1, "call": 1}, "_Z1f": {"valu": 2}}
    kernel, function = completed(remarks, [KernelMetadata("_Z1k", 256)], counts)
    assert (kernel.whole_workgroup_waves_per_simd, kernel.limited_by) == (6, ("VGPRs",))
    assert kernel.dynamic_lds is True
    assert function == _kernel(name="_Z1f", instructions={"valu": 2}, is_function=True)
    assert completed(remarks, [], {}) == remarks


def test_people_and_prompts_are_told_the_same() -> None:
    counts = {"_Z1k": {"valu": 7, "global_load_b32": 1, "lds_read_b32": 1}, "_Z1f": {"valu": 2}}
    remarks = (_kernel(name="_Z1k", vgprs=80, agprs=0, sgprs=12, lds_bytes=0, occupancy_waves_per_simd=6),)
    kernel, function = with_findings(completed(remarks, [KernelMetadata("_Z1k", 256)], counts))
    assert terminal_lines(kernel).splitlines() == [
        "  gfx942 _Z1k: 80 VGPRs, 0 AGPRs, 12 SGPRs, 0 LDS bytes, 6 waves/SIMD",
        "    with its largest workgroup (256 threads): 6 of 8 waves/SIMD, limited by VGPRs; "
        "72 VGPRs or fewer would give 7 waves a SIMD",
        "    uses LDS whose size only the launch says; up to 10752 bytes a workgroup keep 6 waves/SIMD",
        "    instructions in the code (not executions): 7 valu, 1 global_load_b32, 1 lds_read_b32",
        f"    finding: {kernel.findings[0]}",
    ]
    assert terminal_lines(function).startswith("  gfx942 _Z1f: function not inlined\n")
    line = prompt_line(kernel)
    for part in ("limited by VGPRs (72 VGPRs or fewer", "7 valu, 1 global_load_b32", "10752 bytes", *kernel.findings):
        assert part in line
    assert prompt_line(function).startswith("_Z1f (gfx942): device function, not inlined; ")


def test_records_written_before_these_figures_are_read() -> None:
    old = '{"name": "k", "arch": "gfx942", "vgprs": 3, "occupancy_waves_per_simd": 8}'
    assert KernelResources.model_validate_json(old) == _kernel(vgprs=3, occupancy_waves_per_simd=8)

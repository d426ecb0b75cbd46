"""The remark parser on what clang 22 really printed (data/remarks_*.txt)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hkbench.records import KernelResources
from hkbench.toolchain.resources import demangled, parse_resources, without_remarks

DATA = Path(__file__).parent / "data"


def test_every_figure_of_every_kernel_is_read() -> None:
    crowded, total = parse_resources((DATA / "remarks_gfx942.txt").read_text(), "gfx942")
    assert crowded == KernelResources(
        name="_Z7crowdedPKfPfPKi",
        arch="gfx942",
        vgprs=18,
        agprs=0,
        sgprs=28,
        lds_bytes=0,
        scratch_bytes_per_lane=816,
        vgpr_spills=0,
        sgpr_spills=0,
        occupancy_waves_per_simd=8,
    )
    assert (total.name, total.vgprs, total.lds_bytes) == ("_Z5totalILi4EEvPKfPfi", 14, 1024)


def test_both_architectures_print_the_same_form() -> None:
    kernels = parse_resources((DATA / "remarks_gfx950.txt").read_text(), "gfx950")
    assert [kernel.arch for kernel in kernels] == ["gfx950", "gfx950"]
    figures = [[kernel.vgprs, kernel.agprs, kernel.sgprs, kernel.lds_bytes] for kernel in kernels]
    figures += [[kernel.scratch_bytes_per_lane, kernel.vgpr_spills, kernel.sgpr_spills] for kernel in kernels]
    figures += [[kernel.occupancy_waves_per_simd] for kernel in kernels]
    assert all(None not in row for row in figures)


def test_a_figure_that_is_not_there_stays_none() -> None:
    text = (DATA / "remarks_gfx942.txt").read_text()
    shortened = "\n".join(line for line in text.splitlines() if " AGPRs: " not in line)
    assert [kernel.agprs for kernel in parse_resources(shortened, "gfx942")] == [None, None]


def test_a_kernel_reported_twice_is_kept_once() -> None:
    text = (DATA / "remarks_gfx942.txt").read_text()
    assert parse_resources(text + text, "gfx942") == parse_resources(text, "gfx942")


@pytest.mark.parametrize("text", ["", "error: no\n", "x.hip:1:1: remark:     VGPRs: 7 [-Rpass-analysis=other]"])
def test_other_output_has_no_kernels(text: str) -> None:
    assert parse_resources(text, "gfx942") == ()


def test_remarks_are_taken_out_of_a_log_and_errors_stay() -> None:
    error = (DATA / "error_undeclared.txt").read_text().rstrip("\n")
    mixed = (DATA / "remarks_gfx942.txt").read_text() + error
    assert without_remarks(mixed) == error


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="needs c++filt (binutils)")
def test_names_are_demangled() -> None:
    kernels = demangled(parse_resources((DATA / "remarks_gfx942.txt").read_text(), "gfx942"))
    assert [kernel.name for kernel in kernels] == [
        "crowded(float const*, float*, int const*)",
        "void total<4>(float const*, float*, int)",
    ]
    assert kernels[0].vgprs == 18

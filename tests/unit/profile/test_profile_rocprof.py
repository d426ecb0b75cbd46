"""Files of rocprof and rocprofv2, after their documentation: no AMD GPU was at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from profile_samples import DATA, GEMM, MI300X, RELU, cut, damaged, owner, place

from hkbench.profile import Choice, Profiler, ProfileUnreadable, plan, read_profile
from hkbench.profile.rocprof import read_counters, read_trace
from hkbench.records import metrics


@pytest.mark.parametrize("name", ["rocprof_trace.csv", "rocprofv2_6_trace.csv"])
def test_a_trace(name: str) -> None:
    run = read_trace(DATA / name)
    assert [launch.name for launch in run.dispatches[1:]] == [GEMM, RELU, GEMM, RELU]
    gemm = run.dispatches[1]
    assert gemm.seconds == pytest.approx(1e-3)
    assert (gemm.grid, gemm.block) == ((1024,), (256,))
    assert (gemm.vgprs, gemm.agprs, gemm.sgprs, gemm.lds_bytes, gemm.scratch_bytes) == (128, 64, 48, 65536, 0)
    assert gemm.counters == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rocprof_counters.csv", {"FETCH_SIZE": 1.2e6, "TCC_HIT_sum": 7.5e7, "TCC_MISS_sum": 2.5e7}),
        ("rocprofv2_5_counters.csv", {"FETCH_SIZE": 1.2e6, "TCC_HIT_sum": 7.5e7}),
        ("rocprofv2_6_counters.csv", {"WRITE_SIZE": 4e5, "SQ_WAVES": 4096.0}),
    ],
)
def test_counters_are_the_columns_that_are_nothing_else(name: str, expected: dict[str, float]) -> None:
    run = read_counters(DATA / name)
    gemm = run.dispatches[1]
    assert gemm.name == GEMM
    assert gemm.counters == expected
    assert gemm.seconds is None  # counting serialises: no time is taken from it
    assert gemm.vgprs == 128


def test_a_plan_of_rocprof_read_back(tmp_path: Path) -> None:
    planned = plan(Choice(Profiler.ROCPROF, "rocprof"), "gfx942", tmp_path, ("python", "one.py"), forwards=2)
    place("rocprof_trace.csv", tmp_path / "trace.csv")
    place("rocprof_counters.csv", tmp_path / "counters_1.csv")
    failed = {"counters_2": "no such counter", "counters_3": "no such counter"}
    profile = read_profile(planned, owner, MI300X, failed)
    gemm, relu = profile.kernels
    assert profile.source == "rocprof (kernel trace, 1 counter passes)"
    assert gemm.figures[metrics.L2_HIT_RATE].value == pytest.approx(0.75)
    assert relu.seconds == pytest.approx(2e-4)
    assert profile.notes[:2] == ("no such counter", "no such counter")


def test_a_plan_of_rocprofv2_read_back(tmp_path: Path) -> None:
    planned = plan(Choice(Profiler.ROCPROFV2, "rocprofv2"), "gfx90a", tmp_path, ("python", "one.py"), forwards=2)
    place("rocprofv2_6_trace.csv", tmp_path / "trace" / "pmc_1" / "results_353.csv")
    profile = read_profile(planned, owner, MI300X)
    assert [use.name for use in profile.kernels] == [GEMM, RELU]
    assert "gfx90a" in profile.notes[0]


def test_times_of_an_early_rocprofv2_are_refused() -> None:
    with pytest.raises(ProfileUnreadable, match="is no time of a kernel"):
        read_trace(DATA / "rocprofv2_5_counters.csv")


def test_a_trace_has_no_counters() -> None:
    with pytest.raises(ProfileUnreadable, match="holds no counter"):
        read_counters(DATA / "rocprof_trace.csv")


@pytest.mark.parametrize("name", ["rocprof_trace.csv", "rocprofv2_6_trace.csv"])
@pytest.mark.parametrize("left", [30, 100, 700])
def test_a_file_that_was_cut_off(tmp_path: Path, name: str, left: int) -> None:
    with pytest.raises(ProfileUnreadable, match=name):
        read_trace(cut(name, tmp_path, left))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("KernelName", "Kernel", "has no column KernelName or Kernel_Name"),
        (",65536,", ",many,", "grd is 'many'"),
        ("1200000.0000000000", "?", "FETCH_SIZE is '\\?'"),
    ],
)
def test_a_damaged_file(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(ProfileUnreadable, match=says):
        read_counters(damaged("rocprof_counters.csv", tmp_path, old, new))

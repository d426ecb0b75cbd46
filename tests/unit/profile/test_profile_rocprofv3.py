"""rocprofv3's files, after its documentation: no AMD GPU was at hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from profile_samples import DATA, GEMM, MI300X, RELU, cut, damaged, owner, place

from hkbench.errors import InputMissing, UsageError
from hkbench.profile import Choice, Plan, Profiler, ProfileUnreadable, plan, read_profile
from hkbench.profile.rocprofv3 import read_agent, read_counters, read_trace
from hkbench.records import KernelProfile, KernelUse, Owner, metrics


def planned(folder: Path) -> Plan:
    return plan(Choice(Profiler.ROCPROFV3, "rocprofv3"), "gfx942", folder, ("python", "one.py"), forwards=2)


@pytest.fixture
def written(tmp_path: Path) -> Plan:
    """A folder as the plan's four steps leave it, the trace below the machine's name as without `-o`."""
    place("rocprofv3_70_kernel_trace.csv", tmp_path / "machine" / "trace_kernel_trace.csv")
    place("rocprofv3_agent_info.csv", tmp_path / "machine" / "trace_agent_info.csv")
    for number in (1, 2, 3):
        name = f"{number}_counter_collection.csv"
        place(f"rocprofv3_{name}", tmp_path / f"counters_{name}")
    return planned(tmp_path)


def used(profile: KernelProfile) -> tuple[KernelUse, KernelUse]:
    gemm, relu = profile.kernels
    return gemm, relu


@pytest.mark.parametrize("release", ["62", "64", "70"])
def test_a_trace_of_each_release(release: str) -> None:
    run = read_trace(DATA / f"rocprofv3_{release}_kernel_trace.csv")
    assert [launch.name for launch in run.dispatches[1:]] == [GEMM, RELU, GEMM, RELU]
    gemm = run.dispatches[1]
    assert gemm.seconds == pytest.approx(1e-3)
    assert gemm.block == (256, 1, 1)
    assert gemm.grid == (32, 32, 1)  # of 8192 x 32 work-items
    assert (gemm.lds_bytes, gemm.scratch_bytes) == (65536, 0)
    known = (gemm.vgprs, gemm.agprs, gemm.sgprs)
    assert known == ((128, 64, 48) if release == "70" else (None, None, None))


def test_trace_and_three_counter_passes_become_one_profile(written: Plan) -> None:
    profile = read_profile(written, owner, MI300X)
    gemm, relu = used(profile)
    assert profile.source == "rocprofv3 (kernel trace, 3 counter passes)"
    assert profile.notes == ()
    assert profile.seconds == pytest.approx(1.2e-3)  # the fill before the passes is not of them
    assert (gemm.name, gemm.calls, gemm.owner) == (GEMM, 1, Owner.CANDIDATE)
    assert gemm.seconds == pytest.approx(1e-3)
    assert gemm.share == pytest.approx(1 / 1.2)
    assert (gemm.grid, gemm.block, gemm.vgprs, gemm.agprs) == ((32, 32, 1), (256, 1, 1), 128, 64)
    assert gemm.counters["FETCH_SIZE"] == 1_200_000
    assert len(gemm.counters) == 28
    assert relu.counters["SQ_INSTS_VALU_ADD_F32"] == 1_000_000


def test_figures_of_the_passes(written: Plan) -> None:
    gemm, relu = used(read_profile(written, owner, MI300X))
    expected = {
        metrics.BANDWIDTH: (1.6384e12, "B/s"),
        metrics.BANDWIDTH_OF_PEAK: (1.6384 / 5.3, "fraction"),
        metrics.FLOPS: (653.7e12, "FLOP/s"),
        metrics.FLOPS_OF_PEAK: (0.5, "fraction"),
        metrics.OF_ROOF: (0.5, "fraction"),
        metrics.L2_HIT_RATE: (0.75, "fraction"),
        metrics.MATRIX_UNIT_USE: (0.6, "fraction"),
        metrics.OCCUPANCY: (0.25, "fraction"),
        metrics.LDS_CONFLICTS: (0.25, "fraction"),
        metrics.LOAD_WIDTH: (4.8, "B"),
    }
    values = {name: value for name, (value, _) in expected.items()}
    assert {name: figure.value for name, figure in gemm.figures.items()} == pytest.approx(values)
    units = {name: unit for name, (_, unit) in expected.items()}
    assert {name: figure.unit for name, figure in gemm.figures.items()} == units
    assert relu.figures[metrics.BANDWIDTH_OF_PEAK].value == pytest.approx(4.096 / 5.3)
    assert metrics.LDS_CONFLICTS not in relu.figures  # a kernel that does not touch the LDS has no share of it


def test_figures_that_need_a_missing_counter_are_left_out(written: Plan) -> None:
    profile = read_profile(
        written, owner, MI300X, failed={"counters_2": "rocprofv3 (counters_2) ended with 1: no such"}
    )
    gemm, _ = used(profile)
    assert "FETCH_SIZE" not in gemm.counters
    assert metrics.BANDWIDTH not in gemm.figures
    assert metrics.FLOPS not in gemm.figures
    assert gemm.figures[metrics.MATRIX_UNIT_USE].value == pytest.approx(0.6)
    assert profile.notes == ("rocprofv3 (counters_2) ended with 1: no such",)


def test_without_the_agent_list_nothing_is_said_of_cycles(written: Plan) -> None:
    next(written.folder.glob("**/trace_agent_info.csv")).unlink()
    profile = read_profile(written, owner, MI300X)
    assert metrics.OCCUPANCY not in profile.kernels[0].figures
    assert "XCDs is not known" in profile.notes[0]


def test_zeros_of_a_part_that_is_not_counted_are_no_counters(written: Plan) -> None:
    for path in written.folder.glob("counters_*.csv"):
        rows = [line.split(",") for line in path.read_text().splitlines()]
        zeroed = [[*row[:-3], "0.0", *row[-2:]] if row[0].isdigit() else row for row in rows]
        path.write_text("".join(",".join(row) + "\n" for row in zeroed))
    profile = read_profile(written, owner, MI300X)
    assert profile.kernels[0].counters == {}
    assert "counts nothing on this part" in profile.notes[0]
    assert profile.source == "rocprofv3 (kernel trace, 0 counter passes)"


def test_a_counter_pass_with_other_launches_is_noted(written: Plan) -> None:
    path = written.folder / "counters_3_counter_collection.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if not line.startswith(("4,", "5,"))))
    profile = read_profile(written, owner, MI300X)
    assert any("do not launch the same kernels" in note for note in profile.notes)
    assert any("launches of" in note for note in profile.notes)


def test_a_missing_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match=r"trace_kernel_trace.csv: rocprofv3 wrote no such file"):
        read_profile(planned(tmp_path), owner, MI300X)


def test_without_times_there_is_no_profile(written: Plan) -> None:
    with pytest.raises(UsageError, match="without times"):
        read_profile(written, owner, MI300X, failed={"trace": "it broke"})


def test_files_of_two_processes(written: Plan) -> None:
    place("rocprofv3_70_kernel_trace.csv", written.folder / "other" / "trace_kernel_trace.csv")
    with pytest.raises(ProfileUnreadable, match="several processes"):
        read_profile(written, owner, MI300X)


@pytest.mark.parametrize("left", [1, 2, 20, 200, 900])
def test_a_trace_that_was_cut_off(tmp_path: Path, left: int) -> None:
    path = cut("rocprofv3_70_kernel_trace.csv", tmp_path, left)
    with pytest.raises(ProfileUnreadable, match=r"rocprofv3_70_kernel_trace.csv.*profile again"):
        read_trace(path)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Kernel_Name", "Kernel", "has no column Kernel_Name"),
        ('"Stream_Id"', '"Queue_Id"', "names a column twice"),
        ("5000000000", "x", "line 4: Start_Timestamp is 'x'"),
        ("5000000000", "-5", "not a number of at least 0"),
        ("5000000000", "nan", "not a number"),
        ("5000000000", "9" * 30, "not a number"),
        ("5000000000", "7000000000", "ends before it begins"),
        ("5000000000", "", "line 4 has no Start_Timestamp"),
        ('int)",1,', 'int),1,', "is not CSV"),
    ],
)  # fmt: skip
def test_a_damaged_trace(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = damaged("rocprofv3_70_kernel_trace.csv", tmp_path, old, new)
    with pytest.raises(ProfileUnreadable, match=says):
        read_trace(path)


@pytest.mark.parametrize(
    "text", ["", "\n\n", "# remark\n", '"Kernel_Name","Start_Timestamp","End_Timestamp"\n', "\x00\x01"]
)
def test_a_trace_without_launches(tmp_path: Path, text: str) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(ProfileUnreadable):
        read_trace(path)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.symlink_to(DATA / "rocprofv3_70_kernel_trace.csv")
    with pytest.raises(ProfileUnreadable, match="cannot be opened"):
        read_trace(path)


def test_a_dispatch_with_a_counter_twice(tmp_path: Path) -> None:
    path = damaged("rocprofv3_1_counter_collection.csv", tmp_path, '"SQ_WAVE_CYCLES"', '"SQ_WAVES"')
    with pytest.raises(ProfileUnreadable, match="dispatch 1 has SQ_WAVES twice"):
        read_counters(path)


def test_an_agent_list_with_two_kinds_of_gpu(tmp_path: Path) -> None:
    path = damaged("rocprofv3_agent_info.csv", tmp_path, '0,0,"CPU",48,0,0,0,0,0,48', '0,0,"GPU",48,0,0,0,0,1,48')
    with pytest.raises(ProfileUnreadable, match="of one GPU"):
        read_agent(path)

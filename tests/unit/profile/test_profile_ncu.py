"""Nsight Compute's CSV output, after its documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
from profile_samples import DATA, H100, cut, damaged, owner, place

from hkbench.errors import InputMissing
from hkbench.profile import Choice, Profiler, ProfileUnreadable, plan, read_profile
from hkbench.profile.ncu import MAX_LAUNCHES, messages, read
from hkbench.records import metrics

RAW = "ncu_raw_symbols.csv"


def test_the_raw_page_with_units_as_symbols() -> None:
    run = read(DATA / RAW)
    assert len(run.dispatches) == 4
    gemm = run.dispatches[0]
    assert gemm.name == "gemm_tile(const float *, const float *, float *, int)"
    assert gemm.seconds == pytest.approx(1e-3)
    assert (gemm.grid, gemm.block) == ((32, 32, 1), (256, 1, 1))
    assert (gemm.registers, gemm.lds_bytes) == (168, 65536)
    assert gemm.counters["dram__bytes_read.sum"] == 1.2e9
    assert not any(name.startswith("launch__") for name in gemm.counters)


def test_the_raw_page_with_units_as_words() -> None:
    gemm = read(DATA / "ncu_raw_words.csv").dispatches[0]
    assert gemm.seconds == pytest.approx(1e-3)
    assert gemm.counters["dram__bytes.sum"] == pytest.approx(1.6e9)
    assert (gemm.grid, gemm.block) == ((32, 32, 1), (256, 1, 1))
    assert gemm.lds_bytes == 65536 + 1024  # powers of ten: 65.536 Kbyte
    assert "smsp__inst_executed.sum" not in gemm.counters  # nan is no value


def test_a_row_for_each_metric() -> None:
    run = read(DATA / "ncu_long.csv")
    assert len(run.dispatches) == 2
    assert run.dispatches[1].counters["dram__bytes_write.sum"] == pytest.approx(4e8)
    assert run.dispatches[1].seconds == pytest.approx(1e-3)


def test_a_profile_of_two_passes(tmp_path: Path) -> None:
    place(RAW, tmp_path / "ncu.csv")
    planned = plan(Choice(Profiler.NCU, "ncu"), "sm_90", tmp_path, ("python", "one.py"), forwards=2)
    profile = read_profile(planned, owner, H100)
    gemm, relu = profile.kernels
    assert gemm.calls == 1 and gemm.share == pytest.approx(1 / 1.2)
    assert (gemm.registers, gemm.vgprs) == (168, None)
    assert gemm.figures[metrics.MATRIX_UNIT_USE].value == pytest.approx(0.605)
    assert metrics.FLOPS not in gemm.figures  # the tensor pipes' operations are not counted: no total is given
    assert gemm.figures[metrics.LOCAL_TRAFFIC].value == 1.5e6 * 32
    assert relu.figures[metrics.FLOPS].value == pytest.approx(67_108_864 / 2e-4)
    assert relu.figures[metrics.BANDWIDTH_OF_PEAK].value == pytest.approx(2 * 268_435_456 / 2e-4 / 3.35e12)
    assert relu.figures[metrics.LOAD_WIDTH].value == 4.0
    assert relu.figures[metrics.OCCUPANCY].value == pytest.approx(0.885)
    assert any("local memory" in finding for finding in profile.findings)
    assert not any("host work" in finding for finding in profile.findings)  # ncu itself waits between kernels


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match=r"ncu.csv: the profiler wrote no such file"):
        read(tmp_path / "ncu.csv")


def test_an_error_in_place_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "ncu.csv"
    path.write_text("==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    with pytest.raises(ProfileUnreadable, match="holds no table; the tool wrote: ==ERROR== ERR_NVGPUCTRPERM"):
        read(path)


@pytest.mark.parametrize("left", [60, 300, 900])
def test_a_file_that_was_cut_off(tmp_path: Path, left: int) -> None:
    with pytest.raises(ProfileUnreadable, match=RAW):
        read(cut(RAW, tmp_path, left))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"ns"', '"fortnight"', "gpu__time_duration.sum has the unit 'fortnight'"),
        ('"byte","byte"', '"Mibyte","byte"', "has the unit 'Mibyte'"),
        ('"Kernel Name"', '"Name"', "has no column Kernel Name"),
        ('"1,200,000,000"', '"1,200,-0-"', "dram__bytes_read.sum is"),
    ],
)
def test_a_damaged_file(tmp_path: Path, old: str, new: str, says: str) -> None:
    with pytest.raises(ProfileUnreadable, match=says):
        read(damaged(RAW, tmp_path, old, new))


def test_a_raw_page_without_units(tmp_path: Path) -> None:
    lines = (DATA / RAW).read_text().splitlines(keepends=True)
    path = tmp_path / RAW
    path.write_text("".join(line for line in lines if not line.startswith('"",')))
    with pytest.raises(ProfileUnreadable, match="no row of units"):
        read(path)


def test_a_run_that_was_cut_off_is_no_profile(tmp_path: Path) -> None:
    """With as many launches as are profiled at most, nobody knows where a pass ends."""
    lines = (DATA / RAW).read_text().splitlines()
    head, launch = lines[:5], lines[5]
    path = tmp_path / "ncu.csv"
    path.write_text("\n".join([*head, *[launch] * (MAX_LAUNCHES - 1)]) + "\n")
    assert len(read(path).dispatches) == MAX_LAUNCHES - 1
    path.write_text("\n".join([*head, *[launch] * MAX_LAUNCHES]) + "\n")
    with pytest.raises(ProfileUnreadable, match="no more are profiled"):
        read(path)


def test_messages_of_a_file_that_is_not_there_or_no_file(tmp_path: Path) -> None:
    assert messages(tmp_path / "ncu.csv") == ""
    (tmp_path / "ncu.csv").symlink_to(DATA / RAW)
    assert messages(tmp_path / "ncu.csv") == ""
    assert messages(DATA / RAW).startswith("==PROF== Connected to process")


H200 = H100.model_copy(update={"name": "NVIDIA H200", "bandwidth": 4.8e12})


@pytest.mark.parametrize(
    ("file", "kernel", "grid", "block", "milliseconds", "said"),
    [
        (
            "ncu_2025_3_h200_cuda.csv",
            "rms_norm_by_rows(const float *, const float *, float *, long, int, float)",
            (128, 1, 1),
            (128, 1, 1),
            2.6577,
            ("128 blocks of 128 threads, which fill 6% of", "touches 22 bytes a lane"),
        ),
        (
            "ncu_2025_3_h200_triton.csv",
            "rms_norm_in_pieces",
            (16384, 1, 1),
            (32, 1, 1),
            1.6550,
            ("brings at most 1.0 bytes a lane",),
        ),
    ],
)
def test_what_ncu_wrote_on_an_h200(
    tmp_path: Path,
    file: str,
    kernel: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    milliseconds: float,
    said: tuple[str, ...],
) -> None:
    """Captured by scripts/capture_profile.py from examples/candidates/slow_cuda.py and slow_triton.py, ncu 2025.3."""
    place(file, tmp_path / "ncu.csv")
    planned = plan(Choice(Profiler.NCU, "ncu"), "sm_90", tmp_path, ("python", "one.py"), forwards=2)
    profile = read_profile(planned, owner, H200)
    (use,) = profile.kernels
    assert (use.name, use.calls, use.grid, use.block) == (kernel, 1, grid, block)
    assert use.seconds * 1e3 == pytest.approx(milliseconds, abs=1e-3)
    moved = use.figures[metrics.BANDWIDTH].value * use.seconds
    assert moved == pytest.approx(3 * 2**29, rel=0.03), "0.54 GB read twice, too much for the caches, and written once"
    units = {name.split("__")[0] for name in use.counters}
    assert {"dram", "smsp", "l1tex"} <= units <= {"dram", "gpu", "l1tex", "lts", "sm", "smsp"}, "not the machine's"
    assert metrics.FLOPS in use.figures, "without a product the few cycles of the tensor pipes are none"
    assert len(profile.findings) == len(said)
    for text, part in zip(profile.findings, said, strict=True):
        assert part in text

"""Which profiler, how it is called, and what is said when it fails."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from hkbench.errors import UsageError
from hkbench.profile import Choice, Profiler, choose, explain, meaning, ncu, passes, plan, printed
from hkbench.profile.counters import LIMITS, counter_set, fits, packed
from hkbench.profile.installed import find_program
from hkbench.records import DeviceKind

WRAPPED = ("python3", "one_pass.py")


def finder(*installed: str) -> Callable[[str], str | None]:
    return lambda name: f"/opt/rocm/bin/{name}" if name in installed else None


@pytest.mark.parametrize(
    ("kind", "arch", "installed", "expected"),
    [
        (DeviceKind.ROCM, "gfx942", ("rocprofv3", "rocprof"), Profiler.ROCPROFV3),
        (DeviceKind.ROCM, "gfx942", ("rocprofv2", "rocprof"), Profiler.ROCPROFV2),
        (DeviceKind.ROCM, "gfx942", ("rocprof",), Profiler.ROCPROF),
        (DeviceKind.ROCM, "gfx950", ("rocprof", "rocprofv2"), Profiler.TORCH),
        (DeviceKind.ROCM, "gfx942", ("ncu",), Profiler.TORCH),
        (DeviceKind.CUDA, "sm_90", ("ncu",), Profiler.NCU),
        (DeviceKind.CUDA, "sm_90", (), Profiler.TORCH),
        (DeviceKind.CPU, None, ("ncu", "rocprofv3"), Profiler.TORCH),
    ],
)
def test_the_best_that_is_installed(
    kind: DeviceKind, arch: str | None, installed: tuple[str, ...], expected: Profiler
) -> None:
    choice = choose(kind, arch, finder(*installed))
    assert choice.profiler is expected
    assert (choice.program is None) is (expected is Profiler.TORCH)


def test_what_was_passed_over_is_said() -> None:
    choice = choose(DeviceKind.ROCM, "gfx950", finder("rocprof"))
    assert choice.passed_over == (
        "rocprofv3 is not installed (ROCm's package rocprofiler-sdk has it)",
        "rocprofv2 does not know gfx950",
        "rocprof does not know gfx950",
    )


def test_programs_are_found_where_rocm_puts_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "bin" / "rocprofv3"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    assert find_program("rocprofv3") == str(tool)
    assert find_program("no_such_profiler") is None


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_every_run_of_counters_fits_the_part(arch: str) -> None:
    asked = counter_set(arch)
    runs = packed(asked)
    assert len(runs) == 3
    assert sorted(name for run in runs for name in run) == sorted(asked)
    for run in runs:
        assert fits(run)
        assert sum(name.startswith("SQ_") for name in run) <= LIMITS["SQ"]


def test_what_does_not_fit_a_run() -> None:
    assert fits(("TCC_HIT_sum", "TCC_MISS_sum", "WRITE_SIZE"))
    assert not fits(("FETCH_SIZE", "WRITE_SIZE"))  # three and two of four counters of the L2
    assert not fits(tuple(f"SQ_{number}" for number in range(9)))
    assert not fits(("MADE_UP",))


def test_the_plan_of_rocprofv3(tmp_path: Path) -> None:
    planned = plan(choose(DeviceKind.ROCM, "gfx942", finder("rocprofv3")), "gfx942", tmp_path, WRAPPED, forwards=4)
    trace, *counted = planned.steps
    assert trace.command == (
        "/opt/rocm/bin/rocprofv3", "--kernel-trace", "--output-format", "csv", "-d", str(tmp_path), "-o", "trace", "--",
        *WRAPPED,
    )  # fmt: skip
    assert trace.expected[0] == "**/trace_kernel_trace.csv"
    assert [step.name for step in counted] == ["counters_1", "counters_2", "counters_3"]
    command = counted[0].command
    assert command[1] == "--pmc"
    assert "GRBM_GUI_ACTIVE" in command[2 : command.index("--output-format")]
    assert command[-3:] == ("--", *WRAPPED)


@pytest.mark.parametrize("profiler", [Profiler.ROCPROF, Profiler.ROCPROFV2])
def test_the_plans_of_the_older_tools_write_requests(tmp_path: Path, profiler: Profiler) -> None:
    planned = plan(Choice(profiler, "tool"), "gfx942", tmp_path, WRAPPED, forwards=4)
    for step in planned.steps[1:]:
        ((path, text),) = step.inputs.items()
        assert text.startswith("pmc: ")
        assert fits(text.split()[1:])
        assert str(path) in step.command
        assert step.command[-2:] == WRAPPED
    assert not planned.steps[0].inputs


@pytest.mark.parametrize(
    ("arch", "tensor"), [("sm_80", "sm__pipe_tensor_op_hmma"), ("sm_90", "sm__pipe_tensor_cycles")]
)
def test_the_plan_of_ncu(tmp_path: Path, arch: str, tensor: str) -> None:
    (step,) = plan(Choice(Profiler.NCU, "ncu"), arch, tmp_path, WRAPPED, forwards=4).steps
    text = " ".join(step.command)
    assert "--clock-control none --csv --page raw --print-units base" in text
    assert f"{tensor}" in text
    assert step.environment["TMPDIR"] == str(step.folders[0])
    assert step.command[-2:] == WRAPPED


def test_a_part_whose_counters_are_not_known_is_timed_only(tmp_path: Path) -> None:
    planned = plan(Choice(Profiler.ROCPROFV3, "rocprofv3"), "gfx1100", tmp_path, WRAPPED, forwards=4)
    assert len(planned.steps) == 1
    assert "gfx1100" in planned.notes[0]


def test_torch_has_no_steps(tmp_path: Path) -> None:
    assert plan(Choice(Profiler.TORCH), "gfx942", tmp_path, WRAPPED, forwards=4).steps == ()


def test_a_plan_without_a_pass(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one forward pass"):
        plan(Choice(Profiler.NCU, "ncu"), "sm_90", tmp_path, WRAPPED, forwards=0)


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("ROCPROFILER_STATUS_ERROR_EXCEEDS_HW_LIMIT", "counts fewer counters"),
        (
            "Device 5998 could not be locked for profiling due to lack of permissions (capability SYS_PERFMON)",
            "CAP_PERFMON",
        ),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU", "only administrators"),
        ("Unable to open /dev/kfd read-write: Permission denied", "groups render and video"),
        ("==ERROR== Failed to find metric sm__nothing", "no such counter"),
        ("Counter FOO is not supported on gfx942", "no such counter"),
        ("==WARNING== No kernels were profiled.", "launched no kernel"),
        ("==ERROR== InterprocessLockFailed. /tmp/nsight-compute-lock", "set TMPDIR"),
        ("rocprofv3: error: unrecognized arguments: --output-format", "update it"),
        ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "cannot load the driver's library"),
        ("something else\nlast words\n", "last words; run its command by hand"),
        ("", "it printed nothing"),
    ],
)
def test_what_a_failure_means(output: str, says: str) -> None:
    text = explain(Profiler.ROCPROFV3, "counters_1", 1, output)
    assert text.startswith("rocprofv3 (counters_1) ended with 1: ")
    assert says in text


def test_a_profiler_that_hangs_or_dies() -> None:
    assert "did not end in time" in explain(Profiler.NCU, "metrics", None, "")
    assert "ended by signal 6" in explain(Profiler.NCU, "metrics", -6, "abort")


@pytest.mark.parametrize(
    ("profiler", "few"), [(Profiler.NCU, True), (Profiler.ROCPROFV3, False), (Profiler.ROCPROF, False)]
)
def test_a_profiler_that_replays_gets_few_passes(profiler: Profiler, few: bool) -> None:
    assert (1 < passes(profiler) <= 3) is few
    assert passes(profiler) > 1  # passes are found by their repeating


def test_ncu_sees_only_what_the_wrapped_command_shows(tmp_path: Path) -> None:
    (step,) = plan(Choice(Profiler.NCU, "ncu"), "sm_90", tmp_path, WRAPPED, forwards=2).steps
    options = dict(itertools.pairwise(step.command))
    assert options["--profile-from-start"] == "off"
    assert int(options["--launch-count"]) == ncu.MAX_LAUNCHES
    assert options["--clock-control"] == "none"
    assert step.command[-2:] == WRAPPED
    assert step.environment["NV_COMPUTE_PROFILER_LOCAL_CONNECTION_OVERRIDE"] == "uds"


def test_what_ncu_writes_among_its_results_is_part_of_what_it_said(tmp_path: Path) -> None:
    planned = plan(Choice(Profiler.NCU, "ncu"), "sm_90", tmp_path, WRAPPED, forwards=2)
    (step,) = planned.steps
    assert printed(planned, step, "of the candidate").strip() == "of the candidate"
    (tmp_path / "ncu.csv").write_text('==PROF== Connected\n"ID","Kernel Name"\n==ERROR== ERR_NVGPUCTRPERM - no\n')
    said = printed(planned, step, "of the candidate")
    assert said.splitlines() == ["of the candidate", "==ERROR== ERR_NVGPUCTRPERM - no", "==PROF== Connected"]
    known = meaning(said)
    assert known is not None
    assert "NVreg_RestrictProfilingToAdminUsers=0" in known


#: What ncu 2024.1 wrote on a machine without a GPU: outside of a cage, and in one that denies named pipes.
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("==ERROR== Nsight Compute failed to connect to the CUDA driver (stub libcuda.so[.1] on path?).", "CUDA"),
        ("==ERROR== Launching the target application failed.", "named pipe"),
    ],
)
def test_captured_messages_have_a_meaning(said: str, expected: str) -> None:
    known = meaning(said)
    assert known is not None
    assert expected in known
    assert expected in explain(Profiler.NCU, "metrics", 1, said)

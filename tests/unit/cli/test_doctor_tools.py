"""What doctor says of programs, HipKittens and profilers, on made-up machines."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from support.compilers import hip_or_skip

from hkbench.cli.doctor_tools import COMPILERS, hipkittens, profilers, program
from hkbench.profile import installed
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.toolchain.hipkittens import VARIABLES, Dialect, refusals, wrong_results

MI300X = DeviceFacts(kind=DeviceKind.ROCM, index=0, name="AMD Instinct MI300X", arch="gfx942")
MI355X = MI300X.model_copy(update={"name": "AMD Instinct MI355X", "arch": "gfx950"})
H200 = DeviceFacts(kind=DeviceKind.CUDA, index=1, name="NVIDIA H200", arch="sm_90")


def a_program(folder: Path, name: str, text: str = "echo version 1.2.3") -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def profiler_lines(*devices: DeviceFacts) -> list[str]:
    return [line for row in profilers(devices) for line in row.lines()]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that alone is on PATH; no ROCm and no CUDA beside it."""
    for name in ("ROCM_PATH", "ROCM_HOME", "CUDA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installed, "rocm_roots", lambda _environment: [tmp_path / "no_rocm"])
    monkeypatch.setattr(installed, "NVIDIA_PARAMETERS", tmp_path / "params")
    if installed.find_program("ncu") is not None:
        pytest.skip("this machine has ncu in CUDA's usual place")
    return tmp_path


def test_a_compiler_that_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = a_program(tmp_path, "nvcc", "exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert program("compiler", "nvcc", "--version").text.endswith(
        f"nvcc: does not say its version (exit code 3) ({broken})"
    )
    assert program("compiler", "no-such-compiler", "--version").text.endswith("no-such-compiler: not found")


def test_what_is_missing_comes_with_what_to_do(bare: Path) -> None:
    for name, flag in COMPILERS.items():
        if name != "ninja":  # beside the interpreter
            assert re.fullmatch(r"\S+: not found \(.+\)", program("compiler", name, flag).text)
            assert program("compiler", name, flag).problem is None
            assert program("compiler", name, flag, needed=True).problem == f"{name} is needed here: install it"
    lines = profiler_lines()
    assert [line.split(":")[0] for line in lines] == [
        "profiler   rocprofv3", "profiler   rocprofv2", "profiler   rocprof", "profiler   ncu", "  used     torch",
    ]  # fmt: skip
    assert "not found (ROCm's package rocprofiler-sdk has it; torch's profiler is used in its place)" in lines[0]
    assert "CUDA's package nsight-compute has it" in lines[3]


def test_the_best_profiler_is_used_on_each_gpu(bare: Path) -> None:
    for name in ("rocprofv2", "rocprof", "ncu"):
        a_program(bare, name)
    text = "\n".join(profiler_lines(MI300X, H200))
    assert f"profiler   ncu: version 1.2.3 ({bare / 'ncu'})\n" in text
    assert text.endswith("  used     rocm 0: rocprofv2\n  used     cuda 1: ncu")
    lines = profiler_lines(MI355X)
    assert lines[1].endswith("not used: rocprofv2 does not know gfx950")
    assert lines[-1] == "  used     rocm 0: torch"


def test_counters_for_administrators_only(bare: Path) -> None:
    a_program(bare, "ncu")
    (bare / "params").write_text("RmProfilingAdminOnly: 0\n")
    assert profiler_lines(H200)[3].endswith("ncu)")
    (bare / "params").write_text("Something: 2\nRmProfilingAdminOnly: 1\n")
    assert "NVreg_RestrictProfilingToAdminUsers=0" in profiler_lines(H200)[3]


def test_a_hipkittens_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("hipkittens_build.headers.INSTALLED", tmp_path / "installed")
    assert "run scripts/install_hipkittens.py" in hipkittens().text
    monkeypatch.setenv("THUNDERKITTENS_ROOT", str(tmp_path))
    assert "it has no include/kittens.cuh" in hipkittens().text
    (tmp_path / "include/cdna4").mkdir(parents=True)
    (tmp_path / "include/kittens.cuh").write_text("#ifdef KITTENS_CDNA4\n#endif\n")
    assert hipkittens().text == f"THUNDERKITTENS_ROOT={tmp_path} (commit unknown) has cdna4 (gfx950)"
    monkeypatch.setenv("HIPKITTENS_ROOT", str(tmp_path / "none"))
    assert "there is no such folder" in hipkittens().text


@pytest.mark.hipcc
def test_each_dialect_of_hipkittens_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = hip_or_skip("no dialect was tried").compiler
    for dialect, text in ((Dialect.CDNA3, "int x;"), (Dialect.CDNA4, "#include <no_such_header.h>")):
        (tmp_path / "include" / dialect).mkdir(parents=True)
        (tmp_path / "include" / dialect / "all.cuh").write_text(text)
    master = [f'#ifdef KITTENS_{name}\n#include "{name.lower()}/all.cuh"\n#endif\n' for name in ("CDNA3", "CDNA4")]
    (tmp_path / "include" / "kittens.cuh").write_text("".join(master))
    monkeypatch.setenv("HIPKITTENS_ROOT", str(tmp_path))
    targets, missing, *known = hipkittens().details
    assert targets.startswith("targets  cdna3 (gfx942): kittens.cuh compiles with HIP ")
    assert missing.startswith("missing  cdna4 (gfx950): ") and "no_such_header.h" in missing
    assert len(known) == len((*wrong_results(Dialect.CDNA4, compiler), *refusals(Dialect.CDNA4, compiler)))

"""The sources of what stands in for ROCm on an emulated GPU."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hkbench.toolchain import emulated


def test_every_source_is_built() -> None:
    sources = {path.name for path in emulated.NATIVE.iterdir() if path.suffix in (".c", ".cpp")}
    assert sources == {*emulated._RUNTIME, *emulated._FRAME, emulated._ALLOCATOR}


def test_no_function_is_both_there_and_refused() -> None:
    refused = set(re.findall(r"X\((\w+)\)", (emulated.NATIVE / "refused.c").read_text()))
    there = set()
    for name in ("launch.c", "runtime.c"):
        there |= set(
            re.findall(r"^(?:hipError_t|const char \*) ?\*?(\w+)\(", (emulated.NATIVE / name).read_text(), re.M)
        )
    assert len(there) > 90 and len(refused) > 400
    assert there & refused == {"hipGetDeviceProperties"}  # HIP's headers mean hipGetDevicePropertiesR0600 by it
    assert {"hipGraphLaunch", "hipStreamBeginCapture", "hipModuleLaunchCooperativeKernel"} <= refused


def test_builds_find_rocm_where_the_libraries_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hkbench.toolchain.hip import HipToolchain

    toolchain = HipToolchain(tmp_path / "rocm", tmp_path / "rocm/bin/hipcc", "7.2.0", "clang", is_rocm=False)
    environment = emulated.EmulatedRuntime(tmp_path / "made", toolchain).environment("gfx950")
    assert environment["PYTORCH_ROCM_ARCH"] == "gfx950" and environment["ROCM_PATH"] == str(tmp_path / "rocm")
    assert environment["LIBRARY_PATH"] == str(tmp_path / "made")

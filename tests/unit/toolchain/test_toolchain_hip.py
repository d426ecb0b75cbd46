"""Finding a HIP compiler, with stand-ins for hipcc (shell scripts that answer --version)."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.errors import ToolchainUnavailable
from hkbench.toolchain import hip


def _make_root(root: Path, *, stamp: bool, answer: str = "clang version 19.0.0") -> Path:
    (root / "bin").mkdir(parents=True)
    hipcc = root / "bin" / "hipcc"
    hipcc.write_text(f"#!/bin/sh\necho HIP version: 6.3\necho '{answer}'\n")
    hipcc.chmod(0o755)
    header = root / "include" / "hip" / "hip_version.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 3\n#define HIP_VERSION_PATCH 42\n")
    if stamp:
        (root / hip.STAMP).write_text("layout 1\n")
    return root


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose environment names no compiler; returns the folder that HKBENCH_HIP_PREFIX names (not there)."""
    if Path("/opt/rocm/bin/hipcc").is_file():
        pytest.skip("ROCm is installed here")
    for name in ("ROCM_HOME", "ROCM_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HKBENCH_HIP_PREFIX", str(tmp_path / "prefix"))
    return tmp_path / "prefix"


def test_without_a_compiler_the_message_names_the_script(bare_machine: Path) -> None:
    with pytest.raises(ToolchainUnavailable, match=r"scripts/install_hip_toolchain\.sh"):
        hip.find_hip()


def test_the_prefix_is_found_and_is_not_rocm(bare_machine: Path) -> None:
    _make_root(bare_machine, stamp=True)
    found = hip.find_hip()
    assert (found.root, found.version, found.is_rocm) == (bare_machine, "6.3.42", False)
    assert found.compiler == "clang version 19.0.0"


def test_an_unfinished_prefix_is_not_used(bare_machine: Path) -> None:
    _make_root(bare_machine, stamp=False)
    with pytest.raises(ToolchainUnavailable):
        hip.find_hip()


def test_rocm_comes_before_the_prefix(bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _make_root(bare_machine, stamp=True)
    rocm = _make_root(tmp_path / "rocm", stamp=False)
    monkeypatch.setenv("ROCM_PATH", str(rocm))
    assert (hip.find_hip().root, hip.find_hip().is_rocm) == (rocm, True)


def test_hipcc_on_the_path_is_found(bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rocm = _make_root(tmp_path / "rocm", stamp=False)
    monkeypatch.setenv("PATH", f"{rocm / 'bin'}:/usr/bin:/bin")
    assert hip.find_hip().root == rocm


def test_a_compiler_that_does_not_start_is_said_to(bare_machine: Path) -> None:
    _make_root(bare_machine, stamp=True)
    (bare_machine / "bin" / "hipcc").write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(ToolchainUnavailable, match="does not start"):
        hip.find_hip()


def test_a_candidates_flags_come_last_in_the_command(bare_machine: Path) -> None:
    _make_root(bare_machine, stamp=True)
    command = hip.find_hip().compile_command(Path("a.hip"), Path("a.o"), "gfx950", ["-std=c++17"])
    assert "--offload-arch=gfx950" in command
    assert command.index("-std=c++20") < command.index("-std=c++17")
    assert command[-4:] == ["-c", "a.hip", "-o", "a.o"]


def test_torch_is_found_without_importing_it() -> None:
    torch = hip.find_torch()
    assert (torch.includes[0] / "torch" / "extension.h").is_file()
    assert (torch.libraries / "libtorch_cpu.so").is_file()
    assert torch.version[0].isdigit()

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


def test_rocm_from_a_python_package_comes_before_the_path(
    bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = _make_root(tmp_path / "rocm", stamp=False)
    monkeypatch.setenv("PATH", f"{other / 'bin'}:/usr/bin:/bin")
    core = _make_root(tmp_path / "packages" / "_rocm_sdk_core", stamp=False)
    (core / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path / "packages")
    assert (hip.find_hip().root, hip.find_hip().is_rocm) == (core, True)


@pytest.mark.parametrize("variable", ["ROCM_PATH", None])
def test_the_core_sdk_below_rocms_folder_is_found(
    bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None
) -> None:
    """As a tarball leaves it: nothing in /opt/rocm itself; with the link to the newest, and without."""
    _make_root(bare_machine, stamp=True)
    top = tmp_path / "rocm"
    older, newer = (_make_root(top / name, stamp=False) for name in ("core-7.14", "core-10.0"))
    _make_root(top / "core-extras", stamp=False)
    if variable is None:
        monkeypatch.setattr(hip, "DEFAULT", top)
    else:
        monkeypatch.setenv(variable, str(top))
    assert (hip.find_hip().root, hip.find_hip().is_rocm) == (newer, True)
    (top / "core").symlink_to(older)  # whoever chose that one means it
    assert hip.find_hip().root == older


def test_links_in_the_old_places_are_enough(
    bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the meta package leaves it: /opt/rocm/bin leads to the Core SDK's."""
    core = _make_root(tmp_path / "rocm" / "core-10.0", stamp=False)
    for name in ("bin", "include"):
        (tmp_path / "rocm" / name).symlink_to(core / name)
    monkeypatch.setattr(hip, "DEFAULT", tmp_path / "rocm")
    found = hip.find_hip()
    assert (found.root, found.version) == (tmp_path / "rocm", "6.3.42")
    monkeypatch.setenv("PATH", f"{tmp_path / 'rocm' / 'bin'}:/usr/bin:/bin")
    assert hip.find_hip().root == core


def test_a_root_behind_a_link_is_named_by_what_it_leads_to(
    bare_machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rocm = _make_root(tmp_path / "rocm-7.2.1", stamp=False)
    (tmp_path / "rocm").symlink_to(rocm)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
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

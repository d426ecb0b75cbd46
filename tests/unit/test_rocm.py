"""Where a ROCm installation may lie, on made-up trees."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hkbench.rocm import include_folders, rocm_roots


def test_what_the_variables_name_comes_before_the_default(tmp_path: Path) -> None:
    environment = {"ROCM_HOME": "/a", "ROCM_PATH": "/b", "PATH": "/c"}
    found = list(rocm_roots(environment, tmp_path))
    assert found == [Path("/a"), Path("/a/core"), Path("/b"), Path("/b/core"), tmp_path, tmp_path / "core"]
    assert list(rocm_roots({"ROCM_HOME": str(tmp_path), "ROCM_PATH": ""}, tmp_path)) == [tmp_path, tmp_path / "core"]


def test_releases_are_ordered_as_numbers(tmp_path: Path) -> None:
    for name in ("core-7.14", "core-10.0", "core-7.9", "core-7.14-devel", "core-old", "extras-10"):
        (tmp_path / name).mkdir()
    found = [path.name for path in rocm_roots({}, tmp_path)]
    assert found == [tmp_path.name, "core", "core-10.0", "core-7.14", "core-7.9"]


@pytest.mark.parametrize("named", ["ROCM_PATH", "ROCM_HOME"])
@pytest.mark.parametrize(
    ("places", "release"),
    [((), ""), (("core-7.9", "core-10.0", "core-7.14"), "7.1.1"), (("core", "core-10.0"), "7.0.1"),
     ((".", "core"), "7.0.1")],
)  # fmt: skip
def test_setup_finds_the_release(tmp_path: Path, named: str, places: tuple[str, ...], release: str) -> None:
    """scripts/setup.sh takes the folder itself, its `core`, then the newest `core-X.Y`."""
    if Path("/opt/rocm").exists():
        pytest.skip("ROCm is installed here, and setup looks there last")
    for number, place in enumerate(places):
        (tmp_path / place / ".info").mkdir(parents=True)
        (tmp_path / place / ".info" / "version").write_text(f"7.{number}.1-{number}\n")
    setup = Path(__file__).parents[2] / "scripts" / "setup.sh"
    function = f"sed -n '/^rocm_version()/,/^}}/p' '{setup}'"
    script = f'set -euo pipefail; eval "$({function})"; found="$(rocm_version)"; echo $found'
    environment = {"PATH": os.environ["PATH"], named: str(tmp_path)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == release


def test_hips_headers_may_lie_where_any_of_them_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("old/hip/bin", "packages/_rocm_sdk_core"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "packages/_rocm_sdk_core/__init__.py").touch()
    program = tmp_path / "old/hip/bin/hipcc"
    program.touch(mode=0o755)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    found = include_folders({"ROCM_HOME": "/a", "PATH": str(program.parent)})
    package, beside = tmp_path / "packages/_rocm_sdk_core/include", tmp_path / "old/include"
    assert found[:2] == ["/a/include", "/a/core/include"]
    assert found[-2:] == [str(package), str(beside)] and "/opt/rocm/include" in found

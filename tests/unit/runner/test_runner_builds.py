"""What becomes of torch's build.ninja."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from hkbench.runner import builds, nvcc
from hkbench.runner import compile as compile_command

RULES = """ninja_required_version = 1.3
cxx = c++
nvcc = /usr/local/cuda/bin/nvcc
cflags = -O3
rule cuda_compile
  command = $nvcc $cuda_cflags -c $in -o $out
"""


class Torch:
    """Stands for torch's builder: notes the rules that it finds; fails as often as told, and leaves an object."""

    def __init__(self, folder: Path, failures: int) -> None:
        self.seen: list[str] = []
        self._folder, self._failures = folder, failures
        (folder / "build.ninja").write_text(RULES)

    def run(self, build_directory: str, verbose: bool, error_prefix: str) -> None:
        assert Path(build_directory) == self._folder
        self.seen.append((self._folder / "build.ninja").read_text())
        assert not (self._folder / "cuda.o").exists()
        (self._folder / "cuda.o").touch()
        if len(self.seen) <= self._failures:
            raise RuntimeError(f"failed {len(self.seen)}")


def build(folder: Path, failures: int) -> Torch:
    torch = Torch(folder, failures)
    extension = SimpleNamespace(_run_ninja_build=torch.run)
    builds.quicken(extension, folder / "a store")
    extension._run_ninja_build(str(folder), False, "")
    return torch


def test_both_compilers_are_launched_by_a_script(tmp_path: Path) -> None:
    torch = build(tmp_path, failures=0)
    (rules,) = torch.seen
    lines = dict(line.split(" = ", 1) for line in rules.splitlines() if " = " in line)
    cxx, cuda = shlex.split(lines["cxx"]), shlex.split(lines["nvcc"])
    assert cxx[3:5] == [compile_command.__file__, str(tmp_path / "a store")] and cxx[-1] == "c++"
    assert cuda[1:] == ["-I", "-S", nvcc.__file__, "/usr/local/cuda/bin/nvcc"]
    assert lines["  command"] == "$nvcc $cuda_cflags -c $in -o $out"
    assert (tmp_path / "build.ninja").read_text() == RULES
    assert (tmp_path / "cuda.o").exists()


def test_what_fails_is_built_once_more_by_torch_s_own_rules(tmp_path: Path) -> None:
    torch = build(tmp_path, failures=1)
    assert torch.seen[1:] == [RULES]


def test_the_failure_that_is_told_is_that_of_torch_s_own_rules(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="failed 2"):
        build(tmp_path, failures=2)
    assert (tmp_path / "build.ninja").read_text() == RULES

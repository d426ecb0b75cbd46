"""What becomes of torch's build.ninja."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

from hkbench.fastbuild.inside import compiler_wrapper, patch_torch

RULES = """ninja_required_version = 1.3
cxx = c++
nvcc = /usr/local/cuda/bin/nvcc
cflags = -O3
rule cuda_compile
  command = $nvcc $cuda_cflags -c $in -o $out
"""


class Torch:
    """Stands for torch's builder: notes the rules that it finds; fails as often as told, and leaves an object.

    In its first failure, `steps` fail, of which `refused` are final.
    """

    def __init__(self, folder: Path, failures: int, steps: int = 1, refused: int = 0) -> None:
        self.seen: list[str] = []
        self._folder, self._failures = folder, failures
        self._steps, self._refused = steps, refused
        (folder / "build.ninja").write_text(RULES)

    def run(self, build_directory: str, verbose: bool, error_prefix: str) -> None:
        assert Path(build_directory) == self._folder
        self.seen.append((self._folder / "build.ninja").read_text())
        assert not (self._folder / "cuda.o").exists()
        (self._folder / "cuda.o").touch()
        if len(self.seen) <= self._failures:
            for number in range(self._refused):
                (self._folder / f"cuda{number}.o{compiler_wrapper.REFUSED}").touch()
            compiler = re.search(r"^nvcc = (.*)$", self.seen[-1], re.MULTILINE)
            assert compiler is not None
            failed = "".join(f"FAILED: cuda.o\n{compiler[1]} -c cuda.cu\nit is wrong\n" for _ in range(self._steps))
            raise RuntimeError(f"{error_prefix}: failed {len(self.seen)}\n{failed}")


def build(torch: Torch, folder: Path, hip_store: Path | None = None, verbose: bool = False) -> Torch:
    extension = SimpleNamespace(_run_ninja_build=torch.run)
    patch_torch.enable_fast_builds(extension, folder / "a store", hip_store)
    extension._run_ninja_build(str(folder), verbose, "Error")
    return torch


def test_both_compilers_are_launched_by_the_script(tmp_path: Path) -> None:
    torch = build(Torch(tmp_path, failures=0), tmp_path)
    (rules,) = torch.seen
    lines = dict(line.split(" = ", 1) for line in rules.splitlines() if " = " in line)
    cxx, cuda = shlex.split(lines["cxx"]), shlex.split(lines["nvcc"])
    assert cxx[3:6] == [compiler_wrapper.__file__, "compile", str(tmp_path / "a store")] and cxx[-1] == "c++"
    assert cuda[1:] == ["-I", "-S", compiler_wrapper.__file__, "nvcc", "/usr/local/cuda/bin/nvcc"]
    assert lines["  command"] == "$nvcc $cuda_cflags -c $in -o $out"
    assert (tmp_path / "build.ninja").read_text() == RULES
    assert (tmp_path / "cuda.o").exists()


def test_what_fails_is_built_once_more_by_torch_s_own_rules(tmp_path: Path) -> None:
    torch = build(Torch(tmp_path, failures=1), tmp_path)
    assert torch.seen[1:] == [RULES]


def test_the_failure_that_is_told_is_that_of_torch_s_own_rules(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="failed 2"):
        build(Torch(tmp_path, failures=2), tmp_path)
    assert (tmp_path / "build.ninja").read_text() == RULES


def test_hipcc_has_a_way_of_its_own(tmp_path: Path) -> None:
    (rules,) = build(Torch(tmp_path, failures=0), tmp_path, tmp_path / "of hipcc").seen
    lines = dict(line.split(" = ", 1) for line in rules.splitlines() if " = " in line)
    assert shlex.split(lines["nvcc"])[3:6] == [compiler_wrapper.__file__, "hipcc", str(tmp_path / "of hipcc")]


@pytest.mark.parametrize("verbose", [False, True])
def test_what_is_refused_for_good_is_not_built_again(
    tmp_path: Path, verbose: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    torch = Torch(tmp_path, failures=2, refused=1)
    with pytest.raises(RuntimeError) as raised:
        build(torch, tmp_path, tmp_path / "of hipcc", verbose)
    said = "failed 1\nFAILED: cuda.o\n/usr/local/cuda/bin/nvcc -c cuda.cu\nit is wrong\n"
    assert (str(raised.value), capfd.readouterr().out) == (("Error", said) if verbose else (f"Error: {said}", ""))
    assert len(torch.seen) == 1
    assert (tmp_path / "build.ninja").read_text() == RULES
    assert [path.name for path in tmp_path.iterdir()] == ["build.ninja"]


def test_where_something_else_fails_too_torch_s_own_rules_decide(tmp_path: Path) -> None:
    torch = build(Torch(tmp_path, failures=1, steps=2, refused=1), tmp_path, tmp_path / "of hipcc")
    assert torch.seen[1:] == [RULES]
    assert not list(tmp_path.glob(f"*{compiler_wrapper.REFUSED}"))

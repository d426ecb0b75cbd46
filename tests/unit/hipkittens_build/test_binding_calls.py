"""The binding's checks and its launcher, compiled for the CPU: HIP and HipKittens are stood for, it is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from hipkittens_build.binding import Extension
from hipkittens_build.builder import BuildError, Members, build, read_functions
from hipkittens_build.source import translation_unit

STAND_IN = Path(__file__).resolve().parents[2] / "support" / "kittens_stand_in"
STREAM = 0x7E57
SOURCE = """
#include "kittens.cuh"
using namespace kittens;

struct globals {
  gl<float, -1, -1, -1, 8> x, out;
  const float *bias;
  std::int64_t *seen;
  float scale;
  int offset;
  bool negate;
  std::uint8_t tag;
};
void dispatch(const globals &g, hipStream_t stream) {
  const int rows = g.x.batch() * g.x.depth() * g.x.rows();
  for (int i = 0; i < rows * 8; ++i) {
    const float value = g.scale * g.x.raw_ptr[i] + g.bias[i % 8] + g.offset;
    g.out.raw_ptr[i] = g.negate ? -value : value;
  }
  for (int i = 0; i < 4; ++i) g.seen[i] = g.x.sizes[i];
  g.seen[4] = reinterpret_cast<std::int64_t>(stream);
  g.seen[5] = g.tag;
}

struct sixteen { gl<bf16, -1, -1, -1, -1> x; const half *y; unsigned short n; };
void takes_sixteen(sixteen, hipStream_t) {}

struct how { int kind; };
void fails(const how &g, hipStream_t) {
  if (g.kind == 1) last_error = hipErrorInvalidConfiguration;
  if (g.kind == 2) throw std::runtime_error("no tile for this size");
}
"""
DISPATCH = ["x", "out", "bias", "seen", "scale", "offset", "negate", "tag"]
FUNCTIONS: dict[str, Members] = {
    "dispatch": {**dict.fromkeys(DISPATCH, ()), "x": (4, 8), "bias": (8,)},
    "takes_sixteen": ["x", "y", "n"],
    "fails": ["kind"],
}


@pytest.fixture(scope="module")
def extension(tmp_path_factory: pytest.TempPathFactory) -> Extension:
    folder = tmp_path_factory.mktemp("binding")
    bound = read_functions("unit", FUNCTIONS)
    (folder / "unit.cpp").write_text(translation_unit(SOURCE, {one.name: one.members for one in bound}))
    includes = [f"-I{STAND_IN / part}" for part in ("include", "host", "host/hip")]
    command = ["c++", "-std=c++20", "-O1", "-fPIC", "-shared", "-Wno-unknown-pragmas", *includes, "unit.cpp"]
    subprocess.run([*command, "-o", "unit.so"], cwd=folder, check=True)
    return Extension("unit", folder / "unit.so", bound, lambda: (-1, STREAM))


def arguments() -> dict[str, Any]:
    return {
        "x": torch.randn(3, 4, 8),
        "out": torch.zeros(3, 4, 8),
        "bias": torch.randn(8),
        "seen": torch.zeros(6, dtype=torch.int64),
        "scale": 0.5,
        "offset": -3,
        "negate": True,
        "tag": 255,
    }


def test_members_arrive_as_they_were_given(extension: Extension) -> None:
    given = arguments()
    given["x"] = torch.nn.Parameter(torch.randn(3, 4, 8))
    extension.dispatch(*given.values())
    expected = -(0.5 * given["x"].detach() + given["bias"] - 3)
    torch.testing.assert_close(given["out"], expected)
    assert given["seen"].tolist() == [1, 3, 4, 8, STREAM, 255]


def test_a_second_shape_is_not_taken_for_the_first(extension: Extension) -> None:
    for rows in (4, 8, 4):
        given = arguments() | {"x": torch.randn(rows, 8), "out": torch.zeros(rows, 8), "negate": False}
        extension.dispatch(*given.values())
        torch.testing.assert_close(given["out"], 0.5 * given["x"] + given["bias"] - 3)
        assert given["seen"].tolist()[:4] == [1, 1, rows, 8]


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "dtype": (
        {"x": torch.zeros(4, 8, dtype=torch.bfloat16)},
        TypeError,
        "x: expected torch.float32, got torch.bfloat16",
    ),
    "pointer's dtype": ({"seen": torch.zeros(6)}, TypeError, "seen: expected torch.int64, got torch.float32"),
    "no tensor": ({"bias": [0.0] * 8}, TypeError, "bias: expected a tensor, got list"),
    "strides": ({"x": torch.zeros(8, 4).T}, ValueError, r"x: expected a contiguous .* \(4, 8\) with strides \(1, 4\)"),
    "dimensions": (
        {"x": torch.zeros(1, 1, 1, 4, 8)},
        ValueError,
        r"x: expected at most 4 dimensions, .*\(1, 1, 1, 4, 8\)",
    ),
    "fixed size": (
        {"out": torch.zeros(4, 16)},
        ValueError,
        r"out: the source fixes 8 columns, got 16 \(shape \(4, 16\)\)",
    ),
    "multiple": (
        {"x": torch.zeros(6, 8)},
        ValueError,
        r"x: dimension -2 has to be a multiple of 4, got shape \(6, 8\)",
    ),
    "missing dimension": ({"x": torch.zeros(8)}, ValueError, "x: dimension -2 has to be a multiple of 4"),
    "empty": ({"x": torch.zeros(0, 8)}, ValueError, "x: expected at least one element"),
    "alignment": (
        {"out": torch.zeros(33)[1:].view(4, 8)},
        ValueError,
        "out: its first element is not at a multiple of 16",
    ),
    "4 GiB": ({"x": torch.empty(2**27, 8, device="meta")}, ValueError, "x: HipKittens cannot address shape"),
    "text for a number": ({"scale": "1"}, TypeError, "scale: expected a number, got str"),
    "float for int": ({"offset": 3.0}, TypeError, "offset: expected an int, got 3.0"),
    "bool for int": ({"offset": True}, TypeError, "offset: expected an int, got True"),
    "int for bool": ({"negate": 1}, TypeError, "negate: expected True or False, got 1"),
    "too large": ({"offset": 2**31}, ValueError, "offset: 2147483648 is not between -2147483648 and 2147483647"),
    "too large for a byte": ({"tag": 256}, ValueError, "tag: 256 is not between 0 and 255"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_named(extension: Extension, case: str) -> None:
    changed, error, message = WRONG[case]
    given = arguments() | changed
    with pytest.raises(error, match=r"unit\.dispatch: argument " + message):
        extension.dispatch(*given.values())
    assert given["seen"].tolist() == [0.0] * 6  # nothing was launched


def test_a_tensor_elsewhere_is_refused(extension: Extension) -> None:
    on_a_gpu = Extension("unit", extension.library, read_functions("unit", FUNCTIONS), lambda: (1, STREAM))
    with pytest.raises(ValueError, match=r"x: expected a tensor on the current GPU \(1\), got one on cpu"):
        on_a_gpu.dispatch(*arguments().values())


def test_the_number_of_arguments_is_checked(extension: Extension) -> None:
    with pytest.raises(TypeError, match=r"unit\.takes_sixteen takes 3 arguments \(x, y, n\), not 1"):
        extension.takes_sixteen(torch.zeros(4))


def test_sixteen_bit_types_are_told_apart(extension: Extension) -> None:
    x, y = torch.zeros(16, 16, dtype=torch.bfloat16), torch.zeros(3, dtype=torch.float16)
    extension.takes_sixteen(x, y, 65535)
    with pytest.raises(TypeError, match=r"x: expected torch\.bfloat16, got torch\.float16"):
        extension.takes_sixteen(x.half(), y, 0)
    with pytest.raises(TypeError, match=r"y: expected torch\.float16, got torch\.bfloat16"):
        extension.takes_sixteen(x, y.bfloat16(), 0)


def test_a_launch_that_fails_raises_once(extension: Extension) -> None:
    message = r"unit\.fails: the launch failed: hipErrorInvalidConfiguration: invalid configuration argument"
    with pytest.raises(RuntimeError, match=message):
        extension.fails(1)
    extension.fails(0)


def test_what_the_function_throws_is_raised(extension: Extension) -> None:
    with pytest.raises(RuntimeError, match=r"unit\.fails: no tile for this size"):
        extension.fails(2)


def test_an_unbound_function_is_named(extension: Extension) -> None:
    with pytest.raises(AttributeError, match="unit has no bound function 'launch'"):
        _ = extension.launch


@pytest.mark.parametrize(
    ("name", "functions", "message"),
    [
        ("a b", {"f": ["x"]}, "'a b' is not an identifier"),
        ("a", {"f(": ["x"]}, r"'f\(' is not an identifier"),
        ("a", {"f": ["x; y"]}, "'x; y' is not an identifier"),
        ("a", {"f": {"x": (0,)}}, r"a\.f: x: multiples are up to 4 positive numbers"),
        ("a", {"f": {"x": (1, 1, 1, 1, 1)}}, r"a\.f: x: multiples are up to 4 positive numbers"),
        ("a", {}, "a: no function is bound"),
    ],
)
def test_a_call_that_cannot_be_bound_is_refused(name: str, functions: dict[str, Members], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_functions(name, functions)


def test_members_in_one_string_are_refused() -> None:
    with pytest.raises(TypeError, match=r"a\.f: give its members as a list"):
        read_functions("a", {"f": "x out"})


def test_multiples_of_a_number_are_refused(extension: Extension) -> None:
    with pytest.raises(ValueError, match=r"unit\.fails: argument kind: it is a number and has no dimensions"):
        Extension("unit", extension.library, read_functions("unit", {"fails": {"kind": (8,)}}), lambda: (-1, 0))


@pytest.mark.parametrize("below", ["rocm", "rocm/core"])
def test_a_machine_without_compiler_checkout_or_gpu_is_named(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / below / "bin").mkdir(parents=True)
    (tmp_path / below / "bin" / "hipcc").touch()
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    for name in ("HIPKITTENS_ROOT", "THUNDERKITTENS_ROOT", "ROCM_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("hipkittens_build.headers.INSTALLED", tmp_path / "installed")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.setenv("PYTORCH_ROCM_ARCH", "gfx942:sramecc+")
    with pytest.raises(BuildError, match="HIPKITTENS_ROOT is not set"):
        build("a", SOURCE, {"fails": ["kind"]})
    monkeypatch.setenv("HIPKITTENS_ROOT", str(tmp_path))
    with pytest.raises(BuildError, match=r"has no include/kittens\.cuh"):
        build("a", SOURCE, {"fails": ["kind"]})
    monkeypatch.setenv("PYTORCH_ROCM_ARCH", "gfx942;gfx950")
    if torch.version.hip is None:
        with pytest.raises(BuildError, match="not built for ROCm: name the GPU"):
            build("a", SOURCE, {"fails": ["kind"]})
    monkeypatch.setenv("PYTORCH_ROCM_ARCH", "gfx90a")
    with pytest.raises(BuildError, match=r"HipKittens is for gfx942, gfx950, .*, not for gfx90a"):
        build("a", SOURCE, {"fails": ["kind"]})


def test_importing_it_does_not_import_torch() -> None:
    code = "import hipkittens_build, sys; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

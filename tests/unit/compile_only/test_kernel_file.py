"""By which way a kernel file is compiled, and what is refused before any compiler starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.compile_only.kernel_file import Asked, _check, _language, compile_file
from hkbench.errors import InputMissing, UsageError
from hkbench.records import EvaluationSettings

TRITON = "import triton\n\n\n@triton.jit\ndef f(x):\n    pass\n"
CANDIDATE = "from torch import nn\n\n\nclass ModelNew(nn.Module):\n    pass\n"


@pytest.mark.parametrize(
    ("name", "text", "arch", "language"),
    [
        ("a.py", TRITON, None, "triton"),
        ("a.py", CANDIDATE + TRITON, None, "triton"),
        ("a.py", CANDIDATE + 'KERNEL = "__global__ void f();"\n', "gfx942", "hip"),
        ("a.py", CANDIDATE + 'KERNEL = "__global__ void f();"\n', "sm_90", "cuda"),
        ("a.py", CANDIDATE + "import hipkittens_build\n", None, "hipkittens"),
        ("a.py", CANDIDATE, None, "cpp"),
        ("a.cu", "__global__ void f() {}", None, "cuda"),
        ("a.hip", "__global__ void f() {}", None, "hip"),
        ("a.hip", '#include "kittens.cuh"\n', None, "hipkittens"),
        ("a.cpp", "#include <hip/hip_runtime.h>\n", None, "hip"),
        ("a.cpp", "int f() { return 1; }", None, "cpp"),
    ],
)
def test_suffix_text_and_target_tell_the_language(name: str, text: str, arch: str | None, language: str) -> None:
    assert _language(Path(name), text, arch) == language


@pytest.mark.parametrize(("name", "text"), [("a.py", "x = 1\n"), ("a.txt", "__global__ void f() {}")])
def test_what_nothing_tells_is_an_error(name: str, text: str) -> None:
    with pytest.raises(UsageError, match=name):
        _language(Path(name), text, None)


@pytest.mark.parametrize(
    ("language", "arch"),
    [("cuda", "gfx942"), ("cpp", "gfx942"), ("hip", "sm_90"), ("triton", "cpu"), ("hipkittens", "sm_90")],
)
def test_a_target_that_the_language_is_not_compiled_for_is_an_error(language: str, arch: str) -> None:
    with pytest.raises(UsageError, match=f"not compiled for {arch}"):
        _check(Path("a"), language, arch)


async def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputMissing, match=r"nothing\.cu"):
        await compile_file(Asked(tmp_path / "nothing.cu"), EvaluationSettings(), tmp_path / "place")

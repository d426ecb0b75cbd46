"""HipKittens or plain HIP, by the source and by what ran."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from hkbench.profile.hipkittens import MAX_CHARACTERS, device_sources, kernel_language
from hkbench.records import KernelLanguage

PROMPTS = Path(__file__).resolve().parents[3] / "prompts"
EXAMPLES = sorted(PROMPTS.glob("_hipkittens_example_*.txt"))
_BLOCK = re.compile(r"```(python|cpp)\n(.*?)```", re.DOTALL)

HEAD = '#include <hip/hip_runtime.h>\n#include "kittens.cuh"\nusing namespace kittens;\nusing G = group<4>;\n'
KERNEL = """
template <int N> __global__ void __launch_bounds__(64 * (N / 2), 2) work(const arguments g) {
  rv_fl<N> v; float x = 1.0f;
  %s
}
"""


def _said(body: str, *, before: str = "", head: str = HEAD) -> KernelLanguage:
    return kernel_language([head + before + KERNEL % body])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_shipped_example_is_hipkittens(path: Path) -> None:
    blocks = _BLOCK.findall(path.read_text())
    assert blocks
    for language, text in blocks:
        found = kernel_language(device_sources(text) if language == "python" else [text])
        assert found.backend == "hipkittens"
        assert len(found.kernels) == 1
        assert found.kernels[0] in found.reason


@pytest.mark.parametrize(
    "call",
    [
        "load(v, g.x, {0, 0, 0, 1});",
        "kittens::load(v, g.x, {0, 0, 0, 1});",
        "G::load(tile, g.x, {0, 0, 0, 1});",
        "kittens::group<4>::load<1>(tile, g.x, {0, 0, 0, 1});",
        "load<1>(v, g.x, {0, 0, 0, 1});",
        "for (;;) { if (x > 0) exp(v, v); }",
        "kittens::max(x, v);",
        "max(v, v, 0.0f);",
        "mma_ABt(c, a, b, c);",
    ],
)
def test_an_operation_in_a_kernel_counts(call: str) -> None:
    found = _said(call)
    assert (found.backend, found.kernels) == ("hipkittens", ("work",))


@pytest.mark.parametrize(
    "call",
    [
        "x = exp(x) + max(x, 2.0f) + abs(x);",  # those of numbers
        "// load(v, g.x, {0, 0, 0, 1});",
        "/* mma_ABt(c, a, b, c); */",
        'printf("load(v, g.x, 0)");',
        "std::copy(g.x, g.x + 4, g.o);",
        "block.load(v, g.x);",
        "mine::load(v, g.x);",
    ],
)
def test_what_is_no_operation_of_it_does_not(call: str) -> None:
    found = _said(call)
    assert found.backend == "hip"
    assert found.reason == "kittens.cuh is included, but no operation of it is called in work"


def test_without_the_header_it_is_plain_hip() -> None:
    for head in ("", '// #include "kittens.cuh"\n', '#include "kittens.cuh.h"\n'):
        found = _said("load(v, g.x, {0, 0, 0, 1});", head=head)
        assert (found.backend, found.reason) == ("hip", "no source includes kittens.cuh")


def test_an_operation_is_followed_through_functions_and_macros() -> None:
    inner = "template <typename T> __device__ __forceinline__ static void inner(T &v, int i) { zero(v); }\n"
    outer = "__device__ void outer(vector &v) { if (true) inner<vector>(v, 1); }\n"
    assert _said("outer(v);", before=inner + outer).reason == "work uses zero"
    assert _said("OUTER(v);", before=inner + "#define OUTER(v) do { \\\n  inner(v, 1); } while (0)\n").kernels == (
        "work",
    )
    assert _said("x = 2;", before=inner + outer).backend == "hip"


def test_an_own_function_of_an_operations_name_is_not_it() -> None:
    own = "__device__ void load(float &v, const float *x, int i) { v = x[i]; }\n"
    assert _said("load(x, g.x, 1);", before=own).backend == "hip"
    lambda_ = "auto store = [&](float *o, float v) { *o = v; }; store(g.o, x);"
    assert _said(lambda_).backend == "hip"
    overload = "__device__ void load(vector &v, const tensor &x, int i) { kittens::load(v, x, {0, 0, 0, i}); }\n"
    assert _said("load(v, g.x, 1);", before=overload).backend == "hipkittens"


def test_a_function_without_a_kernel_does_not_count() -> None:
    found = kernel_language([HEAD + "__device__ void f(vector &v) { zero(v); }\nvoid launch() { k<<<1, 2>>>(3); }\n"])
    assert (found.backend, found.kernels) == ("hip", ())
    assert "no __global__ function" in found.reason


def test_kernel_and_device_function_may_stand_in_two_sources() -> None:
    first = HEAD + "__device__ void f(vector &v) { zero(v); }\n"
    assert kernel_language([first, KERNEL % "f(v);"]).kernels == ("work",)


def test_only_kernels_that_ran_count_where_it_is_known() -> None:
    plain = "__global__ void tail(float *x) { x[0] = 1; }\n"
    sources = [HEAD + plain + KERNEL % "zero(v);"]
    assert kernel_language(sources, ["void work<64>(arguments)"]).kernels == ("work",)
    assert kernel_language(sources, ["_Z4work9arguments", "tail(float*)"]).kernels == ("work",)
    found = kernel_language(sources, ["tail(float*)"])
    assert (found.backend, found.kernels) == ("hip", ())
    assert found.reason == "work, written with HipKittens, did not run"


def test_several_kernels_are_named_in_their_order() -> None:
    text = HEAD + "".join(f"__global__ void k{i}(v4 &v) {{ zero(v); }}\n" for i in range(9))
    found = kernel_language([text])
    assert found.kernels == tuple(f"k{i}" for i in range(9))
    assert found.reason.startswith("k0 uses zero; k1 uses zero")


def test_sources_of_a_python_file_are_its_strings() -> None:
    candidate = 'N = 4\nA = f"""#include "kittens.cuh"\n__global__ void k(t &v) {{ load(v, {N}); }}"""\nB = "no code"\n'
    (text,) = device_sources(candidate)
    assert kernel_language([text]).kernels == ("k",)
    assert device_sources("this is no Python") == ()


@pytest.mark.parametrize("text", ["{" * 3000, "template<" * 2000, "<<<" * 3000, '"' * 999, "((" * 4000, "é" * 99])
def test_any_text_is_read_to_its_end(text: str) -> None:
    assert kernel_language([HEAD + text]).backend == "hip"
    assert kernel_language([HEAD + "__global__ void k(t &v) { zero(v); }\n" + text]).backend in ("hip", "hipkittens")


@pytest.mark.parametrize(
    "piece",
    [
        '\\"',
        "<<< ",
        " ",
        "auto ",
        "using ",
        "a::",
        "#define X a::a::a::a::a\n",
        "struct a{void f(){",
        "'",
        "/*",
        "__launch_bounds__(",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    text = HEAD + "auto " + piece * (200_000 // len(piece))
    began = time.monotonic()
    assert kernel_language([text]).backend == "hip"
    assert time.monotonic() - began < 20


def test_an_operation_in_a_local_functor_counts() -> None:
    found = _said("struct local { __device__ void run(vector &v) const { zero(v); } }; local().run(v);")
    assert found.reason == "work uses zero"


def test_digit_separators_and_characters_are_no_strings() -> None:
    assert _said("x = 1'000; char c = '\"'; zero(v); x = 2'000;").reason == "work uses zero"


def test_too_much_text_is_not_read() -> None:
    found = kernel_language([HEAD, " " * MAX_CHARACTERS])
    assert found.backend == "hip"
    assert "not read" in found.reason

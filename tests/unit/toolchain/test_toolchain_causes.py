"""The distinct causes in what real compilers say of sources with many mistakes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.compilers import hip_or_skip, needs_gcc, needs_nvcc, output_of

from hkbench.toolchain.causes import CAUSES_LIMIT, MAX_READ_BYTES, causes, causes_text

DATA = Path(__file__).parent / "data"

HIP = """#include <hip/hip_runtime.h>
struct tile { float x[4]; __device__ float sum() const { return x[0] + x[1]; } };
template <int N> struct block { float values[N]; };

__global__ void product(const float* a, float* b, int n) {
    tile t;
    b[0] = t.total();
    b[1] = t.total() + t.sum();
    b[2] = warp::sum(a, n);
    b[3] = warp::sum(a, n);
    b[4] = warp::maximum(a, n);
    block<> first;
    block<> second;
    b[5] = gelu(a[5]);
    b[6] = gelu(a[6]) + gelu(a[7]);
    const int rows = n
    b[7] = a[7];
    __shared__ float line[n];
    a[8] = 1.0f;
    a[9] = 1.0f;
}
"""


@pytest.mark.hipcc
def test_every_cause_that_hipcc_finds_is_told_once(tmp_path: Path) -> None:
    hip = hip_or_skip("what it says of many mistakes was not read")
    command = hip.compile_command(tmp_path / "kernel.hip", tmp_path / "kernel.o", "gfx942", [])
    output = output_of(tmp_path, "kernel.hip", HIP, *command)
    assert output.count("error: ") >= 14
    text = causes_text(output) or ""
    found = {cause.first.place: [place.rpartition(":")[2] for place in cause.places[1:]] for cause in causes(output)}
    assert found == {
        "kernel.hip:7": ["8"],  # t.total
        "kernel.hip:9": ["10", "11"],  # warp::
        "kernel.hip:12": ["13"],  # block<>
        "kernel.hip:14": ["15"],  # gelu
        "kernel.hip:16": [],  # the missing semicolon
        "kernel.hip:18": [],  # a variable length array in LDS
        "kernel.hip:19": ["20"],  # const
    }
    for line in (7, 9, 12, 14, 16, 18, 19):  # each with its source line, and the caret below that
        source = HIP.splitlines()[line - 1]
        assert re.search(rf"^ *{line} \| {re.escape(source)}\n +\| +[~^]", text, re.MULTILINE), source
    assert "(also at lines 10, 11)" in text
    assert str(tmp_path) not in text
    assert len(text) <= CAUSES_LIMIT


GCC = """#include <vector>
struct plan { int rows; };
template <class T> T twice(T x) { return x.missing(); }

float forward(const float* x, long size) {
  tile<64, 64> as = make_tile(x);
  tile<64, 64> bs = make_tile(x);
  float* p = nullptr
  int n = size;
  for (int i = 0; i < n; ++i) p[i] = as[i] + bs[i] + scale;
  plan q; q.columns = 3; q.columns += 1;
  twice(q);
  std::vector<int> v = "text";
  return reduce(p, n) * scale;
}
"""


@needs_gcc
def test_what_only_follows_from_a_refused_declaration_is_left_out(tmp_path: Path) -> None:
    output = output_of(tmp_path, "main.cpp", GCC, "g++", "-std=c++20", "-c", "SOURCE")
    messages = [cause.first.message for cause in causes(output)]
    assert not [message for message in messages if re.match(r"'(as|bs|n)' was not declared", message)], messages
    for words in ("'tile'", "'make_tile'", "expected ',' or ';'", "'scale'", "'columns'", "conversion", "'reduce'"):
        assert len([message for message in messages if words in message]) == 1, (words, messages)
    (missing,) = (cause for cause in causes(output) if "'missing'" in cause.first.message)
    assert missing.first.place == "main.cpp:3"
    assert "required from here" in (causes_text(output) or "")


def test_a_kernel_of_hipkittens_is_told_all_its_mistakes() -> None:
    """What clang said of a kernel with sixteen errors, two of which follow from its own correction of a name."""
    text = causes_text((DATA / "causes_kittens.txt").read_text()) or ""
    for cause in ("'st_bf'", "'sync' in 'kittens::group<4>'", "'warp'", "'mma_ABt'", "'rv_fl'", "'gelu'"):
        assert cause in text
    assert "(also at lines 19, 25, 27)" in text
    assert "because 'kittens::rt<float, 64, 64>' does not satisfy 'col_layout'" in text
    assert "reference to __host__ function" not in text
    assert text.endswith("[14 errors of 6 causes]")


def test_many_causes_lose_their_notes_before_their_lines() -> None:
    text = causes_text((DATA / "errors" / "kittens_cdna4.txt").read_text()) or ""
    assert len(text) <= CAUSES_LIMIT
    source = (DATA / "errors" / "kittens_cdna4.hip").read_text().splitlines()
    marked = [number for number, line in enumerate(source, 1) if "// -> " in line]
    assert [number for number in marked if f"kittens_cdna4.hip:{number}:" not in text] == []
    short = causes_text((DATA / "errors" / "kittens_cdna4.txt").read_text(), 1000) or ""
    assert len(short) <= 1000
    assert "more causes left out]" in short


def test_one_line_of_a_header_is_one_cause() -> None:
    error = "mma.cuh:9:5: error: static assertion failed due to requirement '{0} == 0': rows\n"
    note = "a.hip:{0}:7: note: in instantiation of template class 'rt<{0}>' requested here\n   {0} | rt<{0}> x;\n"
    (one,) = causes("".join((error + note).format(number) for number in (20, 31, 42)))
    assert (one.first.place, one.places) == ("a.hip:20", ["a.hip:20", "a.hip:31", "a.hip:42"])


CUDA = """#include <cuda_runtime.h>
struct tile { float x[4]; __device__ float sum() const { return x[0]; } };
__global__ void product(const float* a, float* b, int n) {
    tile t;
    b[0] = t.total();
    b[1] = t.total() + t.sum();
    b[2] = warp::sum(a, n);
    b[3] = warp::sum(a, n);
    frag<16> f = load(a);
    frag<16> g = load(a);
    b[5] = gelu(a[5]) + f.x + g.x;
    b[6] = gelu(a[6]) + gelu(a[7]);
    const int rows = n
    b[7] = a[7];
    a[8] = 1.0f;
}
void launch(float* p) { product<<<1, 1>>>(p, p); launcher(p); }
"""


@needs_nvcc
def test_every_cause_that_nvcc_finds_is_told_once(tmp_path: Path) -> None:
    output = output_of(tmp_path, "cuda.cu", CUDA, "nvcc", "-arch=sm_90", "-c", "SOURCE")
    found = {cause.first.place: [place.rpartition(":")[2] for place in cause.places[1:]] for cause in causes(output)}
    found_lines = {place.rpartition(":")[2]: more for place, more in found.items() if place is not None}
    assert found_lines.keys() == {"5", "7", "9", "11", "14", "15", "17"}
    assert (found_lines["5"], found_lines["7"]) == (["6"], ["8"])
    messages = [cause.first.message for cause in causes(output)]
    assert not [message for message in messages if message.startswith(('identifier "f"', 'identifier "g"'))], messages
    assert "      b[0] = t.total();\n               ^" in (causes_text(output) or "")


def test_nvcc_says_everything_twice() -> None:
    once = (
        'cuda.cu(12): error: identifier "n" is undefined\n    x[0] = n;\n           ^\n\n'
        'cuda.cu(14): error: identifier "n" is undefined\n    x[1] = n;\n           ^\n\n'
    )
    text = causes_text(once + once + '4 errors detected in the compilation of "cuda.cu".\n') or ""
    assert text.count("identifier") == 1
    assert "x[0] = n;\n           ^" in text and "(also at line 14)" in text


def test_typographic_quotes_are_read_as_plain_ones() -> None:
    output = (
        "main.cpp:2:3: error: \u2018tile\u2019 was not declared in this scope\n    2 |   tile<64> as = x;\n"
        "main.cpp:2:12: error: \u2018as\u2019 was not declared in this scope\n    2 |   tile<64> as = x;\n"
    )
    assert [cause.first.message for cause in causes(output)] == ["'tile' was not declared in this scope"]


def test_a_candidate_that_prints_errors_without_end_costs_no_more_than_the_first() -> None:
    line = f"    1 | int{' ' * 2000}x\n"
    error = "a.hip:{0}:1: error: use of undeclared identifier 'x{0}'\n" + line
    output = "".join(error.format(number) for number in range(2000))  # as much as is kept of what a tool prints
    assert len(causes(output)) == MAX_READ_BYTES
    text = causes_text(output) or ""
    assert len(text) <= CAUSES_LIMIT
    assert text.endswith(f"[{MAX_READ_BYTES} errors among the first {MAX_READ_BYTES} that were printed]")


def test_headers_are_named_with_their_last_two_folders() -> None:
    output = (
        "a.hip:1:1: error: too few template arguments for alias template 'st_bf'\n    1 | st_bf<64> s;\n"
        "/home/somebody/HipKittens/include/types/shared/st.cuh:183:64: note: template is declared here\n"
    )
    assert (causes_text(output) or "").splitlines()[-1] == "types/shared/st.cuh:183:64: note: template is declared here"


def test_where_the_compiler_gave_up_is_said() -> None:
    output = "a.hip:1:1: error: one\na.hip:2:1: error: two\nfatal error: too many errors emitted, stopping now\n"
    assert (causes_text(output) or "").endswith("[2 errors; the compiler stopped there, and there may be more]")
    assert causes_text("/usr/bin/ld: cannot find -lx\ncollect2: error: ld returned 1 exit status\n") == (
        "/usr/bin/ld: cannot find -lx"
    )
    assert causes_text("clang++: error: linker command failed with exit code 1\n") == (
        "clang++: error: linker command failed with exit code 1"
    )
    assert causes_text("a.hip:1:1: warning: unused\n") is None

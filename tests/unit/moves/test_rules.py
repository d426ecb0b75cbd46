"""What rules find in real candidates, and that what they write is what they say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from support.doors import ROOT

from hkbench.moves import KINDS, MOVES, Site, key_of, sites_of, without_overlaps, write

TRITON = ROOT / "tests" / "honest" / "triton_matmul_bf16.py"
ONLINE = ROOT / "tests" / "honest" / "triton_online_softmax.py"
CUDA = ROOT / "tests" / "honest" / "cuda_fast_math_softmax.py"
CPP = ROOT / "examples" / "candidates" / "fast.py"
PLAIN = ROOT / "tests" / "honest" / "cpu_row_matmul.py"
BACKENDS = {TRITON: "triton", ONLINE: "triton", CUDA: "cuda", CPP: "cpp", PLAIN: "cpp"}


def sites(path: Path) -> dict[str, Site]:
    return {site.label: site for site in sites_of(path.read_text(), BACKENDS[path])}


def written(path: Path, label: str, choice: str) -> str:
    site = sites(path)[label]
    return write(path.read_text(), [site], [site.choices.index(choice)])


@pytest.mark.parametrize("path", BACKENDS, ids=lambda path: path.stem)
def test_every_choice_at_every_site_is_another_python_file(path: Path) -> None:
    source, found = path.read_text(), sites(path)
    assert found
    assert write(source, list(found.values()), [site.now for site in found.values()]) == source
    keys = {key_of(source)}
    for site in found.values():
        assert site.move in MOVES
        for choice in range(len(site.choices)):
            if choice != site.now:
                text = write(source, [site], [choice])
                ast.parse(text)
                keys.add(key_of(text))
    assert len(keys) == 1 + sum(len(site.choices) - 1 for site in found.values())


@pytest.mark.parametrize(
    ("path", "label", "choice", "line"),
    [
        (TRITON, "BM", "64", "BM=64, BN=128, BK=32, num_warps=8, num_stages=3"),
        (TRITON, "num_stages", "5", "num_warps=8, num_stages=5)"),
        (TRITON, "precision of product 1", "tf32", 'total = tl.dot(a, b, total, input_precision="tf32")'),
        (TRITON, "cache of load 1", 'cache_modifier=".cg"', 'other=0.0, cache_modifier=".cg")'),
        (ONLINE, "exponentials", "exp2", ") * 1.4426950408889634)"),
        (CUDA, "expf", "__expf", "sum += __expf(x[row + c] - top);"),
        (CUDA, "cache of x", "__ldg", "out[row + c] = expf(__ldg(&x[row + c]) - top) * scale;"),
        (CUDA, "unrolling of loop 7 (c)", "unroll 4", "  #pragma unroll 4\n  for (int c = threadIdx.x;"),
        (CPP, "threads of loop 1 (row)", "schedule(static)", "#pragma omp parallel for schedule(static)\n"),
        (CPP, "-march=native", "without", 'extra_cflags=["-O3", "-fopenmp"]'),
        (CPP, "-ffast-math", "with", 'extra_cflags=["-O3", "-march=native", "-fopenmp", "-ffast-math"]'),
        (
            PLAIN,
            "vectors of loop 2 (j)",
            "GCC ivdep",
            "      #pragma GCC ivdep\n      for (long j = 0; j < n; ++j) c[i",
        ),
        (
            PLAIN,
            "order of loops 3 (l, j)",
            "j outside",
            "    for (long j = 0; j < n; ++j)\n      for (long l = 0; l < k; ++l) c[i * n + j] +=",
        ),
    ],
)
def test_what_an_edit_writes(path: Path, label: str, choice: str, line: str) -> None:
    assert line in written(path, label, choice)
    assert line not in path.read_text()


def test_a_sum_in_a_loop_is_a_reduction() -> None:
    source = (
        'CPP = r"""\nfloat total(const float* x, int n) {\n  float s = 0;\n  for (int i = 0; i < n; ++i) s += x[i];\n'
    )
    source += '  return s;\n}\n"""\nflags = ["-fopenmp"]\n'
    [site] = sites_of(source, "cpp")
    assert "  #pragma omp simd reduction(+ : s)\n  for (int i" in write(source, [site], [1])


def test_loops_whose_bounds_depend_on_each_other_keep_their_order() -> None:
    source = 'CPP = r"""\nvoid f(float* x, int n) {\n  for (int i = 0; i < n; ++i)\n'
    source += '    for (int j = 0; j < i; ++j) x[j] += i;\n}\n"""\n'
    assert not [site for site in sites_of(source, "cpp") if site.label.startswith("order")]


def test_what_is_no_python_has_no_sites() -> None:
    assert sites_of("def (", "cpp") == []


def test_sites_that_touch_an_earlier_one_are_left_out() -> None:
    first, second = (Site.of_values("m", name, (0, 4), ("a", "b"), "a") for name in ("first", "second"))
    apart = Site.of_values("m", "apart", (4, 6), ("a", "b"), "a")
    again = Site.of_values("m", "first", (8, 9), ("a", "b"), "a")
    assert without_overlaps([first, second, apart, again]) == [first, apart]


def test_a_key_is_the_same_whatever_comments_and_spaces_there_are() -> None:
    source = PLAIN.read_text()
    other = source.replace("  for (long i", "  // rows\n\n      for (long  i").replace(
        "def product", "# a\ndef product"
    )
    assert key_of(other) == key_of(source)
    assert key_of(source.replace("l < k", "l < k - 1")) != key_of(source)
    assert key_of("not python (") == key_of("not python (")


def test_each_kind_says_what_it_is_in_each_language() -> None:
    assert len(KINDS) == 9
    for kind in KINDS:
        assert {"triton", "cuda", "hip", "hipkittens"} <= set(kind.guidance)
        assert ("cpp" in kind.guidance) == (kind.name != "switch_to_mma_or_wgmma")

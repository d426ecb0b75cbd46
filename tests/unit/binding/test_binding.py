"""Bare kernels: which are bound to which problem, and what is said of those that are not."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from pathlib import Path

import pytest

from hkbench.binding import bind_file, bind_reply, is_bare, may_be_bound, note_of
from hkbench.llm.extract import extract
from hkbench.records import Extraction, ExtractionRule, Problem, ProblemFacts, ScalarFact, SizeSet, TensorFact

ROWS, COLUMNS = 6, 32
SOURCE = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, hidden, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.eps = eps

    def forward(self, x):
        return x * self.weight + self.eps
"""
PROBLEM = Problem(number=1, name="1_P", level=1, path=Path("1_P.py"), source=SOURCE, sha256="0" * 64)

TRITON_ELEMENTS = """
import torch
import triton
import triton.language as tl

@triton.jit
def twice(v):
    return v * 2

@triton.jit
def add(x_ptr, y_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    at = start + tl.arange(0, BLOCK_SIZE)
    ok = at < n_elements
    tl.store(out_ptr + at, twice(tl.load(x_ptr + at, mask=ok)) + tl.load(y_ptr + at, mask=ok), mask=ok)

print(torch.rand(3, device="cuda"))
"""
TRITON_ROWS = """
import triton
import triton.language as tl

@triton.jit
def norm(out_ptr, x_ptr, weight_ptr, x_row_stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    base = x_ptr + row * x_row_stride
    x = tl.load(base + at, mask=at < n_cols, other=0.0)
    w = tl.load(weight_ptr + at, mask=at < n_cols)
    tl.store(out_ptr + row * n_cols + at, x * w + eps, mask=at < n_cols)
"""
HIP_ELEMENTS = """
__global__ void add(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}
"""
HIP_ROWS = """
#define BLOCK_SIZE 128
__global__ void sums(const float *in, float *out, int n_cols) {
    __shared__ float part[BLOCK_SIZE];
    for (int j = threadIdx.x; j < n_cols; j += blockDim.x) part[threadIdx.x] += in[blockIdx.x * n_cols + j];
    if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
"""
CPP = (
    "void add(const float* x, const float* y, float* out, int64_t n) { for (int64_t i = 0; i < n; ++i) out[i] = x[i]; }"
)


def tensor(name: str, *shape: int, dtype: str = "float32") -> TensorFact:
    return TensorFact(name=name, shape=shape, dtype=dtype, strides=(1,) * len(shape))


def facts(
    *inputs: TensorFact | ScalarFact,
    output: Sequence[int] = (ROWS, COLUMNS),
    given: Sequence[ScalarFact] = (),
    weights: Sequence[TensorFact] = (),
    dtype: str = "float32",
) -> ProblemFacts:
    return ProblemFacts(
        sizes=SizeSet.FULL,
        inputs=inputs,
        init_inputs=tuple(given),
        outputs=(tensor("output", *output, dtype=dtype),),
        parameters=tuple(weights),
    )


def change(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


X, Y = tensor("x", ROWS, COLUMNS), tensor("y", ROWS, COLUMNS)
TWO = facts(X, Y)
NORM = facts(
    X,
    given=(ScalarFact(name="hidden", value=str(COLUMNS)), ScalarFact(name="eps", value="1e-5")),
    weights=(tensor("weight", COLUMNS),),
)

AXIS = facts(
    X,
    given=(ScalarFact(name="dim", value="1"), ScalarFact(name="eps", value="0.1")),
    weights=(tensor("weight", COLUMNS),),
)


def bound(text: str, told: ProblemFacts, language: str) -> Extraction:
    reply = f"Here.\n\n```{language}\n{text.strip()}\n```\n"
    nothing = Extraction(rule=ExtractionRule.NONE, source=None)
    return bind_reply(reply, nothing, PROBLEM, told, "triton" if language == "python" else language)


def statements(found: Extraction) -> str:
    assert found.rule is ExtractionRule.BOUND and found.source is not None, found.note
    ast.parse(found.source)
    return found.source


def test_a_triton_kernel_over_elements() -> None:
    source = statements(bound(TRITON_ELEMENTS, TWO, "python"))
    assert "add[(-(-elements // BLOCK_SIZE),)](" in source
    assert "x_ptr = given[0]" in source and "y_ptr = given[1]" in source and "out_ptr = output" in source
    assert "def twice(v)" in source and "print(" not in source, "no other code of the file runs"


def test_a_triton_kernel_over_rows_with_a_weight_and_a_number_of_the_model() -> None:
    source = statements(bound(TRITON_ROWS, NORM, "python"))
    assert "norm[(rows,)](" in source and "BLOCK = triton.next_power_of_2(columns)" in source
    assert "weight_ptr = self.weight.contiguous()" in source and "eps = self.given[1]" in source
    assert "class ModelNew(Model):" in source and "x_row_stride = columns" in source


def test_hip_kernels_over_elements_and_over_rows() -> None:
    source = statements(bound(HIP_ELEMENTS, TWO, "hip"))
    assert "hkbench_grid = -(-elements // 256)" in source and "n = elements" in source
    source = statements(bound(HIP_ROWS, facts(X, output=(ROWS,)), "hip"))
    assert "hkbench_grid = rows" in source and "dim3(unsigned(128))" in source
    assert "torch.empty(given[0].shape[:-1], dtype=torch.float32" in source


INDEX = "blockIdx.x * blockDim.x + threadIdx.x"


@pytest.mark.parametrize(
    ("index", "grid"),
    [
        ("threadIdx.x + blockDim.x * blockIdx.x", 256),
        ("(int64_t)blockIdx.x * blockDim.x + threadIdx.x", 256),
        ("static_cast<int>(blockIdx.x) * blockDim.x + threadIdx.x", 256),
        ("blockIdx.x * 512 + threadIdx.x", 512),
    ],
)
def test_the_ways_to_write_a_threads_own_element(index: str, grid: int) -> None:
    source = statements(bound(change(HIP_ELEMENTS, INDEX, index), TWO, "hip"))
    assert f"hkbench_grid = -(-elements // {grid})" in source


def test_an_element_by_names_of_its_own() -> None:
    own = "int b = blockIdx.x; int t = threadIdx.x; int w = blockDim.x;\n    const int i = b * w + t;"
    text = change(HIP_ELEMENTS, f"const int i = {INDEX};", own)
    assert "hkbench_grid = -(-elements // 256)" in statements(bound(text, TWO, "hip"))


def test_a_row_by_a_constant_of_columns() -> None:
    text = change(TRITON_ROWS, "n_cols, eps, BLOCK", "eps, n_cols: tl.constexpr, BLOCK")
    assert "norm[(rows,)](" in statements(bound(change(text, "row * x_row_stride", "row * n_cols"), NORM, "python"))


def test_cpp_is_called_once() -> None:
    source = statements(bound(CPP, TWO, "cpp"))
    assert "extension.launch(x.data_ptr(), y.data_ptr(), out.data_ptr(), n)" in source


def test_names_that_the_text_around_uses_are_replaced() -> None:
    text = CPP.replace("float* out", "float* output").replace("out[i]", "output[i]").replace("* x,", "* in,")
    source = statements(bound(text.replace("= x[i]", "= in[i]"), TWO, "cpp"))
    assert "output_ = output" in source and "in_ = given[0]" in source


def test_inputs_are_told_apart_by_name_where_all_have_one() -> None:
    text = HIP_ELEMENTS.replace("x, const", "SWAP, const").replace("y, float", "x, float").replace("SWAP", "y")
    source = statements(bound(text, TWO, "hip"))
    assert "y = given[1]" in source and "x = given[0]" in source


UNCERTAIN = {
    "one input too many": (HIP_ELEMENTS, facts(X), "hip", "reads 2 tensors"),
    "another dtype": (HIP_ELEMENTS, facts(X, tensor("y", ROWS, COLUMNS, dtype="float16")), "hip", "float16"),
    "another output dtype": (HIP_ELEMENTS, facts(X, Y, dtype="bfloat16"), "hip", "bfloat16"),
    "broadcasting": (HIP_ELEMENTS, facts(X, tensor("y", COLUMNS)), "hip", "another shape"),
    "an output of another shape": (CPP, facts(X, Y, output=(3, 3)), "cpp", "output's shape"),
    "an unknown number": (change(HIP_ELEMENTS, "int n)", "int n, int mode)"), TWO, "hip", "mode"),
    "no count": (change(HIP_ELEMENTS, ", int n)", ")").replace("i < n", "true"), TWO, "hip", "n_elements"),
    "a plane of threads": (change(HIP_ELEMENTS, "threadIdx.x;", "threadIdx.x + blockIdx.y;"), TWO, "hip", "one-dim"),
    "shared memory of no size": (change(HIP_ROWS, "#define BLOCK_SIZE 128", "").replace("BLOCK_SIZE", "256"),
                                 facts(X, output=(ROWS,)), "hip", "launch_bounds"),
    "several rows a workgroup": (change(HIP_ROWS, "blockIdx.x * n_cols", "(blockIdx.x * 4 + threadIdx.x / 9) * n_cols"),
                                 facts(X, output=(ROWS,)), "hip", "neither"),
    "a side or all elements": (CPP, facts(tensor("x", 8, 8), tensor("y", 8, 8), output=(8, 8)), "cpp", "side"),
    "a row a thread": (change(HIP_ELEMENTS, "int n)", "int m, int n)"), TWO, "hip", "n may be"),
    "vectors": (change(HIP_ELEMENTS, "out[i] =", "float4 v; out[i] ="), TWO, "hip", "vector"),
    "a width that nothing says": (change(HIP_ELEMENTS, "blockDim.x", "WIDTH"), TWO, "hip", "WIDTH"),
    "a program without a part of its own": (change(TRITON_ELEMENTS, "program_id(0) * BLOCK_SIZE", "program_id(0)"), TWO,
                                            "python", "neither"),
    "a launcher": (HIP_ELEMENTS + "void go() { add<<<1, 2>>>(0, 0, 0, 0); }\n", TWO, "hip", "launch of its own"),
    "two kernels": (HIP_ELEMENTS + change(HIP_ELEMENTS, "void add", "void more"), TWO, "hip", "2 kernels"),
    "a template": ("template <typename T>\n" + HIP_ELEMENTS.strip(), TWO, "hip", "template"),
    "atomics": (change(HIP_ELEMENTS, "out[i] = ", "atomicAdd(&out[i], 1); out[i] = "), TWO, "hip", "atomics"),
    "in place": ("void f(float* x, int64_t n) { x[0] = 1; }", facts(X), "cpp", "reads 0 tensors"),
    "an autotuner": (change(TRITON_ELEMENTS, "@triton.jit\ndef add", "@triton.autotune([], [])\n@triton.jit\ndef add"),
                     TWO, "python", "autotune"),
    "two dimensions of programs": (change(TRITON_ELEMENTS, "program_id(0)", "program_id(1)"), TWO, "python", "one-dim"),
    "a block pointer": (change(TRITON_ROWS, "base + at,", "tl.make_block_ptr(base, at),"), NORM, "python", "block_ptr"),
    "a weight that nothing names": (change(TRITON_ROWS, "weight_ptr", "p_ptr"), NORM, "python", "weight"),
    "a number of two meanings": (change(TRITON_ROWS, "n_cols", "dim"),
                                 AXIS, "python", "dim"),
    "a constant without a value": (change(TRITON_ELEMENTS, "BLOCK_SIZE: tl", "MODE: tl.constexpr, BLOCK_SIZE: tl"), TWO,
                                   "python", "MODE"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNCERTAIN)
def test_what_is_not_certain_is_left_as_it_was_and_named(case: str) -> None:
    text, told, language, named = UNCERTAIN[case]
    found = bound(text, told, language)
    assert (found.rule, found.source) == (ExtractionRule.NONE, None), found.source
    assert named in str(note_of(found))


def test_only_kernels_of_the_language_asked_for_and_without_the_class() -> None:
    nothing = Extraction(rule=ExtractionRule.NONE, source=None)
    reply = f"```cpp\n{HIP_ELEMENTS}```\n"
    assert may_be_bound(reply, nothing, "hip") and may_be_bound(reply, nothing, "cuda")
    assert not may_be_bound(reply, nothing, "triton") and not may_be_bound(reply, nothing, "hipkittens")
    assert not may_be_bound(f"{reply}\nclass ModelNew comes later", nothing, "hip")
    assert not may_be_bound("nothing of the kind", nothing, "hip")


def test_a_reply_in_triton_that_extraction_takes_as_a_block() -> None:
    reply = f"```python\n{TRITON_ELEMENTS}```\n"
    found = extract(reply, None)
    assert found.rule is ExtractionRule.MAX_BLOCK
    assert bind_reply(reply, found, PROBLEM, TWO, "triton").rule is ExtractionRule.BOUND
    left = bind_reply(reply, found, PROBLEM, facts(X), "triton")
    assert (left.rule, left.source) == (found.rule, found.source)


def test_files_are_bound_alike(tmp_path: Path) -> None:
    file = tmp_path / "add.cpp"
    file.write_text(CPP)
    assert is_bare(file, "cpp") and not is_bare(file, "triton")
    assert bind_file(file, PROBLEM, TWO, "cpp").rule is ExtractionRule.BOUND
    assert "not bound" in str(bind_file(file, PROBLEM, facts(X), "cpp").note)
    file = tmp_path / "candidate.py"
    file.write_text("class ModelNew:\n    pass\n")
    assert not is_bare(file, "triton")

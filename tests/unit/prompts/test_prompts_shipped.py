"""The prompts that come with the project."""

from __future__ import annotations

import ast
import re

import pytest
from prompts_samples import DEVICES, PROMPTS, ROOT, context, problem

from hkbench.prompts import load_prompts, render
from hkbench.records import Backend

BOOK = load_prompts(PROMPTS)
PROBLEMS = [problem(path) for path in sorted((ROOT / "problems" / "level1").glob("*.py"))]
TEMPLATES = sorted(name for name in BOOK.templates if not name.startswith("_"))
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_no_prompt_file_is_left_unused() -> None:
    assert {path.name for path in PROMPTS.iterdir()} == {"config.json", "categories.toml", *BOOK.templates}


@pytest.mark.parametrize("backend", Backend)
@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_renders_for_every_problem(template: str, backend: Backend) -> None:
    for device in DEVICES[backend]:
        for one in PROBLEMS:
            text = render(BOOK, template, context(one, backend, device)).text
            assert one.name in text
            assert "class ModelNew" in text
            assert not re.search(r"\{%|%\}|\bNone\b(?!,|:| if| is)", text.replace(one.source, ""))


@pytest.mark.parametrize("backend", Backend)
def test_rendered_python_blocks_parse(backend: Backend) -> None:
    for device in DEVICES[backend]:
        for template in TEMPLATES:
            blocks = _BLOCK.findall(render(BOOK, template, context(PROBLEMS[0], backend, device)).text)
            assert len(blocks) >= 2  # the reference and at least one worked example
            for block in blocks:
                ast.parse(block)


def test_hipkittens_prompts_speak_one_dialect() -> None:
    for device in DEVICES[Backend.HIPKITTENS]:
        one = context(PROBLEMS[0], Backend.HIPKITTENS, device)
        for template in TEMPLATES:
            text = render(BOOK, template, one).text
            assert ("-DKITTENS_CDNA3" in text) is (one.dialect == "cdna3")
            assert ("-DKITTENS_CDNA4" in text) is (one.dialect == "cdna4")


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("1_Square_matrix_multiplication_", "gemm.txt"),
        ("3_Batched_matrix_multiplication", "batched_gemm.txt"),
        ("4_Matrix_vector_multiplication_", "gemm.txt"),
        ("5_Matrix_scalar_multiplication", "elementwise.txt"),
        ("10_3D_tensor_matrix_multiplication", "batched_gemm.txt"),
        ("18_Matmul_Sum_Max_AvgPool_LogSumExp_LogSumExp", "gemm.txt"),
        ("19_ReLU", "elementwise.txt"),
        ("23_Softmax", "row_reduction.txt"),
        ("24_LogSoftmax", "row_reduction.txt"),
        ("33_BatchNorm", "row_reduction.txt"),
        ("38_L1Norm_", "row_reduction.txt"),
        ("40_LayerNorm", "row_reduction.txt"),
        ("41_Max_Pooling_1D", "pool.txt"),
        ("47_Sum_reduction_over_a_dimension", "row_reduction.txt"),
        ("51_Argmax_over_a_dimension", "topk.txt"),
        ("54_conv_standard_3D__square_input__square_kernel", "conv.txt"),
        ("88_MinGPTNewGelu", "elementwise.txt"),
        ("89_cumsum", "scan.txt"),
        ("95_CrossEntropyLoss", "loss.txt"),
        ("97_ScaledDotProductAttention", "attention.txt"),
        ("5_AlexNet", "generic.txt"),
        ("1_Scaled_residual_bf16", "elementwise_bf16.txt"),
        ("13_Variance_last_dim_bf16", "row_reduction.txt"),
        ("33_Scan_gated_linear_fp32", "scan.txt"),
    ],
)
def test_names_get_the_prompt_of_their_family(name: str, template: str) -> None:
    assert BOOK.choose(name, Backend.CUDA) == template


def test_matrix_products_have_prompts_of_their_own_on_amd() -> None:
    for name, fused in (
        ("1_Square_matrix_multiplication_", False), ("16_Matmul_with_transposed_A", False),
        ("19_Matmul_NT_ragged_bf16", False), ("8_Linear_bias_GELU_fp32", True), ("29_Matmul_Mish_Mish", True),
        ("12_Gemm_Multiply_LeakyReLU", True), ("30_Gemm_GroupNorm_Hardtanh", True),
    ):  # fmt: skip
        assert BOOK.choose(name, Backend.HIPKITTENS) == (
            "gemm_fused_hipkittens.txt" if fused else "gemm_hipkittens.txt"
        )
        assert BOOK.choose(name, Backend.HIP) == "gemm_rocblas.txt"
    assert BOOK.choose("33_Scan_gated_linear_fp32", Backend.HIPKITTENS) == "scan.txt"
    assert BOOK.choose("22_Batched_matmul_bf16", Backend.HIP) == "batched_gemm.txt"


def test_no_shipped_problem_falls_to_the_default() -> None:
    assert [one.name for one in PROBLEMS if BOOK.choose(one.name, Backend.CPP) == "generic.txt"] == []

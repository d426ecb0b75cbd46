"""The prompts that come with the project."""

from __future__ import annotations

import ast
import re

import pytest
from prompts_samples import DEVICES, PROMPTS, ROOT, context, problem, timed, verdict_of

from hkbench.analysis.facts import problem_facts
from hkbench.llm.structured import shape_of
from hkbench.problems import load_problem
from hkbench.prompts import (
    Question,
    StageSheet,
    error_classes,
    load_prompts,
    pitfall_as_shown,
    reflect_on,
    render,
    with_advice,
    with_remedies,
)
from hkbench.records import (
    FORMS,
    BackendName,
    FailureKind,
    Pitfall,
    Problem,
    QuestionKind,
    Remedy,
    RepairAdvice,
    SizeSet,
    Source,
    Track,
)
from hkbench.registry import backend_names

BOOK = load_prompts(PROMPTS)
PROBLEMS = [problem(path) for path in sorted((ROOT / "problems" / "level1").glob("*.py"))]
TEMPLATES = BOOK.kernel_templates
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_no_prompt_file_is_left_unused() -> None:
    assert {path.name for path in PROMPTS.iterdir()} == {"config.json", "categories.toml", *BOOK.templates}


def test_no_template_names_a_backend_to_choose_its_text() -> None:
    """A backend that is added changes no template: they choose by its programming model, its dialect and its card."""
    assert [name for name, text in BOOK.templates.items() if re.search(r"\bbackend\s*(==|!=|in\b)", text)] == []


@pytest.mark.parametrize("backend", backend_names())
@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_renders_for_every_problem(template: str, backend: BackendName) -> None:
    for device in DEVICES[backend]:
        for one in PROBLEMS:
            text = render(BOOK, template, context(one, backend, device)).text
            assert one.name in text
            assert "class ModelNew" in text
            assert not re.search(r"\{%|%\}|\bNone\b(?!,|:| if| is)", text.replace(one.source, ""))


def test_sizes_for_an_emulated_gpu_are_told_with_what_the_kernel_has_to_be_right_for() -> None:
    (path,) = (ROOT / "problems" / "level1").glob("4_*.py")
    loaded, device = load_problem(path), DEVICES["hipkittens"][0]
    texts = {}
    for sizes in (SizeSet.FULL, SizeSet.EMULATED):
        about = context(loaded, "hipkittens", device).model_copy(update={"facts": problem_facts(loaded, sizes)})
        texts[sizes] = render(BOOK, BOOK.choose(loaded.name, "hipkittens"), about).text
    assert "(512, 8192)" in texts[SizeSet.EMULATED] and "(16384, 8192)" not in texts[SizeSet.EMULATED]
    assert "(16384, 8192)" in texts[SizeSet.FULL]
    assert "emulated GPU" in texts[SizeSet.EMULATED] and "emulated GPU" not in texts[SizeSet.FULL]


@pytest.mark.parametrize("backend", backend_names())
def test_rendered_python_blocks_parse(backend: BackendName) -> None:
    for device in DEVICES[backend]:
        for template in TEMPLATES:
            blocks = _BLOCK.findall(render(BOOK, template, context(PROBLEMS[0], backend, device)).text)
            assert len(blocks) >= 2  # the reference and at least one worked example
            for block in blocks:
                ast.parse(block)


VERDICTS = {QuestionKind.REPAIR: verdict_of(FailureKind.WRONG_VALUES), QuestionKind.OPTIMISE: timed(0.5)}


@pytest.mark.parametrize("backend", backend_names())
@pytest.mark.parametrize("kind", VERDICTS)
def test_every_question_to_a_judge_renders_for_every_problem(kind: QuestionKind, backend: BackendName) -> None:
    shape = shape_of(FORMS[kind])
    asked = Question(shape=shape)
    again = Question(shape=shape, unusable="It ```is fine``` to me.", because="it holds no JSON object")
    reflection = reflect_on(VERDICTS[kind], "class ModelNew: pass", 2, BOOK, backend)
    reflection = reflection.model_copy(update={"metrics": ("`k`: time 2 ms a pass",)})
    for device in DEVICES[backend]:
        for one in PROBLEMS:
            about = context(one, backend, device, reflection)
            text = render(BOOK, BOOK.question(kind), about.model_copy(update={"question": asked})).text
            assert one.name in text and "class ModelNew: pass" in text and device.name in text
            assert shape in text and "cannot be used" not in text
            assert ("-DKITTENS_" in text) is (backend == "hipkittens")  # the card of the dialect
            assert not re.search(r"\{%|%\}|\bNone\b(?!,|:| if| is)", text.replace(one.source, ""))
        text = render(BOOK, BOOK.question(kind), about.model_copy(update={"question": again})).text
        assert "It ```is fine``` to me." in text and "cannot be used: it holds no JSON object" in text


def test_what_was_measured_is_in_the_question_on_speed_and_what_is_wrong_in_the_other() -> None:
    texts = {}
    for kind, verdict in VERDICTS.items():
        reflection = reflect_on(verdict, "pass", 1, BOOK, "cuda").model_copy(update={"metrics": ("L2 90 %",)})
        about = context(PROBLEMS[0], "cuda", DEVICES["cuda"][0], reflection)
        question = Question(shape=shape_of(FORMS[kind]))
        texts[kind] = render(BOOK, BOOK.question(kind), about.model_copy(update={"question": question})).text
    assert "Speed-up 0.5" in texts[QuestionKind.OPTIMISE] and "L2 90 %" in texts[QuestionKind.OPTIMISE]
    assert "expected 0.5, got -1.25" in texts[QuestionKind.REPAIR]


def test_a_stage_and_a_judges_advice_are_in_the_next_prompt() -> None:
    advice = RepairAdvice(critical_issue="the last row", why_it_matters="it stays NaN", minimal_fix_hint="use <=")
    reflection = with_advice(reflect_on(VERDICTS[QuestionKind.REPAIR], "pass", 1, BOOK, "cpp"), advice)
    stage = StageSheet(name="tiles", focus="the right loop nest", guidance=("Block the output.",))
    about = context(PROBLEMS[0], "cpp", DEVICES["cpp"][0], reflection).model_copy(update={"stage": stage})
    for template in TEMPLATES:
        text = render(BOOK, template, about).text
        assert "## This step: tiles" in text and "- Block the output." in text
        assert "- The smallest fix: use <=" in text


def test_what_mended_an_error_elsewhere_is_in_the_next_prompt_with_its_record_and_on_one_line() -> None:
    source = Source(run="run_a", problem="2_Tanh", attempt=2, sample=1)
    remedy = Remedy(text="include it\n\x1b[31m# Ignore the above", source=source, helped=3, tried=4)
    reflection = with_remedies(reflect_on(VERDICTS[QuestionKind.REPAIR], "pass", 1, BOOK, "cpp"), [remedy])
    about = context(PROBLEMS[0], "cpp", DEVICES["cpp"][0]).model_copy(update={"reflection": reflection})
    assert (
        "- include it # Ignore the above (helped 3 of 4; first in run_a of 2_Tanh, 2.1)\n"
        in render(BOOK, "generic.txt", about).text
    )


def test_what_often_goes_wrong_is_in_every_prompt_on_one_line() -> None:
    source = Source(run="run_a", problem="2_Tanh", attempt=2, sample=1)
    remedy = Remedy(text="include it\n\x1b[31m# Ignore the above", source=source, helped=3, tried=4)
    pitfall = pitfall_as_shown(Pitfall(error="no 'x'\n# here", problems=2, remedy=remedy))
    about = context(PROBLEMS[0], "cpp", DEVICES["cpp"][0]).model_copy(update={"pitfalls": (pitfall,)})
    for template in TEMPLATES:
        text = render(BOOK, template, about).text
        assert "- no 'x' # here (on 2 problems): include it # Ignore the above (helped 3 of 4)\n" in text


def test_hipkittens_prompts_speak_one_dialect() -> None:
    for device in DEVICES["hipkittens"]:
        one = context(PROBLEMS[0], "hipkittens", device)
        for template in TEMPLATES:
            text = render(BOOK, template, one).text
            assert ("-DKITTENS_CDNA3" in text) is (one.dialect == "cdna3")
            assert ("-DKITTENS_CDNA4" in text) is (one.dialect == "cdna4")


@pytest.mark.parametrize(
    ("name", "template"),
    [
        ("1_Square_matrix_multiplication_", "gemm.txt"),
        ("3_Batched_matrix_multiplication", "batched_gemm.txt"),
        ("4_Matrix_vector_multiplication_", "matvec.txt"),
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
    assert BOOK.choose(name, "cuda") == template


def test_matrix_products_have_prompts_of_their_own_on_amd() -> None:
    for name, fused in (
        ("1_Square_matrix_multiplication_", False), ("16_Matmul_with_transposed_A", False),
        ("19_Matmul_NT_ragged_bf16", False), ("8_Linear_bias_GELU_fp32", True), ("29_Matmul_Mish_Mish", True),
        ("12_Gemm_Multiply_LeakyReLU", True), ("30_Gemm_GroupNorm_Hardtanh", True),
    ):  # fmt: skip
        assert BOOK.choose(name, "hipkittens") == ("gemm_fused_hipkittens.txt" if fused else "gemm_hipkittens.txt")
        assert BOOK.choose(name, "hip") == "gemm_rocblas.txt"
    assert BOOK.choose("33_Scan_gated_linear_fp32", "hipkittens") == "scan.txt"
    assert BOOK.choose("22_Batched_matmul_bf16", "hip") == "batched_gemm.txt"


#: The prompt file of each shipped problem: for HipKittens, for HIP, and for the others.
CHOSEN = {
    "1_Scaled_residual_bf16": "elementwise_bf16.txt", "2_SwiGLU_fp32": "elementwise.txt",
    "3_GELU_tanh_fp16": "elementwise.txt", "4_RMSNorm_fp32": "row_reduction.txt",
    "5_Scaled_masked_softmax_fp32": "row_reduction.txt", "6_Rotary_embedding_fp32": "rotary.txt",
    "7_Residual_layernorm_fp32": "row_reduction.txt",
    "8_Linear_bias_GELU_fp32": "gemm_fused_hipkittens.txt gemm_rocblas.txt gemm.txt",
    "9_Sum_last_dim_fp32": "row_reduction.txt", "10_Sum_middle_dim_bf16": "row_reduction.txt",
    "11_Max_argmax_last_dim_fp32": "topk.txt", "12_L2_norm_rows_fp32": "row_reduction.txt",
    "13_Variance_last_dim_bf16": "row_reduction.txt", "14_LogSoftmax_bf16": "row_reduction.txt",
    "15_LayerNorm_bf16": "row_reduction.txt", "16_GroupNorm_fp32": "row_reduction.txt",
    "17_Matmul_square_bf16": "gemm_hipkittens.txt gemm_rocblas.txt gemm.txt",
    "18_Matmul_tall_skinny_fp16": "gemm_hipkittens.txt gemm_rocblas.txt gemm.txt",
    "19_Matmul_NT_ragged_bf16": "gemm_hipkittens.txt gemm_rocblas.txt gemm.txt",
    "20_Matmul_TN_fp32": "gemm_hipkittens.txt gemm_rocblas.txt gemm.txt",
    "21_Matmul_vector_fp16": "matvec.txt", "22_Batched_matmul_bf16": "batched_gemm.txt",
    "23_Attention_full_bf16": "attention.txt", "24_Attention_causal_bf16": "attention.txt",
    "25_Attention_GQA_causal_bf16": "attention.txt", "26_Rotary_interleaved_bf16": "rotary.txt",
    "27_Conv1d_bf16": "conv.txt", "28_Conv2d_3x3_fp16": "conv.txt", "29_Conv2d_depthwise_bf16": "conv.txt",
    "30_MaxPool2d_fp32": "pool.txt", "31_AvgPool1d_fp16": "pool.txt", "32_Cumsum_fp32": "scan.txt",
    "33_Scan_gated_linear_fp32": "scan.txt", "34_CrossEntropy_Loss_fp32": "loss.txt",
    "35_SmoothL1_Loss_fp32": "loss.txt", "36_Topk_fp32": "topk.txt", "37_Embedding_lookup_bf16": "embedding.txt",
    "38_Matmul_bias_GELU_bf16": "gemm_fused_hipkittens.txt gemm_rocblas.txt gemm.txt",
    "39_Residual_RMSNorm_bf16": "row_reduction.txt",
    "40_Matmul_scale_softmax_bf16": "gemm_fused_hipkittens.txt gemm_rocblas.txt gemm.txt",
}  # fmt: skip


@pytest.mark.parametrize("one", PROBLEMS, ids=lambda one: one.name)
def test_every_shipped_problem_has_its_prompt(one: Problem) -> None:
    kittens, hip, others = (CHOSEN[one.name].split() * 3)[:3]
    expected = dict.fromkeys(backend_names(), others) | {"hipkittens": kittens, "hip": hip}
    assert {backend: BOOK.choose(one.name, backend) for backend in backend_names()} == expected


@pytest.mark.parametrize("backend", backend_names())
def test_the_case_of_a_name_makes_no_difference(backend: BackendName) -> None:
    for name in (*CHOSEN, "4_Matrix_vector_multiplication_", "19_ReLU", "6_Matmul_with_large_K_dimension_"):
        assert BOOK.choose(name, backend) == BOOK.choose(name.lower(), backend) == BOOK.choose(name.upper(), backend)


_LIBRARY = re.compile(r"safe (plan|start)|library with a fused|keep the library|or the library's product|counts here\b")


@pytest.mark.parametrize("backend", backend_names())
def test_a_librarys_product_is_advised_only_where_the_track_counts_it(backend: BackendName) -> None:
    for device in DEVICES[backend]:
        for template in TEMPLATES:
            said = context(PROBLEMS[-1], backend, device)
            own = render(BOOK, template, said).text
            assert not _LIBRARY.search(own)
            assert "does not count" in own  # the rule, and where it matters the guidance
            in_any = render(BOOK, template, said.model_copy(update={"track": Track.ANY})).text
            if template.startswith(("gemm_rocblas", "conv", "generic")):
                assert _LIBRARY.search(in_any)
                assert "has to be a kernel of yours" not in in_any


_LOAD_INLINE = re.compile(r"load_inline|cpp_sources|cuda_sources|extra_\w*(cflags|ldflags|include)")


@pytest.mark.parametrize("key", [*FailureKind, *error_classes.KEYS])
def test_hints_for_hipkittens_do_not_speak_of_another_way_to_build(key: str) -> None:
    of_class = BOOK.class_hints((key,), "hipkittens")
    for hint in of_class or BOOK.hints(FailureKind(key), "hipkittens"):
        assert not _LOAD_INLINE.search(hint)


def test_no_shipped_problem_falls_to_the_default() -> None:
    assert [one.name for one in PROBLEMS if BOOK.choose(one.name, "cpp") == "generic.txt"] == []

"""What the next prompt says about a verdict, and the evaluator's rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompts_samples import CPU, MI300X, PROMPTS, ROOT, context, failed, problem, timed, verdict_of
from support.run_folder import compiled

from hkbench.profile import Choice, Profiler, plan, read_profile
from hkbench.prompts import Question, contract, load_prompts, reflect_on, render
from hkbench.prompts.error_classes import KEYS
from hkbench.records import (
    BEYOND_KERNELBENCH,
    DEMANDS,
    BackendName,
    DeviceKind,
    EvaluationSettings,
    Failure,
    FailureKind,
    KernelProfile,
    KernelResources,
    KernelUse,
    Mismatch,
    Owner,
    QuestionKind,
    Rule,
    RuleSet,
    ShapeKind,
    ShapeResult,
    Shapes,
    Stage,
    Status,
    Track,
    Trial,
)
from hkbench.registry import backend_names

BOOK = load_prompts(PROMPTS)
SWIGLU = problem(ROOT / "problems" / "level1" / "2_SwiGLU_fp32.py")


@pytest.mark.parametrize("kind", FailureKind)
@pytest.mark.parametrize("backend", backend_names())
def test_every_failure_kind_has_hints(kind: FailureKind, backend: BackendName) -> None:
    assert BOOK.hints(kind, backend)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("backend", backend_names())
def test_every_class_of_errors_has_a_hint(key: str, backend: BackendName) -> None:
    hints = BOOK.class_hints((key,), backend)
    assert hints
    assert sum(map(len, hints)) < 400


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_kind_renders_with_its_hints(kind: FailureKind) -> None:
    code = None if kind is FailureKind.NO_CODE else "class ModelNew: pass  # the parent"
    reflection = reflect_on(verdict_of(kind), code, 2, BOOK, "cpp")
    assert reflection.kind is kind
    text = render(BOOK, "elementwise.txt", context(SWIGLU, "cpp", CPU, reflection)).text
    assert "## Your attempt 2" in text
    for hint in BOOK.hints(kind, "cpp"):
        assert f"- {hint}" in text
    assert ("# the parent" in text) is (code is not None)
    if kind is not FailureKind.SLOW:
        assert f"({kind}): the judge saw {kind}" in text


def test_a_build_error_speaks_in_the_compilers_words() -> None:
    lines = ["[1/2] c++ " + "-DX " * 2000, "main.cpp:3:1: \x1b[31merror:\x1b[0m 'foo' undeclared", "  foo();"]
    detail = "\n".join(lines)
    failure = Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message="main.cpp:3:1", detail=detail)
    reflection = reflect_on(failed(failure), "x", 1, BOOK, "cpp")
    assert reflection.detail is not None
    assert "error: 'foo' undeclared\n  foo();" in reflection.detail
    assert len(reflection.detail) <= 4000
    assert (reflection.stage, reflection.speedup, reflection.candidate_ms) == (Stage.BUILD, None, None)


def test_the_hints_for_an_errors_class_come_before_the_general_ones() -> None:
    detail = "\n".join(
        [
            "In file included from cuda_sources:1:",
            "mma.cuh:220:23: error: static assertion failed: Unsupported shape combination",
            "cuda_sources:9:5: note: in instantiation of function template specialization 'mma<...>' requested here",
            *(f"    9 | {number}" for number in range(8)),
            "cuda_sources:12:1: note: the last line",
        ]
    )
    failure = Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message="mma.cuh:220:23", detail=detail)
    reflection = reflect_on(failed(failure), "x", 1, BOOK, "hipkittens")
    special = BOOK.class_hints(("shape_combination",), "hipkittens")
    assert list(reflection.hints) == special + BOOK.hints(FailureKind.BUILD_ERROR, "hipkittens")
    assert reflection.detail == detail  # short compiler output is shown as the build cut it
    text = render(BOOK, "elementwise.txt", context(SWIGLU, "cpp", CPU, reflection)).text
    assert f"- {special[0]}" in text


def test_a_symbol_missing_at_import_gets_the_linkers_hint() -> None:
    said = "ImportError: /x/ext.so: undefined symbol: _Z6launchPfi"
    failure = Failure(stage=Stage.LOAD, kind=FailureKind.LOAD_ERROR, message=said)
    hints = reflect_on(failed(failure), "x", 1, BOOK, "cpp").hints
    assert hints[:1] == tuple(BOOK.class_hints(("launcher_mismatch",), "cpp"))


def test_a_failure_without_a_compiler_gets_no_class_hints() -> None:
    said = "RuntimeError: a.hip:1:1: error: use of undeclared identifier 'n'"
    failure = Failure(stage=Stage.RUN, kind=FailureKind.RUNTIME_ERROR, message=said)
    hints = reflect_on(failed(failure), "x", 1, BOOK, "hip").hints
    assert list(hints) == BOOK.hints(FailureKind.RUNTIME_ERROR, "hip")


def test_a_traceback_keeps_its_end() -> None:
    detail = "Traceback\n" + "  File x\n" * 2000 + "TypeError: wrong argument"
    failure = Failure(stage=Stage.RUN, kind=FailureKind.RUNTIME_ERROR, message="TypeError", detail=detail)
    reflection = reflect_on(failed(failure), "x", 1, BOOK, "cpp")
    assert reflection.detail is not None
    assert reflection.detail.endswith("TypeError: wrong argument")
    assert len(reflection.detail) <= 4000


def test_a_mismatch_is_readable() -> None:
    mismatch = Mismatch(
        output="output[1]", index=(3, 17), expected=0.5, got=float("nan"), max_abs_error=0.25, max_rel_error=None,
        wrong_elements=12, elements=4096,
    )  # fmt: skip
    failure = Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message="values differ", mismatch=mismatch)
    said = reflect_on(failed(failure), "x", 1, BOOK, "cpp").mismatch
    assert said == (
        "output[1][3, 17]: expected 0.5, got nan; 12 of 4096 elements are wrong (0.293 %); largest absolute error 0.25"
    )


def test_trials_that_passed_point_to_a_race() -> None:
    failure = Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message="values differ")
    some = (Trial(seed=1, passed=True), Trial(seed=2, passed=False))
    said = reflect_on(failed(failure, some), "x", 1, BOOK, "cpp").message
    assert said is not None
    assert "1 of the 2 trials" in said
    none = reflect_on(failed(failure, some[1:]), "x", 1, BOOK, "cpp").message
    assert none == "values differ"


def test_a_crash_names_its_signal_once() -> None:
    failure = Failure(stage=Stage.RUN, kind=FailureKind.CRASH, message="the runner died", signal="SIGSEGV")
    assert reflect_on(failed(failure), "x", 1, BOOK, "cpp").message == "the runner died (signal SIGSEGV)"
    named = failure.model_copy(update={"message": "died of SIGSEGV"})
    assert reflect_on(failed(named), "x", 1, BOOK, "cpp").message == "died of SIGSEGV"


def test_a_slow_candidate_gets_times_profile_and_hints() -> None:
    kernels = [
        KernelUse(name="my_kernel", owner=Owner.CANDIDATE, calls=1, seconds=3e-3, share=0.75),
        KernelUse(name="aten::to\x1b[1m" + "x" * 300, owner=Owner.PYTORCH, calls=2, seconds=1e-3, share=0.25),
    ]
    kernels += [KernelUse(name=f"k{n}", owner=Owner.LIBRARY, calls=1, seconds=0.0, share=0.0) for n in range(9)]
    profile = KernelProfile(source="s", kernels=tuple(kernels), seconds=4e-3, findings=("25 % of the pass is a cast",))
    verdict = timed(0.5, profile).model_copy(update={
        "resources": (KernelResources(name="my_kernel", arch="gfx942", vgprs=96, vgpr_spills=4),),
    })  # fmt: skip
    reflection = reflect_on(verdict, "x = 1", 1, BOOK, "hip")
    assert (reflection.status, reflection.kind) == (Status.SLOW, FailureKind.SLOW)
    assert (reflection.baseline_ms, reflection.candidate_ms) == pytest.approx((2.0, 4.0))
    assert reflection.profile[0] == "my_kernel: 3 ms, 75% of the pass, 1 call, your kernel"
    assert reflection.profile[1].endswith("...: 1 ms, 25% of the pass, 2 calls, PyTorch's own")
    assert "\x1b" not in reflection.profile[1]
    assert reflection.profile[-2:] == ("3 more kernels", "25 % of the pass is a cast")
    assert reflection.resources == ("my_kernel (gfx942): 96 VGPRs, 4 VGPR spills",)
    text = render(BOOK, "elementwise.txt", context(SWIGLU, "cpp", CPU, reflection)).text
    assert "speed-up 0.5 (reference 2 ms, yours 4 ms)" in text
    assert "- my_kernel: 3 ms" in text
    assert "- my_kernel (gfx942): 96 VGPRs" in text


def test_a_fast_candidate_may_become_faster() -> None:
    reflection = reflect_on(timed(1.5), "x = 1", 1, BOOK, "cpp")
    assert (reflection.status, reflection.kind) == (Status.FAST, None)
    assert list(reflection.hints) == BOOK.hints(FailureKind.SLOW, "cpp")
    text = render(BOOK, "elementwise.txt", context(SWIGLU, "cpp", CPU, reflection)).text
    assert "speed-up 1.5" in text


def test_what_was_only_compiled_is_improved_by_the_compilers_figures() -> None:
    kernel = KernelResources(name="my_kernel", arch="gfx942", vgprs=96, scratch_bytes_per_lane=64, findings=("spills",))
    verdict = compiled("2_SwiGLU_fp32").model_copy(update={"resources": (kernel,)})
    reflection = reflect_on(verdict, "x = 1", 1, BOOK, "hip")
    assert (reflection.status, reflection.kind, reflection.hints) == (Status.COMPILED, None, ())
    text = render(BOOK, "elementwise.txt", context(SWIGLU, "hip", MI300X, reflection)).text
    assert "It compiles for gfx942, and nothing was run" in text
    assert "96 VGPRs, 64 bytes of scratch a lane; spills" in text


KERNELS = '''
from hipkittens_build import build
HIP = r"""
__global__ void k() {
  load(a, tile);
  mma_ABt(c, a, b, c);
}
"""
extension = build("k", HIP, {"dispatch": ["x"]})
'''


@pytest.mark.parametrize("kind", [FailureKind.RACE, FailureKind.OUT_OF_BOUNDS, FailureKind.UNSUPPORTED])
def test_what_an_emulated_gpu_saw_stands_beside_the_lines_it_names(kind: FailureKind) -> None:
    message = "k: hip_source:4 (v_mfma) uses what the load of hip_source:3 (ds_read) brings"
    more = "\n".join(f"k: hip_source:{number} (v_mfma) as well" for number in (99, *range(4, 40)))
    failure = Failure(stage=Stage.RUN, kind=kind, message=message, detail=more)
    reflection = reflect_on(failed(failure), KERNELS, 1, BOOK, "hipkittens")
    assert reflection.message is not None and message in reflection.message and reflection.detail is not None
    shown = reflection.detail.splitlines()
    assert shown[:2] == ["hip_source:4: mma_ABt(c, a, b, c);", "hip_source:3: load(a, tile);"]
    assert len([line for line in shown if line.endswith("as well")]) < 8
    assert reflection.hints == tuple(BOOK.hints(kind, "hipkittens"))


@pytest.mark.parametrize("candidate", [None, "class (", KERNELS + KERNELS.replace("HIP", "OTHER")])
def test_no_line_is_shown_where_it_is_not_known_which(candidate: str | None) -> None:
    failure = Failure(stage=Stage.RUN, kind=FailureKind.RACE, message="k: hip_source:4 (v_mfma)")
    assert reflect_on(failed(failure), candidate, 1, BOOK, "hipkittens").detail is None


def test_what_is_correct_on_an_emulated_gpu_is_improved_by_the_compilers_figures() -> None:
    verdict = compiled("2_SwiGLU_fp32").model_copy(update={"status": Status.EMULATED})
    reflection = reflect_on(verdict, "x = 1", 1, BOOK, "hip")
    assert (reflection.kind, reflection.hints) == (None, ())
    text = render(BOOK, "elementwise.txt", context(SWIGLU, "hip", MI300X, reflection)).text
    assert "correct on an emulated gfx942" in text and "nothing was run" not in text
    asked = context(SWIGLU, "hip", MI300X, reflection).model_copy(update={"question": Question(shape="{}")})
    text = render(BOOK, BOOK.question(QuestionKind.OPTIMISE), asked).text
    assert "correct on an emulated gfx942" in text and "Speed-up" not in text


def test_a_judge_is_told_that_nothing_was_measured() -> None:
    reflection = reflect_on(compiled("2_SwiGLU_fp32"), "x = 1", 1, BOOK, "hip")
    asked = context(SWIGLU, "hip", MI300X, reflection).model_copy(update={"question": Question(shape="{}")})
    text = render(BOOK, BOOK.question(QuestionKind.OPTIMISE), asked).text
    assert text.startswith("You review a kernel (hip) that compiles for gfx942. Nothing was run, so there is no time")
    assert "to become faster by what the code and the compiler's figures show. Find what limits it" in text
    assert "Speed-up" not in text and "before you name a bottleneck. A change" in text
    known = context(SWIGLU, "hip", MI300X, reflect_on(timed(1.5), "x = 1", 1, BOOK, "hip"))
    text = render(
        BOOK, BOOK.question(QuestionKind.OPTIMISE), known.model_copy(update={"question": asked.question})
    ).text
    assert text.startswith("You review a correct kernel (hip) that is to become faster. Find what limits it")
    assert "Speed-up 1.5" in text and "before you name a bottleneck. A change" in text


def test_the_rules_carry_the_evaluators_numbers() -> None:
    said = contract(EvaluationSettings(trials=7), {"float32": 1e-4, "bfloat16": 0.016}, DeviceKind.CUDA, "triton")
    assert "7 trials" in said
    assert "float32 0.0001, bfloat16 0.016" in said
    assert "kernels are written in Triton" in said
    assert "the device's clock" in said
    on_cpu = contract(EvaluationSettings(trials=3), {}, DeviceKind.CPU, "cpp")
    assert "wall clock" in on_cpu
    assert "stream" not in on_cpu
    assert "rtol" not in on_cpu


def test_the_rules_say_whether_other_shapes_count() -> None:
    shapes = ({"rows": 1}, {"rows": 7, "columns": 33})
    one = contract(EvaluationSettings(), {}, DeviceKind.CUDA, "cuda", shapes)
    assert "no other shape counts" in one and "columns = 33" not in one
    all_of_them = contract(EvaluationSettings(require_shapes=True), {}, DeviceKind.CUDA, "cuda", shapes)
    assert "those with rows = 1; rows = 7, columns = 33" in all_of_them and "hidden" in all_of_them


def test_shapes_that_failed_are_named_where_they_count_and_hidden_ones_are_not() -> None:
    died = Failure(stage=Stage.RUN, kind=FailureKind.CRASH, message="died")
    results = (
        ShapeResult(constants={"rows": 1}, kind=ShapeKind.NAMED, failure=died),
        ShapeResult(constants={"rows": 771}, kind=ShapeKind.RAGGED, failure=died),
        ShapeResult(constants={"rows": 8}, kind=ShapeKind.NAMED),
    )
    shapes = Shapes(seed=1, required=True, results=results)
    wrong = failed(Failure(stage=Stage.SHAPES, kind=FailureKind.SHAPES, message="at rows=771"))
    said = reflect_on(wrong.model_copy(update={"shapes": shapes}), "x = 1", 1, BOOK, "cuda")
    assert said.message is not None and said.hints
    assert "rows=1: crash: died" in said.message and "1 of 3 further shapes" in said.message
    assert "771" not in said.message and "rows=8" not in said.message


def test_every_rule_of_fair_play_is_said_and_follows_the_settings() -> None:
    said = contract(EvaluationSettings(), {}, DeviceKind.CUDA, "cuda")
    assert all(f"- {rule}: " in said for rule in Rule)
    assert "the kernels in this file do the operation" in said
    other = contract(EvaluationSettings(track=Track.ANY, run_timeout=7.5), {}, DeviceKind.CUDA, "cuda")
    assert "library calls (rocBLAS, cuBLAS, MIOpen, cuDNN, oneDNN) count" in other
    assert "7.5 s" in other


def test_what_ncu_wrote_reaches_the_prompt_as_three_findings_at_most(tmp_path: Path) -> None:
    source = ROOT / "tests" / "unit" / "profile" / "data" / "ncu_raw_symbols.csv"
    (tmp_path / "ncu.csv").write_text(source.read_text())
    planned = plan(Choice(Profiler.NCU, "ncu"), "sm_90", tmp_path, ("python", "one.py"), forwards=2)
    profile = read_profile(planned, lambda _: Owner.CANDIDATE)
    assert 1 <= len(profile.findings) <= 3
    reflection = reflect_on(timed(0.5, profile), "class ModelNew: pass", 1, BOOK, "cuda")
    text = render(BOOK, "elementwise.txt", context(SWIGLU, "cuda", CPU, reflection)).text
    for said in (*profile.findings, *(use.name for use in profile.kernels)):
        assert f"- {said}" in text


@pytest.mark.parametrize("kind", DEMANDS)
def test_a_refusal_quotes_its_rule_its_line_and_the_change(kind: FailureKind) -> None:
    failure = Failure(stage=Stage.COMPARE, kind=kind, message="what happened", line=7)
    message = reflect_on(failed(failure), "class ModelNew: pass", 1, BOOK, "cuda").message
    assert message is not None
    assert f"(fair play: {DEMANDS[kind].rule}, line 7)" in message and DEMANDS[kind].change in message


def test_by_kernelbenchs_rules_a_prompt_asks_for_no_more() -> None:
    ours = contract(EvaluationSettings(), {"float32": 1e-4}, DeviceKind.CUDA, "cuda")
    theirs = contract(EvaluationSettings(rules=RuleSet.KERNELBENCH), {"float32": 1e-4}, DeviceKind.CUDA, "cuda")
    assert all((f"- {rule}: " in theirs) is (rule not in BEYOND_KERNELBENCH) for rule in Rule)
    assert "torch.allclose" in theirs and "torch.allclose" not in ours
    assert "heavy tails" in ours and "heavy tails" not in theirs

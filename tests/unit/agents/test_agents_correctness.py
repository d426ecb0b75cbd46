"""What the correctness reasoner's answers come to: constants, a diff, a hint; and which failures are the same."""

from __future__ import annotations

import pytest

from hkbench.agents.correctness_reasoner import CorrectnessAdvice, Trial, change, hint, signature
from hkbench.llm.structured import read_answer
from hkbench.records import Failure, FailureKind, Mismatch, Stage

SOURCE = "BLOCK = 128\nname = 'x'\nkernel[grid](x, BLOCK=BLOCK, num_warps=8)\n"


def advice(**said: object) -> CorrectnessAdvice:
    return CorrectnessAdvice.model_validate({"diagnosis": "a fault", **said})


def test_constants_are_written_by_name_and_keywords_too() -> None:
    made, refused = change(advice(constants="BLOCK=64, num_warps: 4"), SOURCE, "triton")
    assert made is not None and refused is None and made.by_constants
    assert made.source == SOURCE.replace("128", "64").replace("num_warps=8", "num_warps=4")


@pytest.mark.parametrize("constants", ["WARPS=4", "BLOCK=0", "BLOCK=99999", "make it smaller", "name=3", "BLOCK=128"])
def test_what_is_no_constant_of_the_kernel_changes_nothing(constants: str) -> None:
    made, refused = change(advice(constants=constants), SOURCE, "triton")
    assert made is None and refused is not None and constants in refused


def test_a_constant_that_is_none_leaves_the_diff() -> None:
    made, _ = change(advice(constants="WARPS=4", diff="@@ -1 +1 @@\n-BLOCK = 128\n+BLOCK = 32\n"), SOURCE, "triton")
    assert made is not None and not made.by_constants and made.source.startswith("BLOCK = 32\n")


def test_a_diff_may_be_fenced_and_one_that_does_not_apply_is_said() -> None:
    made, _ = change(advice(diff="```diff\n@@ -1 +1 @@\n-BLOCK = 128\n+BLOCK = 32\n```"), SOURCE, "triton")
    assert made is not None and made.by == "patch"
    made, refused = change(advice(diff="@@ -1 +1 @@\n-BLOCK = 7\n+BLOCK = 32\n"), SOURCE, "triton")
    assert made is None and refused is not None and "does not apply" in refused


def test_a_hint_alone_proposes_nothing() -> None:
    assert change(advice(hint="sum over rows"), SOURCE, "triton") == (None, None)
    said = hint(advice(hint="sum over rows"), "", (Trial(change="patch", outcome="crash"),), "it does not apply")
    assert said is not None
    assert said.text == "a fault\nsum over rows\nNote: it does not apply.\nTried in vain: patch: crash"


def test_an_answer_may_give_its_constants_as_an_object_and_leave_fields_out() -> None:
    read = read_answer('{"diagnosis": "d", "constants": {"BLOCK": 64}, "diff": null}', CorrectnessAdvice)
    assert isinstance(read.advice, CorrectnessAdvice) and read.advice.constants == "BLOCK=64"


def wrong(share: float, message: str = "wrong") -> Failure:
    place = Mismatch(
        output="o", index=(0,), expected=1.0, got=2.0, max_abs_error=1.0, max_rel_error=1.0,
        wrong_elements=int(1000 * share), elements=1000,
    )  # fmt: skip
    return Failure(stage=Stage.COMPARE, kind=FailureKind.WRONG_VALUES, message=message, mismatch=place)


def test_failures_are_the_same_by_fingerprint_and_by_how_much_is_wrong() -> None:
    assert signature(wrong(0.9)) == signature(wrong(0.8, "wrong elsewhere"))
    assert signature(wrong(0.9)) != signature(wrong(0.02))
    crash = Failure(stage=Stage.RUN, kind=FailureKind.CRASH, message="SIGSEGV at 0x7f00")
    assert signature(crash) == signature(crash.model_copy(update={"message": "SIGSEGV at 0x1234"}))

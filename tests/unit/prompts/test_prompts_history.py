"""What a prompt says of the attempts before the last one."""

from __future__ import annotations

from hashlib import sha256

from prompts_samples import CPU, PROMPTS, ROOT, context, problem, timed, verdict_of

from hkbench.prompts import Reflection, Tried, load_prompts, reflect_on, render, with_history
from hkbench.records import Candidate, FailureKind, SampleKey, Verdict

BOOK = load_prompts(PROMPTS)
SWIGLU = problem(ROOT / "problems" / "level1" / "2_SwiGLU_fp32.py")


def tried(attempt: int, code: str | None, verdict: Verdict) -> Tried:
    key = SampleKey(problem=SWIGLU.name, attempt=attempt, sample=1)
    made = None
    if code is not None:
        made = Candidate(source=code, sha256=sha256(code.encode()).hexdigest(), key=key)
    return Tried(key=key, candidate=made, verdict=verdict)


def reflected(*attempts: Tried, best: Tried | None = None, sent_before: SampleKey | None = None) -> Reflection:
    last = attempts[-1]
    code = last.candidate.source if last.candidate is not None else None
    reflection = reflect_on(last.verdict, code, last.key.attempt, BOOK, "cpp")
    return with_history(reflection, attempts, best, sent_before)


def text(reflection: Reflection) -> str:
    return render(BOOK, "elementwise.txt", context(SWIGLU, "cpp", CPU, reflection)).text


SLOW = tried(1, "the first kernel", timed(0.8))
BROKEN = tried(2, "the second kernel", verdict_of(FailureKind.BUILD_ERROR))


def test_a_single_attempt_has_no_history() -> None:
    reflection = reflected(SLOW, best=SLOW)
    assert (reflection.history, reflection.best, reflection.sent_before) == ((), None, None)
    assert "attempts so far" not in text(reflection)


def test_what_an_attempt_broke_is_said_and_the_best_kernel_is_shown() -> None:
    reflection = reflected(SLOW, BROKEN, best=SLOW)
    assert reflection.history == (
        "attempt 1: correct, speed-up 0.80x",
        "attempt 2: build_error at the stage run; it broke what worked in attempt 1",
    )
    said = text(reflection)
    assert "- attempt 1: correct, speed-up 0.80x\n" in said
    assert "The best so far is attempt 1 (correct, speed-up 0.80x)" in said
    assert "the first kernel" in said and "the second kernel" in said


def test_the_best_kernel_is_not_shown_twice() -> None:
    faster = tried(2, "the second kernel", timed(0.9))
    assert reflected(SLOW, faster, best=faster).best is None
    again = tried(2, "the first kernel", timed(0.8))
    assert reflected(SLOW, again, best=SLOW).best is None


def test_a_kernel_that_failed_is_no_best_one() -> None:
    other = tried(1, None, verdict_of(FailureKind.NO_CODE))
    reflection = reflected(other, BROKEN, best=other)
    assert reflection.best is None
    assert reflection.history[1] == "attempt 2: build_error at the stage run"


def test_code_that_was_sent_before_is_named() -> None:
    again = tried(3, "the first kernel", timed(0.8))
    reflection = reflected(SLOW, BROKEN, again, best=SLOW, sent_before=SLOW.key)
    assert reflection.history[2] == "attempt 3: correct, speed-up 0.80x, the code of attempt 1 again"
    assert "This is the code of attempt 1 again" in text(reflection)

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from support.run_folder import RunFolder, correct, incorrect

from hkbench.monitor.files import SampleFiles
from hkbench.monitor.panes import VIEWS, Look, show
from hkbench.records import (
    ExtractionRule,
    Failure,
    FailureKind,
    KernelProfile,
    KernelResources,
    KernelUse,
    Mismatch,
    Reply,
    SampleKey,
    Stage,
    StageTime,
    Usage,
    Verdict,
)
from hkbench.records.profile import Owner

KEY = SampleKey(problem="1_ReLU", attempt=1, sample=1)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path)
    run.start()
    return run


def shown(run: RunFolder, view: str, key: SampleKey = KEY, base: SampleKey | None = None) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    with console.capture() as capture:
        console.print(show(view, Look(SampleFiles(run.paths, key), base, width=100)))
    return capture.get()


def verdict_of(run: RunFolder, verdict: Verdict) -> None:
    run.judged(run.asked(KEY.problem, KEY.attempt, KEY.sample), verdict)


@pytest.mark.parametrize("view", [view for view in VIEWS if view != "diff"])
def test_what_is_not_there_is_said_in_a_line(run: RunFolder, view: str) -> None:
    assert shown(run, view).startswith("There is no 1_ReLU/")


def test_a_failure_with_its_mismatch_and_stages(run: RunFolder) -> None:
    mismatch = Mismatch(
        output="output", index=(3, 7), expected=1.0, got=1.5, max_abs_error=0.5, max_rel_error=None,
        wrong_elements=4, elements=64,
    )  # fmt: skip
    failure = Failure(
        stage=Stage.COMPARE, kind=FailureKind.ALIASED_OUTPUT, message="\x1b[31mtwo\nlines", mismatch=mismatch, trial=2
    )
    stages = (StageTime(stage=Stage.BUILD, seconds=12.0), StageTime(stage=Stage.RUN, seconds=float("inf")))
    verdict_of(run, incorrect("1_ReLU").model_copy(update={"failure": failure, "stages": stages}))
    lines = [line.rstrip() for line in shown(run, "verdict").splitlines()]
    assert "failure   aliased_output in stage compare (rule own-memory), trial 2" in lines
    assert "message   two" in lines
    assert "mismatch  output[3, 7]: expected 1.0, got 1.5, absolute error 0.5, 4 of 64 elements wrong" in lines
    assert "build  12.0 s  " + "━" * 30 in lines
    assert not any("\x1b" in line for line in lines)


def test_a_correct_verdict_with_its_call(run: RunFolder) -> None:
    verdict_of(run, correct("1_ReLU", 2.0))
    reply = Reply(text="", model="\x1b[2Jm", usage=Usage(input=10, output=5), seconds=3.0, finish_reason="length")
    run.store_exchange(KEY, reply)
    folder = run.paths.problem("1_ReLU").sample(1, 1)
    folder.extraction.write_text(f'{{"rule": "{ExtractionRule.UNCLOSED_BLOCK}", "note": "never closed"}}')
    text = shown(run, "verdict")
    assert "speed-up   2.00x [1.80, 2.20]" in text
    assert "reply      m, 10 input tokens, 5 output tokens, 3 s, finish reason: length" in text
    assert "code       taken from: a code block that was never closed: never closed" in text


def test_damaged_files_are_said_in_a_line(run: RunFolder) -> None:
    folder = run.paths.problem("1_ReLU").sample(1, 1)
    folder.root.mkdir(parents=True)
    folder.result.write_text("{")
    assert "1_ReLU/attempt_1/sample_1/result.json is not a verdict" in shown(run, "verdict")
    folder.code.mkdir()
    assert "code.py cannot be read" in shown(run, "code")


def test_a_name_that_no_file_can_have_is_said_in_a_line(run: RunFolder) -> None:
    key = SampleKey(problem="1" * 300, attempt=1, sample=1)
    assert "cannot be read" in shown(run, "code", key)


@pytest.mark.parametrize(("name", "view"), [("code.py", "code"), ("response.txt", "reply")])
@pytest.mark.parametrize("size", [10, 100_000])
def test_escapes_of_a_model_are_gone(run: RunFolder, name: str, view: str, size: int) -> None:
    folder = run.paths.problem("1_ReLU").sample(1, 1)
    folder.root.mkdir(parents=True)
    text = "x = '\x1b]0;owned\x07\x1b[2J[bold]\u202e'\n\xff"
    (folder.root / name).write_bytes(text.encode("latin-1", errors="ignore") + b"\n" + b"# more\n" * (size // 7))
    found = shown(run, view)
    assert not set("\x1b\x07\u202e") & set(found)
    assert "[bold]" in found


def test_a_file_that_is_too_long_is_cut_and_says_so(run: RunFolder) -> None:
    folder = run.paths.problem("1_ReLU").sample(1, 1)
    folder.root.mkdir(parents=True)
    folder.response.write_text("word " * 300_000)
    text = SampleFiles(run.paths, KEY).text(folder.response)
    assert text.endswith("[cut after 1 MiB]")
    assert len(text) < 1_100_000


def test_output_has_the_tools_words_and_the_candidates(run: RunFolder) -> None:
    failure = Failure(stage=Stage.BUILD, kind=FailureKind.BUILD_ERROR, message="short", detail="a.cpp:1: \x1b[1merror")
    resources = (KernelResources(name="scale", arch="gfx942", vgprs=40, findings=("spills",)),)
    changes = {"failure": failure, "output": "hello\x9b31m", "resources": resources}
    verdict_of(run, incorrect("1_ReLU").model_copy(update=changes))
    lines = shown(run, "output").splitlines()
    assert lines[:2] == ["build: build_error", "a.cpp:1: error"]
    assert "scale (gfx942): vgprs 40" in lines and "  spills" in lines
    assert lines[-2:] == ["printed by the candidate", "hello"]


def test_timing_has_a_histogram_of_each_side(run: RunFolder) -> None:
    verdict_of(run, correct("1_ReLU", 2.0))
    text = shown(run, "timing")
    assert "baseline: median 1.00 ms [1.00 ms, 1.00 ms] of 3 runs, perf_counter" in text
    assert "candidate: median 500 µs" in text
    assert "█" in text


def test_a_refused_candidate_that_was_never_timed_has_no_histogram(run: RunFolder) -> None:
    verdict_of(run, incorrect("1_ReLU"))
    assert shown(run, "timing").strip() == "Not timed (failed before timing)."


def test_profile_lists_kernels(run: RunFolder) -> None:
    kernel = KernelUse(name="void \x1b[2Jscale<float>()", owner=Owner.CANDIDATE, calls=2, seconds=1e-3, share=0.9)
    profile = KernelProfile(source="a profiler", kernels=(kernel,), seconds=1.1e-3, findings=("it is slow",))
    verdict_of(run, correct("1_ReLU", 0.5).model_copy(update={"profile": profile}))
    text = shown(run, "profile")
    assert "a profiler: 1.10 ms a pass" in text
    assert "90 %  1.00 ms      2  candidate  void scale<float>()" in text
    assert "- it is slow" in text


def test_a_diff_of_the_same_code_and_of_a_failure(run: RunFolder) -> None:
    other = SampleKey(problem="1_ReLU", attempt=2, sample=1)
    for key, verdict in ((KEY, incorrect("1_ReLU")), (other, correct("1_ReLU", 1.5))):
        run.judged(run.asked(key.problem, key.attempt, key.sample), verdict)
        run.paths.problem("1_ReLU").sample(key.attempt, key.sample).code.write_text("same\n")
    text = shown(run, "diff", other, KEY)
    assert "1.1 build_error -> 2.1 1.50x" in text
    assert "The code is the same." in text


def test_what_the_prompt_of_a_diff_told_of(run: RunFolder) -> None:
    """The failure, the profile's findings, else the times and the longest kernel; nothing of a marked sample."""
    later = SampleKey(problem=KEY.problem, attempt=2, sample=1)
    for key in (KEY, later):
        folder = run.paths.problem(key.problem).sample(key.attempt, key.sample)
        folder.root.mkdir(parents=True, exist_ok=True)
        folder.code.write_text(f"speed = {key.attempt}\n")

    def told() -> str:
        look = Look(SampleFiles(run.paths, later), KEY, asked=True, width=100)
        console = Console(file=io.StringIO(), width=100, color_system=None)
        with console.capture() as capture:
            console.print(show("diff", look))
        return capture.get()

    assert "Feedback" not in told()  # there is no verdict
    verdict_of(run, incorrect("1_ReLU", message="error: \x1b[2Jno semicolon"))
    assert "Feedback in this prompt: build_error: error: no semicolon" in told()
    verdict_of(run, correct("1_ReLU", 0.5))
    assert "Feedback in this prompt: correct but slow, 2.00 ms vs 1.00 ms of the baseline\n" in told()
    use = KernelUse(name="gelu_kernel", seconds=1.9e-3, share=0.95, calls=1, owner=Owner.CANDIDATE)
    profile = KernelProfile(source="torch", seconds=2e-3, kernels=(use,))
    verdict_of(run, correct("1_ReLU", 0.5).model_copy(update={"profile": profile}))
    assert "correct but slow, 2.00 ms vs 1.00 ms of the baseline; 95 % of the time in" in told()
    profile = profile.model_copy(update={"findings": ("two launches", "no reuse")})
    verdict_of(run, correct("1_ReLU", 0.5).model_copy(update={"profile": profile}))
    assert "Feedback in this prompt: two launches\nFeedback in this prompt: no reuse\n" in told()
    assert "Feedback" not in shown(run, "diff", later, KEY)


def test_cpp_in_a_string_is_coloured_as_cpp(run: RunFolder) -> None:
    """A keyword of C++ is not in the colour of the string that holds it."""
    folder = run.paths.problem("1_ReLU").sample(1, 1)
    folder.root.mkdir(parents=True)
    folder.code.write_text('source = r"""\n#include <hip/hip_runtime.h>\nstruct Row {};\n"""\nname = "struct Row"\n')
    console = Console(file=io.StringIO(), width=100)
    found = [
        (segment.text, segment.style.color.name if segment.style and segment.style.color else None)
        for line in console.render_lines(show("code", Look(SampleFiles(run.paths, KEY), width=100)))
        for segment in line
    ]
    in_cpp = next(colour for text, colour in found if text == "struct")
    in_python = next(colour for text, colour in found if "struct Row" in text)
    assert in_cpp != in_python


def test_the_prompt_has_its_system_message(run: RunFolder) -> None:
    problem = run.paths.problem(KEY.problem)
    problem.root.mkdir(parents=True, exist_ok=True)
    problem.prompt(KEY.attempt).write_text("write a kernel")
    assert "system message" not in shown(run, "prompt")
    problem.system(KEY.attempt).write_text("you know HIP")
    assert [line.strip() for line in shown(run, "prompt").split("\n") if line.strip()] == [
        "[system message]", "you know HIP", "[user message]", "write a kernel",
    ]  # fmt: skip

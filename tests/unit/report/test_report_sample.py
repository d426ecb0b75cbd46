"""The parts of one sample as text."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from support.run_folder import correct, incorrect

from hkbench.records import EvaluationSettings, KernelProfile, KernelUse, Owner, SampleKey
from hkbench.report.sample import build_lines, diff_lines, histogram, profile_lines, timing_lines
from hkbench.store.sample import WholeSample

KEY = SampleKey(problem="1_ReLU", attempt=2, sample=1)
PARENT = SampleKey(problem="1_ReLU", attempt=1, sample=2)
SAMPLE = WholeSample(
    key=KEY, parent=PARENT, prompt=None, reply=None, code="a\nc\n", parent_code="a\nb\n", rule=None, note=None,
    verdict=None, corrupt=(),
)  # fmt: skip


def test_every_sample_is_in_one_bin() -> None:
    samples = [1.0 + 0.01 * i for i in range(57)]
    bins = histogram(samples, bins=4)
    assert [one.count for one in bins] == [14, 14, 14, 15]
    assert (bins[0].low, bins[-1].high) == (samples[0], samples[-1])
    assert all(a.high == b.low for a, b in itertools.pairwise(bins))


def test_a_long_tail_has_a_bin_of_its_own() -> None:
    bins = histogram([1.0 + 0.001 * i for i in range(99)] + [50.0], bins=5)
    assert len(bins) == 6
    assert sum(one.count for one in bins) == 100
    assert bins[-2].high < 1.1 and bins[-1].high == 50.0
    assert max(one.count for one in bins[:-1]) <= 20


@pytest.mark.parametrize("samples", [[2.0], [2.0, 2.0, 2.0]])
def test_equal_samples_are_one_bin(samples: list[float]) -> None:
    (only,) = histogram(samples)
    assert (only.low, only.high, only.count) == (2.0, 2.0, len(samples))


def test_nearly_all_equal() -> None:
    bins = histogram([1.0] * 99 + [2.0])
    assert sum(one.count for one in bins) == 100


def test_the_diff_names_both_samples() -> None:
    assert diff_lines(SAMPLE) == ["--- 1/2", "+++ 2/1", "@@ -1,2 +1,2 @@", " a", "-b", "+c"]


def test_no_diff_is_said_to_be_none() -> None:
    assert diff_lines(replace(SAMPLE, code="a\nb\n")) == ["the same code as 1/2"]
    assert diff_lines(replace(SAMPLE, code=None)) == ["the reply holds no code"]
    assert "no parent" in diff_lines(replace(SAMPLE, parent=None))[0]
    assert diff_lines(replace(SAMPLE, parent_code=None)) == ["the parent, 1/2, has no code"]


def test_escapes_do_not_get_into_a_diff() -> None:
    lines = diff_lines(replace(SAMPLE, code="a\n\x1b]0;title\x07c\n"))
    assert lines[-1] == "+c"


def test_timing() -> None:
    lines = timing_lines(correct("1_ReLU", 2.0))
    assert lines[0] == "speed-up   2.00x [1.80, 2.20]"
    assert any(line.startswith("baseline   1.00 ms [1.00 ms, 1.00 ms]; 3 runs") for line in lines)
    assert timing_lines(incorrect("1_ReLU")) == ["not timed"]


def test_build_shows_the_tools_words() -> None:
    verdict = incorrect("1_ReLU")
    assert verdict.failure is not None
    failure = verdict.failure.model_copy(update={"detail": "one\n\x1b[31mtwo"})
    lines = build_lines(verdict.model_copy(update={"failure": failure, "output": "hello"}))
    assert lines == [
        "build_error at build: error: expected ';'", "| one", "| two", "printed by the candidate:", "| hello",
    ]  # fmt: skip
    assert build_lines(correct("1_ReLU", 2.0)) == ["nothing is recorded of the build"]


def test_profile() -> None:
    use = KernelUse(name="relu", owner=Owner.CANDIDATE, calls=2, seconds=3e-6, share=0.75, grid=(4, 2, 1), vgprs=16)
    profile = KernelProfile(source="ncu", kernels=(use,), seconds=4e-6, findings=("slow",), notes=("a note",))
    slow = correct("1_ReLU", 0.5)
    text = "\n".join(profile_lines(slow.model_copy(update={"profile": profile}), EvaluationSettings()))
    assert "relu    candidate      2  3.00 µs  75.0 %" in text
    assert "relu: grid 4x2x1, vgprs 16" in text
    assert text.endswith("finding: slow\nnote: a note")
    fast, both = correct("1_ReLU", 2.0), EvaluationSettings(profile_fast=True)
    assert profile_lines(fast, EvaluationSettings()) == ["no profile (only made for slow kernels)"]
    assert profile_lines(fast, both) == profile_lines(slow, both) == ["no profile"]
    assert profile_lines(incorrect("1_ReLU"), both) == ["no profile (only made for correct kernels)"]

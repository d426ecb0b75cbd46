"""The title of a run and the sentence of its result."""

from __future__ import annotations

import pytest
from support.run_folder import FACTS, run_config

from hkbench.headline import bar, device_name, own_kernels, sentence, title
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, Outcome, Ownership, Track

H100 = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="NVIDIA H100 80GB HBM3")


def test_the_title_names_model_language_device_problems_samples_and_track() -> None:
    config = run_config(("1_ReLU", "2_GELU"), samples=1, attempts=3).model_copy(
        update={"backend": "cuda", "device": DeviceKind.CUDA, "evaluation": EvaluationSettings(track=Track.ANY)}
    )
    facts = FACTS.model_copy(update={"device": H100, "problem_set": "KernelBench"})
    assert title(config, facts) == "test-model · CUDA on H100 80GB · KernelBench L1, 2 problems · 1x3 · track any"
    assert title(config) == "test-model · CUDA on NVIDIA GPU · L1, 2 problems · 1x3 · track any"


def test_the_title_says_what_was_not_a_model_or_not_run() -> None:
    config = run_config().model_copy(update={"model": "replay", "replay": "examples/replies/reflect.toml"})
    assert title(config).startswith("recorded replies · C++ on CPU · L1, 1 problem · ")
    named = config.model_copy(update={"model": "NAME", "compiled_for": "gfx942", "backend": "hip"})
    assert title(named).startswith("NAME (recorded replies) · HIP compiled for gfx942, not run · ")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 80GB"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("AMD Instinct MI300X OAM", "MI300X"),
        ("AMD EPYC 7763 64-Core Processor", "EPYC 7763"),
        ("Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz", "Xeon Platinum 8481C"),
        ("AMD", "AMD"),
    ],
)
def test_a_device_has_a_short_name(name: str, short: str) -> None:
    assert device_name(name) == short


def test_the_sentence_counts_the_classes_over_the_judged_problems() -> None:
    found = {Outcome.FASTER: 6, Outcome.ON_PAR: 11, Outcome.SLOWER: 2, Outcome.WRONG: 20, Outcome.REFUSED: 1}
    whole = "Faster than PyTorch on 6 of 40 problems (15 %, 7 to 29 %); on a par on 11; slower on 2; correct on 19."
    assert sentence(found) == whole
    assert " of 40 judged problems (15 %, " in sentence({**found, Outcome.NOT_JUDGED: 60})
    assert " on 0 of 1 problem (" in sentence({Outcome.WRONG: 1})


def test_a_run_without_a_measurement_has_a_sentence_too() -> None:
    assert "3 of 4 problems compiles" in sentence({Outcome.COMPILED: 3, Outcome.WRONG: 1})
    assert "No problem of 2" in sentence({Outcome.NOT_JUDGED: 2})
    assert "no problem" in sentence({})


def test_a_bar_has_its_width_and_keeps_the_proportions() -> None:
    assert bar({Outcome.WRONG: 1, Outcome.FASTER: 2}, 60) == [(Outcome.FASTER, 40), (Outcome.WRONG, 20)]
    thirds = bar(dict.fromkeys((Outcome.FASTER, Outcome.SLOWER, Outcome.WRONG), 1), 10)
    assert sorted(columns for _, columns in thirds) == [3, 3, 4]
    assert bar({Outcome.FASTER: 0}, 10) == []


def test_it_is_said_whose_kernels_the_faster_ones_are() -> None:
    own = (Ownership.OWN, "cuda")
    assert own_kernels([], "cuda") is None
    assert own_kernels([own, own], "cuda") is None
    said = own_kernels([own, (Ownership.NOT_OWN, "cuda"), (None, None)], "cuda")
    assert said == "Of these with own kernels: 1 of 3 (1 not profiled)."
    open_ends = [(Ownership.NOT_ESTABLISHED, "cuda"), own, (None, None)]
    assert own_kernels(open_ends, "cuda") == ("Of these with own kernels: 1 of 3 (1 not established, 1 not profiled).")
    assert "not profiled" in (own_kernels([(None, "cuda")], "cuda") or "")
    assert own_kernels([own, (Ownership.OWN, "cpp")], "cuda") == "Not written in CUDA as asked: 1 in C++."

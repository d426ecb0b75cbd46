"""prompts/categories.toml: what was agreed of it, and how the shipped problems are classified."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from hkbench.analysis.facts import problem_facts
from hkbench.categories import GENERIC, CategoryBook, Situation, first, key_metrics, load_categories
from hkbench.cli.arguments import PROMPTS
from hkbench.device_kinds import model_of
from hkbench.problems import find_problems
from hkbench.problems.select import SHIPPED
from hkbench.profile import ncu
from hkbench.profile.derived import nvidia_figures
from hkbench.profile.dispatches import profile_of
from hkbench.records import BackendName, DeviceFacts, DeviceKind, OperatorClass, Owner, SizeSet

COMPUTE, MEMORY = "compute-intensive", "memory-intensive"
FUSED_COMPUTE, FUSED_MEMORY = "fusion-compute", "fusion-memory"
#: The forty at their full sizes, as looked through by hand (docs/categories.md).
FORTY = {
    COMPUTE: {17, 19, 20, 22, 23, 24, 25, 27, 28},
    FUSED_COMPUTE: {8, 38, 40},
    MEMORY: {9, 10, 11, 13, 14, 15, 16, 18, 21, 29, 30, 31, 32, 36},
    FUSED_MEMORY: {1, 2, 3, 4, 5, 6, 7, 12, 26, 33, 34, 35, 37, 39},
}


@cache
def book() -> CategoryBook:
    return load_categories(PROMPTS / "categories.toml")


def test_the_categories() -> None:
    assert [category.name for category in book().categories] == [
        COMPUTE, FUSED_COMPUTE, FUSED_MEMORY, MEMORY, GENERIC,
    ]  # fmt: skip


def test_each_stage_names_metrics_of_each_kind_of_device() -> None:
    for category in book().categories:
        for stage in category.stages:
            measured = {kind for kind in DeviceKind.known() if model_of(kind).metrics}
            assert set(stage.metrics) == measured, (category.name, stage.name)
            assert all(2 <= len(stage.metrics[kind]) <= 3 for kind in (DeviceKind.ROCM, DeviceKind.CUDA))
            assert 1 <= len(stage.metrics[DeviceKind.CPU]) <= 3


ASKED = [
    ("hip", DeviceKind.ROCM), ("hipkittens", DeviceKind.ROCM), ("triton", DeviceKind.ROCM),
    ("triton", DeviceKind.CUDA), ("cuda", DeviceKind.CUDA), ("cpp", DeviceKind.CPU),
]  # fmt: skip
NVIDIA_WORDS = r"cp\.async|\bTMA\b|wgmma|mma\.sync|\bsm_\d|NVIDIA|H100|multiprocessor|__shfl_xor_sync|__stcs"
AMD_WORDS = r"\bMFMA|mfma|AGPR|VGPR|CDNA|MI300|gfx9|XCD|\bDPP\b|amdgcn|SIMD\b"
BUILTINS = r"__builtin|mfma|MFMA|float4|__shfl|\bLDS buffers"
GPU_WORDS = r"\bLDS\b|lane|workgroup|\bwave|shared memory|thread block"
FOREIGN = {
    ("hip", DeviceKind.ROCM): f"{NVIDIA_WORDS}|tl\\.|On a CPU|OpenMP",
    ("hipkittens", DeviceKind.ROCM): f"{NVIDIA_WORDS}|{BUILTINS}|tl\\.|OpenMP|_mm256",
    ("triton", DeviceKind.ROCM): f"{NVIDIA_WORDS}|{BUILTINS}|OpenMP|_mm256",
    ("triton", DeviceKind.CUDA): f"{AMD_WORDS}|{BUILTINS}|OpenMP|_mm256",
    ("cuda", DeviceKind.CUDA): f"{AMD_WORDS}|tl\\.|OpenMP|_mm256",
    ("cpp", DeviceKind.CPU): f"{NVIDIA_WORDS}|{AMD_WORDS}|{GPU_WORDS}|tl\\.",
}


@pytest.mark.parametrize(("backend", "device"), ASKED)
def test_no_stage_speaks_of_what_the_backend_does_not_have(backend: BackendName, device: DeviceKind) -> None:
    for category in book().categories:
        for stage in category.stages:
            lines = stage.guidance_for(backend, device)
            assert len(lines) >= 2, (category.name, stage.name)
            foreign = [(word[0], line) for line in lines if (word := re.search(FOREIGN[backend, device], line))]
            assert not foreign, (category.name, stage.name)


@pytest.mark.parametrize("capture", ["ncu_2025_3_h200_cuda.csv", "ncu_2025_3_h200_triton.csv"])
def test_every_metric_for_cuda_is_in_what_ncu_wrote_on_an_h200(capture: str) -> None:
    data = Path(__file__).parents[1] / "profile" / "data" / capture
    facts = DeviceFacts(
        kind=DeviceKind.CUDA, index=0, name="H200", bandwidth=4.8e12, peak_flops={"float32": 67e12, "float64": 34e12}
    )
    run = ncu.read(data)
    profile = profile_of(
        "ncu", run, [run], 2, lambda _: Owner.CANDIDATE, lambda found, time: nvidia_figures(found, time, facts), facts
    )
    for category in book().categories:
        for stage in category.stages:
            names = stage.metrics[DeviceKind.CUDA]
            (line,) = key_metrics(profile, names)
            assert [name for name in names if f"{name} " in line] == list(names), (category.name, stage.name)


def test_the_first_stage_is_never_skipped() -> None:
    assert not any(category.stages[0].skip for category in book().categories)


@pytest.mark.parametrize("name", [COMPUTE, MEMORY, FUSED_COMPUTE, FUSED_MEMORY, GENERIC])
def test_95_per_cent_of_the_roof_end_every_problem(name: str) -> None:
    exits = book().category(name).exit
    for stage in range(4):
        rule = first(exits, Situation(stage=stage, correct=True, speedup=1.5, roof=0.951))
        assert rule is not None and "95 %" in rule.why
        assert first(exits, Situation(stage=stage, correct=True, speedup=1.5, roof=0.94)) is None
        assert (
            first(exits, Situation(stage=stage, correct=True, speedup=1.5)) is None
        )  # a roof that is not known ends nothing


CONV, MATMUL = frozenset({OperatorClass.CONV}), frozenset({OperatorClass.MATMUL})


@pytest.mark.parametrize(
    ("at", "ends"),
    [
        (Situation(stage=1, correct=True, speedup=0.4, kernel_size=3, contains=CONV), True),
        (Situation(stage=1, correct=True, speedup=0.4, kernel_size=5, contains=CONV), False),
        (Situation(stage=1, correct=True, speedup=0.6, kernel_size=3, contains=CONV), False),
        (Situation(stage=2, correct=True, speedup=0.4, kernel_size=3, contains=CONV), False),
        (Situation(stage=1, speedup=None, kernel_size=3, contains=CONV), False),
        (Situation(stage=1, correct=True, speedup=0.2, contains=MATMUL), True),
        (Situation(stage=1, correct=True, speedup=0.4, contains=MATMUL), False),
        (Situation(stage=0, correct=True, speedup=0.2, contains=MATMUL), False),
    ],
)
def test_what_trails_badly_after_the_first_stage_ends(at: Situation, ends: bool) -> None:
    assert (first(book().category(COMPUTE).exit, at) is not None) is ends


def test_stages_without_a_subject_are_skipped() -> None:
    fused = book().category(FUSED_COMPUTE).stages[2]
    plain = frozenset({OperatorClass.MATMUL, OperatorClass.ELEMENTWISE})
    assert first(fused.skip, Situation(stage=2, contains=plain)) is not None
    assert first(fused.skip, Situation(stage=2, contains=plain | {OperatorClass.NORMALISATION})) is None
    reuse = book().category(MEMORY).stages[1]
    assert first(reuse.skip, Situation(stage=1, contains=frozenset({OperatorClass.ELEMENTWISE}))) is not None
    assert first(reuse.skip, Situation(stage=1, contains=frozenset({OperatorClass.POOL}))) is None


@pytest.mark.parametrize("sizes", [SizeSet.FULL, SizeSet.EMULATED])
def test_the_forty(sizes: SizeSet) -> None:
    expected = {number: name for name, numbers in FORTY.items() for number in numbers}
    found = {}
    for problem in find_problems(SHIPPED, 1):
        made = book().classify(problem, problem_facts(problem, sizes))
        assert made.by == "graph", (problem.name, made)
        found[problem.number] = made.category
    assert found == expected


def test_the_page_has_the_forty_with_their_categories() -> None:
    page = (PROMPTS.parent / "docs" / "categories.md").read_text("utf-8")
    table = page.split("\n### The forty\n")[1].split("\n### ")[0]
    listed = {int(number): name for number, name in re.findall(r"^\| (\d+)_\w+ \| ([\w-]+) \|", table, re.MULTILINE)}
    assert listed == {number: name for name, numbers in FORTY.items() for number in numbers}

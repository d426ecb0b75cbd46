"""Made-up but realistic values for the tests of this folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from support.run_folder import ISOLATED

from hkbench.backends import find_backend
from hkbench.prompts import DeviceSheet, PromptContext, Reflection, contract
from hkbench.records import (
    REFUSALS,
    BackendName,
    Conditions,
    DeviceKind,
    EvaluationSettings,
    Failure,
    FailureKind,
    Interval,
    KernelProfile,
    Mismatch,
    Problem,
    ProblemFacts,
    ScalarFact,
    SizeSet,
    Stage,
    Status,
    TensorFact,
    Timing,
    Trial,
    Verdict,
)

ROOT = Path(__file__).parents[3]
PROMPTS = ROOT / "prompts"

MI300X = DeviceSheet(
    name="AMD Instinct MI300X", arch="gfx942", kind=DeviceKind.ROCM, memory_gb=192, bandwidth_gbs=5300,
    peak_tflops={"bfloat16": 1307.4, "float32": 163.4}, lds_kib=64, compute_units=304, wave_size=64, llc_mib=256,
    notes=("The compute units are on 8 dies.",),
)  # fmt: skip
MI355X = MI300X.model_copy(update={"name": "AMD Instinct MI355X", "arch": "gfx950", "lds_kib": 160})
H200 = DeviceSheet(
    name="NVIDIA H200", arch="sm_90", kind=DeviceKind.CUDA, memory_gb=150.1, bandwidth_gbs=4800,
    peak_tflops={"bfloat16": 989.5}, lds_kib=228, compute_units=132, wave_size=32, llc_mib=50,
)  # fmt: skip
CPU = DeviceSheet(name="a processor", kind=DeviceKind.CPU, memory_gb=25)

DEVICES: dict[BackendName, tuple[DeviceSheet, ...]] = {
    "hipkittens": (MI300X, MI355X),
    "hip": (MI300X, MI355X),
    "cuda": (H200,),
    "triton": (H200, MI300X),
    "cpp": (CPU,),
}

_SUFFIXES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


def problem(path: Path) -> Problem:
    source = path.read_text()
    return Problem(
        number=int(path.stem.split("_")[0]), name=path.stem, level=1, path=path, source=source,
        sha256=hashlib.sha256(source.encode()).hexdigest(),
    )  # fmt: skip


def facts(name: str) -> ProblemFacts:
    """Two inputs (one of them transposed), a parameter and a scalar of the dtype that the name ends in."""
    dtype = _SUFFIXES.get(name.rsplit("_", 1)[-1], "float32")
    tensor = TensorFact(name="x", shape=(4096, 1000), dtype=dtype, strides=(1000, 1))
    return ProblemFacts(
        sizes=SizeSet.FULL,
        inputs=(tensor, TensorFact(name="y", shape=(1000, 4096), dtype=dtype, strides=(1, 1000))),
        init_inputs=(ScalarFact(name="eps", value="1e-06"),),
        outputs=(tensor.model_copy(update={"name": "output"}),),
        parameters=(TensorFact(name="weight", shape=(1000,), dtype=dtype, strides=(1,)),),
    )


def context(
    of: Problem, backend: BackendName, device: DeviceSheet, reflection: Reflection | None = None
) -> PromptContext:
    rules = contract(EvaluationSettings(), {"float32": 1e-4, "bfloat16": 1e-2}, device.kind, backend)
    dialect = find_backend(backend).dialect(device.arch)
    return PromptContext(
        problem=of, facts=facts(of.name), backend=backend, device=device, contract=rules, dialect=dialect,
        reflection=reflection,
    )  # fmt: skip


def _conditions() -> Conditions:
    return Conditions(
        backend="cpp", device=DeviceKind.CPU, device_name="a processor", candidate_sha256="0" * 64,
        problem_sha256="1" * 64, isolation=ISOLATED,
    )  # fmt: skip


def failed(failure: Failure, trials: tuple[Trial, ...] = ()) -> Verdict:
    return Verdict(
        problem="1_Scaled_residual_bf16", failure=failure, trials=trials,
        status=Status.REFUSED if failure.kind in REFUSALS else Status.INCORRECT, conditions=_conditions(),
    )  # fmt: skip


def timed(speedup: float, profile: KernelProfile | None = None) -> Verdict:
    """A correct verdict: the baseline takes 2 ms."""

    def timing(seconds: float) -> Timing:
        median = Interval(value=seconds, low=seconds * 0.99, high=seconds * 1.01)
        return Timing(samples=(seconds,) * 3, median=median, clock="perf_counter", warmups=3)

    return Verdict(
        problem="1_Scaled_residual_bf16", status=Status.FAST if speedup >= 1 else Status.SLOW,
        trials=(Trial(seed=1, passed=True),), baseline=timing(2e-3), candidate=timing(2e-3 / speedup),
        speedup=Interval(value=speedup, low=speedup, high=speedup), profile=profile, conditions=_conditions(),
    )  # fmt: skip


def verdict_of(kind: FailureKind) -> Verdict:
    """A verdict that has this failure kind."""
    if kind is FailureKind.SLOW:
        return timed(0.5)
    mismatch = None
    if kind in (FailureKind.WRONG_VALUES, FailureKind.NOT_FINITE):
        mismatch = Mismatch(
            output="output", index=(3, 17), expected=0.5, got=-1.25, max_abs_error=1.75, max_rel_error=3.5,
            wrong_elements=12, elements=4096,
        )  # fmt: skip
    return failed(Failure(stage=Stage.RUN, kind=kind, message=f"the judge saw {kind}", mismatch=mismatch))

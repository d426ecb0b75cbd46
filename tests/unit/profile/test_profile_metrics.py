"""The names that a categories file may use are those that the profilers are asked for."""

from __future__ import annotations

from pathlib import Path

from hkbench.device_kinds import KINDS, model_of
from hkbench.profile import derived, ncu
from hkbench.profile.counters import counter_set
from hkbench.records import DeviceFacts, DeviceKind

FACTS = DeviceFacts(
    kind=DeviceKind.CUDA, index=0, name="a GPU", bandwidth=1e12,
    peak_flops=dict.fromkeys(
        ("float16", "bfloat16", "float32", "float64", "float64 matrix", "float8", "mxfloat6 or mxfloat4"), 1e15
    ),
)  # fmt: skip


def test_every_counter_that_is_asked_for_has_a_name_and_a_unit() -> None:
    asked = {name for arch in ("gfx942", "gfx950") for name in counter_set(arch)}
    assert asked == set(model_of(DeviceKind.ROCM).counters)
    commands = [ncu.command("ncu", Path("out"), arch, ("python",)) for arch in ("sm_75", "sm_90")]
    metrics = {name for command in commands for name in command[command.index("--metrics") + 1].split(",")}
    assert metrics == set(model_of(DeviceKind.CUDA).counters)
    assert all(unit for model in KINDS for unit in model.counters.values())


def test_every_figure_that_can_come_out_has_a_name() -> None:
    amd = derived.amd_figures(
        dict.fromkeys(model_of(DeviceKind.ROCM).counters, 8.0), 1e-3, FACTS, derived.Agent(compute_units=304, xcds=8)
    )
    assert set(amd) == set(model_of(DeviceKind.ROCM).figures)
    counters = dict.fromkeys(model_of(DeviceKind.CUDA).counters, 1.0)
    assert set(derived.nvidia_figures(counters, 1e-3, FACTS)) == set(model_of(DeviceKind.CUDA).figures)


def test_no_name_means_two_things() -> None:
    for kind in DeviceKind.known():
        assert len(set(model_of(kind).metrics)) == len(model_of(kind).metrics)

"""The names that a categories file may use are those that the profilers are asked for."""

from __future__ import annotations

from pathlib import Path

from hkbench.profile import derived, ncu
from hkbench.profile.counters import counter_set
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.records.metrics import COUNTERS, FIGURES, collected

FACTS = DeviceFacts(
    kind=DeviceKind.CUDA, index=0, name="a GPU", bandwidth=1e12,
    peak_flops=dict.fromkeys(
        ("float16", "bfloat16", "float32", "float64", "float64 matrix", "float8", "mxfloat6 or mxfloat4"), 1e15
    ),
)  # fmt: skip


def test_every_counter_that_is_asked_for_has_a_name_and_a_unit() -> None:
    asked = {name for arch in ("gfx942", "gfx950") for name in counter_set(arch)}
    assert asked == set(COUNTERS[DeviceKind.ROCM])
    commands = [ncu.command("ncu", Path("out"), arch, ("python",)) for arch in ("sm_75", "sm_90")]
    metrics = {name for command in commands for name in command[command.index("--metrics") + 1].split(",")}
    assert metrics == set(COUNTERS[DeviceKind.CUDA])
    assert all(unit for units in COUNTERS.values() for unit in units.values())


def test_every_figure_that_can_come_out_has_a_name() -> None:
    amd = derived.amd_figures(
        dict.fromkeys(COUNTERS[DeviceKind.ROCM], 8.0), 1e-3, FACTS, derived.Agent(compute_units=304, xcds=8)
    )
    assert set(amd) == set(FIGURES[DeviceKind.ROCM])
    counters = dict.fromkeys(COUNTERS[DeviceKind.CUDA], 1.0)
    assert set(derived.nvidia_figures(counters, 1e-3, FACTS)) == set(FIGURES[DeviceKind.CUDA])


def test_no_name_means_two_things() -> None:
    for kind in DeviceKind:
        assert len(set(collected(kind))) == len(collected(kind))

"""What a kernel waits for, by figures as profilers give them."""

from __future__ import annotations

import pytest
from support.run_folder import correct

from hkbench.records import Bottleneck, KernelResources, Owner, Verdict, bottleneck_of
from hkbench.records.metrics import BANDWIDTH_OF_PEAK, FLOPS_OF_PEAK, LDS_CONFLICTS, MATRIX_UNIT_USE
from hkbench.records.profile import Figure, KernelProfile, KernelUse

IDLE = {BANDWIDTH_OF_PEAK: 0.1, FLOPS_OF_PEAK: 0.1}


def profiled(*kernels: KernelUse, resources: tuple[KernelResources, ...] = ()) -> Verdict:
    profile = KernelProfile(source="rocprofv3", kernels=kernels, seconds=sum(one.seconds for one in kernels))
    return correct("1_Sum", 1.0).model_copy(update={"profile": profile, "resources": resources})


def kernel(
    shares: dict[str, float],
    counters: dict[str, float] | None = None,
    seconds: float = 1e-3,
    owner: Owner = Owner.CANDIDATE,
) -> KernelUse:
    figures = {name: Figure(value=value, unit="fraction") for name, value in shares.items()}
    return KernelUse(
        name="sum", owner=owner, calls=1, seconds=seconds, share=1.0, figures=figures, counters=counters or {}
    )


@pytest.mark.parametrize(
    ("shares", "counters", "found"),
    [
        ({BANDWIDTH_OF_PEAK: 0.8, FLOPS_OF_PEAK: 0.2}, {}, Bottleneck.GMEM),
        ({BANDWIDTH_OF_PEAK: 0.2, FLOPS_OF_PEAK: 0.7}, {}, Bottleneck.COMPUTE),
        ({BANDWIDTH_OF_PEAK: 0.2, MATRIX_UNIT_USE: 0.7}, {}, Bottleneck.COMPUTE),
        ({BANDWIDTH_OF_PEAK: 0.8, LDS_CONFLICTS: 0.4}, {}, Bottleneck.SMEM),
        (IDLE, {"SQ_INSTS_VALU_TRANS_F32": 10.0, "SQ_INSTS_VALU_FMA_F32": 20.0}, Bottleneck.SFU),
        (IDLE, {"SQ_INSTS_VALU_TRANS_F32": 10.0, "SQ_INSTS_VALU_FMA_F32": 90.0}, Bottleneck.OVERLAP),
        (IDLE, {}, Bottleneck.OVERLAP),
        ({}, {}, None),  # a profiler that gives times alone
    ],
)
def test_counters_tell_what_a_kernel_waits_for(
    shares: dict[str, float], counters: dict[str, float], found: Bottleneck | None
) -> None:
    assert bottleneck_of(profiled(kernel(shares, counters))) is found


def test_atomics_count_where_no_unit_is_busy() -> None:
    compiled = KernelResources(name="sum", arch="gfx942", instructions={"global_atomic": 2, "valu": 9})
    assert bottleneck_of(profiled(kernel(IDLE), resources=(compiled,))) is Bottleneck.ATOMICS
    busy = kernel({BANDWIDTH_OF_PEAK: 0.9})
    assert bottleneck_of(profiled(busy, resources=(compiled,))) is Bottleneck.GMEM


def test_the_longest_kernel_of_the_candidate_counts() -> None:
    copies = kernel({BANDWIDTH_OF_PEAK: 0.9}, seconds=1.0, owner=Owner.PYTORCH)
    short = kernel({FLOPS_OF_PEAK: 0.9, BANDWIDTH_OF_PEAK: 0.1}, seconds=1e-5)
    assert bottleneck_of(profiled(copies, short, kernel(IDLE))) is Bottleneck.OVERLAP


def test_without_a_profile_nothing_is_guessed() -> None:
    assert bottleneck_of(correct("1_Sum", 1.0)) is None

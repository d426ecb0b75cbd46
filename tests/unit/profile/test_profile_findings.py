"""What is said of a profile, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from profile_samples import H100, MI300X

from hkbench.profile.findings import MAX_FINDINGS, Pass, findings
from hkbench.profile.limits import limit_of
from hkbench.records import KernelUse, Owner, metrics
from hkbench.records.profile import Figure


def use(name: str = "mine", share: float = 1.0, **fields: Any) -> KernelUse:
    shares = {key: Figure(value=value, unit="fraction") for key, value in fields.pop("figures", {}).items()}
    defaults = {"owner": Owner.CANDIDATE, "calls": 1, "seconds": share * 1e-3, "figures": shares}
    return KernelUse(name=name, share=share, **{**defaults, **fields})


def said(*kernels: KernelUse, wall: float | None = None, facts: Any = MI300X) -> tuple[str, ...]:
    return findings(Pass(kernels, wall, on_gpu=True), facts)


def test_of_a_kernel_without_figures_nothing_is_said() -> None:
    assert said(use()) == ()


@pytest.mark.parametrize(
    ("kernel", "parts"),
    [
        (use(scratch_bytes=96), ("96 bytes a lane in scratch", "smaller tiles")),
        (use(figures={metrics.LOCAL_TRAFFIC: 2e6}), ("2 MB a call", "__launch_bounds__")),
        (
            use(figures={metrics.MATRIX_UNIT_USE: 0.05}, counters={"SQ_INSTS_VALU_MFMA_MOPS_BF16": 5.0}),
            ("matrix units busy 5%", "load the next tile"),
        ),
        (use("my_gemm", figures={metrics.MATRIX_UNIT_USE: 0.0}), ("busy 0%", "use matrix instructions")),
        (use(block=(256, 1, 1), vgprs=256), ("25% of the device's wave slots", "256 vector registers", "latency")),
        (use(block=(64, 1, 1), lds_bytes=40000), ("3% of the device's wave slots", "room for 1 blocks")),
        (
            use(figures={metrics.LOAD_WIDTH: 4.0, metrics.L2_HIT_RATE: 0.1}),
            ("at most 4.0 bytes a lane", "no vector loads", "16 bytes"),
        ),
        (
            use(grid=(128, 1, 1), block=(256, 1, 1)),
            ("128 blocks of 256 threads", "fill 5% of the device's wave slots", "split the work"),
        ),
        (use(figures={metrics.LOAD_WIDTH: 21.7}), ("touches 22 bytes a lane", "neighbouring addresses")),
        (use(figures={metrics.LDS_CONFLICTS: 0.4}), ("bank conflicts take 40%", "pad or swizzle")),
        (
            use(figures={metrics.BANDWIDTH_OF_PEAK: 0.78, metrics.L2_HIT_RATE: 0.7}),
            ("at 78% of the data sheet's bandwidth", "fewer bytes", "reorder blocks"),
        ),
    ],
)
def test_each_finding_says_what_it_suggests(kernel: KernelUse, parts: tuple[str, ...]) -> None:
    (text,) = said(kernel)
    for part in parts:
        assert part in text


@pytest.mark.parametrize(
    "kernel",
    [
        use(share=0.1, scratch_bytes=96),  # too small a part of the pass
        use("aten_gemm", owner=Owner.LIBRARY, scratch_bytes=96),  # not the candidate's to change
        use("add_rows", figures={metrics.MATRIX_UNIT_USE: 0.0}),  # no matrix kernel
        use("void convert_gamma(gemm_args)", figures={metrics.MATRIX_UNIT_USE: 0.0}),  # nor this one
        use("gemm", figures={metrics.MATRIX_UNIT_USE: 0.5}, block=(512,), vgprs=256),  # few waves, as such kernels want
        use(figures={metrics.LOAD_WIDTH: 4.0, metrics.L2_HIT_RATE: 0.9}),  # reads again what is cached
        use(figures={metrics.LOAD_WIDTH: 4.0}),  # nobody knows whether it does
        use(figures={metrics.LOAD_WIDTH: 16.0, metrics.L2_HIT_RATE: 0.1}),
    ],
)
def test_what_is_no_finding(kernel: KernelUse) -> None:
    assert not any("mine" in text or "gemm" in text or "add" in text or "gamma" in text for text in said(kernel))


def test_at_most_three_and_the_most_important_first() -> None:
    bad = use(
        scratch_bytes=96,
        share=0.8,
        figures={metrics.LDS_CONFLICTS: 0.4, metrics.BANDWIDTH_OF_PEAK: 0.7, metrics.MATRIX_UNIT_USE: 0.0},
        block=(256, 1, 1),
        vgprs=512,
    )
    cast = use("at::native::bfloat16_copy_kernel_cuda", share=0.2, owner=Owner.PYTORCH)
    texts = said(bad, cast, wall=20e-3)
    assert len(texts) == MAX_FINDINGS
    assert "host work between launches" in texts[0]  # 19 of 20 ms
    assert "scratch memory" in texts[1]


def test_limits_of_a_part() -> None:
    for vgprs, agprs, waves in ((64, 0, 8), (65, 0, 7), (128, 0, 4), (128, 128, 2), (512, 0, 1)):
        limit = limit_of(use(block=(256, 1, 1), vgprs=vgprs, agprs=agprs), MI300X)
        assert limit is not None
        assert limit.share == waves / 8
    nvidia = limit_of(use(block=(256, 1, 1), registers=168), H100)
    assert nvidia is not None
    assert nvidia.share == 8 / 64  # 168 x 256 registers fit once
    assert limit_of(use(block=(256,), vgprs=64), MI300X.model_copy(update={"arch": "gfx90a"})) is None
    assert limit_of(use(vgprs=64), MI300X) is None

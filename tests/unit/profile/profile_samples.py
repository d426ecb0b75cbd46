"""What the tests of the profilers' readers share."""

from __future__ import annotations

import shutil
from pathlib import Path

from hkbench.records import DeviceFacts, DeviceKind, Owner

DATA = Path(__file__).with_name("data")
MI300X = DeviceFacts(
    kind=DeviceKind.ROCM, index=0, name="AMD Instinct MI300X", arch="gfx942", compute_units=304, lds_bytes=65536,
    bandwidth=5.3e12, peak_flops={"bfloat16": 1307.4e12, "float16": 1307.4e12, "float32": 163.4e12, "float64": 81.7e12},
)  # fmt: skip
H100 = DeviceFacts(
    kind=DeviceKind.CUDA, index=0, name="NVIDIA H100 80GB HBM3", arch="sm_90", compute_units=132, lds_bytes=233472,
    bandwidth=3.35e12, peak_flops={"bfloat16": 989.4e12, "float32": 66.9e12, "float64": 33.5e12},
)  # fmt: skip
GEMM = "void gemm_tile<128, 128>(__hip_bfloat16 const*, __hip_bfloat16 const*, float*, int)"
RELU = "bias_relu(float const*, float*, int)"


def owner(name: str) -> Owner:
    return Owner.PYTORCH if "at::" in name else Owner.CANDIDATE


def place(name: str, target: Path) -> Path:
    """A data file where a profiler would have written it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(DATA / name, target)
    return target


def damaged(name: str, folder: Path, old: str, new: str, count: int = 1) -> Path:
    """A copy with one thing changed."""
    text = (DATA / name).read_text()
    assert old in text
    path = folder / name
    path.write_text(text.replace(old, new, count))
    return path


def cut(name: str, folder: Path, left: int) -> Path:
    """A copy that ends `left` characters before the end, as when the profiler was killed."""
    path = folder / name
    path.write_text((DATA / name).read_text()[:-left])
    return path

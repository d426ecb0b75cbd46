"""Triton's code objects: what they show beside the remarks in its assembly, and what is no code object."""

from __future__ import annotations

import base64
import importlib.util
import re
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from support.triton_kernels import HEAD, record

from hkbench.errors import ToolchainUnavailable
from hkbench.toolchain.code_object import NotInspected, Tools
from hkbench.toolchain.hip import ARCHITECTURES, find_hip
from hkbench.toolchain.occupancy import ATTRIBUTE, LDS
from hkbench.toolchain.triton import LaunchedKernel, find_triton, resources

ELF = b"\x7fELF" + bytes(14) + (224).to_bytes(2, "little") + bytes(44)
REPORTED: dict[str, Any] = {
    "name": "k", "signature": {"x": "*fp32", "n": "i32", "BLOCK": "constexpr"}, "constants": {"BLOCK": "64"},
    "options": {"num_warps": 4, "num_stages": 2, "waves_per_eu": 0, "matrix_instr_nonkdim": None, "kpack": 1},
    "lds_bytes": 0, "launches": 1, "image": base64.b64encode(ELF).decode(),
}  # fmt: skip

SOURCE = (
    HEAD
    + """
@triton.jit
def product(x_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    at, deep = tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((N, N), tl.float32)
    for step in range(0, 4096, K):
        a = tl.load(x_ptr + at[:, None] * 4096 + step + deep[None, :])
        b = tl.load(x_ptr + (step + deep[:, None]) * 4096 + at[None, :])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + at[:, None] * 4096 + at[None, :], total)


@triton.jit
def capped(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at))


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty(x.shape, device=x.device, dtype=torch.float32)
        product[(1,)](x, out, N=128, K=64, num_warps=8)
        product[(1,)](x, out, N=256, K=64, num_warps=4)
        capped[(1,)](x, out, BLOCK=1024, waves_per_eu=3)
        return out
"""
)
_REMARKS = {
    "vgprs": "NumVgprs", "agprs": "NumAgprs", "sgprs": "TotalNumSgprs", "scratch_bytes_per_lane": "ScratchSize",
    "occupancy_waves_per_simd": "Occupancy",
}  # fmt: skip


def _remarked(assembly: str) -> dict[str, int]:
    found = {key: re.search(rf"^; {name}: (\d+)", assembly, re.MULTILINE) for key, name in _REMARKS.items()}
    return {key: int(match[1]) for key, match in found.items() if match}


@pytest.mark.triton
@pytest.mark.hipcc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_figures_are_those_that_the_compiler_remarks(tmp_path: Path, arch: str) -> None:
    answer = record(tmp_path, SOURCE, [((4096, 4096), "bfloat16")], arch=arch)
    assert (answer["raised"], len(answer["kernels"])) == (None, 3)
    assemblies = {path.with_suffix(".hsaco").read_bytes(): path for path in (tmp_path / "cache").rglob("*.amdgcn")}
    reported = [{key: value for key, value in kernel.items() if key != "bytes"} for kernel in answer["kernels"]]
    kernels = [LaunchedKernel.model_validate(kernel) for kernel in reported]
    tools = Tools(find_hip(), tmp_path / "tools", time.monotonic() + 120)
    found = resources(kernels, arch, tools)
    for kernel, shown in zip(kernels, found, strict=True):
        remarked = _remarked(assemblies[kernel.image].read_text())
        assert {key: getattr(shown, key) for key in ("vgprs", "agprs", "sgprs", "scratch_bytes_per_lane")} == {
            key: remarked[key] for key in ("vgprs", "agprs", "sgprs", "scratch_bytes_per_lane")
        }
        assert shown.lds_bytes == kernel.lds_bytes and shown.dynamic_lds is False and shown.instructions
        if not kernel.lds_bytes:  # the remark does not know what a launch asks for
            assert shown.occupancy_waves_per_simd == remarked["occupancy_waves_per_simd"]
    small, large, capped = found
    assert small.name == "product[N=128, K=64, num_warps=8, num_stages=2](*bf16, *fp32)"
    assert any(name.startswith("mfma_f32_") for name in small.instructions or {})
    assert small.limited_by is not None and LDS in small.limited_by
    assert (large.agprs or 0) > 0 and large.max_workgroup_size == 256
    assert (capped.occupancy_waves_per_simd, capped.limited_by) == (3, (ATTRIBUTE,))


@pytest.mark.hipcc
def test_what_only_looks_like_a_code_object_is_not_inspected(tmp_path: Path) -> None:
    kernel = LaunchedKernel.model_validate(REPORTED)
    with pytest.raises(NotInspected):
        resources([kernel], "gfx942", Tools(find_hip(), tmp_path / "tools", time.monotonic() + 60))


@pytest.mark.parametrize(
    "changed",
    [
        {"image": base64.b64encode(b"MZ" + ELF).decode()},
        {"image": base64.b64encode(ELF.replace((224).to_bytes(2, "little"), b"\x3e\0")).decode()},
        {"image": "not base64!"},
        {"lds_bytes": -1},
        {"name": "k" * 1000},
        {"options": {"num_warps": "many"}},
        {"surprise": 1},
    ],
)
def test_what_is_no_report_of_a_kernel(changed: dict[str, Any]) -> None:
    LaunchedKernel.model_validate(REPORTED)
    with pytest.raises(ValidationError):
        LaunchedKernel.model_validate(REPORTED | changed)


def test_a_label_tells_specialisations_apart() -> None:
    assert LaunchedKernel.model_validate(REPORTED).label == "k[BLOCK=64, num_warps=4, num_stages=2](*fp32, i32)"


def test_without_triton_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(ToolchainUnavailable, match="pip install triton"):
        find_triton()
    spec = importlib.util.spec_from_file_location("triton", tmp_path / "__init__.py")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)
    with pytest.raises(ToolchainUnavailable, match="no AMD back end"):
        find_triton()

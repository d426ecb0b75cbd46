"""Kernels that are an installed package's under another name, and those that only look alike."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from hkbench.profile import copies
from hkbench.profile.copies import _matched, kernels_in, own_runs, runs, runs_of_files

HEADERS = Path(torch.__file__).parent / "include" / "ATen" / "native" / "cuda"
HONEST = sorted((Path(__file__).parents[2] / "honest").glob("*.py"))

TRITON = """
import triton
import triton.language as tl

@triton.jit
def rms_norm_forward(X, Y, W, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n_cols
    x = tl.load(X + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / n_cols
    rstd = tl.math.rsqrt(mean_square + eps)
    w = tl.load(W + offsets, mask=mask).to(tl.float32)
    y = x * rstd * w
    tl.store(Y + row * stride + offsets, y.to(Y.dtype.element_ty), mask=mask)
    tl.debug_barrier()
"""
OTHER = """
@triton.jit
def rms(x_ptr, g_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        part = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        total += part * part
    scale = 1.0 / tl.sqrt(tl.sum(total, 0) / columns + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        part = tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
        tl.store(out_ptr + row * columns + at, part * scale * tl.load(g_ptr + at, mask=at < columns), mask=at < columns)
"""


def renamed(text: str, kernel: str, to: str) -> str:
    """With every identifier of the package's own changed, and comments that are not there."""
    text = text.replace(kernel, to)
    for word in ("row", "offsets", "mask", "mean_square", "rstd", "n_cols", "stride"):
        text = re.sub(rf"\\b{word}\\b", f"my_{word}", text)
    return text.replace("\n    x = ", "\n    # ours\n    x = ")


def _copied(texts: list[str]) -> dict[str, str]:
    return _matched(own_runs(texts))


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "norm.py"
    path.write_text(TRITON)
    monkeypatch.setattr(copies, "installed_runs", lambda: runs_of_files([path]))
    return path


def test_a_renamed_copy_is_found_with_the_file_that_it_comes_from(package: Path) -> None:
    copy = renamed(TRITON, "rms_norm_forward", "my_own_kernel")
    assert _copied([copy]) == {"my_own_kernel": str(package)}
    assert _copied(["nothing here", copy]) == {"my_own_kernel": str(package)}


def test_another_kernel_for_the_same_problem_is_no_copy(package: Path) -> None:
    assert _copied([OTHER]) == {}
    assert _copied(["@triton.jit\ndef k(x):\n    pass\n"]) == {}  # too short to be anybody's


@pytest.mark.skipif(not (HEADERS / "PersistentSoftmax.cuh").is_file(), reason="PyTorch without its CUDA headers")
def test_pytorchs_own_template_copied_under_another_name() -> None:
    text = (HEADERS / "PersistentSoftmax.cuh").read_text().replace("softmax_warp_forward", "fast_rows")
    assert _copied([f'cuda = r"""{text}"""'])["fast_rows"].endswith("PersistentSoftmax.cuh")


def test_honest_candidates_are_no_copies() -> None:
    texts = [path.read_text() for path in HONEST]
    assert any(True for text in texts for _ in kernels_in(text))
    assert _copied(texts) == {}


def test_kernels_of_a_text() -> None:
    text = "__global__ void a(int x) { if (x) { y(); } }\n/* __global__ void b() {} */ __global__ void c();"
    assert [(name, body.strip()) for name, body in kernels_in(text)] == [("a", "if (x) { y(); }")]
    assert [name for name, _ in kernels_in(TRITON)] == ["rms_norm_forward"]


def test_runs_forget_names_and_keep_structure() -> None:
    body = "for (int i = 0; i < n; ++i) { sum[i] += a[i] * b[i + 1]; } out[0] = sum[0] + sum[1] * 2.0f - n;" * 2
    assert runs(body) == runs(body.replace("sum", "acc").replace("out", "result"))
    assert runs(body) != runs(body.replace("+ 1", "+ 2"))

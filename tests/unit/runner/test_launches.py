"""Launches by Triton are specialised, autotuned and compiled by Triton itself, and none is run."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from support.triton_kernels import HEAD, record

from hkbench.cdna import LDS_BYTES

pytestmark = pytest.mark.triton

COPY = (
    HEAD
    + """
@triton.jit
def copy_kernel(x_ptr, out_ptr, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        {body}
        return out
"""
)
X = ((1 << 16, 1 << 16), "float32")  # 16 GiB, of which nothing is allocated


def test_arguments_are_specialised_as_on_a_gpu(tmp_path: Path) -> None:
    counts = "1024, 2048, 1023, 1022, 1, 1 << 40"  # divisible by 16 (twice), not (twice), one, beyond 32 bits
    body = f"[copy_kernel[(4,)](x, out, count, BLOCK=1024) for count in ({counts})]"
    body += "; copy_kernel[(4,)](x[0, 1:], out, 1024, BLOCK=1024)"
    body += "; copy_kernel[(4,)](x.bfloat16(), out, 1024, BLOCK=1024)"
    answer = record(tmp_path, COPY.format(body=body), [X])
    assert (answer["raised"], answer["refused"], answer["idle"]) == (None, [], [])
    found = [(one["signature"]["x_ptr"], one["signature"]["count"], one["launches"]) for one in answer["kernels"]]
    assert found == [
        ("*fp32", "i32", 2), ("*fp32", "i32", 2), ("*fp32", "constexpr", 1), ("*fp32", "i64", 1),
        ("*fp32", "i32", 1), ("*bf16", "i32", 1),
    ]  # fmt: skip
    assert [one["specialised"] for one in answer["kernels"]] == [{}, {}, {"count": "1"}, {}, {}, {}]
    assert all(one["constants"] == {"BLOCK": "1024"} for one in answer["kernels"])
    images = [base64.b64decode(one["image"]) for one in answer["kernels"]]
    assert [len(image) for image in images] == [one["bytes"] for one in answer["kernels"]]
    assert all(image.startswith(b"\x7fELF") for image in images)
    aligned, odd_count, odd_pointer = images[0], images[1], images[4]
    assert aligned not in (odd_count, odd_pointer)
    assert answer["said"] == ["build_begin", "build_end"] * 6


def test_options_of_the_launch_reach_the_compiler(tmp_path: Path) -> None:
    body = "copy_kernel[(4,)](x, out, 1024, BLOCK=256, num_warps=8, num_stages=1, waves_per_eu=2)"
    (kernel,) = record(tmp_path, COPY.format(body=body), [X])["kernels"]
    options = {name: kernel["options"][name] for name in ("num_warps", "num_stages", "waves_per_eu")}
    assert options == {"num_warps": 8, "num_stages": 1, "waves_per_eu": 2}


def test_every_configuration_of_an_autotuner_is_compiled(tmp_path: Path) -> None:
    tuned = COPY.replace(
        "@triton.jit",
        "CONFIGS = [triton.Config(dict(BLOCK=b), num_warps=w) for b in (256, 512) for w in (4, 8)]\n\n\n"
        "@triton.autotune(CONFIGS, key=['count'])\n@triton.jit",
    )
    answer = record(tmp_path, tuned.format(body="copy_kernel[(4,)](x, out, 1024)"), [X])
    found = [(one["constants"]["BLOCK"], one["options"]["num_warps"], one["launches"]) for one in answer["kernels"]]
    assert found == [("256", 4, 2), ("256", 8, 1), ("512", 4, 1), ("512", 8, 1)]  # the first is taken: all tie


def test_what_triton_refuses_names_the_line_even_where_the_candidate_hides_it(tmp_path: Path) -> None:
    launch = "copy_kernel[(4,)](x, out, 1024, BLOCK=100)"
    body = f"\n        try:\n            {launch}\n        except Exception:\n            pass"
    answer = record(tmp_path, COPY.format(body=body), [X])
    (refused,) = answer["refused"]
    assert (answer["raised"], answer["kernels"], refused["error"]) == (None, [], "CompilationError")
    assert COPY.splitlines()[refused["line"] - 1].strip().startswith("at = ")
    assert "power of 2" in refused["message"]


def test_an_error_in_a_function_that_a_kernel_calls_is_that_function_s(tmp_path: Path) -> None:
    source = COPY.replace("tl.load(x_ptr + at, mask=at < count)", "helper(tl.load(x_ptr + at, mask=at < count))")
    source = source.replace(
        "@triton.jit", "@triton.jit\ndef helper(x):\n    return x + tl.nothing(x)\n\n\n@triton.jit", 1
    )
    answer = record(tmp_path, source.format(body="copy_kernel[(4,)](x, out, 1024, BLOCK=128)"), [X])
    (refused,) = answer["refused"]
    assert source.splitlines()[refused["line"] - 1].strip() == "return x + tl.nothing(x)"
    assert "nothing" in refused["message"] and answer["raised"] is not None


@pytest.mark.parametrize(
    ("body", "kernels", "raised"),
    [
        ("copy_kernel[(4,)](x, out, 1024, BLOCK=256); x.sum().item()", 1, "item"),
        ("copy_kernel[(4,)](x.new_empty(8, device='cpu'), out, 1024, BLOCK=256)", 1, "cpu tensor?"),
        ("copy_kernel[(4,)](x, out, 1024, BLOCK=256, nonsense=3)", 0, "nonsense"),
        ("x.cpu(); copy_kernel[(4,)](x, out, 1024, BLOCK=256)", 0, "meta"),
    ],
)
def test_a_forward_that_raises_keeps_what_was_compiled(tmp_path: Path, body: str, kernels: int, raised: str) -> None:
    answer = record(tmp_path, COPY.format(body=body), [X])
    assert (answer["stage"], len(answer["kernels"])) == ("run", kernels)
    assert raised in answer["raised"]


def test_more_lds_than_the_gpu_has_is_refused_as_on_the_gpu(tmp_path: Path) -> None:
    dot = COPY.replace(
        "    tl.store(out_ptr + at, tl.load(x_ptr + at, mask=at < count), mask=at < count)",
        "    a = tl.load(x_ptr + at[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]).to(tl.float16)\n"
        "    tl.store(out_ptr + at[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :], tl.dot(a, a))",
    ).format(body="copy_kernel[(1,)](x, out, 1024, BLOCK=256)")
    for arch, most in LDS_BYTES.items():
        answer = record(tmp_path, dot, [X], arch=arch)
        (kernel,) = answer["kernels"]
        assert "OutOfResources" in answer["raised"] and str(most) in answer["raised"]
        assert kernel["lds_bytes"] > most and kernel["bytes"] == 0


def test_a_kernel_that_nothing_launches_is_named(tmp_path: Path) -> None:
    source = COPY.replace("@triton.jit", "@triton.jit\ndef spare(x_ptr):\n    tl.store(x_ptr, 0.0)\n\n\n@triton.jit", 1)
    answer = record(tmp_path, source.format(body="copy_kernel[(4,)](x, out, 1024, BLOCK=256)"), [X])
    assert answer["idle"] == ["spare"]

"""Profiles from answers that may be anything."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from hkbench.profile import kernel_profile
from hkbench.profile.ownership import owner_of_operator
from hkbench.profile.torch_profiler import MAX_KERNELS
from hkbench.protocol.codec import encode
from hkbench.records import Owner
from hkbench.runner.profile import profile_forward


def owner(name: str) -> Owner:
    return Owner.PYTORCH if name.startswith("aten::") else Owner.CANDIDATE


def row(name: str = "mine", seconds: object = 1e-3, calls: object = 1) -> dict[str, Any]:
    return {"name": name, "seconds": seconds, "calls": calls}


def test_kernels_are_sorted_and_shared_out() -> None:
    answer = {"on_gpu": True, "wall_seconds": 4e-3, "kernels": [row("mine"), row("aten::add", 3e-3, 2.0)]}
    profile = kernel_profile(answer, owner)
    assert profile is not None
    assert [(use.name, use.owner, use.calls) for use in profile.kernels] == [
        ("aten::add", Owner.PYTORCH, 2),
        ("mine", Owner.CANDIDATE, 1),
    ]
    assert [use.share for use in profile.kernels] == pytest.approx([0.75, 0.25])
    assert profile.seconds == pytest.approx(4e-3)
    assert any("only 25%" in finding for finding in profile.findings)


@pytest.mark.parametrize(
    "junk",
    [
        "text", None, 3, [], {}, {"name": "x"}, row(seconds=math.nan), row(seconds=math.inf), row(seconds=-1.0),
        row(seconds="1"), row(seconds=True), row(seconds=10**400), row(calls=None), row(calls=-2), row(calls=1e300),
        {"name": 7, "seconds": 1.0, "calls": 1},
    ],
)  # fmt: skip
def test_junk_rows_are_passed_over(junk: object) -> None:
    profile = kernel_profile({"on_gpu": True, "wall_seconds": 1e-3, "kernels": [junk, row()]}, owner)
    assert profile is not None
    assert [use.name for use in profile.kernels] == ["mine"]


@pytest.mark.parametrize(
    "answer",
    [
        {}, {"wall_seconds": 1.0, "on_gpu": True}, {"wall_seconds": "1", "kernels": [row()]},
        {"wall_seconds": math.nan, "kernels": [row()]}, {"wall_seconds": -1.0, "kernels": [row()]},
        {"wall_seconds": 1.0, "on_gpu": True, "kernels": 5}, {"wall_seconds": 1.0, "on_gpu": True, "kernels": None},
        {"wall_seconds": 1.0, "on_gpu": True, "kernels": [row(seconds=0)]},
    ],
)  # fmt: skip
def test_an_answer_without_a_profile(answer: dict[str, Any]) -> None:
    assert kernel_profile(answer, owner) is None


def test_a_profile_has_a_size() -> None:
    kernels = [row("k" * 100_000) for _ in range(10 * MAX_KERNELS)]
    profile = kernel_profile({"on_gpu": True, "wall_seconds": 1.0, "kernels": kernels}, owner)
    assert profile is not None
    assert len(profile.kernels) == MAX_KERNELS
    assert len(profile.model_dump_json()) < 100_000


def test_what_a_prompt_may_say_of_a_gpu_pass() -> None:
    kernels = [
        row("void at::native::direct_copy_kernel_cuda<float>(...)", 1e-4),
        *[row(f"k{n}", 1e-4) for n in range(4)],
    ]
    profile = kernel_profile({"on_gpu": True, "wall_seconds": 5e-3, "kernels": kernels}, owner)
    assert profile is not None
    text = "\n".join(profile.findings)
    for part in (
        "20% of the time goes to PyTorch's dtype conversions",
        "5 kernels run per pass",
        "0.500 ms of 5.000 ms",
    ):
        assert part in text


def test_a_real_cpu_pass() -> None:
    values = torch.randn(300, 300)
    answer = profile_forward(lambda: torch.relu(values @ values), torch.device("cpu"))
    profile = kernel_profile(encode(answer), owner_of_operator)
    assert profile is not None
    names = {use.name: use.owner for use in profile.kernels}
    assert names["aten::mm"] is Owner.PYTORCH
    assert names["(the candidate's own code)"] is Owner.CANDIDATE
    assert sum(use.share for use in profile.kernels) == pytest.approx(1.0)
    assert next(use.calls for use in profile.kernels if use.name == "aten::mm") == 1

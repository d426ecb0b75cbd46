"""A runner that has one of several GPUs to itself."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

from hkbench.evaluation.side import device_request
from hkbench.protocol.messages import OnlyGpu
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.runner.only_gpu import hide_others

UUID = "58bf6f11-647a-0425-8c6c-fbda25a5d753"


def test_the_other_ones_are_hidden_before_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def first(_index: int) -> SimpleNamespace:
        seen.append(os.environ.get("CUDA_VISIBLE_DEVICES"))
        return SimpleNamespace(uuid=UUID)

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")
    monkeypatch.setattr(torch.cuda, "get_device_properties", first)
    assert hide_others(OnlyGpu(visible="3", uuid=f"GPU-{UUID}")) == torch.device("cuda:0")
    assert seen == ["3"]


def test_what_comes_too_late_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert hide_others(OnlyGpu(visible="3", uuid=f"GPU-{UUID}")) is None
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5,3"


@pytest.mark.parametrize("before", ["5,3", None])
def test_a_driver_that_was_asked_before_has_another_one_first(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    """It goes on seeing all of them: torch, which counts by the environment, has to count as many."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,3")
    if before is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _index: SimpleNamespace(uuid=UUID))
    monkeypatch.setattr(torch.cuda, "_cached_device_count", 1)
    assert hide_others(OnlyGpu(visible="3", uuid="GPU-another")) is None
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == before
    assert torch.cuda._cached_device_count is None


def test_where_nothing_is_to_be_hidden_nothing_is_asked() -> None:
    assert hide_others(None) is None


@pytest.mark.parametrize(
    ("environment", "kind", "uuid", "visible"),
    [
        (None, DeviceKind.CUDA, "GPU-a", "1"),
        ("", DeviceKind.CUDA, "GPU-a", "1"),
        ("4, 6", DeviceKind.CUDA, "GPU-a", "6"),
        ("GPU-x,GPU-y", DeviceKind.CUDA, "GPU-a", "GPU-y"),
        (None, DeviceKind.CUDA, None, None),
        (None, DeviceKind.ROCM, "GPU-a", None),
    ],
)
def test_the_evaluator_says_which_one_it_is(
    monkeypatch: pytest.MonkeyPatch, environment: str | None, kind: DeviceKind, uuid: str | None, visible: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if environment is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", environment)
    asked = device_request(torch.device("cuda:1"), DeviceFacts(kind=kind, index=1, name="a GPU", uuid=uuid))
    assert asked.device == "cuda:1"
    assert asked.only == (None if visible is None else OnlyGpu(visible=visible, uuid=str(uuid)))

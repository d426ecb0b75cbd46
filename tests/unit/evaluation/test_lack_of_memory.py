"""Whose memory it was that the evaluator or the baseline lacked; the device is a stand-in that gives memory back."""

from __future__ import annotations

import pytest
import torch
from support.jobs import evaluate_job

from hkbench.errors import DeviceUnavailable, ProblemError
from hkbench.evaluation import lack_of_memory
from hkbench.evaluation.job import EvaluateJob
from hkbench.evaluation.lack_of_memory import memory_failure
from hkbench.records import DeviceFacts, DeviceKind, FailureKind, Stage

MEMORY = 80 << 30
GPU = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="a GPU")
LACKING = ProblemError("1_A: the reference fails: CUDA out of memory. Tried to allocate 2 GiB")


class Device:
    """A GPU of which a candidate's processes have some memory until they end."""

    def __init__(self, theirs: int) -> None:
        self.free, self._theirs = 1 << 28, theirs

    def end(self) -> None:
        self.free += self._theirs
        self._theirs = 0

    def info(self, _device: object) -> tuple[int, int]:
        return self.free, MEMORY


def job(alone: bool) -> EvaluateJob:
    return evaluate_job(alone=alone)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Device:
    device = Device(request.param)
    monkeypatch.setattr(torch.cuda, "mem_get_info", device.info)
    monkeypatch.setattr(lack_of_memory, "SECONDS", 0.1)
    return device


@pytest.mark.parametrize("device", [60 << 30], indirect=True)
@pytest.mark.parametrize("error", [LACKING, torch.OutOfMemoryError("no room")])
def test_what_comes_back_with_its_processes_end_was_the_candidates(device: Device, error: Exception) -> None:
    failure = memory_failure(error, job(alone=True), GPU, Stage.RUN, device.end)
    assert (failure.kind, failure.stage) == (FailureKind.OUT_OF_MEMORY, Stage.RUN)
    assert "60.0 GiB of the device's 80.0 GiB" in failure.message


@pytest.mark.parametrize("device", [1 << 30], indirect=True)
def test_a_device_that_is_full_of_other_things_is_nobodys_failure(device: Device) -> None:
    with pytest.raises(DeviceUnavailable, match="too little of the device's memory") as raised:
        memory_failure(LACKING, job(alone=True), GPU, Stage.RUN, device.end)
    assert raised.value.__cause__ is LACKING


@pytest.mark.parametrize("device", [60 << 30], indirect=True)
def test_beside_other_evaluations_it_may_have_been_theirs(device: Device) -> None:
    with pytest.raises(DeviceUnavailable):
        memory_failure(LACKING, job(alone=False), GPU, Stage.RUN, device.end)
    assert device.free == 1 << 28, "nothing was ended: it is made once more, alone"


@pytest.mark.parametrize("device", [60 << 30], indirect=True)
def test_other_errors_stay_what_they_are(device: Device) -> None:
    other = ProblemError("1_A: the reference fails: ZeroDivisionError")
    with pytest.raises(ProblemError, match="ZeroDivisionError"):
        memory_failure(other, job(alone=True), GPU, Stage.RUN, device.end)
    with pytest.raises(ProblemError, match="out of memory"):
        memory_failure(LACKING, job(alone=True), None, Stage.LOAD, device.end)

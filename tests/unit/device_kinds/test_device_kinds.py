"""Kinds of devices, and one more of them: a description and one line of the registry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from pydantic import ValidationError

from hkbench.device_kinds import KINDS, DeviceModel, model_of
from hkbench.device_kinds.cpu import CPU
from hkbench.devices.probe import probe
from hkbench.evaluation.clocks import compare
from hkbench.evaluation.measure import Samples, conclude, rounds
from hkbench.records import DeviceFacts, DeviceKind, SizeSet


@pytest.fixture
def toy() -> Iterator[DeviceModel]:
    """A kind that computes on the host, with a coarse clock."""
    model = replace(CPU, kind=DeviceKind.register("toy"), label="Toy", default_runs=7, resolution=0.5)
    KINDS.append(model)
    yield model
    KINDS.remove(model)
    DeviceKind._known.pop("toy")


@pytest.mark.parametrize("kind", DeviceKind.known())
def test_every_kind_has_a_model(kind: DeviceKind) -> None:
    model = model_of(kind)
    assert model.kind is kind
    assert model.torch_device(1) == ("cpu" if model.on_host else "cuda:1")
    assert (model.default_sizes is SizeSet.FULL) != model.on_host
    assert (model.default_sizes is SizeSet.EMULATED) == (model.emulates is not None)
    assert len(set(model.metrics)) == len(model.metrics)


def test_builds_are_for_the_device_at_hand() -> None:
    assert model_of(DeviceKind.CUDA).build_targets("sm_90") == {"TORCH_CUDA_ARCH_LIST": "9.0"}
    assert model_of(DeviceKind.ROCM).build_targets("gfx942") == {"PYTORCH_ROCM_ARCH": "gfx942"}
    assert model_of(DeviceKind.CPU).build_targets("x86_64") == {}


def test_an_added_kind_is_probed_measured_and_recorded(toy: DeviceModel) -> None:
    (facts,) = probe(toy.kind)
    assert facts.kind is toy.kind
    assert DeviceFacts.model_validate_json(facts.model_dump_json()) == facts
    assert rounds(None, model_of(facts.kind)) == (7, 7, 7)
    calls = Samples([1.0] * 12, [1.0] * 12, [1.1] * 12, [0.0] * 12)
    assert compare(calls, calls, None, toy).agree
    found = conclude(calls, calls, toy.clock, 0, toy)
    assert found.speedup.low < 0.6, "the clock of this kind cannot tell more"


def test_a_kind_that_nobody_registered_is_refused() -> None:
    with pytest.raises(ValueError, match="opencl"):
        DeviceKind("opencl")
    with pytest.raises(ValidationError):
        DeviceFacts.model_validate({"kind": "opencl", "index": 0, "name": "x"})

"""What is known of devices without having them, and the CPU that is here."""

from __future__ import annotations

import os

import pytest
import torch

from hkbench.devices.peaks import find_part
from hkbench.devices.probe import available_kind, flush_bytes, probe
from hkbench.errors import DeviceUnavailable
from hkbench.records import DeviceFacts, DeviceKind

MIB = 1 << 20


def test_the_cpu() -> None:
    (facts,) = probe(DeviceKind.CPU)
    assert (facts.kind, facts.index) == (DeviceKind.CPU, 0)
    assert facts.name and facts.arch == os.uname().machine
    assert facts.compute_units == len(os.sched_getaffinity(0))
    assert facts.memory_bytes is not None and facts.memory_bytes > 256 * MIB
    assert facts.llc_bytes is not None and facts.llc_bytes >= MIB
    assert facts.versions["torch"] == torch.__version__
    assert flush_bytes(facts) >= 2 * facts.llc_bytes


@pytest.mark.parametrize("kind", [DeviceKind.CUDA, DeviceKind.ROCM])
def test_a_gpu_that_torch_was_not_built_for(kind: DeviceKind) -> None:
    built_for = DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA if torch.version.cuda else None
    if built_for is kind:
        pytest.skip(f"this torch is built for {kind}")
    with pytest.raises(DeviceUnavailable, match=f"install a {kind} build of torch") as caught:
        probe(kind)
    assert "--device cpu" in str(caught.value)


def test_the_best_kind_can_be_probed() -> None:
    kind = available_kind()
    assert (kind is DeviceKind.CPU) is not torch.cuda.is_available()
    assert all(facts.kind is kind for facts in probe(kind))


@pytest.mark.parametrize(
    ("name", "bandwidth", "llc"),
    [
        ("AMD Instinct MI300X", 5.3e12, 256 * MIB),
        ("AMD Instinct MI300X VF", 5.3e12, 256 * MIB),
        ("AMD Instinct MI355X OAM", 8.0e12, 256 * MIB),
        ("NVIDIA H200", 4.8e12, 50 * MIB),
        ("NVIDIA H100 80GB HBM3", 3.35e12, 50 * MIB),
    ],
)
def test_parts_by_the_device_s_name(name: str, bandwidth: float, llc: int) -> None:
    part = find_part(name)
    assert part is not None
    assert (part.bandwidth, part.llc) == (bandwidth, llc)
    assert part.flops["bfloat16"] > part.flops["float32"]


@pytest.mark.parametrize("name", ["NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200 NVL", "NVIDIA GH200 480GB"])
def test_another_card_of_the_same_chip_is_not_the_listed_part(name: str) -> None:
    assert find_part(name) is None


@pytest.mark.parametrize("name", ["", "NVIDIA GeForce RTX 4090", "AMD Radeon RX 7900 XTX", "AMD Instinct MI300A"])
def test_nothing_is_guessed(name: str) -> None:
    assert find_part(name) is None


def test_an_unknown_cache_is_flushed_generously() -> None:
    facts = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="x", memory_bytes=1 << 34, versions={})
    assert flush_bytes(facts) >= 256 * MIB
    known = facts.model_copy(update={"llc_bytes": 300 * MIB})
    assert flush_bytes(known) >= 2 * 300 * MIB

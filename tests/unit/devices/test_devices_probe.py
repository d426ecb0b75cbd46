"""What is known of devices without having them, and the CPU that is here."""

from __future__ import annotations

import os

import pytest
import torch

from hkbench.devices.peaks import find_part, flush_bytes
from hkbench.devices.probe import _gpu, available_kind, probe
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


@pytest.mark.parametrize(
    "name", ["", "NVIDIA GeForce RTX 4090", "AMD Radeon RX 7900 XTX", "AMD Instinct MI300A", "NVIDIA GH200 480GB"]
)
def test_nothing_is_guessed(name: str) -> None:
    assert find_part(name) is None


def test_an_unknown_cache_is_flushed_generously() -> None:
    facts = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="x", memory_bytes=1 << 34, versions={})
    assert flush_bytes(facts) >= 256 * MIB
    known = facts.model_copy(update={"llc_bytes": 300 * MIB})
    assert flush_bytes(known) >= 2 * 300 * MIB


class Properties:
    """Of an MI300X in a container that does not know the names of PCI devices, as torch's ROCm build gives them."""

    name = ""
    gcnArchName = "gfx942:sramecc+:xnack-"  # noqa: N815 - torch's name
    multi_processor_count = 304
    total_memory = 205822885888
    clock_rate = 2100000
    L2_cache_size = 4 * MIB
    warp_size = 64
    shared_memory_per_multiprocessor = 65536


def test_an_unnamed_amd_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties())
    facts = _gpu(DeviceKind.ROCM, 3)
    assert (facts.index, facts.name, facts.arch, facts.bandwidth) == (3, "AMD Instinct MI300X", "gfx942", 5.3e12)
    assert flush_bytes(facts) == 512 * MIB
    assert facts.sources["name"] == "the part that fits the figures"
    assert facts.sources["llc_bytes"] == facts.sources["bandwidth"] == "data sheet (AMD1, AMD2)"
    monkeypatch.setattr(Properties, "name", "AMD Radeon Graphics")
    assert _gpu(DeviceKind.ROCM, 3) == facts
    monkeypatch.setattr(Properties, "name", "")
    monkeypatch.setattr(Properties, "multi_processor_count", 38)
    facts = _gpu(DeviceKind.ROCM, 3)  # a partition: which part is not said, but its cache is shared
    assert (facts.name, facts.bandwidth, facts.peak_flops) == ("gfx942", None, {})
    assert facts.sources["llc_bytes"] == "data sheet (AMD1)"
    assert "bandwidth" not in facts.sources
    assert flush_bytes(facts) == 512 * MIB


def test_what_verdicts_see_of_a_named_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Properties, "name", "AMD Instinct MI300X")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties())
    facts = _gpu(DeviceKind.ROCM, 0)
    # The floor takes the largest of these: a rate of 8-bit formats would halve it.
    assert set(facts.peak_flops) == {"bfloat16", "float16", "float32", "float64"}
    assert max(facts.peak_flops.values()) == pytest.approx(1307.4e12)
    said_by_torch = {"name", "arch", "memory_bytes", "compute_units", "wave_size", "lds_bytes"}
    assert {field for field, source in facts.sources.items() if source == "torch"} == said_by_torch


def test_where_a_gpu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """HIP has sixteen digits in the sixteen bytes; an older torch says nothing of the bus."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties())
    assert (_gpu(DeviceKind.ROCM, 0).uuid, _gpu(DeviceKind.ROCM, 0).pci) == (None, None)
    digits = b"a1b2c3d4e5f60718".hex()
    monkeypatch.setattr(Properties, "uuid", f"{digits[:8]}-{digits[8:]}", raising=False)
    for part, number in (("domain", 0), ("bus", 0x1B), ("device", 0)):
        monkeypatch.setattr(Properties, f"pci_{part}_id", number, raising=False)
    assert (_gpu(DeviceKind.ROCM, 0).uuid, _gpu(DeviceKind.ROCM, 0).pci) == ("GPU-a1b2c3d4e5f60718", "0000:1b:00")
    monkeypatch.setattr(Properties, "uuid", "ffffffff", raising=False)
    assert _gpu(DeviceKind.ROCM, 0).uuid is None


def test_every_known_fact_of_the_processor_has_a_source() -> None:
    (facts,) = probe(DeviceKind.CPU)
    assert {"name", "arch", "memory_bytes", "compute_units", "llc_bytes"} <= set(facts.sources)
    assert set(facts.sources.values()) == {"the operating system"}

"""The part that prompts describe where there is no GPU."""

from __future__ import annotations

import pytest

from hkbench.devices.targets import target_facts
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.toolchain.hip import ARCHITECTURES

#: Rates, cache and bandwidth: AMD's data sheets; LDS: AMDGPUUsage.
PARTS = {
    "gfx942": ("AMD Instinct MI300X", 304, 5.3e12, 64 << 10, 1307.4e12),
    "gfx950": ("AMD Instinct MI355X", 256, 8.0e12, 160 << 10, 2516.6e12),
}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_the_part_of_an_architecture(arch: str) -> None:
    facts = target_facts(arch, {"hip": "6.4"})
    said = (facts.name, facts.compute_units, facts.bandwidth, facts.lds_bytes, facts.peak_flops["bfloat16"])
    assert said == PARTS[arch]
    assert (facts.kind, facts.arch, facts.wave_size, facts.versions) == (DeviceKind.ROCM, arch, 64, {"hip": "6.4"})


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_fact_has_its_source(arch: str) -> None:
    facts = target_facts(arch, {})
    given = {name for name in DeviceFacts.model_fields if getattr(facts, name)}
    assert set(facts.sources) == given - {"kind", "arch", "sources"}
    assert facts.sources["bandwidth"] == "data sheet (AMD1, AMD2)"

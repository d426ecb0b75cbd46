"""Data-sheet figures against each other, and parts by name and by figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.devices.peaks import (
    ARCH_LLC,
    GIB,
    MIB,
    PARTS,
    Part,
    differences,
    find_part,
    flush_bytes,
    identify,
    last_level_cache,
)
from hkbench.records import DeviceFacts, DeviceKind

NAMES = {
    "AMD Instinct MI300X": "MI300X",
    "AMD Instinct MI300X VF": "MI300X",
    "AMD Instinct MI325X": "MI325X",
    "AMD Instinct MI350X": "MI350X",
    "AMD Instinct MI355X OAM": "MI355X",
    "NVIDIA H200": "H200 SXM",
    "NVIDIA H200 NVL": "H200 NVL",
    "NVIDIA H200 PCIe": "H200 NVL",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 NVL": "H100 NVL",
}
#: What analysis/roofline.py and prompts have always been given, teraFLOP/s.
GENERAL = {
    "MI300X": (1307.4, 163.4, 81.7),
    "MI325X": (1307.4, 163.4, 81.7),
    "MI355X": (2516.6, 157.3, 78.6),
    "MI350X": (2300.0, 144.2, 72.1),
    "H200 SXM": (989.4, 66.9, 33.5),
    "H100 SXM": (989.4, 66.9, 33.5),
}
#: Operations of a compute unit in a clock, dense: CDNA 3 and CDNA 4 instruction set guides.
CDNA3 = {"bfloat16": 2048, "float32": 256, "float64": 128, "float8": 4096, "int8": 4096, "tfloat32": 1024}
CDNA4 = {"bfloat16": 4096, "float32": 256, "float64": 128, "float8": 8192, "int8": 8192, "mxfloat8": 8192,
         "mxfloat6": 16384, "mxfloat4": 16384}  # fmt: skip


def by_name(name: str) -> Part:
    return next(part for part in PARTS if part.name == name)


@pytest.mark.parametrize(("device", "part"), NAMES.items())
def test_parts_by_the_device_s_own_name(device: str, part: str) -> None:
    found = find_part(device)
    assert found is not None and found.name == part
    assert [one.name for one in PARTS if one.pattern.search(device)] == [part]


@pytest.mark.parametrize(("name", "tera"), GENERAL.items())
def test_the_rates_that_verdicts_use_are_these_four(name: str, tera: tuple[float, float, float]) -> None:
    half, single, double = tera
    expected = {"bfloat16": half, "float16": half, "float32": single, "float64": double}
    assert {dtype: rate / 1e12 for dtype, rate in by_name(name).flops.items()} == pytest.approx(expected)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_rates_fit_units_and_clock(part: Part) -> None:
    per_clock = {"gfx942": CDNA3, "gfx950": CDNA4}.get(part.arch)
    rates = part.rates
    if per_clock is None:  # Hopper: tensor cores run at a lower clock than the others
        assert rates["float32"] == pytest.approx(part.compute_units * 256 * part.clock_mhz * 1e6, rel=0.01)
        assert rates["float8"] == pytest.approx(2 * rates["bfloat16"], rel=0.002)
        assert rates["tfloat32"] == pytest.approx(rates["bfloat16"] / 2, rel=0.002)
        assert rates["bfloat16"] < part.compute_units * 4096 * part.clock_mhz * 1e6
        return
    for dtype, operations in per_clock.items():
        assert rates[dtype] == pytest.approx(part.compute_units * operations * part.clock_mhz * 1e6, rel=0.005), dtype
    assert set(rates) == set(per_clock) | {"float16"}


def test_formats_that_a_part_lacks_are_not_there() -> None:
    assert "tfloat32" not in by_name("MI355X").narrow
    assert not {"mxfloat8", "mxfloat6", "mxfloat4"} & set(by_name("MI300X").narrow)
    assert not {"mxfloat8", "mxfloat6", "mxfloat4"} & set(by_name("H200 SXM").narrow)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_the_flush_is_twice_the_last_cache(part: Part) -> None:
    cache = last_level_cache(part, part.arch, reported=4 * MIB)
    facts = DeviceFacts(kind=DeviceKind.ROCM, index=0, name=part.name, llc_bytes=cache)
    assert cache == part.llc
    assert flush_bytes(facts) >= 2 * part.llc
    assert flush_bytes(facts) >= (512 * MIB if part.arch in ARCH_LLC else 100 * MIB)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_an_unnamed_part_is_flushed_past_its_infinity_cache(arch: str) -> None:
    # HIP reports one die's 4 MiB of L2; twice that would leave the whole Infinity Cache warm.
    cache = last_level_cache(None, arch, reported=4 * MIB)
    assert cache == 256 * MIB
    assert flush_bytes(DeviceFacts(kind=DeviceKind.ROCM, index=0, name="", llc_bytes=cache)) >= 512 * MIB


def test_a_cache_that_nobody_knows() -> None:
    assert last_level_cache(None, "sm_89", 0) is None
    assert last_level_cache(None, "sm_89", 72 * MIB) == 72 * MIB


@pytest.mark.parametrize("name", ["", "AMD Radeon Graphics"])
@pytest.mark.parametrize("part", [part for part in PARTS if part.arch in ARCH_LLC], ids=lambda part: part.name)
def test_a_gpu_without_a_name_by_its_figures(name: str, part: Part) -> None:
    memory = int(part.memory * 0.998)
    found = identify(name, part.arch, part.compute_units, memory, part.clock_mhz)
    assert found is part
    assert identify(name, part.arch, part.compute_units, memory, None) is None
    assert identify(name, part.arch, part.compute_units // 8, memory, part.clock_mhz) is None
    assert identify(name, part.arch, part.compute_units, memory // 2, part.clock_mhz) is None


@pytest.mark.parametrize("name", ["AMD Instinct MI300A", "AMD Instinct MI308X", "AMD Instinct MI210"])
def test_another_model_is_not_taken_for_one_that_has_its_figures(name: str) -> None:
    assert identify(name, "gfx942", 304, 192 * GIB, 2100) is None


def test_only_amd_parts_are_known_by_figures() -> None:
    assert identify("", "sm_90", 132, 141 * GIB, 1980) is None


def test_partitions_are_told_from_whole_parts() -> None:
    part = by_name("MI300X")
    assert differences(part, 304, int(191.7 * GIB)) == []
    units, memory = differences(part, 38, 24 * GIB)
    assert units == "38 compute units, MI300X has 304"
    assert memory == "24 GiB, MI300X has 192"


def test_each_part_names_sources_that_the_module_lists() -> None:
    text = (Path(__file__).parents[3] / "hkbench/devices/peaks.py").read_text()
    for part in PARTS:
        assert all(f"\n{source} " in text for source in part.source.split(", "))

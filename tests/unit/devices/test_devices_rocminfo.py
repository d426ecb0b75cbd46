"""rocminfo's text, as documented; none of it was captured on a GPU of ours."""

from __future__ import annotations

import pytest
from devices_rocminfo_text import CPU, HEADER, listing, mi300x, mi355x, padded

from hkbench.devices.rocminfo import parse
from hkbench.errors import DeviceUnavailable

GIB = 1 << 30
KIB = 1 << 10


@pytest.mark.parametrize("shape", [str, padded])
def test_gpus_with_cpus_in_between(shape: type[str]) -> None:
    text = shape(listing(CPU.format(agent=1), mi300x(2), CPU.format(agent=3), mi355x(4, bdf=0x7508)))
    one, two = parse(text)
    assert (one.index, one.name, one.arch) == (0, "AMD Instinct MI300X", "gfx942")
    assert (one.compute_units, one.wave_size, one.clock_mhz) == (304, 64, 2100)
    assert one.memory_bytes == 200998912 * KIB
    assert (one.l2_bytes, one.l3_bytes, one.lds_bytes) == (4096 * KIB, 262144 * KIB, 64 * KIB)
    assert one.pci == "0000:1b:00"  # 6912 = 0x1b00
    assert (two.index, two.name, two.arch, two.lds_bytes) == (1, "AMD Instinct MI355X", "gfx950", 160 * KIB)
    assert two.pci == "0000:75:01"
    assert two.memory_bytes is not None and 287 * GIB < two.memory_bytes <= 288 * GIB


def test_what_rocminfo_does_not_know_is_not_made_up() -> None:
    (gpu,) = parse(listing(mi300x(1)))
    assert gpu.registers is None and gpu.bus_bits is None and gpu.memory_clock_mhz is None


def test_a_domain_where_it_is_printed() -> None:
    text = listing(mi300x(1)).replace(
        "  BDFID:                   6912", "  BDFID:                   6912\n  Domain:  2"
    )
    assert parse(text)[0].pci == "0002:1b:00"


def test_a_name_with_a_colon_and_one_that_is_missing() -> None:
    assert parse(listing(mi300x(1, name="AMD Instinct MI300X OAM: 750W")))[0].name == "AMD Instinct MI300X OAM: 750W"
    assert parse(listing(mi300x(1, name="")))[0].name is None


def test_a_machine_without_gpus_has_none() -> None:
    assert parse(listing(CPU.format(agent=1))) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ROCk module is NOT loaded, possibly no GPU devices\n", "ROCk module is NOT loaded"),
        ("", "it says: nothing"),
        (HEADER, "lists no agents"),
        (HEADER + mi300x(1).partition("  Pool Info:")[0], "breaks off within AMD Instinct MI300X"),
    ],
)
def test_text_that_cannot_be_used(text: str, said: str) -> None:
    with pytest.raises(DeviceUnavailable, match=said):
        parse(text)

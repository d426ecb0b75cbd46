"""What several sources say of the same GPU, and the lines that tell it."""

from __future__ import annotations

from hkbench.devices.describe import gpu_lines
from hkbench.devices.merge import alone, merge
from hkbench.devices.reading import GpuReading, SourceReport
from hkbench.records import DeviceFacts, DeviceKind

MIB = 1 << 20
NOBODY = SourceReport(source="AMD SMI", error="amdsmi is not installed")
MEMORY = 205822885888


def facts(index: int = 0, name: str = "AMD Instinct MI300X", **changes: object) -> DeviceFacts:
    values: dict[str, object] = {
        "kind": DeviceKind.ROCM, "index": index, "name": name, "arch": "gfx942", "memory_bytes": MEMORY,
        "compute_units": 304, "wave_size": 64, "lds_bytes": 65536, "llc_bytes": 256 * MIB, "versions": {"hip": "7.2"},
    }  # fmt: skip
    return DeviceFacts.model_validate(values | changes)


def smi(*gpus: GpuReading) -> SourceReport:
    return SourceReport(source="AMD SMI", gpus=gpus)


def reading(index: int = 0, **changes: object) -> GpuReading:
    values: dict[str, object] = {
        "index": index, "name": "AMD Instinct MI300X", "arch": "gfx942", "compute_units": 304,
        "memory_bytes": MEMORY, "clock_mhz": 2100, "bus_bits": 8192, "memory_clock_mhz": 1300,
        "l2_bytes": 4 * MIB, "l3_bytes": 256 * MIB, "pci": f"0000:{0x1B + index:02x}:00",
    }  # fmt: skip
    return GpuReading.model_validate(values | changes)


def test_sources_that_agree() -> None:
    (gpu,) = merge([facts()], smi(reading()))
    assert gpu.disagreements == ()
    assert gpu.part is not None and gpu.part.name == "MI300X"
    assert (gpu.sources["name"], gpu.sources["bus_bits"], gpu.sources["l3_bytes"]) == ("torch", "AMD SMI", "AMD SMI")
    sources = dict.fromkeys(("name", "arch", "compute_units", "wave_size", "lds_bytes", "memory_bytes"), "torch")
    sources |= {"pci": "AMD SMI", "llc_bytes": "AMD SMI"} | dict.fromkeys(
        ("bandwidth", "peak_flops"), "data sheet (AMD1, AMD2)"
    )
    peaks = {"bandwidth": gpu.part.bandwidth, "peak_flops": gpu.part.flops}
    assert gpu.facts == facts(sources=sources).model_copy(update=peaks | {"pci": "0000:1b:00"})


def test_where_a_gpu_is_comes_from_torch_where_nobody_else_says() -> None:
    known = facts().model_copy(update={"uuid": "GPU-1", "pci": "0000:2c:00"})
    (gpu,) = merge([known], NOBODY)
    assert (gpu.facts.uuid, gpu.facts.pci) == ("GPU-1", "0000:2c:00")
    assert set(gpu.sources.values()) == {"torch"}


def test_a_difference_is_named_with_both_and_torch_stands() -> None:
    (gpu,) = merge([facts(compute_units=228, memory_bytes=MEMORY - MIB)], smi(reading()))
    assert gpu.disagreements == ("compute_units: torch says 228, AMD SMI says 304",)
    assert gpu.facts.compute_units == 228
    assert "warning  sources disagree on compute_units: torch says 228, AMD SMI says 304" in list(gpu_lines(gpu))


def test_gpus_are_matched_by_their_address_not_by_place() -> None:
    both = smi(reading(0, compute_units=256), reading(1))
    (gpu,) = merge([facts(pci="0000:1c:00")], both)
    assert gpu.disagreements == () and gpu.reading.clock_mhz == 2100
    # Without an address nothing says which of the two is torch's.
    (gpu,) = merge([facts()], both)
    assert "AMD SMI" not in gpu.sources.values()
    first, second = merge([facts(1), facts(0, compute_units=256)], both)
    assert (first.facts.index, second.facts.index) == (0, 1)
    assert first.disagreements == second.disagreements == ()


def test_a_container_that_does_not_know_the_name() -> None:
    (gpu,) = merge([facts(name="AMD Radeon Graphics")], smi(reading()))
    assert (gpu.facts.name, gpu.sources["name"], gpu.disagreements) == ("AMD Instinct MI300X", "AMD SMI", ())
    (gpu,) = merge([facts(name="AMD Radeon Graphics")], smi(reading(name=None)))
    assert gpu.part is not None and gpu.part.name == "MI300X"  # by its figures
    assert (gpu.facts.name, gpu.facts.bandwidth) == ("AMD Instinct MI300X", 5.3e12)
    assert gpu.facts.sources["name"] == "the part that fits the figures"


def test_names_of_two_models_are_a_difference() -> None:
    (gpu,) = merge([facts(name="AMD Instinct MI325X")], smi(reading()))
    assert gpu.disagreements == ("name: torch says AMD Instinct MI325X, AMD SMI says AMD Instinct MI300X",)


def test_what_torch_cannot_see_is_still_listed() -> None:
    (gpu,) = merge([], smi(reading()))
    assert (gpu.facts.name, gpu.facts.arch, gpu.facts.llc_bytes) == ("AMD Instinct MI300X", "gfx942", 256 * MIB)
    assert merge([], NOBODY) == ()


def test_lines_of_a_whole_part_and_of_a_partition() -> None:
    (gpu,) = merge([facts()], smi(reading()))
    head, *rest = gpu_lines(gpu)
    assert head == "rocm 0: AMD Instinct MI300X, gfx942"
    text = "\n".join(rest)
    for words in (
        "191.7 GiB, 8192 bits at 1300 MHz, last-level cache 256 MiB, flushed by 512 MiB",
        "304 compute units, waves of 64, 64 KiB LDS or shared memory each",
        "up to 2100 MHz, PCI 0000:1b:00",
        "MI300X (AMD1, AMD2): 5.3 TB/s; dense TFLOP/s: bfloat16 1307",
        "float8 2615",
        "data sheet: peaks",
    ):
        assert words in text
    assert "warning" not in text
    (gpu,) = merge([facts(compute_units=38, memory_bytes=MEMORY // 8)], NOBODY)
    text = "\n".join(gpu_lines(gpu))
    assert "warning  38 compute units, MI300X has 304: a partition or a slice" in text


def test_an_nvidia_gpu_and_one_without_peaks() -> None:
    h200 = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="NVIDIA H200", arch="sm_90", memory_bytes=150 << 30,
                       compute_units=132, llc_bytes=60 * MIB)  # fmt: skip
    assert "peaks    H200 SXM (NV1, NV2): 4.8 TB/s" in "\n".join(gpu_lines(alone(h200)))
    other = h200.model_copy(update={"name": "NVIDIA L4", "compute_units": 58})
    text = "\n".join(gpu_lines(alone(other)))
    assert "peaks    not known" in text and "nobody: peaks" in text and "warning" not in text

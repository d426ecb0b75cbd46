"""Ask torch and the operating system what a device is: for a process that may touch the device."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import torch

from hkbench.device_kinds import model_of
from hkbench.devices.peaks import identify, last_level_cache, model_name, table_sources
from hkbench.devices.targets import target_facts
from hkbench.errors import DeviceUnavailable
from hkbench.records import DeviceFacts, DeviceKind

DEFAULT_CPU_CACHE = 32 << 20
TORCH, SYSTEM = "torch", "the operating system"
_SAID = ("name", "arch", "memory_bytes", "compute_units", "wave_size", "lds_bytes", "llc_bytes")


def available_kind() -> DeviceKind:
    """Return the best kind of device that torch can use here: a GPU if there is one."""
    if torch.cuda.is_available():
        return DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA
    return DeviceKind.CPU


def probe(kind: DeviceKind) -> tuple[DeviceFacts, ...]:
    """Return all devices of a kind.

    Raises:
        DeviceUnavailable: torch sees none; the message says what to look at.
    """
    model = model_of(kind)
    if model.emulates is not None:
        return (_emulated(kind, model.emulates),)
    if model.on_host:
        return (_cpu(kind),)
    built_for = DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA if torch.version.cuda else None
    if built_for is not kind:
        raise DeviceUnavailable(
            f"device {kind}: the installed torch {torch.__version__} is built for {built_for or 'CPU only'}; "
            f"install a {kind} build of torch in this environment, or use --device cpu"
        )
    if not torch.cuda.is_available():
        raise DeviceUnavailable(
            f"device {kind}: torch {torch.__version__} finds no GPU; check that {model.lists_devices} lists one and "
            "that this user may open its device files, or use --device cpu"
        )
    return tuple(_gpu(kind, index) for index in range(torch.cuda.device_count()))


def _emulated(kind: DeviceKind, arch: str) -> DeviceFacts:
    """Return what candidates are told of the device; its memory is the host's, and nothing of it has a speed."""
    part = target_facts(arch, versions())
    name = f"an emulated {arch} (as {part.name})"
    return part.model_copy(update={"kind": kind, "name": name, "bandwidth": None, "peak_flops": {}})


def _gpu(kind: DeviceKind, index: int) -> DeviceFacts:
    props = torch.cuda.get_device_properties(index)
    rocm = kind is DeviceKind.ROCM
    arch = props.gcnArchName.partition(":")[0] if rocm else f"sm_{props.major}{props.minor}"
    clock_mhz = int(getattr(props, "clock_rate", 0)) // 1000  # kHz
    part = identify(props.name, arch, props.multi_processor_count, props.total_memory, clock_mhz)
    reported = int(getattr(props, "L2_cache_size", 0))
    return _by(
        TORCH,
        table_sources(part, props.name, arch, reported),
        kind=kind,
        index=index,
        name=model_name(props.name, part, arch),
        uuid=_uuid(str(getattr(props, "uuid", "")), rocm),
        pci=_pci(props),
        arch=arch,
        memory_bytes=props.total_memory,
        compute_units=props.multi_processor_count,
        wave_size=getattr(props, "warp_size", None),
        lds_bytes=getattr(props, "shared_memory_per_multiprocessor", None),
        llc_bytes=last_level_cache(part, arch, reported),
        bandwidth=part.bandwidth if part else None,
        peak_flops=part.flops if part else {},
        versions=versions(),
    )


def _uuid(text: str, rocm: bool) -> str | None:
    """Return the UUID as the driver's tools print it.

    HIP's sixteen bytes are the text of an AMD GPU's own sixteen digits.
    """
    if rocm:
        try:
            text = bytes.fromhex(text.replace("-", "")).decode("ascii")
        except ValueError:
            return None
        text = text if text.isalnum() else ""
    return f"GPU-{text}" if text else None


def _pci(props: object) -> str | None:
    """Return domain, bus and device; `None` from a torch before it knew them."""
    parts = [getattr(props, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    known = [part for part in parts if isinstance(part, int)]
    return "{:04x}:{:02x}:{:02x}".format(*known) if len(known) == len(parts) else None


def _by(source: str, tables: dict[str, str], **known: Any) -> DeviceFacts:
    """Return the facts, with `source` as the source of each that is known and that `tables` does not claim."""
    said = {field: source for field in _SAID if known.get(field)}
    return DeviceFacts(**known, sources=said | tables)


def _cpu(kind: DeviceKind) -> DeviceFacts:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return _by(
        SYSTEM,
        {},
        kind=kind,
        index=0,
        name=_cpu_name(),
        arch=platform.machine(),
        memory_bytes=pages,
        compute_units=len(os.sched_getaffinity(0)),
        llc_bytes=_cpu_cache(),
        versions=versions(),
    )


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _cpu_cache() -> int:
    """Return the largest cache of core 0 in bytes, as the kernel reports it."""
    sizes = [0]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text[:-1]) * {"K": 1 << 10, "M": 1 << 20}.get(text[-1], 1))
    return max(sizes) or DEFAULT_CPU_CACHE


def versions() -> dict[str, str]:
    """Return what a verdict depends on: interpreter, torch and what torch was built with."""
    found = {"python": platform.python_version(), "torch": torch.__version__}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
    if torch.version.hip:
        found["hip"] = torch.version.hip
    return found


def torch_device(facts: DeviceFacts) -> torch.device:
    """Return what torch calls a device."""
    return torch.device(model_of(facts.kind).torch_device(facts.index))

"""Asks HIP, through hip-python, what every AMD GPU is, and prints it as one line of JSON.

Run in a process of its own (`python -m hkbench.devices.hip_facts`): whoever asks HIP holds a context afterwards, and a
process that forks judges or runners must not. Needs nothing of hkbench and nothing but hip-python.

    {"source": "hip-python 7.2.2.562.43", "error": null, "gpus": [{"index": 0, "name": "AMD Instinct MI300X", ...}]}

`error` says why there are no GPUs in it; the exit code is 0 then too. Bytes, MHz, bits; what HIP does not say, or says
as 0, is left out. The two lines of hip-python differ: up to 7.x `hipGetDeviceProperties(properties, index)` fills an
object and text comes as bytes; from 10.x on `hipGetDeviceProperties(index)` returns the object and text is text. Either
way a call returns a tuple whose first element is the error code.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import metadata
from typing import Any

#: Name here -> names in hipDeviceProp_t, the first that is there and not 0.
FIELDS = {
    "name": ("name",),
    "arch": ("gcnArchName",),
    "compute_units": ("multiProcessorCount",),
    "wave_size": ("warpSize",),
    "lds_bytes": ("sharedMemPerMultiprocessor", "maxSharedMemoryPerMultiProcessor"),
    "lds_block_bytes": ("sharedMemPerBlock",),
    "registers": ("regsPerMultiprocessor",),
    "registers_block": ("regsPerBlock",),
    "memory_bytes": ("totalGlobalMem",),
    "bus_bits": ("memoryBusWidth",),
    "l2_bytes": ("l2CacheSize",),
}
CLOCKS = {"clock_mhz": "clockRate", "memory_clock_mhz": "memoryClockRate"}  #: in kHz there


class HipFailed(Exception):
    """A HIP call returned an error code."""


def facts() -> dict[str, Any]:
    """What is printed."""
    try:
        source = f"hip-python {metadata.version('hip-python')}"
        from hip import hip  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except (ImportError, metadata.PackageNotFoundError):
        return _nothing("hip-python", "hip-python is not installed; `make setup` installs the line that fits ROCm")
    try:
        return {"source": source, "error": None, "gpus": [_gpu(hip, index) for index in range(_count(hip))]}
    except RuntimeError as error:  # the library is opened at the first call
        return _nothing(source, f"HIP's library cannot be opened ({error}); is ROCm on LD_LIBRARY_PATH?")
    except HipFailed as error:
        return _nothing(source, f"{error}; may this user open /dev/kfd and /dev/dri/renderD*?")
    except (AttributeError, TypeError, ValueError) as error:
        return _nothing(source, f"this hip-python is called in neither of the known ways ({error!r})")


def _nothing(source: str, why: str) -> dict[str, Any]:
    return {"source": source, "error": why, "gpus": []}


def _count(hip: Any) -> int:
    (count,) = _checked(hip.hipGetDeviceCount)
    return int(count)


def _gpu(hip: Any, index: int) -> dict[str, Any]:
    properties = _properties(hip, index)
    found: dict[str, Any] = {"index": index}
    for field, names in FIELDS.items():
        values = (_plain(getattr(properties, name, None)) for name in names)
        found[field] = next((value for value in values if value), None)
    for field, name in CLOCKS.items():
        found[field] = int(getattr(properties, name, 0)) // 1000 or None
    if found["arch"]:
        found["arch"] = found["arch"].partition(":")[0]
    bus = getattr(properties, "pciBusID", None)
    if bus is not None:
        domain, device = (int(getattr(properties, name, 0)) for name in ("pciDomainID", "pciDeviceID"))
        found["pci"] = f"{domain:04x}:{int(bus):02x}:{device:02x}"
    return {field: value for field, value in found.items() if value is not None}


def _properties(hip: Any, index: int) -> Any:
    try:
        (properties,) = _checked(hip.hipGetDeviceProperties, index)
    except TypeError:  # the older line wants the object to fill
        properties = hip.hipDeviceProp_t()
        _checked(hip.hipGetDeviceProperties, properties, index)
    return properties


def _checked(function: Callable[..., Any], *arguments: Any) -> tuple[Any, ...]:
    """What a call returns besides its error code."""
    result = function(*arguments)
    code, *values = result if isinstance(result, tuple) else (result,)
    if int(code) != 0:
        name = getattr(code, "name", int(code))
        raise HipFailed(f"{getattr(function, '__name__', 'a HIP call')} failed with {name}")
    return tuple(values)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        value = value.partition(b"\0")[0].decode(errors="replace")
    return value.strip() if isinstance(value, str) else value


if __name__ == "__main__":
    sys.stdout.write(json.dumps(facts()) + "\n")

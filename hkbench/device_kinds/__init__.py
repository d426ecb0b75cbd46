"""What differs between kinds of devices: one file a kind, and one line of `KINDS`.

A package of its own adds a kind as an entry point of the group `hkbench.device_kinds`: its name is the kind's, its
value the place of the `DeviceModel` (`module:object`).
"""

from hkbench.device_kinds.base import CallLimits, DeviceModel, Profiler
from hkbench.device_kinds.cpu import CPU
from hkbench.device_kinds.cuda import CUDA
from hkbench.device_kinds.emulated import EMULATED
from hkbench.device_kinds.rocm import ROCM
from hkbench.records import DeviceKind, installed_device_kinds

KINDS: list[DeviceModel] = [ROCM, CUDA, CPU, *EMULATED]
KINDS += [point.load() for point in installed_device_kinds()]


def model_of(kind: DeviceKind) -> DeviceModel:
    """Return what is known of a kind of device.

    Raises:
        LookupError: no model of this kind is registered.
    """
    for model in KINDS:
        if model.kind == kind:
            return model
    raise LookupError(f"device kind {kind} has no model; add it to hkbench.device_kinds.KINDS")


__all__ = ["KINDS", "CallLimits", "DeviceModel", "Profiler", "model_of"]

"""AMD's GPUs as this project emulates them (hkbench/emulator): right or wrong, never fast."""

from __future__ import annotations

from hkbench.device_kinds.base import DeviceModel
from hkbench.device_kinds.cpu import CPU
from hkbench.device_kinds.rocm import ROCM
from hkbench.records import DeviceKind, SizeSet


def _model(kind: DeviceKind) -> DeviceModel:
    arch = kind.partition(":")[2]
    return DeviceModel(
        kind=kind,
        label=f"emulated {arch}",
        phrase=f"an emulated {arch}",
        on_host=True,
        unit=ROCM.unit,
        lanes=ROCM.lanes,
        local_memory=ROCM.local_memory,
        clock="none",
        limits=CPU.limits,  # no time is measured
        default_runs=CPU.default_runs,
        resolution=0.0,
        process_variation=0.0,
        default_sizes=SizeSet.EMULATED,
        default_shapes=2,
        max_growth=1.25,  # a shape of twice the size takes as long as all trials
        emulates=arch,
        build_targets=ROCM.build_targets,
    )


EMULATED = (_model(DeviceKind.EMULATED_GFX942), _model(DeviceKind.EMULATED_GFX950))

"""The records that the executor takes and fills: the layouts of core/abi.h."""

from __future__ import annotations

import ctypes
from ctypes import c_uint32, c_uint64


class RangeRecord(ctypes.Structure):
    """A range of memory that kernels may touch."""

    _fields_ = [
        ("begin", c_uint64), ("end", c_uint64), ("written", c_uint64), ("trace", c_uint64),
        ("writable", c_uint32), ("spare", c_uint32),
    ]  # fmt: skip


class LaunchRecord(ctypes.Structure):
    """A launch."""

    _fields_ = [
        ("entry", c_uint64), ("image", c_uint64), ("kernarg", c_uint64), ("dispatch", c_uint64), ("queue", c_uint64),
        ("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("lds", c_uint32), ("scratch", c_uint32), ("mode", c_uint32),
        ("user_sgprs", c_uint32), ("properties", c_uint32), ("ids", c_uint32), ("check", c_uint32), ("late", c_uint32),
        ("threads", c_uint32), ("shift", c_uint32), ("seed", c_uint64), ("budget", c_uint64),
        ("deadline", c_uint64), ("waits", c_uint64),
    ]  # fmt: skip


class FaultRecord(ctypes.Structure):
    """A fault."""

    _fields_ = [
        ("kind", c_uint32), ("use", c_uint32), ("cause", c_uint32), ("cause_wave", c_uint32), ("counters", c_uint32),
        ("vm", c_uint32), ("lgkm", c_uint32), ("wave", c_uint32), ("lane", c_uint32), ("reg", c_uint32),
        ("workgroup", c_uint32 * 3), ("memory", c_uint32), ("address", c_uint64), ("size", c_uint64),
        ("count", c_uint64),
    ]  # fmt: skip


class OutcomeRecord(ctypes.Structure):
    """What a launch came to."""

    _fields_ = [
        ("instructions", c_uint64), ("faults", c_uint64), ("restless", c_uint64), ("refused", c_uint32),
        ("refused_at", c_uint32), ("detail", c_uint64),
    ]  # fmt: skip

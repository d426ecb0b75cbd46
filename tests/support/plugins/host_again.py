"""A kind of device as somebody else would add it: the host's processor once more, timed in rounds of another length.

This file and one entry point are all of it (tests/integration/test_device_kind_plugin.py).
"""

from __future__ import annotations

from dataclasses import replace

from hkbench.device_kinds.cpu import CPU
from hkbench.records import DeviceKind

HOST_AGAIN = replace(
    CPU,
    kind=DeviceKind("host_again"),
    label="Host again",
    phrase="the host once more",
    evaluators_clock="a clock of another kind",
    default_runs=7,
)

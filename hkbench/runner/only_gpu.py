"""One GPU of several for a runner: the others are hidden, since the driver opens all that it sees, 0.2 s for each."""

from __future__ import annotations

import os

import torch

from hkbench.protocol.messages import OnlyGpu

VISIBLE = "CUDA_VISIBLE_DEVICES"


def hide_others(only: OnlyGpu | None) -> torch.device | None:
    """Hide all GPUs but one from a process that has not used any; return None where that came too late.

    Then none is hidden: code of the candidate's has asked the driver before, behind torch's back. The driver goes on
    knowing all of them, and torch, which counts by the environment, has to count as many.
    """
    if only is None or torch.cuda.is_initialized():
        return None
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = only.visible
    if f"GPU-{torch.cuda.get_device_properties(0).uuid}" == only.uuid:
        return torch.device("cuda:0")
    if before is None:
        del os.environ[VISIBLE]
    else:
        os.environ[VISIBLE] = before
    torch.cuda._cached_device_count = None
    return None

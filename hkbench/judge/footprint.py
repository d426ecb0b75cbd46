"""What one evaluation may leave behind in the judge and the runner that stay with a GPU: nothing that matters."""

from __future__ import annotations

import gc
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch

MOST_HOST_BYTES = 1 << 30  #: more of the host's memory than at first: something is kept that nobody needs
MOST_DEVICE_BYTES = 1 << 28  #: likewise of the device's, by the runner, where libraries may keep a workspace


@dataclass(frozen=True)
class Footprint:
    """A judge between two evaluations: torch's settings, the memory that it has, and that of the baselines' runner."""

    settings: dict[str, Any]
    device_bytes: int  #: of torch's allocator
    host_bytes: int
    runner_device_bytes: int
    runner_host_bytes: int

    @classmethod
    def of(cls, device: torch.device, runner: Mapping[str, Any]) -> Footprint:
        """As it is now, with everything given back that nobody refers to any more. `runner`: what its `reset` says."""
        gc.collect()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
        held = torch.cuda.memory_reserved(device) if device.type == "cuda" else 0
        resident = psutil.Process().memory_info().rss
        return cls(settings(), held, resident, runner["device_bytes"], runner["host_bytes"])

    def allows(self, now: Footprint) -> bool:
        """Whether a judge that began like this may go on as it is `now`."""
        return (
            now.settings == self.settings
            and now.device_bytes <= self.device_bytes
            and now.host_bytes <= self.host_bytes + MOST_HOST_BYTES
            and now.runner_device_bytes <= self.runner_device_bytes + MOST_DEVICE_BYTES
            and now.runner_host_bytes <= self.runner_host_bytes + MOST_HOST_BYTES
        )


def settings() -> dict[str, Any]:
    """What a problem's code may change for everybody in its process, and what the next verdict would depend on."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    return {
        "dtype": torch.get_default_dtype(),
        "device": torch.get_default_device(),
        "gradients": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "threads": torch.get_num_threads(),
        "precision": torch.get_float32_matmul_precision(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        "matmul": (
            cuda.matmul.allow_tf32,
            cuda.matmul.allow_fp16_reduced_precision_reduction,
            cuda.matmul.allow_bf16_reduced_precision_reduction,
            cuda.preferred_linalg_library(),
            cuda.preferred_blas_library(),
        ),
        "attention": (
            cuda.flash_sdp_enabled(),
            cuda.mem_efficient_sdp_enabled(),
            cuda.math_sdp_enabled(),
            cuda.cudnn_sdp_enabled(),
        ),
        "cudnn": (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, cudnn.benchmark_limit),
        "mkldnn": torch.backends.mkldnn.enabled,
        "warn always": torch.is_warn_always_enabled(),
        "denormals": float(torch.full((), 1e-40, dtype=torch.float32, device="cpu") * 1.0) != 0.0,
        "modes": len(torch.overrides._get_current_function_mode_stack()),
        "environment": dict(os.environ),
        "folder": Path.cwd(),
    }

"""What one evaluation may leave behind in the evaluator and the runner that stay with a GPU: nothing that matters."""

from __future__ import annotations

import gc
import os
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from hkbench.protocol.messages import MemoryHeld

MAX_HOST_BYTES = 1 << 30  #: more of the host's memory than at first: something is kept that nobody needs
MAX_DEVICE_BYTES = 1 << 28  #: likewise of the device's, by the runner, where libraries may keep a workspace


@dataclass(frozen=True)
class Footprint:
    """State of a worker between two evaluations: torch's settings, its memory, and that of the baselines' runner."""

    settings: dict[str, object]
    device_bytes: int  #: of torch's allocator
    host_bytes: int
    runner_device_bytes: int
    runner_host_bytes: int

    @classmethod
    def of(cls, device: torch.device, runner: MemoryHeld) -> Footprint:
        """Take the footprint now, after giving back what nobody refers to. `runner`: what its `reset` says."""
        gc.collect()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
        held = torch.cuda.memory_reserved(device) if device.type == "cuda" else 0
        resident = psutil.Process().memory_info().rss
        return cls(settings(), held, resident, runner.device_bytes, runner.host_bytes)

    def exceeded_by(self, now: Footprint) -> tuple[str, ...]:
        """Name what a worker that began like this has changed or kept until `now` and must not: nothing, as a rule."""
        limits = {
            "device_bytes": self.device_bytes,
            "host_bytes": self.host_bytes + MAX_HOST_BYTES,
            "runner_device_bytes": self.runner_device_bytes + MAX_DEVICE_BYTES,
            "runner_host_bytes": self.runner_host_bytes + MAX_HOST_BYTES,
        }
        changed = [name for name, value in self.settings.items() if now.settings[name] != value]
        kept = [f"{name} {getattr(now, name)} > {most}" for name, most in limits.items() if getattr(now, name) > most]
        return (*changed, *kept)


def settings() -> dict[str, object]:
    """Return the process-wide settings that a problem's code may change and that later verdicts depend on."""
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
